//! Requests (src/include/mpir_request.h, src/mpid/ch4/include/mpidpre.h) and windows (src/include/mpir_win.h).

use std::ops::Range;

use mpiprobe_common::{
    FoundOperation, FoundPeer, FoundProgress, FoundRequest, FoundTag, Layout,
    layout::{Field, Memory, Objects, Side, Size, comm, comm_object, datatype_size, handle_kind, object},
};

use super::super::{
    TargetMemory,
    found::{Communicator, MAX_LISTED, NOTHING, Window, ends, members},
};

/// What differs between releases.
struct Offsets {
    /// The size of a communicator, by which the release is known: see [`super::offsets`].
    communicator_stride: u32,
    /// What handles are: a library of MPI's standard ABI has another status in each of its requests.
    handles: u32,
    /// Numbers of kinds of requests; those of messages are the same in all.
    collective: u64,
    communicator: u64,
    /// Of a persistent one: address of the buffer, number of elements, rank, tag, datatype.
    persistent: Message,
    /// Of a receive by shared memory, where the request is of that type and of that context.
    shared: Option<SharedReceive>,
}

struct Message {
    count: u64,
    datatype: u64,
    /// Rank, and then tag.
    ends: u64,
}

struct SharedReceive {
    message: Message,
    /// `MPIDI_REQ_TYPE`, 1 for active messages.
    kind: u64,
    context: u64,
}

static TABLES: [Offsets; 3] = [
    // 4.0.2
    Offsets {
        communicator_stride: 872,
        handles: handle_kind::INTEGER,
        collective: 10,
        communicator: 40,
        persistent: Message { count: 192, datatype: 212, ends: 200 },
        shared: None,
    },
    // 5.0.2: the status of a receive begins as what it was given.
    Offsets {
        communicator_stride: 1832,
        handles: handle_kind::INTEGER,
        collective: 11,
        communicator: 32,
        persistent: Message { count: 272, datatype: 292, ends: 280 },
        shared: Some(SharedReceive {
            message: Message { count: 480, datatype: 488, ends: 48 },
            kind: 248,
            context: 496,
        }),
    },
    // 5.0.2 of the standard ABI, whose status begins with the source and is longer.
    Offsets {
        communicator_stride: 1832,
        handles: handle_kind::STANDARD_ABI,
        collective: 11,
        communicator: 32,
        persistent: Message { count: 280, datatype: 300, ends: 288 },
        shared: Some(SharedReceive {
            message: Message { count: 488, datatype: 496, ends: 40 },
            kind: 256,
            context: 504,
        }),
    },
];

const KIND: u32 = 8;
/// Address of the number of what is still to be done, and the request's own such number.
const COUNTER_AT: u64 = 16;
const OWN_COUNTER: u64 = 24;
const SEND: u64 = 1;
const RECEIVE: u64 = 2;
const PERSISTENT_SEND: u64 = 3;
const PERSISTENT_RECEIVE: u64 = 4;
const PERSISTENT_COLLECTIVE: u64 = 5;
const ACTIVE_MESSAGE: u64 = 1;

pub(in super::super) fn request(
    layout: &Layout,
    handle: u64,
    communicators: &[Communicator],
    memory: &TargetMemory,
) -> Option<FoundRequest> {
    let stride = layout.communicators.objects.stride;
    let table = TABLES.iter().find(|table| table.communicator_stride == stride && table.handles == layout.handles)?;
    let object = object(layout, &layout.requests.objects, handle, memory)?;
    let kind = Field::at(KIND, 4).read(object, memory)?;
    let (operation, is_persistent) = match kind {
        SEND => (FoundOperation::Send, false),
        RECEIVE => (FoundOperation::Receive, false),
        PERSISTENT_SEND => (FoundOperation::Send, true),
        PERSISTENT_RECEIVE => (FoundOperation::Receive, true),
        PERSISTENT_COLLECTIVE => (FoundOperation::Collective, true),
        _ if kind == table.collective => (FoundOperation::Collective, false),
        _ => (FoundOperation::Other, false),
    };
    let counter = memory.word(object.checked_add(COUNTER_AT)?)?;
    let is_own = counter == object.checked_add(OWN_COUNTER)?;
    let progress = match Field::at(0, 4).read(counter, memory)? {
        // It has one of its own as long as it is not started.
        _ if is_persistent && is_own => FoundProgress::Inactive,
        0 => FoundProgress::Complete,
        _ => FoundProgress::Active,
    };
    let at = memory.word(object.checked_add(table.communicator)?);
    let communicator =
        at.and_then(|at| communicators.iter().find(|known| object_of(layout, known, memory) == Some(at)));
    let found = FoundRequest { operation, progress, is_persistent, ..NOTHING };
    let found = FoundRequest { communicator: communicator.map(|known| known.handle), ..found };
    if is_persistent {
        let ends = communicator.and_then(|known| message(layout, object, &table.persistent, known, memory));
        return Some(ends.map_or(found, |(peer, tag, bytes)| FoundRequest { peer, tag, bytes, ..found }));
    }
    if operation != FoundOperation::Receive {
        return Some(found);
    }
    if let Some((known, peer, tag)) = by_network(layout, object, communicators, memory) {
        return Some(FoundRequest { communicator: Some(known.handle), peer, tag, ..found });
    }
    let shared = table.shared.as_ref().zip(communicator).filter(|(shared, known)| {
        let field = |offset: u64| Field::at(u32::try_from(offset).unwrap_or(0), 4).read(object, memory);
        field(shared.kind) == Some(ACTIVE_MESSAGE) && field(shared.context) == Some(known.facts.context)
    });
    let ends = shared.and_then(|(shared, known)| message(layout, object, &shared.message, known, memory));
    Some(ends.map_or(found, |(peer, tag, bytes)| FoundRequest { peer, tag, bytes, ..found }))
}

