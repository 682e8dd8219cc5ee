//! Events of one process.

use std::{io, io::Write, sync::Arc};

use hashbrown::HashMap;
use mpiprobe_functions::{Communication, Operation as When, Pattern};
use mpiprobe_replay::{LooseEnds, communication};
use mpiprobe_trace::{
    Bytes, Change, ChangeRow, Communicator, CommunicatorId, CommunicatorKind, LocationId, Object, Operation, Partner,
    ProcessId, Root, Row, Shape, Span, Transfer,
};

use super::{
    bytes::{EventFile, Prepared, UNDEFINED, put, put_id, record},
    definitions::collective_number,
    used::{PROGRAM, Used},
};
use crate::{
    names::{Members, Names},
    rows::Visitor,
};

/// Record ids.
mod id {
    pub(super) const ENTER: u8 = 12;
    pub(super) const LEAVE: u8 = 13;
    pub(super) const SEND: u8 = 14;
    pub(super) const ISEND: u8 = 15;
    pub(super) const ISEND_COMPLETE: u8 = 16;
    pub(super) const IRECV_REQUEST: u8 = 17;
    pub(super) const RECV: u8 = 18;
    pub(super) const IRECV: u8 = 19;
    pub(super) const COLLECTIVE_BEGIN: u8 = 22;
    pub(super) const COLLECTIVE_END: u8 = 23;
    pub(super) const WIN_CREATE: u8 = 35;
    pub(super) const WIN_DESTROY: u8 = 36;
    pub(super) const RMA_PUT: u8 = 46;
    pub(super) const RMA_GET: u8 = 47;
    pub(super) const RMA_ATOMIC: u8 = 48;
    pub(super) const COLLECTIVE_REQUEST: u8 = 85;
    pub(super) const COLLECTIVE_COMPLETE: u8 = 86;
}

/// What was written, and what was not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    pub(crate) events: u64,
    pub(crate) calls: u64,
    pub(crate) sends: u64,
    pub(crate) receives: u64,
    /// Ends without the other one in the export.
    pub(crate) loose: u64,
    /// Calls that begin or end outside of the span.
    pub(crate) cut: u64,
    /// Parts of the trace that could not be read.
    pub(crate) damaged: u64,
}

impl Written {
    pub(crate) fn add(&mut self, other: Self) {
        self.events += other.events;
        self.calls += other.calls;
        self.sends += other.sends;
        self.receives += other.receives;
        self.loose += other.loose;
        self.cut += other.cut;
        self.damaged += other.damaged;
    }
}

/// A message as records name it: the partner's rank in its communicator, that, the tag, and how long it is.
type Message = Prepared<24>;

/// A region: its records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    enter: Prepared<6>,
    leave: Prepared<6>,
}

impl Region {
    pub(super) fn new(number: u32) -> Self {
        let of = |record| Prepared::NOTHING.byte(record).id(number);
        Self { enter: of(id::ENTER), leave: of(id::LEAVE) }
    }
}

