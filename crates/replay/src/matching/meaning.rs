//! What calls of a shape mean for a process: which messages and collectives they are ends of.

use std::sync::{Mutex, PoisonError};

use hashbrown::HashMap;
use mpiprobe_functions::{Communication, FunctionId, Group, Operation as When, Pattern, Role};
use mpiprobe_trace::{
    Bytes, Call, Change, CommunicatorId, CommunicatorKind, Definitions, FileId, Lock, NodeId, Object, Operation,
    Partner, ProcessId, Root, Shape, SiteId, Transfer, WindowId,
};

use crate::{clock::Clocks, communication::communication};

/// Communicators that one was made from, one after the other, as far as anybody follows them.
const MOST_ANCESTORS: usize = 16;

/// What tells messages to a process apart, besides their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ChannelKey {
    pub(super) source: ProcessId,
    pub(super) communicator: CommunicatorId,
    pub(super) tag: i32,
    /// Number plus one of the partitioned operation between the two; 0: an ordinary message.
    pub(super) partitioned: u32,
}

/// Numbers of channels, of each process that receives.
#[derive(Debug, Default)]
pub(super) struct ChannelNames {
    by_process: Vec<Mutex<Names>>,
}

#[derive(Debug, Default)]
struct Names {
    numbers: HashMap<ChannelKey, u32>,
    keys: Vec<ChannelKey>,
}

impl ChannelNames {
    pub(super) fn grow(&mut self, processes: usize) {
        self.by_process.resize_with(processes.max(self.by_process.len()), Mutex::default);
    }

