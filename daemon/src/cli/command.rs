//! From what was typed to what is done.

use std::{io, path::PathBuf, process::ExitCode};

use clap::CommandFactory as _;
use mpiprobe_discover::{
    Caller, JobChoice, ProcRoot, ProcRootError, ProcessError, Scanner, Target, put_down_files_rights,
};
use mpiprobe_model::{Verdict, analyse::ProfileOutput};
use mpiprobe_plan::ImplementationRecogniser;
use mpiprobe_report::Format as ReportFormat;
use mpiprobe_report::present::{
    Output, OutputError, findings,
    recording::{Recording, RecordingError},
    say,
};
use mpiprobe_view::{Files, StartError, ViewError, ViewOptions, ViewStart};
use rustix::process::{getegid, geteuid, getgid, getuid};
use thiserror::Error;

use super::{
    arguments::{Arguments, Command, Compare, Hang, Observe, Run, Targets, View},
    export::{Export, ExportFailure, export},
    manual,
    output::FileMode,
    plot::{Plot, PlotFailure, plot},
    report::{Report, ReportError, report},
    waits::{Waits, WaitsError, waits},
};
use crate::{
    compare::{CompareError, Compared, compare},
    doctor,
    hang::{self, HangError},
    preload::{LibraryError, library},
    session::{
        self, Options, Outcome, ProfileTo, SessionError,
        launched::{self, RunOptions},
        trace::{TraceOptions, When},
    },
};

/// How mpiprobe ends; each has an exit status of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0
    Complete,
    /// 1: failed, or the doctor found limits.
    Failed,
    /// 2: the doctor found that nothing works. Wrong usage has this status too.
    Unusable,
    /// 3
    Incomplete,
    /// 4: a condition on which a comparison fails holds.
    ConditionHolds,
    /// That of the command that was run.
    Command(u8),
}

impl From<Outcome> for Exit {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Complete | Outcome::OutputClosed => Self::Complete,
            Outcome::Incomplete => Self::Incomplete,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Complete => 0,
            Exit::Failed => 1,
            Exit::Unusable => 2,
            Exit::Incomplete => 3,
            Exit::ConditionHolds => 4,
            Exit::Command(status) => status,
        })
    }
}

