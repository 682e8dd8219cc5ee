//! Flows: found by what a thread's latest calls looked like, else by what they are.

use mpiprobe_common::{
    FlowKey, Layout, Loss, ThreadState,
    config::CONTROL_NEXT_FLOW,
    flow::{RECENT_FLOWS, RecentFlow, peer},
    layout,
};

use super::{Bytes, communicator, user::User};
use crate::{
    atomic::add as increase,
    maps::{FLOW_OF, FLOWS, configured},
    statistics::{count_loss, process_counters, take_number},
};

/// Index plus one of the flow of the thread's completed call with one partner (a rank as given, or one of [`peer`]); 0 if there is
/// no room for it.
#[inline(always)]
pub fn find(thread: &mut ThreadState, layout: &Layout, has_communicator: bool, communicator: u64, partner: i32) -> u32 {
    let (function, call_site) = (thread.completed.function, thread.completed.call_site);
    // SAFETY: map value pointer; one word, read once.
    let freed = process_counters(thread.process).map_or(0, |counters| unsafe { (*counters).communicators_freed });
    let wanted = RecentFlow {
        call_site,
        communicator,
        peer: partner,
        function_plus_1: function + 1,
        epoch: freed as u32,
        flow: 0,
    };
    let index = (function ^ partner as u32 ^ (call_site >> 3) as u32) as usize & (RECENT_FLOWS - 1);
    let recent = &mut thread.recent_flows[index];
    if recent.call_site == wanted.call_site
        && recent.communicator == wanted.communicator
        && recent.peer == wanted.peer
        && recent.function_plus_1 == wanted.function_plus_1
        && recent.epoch == wanted.epoch
    {
        return recent.flow + 1;
    }
    let Some(flow) = look_up(thread.process, layout, &wanted, has_communicator) else { return 0 };
    thread.recent_flows[index] = RecentFlow { flow, ..wanted };
    flow + 1
}

/// Index of the flow, made on its first call.
#[inline(never)]
fn look_up(process: u32, layout: &Layout, wanted: &RecentFlow, has_communicator: bool) -> Option<u32> {
    let number = if has_communicator { communicator::number(process, layout, wanted.communicator) } else { 0 };
    let peer = if wanted.peer < 0 {
        wanted.peer
    } else if has_communicator {
        let rank = layout::world_rank(layout, wanted.communicator, wanted.peer as u32, &User);
        rank.map_or(peer::UNKNOWN, |rank| rank as i32)
    } else {
        peer::UNKNOWN
    };
    let key = FlowKey {
        process,
        function: (wanted.function_plus_1 - 1) as u16,
        started_by_plus_1: 0,
        communicator: number,
        peer,
        call_site: wanted.call_site,
    };
    // SAFETY: the value is copied at once.
    if let Some(&known) = unsafe { FLOW_OF.get(&key) } {
        return Some(known);
    }
    let Some(flow) = take_number(CONTROL_NEXT_FLOW, configured::flow_slots()) else {
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

/// Adds a call to a flow, given by its index plus one.
#[inline(always)]
pub fn add(flow_plus_1: u32, ns: u64, sent: Bytes, received: Bytes) {
    let Some(flow) = FLOWS.get_ptr_mut(flow_plus_1.wrapping_sub(1)) else { return };
    // SAFETY: map value pointer.
    unsafe {
        increase(&raw mut (*flow).calls, 1);
        increase(&raw mut (*flow).time_ns, ns);
        if let Bytes::Known(bytes) | Bytes::AtMost(bytes) = sent {
            increase(&raw mut (*flow).sent, bytes);
        }
        if let Bytes::Known(bytes) | Bytes::AtMost(bytes) = received {
            increase(&raw mut (*flow).received, bytes);
        }
        if let Bytes::AtMost(bytes) = received {
            increase(&raw mut (*flow).received_at_most, bytes);
        }
        if sent == Bytes::Unknown || received == Bytes::Unknown {
            increase(&raw mut (*flow).unknown, 1);
        }
    }
}
