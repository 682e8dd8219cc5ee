//! What calls say of communicators, and of the windows and files that are made with them: where they come from, and what they are.

use super::call::{Arguments, Call};
use crate::{
    Layout,
    descriptor::{NONE, flags},
    flow::{Degrees, Origin, communicator_kind, handle_of},
    layout::{Constants, Memory, Side},
};

/// The communicators that an engine knows by their handles.
pub trait Communicators {
    /// A handle means another communicator from now on, if it means one.
    fn release(&mut self, handle: u64);

    /// Keeps where the communicator comes from that a handle means, until it has a number.
    fn keep_origin(&mut self, handle: u64, origin: Origin);

    /// The number of a communicator, made on first use; 0: there is none.
    fn number(&mut self, handle: u64) -> u32;

    /// Whether there is room for one that may never be used.
    fn has_room_for_unused(&self) -> bool;
}

/// A call of a function that makes a communicator out of another one (by its number; 0: none, or not known) was successful. Gives the
/// number of the new one; 0: it has none yet.
#[inline(always)]
pub fn made<A: Arguments, C: Communicators>(
    call: &Call<'_, A>,
    function: u32,
    parent: u32,
    returned_ns: u64,
    communicators: &mut C,
) -> u32 {
    let Some(handle) = call.handle_at(call.word(call.descriptor.new_communicator)) else { return 0 };
    if handle == call.layout.constants.comm_null {
        return 0;
    }
    // One that had this handle was freed where nobody has seen it.
    communicators.release(handle);
    let origin = Origin { made_by_plus_1: function + 1, parent, made_ns: returned_ns, degrees: Degrees::UNKNOWN };
    communicators.keep_origin(handle, origin);
    // One that is not ready must not be asked about before it is used.
    if call.descriptor.flags & flags::NONBLOCKING != 0 || !communicators.has_room_for_unused() {
        return 0;
    }
    communicators.number(handle)
}

/// Of those that every program has, which one it is.
#[inline(always)]
pub const fn kind(constants: &Constants, handle: u64) -> u32 {
    if handle == constants.comm_world {
        communicator_kind::WORLD
    } else if handle == constants.comm_self {
        communicator_kind::OWN
    } else {
        communicator_kind::MADE
    }
}

/// How many members of a communicator are looked at to tell it from others.
pub const MEMBERS: u32 = 3;

/// The group, and the rank in it, of one of those: the first, the middle and the last, which is the first of the other group in an
/// inter-communicator.
#[inline(always)]
pub const fn member(step: u32, size: u32, is_inter: bool) -> (Side, u32) {
    match step {
        0 => (Side::Local, 0),
        1 => (Side::Local, size / 2),
        _ if is_inter => (Side::Remote, 0),
        _ => (Side::Local, size.saturating_sub(1)),
    }
}

/// What a call has made with a communicator, or is made over without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// A file; else a window.
    pub is_file: bool,
    pub handle: u64,
}

impl Scope {
    /// The one whose handle is at an address.
    #[inline(always)]
    pub fn at<M: Memory>(layout: &Layout, memory: &M, address: u64, is_file: bool) -> Option<Self> {
        // Files are pointers in every implementation.
        let width = if is_file { 8 } else { layout.handle_width() };
        memory.integer(address, width).map(|handle| Self { is_file, handle })
    }

    /// The one that a successful call has made.
    #[inline(always)]
    pub fn made<A: Arguments>(call: &Call<'_, A>) -> Option<Self> {
        let descriptor = call.descriptor;
        Self::at(call.layout, &call.arguments, call.word(descriptor.new_scope), descriptor.new_scope_is_file != 0)
    }

    /// The one that a call was given; `None`: the function has none.
    #[inline(always)]
    pub fn given<A: Arguments>(call: &Call<'_, A>) -> Option<Self> {
        if call.descriptor.window != NONE {
            Some(Self { is_file: false, handle: call.handle(call.descriptor.window) })
        } else if call.descriptor.file != NONE {
            Some(Self { is_file: true, handle: call.word(call.descriptor.file) })
        } else {
            None
        }
    }

    /// What its handle is of, in keys of tables.
    #[inline(always)]
    pub const fn kind(self) -> u32 {
        if self.is_file { handle_of::FILE } else { handle_of::WINDOW }
    }
}
