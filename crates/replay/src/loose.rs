//! Ends without the other one, for whoever writes down what has both.

use mpiprobe_trace::{LocationId, Part, ReadError, Span, Trace};

use crate::{
    clock::Clocks,
    matching::{CallAt, End, Ends, Matched, Matcher, pairs},
    slices::Slices,
};

/// A span of some threads.
type Chosen<'a> = (Span, &'a dyn Fn(LocationId) -> bool);

/// What calls of a span have posted whose other end is not in it: by location, numbers of calls and, of all that each has begun, which, as in
/// [`CallAt::nth`], in their order.
#[derive(Debug, Default)]
pub struct LooseEnds {
    sends: Vec<Vec<(u64, u16)>>,
    receives: Vec<Vec<(u64, u16)>>,
    collective: Vec<Vec<(u64, u16)>>,
}

impl LooseEnds {
    /// Replays a trace up to the end of a span, unless all in it has its other end. Only those calls are in the span that are whole in it, of
    /// those threads that are chosen with it. `look` is shown all parts up to there, each once.
    pub fn find(
        trace: &dyn Trace,
        clocks: &Clocks,
        chosen: Chosen<'_>,
        threads: usize,
        look: &(dyn Fn(&Part) + Sync),
    ) -> Result<Self, ReadError> {
        let definitions = trace.definitions();
        let is_all = Self::is_all(trace, clocks, chosen);
        // Most traces are whole, or known not to be.
        let may_be_whole = is_all && definitions.processes.iter().all(|process| !process.began_before);
        if may_be_whole && pairs::are_all(trace, clocks, threads, look)? {
            return Ok(Self::default());
        }
        // It has been shown all of it.
        if may_be_whole {
            Self::replay(trace, clocks, chosen, threads, &|_| {})
        } else {
            Self::replay(trace, clocks, chosen, threads, look)
        }
    }

    fn is_all(trace: &dyn Trace, clocks: &Clocks, (span, has): Chosen<'_>) -> bool {
        span == Span::ALL && clocks.not_compared() == 0 && trace.definitions().location_ids().all(has)
    }

    /// Brings ends together one by one.
    fn replay(
        trace: &dyn Trace,
        clocks: &Clocks,
        chosen: Chosen<'_>,
        threads: usize,
        look: &dyn Fn(&Part),
    ) -> Result<Self, ReadError> {
        let definitions = trace.definitions();
        let is_all = Self::is_all(trace, clocks, chosen);
        let (span, _) = chosen;
        let mut found = Self::default();
        for lists in [&mut found.sends, &mut found.receives, &mut found.collective] {
            lists.resize_with(definitions.locations.len(), Vec::new);
        }
        let until = Span { from_ns: 0, until_ns: span.until_ns };
        let mut slices = Slices::new(trace, clocks, definitions.location_ids(), until, threads);
        let mut matcher = Matcher::new(definitions, clocks, false, threads);
        matcher.keep_loose(!is_all);
        let can_compare =
            |one: &CallAt, other: &CallAt| clocks.between_ns(definitions, one.location, other.location).is_some();
        while let Some(slice) = slices.next_slice()? {
            let met = matcher.take(&slice);
            if !is_all {
                found.cut(&met, chosen, &can_compare);
            }
            slice.locations.iter().flat_map(|location| &location.parts).for_each(look);
        }
        let met = matcher.finish();
        if !is_all {
            found.cut(&met, chosen, &can_compare);
        }
        matcher.loose(|ends, location, number, nth| found.add(ends, location, (number, nth)));
        for list in [&mut found.sends, &mut found.receives, &mut found.collective].into_iter().flatten() {
            list.sort_unstable();
            list.dedup();
        }
        Ok(found)
    }

    fn add(&mut self, ends: Ends, location: LocationId, operation: (u64, u16)) {
        let lists = match ends {
            Ends::Sends => &mut self.sends,
            Ends::Receives => &mut self.receives,
            Ends::Collective => &mut self.collective,
        };
        if let Some(list) = lists.get_mut(location.index()) {
            list.push(operation);
        }
    }

    /// Finds those that are not wholly chosen, and those between clocks that nothing compares.
    fn cut(&mut self, matched: &Matched<'_>, (span, has): Chosen<'_>, can_compare: &dyn Fn(&CallAt, &CallAt) -> bool) {
        let is_in =
            |call: &CallAt| call.entry_ns >= span.from_ns && call.return_ns <= span.until_ns && has(call.location);
        for done in matched.done() {
            if let End::Received { send, posted } = &done.end
                && !(is_in(send) && is_in(posted) && is_in(&done.call) && can_compare(send, &done.call))
            {
                self.add(Ends::Sends, send.location, (send.number, send.nth));
                self.add(Ends::Receives, posted.location, (posted.number, posted.nth));
            }
        }
        for instance in matched.instances {
            if instance.within_ns.is_none() || !instance.members.iter().all(|member| is_in(&member.call)) {
                for member in &instance.members {
                    let call = &member.call;
                    self.add(Ends::Collective, call.location, (call.number, call.nth));
                }
            }
        }
    }