/// Which ends of messages a call has.
#[derive(Clone, Copy, Debug)]
struct MessageEnds {
    sends: bool,
    receives: Receives,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Receives {
    Nothing,
    /// From somebody who may be in the archive.
    Something,
    /// It says itself from whom, and that is nobody who is in the archive.
    FromOutside,
    /// A message that was matched before, by a probe, whose request tells whether it has its other end.
    Matched,
}

#[derive(Clone, Copy, Debug)]
struct Joint {
    number: u8,
    communicator: u32,
    root: u32,
    sent: u64,
    received: u64,
}

#[derive(Clone, Copy, Debug)]
struct Access {
    record: u8,
    window: u32,
    peer: u32,
    sent: u64,
    received: u64,
}

/// What an operation does. Messages whose other end is not exported are `None`, and counted.
#[derive(Clone, Copy, Debug)]
enum Act {
    Nothing,
    /// What is known of both ends; `ends`: which there are at all.
    Messages {
        send: Option<Message>,
        receive: Option<Message>,
        ends: MessageEnds,
    },
    /// A message is matched, which is received by whoever takes it.
    Match,
    Joint(Joint),
    Access(Access),
    Window {
        is_made: bool,
        window: u32,
    },
}

#[derive(Clone, Copy, Debug)]
enum Meaning {
    Call { region: Region, site: Option<Region>, act: Act, when: When, posts: bool, has_returned: bool },
    Change { change: Change, act: Act },
    Phase(Option<Region>),
}

/// What is behind a request: its number in the archive, and which ends of it are written.
#[derive(Clone, Copy, Debug)]
struct Request {
    number: u64,
    sends: bool,
    receives: bool,
    joint: Option<Joint>,
}

impl Request {
    /// Whether no end of it is written.
    const fn is_loose(&self) -> bool {
        !self.sends && !self.receives && self.joint.is_none()
    }
}

/// A call that has not returned yet.
#[derive(Clone, Copy, Debug)]
struct Frame {
    end_ns: u64,
    region: Region,
    site: Option<Region>,
    /// Where its records for the return begin among those kept.
    records: usize,
}

struct Thread<'a> {
    location: LocationId,
    file: EventFile,
    to: &'a mut dyn Write,
    shapes: Option<Arc<[Shape]>>,
    meanings: Vec<Meaning>,
    frames: Vec<Frame>,
    /// Records to be written when calls return, and where each ends.
    kept: Vec<u8>,
    ends: Vec<usize>,
    phase: Option<Region>,
    /// Once no call is open, the phase is to be this one.
    next_phase: Option<Region>,
    phase_changes: bool,
}

/// What is the same for all processes.
pub(super) struct Around<'a> {
    pub(super) names: &'a Names<'a>,
    pub(super) used: &'a Used,
    /// By number.
    pub(super) regions: &'a [Region],
    pub(super) loose: &'a LooseEnds,
    /// On the clock of the process's node.
    pub(super) span: Span,
    /// When the program's region begins and ends, on that clock too.
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    /// Regions of `MPI_Init` and `MPI_Finalize` that are made up at the ends.
    pub(super) synthetic: Option<(u32, u32)>,
}

/// Writes the events of a process's threads.
pub(super) struct ProcessWriter<'a> {
    around: &'a Around<'a>,
    process: ProcessId,
    threads: Vec<Thread<'a>>,
    requests: HashMap<u64, Request>,
    next_request: u64,
    matching: u64,
    pub(super) written: Written,
}

