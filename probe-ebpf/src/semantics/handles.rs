//! The handles that a call was given: remembered at the entry, since they are gone when it returns.

use core::mem::MaybeUninit;

use aya_ebpf::helpers::generated::bpf_probe_read_user;
use mpiprobe_common::{
    Descriptor, Layout, Loss, ThreadState, tables::Word,
    request::{HANDLES as FEW_HANDLES, MOST_HANDLES}, rules::handles::length,
};

use super::{arguments, can_follow, user::handle_at};
use crate::{
    apart::given,
    atomic::from_here_on,
    maps::{HANDLES, LAYOUTS, MANY_HANDLES, configured},
    statistics::{count_loss, take_number},
};

/// Remembers the handles that the call was given: of requests, or of a message.
#[inline(never)]
pub fn remember(thread: &mut ThreadState, descriptor: &Descriptor, position: u8) {
    thread.following.handles = 0;
    let Some(layout) = LAYOUTS.get_ptr(thread.process) else { return };
    // SAFETY: map value pointer, written once.
    let layout = unsafe { &*layout };
    if !can_follow(layout) {
        if descriptor.settles_requests() {
            count_loss(thread.process, Loss::LayoutUnknown);
        }
        return;
    }
    let call = arguments::call(thread, descriptor, layout);
    let address = call.word(position);
    let kept = match length(&call) {
        None => match handle_at(layout, address) {
            // Programs that poll do so with what is complete already, too.
            Some(handle) if descriptor.settles_requests() && handle == layout.constants.request_null => Some(0),
            Some(handle) => {
                thread.following.handle = handle;
                Some(1)
            }
            None => None,
        },
        Some(0) => return,
        Some(count) => copy(thread, address, count, layout.handle_width()),
    };
    match kept {
        Some(kept) => thread.following.handles = kept,
        None => count_loss(thread.process, Loss::RequestsNotFollowed),
    }
}

/// Copies an array of handles to the thread's store; gives how many.
#[inline(always)]
fn copy(thread: &mut ThreadState, address: u64, count: u32, width: u32) -> Option<u32> {
    if count > FEW_HANDLES as u32 {
        let kept = copy_many(thread, address, count, width);
        if kept != 0 {
            return Some(kept);
        }
    }
    if thread.following.store_plus_1 == 0 {
        thread.following.store_plus_1 = take_number(Word::NextHandles, configured::handle_stores())? as u16 + 1;
    }
    let store = HANDLES.get_ptr_mut((thread.following.store_plus_1 as u32).wrapping_sub(1))?;
    let mut kept = count;
    if kept > FEW_HANDLES as u32 {
        kept = FEW_HANDLES as u32;
        count_loss(thread.process, Loss::RequestsNotFollowed);
    }
    let bytes = if width == 4 { kept * 4 } else { kept * 8 };
    // Such that the compiler compares the very register that becomes the size.
    let few = from_here_on(bytes as u64);
    if few <= FEW_BYTES {
        return if copy_few(store.cast(), few as u32, address) { Some(kept) } else { None };
    }
    // SAFETY: reads user memory by the helper made for that, into a map value of at least the size given.
    let result = unsafe { bpf_probe_read_user(store.cast(), bytes, address as *const _) };
    if result == 0 { Some(kept) } else { None }
}

/// The same of very many. Gives how many are kept; 0: there is no room for so many.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn copy_many(thread: *mut ThreadState, address: u64, count: u32, width: u32) -> u32 {
    given!(thread);
    if thread.following.many_plus_1 == 0 {
        let Some(number) = take_number(Word::NextManyHandles, configured::many_handle_stores()) else { return 0 };
        thread.following.many_plus_1 = number as u16 + 1;
    }
    let Some(store) = MANY_HANDLES.get_ptr_mut((thread.following.many_plus_1 as u32).wrapping_sub(1)) else { return 0 };
    let mut kept = count;
    if kept > MOST_HANDLES as u32 {
        kept = MOST_HANDLES as u32;
        count_loss(thread.process, Loss::RequestsNotFollowed);
    }
    let bytes = from_here_on(if width == 4 { kept as u64 * 4 } else { kept as u64 * 8 });
    if bytes > MOST_HANDLES as u64 * 8 {
        return 0;
    }
    // SAFETY: reads user memory by the helper made for that, into a map value of at least the size given.
    let result = unsafe { bpf_probe_read_user(store.cast(), bytes as u32, address as *const _) };
    if result == 0 { kept } else { 0 }
}

/// Handles that are copied by way of the stack, bytes: a hardened kernel looks up what kind of memory it copies user data to, which
/// takes as long again as the copy unless it is the stack.
const FEW_BYTES: u64 = 64;

#[inline(always)]
fn copy_few(store: *mut u64, bytes: u32, address: u64) -> bool {
    const WORDS: usize = FEW_BYTES as usize / 8;
    let mut few = MaybeUninit::<[u64; WORDS]>::uninit();
    let few = few.as_mut_ptr().cast::<u64>();
    // SAFETY: reads user memory by the helper made for that, into a local that is no smaller than the size given; the map value is
    // larger than both.
    unsafe {
        for index in 0..WORDS {
            // Volatile: else the compiler would make a loop over bytes of it.
            few.add(index).write_volatile(0);
        }
        let result = bpf_probe_read_user(few.cast(), bytes, address as *const _);
        for index in 0..WORDS {
            *store.add(index) = *few.add(index);
        }
        result == 0
    }
}

/// How many of the handles remembered are not `MPI_REQUEST_NULL`.
#[inline(always)]
pub fn count_requests(thread: &mut ThreadState, layout: &Layout) {
    thread.following.requests = 0;
    for part in 0..(MOST_HANDLES as u32 / AT_ONCE) {
        if part * AT_ONCE >= thread.following.handles {
            break;
        }
        thread.following.requests += count_some_requests(thread, layout, part * AT_ONCE);
    }
}

/// Handles that are gone through at once, where that is verified once for all of them.
pub const AT_ONCE: u32 = 32;

/// The same of so many from `first` on.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn count_some_requests(thread: *const ThreadState, layout: *const Layout, first: u32) -> u32 {
    given!(thread, layout);
    let width = layout.handle_width();
    let mut requests = 0;
    for index in first..first + AT_ONCE {
        if index >= thread.following.handles {
            break;
        }
        requests += (remembered(thread, index, width) != layout.constants.request_null) as u32;
    }
    requests
}

/// The handle at `index`.
#[inline(always)]
pub fn remembered(thread: &ThreadState, index: u32, width: u32) -> u64 {
    let following = &thread.following;
    // SAFETY: map value pointers; the masks keep indices within the arrays.
    unsafe {
        if following.handles > FEW_HANDLES as u32 {
            let Some(store) = MANY_HANDLES.get_ptr((following.many_plus_1 as u32).wrapping_sub(1)) else { return 0 };
            handle_in(store.cast(), index as usize & (MOST_HANDLES - 1), width)
        } else {
            let Some(store) = HANDLES.get_ptr((following.store_plus_1 as u32).wrapping_sub(1)) else { return 0 };
            handle_in(store.cast(), index as usize & (FEW_HANDLES - 1), width)
        }
    }
}

/// # Safety
/// There must be so many, of that width.
#[inline(always)]
unsafe fn handle_in(store: *const u64, index: usize, width: u32) -> u64 {
    // SAFETY: by contract.
    unsafe { if width == 4 { *store.cast::<u32>().add(index) as u64 } else { *store.add(index) } }
}
