//! Flows: each thread slot has its own, so that nothing need be atomic. Found by what a thread's latest calls looked like, else
//! by what they are.

use core::sync::atomic::{AtomicU32, Ordering};

use mpiprobe_common::{
    Flow, FlowKey, Loss,
    file::{FLOWS, FLOWS_REGION},
    flow::{RecentFlow, Sought},
};

use super::{Call, communicator::epoch, library::Library, scope::Over};
use crate::{file, header, process, thread::Local};

/// Flow's index plus one, at a place that follows from its key or after that.
static INDEX: [AtomicU32; PLACES] = [const { AtomicU32::new(0) }; PLACES];
/// So many that at most half of them are used.
const PLACES: usize = 2 * FLOWS as usize;

/// Index plus one of the thread's flow of the completed call with one partner (a rank as given, or one of [`mpiprobe_common::flow::peer`]); 0 if there is
/// no room for it.
#[inline]
pub(super) fn find(call: &Call<'_>, over: Over, partner: i32) -> u32 {
    let wanted = RecentFlow {
        call_site: call.call_site,
        communicator: over.handle(),
        peer: partner,
        function_plus_1: call.function + 1,
        epoch: epoch(),
        flow: 0,
    };
    let index = RecentFlow::place(call.function, partner, call.call_site);
    // SAFETY: the thread's own; places are within the array.
    let recent = unsafe {
        let state = (*call.local).state;
        &mut *(&raw mut (*state).recent_flows).cast::<RecentFlow>().add(index)
    };
    if (RecentFlow { flow: 0, ..*recent }) == wanted {
        return recent.flow + 1;
    }
    let number = over.number(call.library);
    let sought = Sought {
        function: call.function as u16,
        started_by_plus_1: 0,
        number,
        communicator: wanted.communicator,
        call_site: call.call_site,
        partner,
    };
    let found = look_up_over(call.local, call.library, over, &sought);
    if let Some(flow) = found.checked_sub(1) {
        *recent = RecentFlow { flow, ..wanted };
    }
    found
}

/// Index plus one of the thread's flow over a communicator, made on its first call; 0: no room.
pub(super) fn look_up(local: *mut Local, library: &Library, sought: &Sought) -> u32 {
    look_up_over(local, library, Over::Communicator(sought.communicator), sought)
}

fn look_up_over(local: *mut Local, library: &Library, over: Over, sought: &Sought) -> u32 {
    let partner = sought.partner;
    let peer = if partner < 0 { partner } else { over.world_rank(library, sought.number, partner) };
    // Its thread's slot is filled in.
    let key = sought.key(0, peer);
    of_thread(local, key)
}

/// The same of a flow that may be another thread's.
pub(super) fn own(local: *mut Local, flow_plus_1: u32) -> u32 {
    match entry(flow_plus_1) {
        // SAFETY: an entry of the file, whose key was written before its index was given out; the thread's own number.
        Some(flow) => unsafe {
            let key = (*flow).key;
            if key.process == (*local).number { flow_plus_1 } else { of_thread(local, key) }
        },
        None => 0,
    }
}

fn of_thread(local: *mut Local, key: FlowKey) -> u32 {
    // SAFETY: the thread's own.
    let key = FlowKey { process: unsafe { (*local).number }, ..key };
    let start = hash(&key) as usize;
    let mut made = 0;
    for step in 0..PLACES {
        let Some(place) = INDEX.get(start.wrapping_add(step) & (PLACES - 1)) else { break };
        let mut known = place.load(Ordering::Acquire);
        if known == 0 {
            if made == 0 {
                made = make(key);
            }
            if made == 0 {
                break;
            }
            match place.compare_exchange(0, made, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return made,
                // Another thread was quicker, with a flow of its own: this one goes to a later place.
                Err(other) => known = other,
            }
        }
        // SAFETY: as in `own`.
        if entry(known).is_some_and(|flow| unsafe { (*flow).key == key }) {
            return known;
        }
    }
    0
}

fn make(key: FlowKey) -> u32 {
    let made = process::take_number(header::flows(), FLOWS)
        .and_then(|index| file::place(FLOWS_REGION, index).map(|flow| (index, flow)));
    let Some((index, flow)) = made else {
        process::count_loss(Loss::FlowTableFull);
        return 0;
    };
    // SAFETY: an entry that nobody else has.
    unsafe { (&raw mut (*flow.as_ptr()).key).write(key) };
    index + 1
}

/// A multiplication and a shift for each word.
fn hash(key: &FlowKey) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let words = [
        u64::from(key.process) << 32 | u64::from(key.function) << 16 | u64::from(key.started_by_plus_1),
        u64::from(key.communicator) << 32 | key.peer as u32 as u64,
        key.call_site,
    ];
    words.into_iter().fold(0, |hash: u64, word| {
        let mixed = (hash ^ word).wrapping_mul(FACTOR);
        mixed ^ mixed >> 29
    })
}

/// That of an index that [`make`] has given out.
#[inline]
fn entry(flow_plus_1: u32) -> Option<*mut Flow> {
    Some(file::known_place(FLOWS_REGION, flow_plus_1.checked_sub(1)?)?.as_ptr())
}

/// The thread's flow, to be added to.
///
/// # Safety
/// `flow_plus_1` must be one of the calling thread's flows, or 0; one at a time.
#[inline]
pub(super) unsafe fn mine<'a>(flow_plus_1: u32) -> Option<&'a mut Flow> {
    // SAFETY: an entry of the file that only this thread writes.
    entry(flow_plus_1).map(|flow| unsafe { &mut *flow })
}

/// The communicator's number of a flow.
#[inline]
pub(super) fn communicator_of(flow_plus_1: u32) -> u32 {
    // SAFETY: as in `own`.
    entry(flow_plus_1).map_or(0, |flow| unsafe { (*flow).key.communicator })
}
