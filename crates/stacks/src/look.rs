//! Everything together: from processes to what each of their threads does.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    fs::File,
    time::{Duration, Instant},
};

use crate::callsites::{AddressMap, Modules, Naming};
use mpiprobe_discover::{Process, ProcessId, printable};
use mpiprobe_functions::Group;

use crate::{
    CaptureError,
    arguments::{self, PollingLoop},
    capture::{Capture, Captured},
    copy::{Certainty, State, ThreadCopy},
    exchanging::exchanges,
    memory::Memory,
    naming::{Named, Surroundings, first_outside, named, outermost_call},
    python::Interpreter,
    ranks::Member,
    system_calls::{is_of_descriptor, system_call_name},
    thread_stack::{CallNow, Returns, SystemCallSeen, ThreadStack, WhereNow},
    unwind::{End, FoundBy, Frame, Unwinder, Unwound},
    watched::Watched,
    within::waits_within,
};

/// A process to be looked at.
pub struct Target<'a> {
    pub member: Member,
    pub process: &'a Process,
    /// The path of its program, as it knows it.
    pub executable: &'a str,
    /// Bytes of one element of a predefined datatype, by its handle: how far a call may have changed memory.
    pub element: &'a dyn Fn(u64) -> Option<u64>,
}

impl fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("member", &self.member).field("process", self.process).finish_non_exhaustive()
    }
}

/// One look at some processes.
#[derive(Debug, Default)]
pub struct Look {
    /// By process in the order given, the first thread of each first.
    pub threads: Vec<ThreadStack>,
    /// Processes that have ended.
    pub ended: Vec<Member>,
    /// Threads that were left out, by process: there are more than the limits permit.
    pub left_out: Vec<(Member, usize)>,
    /// Threads that could not be looked at, and why: (process, thread, reason).
    pub refused: Vec<(Member, u32, String)>,
}

impl Look {
    /// Whether all threads were copied as they were at one moment, and those that ask MPI again and again while they did.
    pub fn is_certain(&self) -> bool {
        let is_asking = |thread: &ThreadStack| match thread.polls {
            Some(polls) => !polls || thread.call.is_some(),
            None => false,
        };
        self.threads.iter().all(|thread| thread.certainty == Certainty::Exact && is_asking(thread))
    }
}

/// Looks at processes, and remembers what it has learnt of their files.
#[derive(Debug)]
pub struct Looker {
    capture: Capture,
    unwinder: Unwinder,
    modules: Modules,
    naming: Naming,
    maps: HashMap<ProcessId, AddressMap>,
    interpreters: HashMap<ProcessId, Option<Interpreter>>,
    /// By process and thread, what of the call is watched that it was seen in first; `None`: nobody wants to know.
    watched: Option<HashMap<(ProcessId, u32), Watched>>,
}

/// How long names may take, all together: the rest is shown by file and offset.
const NAMES: Duration = Duration::from_secs(5);

impl Looker {
    pub fn new(capture: Capture) -> Self {
        Self {
            capture,
            unwinder: Unwinder::default(),
            modules: Modules::default(),
            naming: Naming::default(),
            maps: HashMap::new(),
            interpreters: HashMap::new(),
            watched: None,
        }
    }

    /// The same, and says of threads in MPI whether the call has returned that they were seen in first, where the kernel permits
    /// breakpoints: two looks at a loop may find it at the same place. Of one that asks MPI again and again, whether it has stopped to.
    #[must_use]
    pub fn watching_returns(mut self) -> Self {
        self.watched = Some(HashMap::new());
        self
    }

    /// Whether threads are stopped for it.
    pub fn stops(&self) -> bool {
        self.capture.stops()
    }