impl<'a> ProcessWriter<'a> {
    pub(super) fn new(
        around: &'a Around<'a>,
        process: ProcessId,
        threads: impl IntoIterator<Item = (LocationId, &'a mut dyn Write)>,
    ) -> io::Result<Self> {
        let thread = |(location, to)| Thread {
            location,
            file: EventFile::new(),
            to,
            shapes: None,
            meanings: Vec::new(),
            frames: Vec::new(),
            kept: Vec::new(),
            ends: Vec::new(),
            phase: None,
            next_phase: None,
            phase_changes: false,
        };
        let mut writer = Self {
            around,
            process,
            threads: threads.into_iter().map(thread).collect(),
            requests: HashMap::new(),
            next_request: 0,
            matching: 0,
            written: Written::default(),
        };
        for (index, thread) in writer.threads.iter_mut().enumerate() {
            thread.enter(around.begin_ns, Region::new(PROGRAM))?;
            if let Some((init, _)) = around.synthetic.filter(|_| index == 0) {
                thread.enter(around.begin_ns, Region::new(init))?;
                thread.leave(around.begin_ns, Region::new(init))?;
            }
        }
        Ok(writer)
    }

    /// Gives the number of events of each thread.
    pub(super) fn finish(mut self) -> io::Result<(Written, Vec<(LocationId, u64)>)> {
        let mut counts = Vec::new();
        for (index, mut thread) in std::mem::take(&mut self.threads).into_iter().enumerate() {
            thread.close_until(u64::MAX)?;
            let end_ns = self.around.end_ns;
            thread.change_phase(end_ns, None)?;
            if let Some((_, finalize)) = self.around.synthetic.filter(|_| index == 0) {
                thread.enter(end_ns, Region::new(finalize))?;
                thread.leave(end_ns, Region::new(finalize))?;
            }
            thread.leave(end_ns, Region::new(PROGRAM))?;
            let events = thread.file.finish(thread.to)?;
            self.written.events += events;
            counts.push((thread.location, events));
        }
        Ok((self.written, counts))
    }

    /// Number of the request that a call gives back.
    fn request(&mut self, request: u64, sends: bool, receives: bool, joint: Option<Joint>) -> u64 {
        self.next_request += 1;
        self.requests.insert(request, Request { number: self.next_request, sends, receives, joint });
        self.next_request
    }

    /// What is written at the entry of a call that begins an operation, which is complete at its return unless it gives back a request. `nth`:
    /// which of those that it begins.
    fn begin(
        &mut self,
        thread: usize,
        (row, nth): (&Row, u16),
        act: Act,
        request: Option<u64>,
        when: When,
    ) -> io::Result<()> {
        let Some(location) = self.threads.get(thread).map(|thread| thread.location) else { return Ok(()) };
        let loose = self.around.loose;
        match act {
            Act::Nothing => Ok(()),
            Act::Match => {
                if let Some(request) = request {
                    let receives = !loose.is_loose_receive(location, row.number, nth);
                    // The archive has no record of it.
                    self.requests.insert(request, Request { number: 0, sends: false, receives, joint: None });
                }
                Ok(())
            }
            Act::Messages { send, receive, ends } => {
                self.message(thread, (row, nth), (send, receive, ends), request, when)
            }
            Act::Joint(joint) => {
                if loose.is_loose_collective(location, row.number, nth) {
                    self.written.loose += 1;
                    return Ok(());
                }
                if let Some(request) = request {
                    let number = self.request(request, false, false, Some(joint));
                    let Some(thread) = self.threads.get_mut(thread) else { return Ok(()) };
                    return thread.event(row.begin_ns, |to| record(to, id::COLLECTIVE_REQUEST, |to| put(to, number)));
                }
                let Some(thread) = self.threads.get_mut(thread) else { return Ok(()) };
                thread.event(row.begin_ns, |to| record(to, id::COLLECTIVE_BEGIN, |_| {}))?;
                thread.keep(|to| record(to, id::COLLECTIVE_END, |to| collective(to, &joint)));
                Ok(())
            }
            Act::Access(access) => {
                self.matching += 1;
                let matching = self.matching;
                let Some(thread) = self.threads.get_mut(thread) else { return Ok(()) };
                thread.event(row.begin_ns, |to| {
                    record(to, access.record, |to| {
                        put_id(to, access.window);
                        put_id(to, access.peer);
                        if access.record == id::RMA_ATOMIC {
                            // Accumulate.
                            to.push(0);
                            put(to, access.sent);
                            put(to, access.received);
                        } else {
                            put(to, access.sent.max(access.received));
                        }
                        put(to, matching);
                    });
                })
            }
            Act::Window { is_made, window } => {
                let Some(thread) = self.threads.get_mut(thread) else { return Ok(()) };
                let write = |id| move |to: &mut Vec<u8>| record(to, id, |to| put_id(to, window));
                if is_made {
                    thread.keep(write(id::WIN_CREATE));
                    return Ok(());
                }
                thread.event(row.begin_ns, write(id::WIN_DESTROY))
            }
        }
    }

    /// The same of messages: what is known of both ends, and which there are.
    fn message(
        &mut self,
        thread: usize,
        (row, nth): (&Row, u16),
        (send, receive, ends): (Option<Message>, Option<Message>, MessageEnds),
        request: Option<u64>,
        when: When,
    ) -> io::Result<()> {
        let Some(location) = self.threads.get(thread).map(|thread| thread.location) else { return Ok(()) };
        let loose = self.around.loose;
        let send = send.filter(|_| !loose.is_loose_send(location, row.number, nth));
        let receive_is_loose = match ends.receives {
            Receives::Nothing => false,
            Receives::FromOutside => true,
            Receives::Something | Receives::Matched => loose.is_loose_receive(location, row.number, nth),
        };
        let receive = receive.filter(|_| !receive_is_loose);
        self.written.loose += u64::from(ends.sends && send.is_none()) + u64::from(receive_is_loose);
        self.written.sends += u64::from(send.is_some());
        if let Some(request) = request {
            // From whom it is may be known when it is complete only.
            let has_receive = ends.receives != Receives::Nothing && !receive_is_loose;
            let number = self.request(request, send.is_some(), has_receive, None);
            let Some(thread) = self.threads.get_mut(thread) else { return Ok(()) };
            if let Some(send) = send {
                thread.event(row.begin_ns, |to| {
                    record(to, id::ISEND, |to| {
                        send.put(to);
                        put(to, number);
                    });
                })?;
            } else if has_receive {
                thread.event(row.begin_ns, |to| {
                    to.push(id::IRECV_REQUEST);
                    put(to, number);
                })?;
            }
            return Ok(());
        }
        let Some(thread) = self.threads.get_mut(thread) else { return Ok(()) };
        if let Some(send) = send {
            if when == When::Nonblocking {
                // Complete at once: nobody has its request.
                self.next_request += 1;
                let number = self.next_request;
                thread.event(row.begin_ns, |to| {
                    record(to, id::ISEND, |to| {
                        send.put(to);
                        put(to, number);
                    });
                })?;
                thread.keep(|to| {
                    to.push(id::ISEND_COMPLETE);
                    put(to, number);
                });
            } else {
                thread.event(row.begin_ns, |to| record(to, id::SEND, |to| send.put(to)))?;
            }
        }
        if let Some(receive) = receive {
            self.written.receives += 1;
            thread.keep(|to| record(to, id::RECV, |to| receive.put(to)));
        }
        Ok(())
    }

    fn change(
        &mut self,
        thread: usize,
        (row, nth): (&Row, u16),
        request: u64,
        change: Change,
        act: Act,
    ) -> io::Result<()> {
        match change {
            Change::Started => self.begin(thread, (row, nth), act, Some(request), When::Nonblocking),
            Change::Completed => {
                let Some(known) = self.requests.remove(&request) else { return Ok(()) };
                let Some(thread) = self.threads.get_mut(thread) else { return Ok(()) };
                if let Some(joint) = known.joint {
                    thread.keep(|to| {
                        record(to, id::COLLECTIVE_COMPLETE, |to| {
                            collective(to, &joint);
                            put(to, known.number);
                        });
                    });
                }
                if known.sends {
                    thread.keep(|to| {
                        to.push(id::ISEND_COMPLETE);
                        put(to, known.number);
                    });
                }
                if let Act::Messages { receive: Some(receive), .. } = act
                    && known.receives
                {
                    self.written.receives += 1;
                    if known.sends {
                        // An exchange has one request, which is the send's.
                        thread.keep(|to| record(to, id::RECV, |to| receive.put(to)));
                    } else {
                        thread.keep(|to| {
                            record(to, id::IRECV, |to| {
                                receive.put(to);
                                put(to, known.number);
                            });
                        });
                    }
                }
                Ok(())
            }
            Change::Cancelled => {
                // Who has given up a message has left out no end of one.
                if self.requests.remove(&request).is_some_and(|known| known.is_loose()) {
                    self.written.loose = self.written.loose.saturating_sub(1);
                }
                Ok(())
            }
            Change::Failed | Change::Released => {
                self.requests.remove(&request);
                Ok(())
            }
            Change::Ready => Ok(()),
        }
    }
}

impl Visitor for ProcessWriter<'_> {
    fn shapes(&mut self, thread: usize, shapes: &Arc<[Shape]>) {
        let Around { names, used, regions, .. } = *self.around;
        let translator = Translator { process: self.process, names, used, regions };
        let Some(thread) = self.threads.get_mut(thread) else { return };
        if !thread.shapes.as_ref().is_some_and(|known| Arc::ptr_eq(known, shapes)) {
            thread.meanings.clear();
            thread.meanings.extend(shapes.iter().map(|shape| translator.meaning(shape)));
            thread.shapes = Some(Arc::clone(shapes));
        }
    }

