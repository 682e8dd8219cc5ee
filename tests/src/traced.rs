//! A trace, event for event, against the truth library's log of the same job.
#![expect(clippy::missing_panics_doc, reason = "these are assertions")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::Duration;

use libtest_mimic::Failed;
use mpiprobe_functions::Group;
use mpiprobe_trace::store::TraceFiles;
use mpiprobe_trace::{
    Bytes, Call, Change, Communicator, CommunicatorId, Event, Location, Object, Operation, Partner, ProcessId,
    RequestChange, RequestId, Root, Span, Trace, Transfer,
};

use crate::truth::{ChangeKind, Given, Log, LoggedCall, LoggedChange, Meaning, Scope, ScopeKind, Snapshot};
use crate::{Job, Mpi, Program, program};

/// Where the truth library's clock is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Inside the call as the trace has it: the wrapper comes before the truth library.
    TruthInside,
    /// Around it: probes are in the MPI library.
    TruthOutside,
}

/// How much of what has happened a trace is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Whole,
    /// The last calls of each thread that had returned by then, ns, without a gap; and it says how many came before.
    Tail {
        until_ns: u64,
    },
    /// Some, and it says how many came between.
    Windows,
}

/// What is not the same, in words; how many calls were compared.
#[derive(Debug, Default)]
pub struct Comparison {
    pub calls: usize,
    /// Calls that are not part of it: before a tail, or between windows.
    pub before: usize,
    pub differences: Vec<String>,
    /// Calls that are not in the trace: those that asked in vain, while there was little room, and what they were counted as.
    pub left_out: u64,
    /// Calls in the trace that have returned, by rank and function.
    pub by_function: BTreeMap<(u32, &'static str), u64>,
    /// How far a time was on the wrong side of the truth's, ns.
    pub clocks_differ_ns: u64,
}

/// An application asks MPI what some ten thousand calls mean, on a machine that may be busy.
const DEADLINE: Duration = Duration::from_mins(5);

/// A job that is recorded from its first call on (`run --trace` by an engine) agrees with the truth library's log event for event. Gives the job, which
/// has ended, and the comparison.
pub fn recorded(
    mpi: Mpi,
    engine: &str,
    program: Program,
    arguments: &[&str],
    order: Order,
) -> Result<(Job, Comparison), Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("job.trace");
    let options: [OsString; 4] = ["--functions".into(), "all".into(), "--trace".into(), path.clone().into()];
    let job = Job::builder(mpi, program).args(arguments.iter().copied()).log().deadline(DEADLINE);
    let mut job = job.run_by(engine, options)?.spawn()?;
    job.wait()?.success()?;
    let compared = agreement(mpi, &path, &job, order)?;
    Ok((job, compared))
}

/// Of a job that is recorded by an engine and ends in `MPI_Abort` of rank 1, that call is in the trace, up to the end of its process.
pub fn has_call_that_its_process_ended_in(mpi: Mpi, engine: &str) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("job.trace");
    let options: [OsString; 4] = ["--functions".into(), "all".into(), "--trace".into(), path.clone().into()];
    let job = Job::builder(mpi, program::EXITS).ranks(2).args(["abort"]).deadline(DEADLINE);
    job.run_by(engine, options)?.spawn()?.wait()?;
    let trace = TraceFiles::open(&[&path])?;
    let definitions = trace.definitions();
    let mut cut_short = Vec::new();
    for location in definitions.location_ids() {
        for event in trace.events(location, Span::ALL) {
            if let Event::Call(call) = event?
                && !call.has_returned
            {
                let process = definitions.location(location).and_then(|one| definitions.process(one.process));
                let process = process.ok_or("a call of nobody")?;
                cut_short.push((
                    process.rank,
                    call.function().function().name,
                    Some(call.return_ns) <= process.ended_ns,
                ));
            }
        }
    }
    if cut_short.contains(&(Some(1), "MPI_Abort", true)) {
        return Ok(());
    }
    Err(format!("calls that have not returned: {cut_short:?}").into())
}

