//! How many bytes a call moved.

use mpiprobe_common::{
    Communicator, Descriptor, Layout, ThreadState,
    descriptor::{NONE, Side, amount as kind, flags},
    flow::{Sum, UNKNOWN_NEIGHBOURS, peer},
    layout::{Size, datatype_size, status_bytes},
    rules::access::{self, Effect},
    thread::ARGUMENT_WORDS,
};

use super::{
    Bytes, amount_of,
    arguments::Arguments,
    communicator, sum,
    user::User,
};

/// The process's place in the group.
#[derive(Clone, Copy)]
struct Place {
    rank: u32,
    /// Members of the other group of an inter-communicator, else of the group.
    others: u32,
    own_size: u32,
    in_neighbours: u32,
    out_neighbours: u32,
    is_inter: bool,
    known: bool,
}

/// Finds out what arrives and what leaves, and keeps it in the completed call; of what has an array of counts, `summing` says then
/// what is to be added up.
#[inline(always)]
pub fn find(thread: &mut ThreadState, descriptor: &Descriptor, layout: &Layout) {
    // One function for both, which keeps its result in memory: what the verifier knows of registers at its end would multiply.
    if descriptor.receive_amount != 0 {
        direction(thread, descriptor, layout, true);
    }
    if descriptor.send_amount != 0 {
        direction(thread, descriptor, layout, false);
    }
}

#[inline(never)]
fn direction(thread: &mut ThreadState, descriptor: &Descriptor, layout: &Layout, arrives: bool) {
    let call = &thread.completed;
    let place = place(communicator::facts(call.communicator));
    let is_null = call.destination == peer::NULL;
    if !arrives {
        let op = thread.arguments[descriptor.op as usize & (ARGUMENT_WORDS - 1)];
        let found = match access::effect(layout, descriptor, op) {
            _ if is_null => Some(Bytes::None),
            Effect::OnlyFetches => Some(Bytes::None),
            Effect::Unknown => Some(Bytes::Unknown),
            Effect::Changes => side(thread, layout, descriptor, place, descriptor.send_side(), false),
        };
        match found {
            Some(sent) => thread.completed.sent = amount_of(sent),
            None => {
                thread.summing.sent_is_received = 1;
                thread.completed.sent = thread.completed.received;
            }
        }
        return;
    }
    let from_null = call.source == peer::NULL || (descriptor.source == NONE && is_null);
    let found = if from_null { Some(Bytes::None) } else { side(thread, layout, descriptor, place, descriptor.receive_side(), true) };
    thread.completed.received = amount_of(found.unwrap_or(Bytes::Unknown));
}

#[inline(always)]
fn place(communicator: Option<&Communicator>) -> Place {
    match communicator {
        Some(known) if known.size != 0 => {
            let is_inter = known.is_inter != 0;
            let others = if is_inter { known.remote_size } else { known.size };
            Place {
                rank: known.rank,
                others,
                own_size: known.size,
                in_neighbours: known.in_neighbours,
                out_neighbours: known.out_neighbours,
                is_inter,
                known: true,
            }
        }
        _ => Place {
            rank: 0,
            others: 0,
            own_size: 0,
            in_neighbours: UNKNOWN_NEIGHBOURS,
            out_neighbours: UNKNOWN_NEIGHBOURS,
            is_inter: false,
            known: false,
        },
    }
}

