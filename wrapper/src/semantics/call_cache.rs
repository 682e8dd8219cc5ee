//! What a thread's latest calls were: one with the same arguments from the same place is the same again.
//!
//! Most calls of a program are. To compare a few words is quicker than to find out what they mean.

use mpiprobe_common::{
    CacheKey,
    descriptor::NONE,
    flow::{RECENT_FLOWS, RecentFlow, peer},
    rules::{
        partner::Partners,
        recording::{self, common_line},
    },
    trace::CommonLine,
};

use super::{
    Call, Traffic, amount, attribute,
    cache_key::{CACHE_KEYS, Words},
    communicator::epoch,
    found,
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
    line: SameLine,
}

/// What is written down of calls that are the same.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct SameLine {
    line: CommonLine,
    /// It is known.
    is_plain: bool,
    /// A status may tell what one of them has found that was given a wildcard.
    may_tell: bool,
}

impl SameLine {
    fn of(call: &Call<'_>, key: &CacheKey, traffic: &Traffic) -> Self {
        let line = common_line(&call.given(), &found(call, traffic), call.descriptor.begins_operation());
        let may_tell = recording::may_tell(call.descriptor) || key.status != NONE;
        Self { line: line.unwrap_or(CommonLine::EMPTY), is_plain: line.is_some(), may_tell }
    }

    /// What is the same in the line of a call that has received so much; `None`: it has to be made out.
    pub(super) fn common(&self, any_tag: bool, traffic: &Traffic) -> Option<&CommonLine> {
        let tells = self.may_tell && (any_tag || traffic.partners.source == peer::ANY);
        (self.is_plain && !tells && self.line.has_room(traffic.received)).then_some(&self.line)
    }
}

/// What a call is that was successful, and what is written down of those that are the same, if it is known.
#[inline]
pub(super) fn look_up<'a>(call: &Call<'a>) -> (Traffic, Option<&'a SameLine>) {
    let Some(key) = CACHE_KEYS.get(call.function as usize).filter(|key| key.is_all != 0) else {
        return (attribute(call, true), None);
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
        return (learn(call, key, epoch, known), None);
    }
    let mut traffic = known.traffic;
    if key.status != NONE {
        traffic.received = amount::received(call, traffic.partners);
    }
    (traffic, Some(&known.line))
}

#[cold]
fn learn(call: &Call<'_>, key: &CacheKey, epoch: u32, place: &mut CachedCall) -> Traffic {
    let traffic = attribute(call, true);
    // Whom a receive from anybody was from is another question each time.
    let is_told = key.status != NONE && Partners::given(&call.given()).source == peer::ANY;
    if traffic.flow_plus_1 != 0 && !is_told {
        let (call_site, function_plus_1) = (call.call_site, call.function + 1);
        let (words, line) = (Words::of(key, call), SameLine::of(call, key, &traffic));
        *place = CachedCall { call_site, function_plus_1, epoch, words, traffic, line };
    }
    traffic
}