/// Of a job whose ranks leave ten sends by `longjmp`, which is recorded by an engine, the trace says in each thread how many are not there, and where:
/// whoever pairs calls must know that some are missing.
pub fn misses_calls_that_were_left(mpi: Mpi, engine: &str) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("job.trace");
    let options: [OsString; 4] = ["--functions".into(), "all".into(), "--trace".into(), path.clone().into()];
    let job = Job::builder(mpi, program::EXITS).ranks(2).args(["longjmp"]).deadline(DEADLINE);
    job.run_by(engine, options)?.spawn()?.wait()?.success()?;
    let trace = TraceFiles::open(&[&path])?;
    let definitions = trace.definitions();
    let mut found = Vec::new();
    for location in definitions.location_ids() {
        let losses = definitions.location(location).map(|location| location.losses).unwrap_or_default();
        let mut passed = Vec::new();
        let mut next = 0;
        for event in trace.events(location, Span::ALL) {
            if let Event::Call(call) = event? {
                passed.extend((call.number > next).then(|| (call.function().function().name, call.number - next)));
                next = call.number + 1;
            }
        }
        found.push((losses.left_without_return, losses.missing(), passed));
    }
    let expected = vec![(10, 10, vec![("MPI_Errhandler_free", 10)]); 2];
    if found == expected { Ok(()) } else { Err(format!("left, missing, where: {found:?}, not {expected:?}").into()) }
}

/// The trace in a file agrees with the log of a job that has ended.
pub fn agreement(mpi: Mpi, trace: &Path, job: &Job, order: Order) -> Result<Comparison, Failed> {
    agreement_of(mpi, trace, job, order, Extent::Whole)
}

/// The same of a part of it.
pub fn agreement_of(mpi: Mpi, trace: &Path, job: &Job, order: Order, extent: Extent) -> Result<Comparison, Failed> {
    agreement_of_files(mpi, &[trace.to_owned()], job, order, extent)
}

/// The same of a trace that is in several files.
pub fn agreement_of_files(
    mpi: Mpi,
    files: &[PathBuf],
    job: &Job,
    order: Order,
    extent: Extent,
) -> Result<Comparison, Failed> {
    let trace = TraceFiles::open(files)?;
    assert!(trace.notes().is_empty(), "{:?}", trace.notes());
    let compared = compare(mpi, &trace, &job.snapshot()?, order, extent);
    assert!(compared.differences.is_empty(), "{:#?}", compared.differences.iter().take(20).collect::<Vec<_>>());
    // A part may be short where the machine is busy.
    assert!(compared.calls > if extent == Extent::Whole { 100 } else { 0 }, "{compared:?}");
    Ok(compared)
}

/// Compares everything.
fn compare(mpi: Mpi, trace: &TraceFiles, truth: &Snapshot, order: Order, extent: Extent) -> Comparison {
    let mut all = Comparison::default();
    for (rank, image) in &truth.ranks {
        // A job that goes on until it is stopped calls as often as the machine lets it.
        if image.log.overwritten != 0 && !matches!(extent, Extent::Tail { .. }) {
            all.differences.push(format!("rank {rank}: {} events had no room in the log", image.log.overwritten));
        }
        let process = trace.definitions().processes.iter().position(|process| process.rank == Some(*rank));
        let Some(process) = process else {
            all.differences.push(format!("rank {rank} is not in the trace"));
            continue;
        };
        let id = ProcessId(u32::try_from(process).unwrap_or(u32::MAX));
        OfProcess {
            trace,
            mpi,
            order,
            extent,
            requests: HashMap::new(),
            objects: HashMap::new(),
            all: &mut all,
            who: String::new(),
        }
        .compare(id, *rank, &image.log);
    }
    all
}

struct OfProcess<'a> {
    trace: &'a TraceFiles,
    mpi: Mpi,
    order: Order,
    extent: Extent,
    /// The truth's number of each request, and the trace's of each of those.
    requests: HashMap<RequestId, u64>,
    objects: HashMap<Object, u32>,
    all: &'a mut Comparison,
    who: String,
}

