//! What is written down of a call, and of what it has done to requests, for the course of events.

use super::{
    call::{Arguments, Call},
    operation::is_followed,
    partner::{Partners, completed_source},
    tables::What,
};
use crate::{
    Amount, Descriptor, Layout, Request,
    descriptor::{NONE, completion, flags, frees},
    flow::peer,
    layout::{Memory, capability, status_bytes, status_cancelled, status_source, status_tag},
    request::{FAILED, state},
    trace::{CallRecord, ChangeRecord, NO_TAG, change, root},
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
    let descriptor = call.descriptor;
    let succeeded = found.result == 0;
    let begins = descriptor.begins_operation() && succeeded;
    let any_source = descriptor.source != NONE && call.layout.partner(call.int(descriptor.source)) == peer::ANY;
    // A call that has received something, or found it, says what it was.
    let tells = succeeded && !begins && call.is_complete();
    let source = if tells { completed_source(call, found.partners.source) } else { found.partners.source };
    let given_tag = tag(call, descriptor.receive_tag);
    let any_tag = given_tag == call.layout.constants.any_tag && call.layout.knows(capability::CONSTANTS);
    // Whoever receives a message that was matched before is not given its tag.
    let receive_tag = if any_tag || (descriptor.receive_tag == NONE && descriptor.message != NONE) {
        if tells && source != peer::NULL { tag_of(call.layout, call.status(0), &call.arguments) } else { NO_TAG }
    } else {
        given_tag
    };
    CallRecord {
        tid: found.tid,
        number: found.number,
        function: found.function as u16,
        started_ns: found.started_ns,
        ns: found.ns,
        flow_plus_1: found.flow_plus_1,
        call_site: found.call_site,
        communicator: found.communicator,
        destination: if descriptor.root == NONE { found.partners.destination } else { root_of(call) },
        source,
        send_tag: tag(call, descriptor.send_tag),
        receive_tag,
        sent: found.sent,
        received: found.received,
        request: given_back(call, begins, tells),
        object: object(call, found, succeeded),
        result: found.result,
        any_source,
        any_tag: any_tag && descriptor.receive_tag != NONE,
        lacks_changes: false,
    }
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
fn given_back<A: Arguments>(call: &Call<'_, A>, begins: bool, finds: bool) -> u64 {
    let descriptor = call.descriptor;
    if descriptor.completion == completion::MATCHES {
        let constants = &call.layout.constants;
        return match call.handle_at(call.word(descriptor.message)) {
            Some(handle) if finds && handle != constants.message_no_proc && handle != constants.message_null => handle,
            _ => 0,
        };
    }
    if !begins {
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

/// Handle of the window or file that a call is about: which it was given, has made or has freed.
#[inline(always)]
fn object<A: Arguments>(call: &Call<'_, A>, found: &Found, succeeded: bool) -> u64 {
    let descriptor = call.descriptor;
    if descriptor.window != NONE {
        call.handle(descriptor.window)
    } else if descriptor.file != NONE {
        // Files are pointers in every implementation.
        call.word(descriptor.file)
    } else if descriptor.new_scope != NONE && succeeded {
        let address = call.word(descriptor.new_scope);
        let made =
            if descriptor.new_scope_is_file != 0 { call.arguments.word(address) } else { call.handle_at(address) };
        made.unwrap_or(0)
    } else if frees_object(descriptor) {
        found.freed
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

/// What is written down of that. `tid` and `number` are the call's.
#[inline(always)]
pub fn changed<M: Memory>(
    layout: &Layout,
    memory: &M,
    (tid, number): (u32, u32),
    handle: u64,
    request: &Request,
    what: What,
) -> ChangeRecord {
    let receives = request.state & state::BY_STATUS != 0;
    let is_message = request.state & state::TAGGED != 0;
    let any_source = receives && request.source == peer::ANY;
    let any_tag = receives && is_message && request.tag == layout.constants.any_tag;
    let mut record = ChangeRecord {
        tid,
        number,
        kind: change::RELEASED,
        handle,
        epoch: request.epoch(),
        next_epoch: 0,
        function: request.function,
        communicator: request.communicator_number,
        destination: request.destination,
        source: request.source,
        tag: if any_tag || !is_message { NO_TAG } else { request.tag },
        any_source,
        any_tag,
        sent: request.sent,
        received: request.received,
    };
    match what {
        What::Releases => {}
        What::Readies => record.kind = change::READY,
        What::Starts { next_epoch } => {
            record.kind = change::STARTED;
            record.next_epoch = next_epoch;
        }
        What::Completes { status: FAILED } => record.kind = change::FAILED,
        What::Completes { status: 0 } => record.kind = change::COMPLETED,
        What::Completes { status } => {
            record.kind = change::COMPLETED;
            if is_message && status_cancelled(layout, status, memory) == Some(true) {
                record.kind = change::CANCELLED;
                return record;
            }
            if receives && request.source != peer::NULL {
                record.received = status_bytes(layout, status, memory).map_or(Amount::UNKNOWN, Amount::known);
            }
            if any_source {
                record.source = match status_source(layout, status, memory) {
                    Some(rank) if rank >= 0 => rank,
                    _ => peer::UNKNOWN,
                };
            }
            // Of a message that was matched before, nobody was given the tag.
            if any_tag || (receives && !is_message && request.source >= 0) {
                record.tag = tag_of(layout, status, memory);
            }
        }
    }
    record
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
