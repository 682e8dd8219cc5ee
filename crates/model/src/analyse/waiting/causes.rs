//! Why ranks do not go on, as far as that is certain: what all the waiting leads to.
//!
//! Invariant NO-WRONG-CAUSE.

use std::collections::{BTreeMap, BTreeSet};

use super::{Waiting, graph::Graph};
use crate::Profile;

/// What keeps ranks from going on. Ranks are indices of the profile's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Each of `ranks` waits for the next one, the last for the first, and `others` for them.
    Circle { ranks: Vec<usize>, others: Vec<usize> },
    /// Each of `ranks` waits for another one of them, of some it is not known for which, and `others` for them.
    Knot { ranks: Vec<usize>, others: Vec<usize> },
    /// All members of a communicator are in the same collective call, and mean different roots.
    Roots { ranks: Vec<usize> },
    /// `others` wait for `rank`, some of them for each other; and it does not certainly wait for anybody itself.
    WaitedFor { rank: usize, others: Vec<usize> },
}

/// The causes of what `waiting` says of the same profile: circles first, then those that most wait for.
pub fn causes(profile: &Profile, waiting: &Waiting) -> Vec<Cause> {
    let graph = Graph::of(profile);
    let mut firm: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for wait in &graph.waits {
        let mut on = graph.firm_on(wait).peekable();
        if on.peek().is_some() {
            firm.entry(wait.rank).or_default().extend(on);
        }
    }
    let mut waiters: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (&rank, on) in &firm {
        for &other in on {
            waiters.entry(other).or_default().push(rank);
        }
    }
    let others = |of: &[usize]| -> Vec<usize> {
        let mut found: BTreeSet<usize> = of.iter().copied().collect();
        let mut next: Vec<usize> = of.to_vec();
        while let Some(rank) = next.pop() {
            for &waiter in waiters.get(&rank).into_iter().flatten() {
                if found.insert(waiter) {
                    next.push(waiter);
                }
            }
        }
        found.into_iter().filter(|rank| !of.contains(rank)).collect()
    };
    let circles = waiting.circles.iter().map(|ranks| Cause::Circle { ranks: ranks.clone(), others: others(ranks) });
    let knots = waiting.knots.iter().map(|ranks| Cause::Knot { ranks: ranks.clone(), others: others(ranks) });
    let roots = graph.world.different_roots().into_iter().map(|ranks| Cause::Roots { ranks });
    // Who asks MPI again and again may wait for somebody, too: for whom is not known.
    let asks = |rank: &usize| profile.ranks.get(*rank).is_some_and(|rank| rank.asks.is_some());
    let ends = waiters.keys().filter(|rank| !firm.contains_key(rank) && !asks(rank));
    let mut ends: Vec<(usize, Vec<usize>)> = ends.map(|&rank| (rank, others(&[rank]))).collect();
    ends.sort_by_key(|(rank, others)| (std::cmp::Reverse(others.len()), *rank));
    let ends = ends.into_iter().map(|(rank, others)| Cause::WaitedFor { rank, others });
    circles.chain(knots).chain(roots).chain(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Certainty, waiting};
    use super::*;
    use crate::{
        CallArguments, Profile,
        sample::{self, open, over_world, peer, ranks, receive},
    };

    /// So many ranks, of which some are in calls.
    fn job(number: u32, calls: Vec<(usize, crate::OpenCallInfo)>) -> Profile {
        let mut ranks = ranks(number);
        for (rank, call) in calls {
            ranks[rank].open_calls.push(call);
        }
        sample::profile(ranks)
    }

    fn rooted(function: &'static str, root: u32) -> crate::OpenCallInfo {
        open(function, CallArguments { root: Some(peer(root)), ..over_world() })
    }

    fn told(profile: &Profile) -> Vec<Cause> {
        causes(profile, &waiting(profile))
    }

    #[test]
    fn whoever_waits_for_a_circle_is_told_with_it() {
        let barrier = || open("MPI_Barrier", over_world());
        let profile = job(4, vec![(0, barrier()), (1, receive(0, 1)), (2, barrier()), (3, receive(2, 1))]);
        let circle = Cause::Circle { ranks: vec![0, 1], others: vec![2, 3] };
        assert_eq!(told(&profile).first(), Some(&circle));
    }

    #[test]
    fn who_waits_for_nobody_is_what_the_others_wait_for() {
        let barrier = || open("MPI_Barrier", over_world());
        let profile = job(3, vec![(0, barrier()), (1, receive(0, 1))]);
        let circle = Cause::Circle { ranks: vec![0, 1], others: Vec::new() };
        assert_eq!(told(&profile), [circle, Cause::WaitedFor { rank: 2, others: vec![0, 1] }]);
        let waits = job(3, vec![(0, receive(1, 1)), (1, receive(2, 1))]);
        assert_eq!(told(&waits), [Cause::WaitedFor { rank: 2, others: vec![0, 1] }]);
        assert!(told(&job(2, vec![(0, barrier()), (1, barrier())])).is_empty());
    }

    #[test]
    fn who_asks_again_and_again_is_not_to_blame() {
        let mut profile = job(3, vec![(2, open("MPI_Barrier", over_world()))]);
        let waited_for = |rank| Cause::WaitedFor { rank, others: vec![2] };
        assert_eq!(told(&profile), [waited_for(0), waited_for(1)]);
        profile.ranks[0].asks = Some("MPI_Test");
        assert_eq!(told(&profile), [waited_for(1)]);
    }

    #[test]
    fn in_finalize_a_rank_waits_for_all_others() {
        let finalize = || open("MPI_Finalize", CallArguments::default());
        let profile = job(3, vec![(0, finalize()), (1, receive(0, 1)), (2, finalize())]);
        assert_eq!(told(&profile), [Cause::Circle { ranks: vec![0, 1], others: vec![2] }]);
    }

    #[test]
    fn it_makes_no_difference_for_which_of_those_one_waits_that_all_wait_for_it() {
        // One of them may have given its part and gone on.
        let profile = job(3, vec![(0, rooted("MPI_Reduce", 0)), (1, receive(0, 1)), (2, receive(0, 2))]);
        assert_eq!(waiting(&profile).waits[0].certainty, Certainty::OneOf);
        assert_eq!(told(&profile), [Cause::Knot { ranks: vec![0, 1, 2], others: Vec::new() }]);
        // Rank 2 computes, and may be the one.
        let profile = job(3, vec![(0, rooted("MPI_Reduce", 0)), (1, receive(0, 1))]);
        assert_eq!(told(&profile), [Cause::WaitedFor { rank: 0, others: vec![1] }]);
        // The only one that is not there.
        let profile = job(3, vec![(0, rooted("MPI_Bcast", 0)), (1, rooted("MPI_Bcast", 0)), (2, receive(0, 2))]);
        assert_eq!(told(&profile), [Cause::Circle { ranks: vec![0, 2], others: vec![1] }]);
    }

    #[test]
    fn the_one_that_is_missing_may_be_one_that_nobody_observes() {
        let mut profile = job(3, vec![(0, rooted("MPI_Reduce", 0)), (1, receive(0, 1))]);
        profile.ranks.truncate(2);
        assert_eq!(told(&profile), [Cause::WaitedFor { rank: 0, others: vec![1] }]);
    }

    #[test]
    fn one_that_sends_and_receives_may_be_done_with_one_of_them() {
        let exchange = |to, from| {
            let arguments = CallArguments { destination: Some(peer(to)), source: Some(peer(from)), ..over_world() };
            open("MPI_Sendrecv", CallArguments { send_tag: Some(1), receive_tag: Some(1), ..arguments })
        };
        let profile = job(3, vec![(0, exchange(1, 2)), (1, receive(0, 7))]);
        assert_eq!(waiting(&profile).waits[0].certainty, Certainty::OneOf);
        assert_eq!(told(&profile), [Cause::WaitedFor { rank: 0, others: vec![1] }]);
        let profile = job(2, vec![(0, exchange(1, 1)), (1, receive(0, 7))]);
        assert_eq!(told(&profile), [Cause::Circle { ranks: vec![0, 1], others: Vec::new() }]);
    }

    #[test]
    fn different_roots_are_told_only_if_everybody_is_there() {
        let all = vec![(0, rooted("MPI_Bcast", 0)), (1, rooted("MPI_Bcast", 1)), (2, rooted("MPI_Bcast", 0))];
        assert_eq!(told(&job(3, all.clone())), [Cause::Roots { ranks: vec![0, 1, 2] }]);
        let told = told(&job(4, all));
        assert!(!told.iter().any(|cause| matches!(cause, Cause::Roots { .. })), "{told:?}");
    }
}
