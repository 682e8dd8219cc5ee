//! What the calls of one process say, in the order in which it has made them.

use std::sync::Arc;

use hashbrown::HashMap;
use mpiprobe_functions::{Communication, FunctionId, Operation as When, SendMode};
use mpiprobe_trace::{Change, ChangeRow, LocationId, Losses, Part, ProcessId, Row, Shape};

use super::{
    call::{CallAt, Completion, Done, End, Outcome, Sent, Unmatched},
    epochs::EpochCall,
    inbound::{FromOther, Gap, Inbound, Meeting, Met, STILL_OPEN},
    meaning::{Act, ChannelKey, ChannelNames, Joint, Known, Meaning, Message, Side, Step, Stream, learn},
    slab::{Key, Slab},
};
use crate::{
    communication::communication,
    slices::{LocationSlice, Slice},
};

/// Calls of a process that may wait for others who are behind.
const MOST_DEFERRED: usize = 1 << 18;

/// For so long others wait for what a call has waited for, while that is found out, ns.
const MOST_HELD_NS: u64 = 5_000_000_000;

/// One end of an operation of the process.
#[derive(Clone, Copy, Debug)]
enum Open {
    Send(Key),
    Receive {
        key: Key,
        bytes: Option<u64>,
    },
    /// What a probe has found, by its number.
    Probe(u32),
    /// A collective, by the number of the process's call.
    Joint(u64),
}

/// What is behind a request.
#[derive(Clone, Copy, Debug)]
enum Request {
    Message {
        send: Option<Key>,
        receive: Option<Key>,
    },
    Joint(u64),
    /// A partitioned operation: its channel, and when the last part was ready.
    Partitioned {
        channel: Option<(ProcessId, u32)>,
        is_send: bool,
        ready: Option<CallAt>,
        receive: Option<Key>,
    },
}

impl Request {
    /// Whether something is under way until it is complete.
    const fn is_operation(&self) -> bool {
        matches!(self, Self::Joint(_) | Self::Message { send: Some(_), .. } | Self::Message { receive: Some(_), .. })
    }
}

/// Whether a process's calls are recorded: it switches that itself (`MPI_Pcontrol`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counting {
    /// Nothing has been seen of it.
    Unknown,
    On,
    Off {
        since_ns: u64,
    },
}

/// A call that completes something, until it has returned.
#[derive(Clone, Copy, Debug)]
struct Completing {
    call: CallAt,
    waits: bool,
    /// So many of the ends are its.
    ends: u32,
}

#[derive(Clone, Copy, Debug)]
struct Send {
    posted: CallAt,
    to: ProcessId,
    /// The number of its channel there.
    channel: u32,
    /// Which call has posted the receive.
    receive: Option<CallAt>,
    /// Its receive may be found when it is complete already.
    is_doubtful: bool,
    /// It is complete, and what it was is to be told by the call of this number.
    held: Option<u64>,
}

impl Send {
    const fn new(posted: CallAt, to: ProcessId, channel: u32) -> Self {
        Self { posted, to, channel, receive: None, is_doubtful: false, held: None }
    }
}

/// A call that has completed something of which it is known later what it was. What it has waited for is told of all together.
#[derive(Debug)]
struct Held {
    call: CallAt,
    waited: bool,
    ends: Vec<End>,
    /// So many are not known yet.
    left: u32,
}

/// A process's call of a collective.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joining {
    /// Counts the process's calls of collectives.
    pub(super) number: u64,
    pub(super) joint: Joint,
    pub(super) call: CallAt,
    /// It is complete at the call's return.
    pub(super) is_blocking: bool,
    /// Of how many gaps in the process's calls it comes after.
    pub(super) gaps: u32,
    /// From when on all calls of the process are known.
    pub(super) known_ns: u64,
    /// It had begun when nothing was recorded.
    pub(super) began_before: bool,
}

/// That a collective which did not block is complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joined {
    pub(super) number: u64,
    pub(super) call: CallAt,
    pub(super) waited: bool,
}

