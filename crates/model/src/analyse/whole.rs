//! Whether everybody is in the picture, from his first call on. What is not there cannot be counted as lost: it shows only in what
//! the others say, the size of the world and the calls that must have come before.

use std::collections::{BTreeMap, BTreeSet};

use mpiprobe_discover::ranges;
use mpiprobe_observe::ProcessSnapshot;

use super::{Expected, Observed, Session, beginning::lacks_its_beginning, communicators::world_size, rank::Rank};
use crate::RankProfile;

/// More ranks than this are not told one by one.
const MOST_LISTED: usize = 1024;

/// What is not in the profile although it should be, in words.
pub(super) fn missing(session: &Session, ranks: &[Rank<'_>]) -> Vec<String> {
    let mut missing: Vec<String> = first_calls(ranks).into_iter().chain(of_another_launcher(ranks)).collect();
    if session.expected == Expected::AllRanks {
        if ranks.is_empty() {
            missing.push("nothing was counted: no process was seen to call MPI".to_owned());
        }
        missing.extend(Job::all(ranks).iter().filter_map(|(name, job)| job.missing(name.as_deref())));
    }
    missing
}

/// Ranks of jobs that are in none of these rows, in words.
pub(super) fn missing_of_rows(ranks: &[RankProfile]) -> Vec<String> {
    let mut jobs: BTreeMap<Option<String>, Job> = BTreeMap::new();
    for who in ranks {
        let job = jobs.entry(who.job.clone()).or_default();
        job.size = job.size.max(who.size.unwrap_or(0));
        job.add(who.rank, &who.host, who.pid);
    }
    jobs.iter().filter_map(|(name, job)| job.missing(name.as_deref())).collect()
}

/// Whether that is what such a text says: of one node it may be true, and of all of them not.
pub(super) fn is_of_missing_ranks(why: &str) -> bool {
    why.contains(" ranks") && why.contains(" are not counted")
}

fn first_calls(ranks: &[Rank<'_>]) -> Option<String> {
    let without = ranks.iter().map(Rank::process).filter(|(observed, tables)| lacks_its_beginning(observed, tables));
    let number = without.count();
    (number > 0).then(|| {
        format!(
            "{number} of {} ranks were seen only after they had initialised MPI: what they called until then is not counted",
            ranks.len()
        )
    })
}

/// Processes that MPI says to be alone, where their launcher has started several as one job.
fn of_another_launcher(ranks: &[Rank<'_>]) -> Option<String> {
    let is_alone = |(observed, tables): &(&Observed, &ProcessSnapshot)| {
        world_size(tables) == Some(1) && observed.identity.size.is_some_and(|size| size > 1)
    };
    let number = ranks.iter().map(Rank::process).filter(is_alone).count();
    (number > 0).then(|| {
        format!(
            "{number} of {} ranks are alone in MPI_COMM_WORLD: their launcher is not that of their MPI library, and nothing between them is \
             true; start them by the mpiexec of that library",
            ranks.len()
        )
    })
}

/// What is known of a job by those of its ranks that were seen.
#[derive(Debug, Default)]
struct Job {
    size: u32,
    ranks: BTreeSet<u32>,
    /// Whose rank is not known.
    others: BTreeSet<(String, u32)>,
}

impl Job {
    fn all(ranks: &[Rank<'_>]) -> BTreeMap<Option<String>, Self> {
        let mut jobs: BTreeMap<Option<String>, Self> = BTreeMap::new();
        for (observed, tables) in ranks.iter().map(Rank::process) {
            let who = &observed.identity;
            let job = jobs.entry(who.job.clone()).or_default();
            job.size = job.size.max(who.size.unwrap_or(0)).max(world_size(tables).unwrap_or(0));
            job.add(who.rank, &who.host, who.pid);
        }
        // Of a process that ended before it was looked at only the kernel's word on its environment is left, which may not name its
        // job: it is one of the only job that there is.
        if jobs.len() == 2
            && let Some(nameless) = jobs.remove(&None)
            && let Some(job) = jobs.values_mut().next()
        {
            job.size = job.size.max(nameless.size);
            job.ranks.extend(nameless.ranks);
            job.others.extend(nameless.others);
        }
        jobs
    }

    fn add(&mut self, rank: Option<u32>, host: &str, pid: u32) {
        match rank {
            Some(rank) => drop(self.ranks.insert(rank)),
            None => drop(self.others.insert((host.to_owned(), pid))),
        }
    }

    fn missing(&self, name: Option<&str>) -> Option<String> {
        let seen = u32::try_from(self.ranks.len() + self.others.len()).ok()?;
        let number = self.size.checked_sub(seen).filter(|&number| number > 0)?;
        // The size is what a process of somebody else's says.
        let absent = (0..self.size).filter(|rank| !self.ranks.contains(rank)).take(MOST_LISTED + 1).collect::<Vec<_>>();
        let is_listed = self.others.is_empty() && absent.len() <= MOST_LISTED;
        let which = if is_listed { format!(" (rank {})", ranges(&absent)) } else { String::new() };
        let name = name.map(|name| format!(" of job {name}")).unwrap_or_default();
        Some(format!("{number} of {} ranks{name} are not counted{which}", self.size))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mpiprobe_common::{Communicator, FunctionStats, flow::communicator_kind};

    use mpiprobe_functions::by_name;
    use mpiprobe_observe::CommunicatorSnapshot;

    use super::*;
    use crate::RankState;
    use crate::analyse::{Beginning, Observed};
    use crate::analyse::{Identity, SelfCost};

    fn observed(rank: Option<u32>, size: Option<u32>, beginning: Beginning) -> Observed {
        let identity =
            Identity { pid: 100 + rank.unwrap_or(50), rank, size, job: Some("ompi:1".into()), ..Identity::default() };
        Observed {
            process: 1,
            identity,
            state: RankState::Ended,
            stopped: false,
            since_ns: 0,
            beginning,
            until_ns: Some(10),
            failure: None,
            ended_in: Vec::new(),
            self_cost: SelfCost(None),
        }
    }

    fn tables(called: &[&str]) -> ProcessSnapshot {
        let stats = Arc::new(FunctionStats { calls: 1, ..FunctionStats::ZERO });
        let row = |name: &&str| (u32::from(by_name(name).unwrap().number()), Arc::clone(&stats));
        ProcessSnapshot { functions: called.iter().map(row).collect(), ..ProcessSnapshot::empty(1) }
    }

    fn found(expected: Expected, who: &[Observed], tables: &ProcessSnapshot) -> Vec<String> {
        let session = Session { expected, ..crate::analyse::self_cost::tests::session() };
        let ranks: Vec<_> = who.iter().map(|who| Rank::new(&session, who, tables, 10)).collect();
        missing(&session, &ranks)
    }

    /// Invariant EVERYBODY-OR-SAID.
    #[test]
    fn ranks_that_are_not_there_are_missed_where_all_are_expected() {
        let called = tables(&["MPI_Init", "MPI_Send"]);
        let rank = |rank, size| observed(rank, size, Beginning::FirstCall);
        let of = |who: &[Observed]| found(Expected::AllRanks, who, &called);
        assert_eq!(of(&[rank(Some(0), Some(2)), rank(Some(1), Some(2))]), [""; 0]);
        assert_eq!(of(&[rank(Some(0), Some(2))]), ["1 of 2 ranks of job ompi:1 are not counted (rank 1)"]);
        assert_eq!(of(&[rank(Some(1), Some(6))]), ["5 of 6 ranks of job ompi:1 are not counted (rank 0, 2-5)"]);
        // One of which nobody could tell the job any more.
        let nameless = |rank| {
            let mut nameless = observed(rank, Some(2), Beginning::FirstCall);
            nameless.identity.job = None;
            nameless
        };
        assert_eq!(of(&[rank(Some(0), Some(2)), nameless(Some(1))]), [""; 0]);
        assert_eq!(of(&[nameless(Some(0)), nameless(Some(1))]), [""; 0]);
        assert_eq!(of(&[nameless(Some(1))]), ["1 of 2 ranks are not counted (rank 0)"]);
        // Two images of one rank.
        assert_eq!(of(&[rank(Some(0), Some(2)), rank(Some(0), Some(2))]).len(), 1);
        assert_eq!(of(&[rank(Some(0), Some(3)), rank(None, None)]), ["1 of 3 ranks of job ompi:1 are not counted"]);
        assert_eq!(of(&[rank(None, None)]), [""; 0]);
        assert_eq!(of(&[]), ["nothing was counted: no process was seen to call MPI"]);
        assert_eq!(found(Expected::Some, &[rank(Some(0), Some(2))], &called), [""; 0]);
        assert_eq!(found(Expected::Some, &[], &called), [""; 0]);
    }

    #[test]
    fn who_is_alone_in_its_world_was_started_by_another_launcher() {
        let facts = |size| Communicator { kind: communicator_kind::WORLD, size, ..Communicator::default() };
        let with_world = |size| {
            let world =
                CommunicatorSnapshot { number: 1, facts: facts(size), name: String::new(), made: None, members: None };
            ProcessSnapshot { communicators: vec![world], ..tables(&["MPI_Init"]) }
        };
        let all = [0, 1].map(|rank| observed(Some(rank), Some(2), Beginning::FirstCall));
        assert_eq!(found(Expected::AllRanks, &all, &with_world(2)), [""; 0]);
        assert!(
            found(Expected::AllRanks, &all, &with_world(1))[0].starts_with("2 of 2 ranks are alone in MPI_COMM_WORLD")
        );
    }

    #[test]
    fn who_was_waited_for_is_seen_to_initialise_mpi_or_was_missed() {
        let of = |beginning, called: &[&str]| {
            found(Expected::Some, &[observed(Some(0), None, beginning)], &tables(called)).len()
        };
        assert_eq!(of(Beginning::Awaited, &["MPI_Send", "MPI_Finalize"]), 1);
        assert_eq!(of(Beginning::Awaited, &["MPI_Init_thread", "MPI_Send"]), 0);
        assert_eq!(of(Beginning::Awaited, &["MPI_Session_init", "MPI_Barrier"]), 0);
        assert_eq!(of(Beginning::Awaited, &["MPI_Initialized"]), 0, "it may ask before");
        assert_eq!(of(Beginning::MidRun, &["MPI_Send"]), 0);
        assert_eq!(of(Beginning::FirstCall, &["MPI_Send"]), 0);
    }
}
