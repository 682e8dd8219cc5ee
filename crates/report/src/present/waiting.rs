//! Who waits for whom, in words.

use std::fmt::Write as _;

use mpiprobe_model::{
    OpenCallInfo, Partner, PendingRow, Profile, RankProfile, RankState,
    analyse::{Certainty, OtherEnd, Posted, Wait, Waiting, Why, longest, operations, waiting},
};

use super::{
    doing::what,
    table::{TextOptions, left, right, section, table},
    units::{bytes, ns, or_unknown},
};

/// Ranks that are named one by one.
const NAMED: usize = 8;
/// Requests of one call that are named.
const REQUESTS: usize = 3;
/// Rows of the table.
const ROWS: usize = 32;

/// "0 → 1 → 2 → 0", "0 waits for itself"
pub fn circle(profile: &Profile, circle: &[usize]) -> String {
    if let [rank] = circle {
        return format!("{} waits for itself", number(profile, *rank));
    }
    let round = circle.iter().chain(circle.first());
    shortened(round.map(|&rank| number(profile, rank)).collect(), " → ", 2 * NAMED)
}

/// "0, 1, 2: each waits for another one of them"
pub fn knot(profile: &Profile, knot: &[usize]) -> String {
    let ranks = shortened(knot.iter().map(|&rank| number(profile, rank)).collect(), ", ", 2 * NAMED);
    format!("{ranks}: each waits for another one of them")
}

/// What a rank waits for: "a message from 3", "1, 4 to call MPI_Barrier".
pub fn waits_for(profile: &Profile, wait: &Wait) -> String {
    let named = |&rank: &usize| if rank == wait.rank { "itself".to_owned() } else { number(profile, rank) };
    let ranks = shortened(wait.on.iter().map(named).collect(), ", ", NAMED);
    let call = call(profile, wait).map_or("the call", |call| call.function);
    let text = match (wait.why, ranks.is_empty()) {
        (Why::Message | Why::Requests, true) => "a message that is on its way, or not seen".into(),
        (Why::Message | Why::Requests, false) => ranks,
        (Why::Anybody, _) => "anybody".into(),
        (Why::Somebody, _) => "somebody, it is not known whom".into(),
        (Why::Operation, _) => "others to take part in a collective operation".into(),
        (Why::Collective, true) => "the others: all that are observed are there".into(),
        (Why::Collective, false) => format!("{ranks} to call {call}"),
        (Why::Leader, false) => format!("{ranks} to speak for its group"),
        (Why::File, false) => format!("{ranks} to do its part with the file"),
        (Why::File, true) => "others that have the file, or the file itself".into(),
        (Why::Leader, true) => "the other group".into(),
        (Why::Lock, false) => format!("{ranks} to give up the window"),
        (Why::Exposure, false) => format!("{ranks} to call MPI_Win_post"),
        (Why::Access, false) => format!("{ranks} to call MPI_Win_complete"),
        (Why::Lock | Why::Exposure | Why::Access, true) => "others that have the window".into(),
        (Why::Unknown, _) => "not known".into(),
    };
    match wait.certainty {
        Certainty::Possible if !wait.on.is_empty() => format!("perhaps {text}"),
        Certainty::OneOf if !wait.on.is_empty() => format!("one of {text}"),
        Certainty::Possible | Certainty::OneOf | Certainty::Certain => text,
    }
}

/// Requests that a call waits for and that have nobody at the other end, as far as is seen: "receive from 1 tag 7 4 B on row".
pub fn waited_requests(profile: &Profile, wait: &Wait) -> Option<String> {
    let rank = profile.ranks.get(wait.rank)?;
    let operations = operations(profile);
    let is_met = |place: usize| {
        let mut own = operations.iter().filter(|operation| operation.rank == wait.rank);
        own.any(|operation| {
            operation.posted == Posted::Request(place) && matches!(operation.other_end, OtherEnd::Posted(_))
        })
    };
    let pending = rank.traffic.iter().flat_map(|traffic| traffic.pending.iter().enumerate());
    let own = pending
        .filter(|(place, row)| row.awaited_by == Some(wait.tid) && row.is_under_way != Some(false) && !is_met(*place));
    let words: Vec<String> = own.map(|(_, row)| request(profile, rank, row)).collect();
    (!words.is_empty()).then(|| shortened(words, "; ", REQUESTS))
}

