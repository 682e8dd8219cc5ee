//! How many bytes a call moves, by what the table of functions says of its arguments.

use super::{
    access::{self, Effect},
    call::{Arguments, Call},
    partner::Partners,
};
use crate::{
    Amount, Communicator, Descriptor, Layout,
    descriptor::{NONE, Side, amount as kind, flags},
    flow::{Degrees, Sum},
    layout::{Memory, status_bytes},
    request::certainty,
};

/// What an engine knows of datatypes.
pub trait Datatypes {
    /// Bytes of data in one element of a datatype, whose handle may have a meaningless upper half. Only to be asked of one that a call
    /// has used with success.
    fn size(&self, datatype: u64) -> Option<u64>;
}

/// What an engine knows of the objects of MPI that a call was given.
pub trait Objects: Datatypes {
    /// The process's place in a communicator, by its number.
    fn place(&self, communicator: u32) -> Membership;

    /// The sum of counts that stand in memory, one for each member. An engine whose loops are bounded keeps it to be added up later,
    /// and answers [`Amount::UNKNOWN`] for the time being.
    fn add_up<A: Arguments>(&mut self, call: &Call<'_, A>, way: Way, sum: Sum) -> Amount;
}

/// The process's place in a group. Without an `Option` around it, whose empty case would have registers that nothing was written to:
/// BPF's verifier refuses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    pub rank: u32,
    /// Members of the other group of an inter-communicator, else of the group.
    pub others: u32,
    pub own_size: u32,
    pub degrees: Degrees,
    pub is_inter: bool,
    /// Otherwise the rest means nothing.
    pub is_known: bool,
}

impl Membership {
    pub const UNKNOWN: Self =
        Self { rank: 0, others: 0, own_size: 0, degrees: Degrees::UNKNOWN, is_inter: false, is_known: false };

    /// By what could be read of the communicator.
    #[inline(always)]
    pub const fn of(known: &Communicator) -> Self {
        if known.size == 0 {
            return Self::UNKNOWN;
        }
        let is_inter = known.is_inter != 0;
        Self {
            rank: known.rank,
            others: if is_inter { known.remote_size } else { known.size },
            own_size: known.size,
            degrees: known.degrees,
            is_inter,
            is_known: true,
        }
    }
}

/// Which way data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Leaves,
    Arrives,
}

/// What leaves and what arrives by a successful call, over the communicator of that number.
#[inline(always)]
pub fn both<A: Arguments, O: Objects>(
    call: &Call<'_, A>,
    objects: &mut O,
    communicator: u32,
    partners: Partners,
) -> (Amount, Amount) {
    let received = arriving(call, objects, communicator, partners);
    (leaving(call, objects, communicator, partners).unwrap_or(received), received)
}

/// What arrives by it.
#[inline(always)]
pub fn arriving<A: Arguments, O: Objects>(
    call: &Call<'_, A>,
    objects: &mut O,
    communicator: u32,
    partners: Partners,
) -> Amount {
    if call.descriptor.receive_amount == kind::NOTHING || partners.receives_from_nobody(call.descriptor.source) {
        return Amount::NOTHING;
    }
    let moved = moved(call, objects, communicator, call.descriptor.receive_side(), Way::Arrives);
    moved.unwrap_or(Amount::UNKNOWN)
}

/// What leaves by it. `None`: as much as arrives.
#[inline(always)]
pub fn leaving<A: Arguments, O: Objects>(
    call: &Call<'_, A>,
    objects: &mut O,
    communicator: u32,
    partners: Partners,
) -> Option<Amount> {
    if call.descriptor.send_amount == kind::NOTHING || partners.sends_to_nobody() {
        return Some(Amount::NOTHING);
    }
    let op = if call.descriptor.op == NONE { 0 } else { call.word(call.descriptor.op) };
    match access::effect(call.layout, call.descriptor, op) {
        Effect::OnlyFetches => Some(Amount::NOTHING),
        Effect::Unknown => Some(Amount::UNKNOWN),
        Effect::Changes => moved(call, objects, communicator, call.descriptor.send_side(), Way::Leaves),
    }
}

