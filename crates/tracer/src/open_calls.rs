//! Calls that had not returned when the recording, or their process, ended: what their arguments say.

use mpiprobe_common::{
    Amount, Layout,
    descriptor::{NONE, amount},
    layout::Memory,
    rules::{
        call::{Arguments, Call},
        partner::Partners,
        recording::{Found, record},
    },
    thread::{ARGUMENT_WORDS, REGISTER_ARGUMENTS},
    trace::CallRecord,
};
use mpiprobe_functions::FunctionId;
use mpiprobe_observe::{ArgumentWords, ThreadSnapshot};

use crate::operation::descriptor;

/// Arguments without the memory of their process.
#[derive(Clone, Copy)]
struct Words<'a>(&'a [u64; ARGUMENT_WORDS]);

impl Memory for Words<'_> {
    fn word(&self, _address: u64) -> Option<u64> {
        None
    }
}

impl Arguments for Words<'_> {
    fn argument(&self, position: u8) -> u64 {
        self.0.get(usize::from(position)).copied().unwrap_or(0)
    }
}

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
pub struct UnfinishedCall {
    pub tid: u32,
    /// Function id.
    pub function: u32,
    /// Entry, ns.
    pub started_ns: u64,
    /// When its thread ended inside it, ns; `None`: it lives.
    pub ended_ns: Option<u64>,
    /// Return address.
    pub call_site: Option<u64>,
    pub arguments: ArgumentWords,
}

impl UnfinishedCall {
    /// Of a thread, as it is in its table.
    pub(crate) fn of(thread: &ThreadSnapshot) -> Option<Self> {
        let state = &thread.state;
        Some(Self {
            tid: thread.tid,
            function: state.open_function()?,
            started_ns: state.open.started_ns,
            ended_ns: None,
            call_site: state.call_site(),
            arguments: ArgumentWords::of(state),
        })
    }
}

/// The function of an open call, what is known of the call, and the handle of its communicator (0: none, or not known).
pub(crate) fn open_call(open: &UnfinishedCall, layout: &Layout) -> Option<(FunctionId, CallRecord, u64)> {
    let number = u16::try_from(open.function).ok()?;
    let function = FunctionId::from_index(number)?;
    let descriptor = descriptor(function);
    let needs_stack = usize::from(descriptor.arguments) > REGISTER_ARGUMENTS;
    // It has not succeeded (yet): what it was given is all that is known.
    let found = Found { function: number.into(), started_ns: open.started_ns, result: -1, ..Found::NOTHING };
    if needs_stack && !open.arguments.has_stack {
        let unknown = CallRecord { function: number, started_ns: found.started_ns, ..CallRecord::NONE };
        return Some((function, unknown, 0));
    }
    let call = Call { descriptor, layout, arguments: Words(&open.arguments.words) };
    let moves = |kind: u8| if kind & amount::KIND == amount::NOTHING { Amount::NOTHING } else { Amount::UNKNOWN };
    let found = Found {
        partners: Partners::given(&call),
        sent: moves(descriptor.send_amount),
        received: moves(descriptor.receive_amount),
        ..found
    };
    let handle = if descriptor.communicator == NONE { 0 } else { call.handle(descriptor.communicator) };
    Some((function, record(&call, &found), handle))
}
