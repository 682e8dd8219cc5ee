//! A status for calls whose program wants none.
//!
//! Only a status tells how much a receive has got, and one from anybody from whom. A program that passes `MPI_STATUS_IGNORE` loses
//! nothing if the library writes one all the same: into the trampoline's frame, which is there until the call has returned. In place of
//! `MPI_STATUSES_IGNORE` nothing is passed: what a call returns that has failed may depend on that.

use mpiprobe_common::{
    Descriptor, Layout,
    descriptor::NONE,
    layout::{Memory, capability},
    thread::REGISTER_ARGUMENTS,
};

use crate::{
    entry::{DESCRIPTORS, FUNCTIONS, Frame, OwnStatus},
    semantics::{Own, known_layout},
};

/// What is in a status before the library has written it: no number of bytes, and the bit is clear that says that an operation was cancelled.
const UNWRITTEN: u64 = 0x8080_8080_8080_8080;

/// Position of the status by function id; [`NONE`]: it has none, has several, or tells nothing by it.
#[expect(clippy::indexing_slicing, reason = "done by the compiler, which refuses what is out of bounds")]
static POSITIONS: [u8; FUNCTIONS] = {
    let mut all = [NONE; FUNCTIONS];
    let mut function = 0;
    while function < FUNCTIONS {
        all[function] = position(&DESCRIPTORS[function]);
        function += 1;
    }
    all
};

const fn position(descriptor: &Descriptor) -> u8 {
    if descriptor.has_one_status() && descriptor.tells_by_status() { descriptor.status } else { NONE }
}

/// A call is to be made that is counted. If the program has passed `MPI_STATUS_IGNORE` to it, the library is given a status of the frame.
///
/// # Safety
/// `frame` must be the trampoline's, before the call.
#[inline]
pub(crate) unsafe fn give(frame: *mut Frame, function: u32) {
    let position = POSITIONS.get(function as usize).copied().unwrap_or(NONE);
    if position != NONE
        && let Some(layout) = known_layout()
    {
        // SAFETY: by contract.
        unsafe { put(frame, layout, function, position) }
    }
}

#[inline]
unsafe fn put(frame: *mut Frame, layout: &Layout, function: u32, position: u8) {
    // SAFETY: by contract; a function with a status is none with any number of arguments, and has that position.
    unsafe {
        let place = passed(frame, function, position);
        let given = place.read();
        if given != layout.constants.status_ignore || !has_room(layout) {
            return;
        }
        let own = &raw mut (*frame).own_status;
        (*own) = OwnStatus { words: [UNWRITTEN; 4], position_plus_1: u64::from(position) + 1, given };
        place.write(address(frame));
    }
}

/// The call has returned. Where the library has written nothing, nothing is known, as if it had been given nothing.
///
/// # Safety
/// `frame` must be the trampoline's.
#[inline]
pub(crate) unsafe fn look(frame: *mut Frame) {
    // SAFETY: by contract.
    if unsafe { (*frame).own_status.position_plus_1 } != 0 {
        // SAFETY: by contract.
        unsafe { look_at(frame) }
    }
}

#[inline]
unsafe fn look_at(frame: *mut Frame) {
    let Some(layout) = known_layout() else { return };
    // SAFETY: by contract; the status is within the frame.
    unsafe {
        let bytes = Own.word(address(frame).wrapping_add(u64::from(layout.status.bytes)));
        if bytes == Some(UNWRITTEN) {
            let own = &raw mut (*frame).own_status;
            let position = ((*own).position_plus_1 - 1) as u8;
            (*own).position_plus_1 = 0;
            if let Some(argument) = (*frame).arguments.get_mut(position as usize) {
                *argument = (*own).given;
            }
        }
    }
}

/// Where the status of a frame is.
#[inline]
pub(crate) fn address(frame: *mut Frame) -> u64 {
    // SAFETY: nothing is read.
    unsafe { &raw const (*frame).own_status.words as u64 }
}

/// Whether a status of the library fits into a frame, with what it says of bytes.
#[inline]
const fn has_room(layout: &Layout) -> bool {
    let room = size_of::<[u64; 4]>() as u32;
    layout.knows(capability::CONSTANTS) && layout.status.size <= room && layout.status.bytes <= room - 8
}

/// Where the argument stands with which the library is called.
unsafe fn passed(frame: *mut Frame, function: u32, position: u8) -> *mut u64 {
    let arguments = DESCRIPTORS.get(function as usize).map_or(0, |descriptor| descriptor.arguments);
    // SAFETY: by contract.
    unsafe {
        match (*frame).arguments.get_mut(position as usize) {
            Some(argument) => argument,
            None => Frame::copies(frame, arguments).add(position as usize - REGISTER_ARGUMENTS),
        }
    }
}
