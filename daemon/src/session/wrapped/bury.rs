//! The threads of a process that has ended: their counts go to the process, as the kernel's programs do it at each thread's end.

use crate::{
    analyse::EndedCall,
    observe::{ArgumentWords, ProcessSnapshot},
};

/// Folds all threads into their process, whose end is given (ns), and gives the calls that were cut short by it.
pub(super) fn bury(snapshot: &mut ProcessSnapshot, until_ns: u64) -> Vec<EndedCall> {
    let counters = &mut snapshot.counters;
    let mut ended_in = Vec::new();
    for thread in snapshot.threads.drain(..) {
        let state = &thread.state;
        if state.first_entry_ns != 0 {
            counters.ended_threads_span_ns += until_ns.saturating_sub(state.first_entry_ns);
        }
        counters.ended_threads += 1;
        counters.ended_threads_calls += state.calls;
        counters.ended_threads_time_ns += state.time_ns;
        counters.inner_calls += state.inner_calls;
        if let Some(function) = state.open_function() {
            let open_ns = until_ns.saturating_sub(state.open.started_ns);
            counters.open_at_end += 1;
            counters.open_at_end_ns += open_ns;
            let arguments = ArgumentWords::of(state);
            ended_in.push(EndedCall { tid: thread.tid, function, open_ns, call_site: state.call_site(), arguments });
        }
    }
    ended_in
}