/// Why there is no result.
#[derive(Debug, Error)]
pub enum CommandError {
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Hang(#[from] HangError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Proc(#[from] ProcRootError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error(transparent)]
    Replay(#[from] ViewError),
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error(transparent)]
    Plot(#[from] PlotFailure),
    #[error(transparent)]
    Waits(#[from] WaitsError),
    #[error(transparent)]
    Export(#[from] ExportFailure),
    #[error(transparent)]
    Compare(#[from] CompareError),
    #[error("mpiprobe has no command {0:?}; `mpiprobe help` lists them")]
    NoPage(String),
    #[error("which of these runs are before, and which are after? put --to before the latter")]
    WhichSide,
    #[error(transparent)]
    View(#[from] StartError),
    #[error("cannot do without the rights of mpiprobe's file: {0}")]
    Rights(#[source] io::Error),
    #[error(
        "mpiprobe has changed user or group ids (set-user-ID or set-group-ID bits on its file), which gives its users more than \
         it can answer for: take the bits away (chmod u-s,g-s) and give the file capabilities, see docs/kernels-and-rights.md"
    )]
    ChangedIds,
    #[error("--view opens a full-screen view, and there is no terminal to show it on")]
    NoTerminal,
}

/// Does what was asked for.
pub async fn execute(arguments: &Arguments) -> Result<Exit, CommandError> {
    if (getuid(), getgid()) != (geteuid(), getegid()) {
        return Err(CommandError::ChangedIds);
    }
    let done = match &arguments.command {
        Some(Command::Ps { json }) => list(*json, false),
        Some(Command::Hang(asked)) => explain_hang(asked),
        Some(Command::Run(run)) => Ok(run_command(run, arguments.trace_bpf).await),
        Some(Command::View(asked)) => view_recording(asked).await,
        Some(Command::Report(report)) => print_report(report),
        Some(Command::Compare(asked)) => compare_runs(asked),
        Some(Command::Config) => show_configuration(),
        Some(Command::Completions { shell }) => print(&manual::completions(*shell)),
        Some(Command::Man { command }) => match manual::page(command.as_deref()) {
            Some(page) => print(&page),
            None => Err(CommandError::NoPage(command.clone().unwrap_or_default())),
        },
        Some(Command::Plot(asked)) => draw(asked),
        Some(Command::Export(asked)) => export_trace(asked),
        Some(Command::Waits(asked)) => find_waits(asked),
        Some(Command::WrapperPath) => wrapper_path(),
        Some(Command::Doctor { pid, json }) => examine(*pid, *json),
        None if arguments.observe.has_target() => observe(&arguments.observe, arguments.trace_bpf).await,
        None => list(arguments.observe.json, true),
    };
    match done {
        // `| head` has seen enough.
        Err(CommandError::Output(OutputError::Closed)) => Ok(Exit::Complete),
        done => done,
    }
}

async fn observe(asked: &Observe, trace_bpf: bool) -> Result<Exit, CommandError> {
    let (target, jobs) = chosen(&asked.targets);
    let options = Options {
        target,
        jobs,
        engine: asked.engine,
        wait: asked.wait,
        functions: asked.functions,
        nested: asked.nested,
        returns: asked.returns,
        ignore_pcontrol: asked.ignore_pcontrol,
        duration: asked.duration.or(asked.once.then_some(asked.interval)),
        once: asked.once,
        filter: asked.filter.clone(),
        interval: asked.interval,
        json: asked.json,
        view: view(asked)?,
        record: asked.record.to(),
        method: asked.attach,
        max_processes: asked.max_processes,
        max_threads: asked.max_threads,
        traffic: asked.traffic,
        communicators: asked.comm.clone(),
        max_flows: asked.max_flows,
        max_communicators: asked.max_communicators,
        max_requests: asked.max_requests,
        max_stats: asked.max_stats,
        trace_bpf,
    };
    Ok(session::run(&options).await?.into())
}

/// What the options for targets mean.
fn chosen(targets: &Targets) -> (Target, JobChoice) {
    let Targets { pid_of, pid: pids, job, all_jobs } = targets;
    let target = match (pid_of, pids.as_slice()) {
        // A path means the program at its end: processes are known by their base names.
        (Some(name), _) => Target::Name(name.rsplit('/').next().unwrap_or(name).to_owned()),
        (None, []) => Target::Any,
        (None, pids) => Target::Pids(pids.to_vec()),
    };
    let jobs = match job {
        Some(job) => JobChoice::Named(job.clone()),
        // Whoever names pids one by one has chosen.
        None if *all_jobs || !pids.is_empty() => JobChoice::All,
        None => JobChoice::Only,
    };
    (target, jobs)
}

fn explain_hang(asked: &Hang) -> Result<Exit, CommandError> {
    let (target, jobs) = chosen(&asked.targets);
    let depth = asked.depth.and_then(|depth| usize::try_from(depth).ok());
    let explained = hang::explain(&target, &jobs, asked.all_threads, depth)?;
    if asked.json {
        Output.json(&explained)?;
    }
    for job in &explained.jobs {
        match () {
            () if asked.json => {}
            () if asked.dot => Output.text(&job.report.tree.dot())?,
            () if asked.folded => Output.text(&job.report.tree.folded())?,
            () if explained.jobs.len() > 1 => Output.text(&format!("{}\n{}\n", job.name, job.report.text()))?,
            () => Output.text(&job.report.text())?,
        }
    }
    let is_whole = |job: &hang::JobHang| job.report.left_out.is_empty() && job.report.refused.is_empty();
    Ok(if explained.jobs.iter().all(is_whole) { Exit::Complete } else { Exit::Incomplete })
}

fn draw(asked: &Plot) -> Result<Exit, CommandError> {
    put_down_files_rights().map_err(CommandError::Rights)?;
    Ok(plot(asked)?.into())
}

fn export_trace(asked: &Export) -> Result<Exit, CommandError> {
    put_down_files_rights().map_err(CommandError::Rights)?;
    match export(asked) {
        Err(ExportFailure::Output(error)) => Err(error.into()),
        exported => Ok(exported?.into()),
    }
}

fn find_waits(asked: &Waits) -> Result<Exit, CommandError> {
    put_down_files_rights().map_err(CommandError::Rights)?;
    match waits(asked) {
        Err(WaitsError::Output(error)) => Err(error.into()),
        found => Ok(found?.into()),
    }
}

fn print_report(asked: &Report) -> Result<Exit, CommandError> {
    put_down_files_rights().map_err(CommandError::Rights)?;
    match report(asked) {
        Err(ReportError::Output(error)) => Err(error.into()),
        reported => Ok(reported?.into()),
    }
}

/// What is wrong with the files has been said already.
fn show_configuration() -> Result<Exit, CommandError> {
    let configuration = super::configuration();
    Output.text(&configuration.text(&Arguments::command()))?;
    Ok(if configuration.mistakes().next().is_none() { Exit::Complete } else { Exit::Failed })
}

fn compare_runs(asked: &Compare) -> Result<Exit, CommandError> {
    put_down_files_rights().map_err(CommandError::Rights)?;
    let (before, after) = asked.sides().ok_or(CommandError::WhichSide)?;
    let options =
        mpiprobe_report::compare::Options { basis: asked.per.clone(), anyway: asked.anyway, is_weak: asked.weak };
    let (conditions, format, top) = (asked.fail_if.as_slice(), asked.format, asked.top);
    match compare(&Compared { before, after, options, conditions, format, top }) {
        Err(CompareError::Output(error)) => Err(error.into()),
        held => Ok(if held? { Exit::ConditionHolds } else { Exit::Complete }),
    }
}

fn profile_to(path: Option<&PathBuf>, files: FileMode) -> Option<ProfileTo> {
    path.map(|path| ProfileTo { path: path.clone(), mode: files.file_mode })
}

/// The view, unless tables are wanted or there is no terminal.
fn view(asked: &Observe) -> Result<Option<(ViewOptions, ViewStart)>, CommandError> {
    let Some(options) = asked.view_options(mpiprobe_view::is_interactive()) else {
        return if asked.view.is_some() { Err(CommandError::NoTerminal) } else { Ok(None) };
    };
    let files = Files::new(&|name| std::env::var(name).ok());
    let start = ViewStart::new(asked.filter.clone(), asked.view.as_deref(), files)?;
    Ok(Some((options, start)))
}

/// The file of a report, and its format.
fn report_to(run: &Run) -> Result<Option<(ProfileTo, ReportFormat)>, String> {
    let Some(to) = profile_to(run.report.as_ref(), run.record.files) else { return Ok(None) };
    let unknown = || {
        format!(
            "nothing was run: the ending of {} does not tell what the report is to be written as; say it by --report-format",
            to.path.display()
        )
    };
    match run.report_format.or_else(|| ReportFormat::of_path(&to.path)).ok_or_else(unknown)? {
        ReportFormat::Csv => {
            Err("nothing was run: CSV has one table in a file; keep the run by --record or -o, and use \
                                  `mpiprobe report --format csv`"
                .into())
        }
        format => Ok(Some((to, format))),
    }
}

/// The file of a run's trace, and what goes into it.
fn trace_to(run: &Run) -> Option<TraceOptions> {
    let selection = run.traced.selection(run.functions);
    let (mode, ranks) = (run.record.files.file_mode, run.traced.ranks.clone());
    run.trace.clone().map(|path| TraceOptions { path, mode, selection, ranks, when: When::Always })
}

async fn run_command(run: &Run, trace_bpf: bool) -> Exit {
    let report = match report_to(run) {
        Ok(report) => report,
        Err(error) => {
            say(error);
            return Exit::Command(1);
        }
    };
    let options = RunOptions {
        command: run.command.clone(),
        functions: run.functions,
        ignore_pcontrol: run.ignore_pcontrol,
        returns: run.returns,
        profile: profile_to(run.profile.as_ref(), run.record.files),
        report,
        tables: run.output.clone(),
        json: run.json,
        record: run.record.to(),
        trace: trace_to(run),
        interval: run.interval,
        trace_bpf,
    };
    match launched::run_command(&options, run.engine).await {
        Ok(status) => Exit::Command(status),
        Err(error) => {
            say(&error);
            Exit::Command(error.exit_status())
        }
    }
}

async fn view_recording(asked: &View) -> Result<Exit, CommandError> {
    put_down_files_rights().map_err(CommandError::Rights)?;
    let recording = Recording::open(&asked.file)?;
    let index = asked.at.map_or(Ok(recording.len().saturating_sub(1)), |at| recording.find(at))?;
    if !asked.plain && !asked.json && mpiprobe_view::is_interactive() {
        let files = Files::new(&|name| std::env::var(name).ok());
        let start = ViewStart::new(asked.filter.clone(), None, files)?;
        mpiprobe_view::replay(recording, index, asked.appearance.options(), start).await?;
        return Ok(Exit::Complete);
    }
    for note in recording.notes() {
        say(format_args!("{}: {note}", asked.file.display()));
    }
    let profile = recording.profile(index)?;
    let filter = asked.filter.as_ref();
    if asked.json {
        let shown = mpiprobe_report::present::filtered(&profile, filter);
        Output.json_line(&ProfileOutput::new(&shown, &profile))?;
    } else {
        Output.text(&format!("{}, moment {} of {}\n", recording.describe(index), index + 1, recording.len()))?;
        Output.text(&mpiprobe_report::present::profile(&profile, &findings(&profile), filter))?;
    }
    Ok(if profile.complete { Exit::Complete } else { Exit::Incomplete })
}

fn print(text: &str) -> Result<Exit, CommandError> {
    Output.text(text)?;
    Ok(Exit::Complete)
}

fn wrapper_path() -> Result<Exit, CommandError> {
    put_down_files_rights().map_err(CommandError::Rights)?;
    Output.text(&format!("{}\n", library()?.display()))?;
    Ok(Exit::Complete)
}

/// The jobs on this node; `hint` adds what to type next.
fn list(json: bool, hint: bool) -> Result<Exit, CommandError> {
    let root = ProcRoot::system()?;
    let mut scanner = Scanner::new(root, Caller::current()?, ImplementationRecogniser::default());
    let snapshot = scanner.scan()?;
    for error in &snapshot.errors {
        tracing::info!("{error}");
    }
    if json {
        Output.json(&mpiprobe_report::present::JobList::new(&snapshot))?;
        return Ok(Exit::Complete);
    }
    Output.text(&mpiprobe_report::present::jobs(&snapshot))?;
    if hint {
        Output.text(&mpiprobe_report::present::next_step(&snapshot.jobs))?;
    }
    Ok(Exit::Complete)
}

fn examine(pid: Option<u32>, json: bool) -> Result<Exit, CommandError> {
    let report = doctor::examine(pid);
    if json {
        Output.json(&report)?;
    } else {
        Output.text(&mpiprobe_report::present::checks(&report))?;
    }
    Ok(match report.worst() {
        Verdict::Info | Verdict::Ok => Exit::Complete,
        Verdict::Limited => Exit::Failed,
        Verdict::Failed => Exit::Unusable,
    })
}
