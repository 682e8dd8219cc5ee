//! What is probably wrong with a job, in words: what was found, what shows it, what it means, what to do.

use mpiprobe_model::{Doing, Finding, Found, PartnerAtPlace, Profile, RankAtPlace, TimeAtPlace, analyse};

use super::{
    doing::{called, doing, what as what_of},
    units::{bytes, count, duration, ns, or_unknown, percent, rate},
    waiting::shortened,
};

#[cfg(test)]
mod tests;
mod waits;

/// Ranks of a circle that are named one by one.
const NAMED: usize = 16;

/// What to do about a rank that others wait for, and of which it is told where it is.
const SEE_STACKS: &str = "Look at what it does there; `mpiprobe hang` shows all stacks.";

/// A finding in sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingText {
    /// In a word or two.
    pub name: &'static str,
    /// With its figures and places.
    pub found: String,
    /// What shows it besides, a line each.
    pub evidence: Vec<String>,
    /// The job does not go on because of it.
    pub hangs: bool,
    /// What it means.
    pub meaning: &'static str,
    /// What to do about it.
    pub advice: &'static str,
}

/// What is found in a profile: what is grave, and then what costs most.
pub fn findings(profile: &Profile) -> Vec<FindingText> {
    let found = analyse::findings(profile);
    let mut texts: Vec<(u64, FindingText)> = found
        .iter()
        .map(|one| (if one.what.is_grave() { u64::MAX } else { one.cost_ns.unwrap_or(0) }, FindingText::of(one)))
        .collect();
    // Of a job that does not go on, nobody wants to know how it could be faster.
    if !found.iter().any(|finding| finding.what.hangs()) {
        for (cost_ns, text) in waits::long_waits(profile) {
            let place = texts.iter().position(|(cost, _)| *cost < cost_ns).unwrap_or(texts.len());
            texts.insert(place, (cost_ns, text));
        }
    }
    texts.into_iter().map(|(_, text)| text).collect()
}

impl FindingText {
    pub fn of(finding: &Finding) -> Self {
        let (name, meaning, advice) = kind(&finding.what);
        let hangs = finding.what.hangs();
        let Some(text) = &finding.stacks else {
            let (found, evidence) = (found(&finding.what), evidence(&finding.what));
            return Self { name, found, evidence, hangs, meaning, advice };
        };
        let mut lines = text.lines().map(|line| line.trim().to_owned());
        let found = match (&finding.what, lines.next()) {
            // Its name says that it is one.
            (Found::Deadlock { .. }, Some(line)) => line.trim_start_matches("Deadlock: ").to_owned(),
            (_, Some(line)) => line,
            (what, None) => found(what),
        };
        let advice = if matches!(finding.what, Found::WaitedFor { .. }) { SEE_STACKS } else { advice };
        Self { name, found, evidence: lines.collect(), hangs, meaning, advice }
    }

    /// All of it in one line.
    pub fn advised(&self) -> String {
        format!("{} {}", self.meaning, self.advice)
    }
}

