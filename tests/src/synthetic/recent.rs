//! The last calls of a rank.

use std::collections::HashMap;

use mpiprobe_common::{
    Layout, RecentCall,
    recent::RECENT_ARGUMENTS,
    thread::{ARGUMENT_WORDS, REGISTER_ARGUMENTS},
};
use mpiprobe_observe::RecentSnapshot;

use super::{
    CONSTANTS, ROW, Synthetic,
    threads::{Call, receive, words},
};

/// Calls of one round.
const ROUND: u64 = 6;
const ROUNDS: u64 = 6;
/// From one round to the next, ns.
const PERIOD_NS: u64 = 120_000_000;
/// So many calls were overwritten before the last three rounds.
const MISSED: u64 = 17;
/// `MPI_ERR_TRUNCATE`, of the last receive of ranks that have trouble.
const TRUNCATED: u64 = 14;

pub(super) fn of(job: &Synthetic, rank: u32, now_ns: u64, layout: &Layout) -> RecentSnapshot {
    let calls = (0..ROUNDS * ROUND).map(|place| call(job, rank, place, now_ns)).collect();
    RecentSnapshot { calls, layout: *layout, names: HashMap::new(), why_not: None }
}

fn call(job: &Synthetic, rank: u32, place: u64, now_ns: u64) -> RecentCall {
    let (round, step) = (place / ROUND, place % ROUND);
    let is_late = round >= ROUNDS / 2;
    let (name, given) = step_of(job, rank, step);
    let function = mpiprobe_functions::by_name(name).map_or(0, |id| u32::from(id.number()));
    let number = place + if is_late { MISSED } else { 0 };
    let failed = job.trouble && rank % 5 == 1 && round + 1 == ROUNDS && step == 1;
    let mut arguments = [0; RECENT_ARGUMENTS];
    for (to, from) in arguments.iter_mut().zip(given) {
        *to = from;
    }
    RecentCall {
        state: number + 1,
        function,
        tid: 4000 + rank,
        started_ns: now_ns.saturating_sub((ROUNDS - round) * PERIOD_NS) + step * 2_000_000,
        ns: 1200 + 31_000 * step + u64::from(rank % 7) * 450,
        call_site: 0x40_1000 + u64::from(function),
        result: if failed { TRUNCATED } else { 0 },
        // The first one began before somebody looked.
        known: if place == 0 { REGISTER_ARGUMENTS as u64 } else { RECENT_ARGUMENTS as u64 },
        arguments,
    }
}

/// What is called one after the other.
fn step_of(job: &Synthetic, rank: u32, step: u64) -> Call {
    let (left, right) = ((rank + job.ranks - 1) % job.ranks, u64::from((rank + 1) % job.ranks));
    // Negative numbers, as they are in registers.
    let (any_source, any_tag) =
        (u64::from(CONSTANTS.any_source.cast_unsigned()), u64::from(CONSTANTS.any_tag.cast_unsigned()));
    let none = words(&[]);
    match step {
        0 => ("MPI_Irecv", words(&[0x7ffd_1000, 128, 0x4c00_080b, any_source, any_tag, ROW, 0x7ffd_3000])),
        1 => receive(left, CONSTANTS.comm_world),
        2 => ("MPI_Isend", words(&[0x7ffd_2000, 128, 0x4c00_080b, right, 7, ROW, 0x7ffd_3004])),
        3 => ("MPI_Waitall", words(&[2, 0x7ffd_3000, CONSTANTS.statuses_ignore])),
        4 => (
            "MPI_Allreduce",
            words(&[CONSTANTS.in_place, 0x7ffd_4000, 2, 0x4c00_0405, 0x5800_0003, CONSTANTS.comm_world]),
        ),
        _ => ("MPI_Wtime", none),
    }
}

const _: () = assert!(RECENT_ARGUMENTS <= ARGUMENT_WORDS);