fn request(profile: &Profile, rank: &RankProfile, row: &PendingRow) -> String {
    let is_send = row.sent_bytes.is_some();
    let mut text = match (row.is_of_library, row.partner) {
        (true, Partner::Nobody) => "a collective operation".to_owned(),
        (true, _) => if row.function == "MPI_Isend" { "send" } else { "receive" }.to_owned(),
        (false, _) => row.function.to_owned(),
    };
    let to = if is_send || row.function == "MPI_Isend" { "to" } else { "from" };
    let _ = match (row.partner, row.peer) {
        (Partner::Rank, Some(peer)) => write!(text, " {to} {peer}"),
        (Partner::AnySource, _) => write!(text, " from any"),
        _ => Ok(()),
    };
    if let Some(tag) = row.tag.filter(|tag| *tag >= 0) {
        let _ = write!(text, " tag {tag}");
    }
    if let Some(amount) = row.sent_bytes.or(row.received_bytes) {
        let _ = write!(text, " {}", bytes(amount));
    }
    let number = row.communicator.and_then(|number| {
        let own = rank.traffic.as_ref()?.communicators.iter().find(|known| known.number == number)?;
        profile.traffic.as_ref()?.communicators.iter().find(|known| Some(known.id) == own.id)
    });
    if let Some(communicator) = number.filter(|communicator| communicator.name != "world") {
        let _ = write!(text, " on {}", communicator.name);
    }
    text
}

/// Who waits for whom from the first of those on: "→ 1 → 2 (computing)".
pub fn chain(profile: &Profile, wait: &Wait) -> String {
    let mut text = shortened(wait.chain.iter().map(|&rank| number(profile, rank)).collect(), " → ", NAMED);
    if let Some(last) = wait.chain.last().and_then(|&rank| profile.ranks.get(rank)) {
        let _ = write!(text, " ({})", end(last));
    }
    text
}

/// What the last of a chain does.
fn end(rank: &RankProfile) -> String {
    match (rank.state, longest(rank)) {
        (RankState::Ended, None) => "has ended".into(),
        (RankState::Execed, _) => "runs another program".into(),
        (RankState::Running, _) if rank.stopped => "is stopped".into(),
        (RankState::Running | RankState::Ended, Some(call)) => what(call),
        (RankState::Running, None) => "computes".into(),
    }
}

/// The call that a rank waits in.
pub fn call<'a>(profile: &'a Profile, wait: &Wait) -> Option<&'a OpenCallInfo> {
    longest(profile.ranks.get(wait.rank)?)
}

fn number(profile: &Profile, rank: usize) -> String {
    or_unknown(profile.ranks.get(rank).and_then(|rank| rank.rank))
}

pub(super) fn shortened(names: Vec<String>, between: &str, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let mut text = names.into_iter().take(most).collect::<Vec<_>>().join(between);
    if more > 0 {
        let _ = write!(text, "{between}{more} more");
    }
    text
}

/// All circles and knots, one on a line each.
pub(super) fn circles(profile: &Profile, waiting: &Waiting) -> String {
    let mut text = String::new();
    for ranks in waiting.circles.iter().take(NAMED) {
        let round = circle(profile, ranks);
        let each = if ranks.len() > 1 { "each of these ranks waits for the next one: " } else { "" };
        let _ = writeln!(text, "DEADLOCK: {each}{round}");
    }
    for ranks in waiting.knots.iter().take(NAMED) {
        let _ = writeln!(text, "DEADLOCK: {}", knot(profile, ranks));
    }
    let more = waiting.circles.len().saturating_sub(NAMED) + waiting.knots.len().saturating_sub(NAMED);
    if more > 0 {
        let _ = writeln!(text, "and {more} more");
    }
    text
}

/// The section of the tables; empty if nobody waits.
pub(super) fn waits(options: &TextOptions, profile: &Profile) -> String {
    let waiting = waiting(profile);
    if waiting.waits.is_empty() {
        return String::new();
    }
    let columns = [right("rank"), left("in"), right("for"), left("waits for"), left("who wait for")];
    let rows = waiting.waits.iter().take(options.rows(ROWS)).filter_map(|wait| {
        let call = call(profile, wait)?;
        let (rank, chain) = (number(profile, wait.rank), chain(profile, wait));
        Some(vec![rank, call.function.into(), ns(wait.open_ns), waits_for(profile, wait), chain])
    });
    let more = options.more(options.rows(ROWS), waiting.waits.len(), "ranks");
    let text = circles(profile, &waiting) + &table(options, &columns, rows) + &more;
    section("Who waits for whom", &text)
}
