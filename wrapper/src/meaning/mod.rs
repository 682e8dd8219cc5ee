//! What a completed call means: how much data it moved, with whom, over which communicator, called from where.
//!
//! The rules are those of the BPF programs, by the same table of functions; the library itself is asked about its objects.

mod amount;
mod arguments;
mod communicator;
mod datatype;
mod decisive;
mod flow;
mod handles;
mod library;
mod recall;
mod requests;
mod row;
mod scope;
mod store;
mod topology;

use mpiprobe_common::{
    Amount, Descriptor, FunctionStats, Volume,
    descriptor::{NONE, completion, frees},
    flow::peer,
    layout::status_partner,
    request::{certainty, receiving},
    rules::counting,
    stats::size_bucket,
};

use crate::{
    entry::{DESCRIPTORS, Frame},
    statistics,
    thread::Local,
};
use arguments::{Arguments, Own, handle_at};
pub(crate) use datatype::Sizes;
use library::Library;
pub(crate) use library::find as find_library;
pub(crate) use recall::Recalled;
use recall::recall;
pub(crate) use requests::Given;
use scope::Over;

/// A call that has returned.
#[allow(clippy::struct_field_names, reason = "a call site is called so")]
struct Call<'a> {
    local: *mut Local,
    library: &'a Library,
    descriptor: &'a Descriptor,
    arguments: Arguments,
    function: u32,
    /// Return address.
    call_site: u64,
    result: i32,
    /// Whether the user wants the function to be counted.
    is_counted: bool,
    /// Duration, ns.
    ns: u64,
    started_ns: u64,
    returned_ns: u64,
}

/// What was found out about it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Traffic {
    /// Handle; 0: none.
    communicator: u64,
    /// Number.
    number: u32,
    /// The rank sent to and the one received from, as given; or one of [`peer`].
    destination: i32,
    source: i32,
    /// Indices plus one of the flows: of the one partner or the one sent to, and of another one received from; 0: none.
    flow_plus_1: u32,
    second_flow_plus_1: u32,
    sent: Amount,
    received: Amount,
}

impl Traffic {
    /// The flow of what arrives.
    fn receiving(&self) -> u32 {
        receiving(self.flow_plus_1, self.second_flow_plus_1)
    }
}

/// The argument of a call at a position that its function has.
///
/// # Safety
/// `frame` must be the trampoline's.
pub(crate) unsafe fn argument(frame: *mut Frame, position: u8) -> u64 {
    Arguments(frame).word(position)
}

/// Whether a function has to be seen for the sake of others, whether or not the user wants it.
pub(crate) fn needs(function: u32) -> bool {
    DESCRIPTORS.get(function as usize).is_some_and(|descriptor| {
        looks_at_entry(descriptor)
            || descriptor.new_scope & descriptor.new_communicator != NONE
            || descriptor.completion == completion::ENDS
    })
}

#[inline]
fn looks_at_entry(descriptor: &Descriptor) -> bool {
    descriptor.settles_requests()
        || (descriptor.message != NONE && descriptor.receive_amount != 0)
        || descriptor.releases_handle()
}

/// A function is entered: what will not be there any more when it returns.
///
/// # Safety
/// `local` must be the thread's own, `frame` the trampoline's.
#[inline]
pub(crate) unsafe fn at_entry(local: *mut Local, frame: *mut Frame, function: u32) {
    if let Some(descriptor) = DESCRIPTORS.get(function as usize)
        && looks_at_entry(descriptor)
        && let Some(library) = library::known()
    {
        // SAFETY: by contract.
        unsafe { look_ahead(local, library, descriptor, Arguments(frame)) }
    }
}

/// A function is entered that is not to be counted, while counting is off or inside another call: its handle may mean another object
/// later all the same.
///
/// # Safety
/// As [`at_entry`].
#[inline]
pub(crate) unsafe fn at_uncounted_entry(local: *mut Local, frame: *mut Frame, function: u32) {
    if let Some(descriptor) = DESCRIPTORS.get(function as usize)
        && descriptor.releases_handle()
        && let Some(library) = library::known()
    {
        let arguments = Arguments(frame);
        if descriptor.completion == completion::FREES {
            requests::give_up(local, library, arguments.word(descriptor.request));
        } else {
            look_at_freed(library, descriptor, arguments);
        }
    }
}

