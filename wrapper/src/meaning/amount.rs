//! How many bytes a call moved, by what the table of functions says of its arguments.

use mpiprobe_common::{
    Amount, Communicator, Descriptor,
    descriptor::{NONE, Side, amount as kind, flags},
    flow::{UNKNOWN_NEIGHBOURS, peer},
    layout::{Memory as _, status_bytes},
    request::certainty,
    rules::access::{self, Effect},
};

use super::{
    Call,
    arguments::{Own, handle_at},
    communicator, datatype,
};

/// The process's place in the group.
#[derive(Clone, Copy)]
struct Place {
    rank: u32,
    /// Members of the other group of an inter-communicator, else of the group.
    others: u32,
    own_size: u32,
    /// In the communicator's topology.
    in_neighbours: u32,
    out_neighbours: u32,
    is_inter: bool,
}

/// What leaves and what arrives by a successful call with these partners, over the communicator of that number.
pub(super) fn find(call: &Call<'_>, number: u32, destination: i32, source: i32) -> (Amount, Amount) {
    let descriptor = call.descriptor;
    if descriptor.send_amount | descriptor.receive_amount == 0 {
        return (Amount::NOTHING, Amount::NOTHING);
    }
    // Most functions move the same whoever takes part.
    let needs_place = |amount: u8| amount & kind::WHO != 0 || (kind::EACH..=kind::OWN).contains(&(amount & kind::KIND));
    let needs_place =
        descriptor.root != NONE || needs_place(descriptor.send_amount) || needs_place(descriptor.receive_amount);
    let place = if needs_place { communicator::facts(number).map(place) } else { None };
    let to_null = destination == peer::NULL;
    let from_null = is_from_null(descriptor, destination, source);
    let received = if from_null { Some(Amount::NOTHING) } else { moved(call, place, descriptor.receive_side(), true) };
    let received = received.unwrap_or(Amount::UNKNOWN);
    let op = if descriptor.op == NONE { 0 } else { call.arguments.word(descriptor.op) };
    let sent = match access::effect(&call.library.layout, descriptor, op) {
        _ if to_null => Some(Amount::NOTHING),
        Effect::OnlyFetches => Some(Amount::NOTHING),
        Effect::Unknown => Some(Amount::UNKNOWN),
        Effect::Changes => moved(call, place, descriptor.send_side(), false),
    };
    (sent.unwrap_or(received), received)
}

fn is_from_null(descriptor: &Descriptor, destination: i32, source: i32) -> bool {
    source == peer::NULL || (descriptor.source == NONE && destination == peer::NULL)
}

/// What has arrived by a call that a status tells about.
#[inline]
pub(super) fn received(call: &Call<'_>, destination: i32, source: i32) -> Amount {
    if is_from_null(call.descriptor, destination, source) {
        return Amount::NOTHING;
    }
    moved(call, None, call.descriptor.receive_side(), true).unwrap_or(Amount::UNKNOWN)
}

fn place(known: Communicator) -> Place {
    let is_inter = known.is_inter != 0;
    let others = if is_inter { known.remote_size } else { known.size };
    let Communicator { rank, size: own_size, in_neighbours, out_neighbours, .. } = known;
    Place { rank, others, own_size, in_neighbours, out_neighbours, is_inter }
}

/// `None`: what the other direction moves.
fn moved(call: &Call<'_>, place: Option<Place>, side: Side, arrives: bool) -> Option<Amount> {
    let amount = side.amount & kind::KIND;
    if amount == kind::NOTHING {
        return Some(Amount::NOTHING);
    }
    if let Some(nothing) = takes_no_part(call, place, side.amount) {
        return Some(nothing);
    }
    if side.buffer != NONE && call.arguments.word(side.buffer) == call.library.layout.constants.in_place {
        match side.amount & kind::IN_PLACE {
            kind::IN_PLACE_SAME => {}
            kind::IN_PLACE_OTHER => return None,
            _ => return Some(Amount::known(0)),
        }
    }
    if amount == kind::STATUS {
        return Some(by_status(call, side));
    }
    let wide = call.descriptor.flags & flags::LARGE_COUNT != 0;
    let count = count(call, side.count);
    let members = place.map_or(0, |place| members(call, place, side, arrives));
    let elements = match (amount, place) {
        (kind::BUFFER, _) => Some(buffers(call, side)),
        _ if members == UNKNOWN_NEIGHBOURS => None,
        (kind::EACH, Some(_)) => Some(count.wrapping_mul(u64::from(members))),
        (kind::SUM | kind::TYPED_SUM, Some(_)) => return Some(sum(call, side, members, wide)),
        (kind::OWN, Some(place)) => element(call.arguments.word(side.count), place.rank, wide),
        _ => None,
    };
    Some(elements.map_or(Amount::UNKNOWN, |elements| of_elements(call, side, elements)))
}