#[derive(Debug)]
struct Thread {
    location: LocationId,
    shapes: Option<Arc<[Shape]>>,
    meanings: Vec<Meaning>,
    next_number: Option<u64>,
    /// When its last call began.
    last_ns: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct ProcessReplay {
    process: ProcessId,
    threads: Vec<Thread>,
    requests: HashMap<u64, Request>,
    /// Sends behind requests, by whom they are for and the number of the channel there.
    going_on: HashMap<(ProcessId, u32), u32>,
    /// Some call was seen to complete one.
    completes: bool,
    sends: Slab<Send>,
    pub(super) inbound: Inbound,
    /// Completing calls in their order with their ends, and those that return after the slice.
    completing: (Vec<Completing>, Vec<Open>),
    deferred: (Vec<Completing>, Vec<Open>),
    /// By number, and how many there have been.
    held: HashMap<u64, Held>,
    held_count: u64,
    /// Calls that have returned until then are settled, ns; and the same before the end.
    known_until_ns: u64,
    settled_ns: u64,
    /// When it has called `MPI_Cancel` last; 0: never.
    cancelled_ns: u64,
    joints: u64,
    partitioned: HashMap<(ProcessId, ChannelKey, bool), u32>,
    /// For others, by the part of the processes that they are in.
    pub(super) outbox: Vec<Vec<(ProcessId, FromOther)>>,
    pub(super) joining: Vec<Joining>,
    pub(super) epoch_calls: Vec<EpochCall>,
    pub(super) joined: Vec<Joined>,
    /// Where calls are missing that would be in the slice, in the order of time.
    pub(super) gaps: Vec<Gap>,
    /// How many there have been.
    gap_count: u32,
    counting: Counting,
    /// From when on all its calls are known: each of its threads was outside of MPI at that time, or later.
    known_ns: u64,
    /// Its call that is looked at had begun when nothing was recorded.
    is_in_begun: bool,
    /// In the order in which the calls that have completed them have returned, if anybody wants to know.
    pub(super) done: Vec<Done>,
    pub(super) is_done_wanted: bool,
    pub(super) counts: Unmatched,
}

/// What is the same for all processes.
pub(super) struct Around<'a> {
    pub(super) known: &'a Known,
    pub(super) names: &'a ChannelNames,
    /// Processes of one part.
    pub(super) share: usize,
}

impl ProcessReplay {
    pub(super) fn new(process: ProcessId, limit: usize) -> Self {
        Self {
            process,
            threads: Vec::new(),
            requests: HashMap::new(),
            going_on: HashMap::new(),
            completes: false,
            sends: Slab::default(),
            inbound: Inbound::new(process, limit),
            completing: (Vec::new(), Vec::new()),
            deferred: (Vec::new(), Vec::new()),
            held: HashMap::new(),
            held_count: 0,
            known_until_ns: 0,
            settled_ns: 0,
            cancelled_ns: 0,
            joints: 0,
            partitioned: HashMap::new(),
            outbox: Vec::new(),
            joining: Vec::new(),
            epoch_calls: Vec::new(),
            joined: Vec::new(),
            gaps: Vec::new(),
            gap_count: 0,
            counting: Counting::Unknown,
            known_ns: 0,
            is_in_begun: false,
            done: Vec::new(),
            is_done_wanted: true,
            counts: Unmatched::default(),
        }
    }

    /// Forgets what shapes mean: more is known of what they refer to.
    pub(super) fn forget_meanings(&mut self) {
        self.threads.iter_mut().for_each(|thread| thread.shapes = None);
    }

    /// Goes through the calls that begin in a slice.
    pub(super) fn walk(&mut self, slices: &[&LocationSlice], around: &Around<'_>) {
        self.done.clear();
        self.gaps.clear();
        let parts = around.known.definitions.processes.len().div_ceil(around.share.max(1));
        self.outbox.resize_with(parts.max(1), Vec::new);
        match slices {
            [] => {}
            [only] => {
                let thread = self.thread(only.location);
                for part in &only.parts {
                    self.learn(thread, part, around);
                    let mut changes = part.changes.as_slice();
                    for row in &part.rows {
                        let (of_row, rest) = changes.split_at(changes.len().min(row.changes as usize));
                        changes = rest;
                        self.row(thread, row, of_row, around);
                    }
                }
            }
            several => self.walk_threads(several, around),
        }
    }

