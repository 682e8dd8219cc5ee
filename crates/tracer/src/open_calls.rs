//! Calls that had not returned when the recording, or their process, ended, and those that had begun before: what their arguments say.

use std::cell::Cell;

use mpiprobe_common::{
    Amount, Layout,
    descriptor::{NONE, amount},
    layout::Memory,
    rules::{
        call::{Arguments, Call},
        partner::Partners,
        recording::{Found, record},
    },
    trace::CallRecord,
};
use mpiprobe_functions::FunctionId;
use mpiprobe_observe::{ArgumentWords, CallBefore, ThreadSnapshot};

use crate::operation::descriptor;

/// Arguments as far as they are known, without the memory of their process.
#[derive(Clone, Copy)]
struct Words<'a> {
    known: &'a [Option<u64>],
    /// One was asked for that is not known.
    lacks: &'a Cell<bool>,
}

impl Memory for Words<'_> {
    fn word(&self, _address: u64) -> Option<u64> {
        None
    }
}

impl Arguments for Words<'_> {
    fn argument(&self, position: u8) -> u64 {
        let known = self.known.get(usize::from(position)).copied().flatten();
        if known.is_none() {
            self.lacks.set(true);
        }
        known.unwrap_or(0)
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

/// What is known of a call that has not returned, or of which nobody has seen how it ended.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) function: FunctionId,
    pub(crate) record: CallRecord,
    /// Handle of its communicator; 0: none, or not known.
    pub(crate) communicator: u64,
}

impl Known {
    pub(crate) fn of_open(open: &UnfinishedCall, layout: &Layout) -> Option<Self> {
        let words: Vec<Option<u64>> = open.arguments.known().iter().copied().map(Some).collect();
        Self::new(open.function, open.started_ns, &words, layout)
    }

    pub(crate) fn of_earlier(call: &CallBefore, layout: &Layout) -> Option<Self> {
        Self::new(call.function, call.since_ns, &call.words, layout)
    }

    fn new(function: u32, started_ns: u64, words: &[Option<u64>], layout: &Layout) -> Option<Self> {
        let number = u16::try_from(function).ok()?;
        let function = FunctionId::from_index(number)?;
        let descriptor = descriptor(function);
        let lacks = Cell::new(false);
        let call = Call { descriptor, layout, arguments: Words { known: words, lacks: &lacks } };
        let moves = |kind: u8| if kind & amount::KIND == amount::NOTHING { Amount::NOTHING } else { Amount::UNKNOWN };
        let found = Found {
            function: number.into(),
            started_ns,
            // It has not succeeded (yet): what it was given is all that is known.
            result: -1,
            partners: Partners::given(&call),
            sent: moves(descriptor.send_amount),
            received: moves(descriptor.receive_amount),
            ..Found::NOTHING
        };
        let communicator = if descriptor.communicator == NONE { 0 } else { call.handle(descriptor.communicator) };
        let record = record(&call, &found);
        if lacks.get() {
            let record = CallRecord { function: number, started_ns, ..CallRecord::NONE };
            return Some(Self { function, record, communicator: 0 });
        }
        Some(Self { function, record, communicator })
    }
}
