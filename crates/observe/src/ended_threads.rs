//! Threads that have ended, against those that were alive when they were looked at.

use std::collections::HashSet;

use mpiprobe_common::EndedThread;

use super::ThreadSnapshot;

/// In the order of their ends.
pub fn by_end(mut ended: Vec<EndedThread>) -> Vec<EndedThread> {
    ended.sort_by_key(|thread| (thread.ended_ns, thread.tid));
    ended
}

/// Those that are still alive. One that has ended between two looks was seen alive first and is remembered afterwards, and must not
/// count twice. Another thread may have got its id, but not the time of its first call.
pub fn alive(mut threads: Vec<ThreadSnapshot>, ended: &[EndedThread]) -> Vec<ThreadSnapshot> {
    let gone: HashSet<(u32, u64)> = ended.iter().map(|thread| (thread.tid, thread.first_entry_ns)).collect();
    threads.retain(|thread| !gone.contains(&(thread.tid, thread.state.first_entry_ns)));
    threads
}

#[cfg(test)]
mod tests {
    use mpiprobe_common::ThreadState;

    use super::*;

    fn thread(tid: u32, first_entry_ns: u64) -> ThreadSnapshot {
        ThreadSnapshot { tid, slot: 0, state: ThreadState { first_entry_ns, ..ThreadState::ZERO } }
    }

    #[test]
    fn a_thread_that_ends_meanwhile_counts_once_and_one_with_its_id_is_another() {
        let ended = [EndedThread { tid: 7, first_entry_ns: 100, ended_ns: 200, ..EndedThread::default() }];
        let left = alive(vec![thread(7, 100), thread(7, 300), thread(8, 100)], &ended);
        let left: Vec<_> = left.iter().map(|thread| (thread.tid, thread.state.first_entry_ns)).collect();
        assert_eq!(left, [(7, 300), (8, 100)]);
    }
}
