//! What a completed call means: how much data it moved, with whom, over which communicator, called from where.
//!
//! The rules are those of the BPF programs, by the same table of functions; the library itself is asked about its objects.

mod amount;
mod arguments;
mod cache_key;
mod call_cache;
mod communicator;
mod datatype;
mod flow;
mod handles;
mod library;
mod origins;
mod requests;
mod row;
mod scope;
mod sessions;
mod store;
mod tables;
mod topology;

use mpiprobe_common::{
    Amount, Descriptor, FunctionStats, Layout, Volume,
    descriptor::{NONE, completion},
    request::certainty,
    rules::{
        self,
        counting::{self, Moved},
        handles::{self as handles_rules, Release},
        partner::{Partners, completed_source},
        recording::{self, Found, found_nothing},
    },
    stats::size_bucket,
    trace::{NO_TAG, OwnLine},
};

use crate::{
    entry::{DESCRIPTORS, Entry, Frame, SESSION_BEGINS, SESSION_ENDS},
    layers,
    thread::Local,
    trace,
};
pub(crate) use arguments::Own;
use arguments::{Arguments, handle_at};
pub(crate) use call_cache::CallCache;
use call_cache::{SameLine, look_up};
pub(crate) use datatype::Sizes;
use library::Library;
pub(crate) use library::find as find_library;
pub(crate) use requests::Given;
use scope::Over;
use tables::OfThread;

/// A call that has returned.
#[allow(clippy::struct_field_names, reason = "a call site is called so")]
struct Call<'a> {
    local: *mut Local,
    library: &'a Library,
    descriptor: &'a Descriptor,
    arguments: Arguments,
    function: u32,
    /// Return address, of the program's code as far as it is known.
    call_site: u64,
    result: i32,
    /// The statistics of its function; null unless the user wants it to be counted.
    stats: *mut FunctionStats,
    /// Duration, ns.
    ns: u64,
    started_ns: u64,
    returned_ns: u64,
    /// It is written down.
    is_traced: bool,
}

/// What was found out about it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Traffic {
    /// Handle; 0: none.
    communicator: u64,
    /// Number.
    number: u32,
    partners: Partners,
    /// Indices plus one of the flows: of the one partner or the one sent to, and of another one received from; 0: none.
    flow_plus_1: u32,
    second_flow_plus_1: u32,
    sent: Amount,
    received: Amount,
}

impl Call<'_> {
    /// As the rules see it.
    #[inline]
    fn given(&self) -> rules::call::Call<'_, Arguments> {
        let (descriptor, layout) = (self.descriptor, &self.library.layout);
        rules::call::Call { descriptor, layout, arguments: self.arguments }
    }

    /// Those of its thread.
    #[inline]
    fn tables(&self) -> OfThread<'_> {
        // SAFETY: the thread's own.
        unsafe { OfThread::new(self.local, self.library, self.returned_ns, self.is_traced) }
    }
}

/// The argument of a call at a position that its function has, as the program has passed it.
///
/// # Safety
/// `frame` must be the trampoline's.
pub(crate) unsafe fn argument(frame: *mut Frame, position: u8) -> u64 {
    Arguments(frame).given(position)
}

/// What is known of the library without looking into its objects.
#[inline]
pub(crate) fn known_layout() -> Option<&'static Layout> {
    library::known().map(|library| &library.layout)
}

/// Whether a function has to be seen for the sake of others, whether or not the user wants it: what they mean depends on it, or it makes
/// calls inside MPI, as access to files does in implementations that are built on MPI.
pub(crate) fn needs(function: u32) -> bool {
    DESCRIPTORS.get(function as usize).is_some_and(|descriptor| {
        looks_at_entry(descriptor)
            || descriptor.new_scope & descriptor.new_communicator & descriptor.communicator_name != NONE
            || descriptor.completion == completion::ENDS
    }) || matches!(function, SESSION_BEGINS | SESSION_ENDS)
        || Entry::new(function).is_some_and(|entry| entry.name().to_bytes().starts_with(b"MPI_File_"))
}

#[inline]
fn looks_at_entry(descriptor: &Descriptor) -> bool {
    handles_rules::looked_at(descriptor) != NONE || descriptor.releases_handle()
}

/// A function is entered: what will not be there any more when it returns.
///
/// # Safety
/// `local` must be the thread's own, `frame` the trampoline's.
#[inline]
pub(crate) unsafe fn at_entry(local: *mut Local, frame: *mut Frame, function: u32) {
    if function == SESSION_ENDS {
        sessions::end(Arguments(frame));
    }
    if let Some(descriptor) = DESCRIPTORS.get(function as usize)
        && looks_at_entry(descriptor)
        && let Some(library) = library::known()
    {
        // SAFETY: by contract.
        unsafe { look_ahead(local, library, descriptor, Arguments(frame)) }
    }
}

