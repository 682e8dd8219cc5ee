//! The threads of a process that has ended: their counts go to the process, as the kernel's programs do it at each thread's end.

use mpiprobe_common::EndedThread;
use mpiprobe_model::analyse::EndedCall;
use mpiprobe_observe::{ArgumentWords, ProcessSnapshot};

/// Folds all threads into their process, whose end is given (ns), and gives the calls that were cut short by it.
pub(super) fn fold_threads(snapshot: &mut ProcessSnapshot, until_ns: u64) -> Vec<EndedCall> {
    let counters = &mut snapshot.counters;
    let mut ended_in = Vec::new();
    for thread in snapshot.threads.drain(..) {
        let state = &thread.state;
        let ended = EndedThread::of(state, until_ns);
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut counters.ended_threads, 1);
        add(&mut counters.ended_threads_span_ns, ended.span_ns());
        add(&mut counters.ended_threads_calls, ended.calls);
        add(&mut counters.ended_threads_time_ns, ended.time_ns);
        add(&mut counters.inner_calls, state.inner_calls);
        if let Some(function) = state.open_function() {
            let open_ns = ended.open_ns;
            add(&mut counters.open_at_end, 1);
            add(&mut counters.open_at_end_ns, open_ns);
            ended_in.push(EndedCall {
                tid: thread.tid,
                function,
                ended_ns: until_ns,
                open_ns,
                call_site: state.call_site(),
                arguments: ArgumentWords::of(state),
            });
        }
        snapshot.ended_threads.push(ended);
    }
    ended_in
}

#[cfg(test)]
mod tests {
    use mpiprobe_common::{ProcessCounters, ThreadState, thread::OpenCall};

    use super::*;
    use mpiprobe_observe::ThreadSnapshot;

    #[test]
    fn threads_that_the_end_of_their_process_ended_are_remembered_and_in_its_sums() {
        let open = OpenCall { function_plus_1: 4, started_ns: 150, ..OpenCall::default() };
        let state = |tid, open| ThreadState {
            id: tid,
            calls: tid,
            time_ns: 10,
            first_entry_ns: 100,
            open,
            ..ThreadState::ZERO
        };
        let threads = [(7, OpenCall::default()), (8, open)];
        let threads = threads.map(|(tid, open)| ThreadSnapshot { tid, slot: 0, state: state(tid.into(), open) });
        let earlier =
            EndedThread { ended_ns: 120, tid: 9, calls: 1, time_ns: 5, first_entry_ns: 100, ..EndedThread::default() };
        let mut snapshot = ProcessSnapshot {
            counters: ProcessCounters {
                ended_threads: 1,
                ended_threads_calls: 1,
                ended_threads_time_ns: 5,
                ended_threads_span_ns: 20,
                ..ProcessCounters::ZERO
            },
            threads: threads.into(),
            ended_threads: vec![earlier],
            ..ProcessSnapshot::empty(1)
        };
        let ended_in = fold_threads(&mut snapshot, 200);
        let cut_short: Vec<_> = ended_in.iter().map(|call| (call.tid, call.function, call.open_ns)).collect();
        assert_eq!(cut_short, [(8, 3, 50)]);
        assert!(snapshot.threads.is_empty());
        let ended: Vec<_> =
            snapshot.ended_threads.iter().map(|thread| (thread.tid, thread.ended_ns, thread.open_ns)).collect();
        assert_eq!(ended, [(9, 120, 0), (7, 200, 0), (8, 200, 50)]);
        let counters = &snapshot.counters;
        assert_eq!((counters.ended_threads, counters.ended_threads_calls, counters.ended_threads_time_ns), (3, 16, 25));
        assert_eq!((counters.ended_threads_span_ns, counters.open_at_end, counters.open_at_end_ns), (220, 1, 50));
    }
}
