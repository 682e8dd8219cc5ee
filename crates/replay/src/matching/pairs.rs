//! Whether every end in a whole trace has its other one, by their numbers alone.
//!
//! Messages of one channel are received in the order in which they were sent (MPI-4.0, section 3.5), and collectives of one communicator are
//! called in the same order by all members: of a trace in which nothing is missing there are as many of both ends exactly if each has its
//! other one. Counting them takes a part of the time that it takes to bring them together.

use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use hashbrown::HashMap;
use mpiprobe_functions::{FunctionId, Operation as When};
use mpiprobe_trace::{Change, CommunicatorId, LocationId, Part, ProcessId, ReadError, Shape, Span, Trace};

use super::{
    meaning::{Act, ChannelNames, Joint, Known, Meaning, Message, Side, Stream, learn},
    process::is_harmful,
};
use crate::{clock::Clocks, parallel};

/// Whether nothing is missing in a trace, and every end in it has its other one; `false`: that has to be found out one by one. `look` is shown
/// everything in any case.
pub(crate) fn are_all(
    trace: &dyn Trace,
    clocks: &Clocks,
    threads: usize,
    look: &(dyn Fn(&Part) + Sync),
) -> Result<bool, ReadError> {
    let definitions = trace.definitions();
    let known = Known::new(definitions, clocks, false);
    let mut names = ChannelNames::default();
    names.grow(definitions.processes.len());
    let ids = (0..).map(ProcessId).take(definitions.processes.len());
    let mut processes: Vec<Process> = ids.map(Process::new).collect();
    for location in definitions.location_ids() {
        let process = definitions.location(location).map(|location| location.process);
        if let Some(process) = process.and_then(|process| processes.get_mut(process.index())) {
            process.locations.push(location);
        }
    }
    let damaged = AtomicU64::new(0);
    parallel::for_each(threads, &mut processes, |_, process| process.read(trace, (&known, &names), &damaged, look));
    for process in &mut processes {
        if let Some(error) = process.failed.take() {
            return Err(error);
        }
    }
    let losses = definitions.locations.iter().any(|location| is_harmful(&location.losses));
    let is_late = processes.iter().any(|process| known.began_before(process.id));
    let is_whole = !losses && !is_late && damaged.into_inner() == 0;
    Ok(is_whole && processes.iter().all(|process| process.is_plain) && are_balanced(&processes) && {
        let joint = |process: &Process| process.joint.keys().map(|joint| joint.communicator).collect::<Vec<_>>();
        let mut communicators: Vec<CommunicatorId> = processes.iter().flat_map(joint).collect();
        communicators.sort_unstable();
        communicators.dedup();
        communicators.into_iter().all(|communicator| {
            known.members(communicator).is_none_or(|members| are_joint(communicator, &members, &processes))
        })
    })
}

/// Whether as many messages are received over each channel as are sent.
fn are_balanced(processes: &[Process]) -> bool {
    let mut balance: HashMap<(ProcessId, u32), i128> = HashMap::new();
    for process in processes {
        for (&channel, &sent) in &process.sent {
            *balance.entry(channel).or_default() += i128::from(sent);
        }
        for (&channel, &received) in &process.received {
            *balance.entry((process.id, channel)).or_default() -= i128::from(received);
        }
    }
    balance.values().all(|&rest| rest == 0)
}

/// Whether all members have called the same over a communicator.
fn are_joint(communicator: CommunicatorId, members: &[ProcessId], processes: &[Process]) -> bool {
    let calls = |process: &ProcessId| {
        let process = processes.get(process.index())?;
        let own = process.joint.iter().filter(|(joint, _)| joint.communicator == communicator);
        Some(own.map(|(&joint, &calls)| (joint, calls)).collect::<HashMap<_, _>>())
    };
    let first = members.first().and_then(calls);
    members.iter().all(|member| calls(member) == first)
}

/// Which collective was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct JointKey {
    communicator: CommunicatorId,
    function: FunctionId,
    is_blocking: bool,
}

/// Numbers of requests, by what they are for: a receive that nobody has posted is not made up for by a send that is never complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Requests {
    receives: u64,
    sends: u64,
    others: u64,
}

impl Requests {
    fn add(&mut self, act: Act, number: u64) {
        let those = match act {
            Act::Messages { receive: Some(_), .. } => &mut self.receives,
            Act::Messages { .. } => &mut self.sends,
            Act::Nothing
            | Act::Start
            | Act::Probe { .. }
            | Act::Collective(_)
            | Act::Failed { .. }
            | Act::FailedCollective
            | Act::Epoch { .. } => &mut self.others,
        };
        *those += number;
    }
}

/// How many ends a process has.
struct Process {
    id: ProcessId,
    locations: Vec<LocationId>,
    /// To a channel of another process.
    sent: HashMap<(ProcessId, u32), u64>,
    received: HashMap<u32, u64>,
    joint: HashMap<JointKey, u64>,
    /// That were begun, and that are complete.
    posted: Requests,
    completed: Requests,
    /// There is nothing of which it would have to be found out whose other end it is.
    is_plain: bool,
    failed: Option<ReadError>,
}