    pub(super) fn number(&self, receiver: ProcessId, key: ChannelKey) -> u32 {
        let Some(names) = self.by_process.get(receiver.index()) else { return u32::MAX };
        let Names { numbers, keys } = &mut *names.lock().unwrap_or_else(PoisonError::into_inner);
        *numbers.entry(key).or_insert_with(|| {
            keys.push(key);
            u32::try_from(keys.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// Those of a process from a number on.
    pub(super) fn since(&self, receiver: ProcessId, first: usize) -> Vec<ChannelKey> {
        let Some(names) = self.by_process.get(receiver.index()) else { return Vec::new() };
        let names = names.lock().unwrap_or_else(PoisonError::into_inner);
        names.keys.get(first..).unwrap_or_default().to_vec()
    }
}

/// The definitions, as they are asked.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) definitions: Definitions,
    /// Number of the job of each process.
    jobs: Vec<u32>,
    by_rank: HashMap<(u32, u32), ProcessId>,
    job_of_communicator: Vec<Option<u32>>,
    worlds: HashMap<u32, CommunicatorId>,
    /// How many threads of each process call MPI.
    threads: Vec<u32>,
    /// What is read begins in the middle of what was recorded.
    from_middle: bool,
    /// Or some process had called MPI before.
    is_from_middle_of_any: bool,
    pub(super) clocks: Clocks,
}

impl Known {
    pub(super) fn new(definitions: &Definitions, clocks: &Clocks, from_middle: bool) -> Self {
        let mut numbers: HashMap<Option<&str>, u32> = HashMap::new();
        let mut number = |job| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            *numbers.entry(job).or_insert(next)
        };
        let jobs: Vec<u32> = definitions.processes.iter().map(|process| number(process.job.as_deref())).collect();
        let of_communicator = definitions.communicators.iter().map(|known| Some(number(known.job.as_deref())));
        let job_of_communicator: Vec<_> = of_communicator.collect();
        let mut threads = vec![0; jobs.len()];
        for location in &definitions.locations {
            if let Some(threads) = threads.get_mut(location.process.index()) {
                *threads += 1;
            }
        }
        let ranks = (0..).map(ProcessId).zip(definitions.processes.iter().zip(&jobs));
        let worlds = (0..).map(CommunicatorId).zip(definitions.communicators.iter().zip(&job_of_communicator));
        Self {
            by_rank: ranks.filter_map(|(id, (process, &job))| Some(((job, process.rank?), id))).collect(),
            worlds: worlds
                .filter(|(_, (known, _))| known.kind == CommunicatorKind::World)
                .filter_map(|(id, (_, &job))| Some((job?, id)))
                .collect(),
            jobs,
            job_of_communicator,
            threads,
            is_from_middle_of_any: from_middle || definitions.processes.iter().any(|process| process.began_before),
            definitions: definitions.clone(),
            from_middle,
            clocks: clocks.clone(),
        }
    }

    /// Whether a process had called MPI before anything is known of it.
    pub(super) fn began_before(&self, process: ProcessId) -> bool {
        self.from_middle || self.definitions.process(process).is_some_and(|process| process.began_before)
    }

    /// Whether that is so of any.
    pub(super) const fn has_anybody_begun_before(&self) -> bool {
        self.is_from_middle_of_any
    }

    /// Whether one thread makes all calls of a process.
    pub(super) fn is_of_one_thread(&self, process: ProcessId) -> bool {
        self.threads.get(process.index()) == Some(&1)
    }

    /// The job of a process whose rank in it is known, and how many there are.
    fn job_in_which_it_has_a_place(&self, process: ProcessId) -> Option<u32> {
        let known = self.definitions.process(process)?;
        known.rank.and(known.world_size)?;
        self.jobs.get(process.index()).copied()
    }

    /// All processes of a job by rank; `None`: not all are recorded.
    pub(super) fn all_of(&self, job: u32) -> Option<Vec<ProcessId>> {
        let processes = self.definitions.processes.iter().zip(&self.jobs);
        let mut sizes = processes.filter(|&(_, &of)| of == job).map(|(process, _)| process.world_size);
        let size = sizes.find_map(|size| size)?;
        (0..size).map(|rank| self.by_rank.get(&(job, rank)).copied()).collect()
    }

    /// The communicator of all of them, if anybody has used it.
    pub(super) fn world_of(&self, job: u32) -> Option<CommunicatorId> {
        self.worlds.get(&job).copied()
    }

    /// The world that a communicator is of.
    pub(super) fn world(&self, communicator: CommunicatorId) -> Option<CommunicatorId> {
        let job = self.job_of_communicator.get(communicator.index()).copied().flatten()?;
        self.worlds.get(&job).copied()
    }

    /// A communicator, what it was made from, and so on; and the world that it is of.
    pub(super) fn ancestors(&self, communicator: CommunicatorId) -> impl Iterator<Item = CommunicatorId> {
        let parent = |id: &CommunicatorId| self.definitions.communicator(*id)?.parent;
        let parents = std::iter::successors(Some(communicator), parent).take(MOST_ANCESTORS);
        parents.chain(self.world(communicator))
    }

    /// Whether everything is known that was done over a communicator.
    pub(super) fn is_from_its_beginning(&self, communicator: CommunicatorId) -> bool {
        !self.from_middle && self.definitions.communicator(communicator).is_some_and(|known| known.was_made)
    }

    /// How much times of any two of these processes may be off against each other; `None`: nothing bounds it.
    pub(super) fn within_ns(&self, processes: &[ProcessId]) -> Option<u64> {
        let nodes = processes.iter().filter_map(|&id| self.definitions.process(id)).map(|process| process.node);
        self.clocks.among_ns(nodes)
    }

    /// How much times of others may be off against those of a process, as far as anything bounds it.
    pub(super) fn most_apart_ns(&self, process: ProcessId) -> u64 {
        let Some(own) = self.definitions.process(process) else { return 0 };
        let nodes = (0..).map(NodeId).take(self.definitions.nodes.len());
        nodes.filter_map(|node| self.clocks.within_ns(own.node, node)).max().unwrap_or(0)
    }

    /// The process that another one means by a rank.
    fn process(&self, from: ProcessId, communicator: CommunicatorId, rank: u32) -> Option<ProcessId> {
        let known = self.definitions.communicator(communicator)?;
        if known.kind == CommunicatorKind::Own {
            return (rank == 0).then_some(from);
        }
        let world_rank = known.member(self.definitions.process(from)?.rank, rank)?;
        self.by_rank.get(&(*self.jobs.get(from.index())?, world_rank)).copied()
    }

    /// All members in the order of ranks, one group of an inter-communicator after the other; `None`: not all are recorded.
    pub(super) fn members(&self, communicator: CommunicatorId) -> Option<Vec<ProcessId>> {
        let known = self.definitions.communicator(communicator)?;
        if known.members.is_empty() || known.kind == CommunicatorKind::Own {
            return None;
        }
        let job = self.job_of_communicator.get(communicator.index()).copied().flatten()?;
        let members = known.members.iter().chain(&known.remote_members);
        members.map(|&rank| self.by_rank.get(&(job, rank?)).copied()).collect()
    }
}

/// Where calls of a collective belong: those of one stream come in the same order in all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stream {
    Communicator(CommunicatorId),
    Window(WindowId),
    File(FileId),
    /// `MPI_Init` of the processes of a job, by its number.
    Beginning(u32),
    /// `MPI_Finalize`.
    End(u32),
}

/// What a call does in an epoch of a window. Targets: `None` for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// `MPI_Win_start`
    Start,
    /// To data of that process.
    Access(ProcessId),
    /// `MPI_Win_complete`
    Complete,
    /// `MPI_Win_post`
    Post,
    /// `MPI_Win_wait`
    Wait,
    /// `MPI_Win_lock`, `MPI_Win_lock_all`; `exclusive`: `None` if it is not known.
    Lock { target: Option<ProcessId>, exclusive: Option<bool> },
    /// `MPI_Win_lock` of a part of a window of which it is not known whose it is.
    LockOfUnknown,
    /// `MPI_Win_unlock`, `MPI_Win_unlock_all`
    Unlock(Option<ProcessId>),
    /// `MPI_Win_flush` and the like. `completes`: at the target, too.
    Flush { target: Option<ProcessId>, completes: bool },
}