/// `None`: what the other direction moves.
#[inline(always)]
fn side(
    thread: &mut ThreadState,
    layout: &Layout,
    descriptor: &Descriptor,
    place: Place,
    side: Side,
    arrives: bool,
) -> Option<Bytes> {
    let words = thread.arguments.as_ptr();
    let arguments = &Arguments { words, layout };
    let mut side = side;
    if side.amount & kind::KIND == kind::NOTHING {
        return Some(Bytes::None);
    }
    if let Some(nothing) = takes_no_part(layout, arguments, descriptor, place, side.amount) {
        return Some(nothing);
    }
    if side.buffer != NONE && arguments.word(side.buffer) == layout.constants.in_place {
        match side.amount & kind::IN_PLACE {
            kind::IN_PLACE_SAME => {}
            kind::IN_PLACE_OTHER => {
                // The other direction's.
                return None;
            }
            _ => return Some(Bytes::Known(0)),
        }
    }
    if side.amount & kind::KIND == kind::STATUS {
        return Some(by_status(layout, arguments, descriptor, side));
    }
    let wide = descriptor.flags & flags::LARGE_COUNT != 0;
    let members = if descriptor.neighbours != 0 {
        let neighbours = if arrives { place.in_neighbours } else { place.out_neighbours };
        if neighbours == UNKNOWN_NEIGHBOURS {
            return Some(Bytes::Unknown);
        }
        neighbours
    } else if side.amount & kind::LOCAL != 0 {
        place.own_size
    } else {
        place.others
    };
    side.amount &= kind::KIND;
    let elements = match side.amount {
        kind::BUFFER if descriptor.partitions != NONE => {
            Some(count(arguments, side.count, wide) * count(arguments, descriptor.partitions, false))
        }
        kind::BUFFER => Some(count(arguments, side.count, wide)),
        kind::EACH if place.known => Some(count(arguments, side.count, wide) * members as u64),
        kind::SUM | kind::TYPED_SUM if place.known && members == 0 => Some(0),
        kind::SUM | kind::TYPED_SUM if place.known => {
            let is_typed = side.amount == kind::TYPED_SUM;
            let datatype = arguments.word(side.datatype);
            let sum = if arrives { &mut thread.summing.received } else { &mut thread.summing.sent };
            *sum = Sum {
                counts: arguments.word(side.count),
                datatypes: if is_typed { datatype } else { 0 },
                element: if is_typed { 0 } else { size(layout, datatype) },
                length: members,
                ..Sum::NONE
            };
            return Some(Bytes::Unknown);
        }
        kind::OWN if place.known => sum::one(arguments.word(side.count), place.rank, wide),
        _ => None,
    };
    let Some(elements) = elements else { return Some(Bytes::Unknown) };
    if elements == 0 {
        return Some(Bytes::Known(0));
    }
    let size = size(layout, arguments.word(side.datatype));
    Some(if size == UNKNOWN_SIZE { Bytes::Unknown } else { Bytes::Known(elements * size) })
}

/// Not the size of any datatype.
pub const UNKNOWN_SIZE: u64 = u64::MAX;

/// Size of a datatype, bytes; or [`UNKNOWN_SIZE`].
#[inline(never)]
pub fn size(layout: &Layout, datatype: u64) -> u64 {
    match datatype_size(layout, datatype, &User) {
        Size::Known(size) => size,
        Size::Unknown => UNKNOWN_SIZE,
    }
}

/// Whether the process's place in the group keeps it out of this direction.
#[inline(always)]
fn takes_no_part(
    layout: &Layout,
    arguments: &Arguments<'_>,
    descriptor: &Descriptor,
    place: Place,
    amount: u8,
) -> Option<Bytes> {
    let who = amount & kind::WHO;
    if who == kind::NOT_FIRST {
        return if !place.known { Some(Bytes::Unknown) } else if place.rank == 0 { Some(Bytes::None) } else { None };
    }
    if descriptor.root == NONE {
        return None;
    }
    if !place.known {
        return Some(Bytes::Unknown);
    }
    let root = arguments.int(descriptor.root);
    let is_root = if place.is_inter { root == layout.constants.root } else { root == place.rank as i32 };
    // Beside the root in its group of an inter-communicator.
    if place.is_inter && root == layout.constants.proc_null {
        return Some(Bytes::None);
    }
    let takes_part = match who {
        kind::ROOT => is_root,
        kind::NOT_ROOT => !is_root,
        _ => !(place.is_inter && is_root),
    };
    if takes_part { None } else { Some(Bytes::None) }
}

/// Of a receive: what came, according to its status; the buffer's size if the program does not want to know, or it is not complete.
#[inline(always)]
fn by_status(layout: &Layout, arguments: &Arguments<'_>, descriptor: &Descriptor, side: Side) -> Bytes {
    let status = if descriptor.status == NONE { 0 } else { arguments.word(descriptor.status) };
    if descriptor.status != NONE && status != layout.constants.status_ignore {
        return status_bytes(layout, status, &User).map_or(Bytes::Unknown, Bytes::Known);
    }
    let wide = descriptor.flags & flags::LARGE_COUNT != 0;
    let mut elements = count(arguments, side.count, wide);
    if descriptor.partitions != NONE {
        elements *= count(arguments, descriptor.partitions, false);
    }
    if elements == 0 {
        return Bytes::Known(0);
    }
    let size = size(layout, arguments.word(side.datatype));
    if size == UNKNOWN_SIZE { Bytes::Unknown } else { Bytes::AtMost(elements * size) }
}

/// A count that is passed by value. A function without one moves one element.
#[inline(always)]
fn count(arguments: &Arguments<'_>, position: u8, wide: bool) -> u64 {
    if position == NONE {
        return 1;
    }
    let count = if wide { arguments.word(position) as i64 } else { arguments.int(position) as i64 };
    if count > 0 { count as u64 } else { 0 }
}