/// Rank, tag and bytes of the buffer.
fn message(
    layout: &Layout,
    object: u64,
    at: &Message,
    communicator: &Communicator,
    memory: &TargetMemory,
) -> Option<(FoundPeer, FoundTag, Option<u64>)> {
    let facts = &communicator.facts;
    let size = if facts.is_inter { facts.remote_size } else { facts.size };
    let both = memory.word(object.checked_add(at.ends)?)?;
    let (peer, tag) = ends(layout, halves(both), size)?;
    let datatype = Field::at(u32::try_from(at.datatype).ok()?, 4).read(object, memory)?;
    // In the library itself datatypes have numbers, whatever programs are given.
    let by_number = Layout { handles: handle_kind::INTEGER, ..*layout };
    let Size::Known(element) = datatype_size(&by_number, datatype, memory) else { return None };
    let bytes = memory.word(object.checked_add(at.count)?)?.checked_mul(element);
    Some((peer, tag, bytes))
}

#[expect(clippy::cast_possible_truncation, reason = "these are the halves")]
fn halves(word: u64) -> (i32, i32) {
    (word as i32, (word >> 32) as i32)
}

/// The object of a communicator that was found by its handle.
fn object_of(layout: &Layout, communicator: &Communicator, memory: &TargetMemory) -> Option<u64> {
    comm_object(layout, communicator.handle, memory)
}

/// Where the address of UCX's request may stand in one of MPICH's, and how far before that it has what it has been given.
const DEVICE: Range<u64> = 96..512;
const OF_NETWORK: u64 = 512;

/// From a receive that is UCX's: it has the address of MPICH's request, and a number of 64 bits with a mask of what of that has to
/// agree (src/mpid/ch4/netmod/ucx/ucx_impl.h, `MPIDI_UCX_recv_tag`): context, rank, tag.
fn by_network<'a>(
    layout: &Layout,
    object: u64,
    communicators: &'a [Communicator],
    memory: &TargetMemory,
) -> Option<(&'a Communicator, FoundPeer, FoundTag)> {
    let end = DEVICE.end.min(layout.requests.objects.stride.into());
    let own = (DEVICE.start..end).step_by(8).filter_map(|offset| memory.word(object.checked_add(offset)?));
    let mut requests = own.filter(|at| at.is_multiple_of(8) && *at > OF_NETWORK);
    requests.find_map(|at| {
        let bytes = memory.bytes(at - OF_NETWORK..at)?;
        let (words, _) = bytes.as_chunks();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        // Another request of UCX's may be right before.
        let back = words.iter().rposition(|word| *word == object)?;
        let mut found = words.get(back..)?.windows(2).filter_map(|pair| match pair {
            [number, mask] => matched(*number, *mask, communicators),
            _ => None,
        });
        // Several would be none.
        found.next().filter(|_| found.next().is_none())
    })
}

/// 16 bits of context, 16 of rank, 32 of tag, of which the upper ones are the library's.
fn matched(number: u64, mask: u64, communicators: &[Communicator]) -> Option<(&Communicator, FoundPeer, FoundTag)> {
    const CONTEXT: u64 = 0xffff << 48;
    const RANK: u64 = 0xffff << 32;
    const TAG: u64 = 0x0fff_ffff;
    let (of_rank, of_tag) = (mask & RANK, mask & TAG);
    let is_mask = mask & CONTEXT == CONTEXT
        && (of_rank == RANK || of_rank == 0)
        && (of_tag == TAG || of_tag == 0)
        && mask >> 31 & 1 == 1;
    if !is_mask || number & !mask != 0 {
        return None;
    }
    let context = number >> 48;
    let mut same = communicators.iter().filter(|known| known.facts.context == context && !known.facts.is_inter);
    let known = same.next().filter(|_| same.next().is_none())?;
    let rank = u32::try_from((number & RANK) >> 32).ok()?;
    let tag = i32::try_from(number & TAG).ok()?;
    let peer = match of_rank {
        0 => FoundPeer::Any,
        _ if rank < known.facts.size => FoundPeer::Rank(rank),
        _ => return None,
    };
    Some((known, peer, if of_tag == 0 { FoundTag::Any } else { FoundTag::Tag(tag) }))
}

/// Where the address of its communicator stands in a window.
const WINDOW: Range<u64> = 8..256;

pub(in super::super) fn window(
    layout: &Layout,
    windows: &Objects,
    handle: u64,
    memory: &TargetMemory,
) -> Option<Window> {
    let start = object(layout, windows, handle, memory)?;
    let is_window = memory.word(start)? >> 26 & 0xf == u64::from(windows.kind);
    let end = WINDOW.end.min(windows.stride.into());
    let mut words = (WINDOW.start..end).step_by(8).filter_map(|offset| memory.word(start.checked_add(offset)?));
    let by_number = Layout { handles: handle_kind::INTEGER, ..*layout };
    // The only communicator that it leads to: one of the library's own, with the members of the program's.
    let communicator = words.find_map(|at| communicator_at(&by_number, at, memory)).filter(|_| is_window)?;
    let facts = comm(&by_number, communicator, memory).filter(|facts| facts.size <= MAX_LISTED)?;
    Some(Window {
        name: None,
        context: Some(facts.context),
        members: members(&by_number, communicator, Side::Local, memory)?,
    })
}

/// The number of the communicator whose object is at an address.
fn communicator_at(by_number: &Layout, address: u64, memory: &TargetMemory) -> Option<u64> {
    let handle = memory.word(address)? & 0xffff_ffff;
    let is_there = object(by_number, &by_number.communicators.objects, handle, memory) == Some(address);
    is_there.then_some(handle)
}
