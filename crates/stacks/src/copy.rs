//! What a look at one thread has brought.

use mpiprobe_common::trampoline::is_return_trampoline;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::registers::Registers;

/// A part of a stack, copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stack {
    start: u64,
    bytes: Vec<u8>,
}

impl Stack {
    /// What was in memory from `start` on.
    pub fn new(start: u64, bytes: Vec<u8>) -> Self {
        Self { start, bytes }
    }

    /// The word at an address; `None` if it was not copied.
    pub fn word(&self, address: u64) -> Option<u64> {
        let from = usize::try_from(address.checked_sub(self.start)?).ok()?;
        self.bytes.get(from..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    fn set_word(&mut self, address: u64, word: u64) {
        let from = address.checked_sub(self.start).and_then(|from| usize::try_from(from).ok());
        if let Some(place) = from.and_then(|from| self.bytes.get_mut(from..)?.first_chunk_mut()) {
            *place = word.to_le_bytes();
        }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The first address that was not copied any more.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }
}

/// Return addresses that the kernel has replaced on a stack by that of its trampoline, for return probes of anybody: where each is, and
/// what belongs there, beginning with the probe that was armed last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Replaced(pub(crate) Vec<(u64, u64)>);

impl Replaced {
    /// A function that was entered by a jump from another one that is probed, too, has that one's frame: what belongs there is told by
    /// the one that was armed first.
    pub(crate) fn put_back(&self, stack: &mut Stack) {
        for (address, original) in &self.0 {
            if stack.word(*address).is_some_and(is_return_trampoline) {
                stack.set_word(*address, *original);
            }
        }
    }

    /// Keeps what another look at the same thread has found as well; gives what only one of them has.
    pub(crate) fn keep_common(&mut self, later: &Self) -> Self {
        let (common, others) = self.0.iter().copied().partition(|word| later.0.contains(word));
        self.0 = common;
        let new = later.0.iter().copied().filter(|word| !self.0.contains(word));
        Self(Vec::into_iter(others).chain(new).collect())
    }

    /// Whether one of these is in use at that moment: what belongs there is not known then.
    pub(crate) fn hide_a_return(&self, stack: &Stack, sp: u64) -> bool {
        let is_replaced = |address: u64| stack.word(address).is_some_and(is_return_trampoline);
        self.0.iter().any(|(address, _)| *address >= sp && is_replaced(*address))
    }
}

/// What tells whether a thread has run meanwhile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Context switches by its own waiting, and by others'.
    pub voluntary: u64,
    pub involuntary: u64,
    /// Time on a CPU, ns.
    pub run_ns: u64,
    pub on_cpu: bool,
}

impl Progress {
    /// Whether a thread that polls has had a CPU often enough to see that something has come.
    pub(crate) fn has_run_since(&self, earlier: &Self) -> bool {
        const ENOUGH_NS: u64 = 20_000_000;
        const OFTEN: u64 = 10;
        let switches = |of: &Self| of.voluntary.saturating_add(of.involuntary);
        self.run_ns.saturating_sub(earlier.run_ns) >= ENOUGH_NS
            || switches(self).saturating_sub(switches(earlier)) >= OFTEN
    }
}

/// How registers and stack were got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Copied by the kernel while the thread did not run.
    Copied,
    /// By one interrupt of its running.
    Sampled,
    /// The thread was stopped for that moment.
    Stopped,
}

/// How far registers and stack belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// Of one moment.
    Exact,
    /// The thread ran while it was looked at: the innermost frames may be wrong.
    Doubtful,
}

/// Registers and stack of one thread.
#[derive(Debug, Clone)]
pub struct ThreadCopy {
    pub pid: u32,
    pub tid: u32,
    /// `None`: it has ended, or is about to.
    pub registers: Option<Registers>,
    pub stack: Stack,
    /// The thread's own block of memory (the base of FS), by which the C library tells threads apart; 0: not known.
    pub thread_pointer: u64,
    pub way: Way,
    pub certainty: Certainty,
    pub state: State,
    /// The system call that it is in.
    pub system_call: Option<SystemCall>,
    /// As of the moment of the look.
    pub progress: Progress,
    /// By the monotonic clock, ns.
    pub at_ns: u64,
}

/// A system call with its arguments, as the registers hold them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemCall {
    pub number: u64,
    pub arguments: [u64; 6],
}

