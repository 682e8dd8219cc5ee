//! `mpiprobe hang`: what every rank of a job does, and whether it goes on, by looks at the stacks of its threads.

mod causes;
mod library;
mod nodes;

use std::{
    collections::BTreeSet,
    thread,
    time::{Duration, Instant},
};

use mpiprobe_discover::{
    Caller, ForkRelation, JobChoice, MpiProcess, ProcRoot, ProcRootError, ProcessError, Scanner, SelectError, Target,
    printable, privileged::is_apart, select, silent_copies,
};
use mpiprobe_model::{Profile, Standstill};
use mpiprobe_plan::ImplementationRecogniser;
use mpiprobe_report::present::{OutputError, say};
use mpiprobe_stacks::{
    Capture, CaptureError, Doing, Limits, Looker, Member, Report, Seen, Target as Looked, ThreadReport,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use self::library::{Libraries, Library};
use crate::nodes::NodesError;

pub use nodes::explain_nodes;

/// Looks that are taken, and the time from the first to the last: whoever goes on should be seen to do so in most programs.
const LOOKS: u32 = 11;
const OVER: Duration = Duration::from_secs(1);
/// How often the last look is repeated where threads ran while they were looked at, and after how long.
const AGAIN: u32 = 10;
const BETWEEN: Duration = Duration::from_millis(20);
/// Looks where threads have to be stopped for each.
const LOOKS_THAT_STOP: u32 = 2;

/// What is looked at, and how it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub target: Target,
    pub jobs: JobChoice,
    pub all_threads: bool,
    pub depth: Option<usize>,
    pub form: Form,
}

/// How it is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    #[default]
    Text,
    Json,
    Dot,
    Folded,
}

/// The answer, ready to be printed.
#[derive(Debug, Serialize, Deserialize)]
pub struct Shown {
    pub text: String,
    /// Nobody was left out.
    pub complete: bool,
}

impl Shown {
    pub fn of(explained: &Explained, form: Form) -> Result<Self, OutputError> {
        let jobs = &explained.jobs;
        let each = |text: &dyn Fn(&JobHang) -> String| jobs.iter().map(text).collect::<String>();
        let text = match form {
            Form::Json => serde_json::to_string_pretty(explained).map_err(OutputError::Json)? + "\n",
            Form::Dot => each(&|job| job.report.tree.dot()),
            Form::Folded => each(&|job| job.report.tree.folded()),
            Form::Text if jobs.len() > 1 => each(&|job| format!("{}\n{}\n", job.name, job.report.text())),
            Form::Text => each(&|job| job.report.text()),
        };
        Ok(Self { text, complete: jobs.iter().all(|job| job.report.is_whole()) })
    }
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum HangError {
    #[error(transparent)]
    Select(#[from] SelectError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Proc(#[from] ProcRootError),
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error(transparent)]
    Nodes(#[from] NodesError),
}

impl HangError {
    /// Whether there is simply nobody here who could be looked at.
    pub(crate) fn is_absence(&self) -> bool {
        matches!(self, Self::Select(error) if error.is_absence())
    }
}

/// The answer, for each job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Explained {
    pub schema: &'static str,
    pub jobs: Vec<JobHang>,
}

impl Explained {
    /// Name and version of the JSON form.
    pub const SCHEMA: &'static str = "mpiprobe.hang/1";
}

/// What the ranks of one job do.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobHang {
    /// As `mpiprobe ps` names it.
    #[serde(rename = "job")]
    pub name: String,
    #[serde(flatten)]
    pub report: Report,
}

/// What was found on one node of one job.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Found {
    /// As `mpiprobe ps` names it.
    job: String,
    seen: Seen,
    /// The same as an observation has it.
    profile: Profile,
}

/// The same of all jobs, as one line for whoever puts it together.
#[derive(Serialize)]
pub(crate) struct FoundHere<'a> {
    pub(crate) found: &'a [Found],
}

/// Others who look at the same time, on other nodes.
pub(crate) trait Others: Send {
    /// Everybody has been looked at once.
    fn begun(&mut self);
    /// Returns when everybody has been looked at once on all nodes, and some time ago: only then may it be looked for the last time.
    fn wait(&mut self);
}

/// There are none.
struct Nobody;

impl Others for Nobody {
    fn begun(&mut self) {}

    fn wait(&mut self) {}
}

