//! Who waits for whom, in words.

use std::fmt::Write as _;

use mpiprobe_model::{
    OpenCallInfo, Profile, RankProfile, RankState,
    analyse::{Certainty, Wait, Waiting, Why, longest, waiting},
};

use super::{
    doing::what,
    table::{
        Column::{Left, Right},
        section, table,
    },
    units::{ns, or_unknown},
};

/// Ranks that are named one by one.
const NAMED: usize = 8;
/// Rows of the table.
const ROWS: usize = 32;

/// "0 → 1 → 2 → 0"
pub fn circle(profile: &Profile, circle: &[usize]) -> String {
    let round = circle.iter().chain(circle.first());
    shortened(round.map(|&rank| number(profile, rank)).collect(), " → ", 2 * NAMED)
}

/// What a rank waits for: "a message from 3", "1, 4 to call MPI_Barrier".
pub fn waits_for(profile: &Profile, wait: &Wait) -> String {
    let ranks = shortened(wait.on.iter().map(|&rank| number(profile, rank)).collect(), ", ", NAMED);
    let call = call(profile, wait).map_or("the call", |call| call.function);
    let text = match (wait.why, ranks.is_empty()) {
        (Why::Message | Why::Requests, true) => "a message that is on its way, or not seen".into(),
        (Why::Message | Why::Requests, false) => ranks,
        (Why::Anybody, _) => "anybody".into(),
        (Why::Collective, true) => "the others: all that are observed are there".into(),
        (Why::Collective, false) => format!("{ranks} to call {call}"),
        (Why::Unknown, _) => "not known".into(),
    };
    match wait.certainty {
        Certainty::Possible if !wait.on.is_empty() => format!("perhaps {text}"),
        Certainty::OneOf => format!("one of {text}"),
        Certainty::Possible | Certainty::Certain => text,
    }
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

/// All circles, one on a line each.
pub(super) fn circles(profile: &Profile, waiting: &Waiting) -> String {
    let mut text = String::new();
    for ranks in waiting.circles.iter().take(NAMED) {
        let round = circle(profile, ranks);
        let _ = writeln!(text, "DEADLOCK: each of these ranks waits for the next one: {round}");
    }
    if waiting.circles.len() > NAMED {
        let _ = writeln!(text, "and {} more", waiting.circles.len() - NAMED);
    }
    text
}

/// The section of the tables; empty if nobody waits.
pub(super) fn waits(profile: &Profile) -> String {
    let waiting = waiting(profile);
    if waiting.waits.is_empty() {
        return String::new();
    }
    let columns = [Right("rank"), Left("in"), Right("for"), Left("waits for"), Left("who wait for")];
    let rows = waiting.waits.iter().take(ROWS).filter_map(|wait| {
        let call = call(profile, wait)?;
        let (rank, chain) = (number(profile, wait.rank), chain(profile, wait));
        Some(vec![rank, call.function.into(), ns(wait.open_ns), waits_for(profile, wait), chain])
    });
    let mut text = circles(profile, &waiting) + &table(&columns, rows);
    if waiting.waits.len() > ROWS {
        let _ = writeln!(text, "and {} more", waiting.waits.len() - ROWS);
    }
    section("Who waits for whom", &text)
}