/// One end of a message, as a call names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The channel has this number in the process that receives.
    Channel { process: ProcessId, channel: u32 },
    /// The other end is in no process that is recorded.
    Outside,
    /// It is not known who it is.
    Unknown,
    /// Whoever comes first; the process, if that is said.
    Any { source: Option<ProcessId>, communicator: CommunicatorId, tag: Option<i32> },
}

/// A message, as a call names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) side: Side,
    pub(super) bytes: Option<u64>,
    /// Its parts come one by one.
    pub(super) partitioned: bool,
}

/// A call of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Joint {
    pub(super) stream: Stream,
    pub(super) pattern: Pattern,
    /// Without regard to how its counts are passed.
    pub(super) function: FunctionId,
    pub(super) is_root: bool,
    /// False: it is known that nothing is.
    pub(super) sends: bool,
    pub(super) receives: bool,
    pub(super) does: ToObject,
}

impl Joint {
    /// The window or file that it makes, as its process calls it.
    pub(super) fn made(&self) -> Option<Stream> {
        match self.does {
            ToObject::Makes(own) => Some(own),
            ToObject::Nothing | ToObject::Frees => None,
        }
    }
}

/// What becomes of a window or a file by a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToObject {
    /// It stays as it is, or there is none.
    Nothing,
    /// It is made; this is what the process calls it.
    Makes(Stream),
    /// It is no more.
    Frees,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Nothing,
    Messages {
        send: Option<Message>,
        receive: Option<Message>,
    },
    /// Has found a message. `takes`: for the receive that is given its handle.
    Probe {
        from: Message,
        takes: bool,
    },
    Collective(Joint),
    /// Starts requests, of which its changes say what they are.
    Start,
    /// It has failed. A receive may have taken a message all the same, which was too long (MPI_ERR_TRUNCATE), and a send beside it may have gone.
    Failed {
        send: Option<Message>,
        receive: Message,
    },
    /// Others may have made the same call with success, or nobody.
    FailedCollective,
    /// In an epoch of that window.
    Epoch {
        window: Stream,
        step: Step,
    },
}

/// What calls of a shape mean, or what they do to a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Meaning {
    Call {
        function: FunctionId,
        site: Option<SiteId>,
        act: Act,
        /// When the operation is complete.
        when: When,
        /// Gives back a request.
        posts: bool,
        waits: bool,
        has_returned: bool,
        /// It had begun when nothing was recorded.
        began_before: bool,
        /// It receives a message that a probe has found.
        takes_message: bool,
        /// It may keep a receive from ever getting a message: which one is not said.
        cancels: bool,
    },
    Change {
        change: Change,
        act: Act,
    },
    /// Whether calls of the process are recorded from then on.
    Phase {
        is_on: bool,
    },
}

/// What shapes mean for a process, in place of what is in the list: its room is used again.
pub(super) fn learn(
    meanings: &mut Vec<Meaning>,
    shapes: &[Shape],
    process: ProcessId,
    known: &Known,
    names: &ChannelNames,
) {
    let of = Translator { process, known, names };
    meanings.clear();
    meanings.extend(shapes.iter().map(|shape| of.meaning(shape)));
}