fn members(call: &Call<'_>, place: Place, side: Side, arrives: bool) -> u32 {
    if call.descriptor.neighbours != 0 {
        return if arrives { place.in_neighbours } else { place.out_neighbours };
    }
    if side.amount & kind::LOCAL != 0 { place.own_size } else { place.others }
}

fn of_elements(call: &Call<'_>, side: Side, elements: u64) -> Amount {
    if elements == 0 {
        return Amount::known(0);
    }
    let size = datatype::size(call, call.arguments.word(side.datatype));
    size.map_or(Amount::UNKNOWN, |size| Amount::known(elements.wrapping_mul(size)))
}

/// Counts, and datatypes if each has its own, of so many members.
fn sum(call: &Call<'_>, side: Side, members: u32, wide: bool) -> Amount {
    let (counts, datatypes) = (call.arguments.word(side.count), call.arguments.word(side.datatype));
    let is_typed = side.amount & kind::KIND == kind::TYPED_SUM;
    let layout = &call.library.layout;
    let mut total = 0u64;
    for member in 0..members {
        let Some(count) = element(counts, member, wide) else { return Amount::UNKNOWN };
        if count == 0 || !is_typed {
            total = total.wrapping_add(count);
            continue;
        }
        let place = datatypes.wrapping_add(u64::from(member) * u64::from(layout.handle_width()));
        let size = handle_at(layout, place).and_then(|datatype| datatype::size(call, datatype));
        let Some(size) = size else { return Amount::UNKNOWN };
        total = total.wrapping_add(count.wrapping_mul(size));
    }
    if is_typed { Amount::known(total) } else { of_elements(call, side, total) }
}

/// Element `index` of an array of counts.
fn element(array: u64, index: u32, wide: bool) -> Option<u64> {
    let width = if wide { 8 } else { 4 };
    Own.integer(array.wrapping_add(u64::from(index) * u64::from(width)), width)
}

/// Whether the process's place in the group keeps it out of this direction.
fn takes_no_part(call: &Call<'_>, place: Option<Place>, amount: u8) -> Option<Amount> {
    let who = amount & kind::WHO;
    let is_for_all = who == kind::ALL && call.descriptor.root == NONE;
    if is_for_all {
        return None;
    }
    let Some(place) = place else { return Some(Amount::UNKNOWN) };
    let takes_part = if who == kind::NOT_FIRST {
        place.rank != 0
    } else if call.descriptor.root == NONE {
        true
    } else {
        let constants = &call.library.layout.constants;
        let root = call.arguments.int(call.descriptor.root);
        let is_root = if place.is_inter { root == constants.root } else { root == place.rank as i32 };
        // Beside the root in its group of an inter-communicator.
        let is_beside = place.is_inter && root == constants.proc_null;
        !is_beside
            && match who {
                kind::ROOT => is_root,
                kind::NOT_ROOT => !is_root,
                _ => !(place.is_inter && is_root),
            }
    };
    if takes_part { None } else { Some(Amount::NOTHING) }
}

/// Of a receive: what came, according to its status; the buffer's size if the program does not want to know, or it is not complete.
fn by_status(call: &Call<'_>, side: Side) -> Amount {
    let layout = &call.library.layout;
    if call.descriptor.status != NONE {
        let status = call.arguments.word(call.descriptor.status);
        if status != layout.constants.status_ignore {
            return status_bytes(layout, status, &Own).map_or(Amount::UNKNOWN, Amount::known);
        }
    }
    let most = of_elements(call, side, buffers(call, side));
    let is_some = most.certainty == certainty::KNOWN && most.bytes != 0;
    if is_some { Amount { certainty: certainty::AT_MOST, ..most } } else { most }
}

/// Elements of a buffer, all partitions together.
fn buffers(call: &Call<'_>, side: Side) -> u64 {
    let count = count(call, side.count);
    if call.descriptor.partitions == NONE {
        return count;
    }
    let partitions = call.arguments.int(call.descriptor.partitions);
    count.wrapping_mul(u64::try_from(partitions).unwrap_or(0))
}

/// A count that is passed by value. A function without one moves one element.
fn count(call: &Call<'_>, position: u8) -> u64 {
    if position == NONE {
        return 1;
    }
    let wide = call.descriptor.flags & flags::LARGE_COUNT != 0;
    let count = if wide { call.arguments.word(position) as i64 } else { call.arguments.int(position) as i64 };
    u64::try_from(count).unwrap_or(0)
}