    fn row(&mut self, index: usize, row: &Row, changes: &[ChangeRow]) -> io::Result<()> {
        let Around { span, .. } = *self.around;
        let Some(thread) = self.threads.get_mut(index) else { return Ok(()) };
        let Some(&meaning) = thread.meanings.get(row.shape as usize) else { return Ok(()) };
        if row.begin_ns < span.from_ns || row.end_ns > span.until_ns {
            self.written.cut += 1;
            return Ok(());
        }
        thread.close_until(row.begin_ns)?;
        let (region, site, act, when, posts, has_returned) = match meaning {
            Meaning::Call { region, site, act, when, posts, has_returned } => {
                (region, site, act, when, posts, has_returned)
            }
            Meaning::Phase(phase) => return thread.phase(row.begin_ns, phase),
            Meaning::Change { .. } => return Ok(()),
        };
        self.written.calls += 1;
        if let Some(site) = site {
            thread.enter(row.begin_ns, site)?;
        }
        thread.enter(row.begin_ns, region)?;
        thread.frames.push(Frame { end_ns: row.end_ns, region, site, records: thread.ends.len() });
        // What a call has sent that has not returned, others may have received.
        let act = match act {
            Act::Messages { send, ends, .. } if !has_returned => {
                Act::Messages { send, receive: None, ends: MessageEnds { receives: Receives::Nothing, ..ends } }
            }
            Act::Messages { send, receive, ends } if ends.receives == Receives::Matched && !changes.is_empty() => {
                // It has changed the request of the message, and no other.
                let matched = changes.iter().filter_map(|change| self.requests.remove(&change.request));
                let has_sender = matched.last().is_some_and(|matched| matched.receives);
                let receives = if has_sender { Receives::Matched } else { Receives::FromOutside };
                let ends = MessageEnds { receives, ..ends };
                return self.message(index, (row, 0), (send, receive, ends), posts.then_some(row.request), when);
            }
            act => act,
        };
        let is_sent = matches!(act, Act::Messages { send: Some(_), .. });
        if has_returned || is_sent {
            self.begin(index, (row, 0), act, posts.then_some(row.request), when)?;
        }
        for (nth, change) in (0u16..).zip(changes) {
            let meaning = self.threads.get(index).and_then(|thread| thread.meanings.get(change.shape as usize));
            if let Some(&Meaning::Change { change: what, act }) = meaning {
                self.change(index, (row, nth), change.request, what, act)?;
            }
        }
        Ok(())
    }
}

