//! What is written down of a call, and of what it has done to requests, for the course of events.

use super::{
    call::{Arguments, Call},
    operation::is_followed,
    partner::{Partners, completed_source},
    tables::What,
};
use crate::{
    Amount, Descriptor, Layout, Request,
    descriptor::{NONE, amount, completion, flags, frees},
    flow::peer,
    layout::{Memory, capability, status_bytes, status_cancelled, status_source, status_tag},
    request::{FAILED, state},
    trace::{CallRecord, ChangeRecord, CommonLine, NO_TAG, change, root},
};

/// What was found out about a call that has returned, besides what its arguments say.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    pub tid: u32,
    pub number: u32,
    pub function: u32,
    pub started_ns: u64,
    pub ns: u64,
    pub flow_plus_1: u32,
    pub call_site: u64,
    /// Number of its communicator.
    pub communicator: u32,
    pub partners: Partners,
    pub sent: Amount,
    pub received: Amount,
    pub result: i32,
    /// Handle of the window or file that it has freed, as it was at the entry; 0: none.
    pub freed: u64,
}

/// What is written down of a call.
#[inline(always)]
pub fn record<A: Arguments>(call: &Call<'_, A>, found: &Found) -> CallRecord {
    let tells = tells(call, found.result);
    let source = source(call, found.partners.source, tells);
    let told = Told {
        destination: destination(call, found.partners.destination),
        source,
        receive_tag: receive_tag(call, source, tells),
        request: given_back(call, found.result, tells),
        object: object(call, found.freed, found.result),
    };
    record_of(call, found, &told)
}

/// What the call itself tells. Found out piece by piece, each for itself: BPF's verifier would go through all that follows once for each way
/// through all of them.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    pub destination: i32,
    pub source: i32,
    pub receive_tag: i32,
    pub request: u64,
    pub object: u64,
}

/// The same where that has been found out.
#[inline(always)]
pub fn record_of<A: Arguments>(call: &Call<'_, A>, found: &Found, told: &Told) -> CallRecord {
    let descriptor = call.descriptor;
    CallRecord {
        tid: found.tid,
        number: found.number,
        function: found.function as u16,
        started_ns: found.started_ns,
        ns: found.ns,
        flow_plus_1: found.flow_plus_1,
        call_site: found.call_site,
        communicator: found.communicator,
        destination: told.destination,
        source: told.source,
        send_tag: given_send_tag(call),
        receive_tag: told.receive_tag,
        sent: found.sent,
        received: found.received,
        request: told.request,
        object: told.object,
        result: found.result,
        any_source: descriptor.source != NONE && call.layout.partner(call.int(descriptor.source)) == peer::ANY,
        any_tag: is_any_tag(call),
        lacks_changes: false,
    }
}

/// What is the same in the lines of calls that are the same as this one and succeed; its partners and amounts are in `found`.
/// `gives_request`: they may give one back. `None`: more is to be told of them than their arguments say, or some need a line more.
#[inline(always)]
pub fn common_line<A: Arguments>(call: &Call<'_, A>, found: &Found, gives_request: bool) -> Option<CommonLine> {
    if !is_told_by_arguments(call.descriptor) {
        return None;
    }
    let told = Told {
        destination: destination(call, found.partners.destination),
        source: found.partners.source,
        receive_tag: NO_TAG,
        request: 0,
        object: 0,
    };
    CommonLine::of(&record_of(call, found, &told), gives_request)
}

/// Whether there is something about a call that its arguments do not say: from whom something has come, with which tag, or which message it
/// has found. Most calls have nothing of that. `given`: from whom, as far as that was found out.
#[inline(always)]
pub fn has_more_to_tell<A: Arguments>(call: &Call<'_, A>, given: i32) -> bool {
    let descriptor = call.descriptor;
    descriptor.message != NONE || (given == peer::ANY && descriptor.status != NONE) || is_any_tag(call)
}