impl OfProcess<'_> {
    fn compare(mut self, id: ProcessId, rank: u32, log: &Log) {
        let definitions = self.trace.definitions();
        let locations: BTreeMap<u32, _> = definitions
            .threads(id)
            .filter_map(|location| Some((definitions.location(location)?.tid, location)))
            .collect();
        // Requests go from thread to thread: so all calls in the order of their ends.
        let mut all: Vec<(&LoggedCall, Call, String)> = Vec::new();
        for (tid, calls) in &log.threads {
            let calls: Vec<&LoggedCall> = calls.iter().collect();
            if calls.is_empty() {
                continue;
            }
            let Some(&location) = locations.get(tid) else {
                self.all.differences.push(format!("rank {rank}: thread {tid} is not in the trace"));
                continue;
            };
            let mut events: BTreeMap<u64, Call> = BTreeMap::new();
            let mut last_ns = 0;
            for event in self.trace.events(location, Span::ALL) {
                match event {
                    Ok(event) => {
                        if event.time_ns() < last_ns {
                            self.all.differences.push(format!("rank {rank}, thread {tid}: {event:?} is out of order"));
                        }
                        last_ns = event.time_ns();
                        if let Event::Call(call) = event {
                            let name = call.function().function().name;
                            *self.all.by_function.entry((rank, name)).or_default() += u64::from(call.has_returned);
                            events.insert(call.number, call);
                        }
                    }
                    Err(error) => self.all.differences.push(format!("rank {rank}, thread {tid}: {error}")),
                }
            }
            let first = events.values().next().map(|call| (call.number, call.entry_ns));
            if self.order == Order::TruthOutside {
                events = numbered_as_told(events, &calls);
            }
            let mut missing = 0;
            for told in &calls {
                let number = u64::from(told.number);
                let who = format!("rank {rank}, thread {tid}, call {number}: {}", told.function);
                match events.remove(&number) {
                    _ if self.is_after(told) => {}
                    Some(call) => all.push((told, call, who)),
                    None if self.is_before(number, told, first) => self.all.before += 1,
                    None if asks_in_vain(told) => missing += 1,
                    None => self.all.differences.push(format!("{who} is not in the trace")),
                }
            }
            let who = format!("rank {rank}, thread {tid}");
            self.expect_counted(&who, definitions.location(location), missing, first);
            // Whoever is killed may have had no time to tell of the last one.
            let untold = usize::from(matches!(self.extent, Extent::Tail { .. }));
            for call in events.values().filter(|call| call.has_returned).skip(untold) {
                self.all.differences.push(format!("rank {rank}, thread {tid}: nobody has made {call:?}"));
            }
        }
        all.sort_by_key(|(told, _, _)| told.end_ns);
        for (told, call, who) in all {
            self.who = who;
            self.call(told, &call);
        }
    }

    /// Whether a call is not part of the extent: it had not returned by its end, or came before its beginning, the first call that is there (number,
    /// entry in ns).
    fn is_after(&self, told: &LoggedCall) -> bool {
        matches!(self.extent, Extent::Tail { until_ns } if told.end_ns >= until_ns)
    }

    fn is_before(&self, number: u64, told: &LoggedCall, first: Option<(u64, u64)>) -> bool {
        let is_earlier = first.is_none_or(|(first, entry_ns)| match self.order {
            Order::TruthInside => number < first,
            Order::TruthOutside => told.end_ns < entry_ns,
        });
        match self.extent {
            Extent::Whole => false,
            Extent::Tail { .. } => is_earlier,
            Extent::Windows => true,
        }
    }

    fn expect_counted(&mut self, who: &str, location: Option<&Location>, missing: u64, first: Option<(u64, u64)>) {
        let Some(location) = location else { return };
        let losses = location.losses;
        self.all.left_out += missing;
        let is_counted = match (self.extent, first) {
            (Extent::Whole, _) => losses.left_out.by_pressure == missing && losses.left_out.by_time == 0,
            // Numbers are counted from the first call on.
            (Extent::Tail { .. }, Some((number, _))) => {
                losses.left_out.by_pressure >= missing && losses.left_out.by_time == number
            }
            (Extent::Tail { .. }, None) | (Extent::Windows, _) => true,
        };
        if losses.missing() + losses.lost_changes > 0 || !is_counted {
            let first = first.map(|(number, _)| number);
            self.all.differences.push(format!(
                "{who}: {missing} calls are not there, the first is {first:?}, and the trace says {losses:?}"
            ));
        }
    }

    fn differ(&mut self, what: &str, told: &dyn Debug, traced: &dyn Debug) {
        self.all.differences.push(format!("{}: {what}: told {told:?}, traced {traced:?}", self.who));
    }

    fn call(&mut self, told: &LoggedCall, call: &Call) {
        self.all.calls += 1;
        let name = call.function().function().name;
        if name != told.function {
            return self.differ("function", &told.function, &name);
        }
        let (outer, inner) = match self.order {
            Order::TruthInside => ((call.entry_ns, call.return_ns), (told.start_ns, told.end_ns)),
            Order::TruthOutside => ((told.start_ns, told.end_ns), (call.entry_ns, call.return_ns)),
        };
        let wrong = outer.0.saturating_sub(inner.0).max(inner.1.saturating_sub(outer.1));
        self.all.clocks_differ_ns = self.all.clocks_differ_ns.max(wrong);
        if let Some(meaning) = &told.meaning {
            self.meaning(meaning, call);
        }
        self.changes(&told.changes, call);
    }

    fn meaning(&mut self, told: &Meaning, call: &Call) {
        if told.result != call.result {
            self.differ("result", &told.result, &call.result);
        }
        let operation = &call.operation;
        self.scope(told.scope.as_ref(), operation.communicator);
        self.object(told, operation.object);
        let root = match told.root {
            Given::Nothing | Given::Any => None,
            Given::Root => Some(Root::Own),
            Given::Null => Some(Root::Null),
            Given::Number(rank) => u32::try_from(rank).ok().map(Root::Rank),
        };
        if root != operation.root {
            self.differ("root", &root, &operation.root);
        }
        if told.result != 0 {
            return;
        }
        match (told.destination, operation.send, operation.receive) {
            (Given::Nothing, ..) => {}
            (destination, Some(send), _) => {
                self.partner("destination", destination, Given::Nothing, false, send.partner);
            }
            (destination, None, Some(receive)) => {
                self.partner("target", destination, Given::Nothing, false, receive.partner);
            }
            (destination, None, None) => match operation.target {
                Some(target) => self.partner("target", destination, Given::Nothing, false, target.partner),
                None => self.differ("destination", &destination, &operation),
            },
        }
        let lock = operation.target.and_then(|target| target.lock);
        if lock != told.lock {
            self.differ("lock", &told.lock, &lock);
        }
        if let Some(send) = operation.send.filter(|_| told.send_tag != Given::Nothing) {
            self.tag("tag of what is sent", told.send_tag, Given::Nothing, false, send.tag);
        }
        let sent = operation.send.map_or(Bytes::Known(0), |send| send.bytes);
        if sent != Bytes::Known(told.sent) {
            self.differ("bytes sent", &told.sent, &sent);
        }
        // Of what is complete, the truth knows what the program does not ask for.
        let is_open = call.request.is_some() || told.is_ignored;
        if told.given_source == Given::Nothing {
            let received = operation.receive.map_or(Bytes::Known(0), |receive| receive.bytes);
            self.received(told.received, told.capacity, is_open, received);
        } else if let Some(receive) = operation.receive {
            self.receive(told, is_open, &receive);
        } else {
            self.differ("receive", &told, &operation);
        }
        self.request(told.request, call.request);
    }

    fn receive(&mut self, told: &Meaning, is_open: bool, receive: &Transfer) {
        self.partner("source", told.source, told.given_source, is_open, receive.partner);
        self.tag("tag of what is received", told.receive_tag, told.given_tag, is_open, receive.tag);
        if (told.given_source == Given::Any) != receive.any_source {
            self.differ("whether from anybody", &told.given_source, receive);
        }
        // A probe has received nothing.
        if told.capacity > 0 || told.received > 0 {
            self.received(told.received, told.capacity, is_open, receive.bytes);
        }
    }

    fn received(&mut self, told: u64, capacity: u64, is_open: bool, traced: Bytes) {
        let agrees = match traced {
            Bytes::Known(bytes) => bytes == told,
            Bytes::AtMost(bytes) => bytes == capacity && (is_open || capacity == told),
            Bytes::Unknown => false,
        };
        if !agrees {
            self.differ("bytes received", &(told, capacity), &traced);
        }
    }

    /// `is_open`: whoever sees the call's arguments does not know who it was.
    fn partner(&mut self, what: &str, told: Given, given: Given, is_open: bool, traced: Partner) {
        let agrees = match told {
            Given::Null => traced == Partner::Null,
            Given::Number(rank) => u32::try_from(rank).is_ok_and(|rank| traced == Partner::Rank(rank)),
            Given::Any => traced == Partner::Any,
            Given::Nothing | Given::Root => false,
        };
        let is_hidden = is_open && given == Given::Any && traced == Partner::Any;
        if !agrees && !is_hidden {
            self.differ(what, &told, &traced);
        }
    }

    fn tag(&mut self, what: &str, told: Given, given: Given, is_open: bool, traced: Option<i32>) {
        let agrees = match told {
            Given::Number(tag) => traced == Some(tag),
            // Of a message from nobody there is none.
            Given::Any | Given::Nothing => traced.is_none(),
            Given::Null | Given::Root => false,
        };
        let is_hidden = is_open && given == Given::Any && traced.is_none();
        if !agrees && !is_hidden {
            self.differ(what, &told, &traced);
        }
    }

    fn request(&mut self, told: Option<u64>, traced: Option<RequestId>) {
        match (told, traced) {
            (None, None) => {}
            (Some(told), Some(traced)) => {
                if *self.requests.entry(traced).or_insert(told) != told {
                    self.differ("request", &told, &traced);
                }
            }
            _ if hides_shared_requests(self.mpi) => {}
            (told, traced) => self.differ("request", &told, &traced),
        }
    }

    fn changes(&mut self, told: &[LoggedChange], call: &Call) {
        // The truth follows what moves data; communicators that are made without waiting do not.
        let is_told = |change: &&RequestChange| {
            change.change != Change::Ready && change.operation.function.function().group != Group::Communicator
        };
        let traced: Vec<_> = call.requests.iter().filter(is_told).collect();
        let may_hide = hides_shared_requests(self.mpi);
        if told.len() != traced.len() && !may_hide {
            return self.differ("requests concerned", &told, &traced);
        }
        for traced in traced {
            if self.extent != Extent::Whole && !self.requests.contains_key(&traced.request) {
                // It was posted before.
                let others: BTreeSet<u64> = self.requests.values().copied().collect();
                let new = told.iter().find(|told| !others.contains(&told.request));
                self.requests.extend(new.map(|told| (traced.request, told.request)));
            }
            let known = self.requests.get(&traced.request);
            let Some(told) = known.and_then(|known| told.iter().find(|told| told.request == *known)) else {
                if !may_hide {
                    self.differ("request", &told, traced);
                }
                continue;
            };
            let kind = match traced.change {
                Change::Started => ChangeKind::Started,
                Change::Completed => ChangeKind::Completed,
                Change::Cancelled => ChangeKind::Cancelled,
                Change::Failed => ChangeKind::Failed,
                Change::Released | Change::Ready => ChangeKind::Released,
            };
            let function = traced.operation.function.function().name;
            if kind != told.kind || function != told.function {
                self.differ("what became of a request", told, traced);
            }
            self.scope(told.scope.as_ref(), traced.operation.communicator);
            if kind == ChangeKind::Completed {
                self.completed(told, &traced.operation);
            }
        }
    }

    fn completed(&mut self, told: &LoggedChange, operation: &Operation) {
        let received = operation.receive.map_or(Bytes::Known(0), |receive| receive.bytes);
        // A message that was only found has brought nothing yet.
        let is_found = told.capacity == 0 && told.received == 0;
        if !is_found {
            self.received(told.received, told.capacity, told.is_ignored, received);
        }
        if let Some(receive) = operation.receive.filter(|_| told.given_source != Given::Nothing && !is_found) {
            self.partner(
                "source of what is complete",
                told.source,
                told.given_source,
                told.is_ignored,
                receive.partner,
            );
            self.tag("tag of what is complete", told.tag, Given::Any, told.is_ignored, receive.tag);
        }
    }

    fn scope(&mut self, told: Option<&Scope>, traced: Option<CommunicatorId>) {
        let Some(told) = told.map(Scope::communicator) else { return };
        let known = traced.and_then(|id| self.trace.definitions().communicator(id));
        if !known.is_some_and(|known| is_same(told, known, self.order)) {
            self.differ("communicator", told, &known);
        }
    }

    fn object(&mut self, told: &Meaning, traced: Option<Object>) {
        let kind = told.scope.as_ref().map(|scope| scope.kind);
        match (kind, traced) {
            (Some(ScopeKind::Window), Some(object @ Object::Window(_)))
            | (Some(ScopeKind::File), Some(object @ Object::File(_))) => {
                if *self.objects.entry(object).or_insert(told.scope_number) != told.scope_number {
                    self.differ("window or file", &told.scope_number, &object);
                }
            }
            (Some(ScopeKind::Communicator) | None, _) => {}
            (kind, traced) => self.differ("window or file", &kind, &traced),
        }
    }
}