/// Of a function that frees something.
fn look_at_freed(library: &Library, descriptor: &Descriptor, arguments: Arguments) {
    match descriptor.frees {
        frees::COMMUNICATOR => {
            if let Some(handle) = handle_at(&library.layout, arguments.word(0)) {
                communicator::forget(handle);
            }
        }
        frees::WINDOW | frees::FILE => scope::forget(library, arguments, descriptor.frees == frees::FILE),
        _ => communicator::begin_epoch(),
    }
}

unsafe fn look_ahead(local: *mut Local, library: &Library, descriptor: &Descriptor, arguments: Arguments) {
    if descriptor.frees == frees::NOTHING {
        // SAFETY: by contract.
        unsafe {
            requests::forget_given(local);
            requests::remember(&raw mut (*local).given, library, descriptor, arguments);
        }
    } else {
        look_at_freed(library, descriptor, arguments);
    }
}

/// A call has returned, by the trampoline of `frame`.
///
/// # Safety
/// As [`at_entry`]; `stats` must be the thread's entry of the function, or null.
#[inline]
pub(crate) unsafe fn account(local: *mut Local, frame: *mut Frame, function: u32, ns: u64, stats: *mut FunctionStats) {
    /// The calibration's function has no arguments.
    static EMPTY: Descriptor = Descriptor::EMPTY;
    let Some(library) = library::known() else { return };
    let descriptor = DESCRIPTORS.get(function as usize).unwrap_or(&EMPTY);
    // SAFETY: by contract.
    let call = unsafe {
        let started_ns = (*(*local).state).open.started_ns;
        Call {
            local,
            library,
            descriptor,
            arguments: Arguments(frame),
            function,
            call_site: (*frame).return_address,
            result: (*frame).result as i32,
            is_counted: !stats.is_null(),
            ns,
            started_ns,
            returned_ns: started_ns + ns,
        }
    };
    // A call that failed has moved nothing.
    let succeeded = call.result == MPI_SUCCESS;
    let mut own_flow = 0;
    if !stats.is_null() {
        let traffic = if succeeded { recall(&call) } else { attribute(&call, false) };
        own_flow = traffic.flow_plus_1;
        count(&call, &traffic, stats, succeeded);
        if succeeded && descriptor.begins_operation() {
            requests::post(&call, &traffic);
        } else if succeeded && descriptor.completion == completion::MATCHES {
            requests::matched(&call, &traffic);
        }
    }
    if descriptor.message != NONE && descriptor.receive_amount != 0 && (stats.is_null() || !succeeded) {
        requests::drop_message(&call);
    }
    if descriptor.settles_requests() || descriptor.completion == completion::ENDS {
        requests::settle(&call, own_flow);
    }
    if succeeded && descriptor.new_scope != NONE {
        scope::made(&call);
    }
    if succeeded && descriptor.new_communicator != NONE {
        communicator::made(&call);
    }
}

const MPI_SUCCESS: i32 = 0;

/// Finds the flows of a call, and what it has moved.
#[cold]
fn attribute(call: &Call<'_>, succeeded: bool) -> Traffic {
    let descriptor = call.descriptor;
    let destination = partner(call, descriptor.destination);
    let mut source = partner(call, descriptor.source);
    let mut over = Over::given(call);
    let receives = descriptor.receive_amount != 0 && succeeded;
    if receives && descriptor.message != NONE {
        let (from, communicator) = requests::take_message(call);
        (source, over) = (from, communicator.map_or(Over::Nothing, Over::Communicator));
    }
    if receives {
        source = completed_source(call, source);
    }
    // A call that failed may have got a handle of nothing.
    let known = if succeeded { over } else { Over::Nothing };
    let first = if destination == peer::NONE { source } else { destination };
    let flow_plus_1 = flow::find(call, known, first);
    // With one partner for both it is one flow.
    let is_exchange = destination != peer::NONE && source != peer::NONE && source != destination;
    let second_flow_plus_1 = if is_exchange { flow::find(call, known, source) } else { 0 };
    let number = flow::communicator_of(flow_plus_1);
    let (sent, received) =
        if succeeded { amount::find(call, number, destination, source) } else { (Amount::NOTHING, Amount::NOTHING) };
    Traffic {
        communicator: over.communicator().unwrap_or(0),
        number,
        destination,
        source,
        flow_plus_1,
        second_flow_plus_1,
        sent,
        received,
    }
}

