//! Flows: found by what a thread's latest calls looked like, else by what they are.

use mpiprobe_common::{
    Descriptor, Layout, Loss, ThreadState,
    tables::Word,
    descriptor::NONE,
    flow::{RECENT_FLOWS, RecentFlow, Sought, peer},
    layout,
};

use super::{communicator, user::User};
use crate::{
    apart::given,
    atomic::add as increase,
    maps::{FLOW_OF, FLOWS, configured},
    statistics::{count_loss, take_number},
};

/// Index plus one of the flow of the thread's completed call with one partner (a rank as given, or one of [`peer`]); 0 if there is
/// no room for it.
#[inline(always)]
pub fn find(thread: &mut ThreadState, layout: &Layout, within: In, partner: i32) -> u32 {
    let communicator = within.handle;
    let (function, call_site) = (thread.completed.function, thread.completed.call_site);
    let wanted = RecentFlow {
        call_site,
        communicator,
        peer: partner,
        function_plus_1: function + 1,
        epoch: thread.completed.epoch,
        flow: 0,
    };
    let index = RecentFlow::place(function, partner, call_site) & (RECENT_FLOWS - 1);
    let recent = &mut thread.recent_flows[index];
    if recent.call_site == wanted.call_site
        && recent.communicator == wanted.communicator
        && recent.peer == wanted.peer
        && recent.function_plus_1 == wanted.function_plus_1
        && recent.epoch == wanted.epoch
    {
        return recent.flow + 1;
    }
    let number = if within.has_communicator {
        communicator::communicator_number(thread.process, layout, communicator)
    } else {
        within.number
    };
    let sought = Sought { function: function as u16, started_by_plus_1: 0, number, communicator, call_site, partner };
    let Some(flow) = look_up(thread.process, layout, &sought) else { return 0 };
    // Whom it is with may be known the next time.
    if partner < 0 || is_with_somebody(flow) {
        thread.recent_flows[index] = RecentFlow { flow, ..wanted };
    }
    flow + 1
}

/// The communicator of a call.
#[derive(Clone, Copy)]
pub struct In {
    /// Whether it was given to the call.
    pub has_communicator: bool,
    /// Its handle, 0 without one.
    pub handle: u64,
    /// Its number, if it is that of a window or file.
    pub number: u32,
}

/// Rank in `MPI_COMM_WORLD`, or [`peer::UNKNOWN`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn world_rank(layout: *const Layout, communicator: u64, rank: i32) -> i32 {
    given!(layout);
    layout::world_rank(layout, communicator, rank as u32, &User).map_or(peer::UNKNOWN, |rank| rank as i32)
}

/// Index of the flow, made on its first call.
#[inline(never)]
pub fn look_up(process: u32, layout: &Layout, sought: &Sought) -> Option<u32> {
    let peer =
        if sought.partner < 0 { sought.partner } else { world_rank(layout, sought.communicator, sought.partner) };
    let key = sought.key(process, peer);
    // SAFETY: the value is copied at once.
    if let Some(&known) = unsafe { FLOW_OF.get(&key) } {
        return Some(known);
    }
    let Some(flow) = take_number(Word::NextFlow, configured::flow_slots()) else {
        count_loss(process, Loss::FlowTableFull);
        return None;
    };
    // SAFETY: map value pointer to an entry that nobody else has.
    unsafe { (*FLOWS.get_ptr_mut(flow)?).key = key };
    // Two threads may come here at once for the same flow: one wins, the other's stays empty. Where
    // the kernel cannot take the key just now, it is this one for now.
    let _ = FLOW_OF.insert(&key, flow, 1);
    // SAFETY: as above.
    Some(unsafe { FLOW_OF.get(&key) }.copied().unwrap_or(flow))
}

/// The communicator's number of a flow, given by its index plus one.
#[inline(always)]
pub fn communicator(flow_plus_1: u32) -> u32 {
    // SAFETY: map value pointer; the key is written once before the flow is found.
    FLOWS.get_ptr(flow_plus_1.wrapping_sub(1)).map_or(0, |flow| unsafe { (*flow).key.communicator })
}

#[inline(always)]
fn is_with_somebody(flow: u32) -> bool {
    // SAFETY: map value pointer; the key is written once before the flow is found.
    FLOWS.get_ptr(flow).is_some_and(|flow| unsafe { (*flow).key.peer != peer::UNKNOWN })
}

/// Whether it is known whom a flow is with, and over which communicator, if calls of the function are given one.
#[inline(always)]
pub fn is_certain(flow_plus_1: u32, descriptor: &Descriptor) -> bool {
    // SAFETY: map value pointer, as above.
    FLOWS.get_ptr(flow_plus_1.wrapping_sub(1)).is_some_and(|flow| unsafe {
        (*flow).key.peer != peer::UNKNOWN && (descriptor.communicator == NONE || (*flow).key.communicator != 0)
    })
}

/// Adds to the calls of a flow; numbers that wrap round take away.
#[inline(always)]
pub fn add_calls(flow_plus_1: u32, calls: u64, ns: u64) {
    let Some(flow) = FLOWS.get_ptr_mut(flow_plus_1.wrapping_sub(1)) else { return };
    // SAFETY: map value pointer.
    unsafe {
        increase(&raw mut (*flow).calls, calls);
        increase(&raw mut (*flow).time_ns, ns);
    }
}

/// An operation of a flow is complete.
#[inline(always)]
pub fn add_completed(flow_plus_1: u32, pending_ns: u64, waited_ns: u64) {
    let Some(flow) = FLOWS.get_ptr_mut(flow_plus_1.wrapping_sub(1)) else { return };
    // SAFETY: map value pointer.
    unsafe {
        increase(&raw mut (*flow).completed, 1);
        increase(&raw mut (*flow).pending_ns, pending_ns);
        increase(&raw mut (*flow).waited_ns, waited_ns);
    }
}

#[inline(always)]
pub fn add_sent(flow_plus_1: u32, bytes: u64) {
    if let Some(flow) = FLOWS.get_ptr_mut(flow_plus_1.wrapping_sub(1)) {
        // SAFETY: map value pointer.
        unsafe { increase(&raw mut (*flow).sent, bytes) };
    }
}

/// `at_most`: of the bytes, those known as an upper bound only.
#[inline(always)]
pub fn add_received(flow_plus_1: u32, bytes: u64, at_most: u64) {
    if let Some(flow) = FLOWS.get_ptr_mut(flow_plus_1.wrapping_sub(1)) {
        // SAFETY: map value pointers.
        unsafe {
            increase(&raw mut (*flow).received, bytes);
            if at_most != 0 {
                increase(&raw mut (*flow).received_at_most, at_most);
            }
        }
    }
}

#[inline(always)]
pub fn add_unknown(flow_plus_1: u32) {
    if let Some(flow) = FLOWS.get_ptr_mut(flow_plus_1.wrapping_sub(1)) {
        // SAFETY: map value pointer.
        unsafe { increase(&raw mut (*flow).unknown, 1) };
    }
}