/// Whether a call with this result says what it was that it has received, or found. For some the process's memory is read, and several of
/// the following ask.
#[inline(always)]
pub fn tells<A: Arguments>(call: &Call<'_, A>, result: i32) -> bool {
    result == 0 && !call.descriptor.begins_operation() && call.is_complete()
}

/// Whether calls of a function that were given a wildcard may tell by a status what they have found, besides those which are told by it how
/// much they have received.
#[inline(always)]
pub const fn may_tell(descriptor: &Descriptor) -> bool {
    descriptor.status != NONE && descriptor.receive_amount & amount::KIND != amount::STATUS
}

/// Whom a call has received from; `given`: as far as that was found out.
#[inline(always)]
pub fn source<A: Arguments>(call: &Call<'_, A>, given: i32, tells: bool) -> i32 {
    if tells { completed_source(call, given) } else { given }
}

/// Whether a call was given `MPI_ANY_TAG`.
#[inline(always)]
pub fn is_any_tag<A: Arguments>(call: &Call<'_, A>) -> bool {
    let is_any = given_receive_tag(call) == call.layout.constants.any_tag && call.layout.knows(capability::CONSTANTS);
    is_any && call.descriptor.receive_tag != NONE
}

/// The tag of what a call sends.
#[inline(always)]
pub fn given_send_tag<A: Arguments>(call: &Call<'_, A>) -> i32 {
    tag(call, call.descriptor.send_tag)
}

/// The tag of what a call receives, as it was given.
#[inline(always)]
pub fn given_receive_tag<A: Arguments>(call: &Call<'_, A>) -> i32 {
    tag(call, call.descriptor.receive_tag)
}

/// With which tag that has come.
#[inline(always)]
pub fn receive_tag<A: Arguments>(call: &Call<'_, A>, source: i32, tells: bool) -> i32 {
    let descriptor = call.descriptor;
    // Whoever receives a message that was matched before is not given its tag.
    if !is_any_tag(call) && (descriptor.receive_tag != NONE || descriptor.message == NONE) {
        return given_receive_tag(call);
    }
    if source != peer::NULL && tells { tag_of(call.layout, call.status(0), &call.arguments) } else { NO_TAG }
}

/// [`CallRecord::destination`]; `given`: the partner.
#[inline(always)]
pub fn destination<A: Arguments>(call: &Call<'_, A>, given: i32) -> i32 {
    if call.descriptor.root == NONE { given } else { root_of(call) }
}

#[inline(always)]
fn tag<A: Arguments>(call: &Call<'_, A>, position: u8) -> i32 {
    if position == NONE { NO_TAG } else { call.int(position) }
}

/// The root that a call was given, as [`CallRecord::destination`] has it.
#[inline(always)]
fn root_of<A: Arguments>(call: &Call<'_, A>) -> i32 {
    let given = call.int(call.descriptor.root);
    if call.layout.knows(capability::CONSTANTS) && given == call.layout.constants.root {
        root::OWN
    } else {
        call.layout.partner(given)
    }
}

/// The tag that a status tells; 0 for its address: none does.
#[inline(always)]
fn tag_of<M: Memory>(layout: &Layout, status: u64, memory: &M) -> i32 {
    if status == 0 {
        return NO_TAG;
    }
    match status_tag(layout, status, memory) {
        Some(tag) if tag >= 0 => tag,
        _ => NO_TAG,
    }
}

/// Handle of the request of the operation that a call has begun, or of the message that it has found for whoever has that; 0: one that many
/// share, or none.
#[inline(always)]
pub fn given_back<A: Arguments>(call: &Call<'_, A>, result: i32, tells: bool) -> u64 {
    let descriptor = call.descriptor;
    if descriptor.completion == completion::MATCHES {
        let constants = &call.layout.constants;
        return match call.handle_at(call.word(descriptor.message)) {
            Some(handle) if tells && handle != constants.message_no_proc && handle != constants.message_null => handle,
            _ => 0,
        };
    }
    if result != 0 || !descriptor.begins_operation() {
        return 0;
    }
    if descriptor.completion == completion::BEGINS {
        return call.word(descriptor.file);
    }
    match call.handle_at(call.word(descriptor.request)) {
        Some(handle) if is_followed(call.layout, handle) => handle,
        _ => 0,
    }
}