/// `None`: what the other way moves.
#[inline(always)]
fn moved<A: Arguments, O: Objects>(
    call: &Call<'_, A>,
    objects: &mut O,
    communicator: u32,
    side: Side,
    way: Way,
) -> Option<Amount> {
    let amount = side.amount & kind::KIND;
    if amount == kind::NOTHING {
        return Some(Amount::NOTHING);
    }
    let place =
        if needs_place(call.descriptor, side.amount) { objects.place(communicator) } else { Membership::UNKNOWN };
    match takes_part(call, place, side.amount) {
        Part::Takes => {}
        Part::TakesNone => return Some(Amount::NOTHING),
        Part::Unknown => return Some(Amount::UNKNOWN),
    }
    if side.buffer != NONE && call.word(side.buffer) == call.layout.constants.in_place {
        match side.amount & kind::IN_PLACE {
            kind::IN_PLACE_SAME => {}
            kind::IN_PLACE_OTHER => return None,
            _ => return Some(Amount::known(0)),
        }
    }
    if amount == kind::STATUS {
        return Some(by_status(call, objects, side));
    }
    let of_neighbours = call.descriptor.neighbours != 0;
    if amount == kind::BUFFER && !of_neighbours {
        return Some(of_elements(call, objects, side, buffers(call, side)));
    }
    let members = members(call.descriptor, place, side, way);
    let absent = if of_neighbours { place.degrees.absent } else { 0 };
    let present = members.wrapping_sub(absent.count_ones());
    let elements = match amount {
        _ if !place.is_known || members == Degrees::NO_NUMBER => None,
        // The same for all neighbours, if there are any.
        kind::BUFFER => Some(if present == 0 { 0 } else { buffers(call, side) }),
        kind::EACH => Some(count(call, side.count).wrapping_mul(present as u64)),
        kind::SUM | kind::TYPED_SUM if members == 0 => Some(0),
        kind::SUM | kind::TYPED_SUM => {
            let is_typed = amount == kind::TYPED_SUM;
            let datatype = call.word(side.datatype);
            let sum = Sum {
                counts: call.word(side.count),
                datatypes: if is_typed { datatype } else { 0 },
                datatype: if is_typed { 0 } else { datatype },
                length: members,
                absent,
                ..Sum::NONE
            };
            return Some(objects.add_up(call, way, sum));
        }
        kind::OWN => count_at(&call.arguments, call.word(side.count), place.rank, is_wide(call.descriptor)),
        _ => None,
    };
    Some(match elements {
        Some(elements) => of_elements(call, objects, side, elements),
        None => Amount::UNKNOWN,
    })
}

/// Most functions move the same whoever takes part.
#[inline(always)]
const fn needs_place(descriptor: &Descriptor, amount: u8) -> bool {
    let kind = amount & kind::KIND;
    descriptor.root != NONE
        || descriptor.neighbours != 0
        || amount & kind::WHO != 0
        || (kind >= kind::EACH && kind <= kind::OWN)
}

/// Those that data goes to or comes from.
#[inline(always)]
const fn members(descriptor: &Descriptor, place: Membership, side: Side, way: Way) -> u32 {
    match way {
        Way::Arrives if descriptor.neighbours != 0 => place.degrees.indegree,
        Way::Leaves if descriptor.neighbours != 0 => place.degrees.outdegree,
        _ if side.amount & kind::LOCAL != 0 => place.own_size,
        _ => place.others,
    }
}

/// Whether the process takes part in one way.
enum Part {
    Takes,
    TakesNone,
    Unknown,
}

/// By its place in the group.
#[inline(always)]
fn takes_part<A: Arguments>(call: &Call<'_, A>, place: Membership, amount: u8) -> Part {
    let who = amount & kind::WHO;
    let has_root = call.descriptor.root != NONE;
    if who != kind::NOT_FIRST && !has_root {
        return Part::Takes;
    }
    if !place.is_known {
        return Part::Unknown;
    }
    if who == kind::NOT_FIRST {
        return if place.rank == 0 { Part::TakesNone } else { Part::Takes };
    }
    let constants = &call.layout.constants;
    let root = call.int(call.descriptor.root);
    let is_root = if place.is_inter { root == constants.root } else { root == place.rank as i32 };
    // Beside the root in its group of an inter-communicator.
    if place.is_inter && root == constants.proc_null {
        return Part::TakesNone;
    }
    let takes = match who {
        kind::ROOT => is_root,
        kind::NOT_ROOT => !is_root,
        // The root of an inter-communicator is not in the group that moves data with it.
        _ => !(place.is_inter && is_root),
    };
    if takes { Part::Takes } else { Part::TakesNone }
}

