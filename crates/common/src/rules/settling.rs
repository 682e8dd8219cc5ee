//! Which of the requests that a call was given are concerned by it.

use super::{
    call::{Arguments, Call},
    completion::{CompletedBy, after_error, completed_by},
};
use crate::{
    descriptor::{NONE, completion},
    request::FAILED,
};

/// Those that a call has completed, started or given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concerned {
    /// They are at so many positions: in the array of requests, or of indices.
    pub end: u32,
    /// Which one it is, if the call has completed one of many.
    pub only: u32,
    /// Among how many the call's time is shared out.
    pub sharers: Sharers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharers {
    Number(u32),
    /// All of the requests that are not `MPI_REQUEST_NULL`, which are to be counted.
    AllRequests,
}

/// Those of a call that was given so many handles and had this result; `None`: there are none.
#[inline(always)]
pub fn concerned<A: Arguments>(call: &Call<'_, A>, result: i32, handles: u32) -> Option<Concerned> {
    let descriptor = call.descriptor;
    let completed_by = completed_by(call.layout, descriptor, result);
    if handles == 0 || completed_by == CompletedBy::Nothing {
        return None;
    }
    let by_call = completed_by == CompletedBy::ByCall;
    if by_call && !call.is_complete() {
        return None;
    }
    let number = |position: u8| call.int_at(call.word(position)).unwrap_or(-1);
    match descriptor.completion {
        completion::ANY if by_call => {
            let index = number(descriptor.index);
            let is_one = index >= 0 && (index as u32) < handles;
            if is_one { Some(Concerned { end: 1, only: index as u32, sharers: Sharers::Number(1) }) } else { None }
        }
        completion::SOME if by_call => {
            let count = number(descriptor.index_count);
            if count <= 0 {
                return None;
            }
            let end = if (count as u32) < handles { count as u32 } else { handles };
            Some(Concerned { end, only: 0, sharers: Sharers::Number(count as u32) })
        }
        _ if descriptor.request_count != NONE => {
            Some(Concerned { end: handles, only: 0, sharers: Sharers::AllRequests })
        }
        _ => Some(Concerned { end: handles, only: 0, sharers: Sharers::Number(handles) }),
    }
}

/// Which of the handles is at a position; one that the call was not given is none.
#[inline(always)]
pub fn index_at<A: Arguments>(call: &Call<'_, A>, result: i32, only: u32, position: u32) -> u32 {
    let by_call = completed_by(call.layout, call.descriptor, result) == CompletedBy::ByCall;
    match call.descriptor.completion {
        completion::ANY if by_call => only,
        completion::SOME if by_call => {
            let place = call.word(call.descriptor.index).wrapping_add(position as u64 * 4);
            call.int_at(place).unwrap_or(i32::MAX) as u32
        }
        _ => position,
    }
}

/// By what status the request at `index` is complete, at `position` of the statuses, of a call that has returned an error; `None`: it is
/// still under way. `handle` is what it was.
#[inline(always)]
pub fn status_after_error<A: Arguments>(
    call: &Call<'_, A>,
    result: i32,
    is_persistent: bool,
    handle: u64,
    index: u32,
    position: u32,
) -> Option<u64> {
    let place = call.word(call.descriptor.request).wrapping_add(index as u64 * call.layout.handle_width() as u64);
    let left = call.handle_at(place).unwrap_or(handle);
    let status = call.status(position);
    after_error(call.layout, call.descriptor, result, is_persistent, left, status, &call.arguments)
}

/// By what status an access to a file is complete that a call has ended.
#[inline(always)]
pub fn status_of_access<A: Arguments>(call: &Call<'_, A>, result: i32) -> u64 {
    if result == 0 { call.status(0) } else { FAILED }
}