/// Whether calls of a function may give a handle back.
#[inline(always)]
pub const fn may_give_back(descriptor: &Descriptor) -> bool {
    descriptor.completion == completion::MATCHES || descriptor.begins_operation()
}

/// Whether calls of a function may be about a window or a file.
#[inline(always)]
pub const fn concerns_object(descriptor: &Descriptor) -> bool {
    // All are NONE only if all their bits are set.
    descriptor.window & descriptor.file & descriptor.new_scope != NONE || frees_object(descriptor)
}

/// Whether of successful calls of a function nothing is told that is in the process's memory, besides what they tell of what they have
/// received or found and the request that they may have begun.
#[inline(always)]
const fn is_told_by_arguments(descriptor: &Descriptor) -> bool {
    descriptor.completion != completion::READIES
        && descriptor.completion != completion::MATCHES
        && !concerns_object(descriptor)
}

/// Handle of the window or file that a call is about: which it was given, has made or has freed.
#[inline(always)]
pub fn object<A: Arguments>(call: &Call<'_, A>, freed: u64, result: i32) -> u64 {
    let descriptor = call.descriptor;
    if descriptor.window != NONE {
        call.handle(descriptor.window)
    } else if descriptor.file != NONE {
        // Files are pointers in every implementation.
        call.word(descriptor.file)
    } else if descriptor.new_scope != NONE && result == 0 {
        let address = call.word(descriptor.new_scope);
        let made =
            if descriptor.new_scope_is_file != 0 { call.arguments.word(address) } else { call.handle_at(address) };
        made.unwrap_or(0)
    } else if frees_object(descriptor) {
        freed
    } else {
        0
    }
}

/// Whether a function frees a window or a file, whose handle is at its first argument's address when it is entered.
#[inline(always)]
pub const fn frees_object(descriptor: &Descriptor) -> bool {
    descriptor.frees == frees::WINDOW || descriptor.frees == frees::FILE
}

/// Whether a call has only asked, in vain, whether something has happened.
#[inline(always)]
pub fn found_nothing<A: Arguments>(call: &Call<'_, A>, result: i32) -> bool {
    let descriptor = call.descriptor;
    if descriptor.flags & flags::POLLING == 0 || result != 0 {
        return false;
    }
    if descriptor.index_count != NONE {
        return call.int_at(call.word(descriptor.index_count)) == Some(0);
    }
    !call.is_complete()
}

/// What is written down of what a call does to a request. `tid` and `number` are the call's.
#[inline(always)]
pub fn changed<M: Memory>(
    layout: &Layout,
    memory: &M,
    (tid, number): (u32, u32),
    handle: u64,
    request: &Request,
    what: What,
) -> ChangeRecord {
    let kind = kind_of(layout, memory, request, what);
    let status = status_to_ask(kind, what);
    let arrived = arrived(layout, memory, request, status);
    change_of(layout, (tid, number), handle, request, (kind, what), &arrived)
}

/// What the status of a completed operation tells, where it is asked; found out piece by piece, as [`Told`].
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// [`AS_POSTED`], [`UNKNOWN`], or how many.
    pub bytes: u64,
    pub source: i32,
    pub tag: i32,
}

/// What the status at an address tells; 0 for the address: none does.
#[inline(always)]
pub fn arrived<M: Memory>(layout: &Layout, memory: &M, request: &Request, status: u64) -> Arrived {
    Arrived {
        bytes: arrived_bytes(layout, memory, request, status),
        source: arrived_from(layout, memory, request, status),
        tag: arrived_tag(layout, memory, request, status),
    }
}

/// In place of bytes: those that were known when the operation was posted.
pub const AS_POSTED: u64 = u64::MAX;
/// In place of bytes.
pub const UNKNOWN: u64 = u64::MAX - 1;

