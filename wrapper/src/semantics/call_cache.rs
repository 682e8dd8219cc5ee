//! What a thread's latest calls were: one with the same arguments from the same place is the same again.
//!
//! Most calls of a program are. To compare a few words is quicker than to find out what they mean.

use mpiprobe_common::{
    CacheKey,
    descriptor::NONE,
    flow::{RECENT_FLOWS, RecentFlow, peer},
    rules::partner::Partners,
};

use super::{
    Call, Traffic, amount, attribute,
    cache_key::{CACHE_KEYS, Words},
    communicator::epoch,
};

/// Of one thread.
#[repr(C)]
pub(crate) struct CallCache([CachedCall; RECENT_FLOWS]);

/// Zeroed: nothing.
#[repr(C)]
struct CachedCall {
    call_site: u64,
    function_plus_1: u32,
    epoch: u32,
    words: Words,
    traffic: Traffic,
}

/// What a call is that was successful.
#[inline]
pub(super) fn look_up(call: &Call<'_>) -> Traffic {
    let Some(key) = CACHE_KEYS.get(call.function as usize).filter(|key| key.is_all != 0) else {
        return attribute(call, true);
    };
    let destination = call.descriptor.destination;
    let partner = if destination == NONE { 0 } else { call.arguments.int(destination) };
    let place = RecentFlow::place(call.function, partner, call.call_site);
    // SAFETY: the thread's own; places are within the array. Zeros are a valid value.
    let known = unsafe { &mut *(&raw mut (*call.local).call_cache).cast::<CachedCall>().add(place) };
    let epoch = epoch();
    if known.call_site != call.call_site
        || known.function_plus_1 != call.function + 1
        || known.epoch != epoch
        || !known.words.are_those_of(key, call)
    {
        return learn(call, key, epoch, known);
    }
    let mut traffic = known.traffic;
    if key.status != NONE {
        traffic.received = amount::received(call, traffic.partners);
    }
    traffic
}

#[cold]
fn learn(call: &Call<'_>, key: &CacheKey, epoch: u32, place: &mut CachedCall) -> Traffic {
    let traffic = attribute(call, true);
    // Whom a receive from anybody was from is another question each time.
    let is_told = key.status != NONE && Partners::given(&call.given()).source == peer::ANY;
    if traffic.flow_plus_1 != 0 && !is_told {
        let (call_site, function_plus_1) = (call.call_site, call.function + 1);
        *place = CachedCall { call_site, function_plus_1, epoch, words: Words::of(key, call), traffic };
    }
    traffic
}
