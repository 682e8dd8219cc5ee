//! Waiting for other threads of the same process: for a lock, for a thread's end, or for whatever they may say.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    copy::{State, SystemCall, ThreadCopy},
    memory::Memory,
    tree::Label,
};

/// What a thread waits for that only its own process can bring about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum WaitsWithin {
    /// A mutex; the thread that has it.
    Lock { thread: u32 },
    /// That a thread ends.
    End { thread: u32 },
    /// A condition, a barrier of OpenMP, or a lock of which nobody knows who has it.
    Threads,
}

impl WaitsWithin {
    /// The thread that it waits for.
    pub const fn thread(self) -> Option<u32> {
        match self {
            Self::Lock { thread } | Self::End { thread } => Some(thread),
            Self::Threads => None,
        }
    }
}

const FUTEX: u64 = 202;
/// include/uapi/linux/futex.h
const PRIVATE: u64 = 128;
const COMMAND: u64 = 127;
const WAIT: u64 = 0;
const LOCK_PI: u64 = 6;
const WAIT_BITSET: u64 = 9;
const LOCK_PI_2: u64 = 13;
/// A mutex of the C library that somebody waits for has this value, and its owner two words behind (struct __pthread_mutex_s).
const CONTENDED: u64 = 2;
const OWNER: u64 = 8;

/// Functions in which OpenMP's threads wait for each other, whether they sleep or look again and again.
const OF_OPENMP: [&str; 8] = [
    "GOMP_barrier",
    "GOMP_barrier_cancel",
    "GOMP_critical_start",
    "GOMP_critical_name_start",
    "GOMP_loop_end",
    "GOMP_sections_end",
    "__kmpc_barrier",
    "__kmpc_critical",
];

/// What a thread outside of MPI waits for in its own process; `None`: nothing, or something from outside may let it go on.
/// `threads`: those of its process.
pub(crate) fn waits_within(
    copy: &ThreadCopy,
    threads: &BTreeSet<u32>,
    frames: &[Label],
    memory: &mut Memory<'_>,
) -> Option<WaitsWithin> {
    let sleeps = copy.state == State::Sleeping;
    let by_futex = copy.system_call.filter(|call| sleeps && call.number == FUTEX);
    let found = by_futex.and_then(|call| of_futex(call, (copy.tid, threads), memory));
    let in_openmp = || frames.iter().any(|frame| OF_OPENMP.contains(&frame.function.as_str()));
    found.or_else(|| in_openmp().then_some(WaitsWithin::Threads))
}

fn of_futex(call: SystemCall, (own, threads): (u32, &BTreeSet<u32>), memory: &mut Memory<'_>) -> Option<WaitsWithin> {
    let [address, operation, expected, timeout, ..] = call.arguments;
    let waits = matches!(operation & COMMAND, WAIT | WAIT_BITSET | LOCK_PI | LOCK_PI_2);
    if !waits || timeout != 0 {
        return None;
    }
    let low = |word: u64| word & 0xffff_ffff;
    let thread = |word: u64| {
        let thread = u32::try_from(low(word)).ok()?;
        (thread != own && threads.contains(&thread)).then_some(thread)
    };
    let aligned = |address: u64, memory: &mut Memory<'_>| {
        let word = memory.word(address & !7)?;
        Some(if address & 4 == 0 { low(word) } else { word >> 32 })
    };
    let value = aligned(address, memory);
    // The kernel itself wakes whoever waits for the end of a thread, where its id stands as long as it lives.
    if let (Some(value), Some(thread)) = (value, thread(expected))
        && value == low(expected)
        && operation & PRIVATE == 0
    {
        return Some(WaitsWithin::End { thread });
    }
    if operation & PRIVATE == 0 {
        return None;
    }
    let owner = address.checked_add(OWNER).and_then(|at| aligned(at, memory)).and_then(thread);
    match owner {
        Some(thread) if value == Some(CONTENDED) && low(expected) == CONTENDED => Some(WaitsWithin::Lock { thread }),
        _ => Some(WaitsWithin::Threads),
    }
}