/// A function is entered that is not to be counted, while counting is off or inside another call: handles that it is given may mean other
/// objects later all the same.
///
/// # Safety
/// As [`at_entry`].
#[inline]
pub(crate) unsafe fn at_uncounted_entry(local: *mut Local, frame: *mut Frame, function: u32) {
    if function == SESSION_ENDS {
        sessions::end(Arguments(frame));
    }
    if let Some(descriptor) = DESCRIPTORS.get(function as usize)
        && (descriptor.releases_handle() || handles_rules::completes_all(descriptor))
        && let Some(library) = library::known()
    {
        let arguments = Arguments(frame);
        match handles_rules::release(descriptor) {
            // SAFETY: by contract.
            Release::Request => unsafe { requests::give_up(local, library, arguments.word(descriptor.request)) },
            // SAFETY: by contract.
            Release::Nothing if unsafe { !completes_requests(local) } => {
                let (address, count) = handles_rules::completed(descriptor, arguments.word(0), arguments.word(1));
                // SAFETY: by contract.
                unsafe { requests::complete_unseen(local, library, address, count) }
            }
            other => look_at_freed(library, other, arguments),
        }
    }
}

/// Whether the thread's open call completes requests itself: then one inside it may be the library's, for the same requests.
///
/// # Safety
/// `local` must be the thread's own.
unsafe fn completes_requests(local: *mut Local) -> bool {
    // SAFETY: by contract.
    let open = unsafe { (*(*local).state).open.function_plus_1 };
    let descriptor = open.checked_sub(1).and_then(|function| DESCRIPTORS.get(function as usize));
    descriptor.is_some_and(Descriptor::settles_requests)
}

/// The handle at the address in the first argument means another object from now on.
fn look_at_freed(library: &Library, what: Release, arguments: Arguments) {
    match what {
        Release::Communicator => {
            if let Some(handle) = handle_at(&library.layout, arguments.word(0)) {
                communicator::forget(handle);
            }
        }
        Release::Window | Release::File => scope::forget(library, arguments.word(0), what == Release::File),
        Release::Datatype => communicator::begin_epoch(),
        Release::Nothing | Release::Request => {}
    }
}

unsafe fn look_ahead(local: *mut Local, library: &Library, descriptor: &Descriptor, arguments: Arguments) {
    let release = handles_rules::release(descriptor);
    if recording::frees_object(descriptor) {
        // SAFETY: by contract.
        unsafe { requests::remember_freed(local, scope::handle(library, arguments.word(0), release == Release::File)) };
    }
    look_at_freed(library, release, arguments);
    let position = handles_rules::looked_at(descriptor);
    if position != NONE {
        // SAFETY: by contract.
        unsafe {
            requests::forget_given(local);
            requests::remember(&raw mut (*local).given, library, descriptor, arguments, position);
            if release == Release::Request {
                requests::take_given_up(local, library);
            }
        }
    }
}

/// A call has returned, by the trampoline of `frame`.
///
/// # Safety
/// As [`at_entry`]; `stats` must be the thread's entry of the function, or null.
#[inline]
pub(crate) unsafe fn account(
    local: *mut Local,
    frame: *mut Frame,
    function: u32,
    ns: u64,
    stats: *mut FunctionStats,
    is_traced: bool,
) {
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
            call_site: layers::user_site(frame),
            result: (*frame).result as i32,
            stats,
            ns,
            started_ns,
            returned_ns: started_ns + ns,
            is_traced,
        }
    };
    // SAFETY: by contract.
    let unwritten = unsafe { (*(*local).state).unwritten.changes };
    // A call that failed has moved nothing.
    let succeeded = call.result == MPI_SUCCESS;
    let mut own_flow = 0;
    let mut told = None;
    if !stats.is_null() {
        let (traffic, same) = if succeeded { look_up(&call) } else { (attribute(&call, false), None) };
        if is_traced {
            told = Some((traffic, same));
        }
        own_flow = traffic.flow_plus_1;
        count(&call, &traffic, succeeded);
        if succeeded && descriptor.begins_operation() {
            requests::post(&call, &traffic);
        } else if succeeded && descriptor.completion == completion::MATCHES {
            requests::matched(&call, &traffic);
        }
    }
    if handles_rules::receives_message(descriptor) && (stats.is_null() || !succeeded) {
        requests::drop_message(&call);
    }
    if descriptor.settles_requests() || descriptor.completion == completion::ENDS {
        requests::settle(&call, own_flow);
    }
    if succeeded && descriptor.new_scope & descriptor.new_communicator & descriptor.communicator_name != NONE {
        note_objects(&call);
    }
    if function == SESSION_BEGINS && succeeded {
        sessions::begin(call.arguments);
    }
    if is_traced {
        if succeeded && descriptor.completion == completion::READIES {
            requests::ready(&call);
        }
        match &told {
            Some((traffic, Some(same))) if write_same(&call, traffic, same, unwritten) => {}
            _ => write_down(&call, told.as_ref().map(|(traffic, _)| traffic), unwritten),
        }
    }
}

