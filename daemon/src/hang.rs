//! `mpiprobe hang`: what every rank of a job does, and whether it goes on, by looks at the stacks of its threads.

use std::{
    thread,
    time::{Duration, Instant},
};

use mpiprobe_attach::check_pid_namespace;
use mpiprobe_discover::{
    Caller, JobChoice, MpiProcess, ProcRoot, ProcRootError, ProcessError, Scanner, SelectError, Target, printable,
    select,
};
use mpiprobe_plan::ImplementationRecogniser;
use mpiprobe_present::say;
use mpiprobe_stacks::{Capture, CaptureError, Limits, Looker, Member, Report, Target as Looked};
use serde::Serialize;
use thiserror::Error;

/// Looks that are taken, and the time from the first to the last: whoever goes on should be seen to do so in most programs.
const LOOKS: u32 = 11;
const OVER: Duration = Duration::from_secs(1);
/// Looks where threads have to be stopped for each.
const LOOKS_THAT_STOP: u32 = 2;

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
}

/// The answer, for each job.
#[derive(Debug, Serialize)]
pub struct Explained {
    pub jobs: Vec<JobHang>,
}

/// What the ranks of one job do.
#[derive(Debug, Serialize)]
pub struct JobHang {
    /// As `mpiprobe ps` names it.
    #[serde(rename = "job")]
    pub name: String,
    #[serde(flatten)]
    pub report: Report,
}

/// Looks at the processes that were chosen, several times within a second.
pub fn explain(
    target: &Target,
    choice: &JobChoice,
    all_threads: bool,
    depth: Option<usize>,
) -> Result<Explained, HangError> {
    let mut scanner = Scanner::new(ProcRoot::system()?, Caller::current()?, ImplementationRecogniser::default());
    let selection = select(&mut scanner, target, choice)?;
    selection.unanswered.iter().for_each(say);
    let mut looker = Looker::new(capture());
    let stops = looker.stops();
    let looks = if stops { LOOKS_THAT_STOP } else { LOOKS };

    let mut jobs: Vec<(String, Vec<&MpiProcess>)> = Vec::new();
    for process in &selection.processes {
        let name = process.job.to_string();
        match jobs.iter_mut().find(|(job, _)| *job == name) {
            Some((_, processes)) => processes.push(process),
            None => jobs.push((name, vec![process])),
        }
    }
    for (_, processes) in &mut jobs {
        processes.sort_by_key(|process| (process.rank.rank, process.pid()));
    }
    let executables = |processes: &[&MpiProcess]| -> Vec<String> {
        processes.iter().map(|process| printable(&process.executable.path)).collect()
    };
    let executables: Vec<Vec<String>> = jobs.iter().map(|(_, processes)| executables(processes)).collect();
    let mut seen: Vec<Vec<_>> = jobs.iter().map(|_| Vec::new()).collect();
    let began = Instant::now();
    for turn in 0..looks {
        let next = began + OVER * turn / (looks - 1);
        thread::sleep(next.saturating_duration_since(Instant::now()));
        for (((_, processes), executables), seen) in jobs.iter().zip(&executables).zip(&mut seen) {
            seen.push(looker.look(&targets(processes, executables))?);
        }
    }
    let report = |((name, _), looks): ((String, _), Vec<_>)| JobHang {
        name,
        report: Report::of(&looks, stops, all_threads, depth),
    };
    Ok(Explained { jobs: jobs.into_iter().zip(seen).map(report).collect() })
}

/// Without stopping anybody, if that is permitted.
fn capture() -> Capture {
    let limits = Limits::default();
    let refused = match check_pid_namespace().map_err(|error| error.to_string()) {
        Ok(()) => match Capture::without_stopping(limits) {
            Ok(capture) => return capture,
            Err(error) => error.to_string(),
        },
        Err(error) => error,
    };
    say(format_args!("each thread is stopped for a moment, which timed waits may notice, because of this: {refused}"));
    Capture::by_stopping(limits)
}

fn targets<'a>(processes: &[&'a MpiProcess], executables: &'a [String]) -> Vec<Looked<'a>> {
    let target = |(process, executable): (&&'a MpiProcess, &'a String)| Looked {
        // Of two processes that say they are one rank, both are shown under its number.
        member: process.rank.rank.map_or(Member::Pid(process.pid()), Member::Rank),
        process: &process.process,
        executable,
    };
    processes.iter().zip(executables).map(target).collect()
}
