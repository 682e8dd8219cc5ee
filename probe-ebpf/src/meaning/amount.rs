//! How many bytes a call moved.

use aya_ebpf::helpers::generated::bpf_probe_read_user;
use mpiprobe_common::{
    Communicator, Descriptor, Layout,
    descriptor::{NONE, amount as kind, flags},
    layout::{Size, datatype_size, status_bytes},
};

use super::{Bytes, arguments::Arguments, user::User};

/// Counts that are read at once.
const CHUNK: usize = 16;
/// Members of a group whose counts are added up; of larger groups the sum is unknown.
const MOST_COUNTS: usize = 64 * CHUNK;

/// One direction of a call.
#[derive(Clone, Copy)]
struct Side {
    amount: u8,
    buffer: u8,
    count: u8,
    datatype: u8,
}

/// The process's place in the group.
#[derive(Clone, Copy)]
struct Place {
    rank: u32,
    /// Members of the other group of an inter-communicator, else of the group.
    others: u32,
    own_size: u32,
    is_inter: bool,
    known: bool,
}

/// What leaves, and what arrives.
#[inline(always)]
pub fn of(
    layout: &Layout,
    arguments: &Arguments<'_>,
    descriptor: &Descriptor,
    communicator: Option<&Communicator>,
) -> (Bytes, Bytes) {
    let place = place(communicator);
    let send = Side {
        amount: descriptor.send_amount,
        buffer: descriptor.send_buffer,
        count: descriptor.send_count,
        datatype: descriptor.send_datatype,
    };
    let receive = if descriptor.receive_datatype == NONE {
        // One buffer for both: MPI_Bcast.
        Side { amount: descriptor.receive_amount, ..send }
    } else {
        Side {
            amount: descriptor.receive_amount,
            buffer: descriptor.receive_buffer,
            count: descriptor.receive_count,
            datatype: descriptor.receive_datatype,
            }
    };
    let received = side(layout, arguments, descriptor, place, receive, None);
    let sent = side(layout, arguments, descriptor, place, send, Some(received));
    (sent, received)
}

#[inline(always)]
fn place(communicator: Option<&Communicator>) -> Place {
    match communicator {
        Some(known) if known.size != 0 => {
            let is_inter = known.is_inter != 0;
            let others = if is_inter { known.remote_size } else { known.size };
            Place { rank: known.rank, others, own_size: known.size, is_inter, known: true }
        }
        _ => Place { rank: 0, others: 0, own_size: 0, is_inter: false, known: false },
    }
}

#[inline(always)]
fn side(
    layout: &Layout,
    arguments: &Arguments<'_>,
    descriptor: &Descriptor,
    place: Place,
    side: Side,
    other: Option<Bytes>,
) -> Bytes {
    let mut side = side;
    if side.amount & kind::KIND == kind::NOTHING {
        return Bytes::None;
    }
    if let Some(nothing) = takes_no_part(layout, arguments, descriptor, place, side.amount) {
        return nothing;
    }
    if side.buffer != NONE && arguments.word(side.buffer) == layout.constants.in_place {
        match side.amount & kind::IN_PLACE {
            kind::IN_PLACE_SAME => {}
            kind::IN_PLACE_OTHER => return other.unwrap_or(Bytes::Unknown),
            _ => return Bytes::Known(0),
        }
    }
    if side.amount & kind::KIND == kind::STATUS {
        return by_status(layout, arguments, descriptor, side);
    }
    let wide = descriptor.flags & flags::LARGE_COUNT != 0;
    let members = if side.amount & kind::LOCAL != 0 { place.own_size } else { place.others };
    side.amount &= kind::KIND;
    let elements = match side.amount {
        kind::BUFFER => Some(count(arguments, side.count, wide)),
        kind::EACH if place.known => Some(count(arguments, side.count, wide) * members as u64),
        kind::SUM if place.known => sum(arguments.word(side.count), members, wide),
        kind::OWN if place.known => one_of(arguments.word(side.count), place.rank, wide),
        _ => None,
    };
    let Some(elements) = elements else { return Bytes::Unknown };
    if elements == 0 {
        return Bytes::Known(0);
    }
    match datatype_size(layout, arguments.word(side.datatype), &User) {
        Size::Known(size) => Bytes::Known(elements * size),
        Size::Unknown => Bytes::Unknown,
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

/// Of a receive: what came, according to its status; the buffer's size if the program does not want to know.
#[inline(always)]
fn by_status(layout: &Layout, arguments: &Arguments<'_>, descriptor: &Descriptor, side: Side) -> Bytes {
    let status = if descriptor.status == NONE { 0 } else { arguments.word(descriptor.status) };
    if descriptor.status != NONE && status != layout.constants.status_ignore {
        return status_bytes(layout, status, &User).map_or(Bytes::Unknown, Bytes::Known);
    }
    if descriptor.status == NONE {
        // Nonblocking: told when it is complete.
        return Bytes::Unknown;
    }
    let elements = count(arguments, side.count, descriptor.flags & flags::LARGE_COUNT != 0);
    match datatype_size(layout, arguments.word(side.datatype), &User) {
        _ if elements == 0 => Bytes::Known(0),
        Size::Known(size) => Bytes::AtMost(elements * size),
        Size::Unknown => Bytes::Unknown,
    }
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

/// Element `index` of an array of counts.
#[inline(always)]
fn one_of(array: u64, index: u32, wide: bool) -> Option<u64> {
    let mut count = 0u64;
    let width = if wide { 8 } else { 4 };
    let address = array + index as u64 * width;
    // SAFETY: reads user memory by the helper made for that, into a local of at least the size given.
    let result = unsafe {
        if wide {
            bpf_probe_read_user((&raw mut count).cast(), 8, address as *const _)
        } else {
            bpf_probe_read_user((&raw mut count).cast(), 4, address as *const _)
        }
    };
    if result == 0 { Some(count) } else { None }
}

/// Sum of the first `length` elements of an array of counts.
#[inline(always)]
fn sum(array: u64, length: u32, wide: bool) -> Option<u64> {
    let sum = if wide { sum_of_words(array, length) } else { sum_of_ints(array, length) };
    if sum == u64::MAX { None } else { Some(sum) }
}

/// `u64::MAX`: not readable, or too many.
#[inline(never)]
fn sum_of_ints(array: u64, length: u32) -> u64 {
    let mut sum = 0u64;
    let mut chunk = [0u32; CHUNK];
    for start in (0..MOST_COUNTS).step_by(CHUNK) {
        if start as u32 >= length {
            return sum;
        }
        let address = array + start as u64 * 4;
        let rest = length - start as u32;
        if rest >= CHUNK as u32 {
            // SAFETY: reads user memory by the helper made for that, into a local of the size given.
            if unsafe { bpf_probe_read_user(chunk.as_mut_ptr().cast(), size_of::<[u32; CHUNK]>() as u32, address as *const _) } != 0 {
                return u64::MAX;
            }
            for count in chunk {
                sum += count as u64;
            }
        } else {
            for index in 0..CHUNK as u32 {
                if index >= rest {
                    return sum;
                }
                let Some(count) = one_of(address, index, false) else { return u64::MAX };
                sum += count;
            }
        }
    }
    u64::MAX
}

/// As [`sum_of_ints`].
#[inline(never)]
fn sum_of_words(array: u64, length: u32) -> u64 {
    let mut sum = 0u64;
    for index in 0..MOST_COUNTS as u32 {
        if index >= length {
            return sum;
        }
        let Some(count) = one_of(array, index, true) else { return u64::MAX };
        sum += count;
    }
    u64::MAX
}