    /// Calls of several threads, in the order of their entries.
    fn walk_threads(&mut self, slices: &[&LocationSlice], around: &Around<'_>) {
        struct Place<'a> {
            thread: usize,
            parts: std::slice::Iter<'a, Part>,
            part: Option<(&'a Part, usize, &'a [ChangeRow])>,
        }
        let mut places: Vec<Place<'_>> = slices
            .iter()
            .map(|slice| Place { thread: self.thread(slice.location), parts: slice.parts.iter(), part: None })
            .collect();
        loop {
            let mut next: Option<(u64, usize)> = None;
            for (index, place) in places.iter_mut().enumerate() {
                while place.part.is_none_or(|(part, at, _)| at >= part.rows.len()) {
                    let Some(part) = place.parts.next() else { break };
                    self.learn(place.thread, part, around);
                    place.part = Some((part, 0, &part.changes));
                }
                let row = place.part.and_then(|(part, at, _)| part.rows.get(at));
                if let Some(begin_ns) = row.map(|row| row.begin_ns)
                    && next.is_none_or(|(earliest, _)| begin_ns < earliest)
                {
                    next = Some((begin_ns, index));
                }
            }
            let Some(place) = next.and_then(|(_, index)| places.get_mut(index)) else { return };
            let Some((part, at, changes)) = &mut place.part else { return };
            let Some(row) = part.rows.get(*at) else { return };
            let (of_row, rest) = changes.split_at(changes.len().min(row.changes as usize));
            (*at, *changes) = (*at + 1, rest);
            self.row(place.thread, row, of_row, around);
        }
    }

    fn thread(&mut self, location: LocationId) -> usize {
        if let Some(index) = self.threads.iter().position(|thread| thread.location == location) {
            return index;
        }
        self.threads.push(Thread { location, shapes: None, meanings: Vec::new(), next_number: None, last_ns: 0 });
        self.threads.len() - 1
    }

    fn learn(&mut self, thread: usize, part: &Part, around: &Around<'_>) {
        let Some(thread) = self.threads.get_mut(thread) else { return };
        if !thread.shapes.as_ref().is_some_and(|known| Arc::ptr_eq(known, &part.shapes)) {
            learn(&mut thread.meanings, &part.shapes, self.process, around.known, around.names);
            thread.shapes = Some(Arc::clone(&part.shapes));
        }
        self.inbound.grow(around.names, around.known);
    }

    fn row(&mut self, thread: usize, row: &Row, changes: &[ChangeRow], around: &Around<'_>) {
        let Some(at) = self.threads.get_mut(thread) else { return };
        let Some(&meaning) = at.meanings.get(row.shape as usize) else { return };
        if let Meaning::Phase { is_on } = meaning {
            return self.count(is_on, row.begin_ns, around);
        }
        let Meaning::Call {
            function,
            site,
            act,
            when,
            posts,
            waits,
            has_returned,
            began_before,
            takes_message,
            cancels,
        } = meaning
        else {
            return;
        };
        self.is_in_begun = began_before;
        if self.counting == Counting::Unknown {
            self.counting = Counting::On;
        }
        if cancels {
            self.cancelled_ns = row.begin_ns;
        }
        let location = at.location;
        // Those before a thread's first one may be missing as well.
        let is_first = at.next_number.is_none();
        let is_gap = row.number > at.next_number.unwrap_or(0);
        at.next_number = Some(row.number.wrapping_add(1));
        let last_ns = std::mem::replace(&mut at.last_ns, row.begin_ns);
        let losses = around.known.definitions.location(location).map(|location| location.losses);
        if let Some(losses) = losses.filter(|losses| is_gap && is_harmful(losses)) {
            self.lose(Gap { from_ns: last_ns.saturating_add(1), until_ns: row.begin_ns });
            // What was under way when a window began is in it.
            if losses.left_out.by_time == 0 || losses.missing() > 0 || losses.left_out.by_duration > 0 {
                self.known_ns = self.known_ns.max(row.begin_ns);
            }
        }
        // Before its first call that is known, a thread may have been in another one.
        if is_first && around.known.began_before(self.process) {
            self.known_ns = self.known_ns.max(row.begin_ns);
        }
        let call = CallAt {
            number: row.number,
            entry_ns: row.begin_ns,
            return_ns: row.end_ns,
            location,
            site,
            function,
            nth: 0,
        };
        let before = self.completing.1.len();
        // What it has started was made before anything was recorded, or by a call that is missing.
        self.counts.of_unknown_request += u64::from(matches!(act, Act::Start) && changes.is_empty() && has_returned);
        // A matched message: its receive was posted by the probe.
        let is_taken = takes_message && !changes.is_empty();
        let mut taken = None;
        for (nth, change) in (0u16..).zip(changes) {
            let call = CallAt { nth, ..call };
            let meaning = self.threads.get(thread).and_then(|at| at.meanings.get(change.shape as usize));
            if let Some(&Meaning::Change { change: what, act }) = meaning {
                if is_taken {
                    taken = self.take_request(change.request);
                } else {
                    self.change(change.request, what, act, &call, around);
                }
            }
        }
        if is_taken {
            match taken {
                Some(request) if posts => self.hold(row.request, request, &call),
                Some(Request::Message { receive: Some(key), .. }) => {
                    let message = if let Act::Messages { receive, .. } = act { receive } else { None };
                    self.complete_receive(key, message, &call);
                }
                _ => {
                    self.counts.of_unknown_request += 1;
                    self.inbound.loose.receive(&call);
                }
            }
        } else {
            self.act(act, when, posts.then_some(row.request), &call, around);
        }
        let ends = self.completing.1.len() - before;
        if ends == 0 {
            return;
        }
        if has_returned {
            let ends = u32::try_from(ends).unwrap_or(u32::MAX);
            self.completing.0.push(Completing { call, waits, ends });
        } else {
            self.completing.1.truncate(before);
        }
    }

    /// Counting is on or off from then on. What begins while it is off is not recorded, and is in the place of other calls for nobody.
    fn count(&mut self, is_on: bool, at_ns: u64, around: &Around<'_>) {
        let since_ns = match self.counting {
            Counting::Off { since_ns } => Some(since_ns),
            Counting::On => None,
            // It may have been off before anybody looked.
            Counting::Unknown => around.known.began_before(self.process).then_some(0),
        };
        if is_on {
            self.counting = Counting::On;
            if let Some(from_ns) = since_ns {
                self.lose(Gap { from_ns, until_ns: at_ns });
                self.known_ns = self.known_ns.max(at_ns);
            }
        } else {
            let from_ns = since_ns.unwrap_or(at_ns);
            self.counting = Counting::Off { since_ns: from_ns };
            // Until it ends, whatever others say is not sure.
            self.tell_gap(Gap { from_ns, until_ns: STILL_OPEN });
        }
    }

    /// Calls are missing.
    fn lose(&mut self, gap: Gap) {
        self.gap_count = self.gap_count.wrapping_add(1);
        self.inbound.give_up_open(gap.until_ns);
        self.tell_gap(gap);
        for request in std::mem::take(&mut self.requests).into_values() {
            self.forget_send(&request);
        }
        self.going_on.clear();
    }

    fn tell_gap(&mut self, gap: Gap) {
        self.gaps.push(gap);
        self.inbound.break_all(gap);
    }

    /// Whether calls were missing anywhere.
    pub(super) const fn has_gaps(&self) -> bool {
        self.gap_count > 0
    }

    /// What a call does that is no completion of a request.
    fn act(&mut self, act: Act, when: When, request: Option<u64>, call: &CallAt, around: &Around<'_>) {
        match act {
            Act::Nothing
            | Act::Start
            | Act::Probe { from: Message { side: Side::Outside | Side::Unknown, .. }, .. } => {}
            // Whose message it has found, whoever receives it says.
            Act::Probe { from: from @ Message { side: Side::Any { .. }, .. }, takes } => {
                if let Some(request) = request.filter(|_| takes) {
                    let receive = self.receive(from, *call, true);
                    self.hold(request, Request::Message { send: None, receive }, call);
                }
            }
            Act::Messages { send, receive } if when == When::Persistent => {
                if let Some((message, request)) = send.or(receive).zip(request).filter(|(one, _)| one.partitioned) {
                    self.partition(message, send.is_some(), request, around);
                }
            }
            Act::Messages { send, receive } => {
                // A receive from anybody that is complete says who it was.
                let sent = send.and_then(|message| self.send(message, *call, around));
                let received = receive.and_then(|message| self.receive(message, *call, request.is_some()));
                match request {
                    Some(request) => {
                        self.hold(request, Request::Message { send: sent, receive: received }, call);
                    }
                    None if when == When::Nonblocking => {
                        // It was complete at once.
                        if let Some(key) = sent {
                            self.sends.remove(key);
                        }
                        if let Some(key) = received {
                            self.inbound.release(key);
                        }
                    }
                    None => {
                        let bytes = receive.and_then(|message| message.bytes);
                        let receive = received.map(|key| Open::Receive { key, bytes });
                        self.completing.1.extend(receive.into_iter().chain(sent.map(Open::Send)));
                    }
                }
            }
            Act::Probe { from: Message { side: Side::Channel { channel, .. }, .. }, takes } => {
                let number = self.inbound.probe(channel);
                self.completing.1.push(Open::Probe(number));
                if let Some(request) = request.filter(|_| takes) {
                    let receive = Some(self.inbound.post(channel, *call));
                    self.hold(request, Request::Message { send: None, receive }, call);
                }
            }
            Act::Failed { send, receive } => {
                if let Some(key) = self.receive(receive, *call, true) {
                    self.doubt(key, call.return_ns);
                }
                if let Some(Message { side: Side::Channel { process, channel }, .. }) = send {
                    let gap = Gap { from_ns: call.entry_ns, until_ns: call.return_ns };
                    self.tell(process, FromOther::Doubtful { channel, gap }, around.share);
                }
            }
            Act::Epoch { window, step } => self.step(window, step, *call),
            Act::FailedCollective => self.gap_count = self.gap_count.wrapping_add(1),
            Act::Collective(joint) => {
                let number = self.join(joint, *call, when == When::Blocking);
                if let Some(request) = request {
                    self.hold(request, Request::Joint(number), call);
                }
            }
        }
    }

    /// Remembers what is behind a request. Another one of that name was completed by a call that is not recorded.
    fn hold(&mut self, request: u64, what: Request, call: &CallAt) {
        if let Request::Message { send: Some(key), .. } = what
            && let Some(send) = self.sends.get_mut(key)
        {
            *self.going_on.entry((send.to, send.channel)).or_insert(0) += 1;
        }
        let Some(earlier) = self.requests.insert(request, what) else { return };
        self.goes_on_no_more(&earlier);
        self.forget_send(&earlier);
        self.counts.completed_unseen += u64::from(earlier.is_operation());
        if let Request::Message { receive: Some(key), .. } = earlier {
            if self.inbound.is_named(key) {
                self.inbound.release(key);
            } else {
                self.inbound.give_up(key, call.entry_ns);
            }
        }
    }

    /// A request that is none any more.
    fn take_request(&mut self, request: u64) -> Option<Request> {
        let taken = self.requests.remove(&request);
        if let Some(taken) = &taken {
            self.goes_on_no_more(taken);
        }
        taken
    }

    /// No call will complete the send behind a request.
    fn forget_send(&mut self, request: &Request) {
        if let Request::Message { send: Some(key), .. } = *request {
            self.sends.remove(key);
        }
    }

    fn goes_on_no_more(&mut self, request: &Request) {
        if let Request::Message { send: Some(key), .. } = *request
            && let Some(send) = self.sends.get_mut(key)
            && let Some(sends) = self.going_on.get_mut(&(send.to, send.channel))
        {
            *sends -= 1;
            if *sends == 0 {
                self.going_on.remove(&(send.to, send.channel));
            }
        }
    }

    fn step(&mut self, window: Stream, step: Step, call: CallAt) {
        self.epoch_calls.push(EpochCall { window, step, call, gaps: self.gap_count });
    }

    fn join(&mut self, joint: Joint, call: CallAt, is_blocking: bool) -> u64 {
        self.joints += 1;
        self.joining.push(Joining {
            number: self.joints,
            joint,
            call,
            is_blocking,
            gaps: self.gap_count,
            known_ns: self.known_ns,
            began_before: self.is_in_begun,
        });
        self.joints
    }

    fn send(&mut self, message: Message, call: CallAt, around: &Around<'_>) -> Option<Key> {
        match message.side {
            Side::Channel { process, channel } => {
                let key = self.sends.insert(Send::new(call, process, channel));
                let waits = may_wait_for_receiver(call.function);
                let is_alone = !self.going_on.contains_key(&(process, channel));
                let sent = Sent { key, call, bytes: message.bytes, waits, is_alone, is_concurrent: false };
                self.tell(process, FromOther::Sent { channel, sent }, around.share);
                Some(key)
            }
            Side::Outside => {
                self.counts.outside += 1;
                None
            }
            Side::Unknown | Side::Any { .. } => {
                self.counts.sends += 1;
                None
            }
        }
    }

    fn tell(&mut self, to: ProcessId, what: FromOther, share: usize) {
        if let Some(outbox) = self.outbox.get_mut(to.index() / share.max(1)) {
            outbox.push((to, what));
        }
    }

    fn receive(&mut self, message: Message, call: CallAt, goes_on: bool) -> Option<Key> {
        match message.side {
            Side::Channel { channel, .. } => Some(self.inbound.post(channel, call)),
            Side::Any { source, communicator, tag } => {
                let key = self.inbound.post_any(communicator, source, tag, call);
                if goes_on {
                    return Some(key);
                }
                self.counts.of_unknown_source += 1;
                self.inbound.give_up(key, call.return_ns);
                None
            }
            Side::Outside => {
                self.counts.outside += 1;
                None
            }
            Side::Unknown => {
                self.counts.of_unknown_source += 1;
                self.inbound.break_all(Gap { from_ns: call.entry_ns, until_ns: call.return_ns });
                None
            }
        }
    }

    fn change(&mut self, request: u64, change: Change, act: Act, call: &CallAt, around: &Around<'_>) {
        self.completes |= change == Change::Completed;
        match change {
            Change::Started => self.start(request, act, call, around),
            Change::Completed => self.complete(request, act, call, around),
            Change::Ready => {
                if let Some(Request::Partitioned { ready, .. }) = self.requests.get_mut(&request) {
                    *ready = Some(*call);
                }
            }
            Change::Cancelled => {
                let found = self.take_request(request);
                let Some(Request::Message { send, receive }) = found else { return };
                if let Some(key) = receive {
                    self.inbound.cancel(key, call.return_ns);
                }
                if let (Some(key), Act::Messages { send: Some(Message { side, .. }), .. }) = (send, act) {
                    self.sends.remove(key);
                    if let Side::Channel { process, channel } = side {
                        self.tell(process, FromOther::Cancelled { channel, key }, around.share);
                    }
                }
            }
            Change::Failed | Change::Released => {
                // What moves is as if it were complete, but nobody knows when.
                let is_receive = matches!(act, Act::Messages { receive: Some(_), .. });
                let taken = self.take_request(request);
                if let Some(request) = &taken {
                    self.forget_send(request);
                }
                match taken {
                    Some(Request::Message { receive: Some(key), .. }) if is_receive => {
                        let gets_its_message = change == Change::Released
                            && self.inbound.is_named(key)
                            && !self.inbound.is_posted_before(key, self.cancelled_ns);
                        if gets_its_message {
                            self.inbound.release(key);
                        } else {
                            self.doubt(key, call.return_ns);
                        }
                    }
                    Some(Request::Message { receive: Some(key), .. }) => self.inbound.cancel(key, call.return_ns),
                    _ => {}
                }
            }
        }
    }

    /// Nobody knows whether a receive has taken a message.
    fn doubt(&mut self, key: Key, at_ns: u64) {
        if self.inbound.is_named(key) {
            self.inbound.doubt(key, at_ns);
        } else {
            self.inbound.give_up(key, at_ns);
        }
    }

    /// A persistent operation begins.
    fn start(&mut self, request: u64, act: Act, call: &CallAt, around: &Around<'_>) {
        match act {
            Act::Collective(joint) => {
                let number = self.join(joint, *call, false);
                self.hold(request, Request::Joint(number), call);
            }
            Act::Messages { send, receive } if !send.or(receive).is_some_and(|message| message.partitioned) => {
                let send = send.and_then(|message| self.send(message, *call, around));
                let receive = receive.and_then(|message| self.receive(message, *call, true));
                self.hold(request, Request::Message { send, receive }, call);
            }
            Act::Messages { .. } => {
                if let Some(Request::Partitioned { channel, is_send, ready, receive }) = self.requests.get_mut(&request)
                {
                    *ready = None;
                    if let Some((_, channel)) = channel.filter(|_| !*is_send) {
                        *receive = Some(self.inbound.post(channel, *call));
                    }
                }
            }
            Act::Nothing
            | Act::Start
            | Act::Probe { .. }
            | Act::Failed { .. }
            | Act::FailedCollective
            | Act::Epoch { .. } => {}
        }
    }

    /// A partitioned operation is made: it meets the one of the same number at the other end.
    fn partition(&mut self, message: Message, is_send: bool, request: u64, around: &Around<'_>) {
        let channel = if let Side::Channel { process, channel } = message.side {
            let key = around.names.since(process, channel as usize).first().copied();
            key.map(|key| {
                let number = self.partitioned.entry((process, key, is_send)).or_insert(0);
                *number += 1;
                (process, around.names.number(process, ChannelKey { partitioned: *number, ..key }))
            })
        } else {
            self.counts.outside += 1;
            None
        };
        self.inbound.grow(around.names, around.known);
        self.requests.insert(request, Request::Partitioned { channel, is_send, ready: None, receive: None });
    }

    fn complete(&mut self, request: u64, act: Act, call: &CallAt, around: &Around<'_>) {
        if let Some(Request::Partitioned { channel, is_send, ready, receive }) = self.requests.get(&request).copied() {
            match (is_send, channel, ready, receive) {
                (true, Some((process, channel)), Some(ready), _) => {
                    let key = self.sends.insert(Send::new(ready, process, channel));
                    let sent =
                        Sent { key, call: ready, bytes: None, waits: false, is_alone: true, is_concurrent: false };
                    self.tell(process, FromOther::Sent { channel, sent }, around.share);
                    self.completing.1.push(Open::Send(key));
                }
                (true, Some(_), None, _) => self.counts.sends += 1,
                (false, _, _, Some(key)) => self.completing.1.push(Open::Receive { key, bytes: None }),
                _ => {}
            }
            return;
        }
        match self.take_request(request) {
            Some(Request::Joint(number)) => self.completing.1.push(Open::Joint(number)),
            Some(Request::Message { send, receive }) => {
                if let (Some(key), Act::Messages { receive: Some(message), .. }) = (receive, act) {
                    self.complete_receive(key, Some(message), call);
                }
                self.completing.1.extend(send.map(Open::Send));
            }
            Some(Request::Partitioned { .. }) => {}
            None => {
                let is_message = matches!(act, Act::Messages { send, receive } if send.or(receive).is_some());
                self.counts.of_unknown_request += u64::from(is_message);
            }
        }
    }

    /// A receive is complete; `message`: what is said of it then.
    fn complete_receive(&mut self, key: Key, message: Option<Message>, call: &CallAt) {
        let bytes = message.and_then(|message| message.bytes);
        match message.map(|message| message.side) {
            Some(Side::Channel { channel, .. }) => self.inbound.resolve(key, channel),
            Some(Side::Outside) => {
                self.counts.outside += 1;
                return self.inbound.cancel(key, call.return_ns);
            }
            // Whoever has posted it may have said whose it is.
            Some(Side::Any { .. } | Side::Unknown) | None if self.inbound.is_named(key) => {}
            Some(Side::Any { .. } | Side::Unknown) | None => {
                self.counts.of_unknown_source += 1;
                return self.inbound.give_up(key, call.return_ns);
            }
        }
        // Without a status nobody knows whether it was too late to cancel it.
        if bytes.is_none() && self.inbound.is_posted_before(key, self.cancelled_ns) {
            self.inbound.doubt(key, call.return_ns);
        } else {
            self.completing.1.push(Open::Receive { key, bytes });
        }
    }

    /// Something has become of a send.
    pub(super) fn meet(&mut self, met: &Met) {
        let Some(send) = self.sends.get_mut(met.key) else { return };
        match met.what {
            Meeting::Doubtful => send.is_doubtful = true,
            Meeting::Receive(posted) => send.receive = Some(posted),
            Meeting::NotYet => send.receive = None,
            Meeting::Never => (send.receive, send.is_doubtful) = (None, false),
        }
        let &mut Send { posted, receive, is_doubtful, held: Some(held), .. } = send else { return };
        if receive.is_some() || !is_doubtful {
            self.sends.remove(met.key);
            self.tell_held(held, receive.map(|receive| End::Sent { posted, receive: Some(receive) }));
        }
    }

    /// Until when it is known that no calls of the process are missing besides those that are known to be, ns: of a thread that has lost some, others may be
    /// until its next call says so.
    pub(super) fn whole_until_ns(&self, slice: &Slice, known: &Known) -> u64 {
        let until_ns = slice.until_of(self.process);
        if until_ns == u64::MAX {
            return until_ns;
        }
        let location = |thread: &Thread| known.definitions.location(thread.location);
        let may_miss = |thread: &&Thread| location(thread).is_some_and(|location| is_harmful(&location.losses));
        let last = self.threads.iter().filter(may_miss).map(|thread| thread.last_ns.saturating_add(1));
        last.fold(until_ns, u64::min)
    }

    /// Says what is complete, of calls that have returned until then, and of which nobody can say more who is behind.
    ///
    /// `whole_until_ns`: see [`Self::whole_until_ns`], by process.
    pub(super) fn settle(&mut self, slice: &Slice, whole_until_ns: &[u64], known: &Known) {
        self.known_until_ns = slice.until_of(self.process);
        // The end comes at once, however late what is held is told.
        if self.known_until_ns < u64::MAX {
            self.settled_ns = self.known_until_ns;
        }
        let (mut calls, mut ends) = std::mem::take(&mut self.deferred);
        let is_too_much = calls.len() > MOST_DEFERRED;
        calls.append(&mut self.completing.0);
        ends.append(&mut self.completing.1);
        let mut rest = ends.as_slice();
        let mut all: Vec<(Completing, &[Open])> = Vec::with_capacity(calls.len());
        for one in calls {
            let (own, others) = rest.split_at(rest.len().min(one.ends as usize));
            rest = others;
            all.push((one, own));
        }
        // However many of them are looked at together: a thread's call may return before an earlier one of another thread.
        if !all.is_sorted_by_key(|(one, _)| one.call.place()) {
            all.sort_by_key(|(one, _)| one.call.place());
        }
        // Where others are behind, what comes later waits too.
        let mut is_behind = false;
        for (one, own) in all {
            let has_returned = one.call.return_ns < slice.until_of(self.process);
            is_behind = is_behind || !is_too_much && has_returned && !self.is_decided(&one, own, slice);
            if has_returned && !is_behind {
                self.settle_call(&one, own);
            } else {
                self.deferred.0.push(one);
                self.deferred.1.extend_from_slice(own);
            }
        }
        self.inbound.find_order(whole_until_ns, known);
        for (held, end) in std::mem::take(&mut self.inbound.late) {
            self.tell_held(held, end);
        }
    }

    /// Whether it is known of all that a call has completed what the other end was, or that there was none by then.
    fn is_decided(&mut self, one: &Completing, ends: &[Open], slice: &Slice) -> bool {
        let at_ns = one.call.return_ns;
        // Where all have come as far, there is nothing to be asked.
        at_ns < slice.until_ns
            || ends.iter().all(|end| match *end {
                Open::Send(key) => self.sends.get_mut(key).is_none_or(|send| {
                    let known = slice.known_of(send.to);
                    // Whoever was in a call before this one began is not waited for, whatever that call receives.
                    let is_inside = known.ns <= one.call.entry_ns && at_ns < known.but_one_ns;
                    send.receive.is_some() || at_ns < known.ns || is_inside
                }),
                Open::Receive { key, .. } => self.inbound.is_decided(key, at_ns, slice),
                Open::Probe(number) => self.inbound.is_probe_decided(number, at_ns, slice),
                Open::Joint(_) => true,
            })
    }

    /// Calls that have completed something, and wait for others.
    pub(super) fn waiting(&self) -> u64 {
        self.deferred.0.len() as u64
    }

    /// Those, and calls of which it takes long to find out what they have completed, unless it takes too long.
    fn untold(&self) -> impl Iterator<Item = CallAt> {
        let since_ns = self.settled_ns.saturating_sub(MOST_HELD_NS);
        let held = self.held.values().map(|held| held.call).filter(move |call| call.return_ns >= since_ns);
        self.deferred.0.iter().map(|one| one.call).chain(held)
    }

    /// When the first of them began.
    pub(super) fn unsettled_ns(&self) -> Option<u64> {
        self.untold().map(|call| call.entry_ns).min()
    }

    /// See [`Matched::told_until_ns`](super::matcher::Matched::told_until_ns).
    pub(super) fn told_until_ns(&self) -> u64 {
        self.untold().map(|call| call.return_ns).fold(self.known_until_ns, u64::min)
    }

    fn settle_call(&mut self, one: &Completing, ends: &[Open]) {
        let Completing { call, waits: waited, .. } = *one;
        let first = self.done.len();
        let number = self.held_count;
        let mut left = 0;
        for end in ends {
            let end = match *end {
                Open::Send(key) => self.settle_send(key, number, waited),
                Open::Receive { key, bytes } => {
                    self.inbound.complete(key, Completion { call, waited, bytes, held: number })
                }
                Open::Probe(probe) => {
                    self.inbound.found(probe).map_or(Outcome::Never, |send| Outcome::Known(End::Found { send }))
                }
                Open::Joint(number) => {
                    self.joined.push(Joined { number, call, waited });
                    Outcome::Never
                }
            };
            match end {
                Outcome::Known(end) if self.is_done_wanted => {
                    self.done.push(Done { call, more: 0, end, waited, late: false });
                }
                Outcome::Later => left += 1,
                Outcome::Known(_) | Outcome::Never => {}
            }
        }
        if left > 0 {
            self.held_count += 1;
            let ends = self.done.drain(first..).map(|done| done.end).collect();
            self.held.insert(number, Held { call, waited, ends, left });
        }
        number_from(&mut self.done, first);
    }

    /// A call has completed a send.
    fn settle_send(&mut self, key: Key, held: u64, waited: bool) -> Outcome {
        let Some(send) = self.sends.get_mut(key) else { return Outcome::Never };
        let &mut Send { posted, receive, is_doubtful, .. } = send;
        if receive.is_none() && is_doubtful && waited {
            send.held = Some(held);
            return Outcome::Later;
        }
        self.sends.remove(key);
        Outcome::Known(End::Sent { posted, receive })
    }

    /// It is known what one of the ends was that a call has completed.
    fn tell_held(&mut self, number: u64, end: Option<End>) {
        let Some(held) = self.held.get_mut(&number) else { return };
        held.ends.extend(end);
        held.left -= 1;
        if held.left == 0
            && let Some(held) = self.held.remove(&number)
        {
            self.tell_late(held);
        }
    }

    fn tell_late(&mut self, Held { call, waited, ends, .. }: Held) {
        let first = self.done.len();
        if self.is_done_wanted {
            self.done.extend(ends.into_iter().map(|end| Done { call, more: 0, end, waited, late: true }));
        }
        number_from(&mut self.done, first);
    }

    /// There is no more.
    pub(super) fn finish(&mut self, known: &Known) {
        let mut threads = known.definitions.locations.iter().filter(|location| location.process == self.process);
        // Those that others complete later are no mistake.
        if !self.completes && threads.any(|location| location.losses.left_out.by_function > 0) {
            self.counts.completed_unseen +=
                self.requests.values().filter(|request| request.is_operation()).count() as u64;
        }
        self.inbound.finish();
        let mut held: Vec<(u64, Held)> = self.held.drain().collect();
        held.sort_unstable_by_key(|(number, _)| *number);
        for (_, held) in held {
            self.tell_late(held);
        }
    }
}

/// Says of each of a call's ends how many come after it.
fn number_from(done: &mut [Done], first: usize) {
    let own = done.get_mut(first..).unwrap_or_default();
    let mut left = u32::try_from(own.len()).unwrap_or(u32::MAX);
    for done in own {
        left -= 1;
        done.more = left;
    }
}

/// Whether a call may wait itself until somebody receives what it sends.
fn may_wait_for_receiver(function: FunctionId) -> bool {
    let is_waiting = |mode| matches!(mode, SendMode::Standard | SendMode::Synchronous);
    matches!(communication(function), Communication::Send(mode) if is_waiting(mode))
        && function.function().operation == When::Blocking
}

/// Whether it matters that calls of a thread are missing: not if they were left out because they had found nothing, or because of what
/// they were, which is the same at both ends.
pub(super) fn is_harmful(losses: &Losses) -> bool {
    losses.missing() > 0 || losses.lost_changes > 0 || losses.left_out.by_duration > 0 || losses.left_out.by_time > 0
}