impl SystemCall {
    /// Of a thread that has entered the kernel by one.
    pub(crate) fn of(number: u64, registers: &Registers) -> Self {
        // rdi, rsi, rdx, r10, r8, r9.
        let arguments = [5, 4, 1, 10, 8, 9].map(|register| registers.get(register).unwrap_or(0));
        Self { number, arguments }
    }
}

/// What the scheduler says of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// On a CPU, or waiting for one.
    Running,
    Sleeping,
    /// In a wait that signals do not end: mostly for a disk or a file server.
    Uninterruptible,
    /// By a signal such as SIGSTOP.
    Stopped,
    /// By a debugger.
    Traced,
    /// Ended, and its parent has not noticed yet.
    Zombie,
    Unknown,
}

impl State {
    /// From the kernel's bits (include/linux/sched.h).
    pub(crate) fn of_bits(bits: u32) -> Self {
        const SLEEPING: u32 = 1;
        const UNINTERRUPTIBLE: u32 = 2;
        const STOPPED: u32 = 4;
        const TRACED: u32 = 8;
        const IDLE: u32 = 0x402;
        match bits {
            0 => Self::Running,
            bits if bits & TRACED != 0 => Self::Traced,
            bits if bits & STOPPED != 0 => Self::Stopped,
            bits if bits & IDLE == IDLE => Self::Sleeping,
            bits if bits & UNINTERRUPTIBLE != 0 => Self::Uninterruptible,
            bits if bits & SLEEPING != 0 => Self::Sleeping,
            _ => Self::Unknown,
        }
    }

    /// From the letter in `/proc`.
    pub fn of_letter(letter: u8) -> Self {
        match letter {
            b'R' => Self::Running,
            b'S' | b'I' => Self::Sleeping,
            b'D' => Self::Uninterruptible,
            b'T' => Self::Stopped,
            b't' => Self::Traced,
            b'Z' | b'X' | b'x' => Self::Zombie,
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_where_they_were_copied_from() {
        let stack = Stack::new(0x1000, [1_u64, 2].iter().flat_map(|word| word.to_le_bytes()).collect());
        assert_eq!([0xff8, 0x1000, 0x1008, 0x1009].map(|address| stack.word(address)), [None, Some(1), Some(2), None]);
        assert_eq!(stack.word(u64::MAX), None);
        assert_eq!(Stack::new(u64::MAX, vec![0; 16]).end(), u64::MAX);
    }

    #[test]
    fn what_only_one_look_has_found_may_hide_a_return() {
        const TRAMPOLINE: u64 = 0x7fff_ffff_e000;
        let mut before = Replaced(vec![(0x1000, 1), (0x1010, 2)]);
        let others = before.keep_common(&Replaced(vec![(0x1010, 2), (0x1020, 3)]));
        assert_eq!((before.0, &others.0), (vec![(0x1010, 2)], &vec![(0x1000, 1), (0x1020, 3)]));
        let of = |words: [u64; 5]| Stack::new(0x1000, words.iter().flat_map(|word| word.to_le_bytes()).collect());
        assert!(others.hide_a_return(&of([0, 0, 0, 0, TRAMPOLINE]), 0x1000));
        assert!(!others.hide_a_return(&of([0, 0, TRAMPOLINE, 0, 5]), 0x1000), "both have found it");
        assert!(!others.hide_a_return(&of([TRAMPOLINE, 0, 0, 0, 5]), 0x1008), "of a call that has returned");
    }

    #[test]
    fn a_thread_has_run_if_it_had_time_or_turns() {
        let before = Progress { voluntary: 5, involuntary: 100, run_ns: 1_000_000, on_cpu: false };
        assert!(!before.has_run_since(&before));
        assert!(!Progress { involuntary: 109, run_ns: 20_000_000, ..before }.has_run_since(&before));
        assert!(Progress { involuntary: 110, ..before }.has_run_since(&before));
        assert!(Progress { run_ns: 21_000_000, ..before }.has_run_since(&before));
    }

    #[test]
    fn states_are_as_the_kernel_has_them() {
        use State::{Running, Sleeping, Stopped, Traced, Uninterruptible, Unknown};
        let states = [0, 1, 2, 0x102, 4, 8, 0x402, 0x2001, 0x10_0000].map(State::of_bits);
        let expected =
            [Running, Sleeping, Uninterruptible, Uninterruptible, Stopped, Traced, Sleeping, Sleeping, Unknown];
        assert_eq!(states, expected);
    }
}