impl Process {
    fn new(id: ProcessId) -> Self {
        Self {
            id,
            locations: Vec::new(),
            sent: HashMap::new(),
            received: HashMap::new(),
            joint: HashMap::new(),
            posted: Requests::default(),
            completed: Requests::default(),
            is_plain: true,
            failed: None,
        }
    }

    fn read(
        &mut self,
        trace: &dyn Trace,
        (known, names): (&Known, &ChannelNames),
        damaged: &AtomicU64,
        look: &(dyn Fn(&Part) + Sync),
    ) {
        for location in mem::take(&mut self.locations) {
            let mut shapes: Option<Arc<[Shape]>> = None;
            // By shape: what it means, and how many there are of it.
            let (mut meanings, mut numbers) = (Vec::new(), Vec::new());
            for part in trace.parts(location, Span::ALL) {
                let part = match part {
                    Ok(part) => part,
                    Err(ReadError::Damaged { .. }) => {
                        damaged.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    Err(error) => {
                        self.failed = Some(error);
                        return;
                    }
                };
                if !shapes.as_ref().is_some_and(|known| Arc::ptr_eq(known, &part.shapes)) {
                    self.sum_up(&meanings, &numbers);
                    learn(&mut meanings, &part.shapes, self.id, known, names);
                    numbers.clear();
                    numbers.resize(part.shapes.len(), 0_u64);
                    shapes = Some(Arc::clone(&part.shapes));
                }
                let of_rows = part.rows.iter().map(|row| row.shape);
                for shape in of_rows.chain(part.changes.iter().map(|change| change.shape)) {
                    if let Some(number) = numbers.get_mut(shape as usize) {
                        *number += 1;
                    }
                }
                look(&part);
            }
            self.sum_up(&meanings, &numbers);
        }
        self.is_plain &= self.posted == self.completed;
    }

    fn sum_up(&mut self, meanings: &[Meaning], numbers: &[u64]) {
        for (meaning, &number) in meanings.iter().zip(numbers) {
            match *meaning {
                Meaning::Call { act, when, posts, has_returned, takes_message, .. } => {
                    // Whoever has not returned has perhaps sent something; and who receives what was matched before has posted it then.
                    self.is_plain &= has_returned && !takes_message;
                    self.call(act, when, posts, number);
                }
                Meaning::Change { change, act } => self.change(change, act, number),
                // Of what was called while counting was off, nobody knows how many there were.
                Meaning::Phase { is_on } => self.is_plain &= is_on,
            }
        }
    }

    fn call(&mut self, act: Act, when: When, posts: bool, number: u64) {
        match act {
            // What is made to be started is no end yet.
            Act::Messages { .. } if when == When::Persistent => {}
            Act::Messages { send, receive } => {
                self.send(send, number);
                if posts {
                    self.posted.add(act, number);
                } else {
                    self.receive(receive, number);
                }
            }
            Act::Probe { takes, .. } => self.is_plain &= !(takes && posts),
            Act::Collective(joint) => {
                self.join(joint, when == When::Blocking, number);
                self.posted.add(act, if posts { number } else { 0 });
            }
            Act::Failed { .. } | Act::FailedCollective => self.is_plain = false,
            Act::Nothing | Act::Start | Act::Epoch { .. } => {}
        }
    }

    fn change(&mut self, change: Change, act: Act, number: u64) {
        let is_partitioned = |send: Option<Message>, receive: Option<Message>| {
            send.or(receive).is_some_and(|message| message.partitioned)
        };
        match (change, act) {
            // Their ends are the operations of persistent requests, which nobody writes down.
            (Change::Started | Change::Completed, Act::Messages { send, receive }) if is_partitioned(send, receive) => {
            }
            (Change::Started, Act::Messages { send, .. }) => {
                self.send(send, number);
                self.posted.add(act, number);
            }
            (Change::Started, Act::Collective(joint)) => {
                self.join(joint, false, number);
                self.posted.add(act, number);
            }
            (Change::Completed, Act::Messages { receive, .. }) => {
                self.receive(receive, number);
                self.completed.add(act, number);
            }
            (Change::Completed, _) => self.completed.add(act, number),
            // What is not complete, whatever has become of it, is missed at the end.
            _ => {}
        }
    }

    fn send(&mut self, message: Option<Message>, number: u64) {
        match message.map(|message| message.side) {
            Some(Side::Channel { process, channel }) => *self.sent.entry((process, channel)).or_default() += number,
            Some(Side::Unknown | Side::Any { .. }) => self.is_plain = false,
            Some(Side::Outside) | None => {}
        }
    }

    fn receive(&mut self, message: Option<Message>, number: u64) {
        match message.map(|message| message.side) {
            Some(Side::Channel { channel, .. }) => *self.received.entry(channel).or_default() += number,
            Some(Side::Unknown | Side::Any { .. }) => self.is_plain = false,
            Some(Side::Outside) | None => {}
        }
    }

    fn join(&mut self, joint: Joint, is_blocking: bool, number: u64) {
        // Those over windows and files are written down by nobody, nor are the beginning and the end.
        if let Stream::Communicator(communicator) = joint.stream {
            let key = JointKey { communicator, function: joint.function, is_blocking };
            *self.joint.entry(key).or_default() += number;
        }
    }
}
