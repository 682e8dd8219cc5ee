//! Ends without the other one, for whoever writes down what has both.

use mpiprobe_trace::{LocationId, ReadError, Span, Trace};

use crate::{
    clock::Clocks,
    matching::{CallAt, End, Ends, Matched, Matcher},
    slices::{Slice, Slices},
};

/// Which calls of a span have posted something whose other end is not in it: by location, the numbers of the calls, in their order.
#[derive(Debug, Default)]
pub struct LooseEnds {
    sends: Vec<Vec<u64>>,
    receives: Vec<Vec<u64>>,
    collective: Vec<Vec<u64>>,
}

impl LooseEnds {
    /// Replays a trace up to the end of a span. Only those calls are in the span that are whole in it. `look` is shown every slice.
    pub fn find(
        trace: &dyn Trace,
        clocks: &Clocks,
        span: Span,
        threads: usize,
        mut look: impl FnMut(&Slice),
    ) -> Result<Self, ReadError> {
        let definitions = trace.definitions();
        let mut found = Self::default();
        for lists in [&mut found.sends, &mut found.receives, &mut found.collective] {
            lists.resize_with(definitions.locations.len(), Vec::new);
        }
        let until = Span { from_ns: 0, until_ns: span.until_ns };
        let mut slices = Slices::new(trace, clocks, definitions.location_ids(), until, threads);
        let mut matcher = Matcher::new(definitions, clocks, false, threads);
        matcher.keep_loose();
        let is_all = span == Span::ALL && clocks.not_compared() == 0;
        let can_compare =
            |one: &CallAt, other: &CallAt| clocks.between_ns(definitions, one.location, other.location).is_some();
        while let Some(slice) = slices.next_slice()? {
            let met = matcher.take(&slice);
            if !is_all {
                found.cut(&met, span, &can_compare);
            }
            look(&slice);
        }
        let met = matcher.finish();
        if !is_all {
            found.cut(&met, span, &can_compare);
        }
        matcher.loose(|ends, location, number| found.add(ends, location, number));
        for list in [&mut found.sends, &mut found.receives, &mut found.collective].into_iter().flatten() {
            list.sort_unstable();
            list.dedup();
        }
        Ok(found)
    }

    fn add(&mut self, ends: Ends, location: LocationId, number: u64) {
        let lists = match ends {
            Ends::Sends => &mut self.sends,
            Ends::Receives => &mut self.receives,
            Ends::Collective => &mut self.collective,
        };
        if let Some(list) = lists.get_mut(location.index()) {
            list.push(number);
        }
    }

    /// Finds those that a span cuts, and those between clocks that nothing compares.
    fn cut(&mut self, matched: &Matched<'_>, span: Span, can_compare: &dyn Fn(&CallAt, &CallAt) -> bool) {
        let is_in = |call: &CallAt| call.entry_ns >= span.from_ns && call.return_ns <= span.until_ns;
        for done in matched.done() {
            if let End::Received { send, posted } = &done.end
                && !(is_in(send) && is_in(posted) && is_in(&done.call) && can_compare(send, &done.call))
            {
                self.add(Ends::Sends, send.location, send.number);
                self.add(Ends::Receives, posted.location, posted.number);
            }
        }
        for instance in matched.instances {
            if instance.within_ns.is_none() || !instance.members.iter().all(|member| is_in(&member.call)) {
                for member in &instance.members {
                    self.add(Ends::Collective, member.call.location, member.call.number);
                }
            }
        }
    }

    pub fn is_loose_send(&self, location: LocationId, number: u64) -> bool {
        has(&self.sends, location, number)
    }

    /// By the call that has posted it.
    pub fn is_loose_receive(&self, location: LocationId, number: u64) -> bool {
        has(&self.receives, location, number)
    }

    pub fn is_loose_collective(&self, location: LocationId, number: u64) -> bool {
        has(&self.collective, location, number)
    }
}

fn has(lists: &[Vec<u64>], location: LocationId, number: u64) -> bool {
    lists.get(location.index()).is_some_and(|list| list.binary_search(&number).is_ok())
}