/// The completed call, which is the same as one before, goes to the thread's ring; whether that is all, and there is room enough for it.
/// `unwritten`: how many changes had not been written before.
#[inline]
fn write_same(call: &Call<'_>, traffic: &Traffic, same: &SameLine, unwritten: u64) -> bool {
    let given = call.given();
    let any_tag = recording::is_any_tag(&given);
    let Some(common) = same.common(any_tag, traffic) else { return false };
    // SAFETY: the thread's own.
    unsafe {
        let state = (*call.local).state;
        let own = || OwnLine {
            tid: (*state).id as u32,
            // It is among them.
            number: (*state).numbered_calls().wrapping_sub(1) as u32,
            started_ns: call.started_ns,
            ns: call.ns,
            send_tag: recording::given_send_tag(&given),
            receive_tag: if any_tag { NO_TAG } else { recording::given_receive_tag(&given) },
            received: traffic.received,
            request: recording::given_back(&given, call.result, false),
            any_tag,
            lacks_changes: (*state).unwritten.changes != unwritten,
        };
        trace::same_call(call.local, common, own)
    }
}

/// The completed call goes to the thread's ring. `traffic`: what was found out about it; `unwritten`: how many changes had not been written
/// before.
#[inline(never)]
fn write_down(call: &Call<'_>, traffic: Option<&Traffic>, unwritten: u64) {
    let given = call.given();
    let found = match traffic {
        Some(traffic) => found(call, traffic),
        None => Found { partners: Partners::given(&given), ..found_untold(call) },
    };
    let record = recording::record(&given, &found);
    // SAFETY: the thread's own.
    unsafe { trace::call(call.local, &record, || found_nothing(&given, call.result), unwritten) };
}

/// What was found out about a call, for who writes it down.
fn found(call: &Call<'_>, traffic: &Traffic) -> Found {
    let &Traffic { flow_plus_1, number: communicator, partners, sent, received, .. } = traffic;
    Found { flow_plus_1, communicator, partners, sent, received, ..found_untold(call) }
}

/// The same where it was not asked what the call has moved.
fn found_untold(call: &Call<'_>) -> Found {
    // SAFETY: the thread's own.
    let (state, freed) = unsafe { (&*(*call.local).state, (*call.local).given.freed()) };
    Found {
        tid: state.id as u32,
        // It is among them.
        number: state.numbered_calls().wrapping_sub(1) as u32,
        function: call.function,
        started_ns: call.started_ns,
        ns: call.ns,
        call_site: call.call_site,
        result: call.result,
        freed,
        ..Found::NOTHING
    }
}

/// The completed call has made or named something that is called by a handle.
#[cold]
fn note_objects(call: &Call<'_>) {
    if call.descriptor.new_scope != NONE {
        scope::made(call);
    }
    if call.descriptor.new_communicator != NONE {
        communicator::made(call);
    }
    if call.descriptor.communicator_name != NONE {
        communicator::named(call);
    }
}

const MPI_SUCCESS: i32 = 0;

/// Finds the flows of a call, and what it has moved.
#[cold]
fn attribute(call: &Call<'_>, succeeded: bool) -> Traffic {
    let descriptor = call.descriptor;
    let mut partners = Partners::given(&call.given());
    let mut over = Over::given(call);
    let receives = descriptor.receive_amount != 0 && succeeded;
    if receives && handles_rules::receives_message(descriptor) {
        let sender = requests::take_message(call);
        (partners.source, over) = (sender.source, Over::of(sender));
    }
    if receives {
        partners.source = completed_source(&call.given(), partners.source);
    }
    // A call that failed may have got a handle of nothing, of which the library must not be asked.
    let known = if succeeded { over } else { over.if_known(call.library) };
    let flow_plus_1 = flow::find(call, known, partners.first());
    let second_flow_plus_1 = if partners.are_two() { flow::find(call, known, partners.source) } else { 0 };
    let number = flow::communicator_of(flow_plus_1);
    let (sent, received) =
        if succeeded { amount::find(call, number, partners) } else { (Amount::NOTHING, Amount::NOTHING) };
    Traffic {
        communicator: over.communicator().unwrap_or(0),
        number,
        partners,
        flow_plus_1,
        second_flow_plus_1,
        sent,
        received,
    }
}

/// Adds what a call has moved to the statistics of its function and to its flows.
#[inline]
fn count(call: &Call<'_>, traffic: &Traffic, succeeded: bool) {
    let descriptor = call.descriptor;
    let begins = succeeded && descriptor.begins_operation();
    let moved = Moved {
        flow_plus_1: traffic.flow_plus_1,
        second_flow_plus_1: traffic.second_flow_plus_1,
        sent: traffic.sent,
        received: traffic.received,
    };
    counting::account(&mut call.tables(), descriptor, begins, call.stats, call.ns, &moved);
}

/// Adds bytes that have left to a function's statistics and one of the thread's flows.
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

#[inline]
fn add_to_volume(volume: &mut Volume, bytes: u64) {
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
