//! With whom a call moves data.

use super::call::{Arguments, Call};
use crate::{descriptor::NONE, flow::peer, layout::status_partner};

/// The ranks sent to and received from, each as given, or one of [`peer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partners {
    pub destination: i32,
    pub source: i32,
}

impl Partners {
    /// Those that a call was given.
    #[inline(always)]
    pub fn given<A: Arguments>(call: &Call<'_, A>) -> Self {
        Self { destination: at(call, call.descriptor.destination), source: at(call, call.descriptor.source) }
    }

    /// The one that the call's flow is with, unless there are two.
    #[inline(always)]
    pub const fn first(&self) -> i32 {
        if self.destination == peer::NONE { self.source } else { self.destination }
    }

    /// Whether what arrives is from somebody else than what leaves is for: it belongs to another flow. With one partner for both
    /// it is one flow.
    #[inline(always)]
    pub const fn are_two(&self) -> bool {
        self.destination != peer::NONE && self.source != peer::NONE && self.source != self.destination
    }

    /// Whether nothing leaves, for want of anybody to send it to.
    #[inline(always)]
    pub const fn sends_to_nobody(&self) -> bool {
        self.destination == peer::NULL
    }

    /// Whether nothing arrives by a call that was `given_source` or, without one, gets an answer from where it sends to.
    #[inline(always)]
    pub const fn receives_from_nobody(&self, given_source: u8) -> bool {
        self.source == peer::NULL || (given_source == NONE && self.destination == peer::NULL)
    }
}

#[inline(always)]
fn at<A: Arguments>(call: &Call<'_, A>, position: u8) -> i32 {
    if position == NONE { peer::NONE } else { call.layout.partner(call.int(position)) }
}

/// From whom a completed receive was that was posted for `posted`: by its status, if that was anybody.
#[inline(always)]
pub fn completed_source<A: Arguments>(call: &Call<'_, A>, posted: i32) -> i32 {
    if posted != peer::ANY || call.descriptor.status == NONE {
        return posted;
    }
    status_partner(call.layout, call.word(call.descriptor.status), &call.arguments)
}