/// The same where that has been found out.
#[inline(always)]
pub fn change_of(
    layout: &Layout,
    (tid, number): (u32, u32),
    handle: u64,
    request: &Request,
    (kind, what): (u8, What),
    arrived: &Arrived,
) -> ChangeRecord {
    ChangeRecord {
        tid,
        number,
        kind,
        handle,
        epoch: request.epoch(),
        next_epoch: if let What::Starts { next_epoch } = what { next_epoch } else { 0 },
        function: request.function,
        communicator: request.communicator_number,
        destination: request.destination,
        source: arrived.source,
        tag: arrived.tag,
        any_source: is_from_anybody(request),
        any_tag: has_any_tag(layout, request),
        sent: request.sent,
        received: match arrived.bytes {
            AS_POSTED => request.received,
            UNKNOWN => Amount::UNKNOWN,
            bytes => Amount::known(bytes),
        },
    }
}

/// One of [`change`].
#[inline(always)]
pub fn kind_of<M: Memory>(layout: &Layout, memory: &M, request: &Request, what: What) -> u8 {
    match what {
        What::Releases => change::RELEASED,
        What::Readies => change::READY,
        What::Starts { .. } => change::STARTED,
        What::Completes { status: FAILED } => change::FAILED,
        What::Completes { status: 0 } => change::COMPLETED,
        What::Completes { status } => {
            let is_message = request.state & state::TAGGED != 0;
            let is_cancelled = is_message && status_cancelled(layout, status, memory) == Some(true);
            if is_cancelled { change::CANCELLED } else { change::COMPLETED }
        }
    }
}

/// The address of the status that tells what has arrived; 0: none does.
#[inline(always)]
pub const fn status_to_ask(kind: u8, what: What) -> u64 {
    match what {
        What::Completes { status } if kind == change::COMPLETED => status,
        _ => 0,
    }
}

#[inline(always)]
const fn receives(request: &Request) -> bool {
    request.state & state::BY_STATUS != 0
}

#[inline(always)]
const fn is_from_anybody(request: &Request) -> bool {
    receives(request) && request.source == peer::ANY
}

#[inline(always)]
const fn has_any_tag(layout: &Layout, request: &Request) -> bool {
    receives(request) && request.state & state::TAGGED != 0 && request.tag == layout.constants.any_tag
}

/// [`Arrived::bytes`].
#[inline(always)]
pub fn arrived_bytes<M: Memory>(layout: &Layout, memory: &M, request: &Request, status: u64) -> u64 {
    if status == 0 || !receives(request) || request.source == peer::NULL {
        return AS_POSTED;
    }
    status_bytes(layout, status, memory).unwrap_or(UNKNOWN)
}

/// [`Arrived::source`].
#[inline(always)]
pub fn arrived_from<M: Memory>(layout: &Layout, memory: &M, request: &Request, status: u64) -> i32 {
    if status == 0 || !is_from_anybody(request) {
        return request.source;
    }
    match status_source(layout, status, memory) {
        Some(rank) if rank >= 0 => rank,
        _ => peer::UNKNOWN,
    }
}

/// [`Arrived::tag`].
#[inline(always)]
pub fn arrived_tag<M: Memory>(layout: &Layout, memory: &M, request: &Request, status: u64) -> i32 {
    let (is_message, is_any) = (request.state & state::TAGGED != 0, has_any_tag(layout, request));
    // Of a message that was matched before, nobody was given the tag.
    if status != 0 && (is_any || (receives(request) && !is_message && request.source >= 0)) {
        return tag_of(layout, status, memory);
    }
    if is_any || !is_message { NO_TAG } else { request.tag }
}

/// Nothing.
impl Found {
    pub const NOTHING: Self = Self {
        tid: 0,
        number: 0,
        function: 0,
        started_ns: 0,
        ns: 0,
        flow_plus_1: 0,
        call_site: 0,
        communicator: 0,
        partners: Partners { destination: peer::NONE, source: peer::NONE },
        sent: Amount::NOTHING,
        received: Amount::NOTHING,
        result: 0,
        freed: 0,
    };
}