struct Translator<'a> {
    process: ProcessId,
    known: &'a Known,
    names: &'a ChannelNames,
}

impl Translator<'_> {
    fn meaning(&self, shape: &Shape) -> Meaning {
        match shape {
            Shape::Phase(phase) => Meaning::Phase { is_on: phase.is_on },
            Shape::Change(change) => Meaning::Change { change: change.change, act: self.act(&change.operation) },
            Shape::Call { call, posts } => self.call(call, *posts),
        }
    }

    fn call(&self, call: &Call, posts: bool) -> Meaning {
        let function = call.function().function();
        let when = function.operation;
        // A call that has failed has moved nothing. What is made to be started is told again when it is.
        let does = call.result == 0 && (when != When::Persistent || function.group == Group::PointToPoint);
        Meaning::Call {
            function: call.function(),
            site: call.call_site,
            act: match does {
                true => self.act(&call.operation),
                false if when == When::Blocking && call.result != 0 => self.failed(&call.operation),
                false => Act::Nothing,
            },
            when,
            posts,
            waits: !function.polling && (function.waits_for_requests() || when == When::Blocking),
            has_returned: call.has_returned,
            began_before: call.began_before,
            takes_message: communication(call.function()) == Communication::MatchedReceive,
            cancels: function.name == "MPI_Cancel",
        }
    }

    fn failed(&self, operation: &Operation) -> Act {
        match communication(operation.function) {
            Communication::Receive | Communication::Exchange => {
                let send = self.send(operation, false);
                self.receive(operation, false).map_or(Act::Nothing, |receive| Act::Failed { send, receive })
            }
            Communication::Collective(_) => Act::FailedCollective,
            _ => Act::Nothing,
        }
    }

    fn act(&self, operation: &Operation) -> Act {
        match communication(operation.function) {
            Communication::Nothing if matches!(operation.function.function().name, "MPI_Start" | "MPI_Startall") => {
                Act::Start
            }
            Communication::Nothing => {
                self.epoch(operation).unwrap_or_else(|| self.beginning_or_end(operation.function))
            }
            Communication::Collective(pattern) => self.joint(operation, pattern).map_or(Act::Nothing, Act::Collective),
            probe @ (Communication::Probe | Communication::MatchedProbe) => {
                let takes = probe == Communication::MatchedProbe;
                self.receive(operation, false).map_or(Act::Nothing, |from| Act::Probe { from, takes })
            }
            Communication::PartitionedSend | Communication::PartitionedReceive => {
                Act::Messages { send: self.send(operation, true), receive: self.receive(operation, true) }
            }
            _ => Act::Messages { send: self.send(operation, false), receive: self.receive(operation, false) },
        }
    }

    fn send(&self, operation: &Operation, partitioned: bool) -> Option<Message> {
        let transfer = operation.send?;
        let side = match (transfer.partner, operation.communicator, transfer.tag) {
            (Partner::Null, ..) => return None,
            (Partner::Rank(rank), Some(communicator), Some(tag)) => {
                match self.known.process(self.process, communicator, rank) {
                    Some(to) => self.channel(to, self.process, communicator, tag),
                    None => Side::Outside,
                }
            }
            _ => Side::Unknown,
        };
        Some(Message { side, bytes: known_bytes(transfer), partitioned })
    }

    fn receive(&self, operation: &Operation, partitioned: bool) -> Option<Message> {
        let transfer = operation.receive?;
        let source = match (transfer.partner, operation.communicator) {
            (Partner::Rank(rank), Some(communicator)) => Some(self.known.process(self.process, communicator, rank)),
            _ => None,
        };
        let side = match (transfer.partner, operation.communicator, transfer.tag) {
            (Partner::Null, ..) => return None,
            (Partner::Rank(_), Some(_), _) if source == Some(None) => Side::Outside,
            (Partner::Rank(_), Some(communicator), Some(tag)) => {
                self.channel(self.process, source.flatten().unwrap_or(self.process), communicator, tag)
            }
            (Partner::Rank(_), Some(communicator), None) => {
                Side::Any { source: source.flatten(), communicator, tag: None }
            }
            (Partner::Any, Some(communicator), tag) => Side::Any { source: None, communicator, tag },
            _ => Side::Unknown,
        };
        Some(Message { side, bytes: known_bytes(transfer), partitioned })
    }

    fn channel(&self, to: ProcessId, source: ProcessId, communicator: CommunicatorId, tag: i32) -> Side {
        let key = ChannelKey { source, communicator, tag, partitioned: 0 };
        Side::Channel { process: to, channel: self.names.number(to, key) }
    }

    /// What a call does in an epoch, if it is one-sided; `None`: it is not, or it is not known to whose data it goes.
    fn epoch(&self, operation: &Operation) -> Option<Act> {
        let Some(Object::Window(window)) = operation.object else { return None };
        let target = || match operation.partner()? {
            Partner::Rank(rank) => self.known.process(self.process, operation.communicator?, rank),
            _ => None,
        };
        let lock = operation.target.and_then(|target| target.lock);
        let step = match operation.function.function().name {
            "MPI_Win_start" => Step::Start,
            "MPI_Win_complete" => Step::Complete,
            "MPI_Win_post" => Step::Post,
            "MPI_Win_wait" => Step::Wait,
            "MPI_Win_lock" if operation.partner() == Some(Partner::Null) => return None,
            "MPI_Win_lock" => target().map_or(Step::LockOfUnknown, |target| Step::Lock {
                target: Some(target),
                exclusive: lock.map(|lock| lock == Lock::Exclusive),
            }),
            "MPI_Win_lock_all" => Step::Lock { target: None, exclusive: Some(false) },
            "MPI_Win_unlock" => Step::Unlock(Some(target()?)),
            "MPI_Win_unlock_all" => Step::Unlock(None),
            "MPI_Win_flush" => Step::Flush { target: Some(target()?), completes: true },
            "MPI_Win_flush_all" => Step::Flush { target: None, completes: true },
            "MPI_Win_flush_local" => Step::Flush { target: Some(target()?), completes: false },
            "MPI_Win_flush_local_all" => Step::Flush { target: None, completes: false },
            _ => Step::Access(target()?),
        };
        Some(Act::Epoch { window: Stream::Window(window), step })
    }

    fn beginning_or_end(&self, function: FunctionId) -> Act {
        let stream: fn(u32) -> Stream = match function.function().name {
            "MPI_Init" | "MPI_Init_thread" => Stream::Beginning,
            "MPI_Finalize" => Stream::End,
            _ => return Act::Nothing,
        };
        let Some(job) = self.known.job_in_which_it_has_a_place(self.process) else { return Act::Nothing };
        // Which of the two has initialised it is of no importance.
        let joint = Joint {
            stream: stream(job),
            pattern: Pattern::Barrier,
            function: mpiprobe_functions::by_name("MPI_Init").unwrap_or(function),
            is_root: false,
            sends: true,
            receives: true,
            does: ToObject::Nothing,
        };
        Act::Collective(joint)
    }

    fn joint(&self, operation: &Operation, pattern: Pattern) -> Option<Joint> {
        let is_over_communicator = operation.function.function().position(Role::Communicator).is_some();
        let object = operation.object.map(|object| match object {
            Object::Window(window) => Stream::Window(window),
            Object::File(file) => Stream::File(file),
        });
        let (stream, does) = match (operation.communicator, object) {
            (Some(communicator), Some(made)) if is_over_communicator => {
                (Stream::Communicator(communicator), ToObject::Makes(made))
            }
            (Some(communicator), None) if is_over_communicator => {
                (Stream::Communicator(communicator), ToObject::Nothing)
            }
            (_, object) if operation.function.function().descriptor().frees != 0 => (object?, ToObject::Frees),
            (_, object) => (object?, ToObject::Nothing),
        };
        let moves_any = |transfer: Option<Transfer>| {
            pattern == Pattern::Barrier || transfer.is_some_and(|transfer| transfer.bytes.at_most() != Some(0))
        };
        let is_root = match (operation.root, operation.communicator) {
            (Some(Root::Rank(rank)), Some(communicator)) => {
                self.known.process(self.process, communicator, rank) == Some(self.process)
            }
            (Some(Root::Own), _) => true,
            _ => false,
        };
        let function = operation.function.function().large_count_of().unwrap_or(operation.function);
        let (sends, receives) = (moves_any(operation.send), moves_any(operation.receive));
        Some(Joint { stream, pattern, function, is_root, sends, receives, does })
    }
}

fn known_bytes(transfer: Transfer) -> Option<u64> {
    match transfer.bytes {
        Bytes::Known(bytes) => Some(bytes),
        _ => None,
    }
}