    /// Looks at all threads of these processes: first at all, then names are found.
    pub fn look(&mut self, targets: &[Target<'_>]) -> Result<Look, CaptureError> {
        self.look_at(targets, false)
    }

    /// The same, and finds out what MPI calls were given.
    pub fn look_closely(&mut self, targets: &[Target<'_>]) -> Result<Look, CaptureError> {
        self.look_at(targets, true)
    }

    /// Which threads of these processes are in MPI calls, without names.
    pub fn look_for_calls(&mut self, targets: &[Target<'_>]) -> Result<Vec<CallNow>, CaptureError> {
        let pids: Vec<u32> = targets.iter().map(|target| target.process.pid()).collect();
        let captured = self.capture.look(&pids)?;
        let mut calls = Vec::new();
        for target in targets {
            let pid = target.process.pid();
            let own: Vec<&ThreadCopy> = captured.threads.iter().filter(|copy| copy.pid == pid).collect();
            // What was copied was this process's only if it still lives.
            if target.process.is_alive() {
                self.read_mappings(target.process);
                calls.extend(own.into_iter().map(|copy| self.call_now(target, copy)));
            }
        }
        Ok(calls)
    }

    /// What a process has mapped at this look: programs open and close libraries, MPI's own most of all while it is initialised, and the next
    /// one is often where the last one was, whose rules would lead anywhere.
    fn read_mappings(&mut self, process: &Process) {
        // Of one that has ended everything stays as it was.
        let _ = self.maps.entry(process.id()).or_default().refresh(process, &mut self.modules);
    }

    fn call_now(&mut self, target: &Target<'_>, copy: &ThreadCopy) -> CallNow {
        let now = |found| CallNow { pid: copy.pid, tid: copy.tid, at_ns: copy.at_ns, found };
        let (Some(registers), Certainty::Exact) = (copy.registers, copy.certainty) else {
            return now(WhereNow::NotKnown);
        };
        let (modules, process) = (&mut self.modules, target.process);
        let map = self.maps.entry(process.id()).or_default();
        let memory_file = memory_of(process);
        let mut memory = Memory::new(&copy.stack, memory_file.as_ref());
        let mut locate = |address| map.locate(address, Some(process), modules);
        let Unwound { frames, end, read_later } = self.unwinder.unwind(registers, &mut memory, &mut locate);
        let found = match outermost_call(&frames) {
            Some((place, function)) => Some((place, function, None)),
            None => arguments::called(&frames, &mut memory, &mut locate),
        };
        now(match found {
            Some((place, function, start)) => WhereNow::InCall {
                function,
                call_site: frames.get(first_outside(&frames, place + 1)).and_then(|frame| frame.registers.ip()),
                words: arguments::words(&frames, (place, start), function, target.element, &mut memory),
                returns: returns(&frames, place, &mut memory),
            },
            None if end == End::Beginning && !read_later => WhereNow::Outside,
            None => WhereNow::NotKnown,
        })
    }

    fn look_at(&mut self, targets: &[Target<'_>], closely: bool) -> Result<Look, CaptureError> {
        let pids: Vec<u32> = targets.iter().map(|target| target.process.pid()).collect();
        let captured = self.capture.look(&pids)?;
        let until = Instant::now() + NAMES;
        let Captured { threads, left_out, refused } = captured;
        let by_pid: HashMap<u32, &Target<'_>> = targets.iter().map(|target| (target.process.pid(), target)).collect();
        let member = |pid: &u32| by_pid.get(pid).map(|target| target.member);
        let mut look = Look {
            left_out: left_out.iter().filter_map(|(pid, count)| Some((member(pid)?, *count))).collect(),
            refused: refused.into_iter().filter_map(|(pid, tid, reason)| Some((member(&pid)?, tid, reason))).collect(),
            ..Look::default()
        };
        let mut threads = threads.into_iter().peekable();
        for target in targets {
            let pid = target.process.pid();
            let own: Vec<ThreadCopy> = std::iter::from_fn(|| threads.next_if(|copy| copy.pid == pid)).collect();
            // What was copied was this process's, and not of another one with its number, if it still lives.
            if !target.process.is_alive() {
                look.ended.push(target.member);
                continue;
            }
            self.threads(target, own, (until, closely), &mut look.threads);
        }
        Ok(look)
    }

    fn threads(
        &mut self,
        target: &Target<'_>,
        copies: Vec<ThreadCopy>,
        (until, closely): (Instant, bool),
        all: &mut Vec<ThreadStack>,
    ) {
        self.read_mappings(target.process);
        let (modules, process) = (&mut self.modules, target.process);
        let map = self.maps.entry(process.id()).or_default();
        let memory_file = memory_of(process);
        let interpreter = self.interpreters.entry(process.id()).or_insert_with(|| Interpreter::of(map));
        let tids: BTreeSet<u32> = copies.iter().map(|copy| copy.tid).collect();
        for copy in copies {
            let unwound = match copy.registers {
                Some(registers) => {
                    let mut memory = Memory::new(&copy.stack, memory_file.as_ref());
                    self.unwinder.unwind(registers, &mut memory, |address| map.locate(address, Some(process), modules))
                }
                None => Unwound { frames: Vec::new(), end: End::Unread, read_later: false },
            };
            let frames = &unwound.frames;
            let mut memory = Memory::new(&copy.stack, memory_file.as_ref());
            // A function of the library may have ended in another one, which has no name of MPI's.
            let called = if outermost_call(frames).is_some() {
                None
            } else {
                arguments::called(frames, &mut memory, |address| map.locate(address, Some(process), modules))
            };
            let is_in_mpi = called.is_some() || outermost_call(frames).is_some();
            let python = interpreter.as_ref().zip(memory_file.as_ref()).map(|(interpreter, memory)| {
                // Of one that runs in the program, what is read later is of another moment.
                match copy.certainty {
                    Certainty::Exact if copy.state == State::Sleeping || is_in_mpi => interpreter.frames(&copy, memory),
                    _ if copy.state == State::Running && !is_in_mpi => interpreter.frames_of_running(&copy, memory),
                    _ => Vec::new(),
                }
            });
            let python = python.unwrap_or_default();
            let surroundings = Surroundings { stack: &copy.stack, executable: target.executable, python: &python };
            let mut named = named(&unwound, called, &surroundings, (&mut self.naming, until));
            if let (true, Some(call), Some(frame)) =
                (closely && Instant::now() < until, &mut named.call, named.call_frame)
            {
                call.words = arguments::words(frames, frame, call.function, target.element, &mut memory);
            }
            let is_exact = copy.certainty == Certainty::Exact;
            let (mut has_returned, mut polls) = (None, Some(false));
            if let Some(all) = &mut self.watched {
                let key = (process.id(), copy.tid);
                if let (false, true, Some(address)) = (all.contains_key(&key), is_exact, named.return_address) {
                    let polls = polling_loop_of(frames, &named, target.element, &mut memory);
                    all.insert(key, Watched::of(copy.tid, address, polls));
                }
                if let Some(watched) = all.get(&key) {
                    has_returned = watched.has_returned();
                    let in_loop = || watched.is_in_loop(named.return_address, &unwound);
                    polls = if has_returned == Some(false) && is_exact { in_loop() } else { Some(false) };
                }
            }
            let is_outside = named.call.is_none();
            let of_file = named.call.as_ref().is_some_and(|call| call.function.function().group == Group::Io);
            let inside = named.call_frame.filter(|_| of_file && is_exact);
            let inside = inside.and_then(|(place, _)| frames.get(..place)).unwrap_or_default();
            let exchanges = exchanges(inside, (&mut self.naming, until));
            let waits_within = if is_outside { waits_within(&copy, &tids, &named.frames, &mut memory) } else { None };
            let system_call = copy.system_call.map(|call| {
                let name = system_call_name(call.number);
                let descriptor = name.filter(|name| is_of_descriptor(name)).map(|_| call.arguments[0]);
                let file = descriptor.and_then(|descriptor| file_of(process, descriptor));
                SystemCallSeen { number: call.number, name, descriptor, file }
            });
            all.push(ThreadStack {
                member: target.member,
                pid: copy.pid,
                tid: copy.tid,
                state: copy.state,
                way: copy.way,
                certainty: copy.certainty,
                call: named.call,
                system_call,
                waits_within,
                frames: named.frames,
                place: named.place,
                end: unwound.end,
                read_later: unwound.read_later,
                progress: copy.progress,
                at_ns: copy.at_ns,
                fingerprint: named.fingerprint,
                has_returned,
                polls,
                exchanges,
            });
        }
    }
}

/// Where the function of a frame returns to, if all up to there is of one moment. Not where a frame was found by a chain of frame pointers,
/// which may leave functions out, and may be none.
fn returns(frames: &[Frame], place: usize, memory: &mut Memory<'_>) -> Option<Returns> {
    let followed = frames.get(..=place + 1)?;
    let caller = followed.last()?.registers;
    let returns = Returns { address: caller.ip()?, slot: caller.sp()?.checked_sub(8)? };
    let is_certain = followed.iter().all(|frame| frame.by != FoundBy::FramePointer);
    (is_certain && memory.word_and_place(returns.slot) == Some((returns.address, true))).then_some(returns)
}

/// The loop in the program that makes the call again and again, if it does nothing else.
fn polling_loop_of(
    frames: &[Frame],
    named: &Named,
    element: &dyn Fn(u64) -> Option<u64>,
    memory: &mut Memory<'_>,
) -> Option<PollingLoop> {
    let (call, frame) = (named.call.as_ref().filter(|call| call.function.function().polling)?, named.call_frame?);
    let caller = frames.get(first_outside(frames, frame.0 + 1))?;
    let words = arguments::words(frames, frame, call.function, element, memory);
    arguments::polling_loop(caller, call.function.function(), &words)
}

fn memory_of(process: &Process) -> Option<File> {
    process.memory().ok()
}

/// The name of what a descriptor of a process stands for.
fn file_of(process: &Process, descriptor: u64) -> Option<String> {
    Some(printable(&process.descriptor(descriptor).ok()?))
}