/// What an observation is told of a job that does not go on.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) causes: Vec<Standstill>,
    /// Calls that threads are in, made by Python programs: of their lines only stacks tell.
    pub(crate) in_python: Vec<CallInPython>,
}

#[derive(Debug)]
pub(crate) struct CallInPython {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) function: &'static str,
    pub(crate) site: String,
}

/// Why these processes of one job do not go on, of those that `caller` may see, for an observation of them. Nobody is stopped for it, and
/// nothing is said.
pub(crate) fn standstill(pids: Vec<u32>, caller: Caller) -> Result<Told, HangError> {
    let capture = Capture::without_stopping(Limits::default())?;
    let mut scanner = Scanner::new(ProcRoot::system()?, caller, ImplementationRecogniser::default());
    let selection = select(&mut scanner, &Target::Pids(pids), &JobChoice::All)?;
    let found = look_at(&selection.processes, capture, false, &mut Nobody)?;
    let mut told = Told::default();
    for Found { seen, profile, .. } in found {
        let report = Report::of(vec![seen], None);
        told.causes.extend(causes::standstill(&report, &profile));
        told.in_python.extend(report.threads.iter().filter_map(in_python));
    }
    Ok(told)
}

fn in_python(thread: &ThreadReport) -> Option<CallInPython> {
    let Doing::Mpi { call, .. } = &thread.doing else { return None };
    let site = call.site.as_ref().filter(|_| call.from_python)?.text.clone();
    Some(CallInPython { pid: thread.pid, tid: thread.tid, function: call.function.function().name, site })
}

/// Looks at the processes that were chosen, several times within a second.
pub fn explain(asked: &Asked) -> Result<Explained, HangError> {
    explain_for(asked, Caller::current()?)
}

/// The same for somebody who may see other processes than who has started this one.
pub fn explain_for(asked: &Asked, caller: Caller) -> Result<Explained, HangError> {
    let found = look(asked, caller, &mut Nobody)?;
    let jobs = found.into_iter().map(|Found { job, seen, profile }| {
        let mut report = Report::of(vec![seen], asked.depth);
        causes::explain(&mut report, &profile);
        JobHang { name: job, report }
    });
    Ok(Explained { schema: Explained::SCHEMA, jobs: jobs.collect() })
}

/// What is here, for somebody who puts together what is on several nodes.
pub(crate) fn find(asked: &Asked, others: &mut dyn Others) -> Result<Vec<Found>, HangError> {
    look(asked, Caller::current()?, others)
}

/// The same for somebody who may see other processes than who has started this one.
pub(crate) fn find_for(asked: &Asked, caller: Caller, others: &mut dyn Others) -> Result<Vec<Found>, HangError> {
    look(asked, caller, others)
}

/// Looks from the first time until the others have, too, and at least for [`OVER`].
fn look(asked: &Asked, caller: Caller, others: &mut dyn Others) -> Result<Vec<Found>, HangError> {
    let mut scanner = Scanner::new(ProcRoot::system()?, caller, ImplementationRecogniser::default());
    let selection = select(&mut scanner, &asked.target, &asked.jobs)?;
    selection.unanswered.iter().for_each(say);
    look_at(&selection.processes, capture()?, asked.all_threads, others)
}

