//! What a look at all threads of a job costs, as `mpiprobe hang` has several: processes whose threads wait, captured, named and merged.

use std::env;
use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::process::{self, Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use mpiprobe_discover::{ProcRoot, ProcRootError, Process, ProcessError};
use mpiprobe_stacks::{Capture, CaptureError, Limits, Look, Looker, Member, Report, Seen, State, Target, Tree};
use serde::Serialize;
use thiserror::Error;

use crate::proc::peak_kib;

/// Of 128 processes with four threads each that wait, at most.
const GOAL: Duration = Duration::from_millis(200);

/// A whole answer, without pauses, and the memory that it takes: of 1,024 processes, at most.
const ANSWER: Duration = Duration::from_secs(2);
const MOST_KIB: u64 = 300 << 10;
/// Looks of an answer.
pub(super) const LOOKS: u32 = 11;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct HangEffort {
    pub processes: u32,
    /// Threads of each, the first one included.
    pub threads: u32,
    pub looks: u32,
}

/// What it was.
#[derive(Debug, Serialize)]
pub struct HangReport {
    processes: u32,
    threads: u32,
    /// All together, ms of each look.
    looks_ms: Vec<f64>,
    /// A whole answer as `mpiprobe hang` gives it, without the pauses between its looks, ms.
    answer_ms: f64,
    /// Memory that all of it took at most, KiB.
    peak_kib: u64,
}

/// Why there is nothing to report.
#[derive(Debug, Error)]
pub enum HangError {
    #[error("a process to look at cannot be started: {0}")]
    Start(#[from] io::Error),
    #[error("a process to look at has ended")]
    Ended,
    #[error(transparent)]
    Proc(#[from] ProcRootError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

/// Is a process to be looked at: its threads wait until standard input is closed.
pub fn wait(threads: u32) {
    for _ in 1..threads {
        thread::spawn(thread::park);
    }
    println!();
    let _ = io::stdin().read(&mut [0]);
}

/// Killed when dropped.
struct Waiting(Vec<Child>);

impl Waiting {
    /// This program, which [waits](wait) when it is started with these arguments.
    fn start(count: u32, arguments: &[String]) -> Result<Self, HangError> {
        let program = env::current_exe()?;
        let mut waiting = Self(Vec::new());
        for _ in 0..count {
            let mut command = Command::new(&program);
            waiting.0.push(command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
        }
        for child in &mut waiting.0 {
            let mut line = String::new();
            if BufReader::new(child.stdout.take().ok_or(HangError::Ended)?).read_line(&mut line)? == 0 {
                return Err(HangError::Ended);
            }
        }
        Ok(waiting)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Measures looks at processes that are this program with `arguments`, by which it [waits](wait).
pub fn run(effort: HangEffort, arguments: &[String]) -> Result<HangReport, HangError> {
    let mut looker = looker()?;
    let waiting = Waiting::start(effort.processes, arguments)?;
    let root = ProcRoot::system()?;
    let processes: Vec<Process> =
        waiting.0.iter().map(|child| Process::open(&root, child.id())).collect::<Result<_, _>>()?;
    let targets = Targets::of(&processes)?;
    let targets = targets.all();
    // At first they are on their way to where they wait.
    let is_settled = |look: &Look| look.threads.iter().all(|thread| thread.state == State::Sleeping);
    while !is_settled(&looker.look(&targets)?) {}
    let mut looks_ms = Vec::new();
    for _ in 0..effort.looks {
        let began = Instant::now();
        let look = looker.look(&targets)?;
        let mut tree = Tree::default();
        for thread in &look.threads {
            tree.add(thread.member, thread.frames.iter().cloned(), None);
        }
        tree.sort();
        looks_ms.push(began.elapsed().as_secs_f64() * 1e3);
    }
    let began = Instant::now();
    let answer = answer(&mut looker, &targets, Duration::ZERO)?;
    let answer_ms = began.elapsed().as_secs_f64() * 1e3;
    drop(answer);
    let (processes, threads) = (effort.processes, effort.threads);
    let peak_kib = peak_kib(process::id()).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    Ok(HangReport { processes, threads, looks_ms, answer_ms, peak_kib })
}

/// Whatever looks as `mpiprobe hang` does.
pub(super) fn looker() -> Result<Looker, HangError> {
    Ok(Looker::new(Capture::without_stopping(Limits::default())?).watching_returns())
}

/// Processes of this program to be looked at.
pub(super) struct Targets<'a> {
    processes: &'a [Process],
    executable: String,
}

impl<'a> Targets<'a> {
    pub(super) fn of(processes: &'a [Process]) -> Result<Self, HangError> {
        Ok(Self { processes, executable: env::current_exe()?.display().to_string() })
    }

    pub(super) fn all(&self) -> Vec<Target<'_>> {
        let target = |(rank, process)| Target {
            member: Member::Rank(rank),
            process,
            executable: &self.executable,
            element: &|_| None,
        };
        (0..).zip(self.processes).map(target).collect()
    }
}

/// What `mpiprobe hang` says of them, by looks over that time.
pub(super) fn answer(looker: &mut Looker, targets: &[Target<'_>], over: Duration) -> Result<String, HangError> {
    let began = Instant::now();
    let mut looks = Vec::new();
    for turn in 0..LOOKS {
        let next = began + over * turn / (LOOKS - 1);
        thread::sleep(next.saturating_duration_since(Instant::now()));
        looks.push(if turn + 1 < LOOKS { looker.look(targets)? } else { looker.look_closely(targets)? });
    }
    Ok(Report::of(vec![Seen::of(&looks, false, false)], None).text())
}

impl fmt::Display for HangReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted = self.looks_ms.clone();
        sorted.sort_by(f64::total_cmp);
        let best = sorted.first().copied().unwrap_or(f64::NAN);
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN);
        let worst = sorted.last().copied().unwrap_or(f64::NAN);
        writeln!(f, "{} processes with {} threads each, {} looks", self.processes, self.threads, sorted.len())?;
        writeln!(f, "a look: {best:.0} ms at best, median {median:.0} ms, {worst:.0} ms at worst")?;
        let goal = GOAL.as_secs_f64() * 1e3;
        let met = |is_met: bool| if is_met { "met" } else { "MISSED" };
        // Larger ones have goals of their own.
        if self.processes * self.threads <= 512 {
            writeln!(f, "goal <= {goal:.0} ms: {}", met(best <= goal))?;
        }
        let (answer, most) = (ANSWER.as_secs_f64() * 1e3, MOST_KIB >> 10);
        let (took, peak) = (self.answer_ms, self.peak_kib >> 10);
        writeln!(f, "an answer of {LOOKS} looks: {took:.0} ms, {peak} MiB at most")?;
        writeln!(f, "goal <= {answer:.0} ms and {most} MiB: {}", met(took <= answer && self.peak_kib <= MOST_KIB))
    }
}