/// What it is called, what it means, and what to do.
fn kind(what: &Found) -> (&'static str, &'static str, &'static str) {
    match what {
        Found::Deadlock { .. } => (
            "deadlock",
            "Each of these ranks waits for the next one, the last for the first, or for another one of them: none can go on.",
            "Change the order of sends and receives in one of them, or use MPI_Sendrecv, or nonblocking calls.",
        ),
        Found::DifferentRoots { .. } => (
            "different roots",
            "All are in the same collective call, and each waits for data from, or for, the root that it means.",
            "Give the same root in all ranks.",
        ),
        Found::WaitedFor { .. } => (
            "waited for",
            "Others cannot go on before this rank does what they wait for, and it has not for a while.",
            "`mpiprobe hang` says where it is.",
        ),
        Found::AllAreThere { .. } => (
            "all are there",
            "Nobody is missing in this call: either it takes this long, or the MPI library, the network or the launcher does not go on.",
            "Look at the network and at the launcher; `mpiprobe hang` says where in the library each rank is.",
        ),
        Found::Aborted { .. } => (
            "aborted",
            "A rank has called MPI_Abort, which ends all others, wherever they are.",
            "Look at why it did; what the others were in then is no trouble of theirs.",
        ),
        Found::Failed { failure, .. } if failure.is_from_outside() => (
            "failed",
            "Such a signal mostly comes from outside: a user, the launcher, the batch system at a limit, or the kernel if memory is short.",
            "See who has sent it: the launcher and the batch system say so, and `journalctl -k` if it was for want of memory.",
        ),
        Found::Failed { .. } => (
            "failed",
            "A process of the job has ended with a signal, or with an exit status other than 0; launchers then end the others.",
            "Look at its own messages, and with a signal at its core: `coredumpctl`, or `ulimit -c unlimited` before the next run.",
        ),
        Found::Incomplete { .. } => (
            "incomplete",
            "Something was not counted: figures are lower bounds.",
            "Make the table larger, or raise the limit, that is named; `mpiprobe doctor` tells of others.",
        ),
        Found::RequestsNeverCompleted { .. } => (
            "requests never completed",
            "Without MPI_Wait or MPI_Test nobody knows whether the data has arrived or the buffer may be used again.",
            "Complete every request, for example by MPI_Waitall before the buffers are used.",
        ),
        Found::UnusuallyLongCall { .. } => (
            "unusually long call",
            "These calls last longer than a second, and four times longer than 99 % of the calls of their function.",
            "Look at whom they wait for: another rank may be slow, stopped or stuck.",
        ),
        Found::TimeAtPlace(_) => (
            "much time at one place",
            "A call of MPI takes long if it moves much data, or waits for a rank that comes late.",
            "See what the ranks that spend least time there do before it, and compute while data moves.",
        ),
        Found::Imbalance { .. } => (
            "imbalance",
            "Some ranks compute much longer than the average, and the others wait for them.",
            "Divide the work more evenly; look at what the rank with most to do has more of.",
        ),
        Found::MostlyInMpi { .. } => (
            "mostly in MPI",
            "Ranks communicate, or wait for others, longer than they compute.",
            "Use fewer ranks, overlap communication with computing, or see whom they wait for.",
        ),
        Found::Polling { .. } => (
            "polling",
            "A loop asks whether something has happened, and takes processor time that others could use.",
            "Compute something between two questions, or wait by a call that blocks (MPI_Wait, MPI_Probe).",
        ),
        Found::TinyMessages { .. } => (
            "tiny messages",
            "Each message costs about the same however small it is: many small ones cost much more than few large ones.",
            "Collect data and send it at once, by derived datatypes or larger buffers.",
        ),
        Found::TinyIo { .. } => (
            "tiny I/O",
            "A parallel file system needs about as long for some bytes as for a megabyte.",
            "Read and write larger pieces, or use collective calls with a file view, which put pieces together.",
        ),
        Found::HighOwnCost { .. } => (
            "high own cost",
            "The job calls MPI so often that observing it slows it down: figures are of the slower job.",
            "Leave out what is called most (--functions default,-NAME), do without --traffic, or have less of it counted (--max-overhead 0.5).",
        ),
    }
}