fn look_at(
    processes: &[MpiProcess],
    capture: Capture,
    all_threads: bool,
    others: &mut dyn Others,
) -> Result<Vec<Found>, HangError> {
    let mut looker = Looker::new(capture).watching_returns();
    let stops = looker.stops();
    let looks = if stops { LOOKS_THAT_STOP } else { LOOKS };

    let copies = copies(&mut looker, processes)?;
    let mut jobs: Vec<(String, Vec<&MpiProcess>)> = Vec::new();
    for process in processes.iter().filter(|process| !copies.contains(&process.pid())) {
        let name = process.job.to_string();
        match jobs.iter_mut().find(|(job, _)| *job == name) {
            Some((_, processes)) => processes.push(process),
            None => jobs.push((name, vec![process])),
        }
    }
    for (_, processes) in &mut jobs {
        processes.sort_by_key(|process| (process.rank.rank, process.pid()));
    }
    let executables: Vec<Vec<String>> = jobs.iter().map(|(_, processes)| executables(processes)).collect();
    let mut seen: Vec<Vec<_>> = jobs.iter().map(|_| Vec::new()).collect();
    let mut libraries: Vec<Vec<Option<Library>>> = jobs.iter().map(|_| Vec::new()).collect();
    let mut files = Libraries::default();
    let began = Instant::now();
    for turn in 0..looks {
        let next = began + OVER * turn / (looks - 1);
        thread::sleep(next.saturating_duration_since(Instant::now()));
        if turn + 1 == looks {
            others.wait();
        }
        let of_jobs = jobs.iter().zip(&executables).zip(&mut seen).zip(&mut libraries);
        for ((((_, processes), executables), seen), libraries) in of_jobs {
            if turn + 1 < looks {
                seen.push(looker.look(&targets(processes, executables, &[]))?);
                continue;
            }
            *libraries = (0..).zip(processes).map(|(slot, process)| files.look(slot, process)).collect();
            let elements: Vec<_> = libraries.iter().map(|library| element(library.as_ref())).collect();
            let targets = targets(processes, executables, &elements);
            let mut last = looker.look_closely(&targets)?;
            for _ in 0..AGAIN {
                if last.is_certain() {
                    break;
                }
                thread::sleep(BETWEEN);
                last = looker.look_closely(&targets)?;
            }
            seen.push(last);
        }
        if turn == 0 {
            others.begun();
        }
    }
    let found = |(((job, processes), looks), mut libraries): (((String, Vec<_>), Vec<_>), Vec<_>)| {
        let mut seen = Seen::of(&looks, stops, all_threads);
        seen.size = size(&processes);
        let profile = causes::understand(&mut seen, &processes, &mut libraries);
        Found { job, seen, profile }
    };
    Ok(jobs.into_iter().zip(seen).zip(libraries).map(found).collect())
}

/// Processes that ranks have forked, and that are none themselves: those that are in no call, where another one is.
fn copies(looker: &mut Looker, processes: &[MpiProcess]) -> Result<BTreeSet<u32>, HangError> {
    if processes.iter().all(|process| process.forked_from.is_none()) {
        return Ok(BTreeSet::new());
    }
    let all: Vec<&MpiProcess> = processes.iter().collect();
    let look = looker.look(&targets(&all, &executables(&all), &[]))?;
    let in_mpi: BTreeSet<u32> =
        look.threads.iter().filter(|thread| thread.call.is_some()).map(|thread| thread.pid).collect();
    let member = |process: &MpiProcess| {
        let (pid, forked_from) = (process.pid(), process.forked_from);
        ForkRelation { pid, forked_from, calls: in_mpi.contains(&pid) }
    };
    Ok(silent_copies(&processes.iter().map(member).collect::<Vec<_>>()))
}

/// Of the whole job; `None` if its processes do not agree.
fn size(processes: &[&MpiProcess]) -> Option<u32> {
    let size = processes.first()?.rank.size?;
    processes.iter().all(|process| process.rank.size == Some(size)).then_some(size)
}

fn executables(processes: &[&MpiProcess]) -> Vec<String> {
    processes.iter().map(|process| printable(&process.executable.path)).collect()
}

/// Bytes of one element of a predefined datatype of a process, by its handle.
fn element(library: Option<&Library>) -> Element<'_> {
    Box::new(move |handle| library?.element(handle))
}

type Element<'a> = Box<dyn Fn(u64) -> Option<u64> + 'a>;

/// Without stopping anybody, if that is permitted.
fn capture() -> Result<Capture, CaptureError> {
    let limits = Limits::default();
    if is_apart() {
        return Capture::without_stopping(limits);
    }
    let refused = match Capture::without_stopping(limits) {
        Ok(capture) => return Ok(capture),
        Err(error) => error.to_string(),
    };
    say(format_args!("each thread is stopped for a moment, which timed waits may notice, because of this: {refused}"));
    Ok(Capture::by_stopping(limits))
}

/// `elements`: what is known of their datatypes; empty if that is not asked for.
fn targets<'a>(
    processes: &[&'a MpiProcess],
    executables: &'a [String],
    elements: &'a [Element<'_>],
) -> Vec<Looked<'a>> {
    let target = |(place, (process, executable)): (usize, (&&'a MpiProcess, &'a String))| Looked {
        // Of two processes that say they are one rank, both are shown under its number.
        member: process.rank.rank.map_or(Member::Pid(process.pid()), Member::Rank),
        process: &process.process,
        executable,
        element: elements.get(place).map_or(&|_| None, |element| element),
    };
    processes.iter().zip(executables).enumerate().map(target).collect()
}
