//! What has become of the requests that a call was given.
//!
//! A call that was successful says it itself. One that returned an error may have completed some of them all the same, or all: MPI
//! sets the handles of those that are gone to `MPI_REQUEST_NULL`, and after `MPI_ERR_IN_STATUS` each status has an error of its own.

use crate::{
    Descriptor, Layout,
    descriptor::{NONE, completion},
    layout::{Memory, status_error},
    request::FAILED,
};

/// How it is found out which of the requests are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletedBy {
    /// By the call: by a flag, an index, indices, or simply by returning.
    ByCall,
    /// Each by its handle, see [`after_error`].
    ByHandles,
    /// None of them is.
    Nothing,
}

/// That of a call with this result.
#[inline(always)]
pub fn completed_by(layout: &Layout, descriptor: &Descriptor, result: i32) -> CompletedBy {
    match descriptor.completion {
        _ if result == 0 => CompletedBy::ByCall,
        // Whatever has come of it, the access is over.
        completion::ENDS => CompletedBy::ByCall,
        completion::SOME if layout.is_error(result, layout.constants.error_in_status) => CompletedBy::ByCall,
        completion::ALL | completion::ANY | completion::SOME => CompletedBy::ByHandles,
        _ => CompletedBy::Nothing,
    }
}

/// What a call that returned an error has done to a request that it was given: where the status is by which it is complete (0: it is not
/// known; [`FAILED`]), or `None` if it is still under way.
///
/// `handle` is the request's after the call, `status` the address of its status, or 0. A persistent request keeps its handle.
#[inline(always)]
pub fn after_error<M: Memory>(
    layout: &Layout,
    descriptor: &Descriptor,
    result: i32,
    is_persistent: bool,
    handle: u64,
    status: u64,
    memory: &M,
) -> Option<u64> {
    let constants = &layout.constants;
    let is_gone = handle == constants.request_null;
    if descriptor.request_count == NONE || !layout.is_error(result, constants.error_in_status) {
        // The error is that of the only request that can be complete.
        let is_only = descriptor.request_count == NONE && is_persistent;
        return if is_gone || is_only { Some(FAILED) } else { None };
    }
    if status == 0 {
        // It has succeeded, or failed: nobody is told which.
        return if is_gone { Some(0) } else { None };
    }
    match status_error(layout, status, memory) {
        Some(0) => Some(status),
        Some(error) if layout.is_error(error, constants.error_pending) => None,
        Some(_) if is_gone || is_persistent => Some(FAILED),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Interface, MPICH, OPEN_MPI, STANDARD_ABI};

    const WAIT: Descriptor = Descriptor { request: 0, status: 1, completion: completion::ALL, ..Descriptor::EMPTY };
    const WAITALL: Descriptor = Descriptor { request_count: 0, request: 1, status: 2, ..WAIT };
    const WAITANY: Descriptor = Descriptor { completion: completion::ANY, ..WAITALL };
    const WAITSOME: Descriptor = Descriptor { completion: completion::SOME, ..WAITALL };
    const STARTALL: Descriptor = Descriptor { completion: completion::STARTS, ..WAITALL };
    const END: Descriptor = Descriptor { completion: completion::ENDS, ..WAIT };

    const STATUS: u64 = 0x1000;
    const HANDLE: u64 = 0x8400_0001;

    /// A status with this error.
    struct Status(i32);

    impl Memory for Status {
        fn word(&self, address: u64) -> Option<u64> {
            (address & !7 == STATUS + 16 || address & !7 == STATUS + 8).then(|| {
                let error = u64::from(self.0.cast_unsigned());
                error | error << 32
            })
        }
    }

    fn layout(interface: Interface) -> Layout {
        let Interface { handles, mut constants, status } = interface;
        constants.request_null = 0x2c00_0000;
        Layout { known: crate::layout::capability::CONSTANTS, handles, constants, status, ..Layout::default() }
    }

    /// The code that a library gives for a class of errors.
    fn code(interface: Interface, class: i32) -> i32 {
        if interface.handles == MPICH.handles { 0x0a00_0000 | class } else { class }
    }

    #[test]
    fn who_tells_depends_on_the_error() {
        for interface in [MPICH, OPEN_MPI, STANDARD_ABI] {
            let layout = layout(interface);
            let in_status = code(interface, interface.constants.error_in_status);
            for (descriptor, result, expected) in [
                (WAIT, 0, CompletedBy::ByCall),
                (WAIT, 15, CompletedBy::ByHandles),
                (WAITALL, in_status, CompletedBy::ByHandles),
                (WAITANY, 15, CompletedBy::ByHandles),
                (WAITSOME, in_status, CompletedBy::ByCall),
                (WAITSOME, 15, CompletedBy::ByHandles),
                (STARTALL, 15, CompletedBy::Nothing),
                (END, 15, CompletedBy::ByCall),
            ] {
                assert_eq!(
                    completed_by(&layout, &descriptor, result),
                    expected,
                    "{} by {result:#x}",
                    descriptor.completion
                );
            }
        }
    }

    /// Invariant ERRORS-JUDGED.
    #[test]
    fn handles_and_statuses_tell_what_is_complete() {
        for interface in [MPICH, OPEN_MPI, STANDARD_ABI] {
            let layout = layout(interface);
            let null = layout.constants.request_null;
            let in_status = code(interface, interface.constants.error_in_status);
            let pending = code(interface, interface.constants.error_pending);
            let truncated = code(interface, 15);
            let after = |descriptor, result, persistent, handle, status, error| {
                after_error(&layout, &descriptor, result, persistent, handle, status, &Status(error))
            };
            for persistent in [false, true] {
                assert_eq!(after(WAIT, truncated, persistent, null, STATUS, 0), Some(FAILED));
                assert_eq!(after(WAITALL, in_status, persistent, null, STATUS, 0), Some(STATUS));
                assert_eq!(after(WAITALL, in_status, persistent, null, STATUS, truncated), Some(FAILED));
                assert_eq!(after(WAITALL, in_status, persistent, HANDLE, STATUS, pending), None);
                assert_eq!(after(WAITALL, in_status, persistent, null, 0, 0), Some(0));
                // The call has refused to do anything.
                assert_eq!(after(WAITALL, truncated, persistent, HANDLE, STATUS, 0), None);
                assert_eq!(after(WAITANY, truncated, persistent, HANDLE, STATUS, 0), None);
                assert_eq!(after(WAITANY, truncated, persistent, null, STATUS, 0), Some(FAILED));
            }
            assert_eq!(after(WAIT, truncated, false, HANDLE, STATUS, 0), None);
            assert_eq!(after(WAIT, truncated, true, HANDLE, STATUS, 0), Some(FAILED));
            assert_eq!(after(WAITALL, in_status, true, HANDLE, STATUS, truncated), Some(FAILED));
        }
    }
}