/// Adds what a call has moved to the statistics of its function and to its flows.
#[inline]
fn count(call: &Call<'_>, traffic: &Traffic, stats: *mut FunctionStats, succeeded: bool) {
    let descriptor = call.descriptor;
    let (sends_now, receives_now) = counting::on_return(descriptor, succeeded && descriptor.begins_operation());
    // SAFETY: the thread's own flows, one after the other.
    unsafe {
        if let Some(flow) = flow::mine(traffic.flow_plus_1) {
            flow.calls = flow.calls.wrapping_add(1);
            flow.time_ns = flow.time_ns.wrapping_add(call.ns);
        }
        if let Some(flow) = flow::mine(traffic.second_flow_plus_1) {
            flow.calls = flow.calls.wrapping_add(1);
        }
    }
    let (sent, received) = (traffic.sent, traffic.received);
    if sends_now && sent.is_some() {
        add_sent_to(stats, traffic.flow_plus_1, sent);
    }
    if receives_now && received.is_some() {
        add_received_to(stats, traffic.receiving(), received);
    }
    if (sends_now && sent.certainty == certainty::UNKNOWN) || (receives_now && received.certainty == certainty::UNKNOWN)
    {
        add_unknown(call.local, call.function, traffic.receiving());
    }
}

/// Adds bytes that have left, if that is how much is known, to a function's statistics and one of the thread's flows.
fn add_sent(local: *mut Local, function: u32, flow_plus_1: u32, amount: Amount) {
    if amount.is_some() {
        // SAFETY: the thread's own.
        add_sent_to(unsafe { statistics::of(local, function) }, flow_plus_1, amount);
    }
}

#[inline]
fn add_sent_to(stats: *mut FunctionStats, flow_plus_1: u32, amount: Amount) {
    // SAFETY: the thread's own.
    unsafe {
        if let Some(stats) = stats.as_mut() {
            add_to_volume(&mut stats.sent, amount.bytes);
        }
        if let Some(flow) = flow::mine(flow_plus_1) {
            flow.sent += amount.bytes;
        }
    }
}

/// The same of bytes that have arrived.
fn add_received(local: *mut Local, function: u32, flow_plus_1: u32, amount: Amount) {
    if amount.is_some() {
        // SAFETY: the thread's own.
        add_received_to(unsafe { statistics::of(local, function) }, flow_plus_1, amount);
    }
}

#[inline]
fn add_received_to(stats: *mut FunctionStats, flow_plus_1: u32, amount: Amount) {
    let at_most = if amount.certainty == certainty::AT_MOST { amount.bytes } else { 0 };
    // SAFETY: the thread's own.
    unsafe {
        if let Some(stats) = stats.as_mut() {
            add_to_volume(&mut stats.received, amount.bytes);
            stats.received_at_most += at_most;
        }
        if let Some(flow) = flow::mine(flow_plus_1) {
            flow.received += amount.bytes;
            flow.received_at_most += at_most;
        }
    }
}

/// A call or an operation of which it is not known what it has moved.
#[cold]
fn add_unknown(local: *mut Local, function: u32, flow_plus_1: u32) {
    // SAFETY: the thread's own.
    unsafe {
        if let Some(stats) = statistics::of(local, function).as_mut() {
            stats.unknown += 1;
        }
        if let Some(flow) = flow::mine(flow_plus_1) {
            flow.unknown += 1;
        }
    }
}

#[inline]
fn add_to_volume(volume: &mut Volume, bytes: u64) {
    volume.messages += 1;
    volume.bytes += bytes;
    if u64::MAX - bytes > volume.min_complement {
        volume.min_complement = u64::MAX - bytes;
    }
    if bytes > volume.max {
        volume.max = bytes;
    }
    if let Some(messages) = volume.sizes.get_mut(size_bucket(bytes) as usize) {
        *messages += 1;
    }
}

/// The rank at `position`: as given, or one of [`peer`].
fn partner(call: &Call<'_>, position: u8) -> i32 {
    if position == NONE { peer::NONE } else { call.library.layout.partner(call.arguments.int(position)) }
}

/// Of a completed receive: who it was, if the status tells of one from anybody.
fn completed_source(call: &Call<'_>, posted: i32) -> i32 {
    if posted != peer::ANY || call.descriptor.status == NONE {
        return posted;
    }
    status_partner(&call.library.layout, call.arguments.word(call.descriptor.status), &Own)
}
