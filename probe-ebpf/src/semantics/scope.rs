//! Windows and files: what is moved by them belongs to the communicator that they were made with.

use mpiprobe_common::{
    CommunicatorKey, Descriptor, Layout, Loss, ThreadState,
    descriptor::NONE,
    flow::{Scope, handle_of},
    layout::Memory as _,
};

use super::{
    arguments,
    user::{User, handle_at},
};
use crate::{
    apart::given,
    maps::{LAYOUTS, SCOPES},
    statistics::count_loss,
};

/// The thread's completed call has made a window or a file, whose handle is at the address.
#[inline(always)]
pub fn made(thread: &ThreadState, descriptor: &Descriptor, layout: &Layout, address: u64) {
    // Files are pointers in every implementation.
    let is_file = descriptor.new_scope_is_file != 0;
    let handle = if is_file { User.word(address) } else { handle_at(layout, address) };
    let Some(handle) = handle else { return };
    let key = CommunicatorKey { process: thread.process, kind: kind(is_file), handle };
    let call = &thread.completed;
    let scope = Scope { communicator: call.communicator_handle, number: call.communicator, reserved: 0 };
    if SCOPES.insert(&key, &scope, 0).is_err() {
        count_loss(thread.process, Loss::CommunicatorTableFull);
    }
}

/// A window or file is about to be freed, whose handle is at the address.
#[inline(never)]
pub fn forget(process: u32, is_file: bool, address: u64) {
    let Some(layout) = LAYOUTS.get_ptr(process) else { return };
    // SAFETY: map value pointer, written once.
    let layout = unsafe { &*layout };
    let handle = if is_file { User.word(address) } else { handle_at(layout, address) };
    if let Some(handle) = handle {
        let _ = SCOPES.remove(&CommunicatorKey { process, kind: kind(is_file), handle });
    }
}

/// The communicator of the window or file that the thread's completed call was given, and the handle.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn find_scope(thread: *mut ThreadState, descriptor: *const Descriptor, layout: *const Layout) -> u32 {
    given!(thread, descriptor, layout);
    let call = arguments::call(thread, descriptor, layout);
    let is_file = descriptor.window == NONE;
    let handle =
        if is_file { call.word(descriptor.file) } else { call.handle(descriptor.window) };
    let key = CommunicatorKey { process: thread.process, kind: kind(is_file), handle };
    let Some(scope) = SCOPES.get_ptr(&key) else { return 0 };
    // SAFETY: map value pointer; written as a whole when the window or file was made.
    unsafe {
        thread.completed.communicator_handle = (*scope).communicator;
        thread.completed.communicator = (*scope).number;
    }
    1
}

#[inline(always)]
fn kind(is_file: bool) -> u32 {
    if is_file { handle_of::FILE } else { handle_of::WINDOW }
}
