//! Calls that had begun when a process's observation did: no probe saw them begin, so they are known from looks at stacks.

use mpiprobe_common::{EndedThread, ThreadState, thread::OpenCall};

use crate::{
    call_before::{After, BeganBefore, CallBefore},
    snapshot::{ProcessSnapshot, ThreadSnapshot},
};

impl ProcessSnapshot {
    /// Takes in what looks at stacks have found: a thread's time in MPI, and its life, are from the beginning of the observation on.
    pub fn add_began_before(&mut self, found: BeganBefore) {
        for call in &found.calls {
            match call.now {
                After::Open | After::Returned(_) => self.add_to_living(call),
                After::ThreadEnded(until_ns) => self.add_to_ended(call, until_ns),
            }
        }
        self.began_before = Some(found);
    }

    /// The call of a thread that had begun before, if the thread is still in it.
    pub fn open_before(&self, tid: u32) -> Option<&CallBefore> {
        let calls = &self.began_before.as_ref()?.calls;
        calls.iter().find(|call| call.tid == tid && call.now == After::Open)
    }

    fn add_to_living(&mut self, call: &CallBefore) {
        let at = self.threads.partition_point(|thread| thread.tid < call.tid);
        if self.threads.get(at).is_none_or(|thread| thread.tid != call.tid) {
            let state = ThreadState { id: call.tid.into(), process: self.process, ..ThreadState::ZERO };
            self.threads.insert(at, ThreadSnapshot { tid: call.tid, slot: usize::MAX, state });
        }
        let Some(thread) = self.threads.get_mut(at) else { return };
        let state = &mut thread.state;
        state.first_entry_ns = call.since_ns;
        if call.now == After::Open {
            state.open =
                OpenCall { function_plus_1: call.function + 1, started_ns: call.since_ns, ..OpenCall::default() };
            (state.return_address, state.located_address) = (call.call_site.unwrap_or(0), 0);
        } else {
            state.time_ns = state.time_ns.saturating_add(call.time_ns(0));
        }
    }

    /// Sums and record, which may be one that is not there yet.
    fn add_to_ended(&mut self, call: &CallBefore, until_ns: u64) {
        let (time_ns, counters) = (call.time_ns(0), &mut self.counters);
        counters.ended_threads_time_ns = counters.ended_threads_time_ns.saturating_add(time_ns);
        let known = self.ended_threads.iter_mut().find(|thread| thread.tid == call.tid);
        let (record, before_ns) = if let Some(known) = known {
            let before_ns = known.span_ns();
            (known, before_ns)
        } else {
            counters.ended_threads = counters.ended_threads.saturating_add(1);
            self.ended_threads.push(EndedThread { ended_ns: until_ns, tid: call.tid, ..EndedThread::default() });
            let Some(made) = self.ended_threads.last_mut() else { return };
            (made, 0)
        };
        record.time_ns = record.time_ns.saturating_add(time_ns);
        record.first_entry_ns = call.since_ns;
        let more_ns = record.span_ns().saturating_sub(before_ns);
        counters.ended_threads_span_ns = counters.ended_threads_span_ns.saturating_add(more_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tid: u32, now: After) -> CallBefore {
        CallBefore { tid, function: 3, call_site: Some(0x40), words: Vec::new(), since_ns: 100, now }
    }

    fn with(calls: Vec<CallBefore>, mut process: ProcessSnapshot) -> ProcessSnapshot {
        process.add_began_before(BeganBefore { calls, unknown: Vec::new() });
        process
    }

    #[test]
    fn a_call_that_is_open_is_open_since_the_beginning() {
        let process = with(vec![call(7, After::Open)], ProcessSnapshot::empty(1));
        let [thread] = process.threads.as_slice() else { panic!("{:?}", process.threads) };
        assert_eq!((thread.tid, thread.state.open_function(), thread.open_ns(400)), (7, Some(3), 300));
        assert_eq!((thread.state.call_site(), process.thread_span_ns(400)), (Some(0x40), 300));
        assert!(process.open_before(7).is_some() && process.open_before(8).is_none());
    }

    #[test]
    fn time_in_a_call_that_has_returned_is_the_threads() {
        let state = ThreadState { id: 7, calls: 1, time_ns: 5, first_entry_ns: 300, ..ThreadState::ZERO };
        let known = ThreadSnapshot { tid: 7, slot: 0, state };
        let process = ProcessSnapshot { threads: vec![known], ..ProcessSnapshot::empty(1) };
        let process = with(vec![call(7, After::Returned(180))], process);
        let [thread] = process.threads.as_slice() else { panic!("{:?}", process.threads) };
        assert_eq!((thread.state.time_ns, thread.state.calls, thread.open_ns(400)), (85, 1, 0));
        assert_eq!(process.thread_span_ns(400), 300);
    }

    #[test]
    fn a_thread_that_has_ended_is_in_the_sums_whether_it_was_known_or_not() {
        let known =
            EndedThread { ended_ns: 400, tid: 7, calls: 2, time_ns: 10, first_entry_ns: 350, ..EndedThread::default() };
        let mut process = ProcessSnapshot { ended_threads: vec![known], ..ProcessSnapshot::empty(1) };
        process.counters.ended_threads = 1;
        process.counters.ended_threads_time_ns = 10;
        process.counters.ended_threads_span_ns = 50;
        let process = with(vec![call(7, After::ThreadEnded(200)), call(8, After::ThreadEnded(150))], process);
        let of = |thread: &EndedThread| (thread.tid, thread.time_ns, thread.span_ns());
        assert_eq!(process.ended_threads.iter().map(of).collect::<Vec<_>>(), [(7, 110, 300), (8, 50, 50)]);
        let counters = process.counters;
        assert_eq!(
            (counters.ended_threads, counters.ended_threads_time_ns, counters.ended_threads_span_ns),
            (2, 160, 350)
        );
    }
}
