//! What the one thread of a rank does now.

use mpiprobe_common::{
    ThreadState,
    thread::{ARGUMENT_WORDS, OpenCall},
};
use mpiprobe_observe::ThreadSnapshot;

use super::{CONSTANTS, ROW, SECOND, Synthetic};

/// A call and its arguments.
pub(super) type Call = (&'static str, [u64; ARGUMENT_WORDS]);

/// When some ranks stop getting on, s.
const STUCK_SINCE: u64 = 18;

/// Whether a rank waits for one that waits for it: the first three of a hundred, round in circles.
fn is_stuck(job: &Synthetic, rank: u32) -> bool {
    job.trouble && rank % 97 < 3
}

/// How many of so many seconds a rank gets on.
pub(super) fn lively_seconds(job: &Synthetic, rank: u32, seconds: u64) -> u64 {
    if is_stuck(job, rank) { seconds.min(STUCK_SINCE) } else { seconds }
}

pub(super) fn of(job: &Synthetic, rank: u32, now_ns: u64, calls: u64, time_ns: u64) -> ThreadSnapshot {
    let tid = 4000 + rank;
    let mut state = ThreadState {
        id: u64::from(tid) << 32 | u64::from(tid),
        process: rank + 1,
        calls,
        time_ns,
        first_entry_ns: SECOND + 1_000_000,
        return_address: 0x40_1000 + u64::from(rank % 3),
        ..ThreadState::ZERO
    };
    if let Some(((name, arguments), open_ns)) = open(job, rank, now_ns)
        && let Some(function) = mpiprobe_functions::by_name(name)
    {
        state.open = OpenCall {
            function_plus_1: u32::from(function.number()) + 1,
            started_ns: now_ns.saturating_sub(open_ns),
            ..OpenCall::default()
        };
        state.arguments = arguments;
    }
    ThreadSnapshot { tid, slot: rank as usize, state }
}

/// The call that a rank is in, and since when, ns.
fn open(job: &Synthetic, rank: u32, now_ns: u64) -> Option<(Call, u64)> {
    let (left, right) = ((rank + job.ranks - 1) % job.ranks, (rank + 1) % job.ranks);
    if is_stuck(job, rank) {
        let first = rank - rank % 97;
        let next = if rank % 97 == 2 { first } else { rank + 1 };
        let open_ns = now_ns.saturating_sub((STUCK_SINCE + 1) * SECOND);
        return Some((receive(next, CONSTANTS.comm_world), open_ns));
    }
    match rank % 5 {
        0 => None,
        1 => Some((receive(left % job.row(), ROW), 40_000)),
        2 => Some((("MPI_Allreduce", words(&[0x1000, 0x2000, 4, 0x4c00_0405, 0, CONSTANTS.comm_world])), 75_000)),
        3 => Some((("MPI_Waitall", words(&[2, 0x3000, 1])), 130_000)),
        _ => Some((("MPI_Send", words(&[0x1000, 128, 0x4c00_080b, u64::from(right), 7, CONSTANTS.comm_world])), 9000)),
    }
}

pub(super) fn receive(from: u32, communicator: u64) -> Call {
    ("MPI_Recv", words(&[0x1000, 128, 0x4c00_080b, u64::from(from), 7, communicator, 1]))
}

pub(super) fn words(given: &[u64]) -> [u64; ARGUMENT_WORDS] {
    let mut words = [0; ARGUMENT_WORDS];
    for (to, from) in words.iter_mut().zip(given) {
        *to = *from;
    }
    words
}
