//! The handles that a call is given: what is gone when it returns, and what will mean something else from its entry on.

use super::call::{Arguments, Call};
use crate::{
    Descriptor,
    descriptor::{NONE, completion, frees},
    flow::peer,
    layout::Layout,
    request::Request,
};

/// Where a call is given handles that it may set to others, which are therefore looked at when it is entered: of requests that it settles,
/// or of a message that it receives. [`NONE`]: it is not.
#[inline(always)]
pub const fn looked_at(descriptor: &Descriptor) -> u8 {
    if descriptor.settles_requests() {
        descriptor.request
    } else if receives_message(descriptor) {
        descriptor.message
    } else {
        NONE
    }
}

/// Whether the function receives a message that an earlier call has matched.
#[inline(always)]
pub const fn receives_message(descriptor: &Descriptor) -> bool {
    descriptor.message != NONE && descriptor.receive_amount != 0
}

/// How many handles a call is given at the position of [`looked_at`]; `None`: one, not in an array.
#[inline(always)]
pub fn length<A: Arguments>(call: &Call<'_, A>) -> Option<u32> {
    if call.descriptor.request_count == NONE || !call.descriptor.settles_requests() {
        return None;
    }
    let count = call.int(call.descriptor.request_count);
    Some(if count > 0 { count as u32 } else { 0 })
}

/// What a call does to a handle from its entry on, wherever it is made: inside another call, or while nothing is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    Nothing,
    /// The request at the address in the argument is given up.
    Request,
    /// The handle at the address in its first argument means another object, once it is used again.
    Communicator,
    Datatype,
    Window,
    File,
}

/// That of calls of a function.
#[inline(always)]
pub const fn release(descriptor: &Descriptor) -> Release {
    match descriptor.frees {
        frees::COMMUNICATOR => Release::Communicator,
        frees::DATATYPE => Release::Datatype,
        frees::WINDOW => Release::Window,
        frees::FILE => Release::File,
        _ if descriptor.completion == completion::FREES => Release::Request,
        _ => Release::Nothing,
    }
}

/// Whether all requests that a call of the function is given are complete when it returns. So it is also where its return is not seen: inside
/// another call (in an error handler, in an attribute's delete function), or while nothing is counted.
#[inline(always)]
pub const fn completes_all(descriptor: &Descriptor) -> bool {
    let is_one = descriptor.request_count == NONE && descriptor.request == 0;
    let are_many = descriptor.request_count == 0 && descriptor.request == 1;
    descriptor.completion == completion::ALL && descriptor.is_complete == NONE && (is_one || are_many)
}

/// The requests of such a call, by its first two arguments: the address of their handles, and how many there are.
#[inline(always)]
pub const fn completed(descriptor: &Descriptor, first: u64, second: u64) -> (u64, u32) {
    if descriptor.request_count == NONE {
        return (first, 1);
    }
    let count = first as i32;
    (second, if count > 0 { count as u32 } else { 0 })
}

/// Where a received message came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// Rank in the communicator, or one of [`peer`].
    pub source: i32,
    /// Handle of the communicator; 0: not known, or it has been freed since the message was matched (MPI-4.1, section 7.4.3), and
    /// the handle may mean another one.
    pub communicator: u64,
    /// Its number; 0: not known.
    pub number: u32,
}

impl Sender {
    const UNKNOWN: Self = Self { source: peer::UNKNOWN, communicator: 0, number: 0 };

    /// Of a message that a probe has matched. `is_alive` says whether a handle still means the communicator with a number.
    #[inline(always)]
    pub fn of(message: &Request, is_alive: impl FnOnce(u32, u64) -> bool) -> Self {
        let Request { source, communicator, communicator_number: number, .. } = *message;
        let is_alive = number == 0 || is_alive(number, communicator);
        Self { source, communicator: if is_alive { communicator } else { 0 }, number }
    }

    /// Whether its communicator is known, but cannot be asked about any more: whom ranks in it are of.
    #[inline(always)]
    pub const fn is_over_freed(&self) -> bool {
        self.communicator == 0 && self.number != 0
    }
}

/// Of a message whose handle is `given`, if that could be read at the entry; `find` says it of one that was matched.
#[inline(always)]
pub fn sender(layout: &Layout, given: Option<u64>, find: impl FnOnce(u64) -> Option<Sender>) -> Sender {
    match given {
        Some(handle) if handle == layout.constants.message_no_proc => Sender { source: peer::NULL, ..Sender::UNKNOWN },
        Some(handle) => match find(handle) {
            Some(found) => found,
            None => Sender::UNKNOWN,
        },
        None => Sender::UNKNOWN,
    }
}