/// Of a receive: what came, according to its status; the buffer's size if the program does not want to know, or it is not complete.
#[inline(always)]
fn by_status<A: Arguments, O: Objects>(call: &Call<'_, A>, objects: &mut O, side: Side) -> Amount {
    if call.descriptor.status != NONE {
        let status = call.word(call.descriptor.status);
        if status != call.layout.constants.status_ignore {
            return match status_bytes(call.layout, status, &call.arguments) {
                Some(bytes) => Amount::known(bytes),
                None => Amount::UNKNOWN,
            };
        }
    }
    let most = of_elements(call, objects, side, buffers(call, side));
    let is_some = most.certainty == certainty::KNOWN && most.bytes != 0;
    if is_some { Amount { certainty: certainty::AT_MOST, ..most } } else { most }
}

/// So many elements of the datatype of one way. Where there are none, the datatype may be any.
#[inline(always)]
fn of_elements<A: Arguments, O: Objects>(call: &Call<'_, A>, objects: &mut O, side: Side, elements: u64) -> Amount {
    if elements == 0 {
        return Amount::known(0);
    }
    match objects.size(call.word(side.datatype)) {
        Some(bytes) => Amount::known(elements.wrapping_mul(bytes)),
        None => Amount::UNKNOWN,
    }
}

/// Elements of a buffer, all partitions together.
#[inline(always)]
fn buffers<A: Arguments>(call: &Call<'_, A>, side: Side) -> u64 {
    let count = count(call, side.count);
    if call.descriptor.partitions == NONE {
        return count;
    }
    count.wrapping_mul(not_negative(call.int(call.descriptor.partitions) as i64))
}

/// A count that is passed by value. A function without one moves one element.
#[inline(always)]
fn count<A: Arguments>(call: &Call<'_, A>, position: u8) -> u64 {
    if position == NONE {
        return 1;
    }
    not_negative(if is_wide(call.descriptor) { call.word(position) as i64 } else { call.int(position) as i64 })
}

#[inline(always)]
const fn not_negative(count: i64) -> u64 {
    if count > 0 { count as u64 } else { 0 }
}

/// Whether counts are of 64 bits.
#[inline(always)]
pub const fn is_wide(descriptor: &Descriptor) -> bool {
    descriptor.flags & flags::LARGE_COUNT != 0
}

/// Element `index` of an array of counts.
#[inline(always)]
fn count_at<M: Memory>(memory: &M, array: u64, index: u32, is_wide: bool) -> Option<u64> {
    let width = if is_wide { 8 } else { 4 };
    memory.integer(array.wrapping_add(index as u64 * width as u64), width)
}

/// Adds the next count to a sum; `is_wide`: of counts of 64 bits.
#[inline(always)]
pub fn add_next<M: Memory, D: Datatypes>(memory: &M, layout: &Layout, is_wide: bool, datatypes: &D, sum: &mut Sum) {
    let index = sum.next;
    sum.next = index + 1;
    if index < u32::BITS && sum.absent & 1 << index != 0 {
        return;
    }
    let Some(count) = count_at(memory, sum.counts, index, is_wide) else {
        sum.unknown = 1;
        return;
    };
    if count == 0 {
        return;
    }
    if sum.datatypes == 0 {
        sum.total = sum.total.wrapping_add(count);
        return;
    }
    let width = layout.handle_width();
    let size = match memory.integer(sum.datatypes.wrapping_add(index as u64 * width as u64), width) {
        Some(datatype) => datatypes.size(datatype),
        None => None,
    };
    match size {
        Some(size) => sum.total = sum.total.wrapping_add(count.wrapping_mul(size)),
        None => sum.unknown = 1,
    }
}

/// What a sum comes to when all counts have been added.
#[inline(always)]
pub fn summed<D: Datatypes>(datatypes: &D, sum: &Sum) -> Amount {
    if sum.unknown != 0 {
        return Amount::UNKNOWN;
    }
    if sum.total == 0 || sum.datatypes != 0 {
        return Amount::known(sum.total);
    }
    match datatypes.size(sum.datatype) {
        Some(size) => Amount::known(sum.total.wrapping_mul(size)),
        None => Amount::UNKNOWN,
    }
}
