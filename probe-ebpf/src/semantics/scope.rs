//! Windows and files: what is moved by them belongs to the communicator that they were made with.

use mpiprobe_common::{
    CommunicatorKey, Descriptor, Layout, Loss, ThreadState,
    flow::Scope,
    rules::{
        call::{Arguments, Call},
        communicators,
    },
};

use super::{
    arguments,
    user::User,
};
use crate::{
    apart::given,
    maps::{LAYOUTS, SCOPES},
    statistics::count_loss,
};

/// The thread's completed call has made a window or a file.
#[inline(always)]
pub fn made<A: Arguments>(thread: &ThreadState, call: &Call<'_, A>) {
    let Some(made) = communicators::Scope::made(call) else { return };
    let of = &thread.completed;
    let scope = Scope { communicator: of.communicator_handle, number: of.communicator, reserved: 0 };
    if SCOPES.insert(&key(thread.process, made), &scope, 0).is_err() {
        count_loss(thread.process, Loss::CommunicatorTableFull);
    }
}

/// A window or file is about to be freed, whose handle is at the address.
#[inline(never)]
pub fn forget(process: u32, is_file: bool, address: u64) {
    let Some(layout) = LAYOUTS.get_ptr(process) else { return };
    // SAFETY: map value pointer, written once.
    let layout = unsafe { &*layout };
    if let Some(scope) = communicators::Scope::at(layout, &User, address, is_file) {
        let _ = SCOPES.remove(&key(process, scope));
    }
}

/// The communicator of the window or file that the thread's completed call was given, and the handle.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn find_scope(thread: *mut ThreadState, descriptor: *const Descriptor, layout: *const Layout) -> u32 {
    given!(thread, descriptor, layout);
    let call = arguments::call(thread, descriptor, layout);
    let Some(given) = communicators::Scope::given(&call) else { return 0 };
    let Some(scope) = SCOPES.get_ptr(&key(thread.process, given)) else { return 0 };
    // SAFETY: map value pointer; written as a whole when the window or file was made.
    unsafe {
        thread.completed.communicator_handle = (*scope).communicator;
        thread.completed.communicator = (*scope).number;
    }
    1
}

#[inline(always)]
fn key(process: u32, scope: communicators::Scope) -> CommunicatorKey {
    CommunicatorKey { process, kind: scope.kind(), handle: scope.handle }
}
