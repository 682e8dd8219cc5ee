//! What the processor is asked to notice of a thread that was seen in an MPI call: whether that returns, or, where the program asks again and
//! again, whether it stops asking.

use crate::{
    arguments::PollingLoop,
    kernel::returned::Returned,
    unwind::{End, Unwound},
};

/// Since a thread was first seen in a call.
#[derive(Debug)]
pub(crate) enum Watched {
    /// The processor has no room for it, or the kernel does not permit it.
    Nothing,
    Return(Returned),
    /// Where the loop leads to.
    Loop(PollingLoop, Vec<Returned>),
}

impl Watched {
    /// `address`: where the call returns to; `polls`: the loop that it is in.
    pub(crate) fn of(tid: u32, address: u64, polls: Option<PollingLoop>) -> Self {
        // Whoever has ended meanwhile has not gone on either, and is seen to have.
        let watch = |address: u64| {
            let watched = Returned::watch(tid, address);
            watched.inspect_err(|error| tracing::debug!("returns are not seen: {error}")).ok()
        };
        let exits = |polls: PollingLoop| {
            let exits: Option<Vec<Returned>> = polls.exits.iter().map(|exit| watch(*exit)).collect();
            Some(Self::Loop(polls, exits?))
        };
        polls.and_then(exits).or_else(|| watch(address).map(Self::Return)).unwrap_or(Self::Nothing)
    }

    /// Whether the thread has gone on behind the call, or behind the loop; `None`: nobody knows.
    pub(crate) fn has_returned(&self) -> Option<bool> {
        match self {
            Self::Nothing => None,
            Self::Return(returned) => returned.is_reached().ok(),
            Self::Loop(_, exits) => {
                let reached: Option<Vec<bool>> = exits.iter().map(|exit| exit.is_reached().ok()).collect();
                reached.map(|reached| reached.contains(&true))
            }
        }
    }

    /// Whether it is in its loop: in the call that returns to `returns_to`, or, without one, at one of its instructions, or on its way to
    /// the call. `None`: it is where a return probe is handled, or hides where the call returns to.
    pub(crate) fn is_in_loop(&self, returns_to: Option<u64>, unwound: &Unwound) -> Option<bool> {
        let Self::Loop(polls, _) = self else { return Some(false) };
        if let Some(address) = returns_to {
            return Some(polls.returns_to == address);
        }
        let mut ips = unwound.frames.iter().map(|frame| frame.registers.ip());
        let is_there = ips.next().flatten().is_some_and(|ip| polls.contains(ip));
        if is_there || ips.next().flatten() == Some(polls.returns_to) {
            return Some(true);
        }
        (unwound.end != End::Hidden).then_some(false)
    }
}