impl Thread<'_> {
    fn event(&mut self, time_ns: u64, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.file.event(time_ns, self.to, write)
    }

    fn enter(&mut self, time_ns: u64, region: Region) -> io::Result<()> {
        self.event(time_ns, |to| region.enter.put(to))
    }

    fn leave(&mut self, time_ns: u64, region: Region) -> io::Result<()> {
        self.event(time_ns, |to| region.leave.put(to))
    }

    /// A record for the return of the innermost open call.
    fn keep(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.kept);
        self.ends.push(self.kept.len());
    }

    /// Leaves calls that are over by then.
    fn close_until(&mut self, ns: u64) -> io::Result<()> {
        while let Some(&Frame { end_ns, region, site, records }) = self.frames.last().filter(|frame| frame.end_ns <= ns)
        {
            self.frames.pop();
            let first = records.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or(0);
            let mut begin = first;
            for index in records..self.ends.len() {
                let end = self.ends.get(index).copied().unwrap_or(begin);
                let kept = self.kept.get(begin..end).unwrap_or_default();
                self.file.event(end_ns, self.to, |to| to.extend_from_slice(kept))?;
                begin = end;
            }
            self.ends.truncate(records);
            self.kept.truncate(first);
            self.leave(end_ns, region)?;
            if let Some(site) = site {
                self.leave(end_ns, site)?;
            }
            if self.frames.is_empty() && std::mem::take(&mut self.phase_changes) {
                self.change_phase(end_ns, self.next_phase)?;
            }
        }
        Ok(())
    }

    /// Phases lie around calls: one that begins in a call begins behind it.
    fn phase(&mut self, ns: u64, phase: Option<Region>) -> io::Result<()> {
        if self.frames.is_empty() {
            return self.change_phase(ns, phase);
        }
        (self.next_phase, self.phase_changes) = (phase, true);
        Ok(())
    }

    fn change_phase(&mut self, ns: u64, phase: Option<Region>) -> io::Result<()> {
        if let Some(before) = std::mem::replace(&mut self.phase, phase) {
            self.leave(ns, before)?;
        }
        if let Some(phase) = phase {
            self.enter(ns, phase)?;
        }
        Ok(())
    }
}