    pub fn is_loose_send(&self, location: LocationId, number: u64, nth: u16) -> bool {
        has(&self.sends, location, (number, nth))
    }

    /// By the call that has posted it; of a matched message, the one that has matched it.
    pub fn is_loose_receive(&self, location: LocationId, number: u64, nth: u16) -> bool {
        has(&self.receives, location, (number, nth))
    }

    pub fn is_loose_collective(&self, location: LocationId, number: u64, nth: u16) -> bool {
        has(&self.collective, location, (number, nth))
    }
}

fn has(lists: &[Vec<(u64, u16)>], location: LocationId, operation: (u64, u16)) -> bool {
    lists.get(location.index()).is_some_and(|list| list.binary_search(&operation).is_ok())
}

#[cfg(test)]
mod tests {
    use mpiprobe_trace::{HandMade, Numbers, call};
    use proptest::prelude::*;

    use super::*;

    /// Without some of its events.
    fn without(made: &HandMade, mut is_left_out: impl FnMut(LocationId, usize) -> bool) -> HandMade {
        let mut rest = HandMade::of_ranks(u32::try_from(made.definitions.processes.len()).unwrap());
        rest.definitions.clone_from(&made.definitions);
        for location in made.definitions.location_ids() {
            for (nth, event) in made.events(location, Span::ALL).enumerate() {
                if !is_left_out(location, nth) {
                    rest.push(location.0, event.unwrap());
                }
            }
        }
        rest
    }

    /// Whether all have their other ends by their numbers, and one by one.
    fn are_all(made: &HandMade) -> (bool, bool) {
        let clocks = Clocks::same();
        let by_number = pairs::are_all(made, &clocks, 2, &|_| {}).unwrap();
        let found = LooseEnds::replay(made, &clocks, (Span::ALL, &|_| true), 2, &|_| {}).unwrap();
        let lists = [&found.sends, &found.receives, &found.collective];
        (by_number, lists.into_iter().flatten().all(Vec::is_empty))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn numbers_tell_what_bringing_ends_together_tells(
            seed in any::<u64>(), ranks in 2u32..6, is_irregular: bool, left_out in 1u64..4,
        ) {
            let mut numbers = Numbers(seed | 1);
            let steps = 1 + numbers.below(20);
            let made = if is_irregular { HandMade::irregular(ranks, steps) } else { HandMade::halo(ranks, steps) };
            prop_assert_eq!(are_all(&made), (true, true));
            // Some calls are not there at all, nor are they known to be missing.
            let holes: Vec<(u64, u64)> =
                (0..left_out).map(|_| (numbers.below(ranks.into()), numbers.below(30))).collect();
            let (by_number, one_by_one) =
                are_all(&without(&made, |location, nth| holes.contains(&(location.0.into(), nth as u64))));
            prop_assert!(!by_number || one_by_one, "{holes:?}");
        }
    }

    #[test]
    fn whatever_is_not_plain_is_looked_at_one_by_one() {
        let made = |add: fn(&mut HandMade)| {
            let mut made = HandMade::of_ranks(2);
            add(&mut made);
            are_all(&made)
        };
        assert_eq!(made(ring_of), (true, true));
        assert_eq!(made(|made| made.add(0, call("MPI_Send", 10, 20).to(1, 7, 8))), (false, false));
        assert_eq!(made(|made| made.add(1, call("MPI_Barrier", 10, 20).over(HandMade::WORLD))), (false, false));
        // Another tag is another message.
        let other_tag = |made: &mut HandMade| {
            made.add(0, call("MPI_Send", 10, 20).to(1, 7, 8));
            made.add(1, call("MPI_Recv", 5, 21).from(0, 8, 8));
        };
        assert_eq!(made(other_tag), (false, false));
        // What is posted and never complete.
        let open = |made: &mut HandMade| {
            made.add(0, call("MPI_Send", 10, 20).to(1, 7, 8));
            made.add(1, call("MPI_Irecv", 5, 21).from(0, 7, 8).posts(1));
        };
        assert!(!made(open).0);
        // A receive that nobody has posted, and a send that is never complete.
        let crossed = |made: &mut HandMade| {
            made.add(0, call("MPI_Isend", 10, 20).to(1, 7, 8).posts(1));
            made.add(0, call("MPI_Wait", 30, 40).completes(&call("MPI_Irecv", 10, 20).from(1, 7, 8).posts(2)));
            made.add(1, call("MPI_Send", 10, 20).to(0, 7, 8));
            made.add(1, call("MPI_Recv", 30, 40).from(0, 7, 8));
        };
        assert!(!made(crossed).0);
        let late = |made: &mut HandMade| {
            ring_of(made);
            made.definitions.processes.iter_mut().for_each(|process| process.began_before = true);
        };
        assert!(!made(late).0);
        let lossy = |made: &mut HandMade| {
            ring_of(made);
            made.definitions.locations.iter_mut().for_each(|location| location.losses.lost = 1);
        };
        assert!(!made(lossy).0);
    }

    fn ring_of(made: &mut HandMade) {
        made.add(0, call("MPI_Send", 10, 20).to(1, 7, 8));
        made.add(1, call("MPI_Recv", 5, 21).from(0, 7, 8));
    }
}
