//! Sends and receives without their other end, in words.

use mpiprobe_model::{
    Profile,
    analyse::{self, Operation, OtherEnd},
};

use super::{
    table::{TextOptions, left, right, section, table},
    units::{ns, or_unknown},
};

/// Rows of the table.
const ROWS: usize = 20;

/// What is seen of the other end: "posted", "no send seen", "its tag is 8".
pub fn other_end(profile: &Profile, operation: &Operation) -> String {
    match operation.other_end {
        OtherEnd::Posted(_) => "posted".into(),
        OtherEnd::Missing if operation.is_send => "no receive seen".into(),
        OtherEnd::Missing => "no send seen".into(),
        OtherEnd::OtherTag(tag) => format!("tag differs: {tag}"),
        OtherEnd::OtherCommunicator(id) => {
            let mut known = profile.traffic.iter().flat_map(|traffic| &traffic.communicators);
            let name = known.find(|known| known.id == id).map_or("another one", |known| known.name.as_str());
            format!("communicator differs: {name}")
        }
        OtherEnd::NotObserved => "not observed".into(),
    }
}

/// The function that has posted it.
pub fn posted_by(profile: &Profile, operation: &Operation) -> Option<&'static str> {
    operation.posted.function(profile.ranks.get(operation.rank)?)
}

/// The section of the tables; empty if everything has its other end, or that is not to be known.
pub(super) fn unmatched(options: &TextOptions, profile: &Profile) -> String {
    let alone: Vec<Operation> = analyse::unmatched(profile);
    if alone.is_empty() {
        return String::new();
    }
    let columns = [right("rank"), left("in or by"), right("for"), left(""), right("tag"), left("other end")];
    let rows = alone.iter().take(options.rows(ROWS)).filter_map(|operation| {
        let peer = operation.peer.map_or_else(|| "any".to_owned(), |peer| peer.to_string());
        let direction = if operation.is_send { "to" } else { "from" };
        let tag = operation.tag.map_or_else(|| "any".to_owned(), |tag| tag.to_string());
        Some(vec![
            or_unknown(profile.ranks.get(operation.rank)?.rank),
            posted_by(profile, operation)?.to_owned(),
            ns(operation.age_ns),
            format!("{direction} {peer}"),
            tag,
            other_end(profile, operation),
        ])
    });
    let text = table(options, &columns, rows) + &options.more(options.rows(ROWS), alone.len(), "of them");
    section("Sends and receives without other end, as far as seen", &text)
}