fn collective(to: &mut Vec<u8>, joint: &Joint) {
    to.push(joint.number);
    put_id(to, joint.communicator);
    put_id(to, joint.root);
    put(to, joint.sent);
    put(to, joint.received);
}

struct Translator<'a> {
    process: ProcessId,
    names: &'a Names<'a>,
    used: &'a Used,
    regions: &'a [Region],
}

impl Translator<'_> {
    fn meaning(&self, shape: &Shape) -> Meaning {
        match shape {
            Shape::Phase(change) => {
                let phase = change.phase.as_deref().filter(|_| change.is_on).and_then(|phase| self.used.phase(phase));
                Meaning::Phase(phase.map(|phase| self.region(phase)))
            }
            Shape::Change(change) => Meaning::Change { change: change.change, act: self.act(&change.operation) },
            Shape::Call { call, posts } => {
                let when = call.function().function().operation;
                let does = call.result == 0 && when != When::Persistent;
                Meaning::Call {
                    region: self.region(self.used.function(call.function())),
                    site: call.call_site.and_then(|site| self.used.site(site)).map(|site| self.region(site)),
                    act: if does { self.act(&call.operation) } else { Act::Nothing },
                    when,
                    posts: *posts,
                    has_returned: call.has_returned,
                }
            }
        }
    }

    fn region(&self, number: u32) -> Region {
        self.regions.get(number as usize).copied().unwrap_or_else(|| Region::new(number))
    }

    fn act(&self, operation: &Operation) -> Act {
        let kind = communication(operation.function);
        match kind {
            Communication::Collective(Pattern::Common) => self.window(operation),
            Communication::Collective(_) => self.joint(operation).unwrap_or(Act::Nothing),
            Communication::MatchedProbe => Act::Match,
            Communication::Probe | Communication::PartitionedSend | Communication::PartitionedReceive => Act::Nothing,
            Communication::Nothing => self.access(operation).unwrap_or(Act::Nothing),
            _ => {
                let is_with_somebody = |transfer: &Transfer| transfer.partner != Partner::Null;
                let send = operation.send.filter(is_with_somebody);
                let receive = operation.receive.filter(is_with_somebody);
                let message = |transfer| self.message(operation.communicator, transfer);
                let receives = match receive {
                    None => Receives::Nothing,
                    // Whose message that is, the probe knows that has found it.
                    Some(_) if kind == Communication::MatchedReceive => Receives::Matched,
                    Some(Transfer { partner: Partner::Any, .. }) => Receives::Something,
                    // With which tag it comes does not matter here.
                    Some(receive) if self.peer(operation.communicator, receive.partner).is_none() => {
                        Receives::FromOutside
                    }
                    Some(_) => Receives::Something,
                };
                let ends = MessageEnds { sends: send.is_some(), receives };
                Act::Messages { send: send.and_then(message), receive: receive.and_then(message), ends }
            }
        }
    }

    fn message(&self, communicator: Option<CommunicatorId>, transfer: Transfer) -> Option<Message> {
        let (peer, communicator) = self.peer(communicator, transfer.partner)?;
        let tag = transfer.tag?.cast_unsigned();
        Some(Message::NOTHING.id(peer).id(communicator).id(tag).number(bytes(transfer.bytes)))
    }

    /// A partner and a communicator, as the archive has them.
    fn peer(&self, communicator: Option<CommunicatorId>, partner: Partner) -> Option<(u32, u32)> {
        let (Partner::Rank(rank), Some(id)) = (partner, communicator) else { return None };
        self.names.peer(self.process, id, rank)?;
        let known = self.names.definitions.communicator(id)?;
        // The two groups of an inter-communicator are one in the archive.
        let own = self.names.definitions.process(self.process)?.rank;
        let is_remote = known.is_inter() && !known.remote_members.contains(&own);
        let first = if is_remote { known.members.len() } else { 0 };
        let peer = self.rank_in_group(id, known, first + rank as usize)?;
        Some((peer, self.used.communicator(id)?))
    }

    /// Its rank among those of the communicator that are in the archive.
    fn rank_in_group(&self, id: CommunicatorId, known: &Communicator, rank: usize) -> Option<u32> {
        if known.kind == CommunicatorKind::Own { Some(0) } else { self.names.members(id)?.place(rank) }
    }

    fn joint(&self, operation: &Operation) -> Option<Act> {
        let id = operation.communicator?;
        let known = self.names.definitions.communicator(id)?;
        let is_alone = known.kind == CommunicatorKind::Own;
        if known.is_inter() || (!is_alone && !self.names.members(id).is_some_and(Members::are_all)) {
            return None;
        }
        let root = match operation.root {
            Some(Root::Rank(rank)) => rank,
            _ => UNDEFINED,
        };
        let moved = |transfer: Option<Transfer>| transfer.map_or(0, |transfer| bytes(transfer.bytes));
        Some(Act::Joint(Joint {
            number: collective_number(operation.function)?,
            communicator: self.used.communicator(id)?,
            root,
            sent: moved(operation.send),
            received: moved(operation.receive),
        }))
    }

    fn window(&self, operation: &Operation) -> Act {
        let Some(Object::Window(window)) = operation.object else { return Act::Nothing };
        let is_made = match operation.function.function().name {
            "MPI_Win_free" => false,
            name if name.starts_with("MPI_Win_create") || name.starts_with("MPI_Win_allocate") => true,
            _ => return Act::Nothing,
        };
        match self.used.window(window) {
            Some(window) if self.window_is_known(operation) => Act::Window { is_made, window },
            _ => Act::Nothing,
        }
    }

    fn window_is_known(&self, operation: &Operation) -> bool {
        let Some(Object::Window(window)) = operation.object else { return false };
        let over = self.names.definitions.windows.get(window.index()).and_then(|window| window.communicator);
        over.is_some_and(|over| self.used.communicator(over).is_some())
    }

    fn access(&self, operation: &Operation) -> Option<Act> {
        let Some(Object::Window(window)) = operation.object else { return None };
        if !self.window_is_known(operation) {
            return None;
        }
        let moves = |transfer: Option<Transfer>| match transfer?.partner {
            Partner::Rank(rank) => Some((rank, bytes(transfer?.bytes))),
            _ => None,
        };
        let (sent, received) = (moves(operation.send), moves(operation.receive));
        let record = match operation.function.function().short_name().trim_start_matches('R').trim_end_matches("_c") {
            "Put" | "put" => id::RMA_PUT,
            "Get" | "get" => id::RMA_GET,
            _ => id::RMA_ATOMIC,
        };
        let over = self.names.definitions.windows.get(window.index())?.communicator?;
        let known = self.names.definitions.communicator(over)?;
        Some(Act::Access(Access {
            record,
            window: self.used.window(window)?,
            peer: self.rank_in_group(over, known, sent.or(received)?.0 as usize)?,
            sent: sent.map_or(0, |(_, bytes)| bytes),
            received: received.map_or(0, |(_, bytes)| bytes),
        }))
    }
}

fn bytes(bytes: Bytes) -> u64 {
    bytes.at_most().unwrap_or(0)
}