/// Calls by their numbers among those that the truth library tells of. What it calls itself, about what it is to tell, is in the trace as well:
/// between the program's calls.
fn numbered_as_told(events: BTreeMap<u64, Call>, told: &[&LoggedCall]) -> BTreeMap<u64, Call> {
    let mut numbered = BTreeMap::new();
    let mut calls = events.into_values().peekable();
    for told in told {
        while calls.next_if(|call| call.return_ns < told.start_ns).is_some() {}
        numbered.extend(calls.next_if(|call| call.entry_ns <= told.end_ns).map(|call| (told.number.into(), call)));
        // Further ones in its time are nobody's.
        let more = std::iter::from_fn(|| calls.next_if(|call| call.entry_ns <= told.end_ns));
        numbered.extend(more.map(|call| (u64::MAX - call.number, call)));
    }
    numbered
}

/// Everybody has a communicator of his own, which is called so. Whoever observes from outside may come too late to read who the members of a
/// short-lived one are: those are unknown then.
fn is_same(told: &Scope, known: &Communicator, order: Order) -> bool {
    let fits = |told: &[Option<u32>], known: &[Option<u32>]| match order {
        Order::TruthInside => told.iter().collect::<BTreeSet<_>>() == known.iter().collect(),
        Order::TruthOutside => {
            told.len() == known.len() && known.iter().all(|member| member.is_none() || told.contains(member))
        }
    };
    let both =
        |own: &[Option<u32>], remote: &[Option<u32>]| fits(&told.members, own) && fits(&told.remote_members, remote);
    both(&known.members, &known.remote_members)
        || both(&known.remote_members, &known.members)
        || (known.kind == mpiprobe_trace::CommunicatorKind::Own && told.size() == 1)
}

/// Whether the library hands out one request for all operations that are complete at once, and not everybody can tell which that is: the truth library
/// then goes by whether an operation was complete at once, and a trace by the handle. Only requests that both tell of can be compared.
fn hides_shared_requests(mpi: Mpi) -> bool {
    matches!(mpi, Mpi::Intel | Mpi::IntelAbi | Mpi::Mpich5Abi)
}

/// A call that only asks whether something has happened, and nothing has.
fn asks_in_vain(told: &LoggedCall) -> bool {
    mpiprobe_functions::polls(&told.function) && told.changes.is_empty()
}