fn found(what: &Found) -> String {
    match what {
        Found::Deadlock { circles, knots } => {
            let first = match (circles.first(), knots.first()) {
                (Some(circle), _) => round(circle),
                (None, knot) => {
                    let ranks = knot.into_iter().flatten().map(|&rank| or_unknown(rank)).collect();
                    format!("ranks {} wait for each other", shortened(ranks, ", ", NAMED))
                }
            };
            match circles.len() + knots.len() {
                0 | 1 => first,
                2 => format!("{first}, and another one"),
                number => format!("{first}, and {} more", number - 1),
            }
        }
        Found::DifferentRoots { ranks, function } => {
            let ranks = shortened(ranks.iter().map(|&rank| or_unknown(rank)).collect(), ", ", NAMED);
            format!("ranks {ranks} are in {function} with different roots")
        }
        Found::WaitedFor { rank, ranks, for_ns, does } => {
            let does = match does {
                Doing::Computes => "is not in MPI".to_owned(),
                Doing::Stopped => "is stopped".to_owned(),
                Doing::Ended => "has ended".to_owned(),
                Doing::Call { call } => {
                    let site = call.site.as_ref().map(|site| format!(" at {site}")).unwrap_or_default();
                    format!("is {}{site}", what_of(call))
                }
            };
            let (have, rank) = (if *ranks == 1 { "rank has" } else { "ranks have" }, or_unknown(*rank));
            format!("{ranks} {have} waited for rank {rank} for {} at least, which {does}", ns(*for_ns))
        }
        Found::AllAreThere { ranks, function } => format!("all {ranks} ranks are in {function}, and none has returned"),
        Found::Aborted { rank, code, site } => {
            let code = code.map(|code| format!(" with error code {code}")).unwrap_or_default();
            let site = site.as_ref().map(|site| format!(" at {site}")).unwrap_or_default();
            format!("rank {} has called MPI_Abort{code}{site}", or_unknown(*rank))
        }
        Found::Failed { ranks, rank: None, failure, .. } if *ranks > 1 => {
            format!("{ranks} ranks have ended, one with {failure}; which was first is not known")
        }
        Found::Failed { ranks, rank, failure, call } => {
            let call = call.as_ref().map(|call| format!(", in {}", called(call))).unwrap_or_default();
            let others = match ranks - 1 {
                0 => String::new(),
                1 => "; another one has failed after it".to_owned(),
                others => format!("; {others} others have failed after it"),
            };
            format!("rank {} has ended with {failure}{call}{others}", or_unknown(*rank))
        }
        Found::Incomplete { because } => because.join("; "),
        Found::RequestsNeverCompleted { ranks, requests, rank, function, site } => {
            let site = site.as_ref().map(|site| format!(" at {site}")).unwrap_or_default();
            let of = or_unknown(*rank);
            format!("{ranks} ranks ended with {requests} requests, such as {function}{site} of rank {of}")
        }
        Found::UnusuallyLongCall { ranks, of_ranks, rank, call } => {
            format!("{ranks} of {of_ranks} ranks, such as rank {} {}", or_unknown(*rank), doing(call))
        }
        Found::TimeAtPlace(at) => time_at_place(at),
        Found::Imbalance { load_balance_percent, rank, computing_percent } => format!(
            "load balance is {} %; rank {} computes most, {} % of its time",
            percent(*load_balance_percent),
            or_unknown(*rank),
            percent(*computing_percent)
        ),
        Found::MostlyInMpi { percent: share, function } => {
            format!("{} % of the time, most of it in {function}", percent(*share))
        }
        Found::Polling { function, calls_per_s, percent: share } => {
            format!("{function} is called {}/s and takes {} % of the time", rate(*calls_per_s), percent(*share))
        }
        Found::TinyMessages { function, messages_per_s, mean_bytes } => {
            format!("{function}: {} messages/s of {} on average", rate(*messages_per_s), bytes(*mean_bytes))
        }
        Found::TinyIo { function, calls, mean_bytes } => {
            format!("{function}: {} calls for {} on average", count(*calls), bytes(*mean_bytes))
        }
        Found::HighOwnCost { percent: share, per_call_ns } => {
            format!("{} % of the job's time, {} a call", percent(*share), duration(*per_call_ns))
        }
    }
}

/// "0 → 1 → 2 → 0"
fn round(circle: &[Option<u32>]) -> String {
    shortened(circle.iter().chain(circle.first()).map(|&rank| or_unknown(rank)).collect(), " → ", NAMED)
}

/// "rank 3 spends 82.0 % of its time in MPI_Waitall at halo.c:91 in main, most of it for messages from rank 7; so do 2 more ranks"
fn time_at_place(at: &TimeAtPlace) -> String {
    let Some(first) = at.ranks.first() else { return at.function.to_owned() };
    let site = at.site.as_ref().map(|site| format!(" at {site}")).unwrap_or_default();
    let partner = first.partner.map(|partner| format!(", most of it for {}", messages(partner))).unwrap_or_default();
    let least = at.ranks.last().map_or(0.0, |rank| rank.percent);
    let others = match at.ranks_in_all {
        0 | 1 => String::new(),
        2 => format!("; another rank {} %", percent(least)),
        number if number == at.ranks.len() => format!("; {} more ranks {} % and more", number - 1, percent(least)),
        number => format!("; {} more ranks much of theirs", number - 1),
    };
    let (rank, share) = (or_unknown(first.rank), percent(first.percent));
    format!("rank {rank} spends {share} % of its time in {}{site}{partner}{others}", at.function)
}

/// "messages from rank 7"
fn messages(partner: PartnerAtPlace) -> String {
    format!("messages {} rank {}", if partner.is_destination { "to" } else { "from" }, partner.rank)
}

fn evidence(what: &Found) -> Vec<String> {
    let Found::TimeAtPlace(at) = what else { return Vec::new() };
    let line = |rank: &RankAtPlace| {
        let partner = rank.partner.map(|partner| format!(", {} % for {}", percent(partner.percent), messages(partner)));
        format!(
            "rank {}: {} in {} calls, {} %{}",
            or_unknown(rank.rank),
            ns(rank.time_ns),
            count(rank.calls),
            percent(rank.percent),
            partner.unwrap_or_default()
        )
    };
    at.ranks.iter().map(line).collect()
}
