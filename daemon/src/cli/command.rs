//! From what was typed to what is done.

use std::{
    collections::BTreeSet,
    fmt::Display,
    io,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use clap::{CommandFactory as _, ValueEnum as _};
use mpiprobe_discover::{Caller, ProcRoot, ProcRootError, ProcessError, Scanner, put_down_files_rights};
use mpiprobe_model::{Verdict, analyse::ProfileOutput};
use mpiprobe_plan::ImplementationRecogniser;
use mpiprobe_report::present::{JobList, ListedJobs, Output, OutputError, TextOptions, findings, say};
use mpiprobe_report::{Format as ReportFormat, Span};
use mpiprobe_trace::{ReadError, Trace as Recorded};
use mpiprobe_view::{Files, StartError, ViewError, ViewOptions, ViewStart};
use rustix::process::{getegid, geteuid, getgid, getuid};
use thiserror::Error;

use super::{
    arguments::{Arguments, Command, Hang, Observe, OnNodes, PushTo, Run, Trace, View},
    asked::{asked_hang, options, traced},
    compare::{Compare, CompareError, compare},
    export::{Export, ExportFailure, export},
    manual,
    output::FileMode,
    plot::{Plot, PlotFailure, plot},
    report::{Report, ReportError, report},
    schema::schema,
    sources::{OpenError, open_moments},
    terminal::{show, width, width_of},
    traces::{self, compared, is_trace, of_clocks},
    waits::{Waits, WaitsError, waits},
    words::{
        parse_hang, parse_observation, parse_trace, query_of, query_of_hang, query_of_node, query_of_node_trace,
        query_of_trace,
    },
};
use crate::{
    agent::{self, Understand},
    asking::{AskError, Service, service_for},
    doctor,
    hang::{self, HangError, Shown},
    nodes::{Kind, Launcher, Means, Nodes, NodesError, Request, nodes_of_slurm_job},
    preload::{LibraryError, library},
    push::{self, BadAddress, Collector, Origin, Push, PushError},
    service::{self, ServiceError},
    session::{
        self, ByService, EngineChoice, Options, Outcome, ProfileTo, Returns, SessionError,
        launched::{self, RunOptions},
        trace::{DumpError, Dumped, LatestCalls, TraceOptions, TraceTo, ask},
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
    Open(#[from] OpenError),
    #[error(transparent)]
    Replay(#[from] ViewError),
    #[error(transparent)]
    Read(#[from] ReadError),
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
    #[error(transparent)]
    Collector(#[from] BadAddress),
    #[error(transparent)]
    Push(#[from] PushError),
    #[error(
        "--waits needs eBPF, with return probes: leave --engine and --returns out; of a command of yours, `mpiprobe run --waits` finds it out without"
    )]
    WaitsNeedReturns,
    #[error("mpiprobe has no command {0:?}; `mpiprobe help` lists them")]
    NoPage(String),
    #[error(transparent)]
    View(#[from] StartError),
    #[error(transparent)]
    Service(#[from] AskError),
    #[error("cannot do without the rights of mpiprobe's file: {0}")]
    Rights(#[source] io::Error),
    #[error(
        "mpiprobe has changed user or group ids (set-user-ID or set-group-ID bits on its file), which gives its users more than \
         it can answer for: take the bits away (chmod u-s,g-s) and give the file capabilities, see docs/kernels-and-rights.md"
    )]
    ChangedIds,
    #[error(transparent)]
    Dump(#[from] DumpError),
    #[error(transparent)]
    Trace(#[from] traces::TraceError),
    #[error(
        "{0} is a trace, which has no profile: `mpiprobe waits --json` says who has waited for whom, `mpiprobe export` writes its calls for \
         other programs"
    )]
    NoProfile(String),
    #[error("{0} is for recordings, and this is a trace: in its view, / looks for calls, and + zooms in")]
    NotOfTraces(&'static str),
    #[error("--attach is for this node, and --hosts for others, which attach in the best way that works there")]
    AttachOnNodes,
    #[error("--view opens a full-screen view, and there is no terminal to show it on")]
    NoTerminal,
}

/// Does what was asked for.
pub async fn execute(arguments: &Arguments) -> Result<Exit, CommandError> {
    if (getuid(), getgid()) != (geteuid(), getegid()) {
        return Err(CommandError::ChangedIds);
    }
    let done = match &arguments.command {
        Some(Command::Ps { json }) => list(*json, false, arguments.socket.as_deref()).await,
        Some(Command::Hang(asked)) => explain_hang(asked, arguments).await,
        // Not from here: it must be the only thread.
        Some(Command::Service(_)) => Ok(Exit::Failed),
        Some(Command::Push(asked)) => hand_on(asked, arguments).await,
        Some(Command::Run(run)) => Ok(run_command(run, arguments).await),
        Some(Command::Trace(asked)) => record_calls(asked, arguments).await,
        Some(Command::Dump { pid }) => dump(*pid),
        Some(Command::View(asked)) => view_kept(asked, arguments.verbose > 0).await,
        Some(Command::Report(asked)) => print_report(asked, arguments.verbose > 0),
        Some(Command::Compare(asked)) => compare_runs(asked, arguments.verbose > 0),
        Some(Command::Config) => show_configuration(),
        Some(Command::Schema { of }) => {
            Output.json(&schema(*of))?;
            Ok(Exit::Complete)
        }
        Some(Command::Completions { shell }) => print(&manual::completions(*shell)),
        Some(Command::Man { command }) => match manual::page(command.as_deref()) {
            Some(page) => print(&page),
            None => Err(CommandError::NoPage(command.clone().unwrap_or_default())),
        },
        Some(Command::Plot(asked)) => draw(asked),
        Some(Command::Export(asked)) => export_trace(asked),
        Some(Command::Waits(asked)) => find_waits(asked),
        Some(Command::WrapperPath) => wrapper_path(),
        Some(Command::Doctor { pid, service, json }) => {
            let report = if *service {
                doctor::examine_service(&socket(arguments.socket.as_deref())).await
            } else {
                doctor::examine(*pid)
            };
            tell_checks(&report, *json)
        }
        Some(Command::Agent { launcher, agent, slurm_job }) => {
            let understand = Understand {
                observation: for_another_node,
                trace: trace_for_another_node,
                hang: hang_for_another_node,
            };
            let means = |launcher: &Launcher| {
                let program = agent.clone().map_or_else(own_program, Ok)?;
                let (launcher, slurm_job) = (launcher.clone(), slurm_job.clone());
                Ok::<_, NodesError>(Means { launcher, program, slurm_job, verbose: arguments.verbose })
            };
            let means = launcher.as_ref().map(means).transpose().map_err(SessionError::from)?;
            Ok(if agent::serve(understand, means).await { Exit::Complete } else { Exit::Failed })
        }
        None if arguments.observe.has_target() => Box::pin(observe(arguments)).await,
        None => list(arguments.observe.json, true, arguments.socket.as_deref()).await,
    };
    match done {
        // `| head` has seen enough.
        Err(CommandError::Output(OutputError::Closed)) => Ok(Exit::Complete),
        done => done,
    }
}

/// Serves this node, where that was asked for. There must be no other thread yet.
pub fn serve(arguments: &Arguments) -> Option<Result<(), ServiceError>> {
    let Some(Command::Service(asked)) = &arguments.command else { return None };
    let is_usual = asked.configuration == Path::new(service::CONFIGURATION);
    Some(service::run(&asked.configuration, is_usual, arguments.socket.as_deref()))
}

async fn observe(arguments: &Arguments) -> Result<Exit, CommandError> {
    let asked = &arguments.observe;
    // Those who count themselves do not tell of each call after they have begun.
    if asked.waits && (asked.engine == EngineChoice::Wrapper || asked.returns == Returns::Off) {
        return Err(CommandError::WaitsNeedReturns);
    }
    let view = view(asked)?;
    let without = Options { is_viewed: view.is_some(), ..options(asked, arguments.trace_bpf) };
    let engine = asked.engine.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let (query, request) = (query_of(&without), Request::new(query_of_node(&without), engine, Kind::Observation));
    let on = (&asked.nodes, asked.targets.job.as_deref());
    let placed = placed(without, on, (query, request), arguments).await?;
    let options = Options { view, record: asked.record.to(), ..placed };
    Ok(session::run(&options).await?.into())
}

/// With the nodes that are meant, by name or as those of a job, which are asked by a request, the service that may be asked by a query, and
/// the width of the terminal.
async fn placed(
    options: Options,
    (on, job): (&OnNodes, Option<&str>),
    (query, request): (String, Request),
    arguments: &Arguments,
) -> Result<Options, CommandError> {
    if options.method.is_some() && !on.hosts.is_empty() {
        return Err(CommandError::AttachOnNodes);
    }
    let named = arguments.socket.as_deref();
    let service = ByService { socket: socket(named), is_named: named.is_some(), query };
    let nodes = on_nodes(on, job, request, arguments.verbose).await.map_err(SessionError::from)?;
    let text = TextOptions { width: width(), all: arguments.verbose > 0, ..TextOptions::default() };
    Ok(Options { text, nodes, service: Some(service), ..options })
}

/// The nodes that are meant, unless it is this one alone.
async fn on_nodes(
    asked: &OnNodes,
    job: Option<&str>,
    request: Request,
    verbose: u8,
) -> Result<Option<Nodes>, NodesError> {
    let slurm_job = slurm_job(job);
    let variable = |name: &str| std::env::var(name).ok();
    // In the job itself Slurm has told of it.
    let is_inside = slurm_job.is_some() && variable("SLURM_JOB_ID") == slurm_job;
    let list = variable("SLURM_JOB_NODELIST").filter(|_| is_inside);
    let has_several = list.is_some() && variable("SLURM_JOB_NUM_NODES").is_some_and(|number| number != "1");
    let launcher = match &asked.launcher {
        Some(launcher) => launcher.clone(),
        None if asked.hosts.is_empty() && has_several => Launcher::Srun,
        None => Launcher::Ssh,
    };
    let hosts = match (asked.hosts.as_slice(), &slurm_job, &asked.launcher) {
        ([], Some(job), _) if launcher == Launcher::Srun => nodes_of_slurm_job(job, list).await?,
        ([], Some(job), Some(_)) => nodes_of_slurm_job(job, list).await?,
        // Somebody may have set a default for it.
        ([], None, _) | ([], _, None) => return Ok(None),
        (hosts, ..) => hosts.to_vec(),
    };
    let mut names = BTreeSet::new();
    if let Some(twice) = hosts.iter().find(|host| !names.insert(host.as_str())) {
        return Err(NodesError::Twice(twice.clone()));
    }
    if hosts.is_empty() {
        return Err(NodesError::NoNodes);
    }
    let program = asked.agent.clone().map_or_else(own_program, Ok)?;
    let means = Means { launcher, program, slurm_job, verbose };
    Ok(Some(Nodes { hosts, means, request, fan_out: asked.fan_out.into() }))
}

fn own_program() -> Result<PathBuf, NodesError> {
    std::env::current_exe().map_err(|_| NodesError::Path)
}

/// The number of a Slurm job, if `--job` may be one: `4711`, `4711.0`, `slurm:4711`.
fn slurm_job(named: Option<&str>) -> Option<String> {
    let named = named?;
    let number = named.strip_prefix("slurm:").unwrap_or(named).split('.').next()?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then(|| number.to_owned())
}

/// What front ends on other nodes ask for: by whatever is possible here.
fn for_another_node(request: &Request) -> Result<Options, String> {
    let asked = parse_observation(service::words_of_query(&request.query))?;
    let engine = EngineChoice::from_str(&request.engine, false)?;
    let service = ByService { socket: socket(None), is_named: false, query: query_of(&asked) };
    Ok(Options { engine, service: Some(service), ..asked })
}

fn trace_for_another_node(request: &Request) -> Result<Options, String> {
    let asked = parse_trace(service::words_of_query(&request.query))?;
    let service = ByService { socket: socket(None), is_named: false, query: query_of_trace(&asked) };
    Ok(Options { service: Some(service), ..asked })
}

fn hang_for_another_node(request: &Request) -> Result<hang::Asked, String> {
    parse_hang(service::words_of_query(&request.query))
}

async fn hand_on(asked: &PushTo, arguments: &Arguments) -> Result<Exit, CommandError> {
    let from = match asked.from.clone() {
        Some(address) => Origin::port(address),
        None => Origin::Socket(socket(arguments.socket.as_deref())),
    };
    let to = Collector::find(asked.to.clone(), |name| std::env::var(name).ok())?;
    push::run(&Push { from, to, interval: asked.interval, once: asked.once }).await?;
    Ok(Exit::Complete)
}

async fn record_calls(asked: &Trace, arguments: &Arguments) -> Result<Exit, CommandError> {
    let options = traced(asked, arguments.trace_bpf);
    let request = Request::new(query_of_node_trace(&options), String::new(), Kind::Trace);
    let query = query_of_trace(&options);
    let on = (&asked.nodes, asked.targets.job.as_deref());
    let options = placed(options, on, (query, request), arguments).await?;
    Ok(session::run(&options).await?.into())
}

fn socket(named: Option<&Path>) -> PathBuf {
    named.unwrap_or(Path::new(service::SOCKET)).to_owned()
}

async fn explain_hang(typed: &Hang, arguments: &Arguments) -> Result<Exit, CommandError> {
    let asked = asked_hang(typed);
    let (query, engine) = (query_of_hang(&asked), String::new());
    let request = Request::new(query, engine, Kind::Hang);
    let job = typed.targets.job.as_deref();
    let nodes = on_nodes(&typed.nodes, job, request, arguments.verbose).await.map_err(HangError::from)?;
    let here =
        if nodes.is_none() { service_for(arguments.socket.as_deref(), Path::new(service::SOCKET))? } else { None };
    let shown = match (nodes, here) {
        (Some(nodes), _) => Shown::of(&hang::explain_nodes(&nodes, &asked).await?, asked.form)?,
        // It stops nobody, which those who may not load programs cannot do themselves.
        (None, Some(service)) => {
            let answer = service.get(&format!("/v1/hang?{}", query_of_hang(&asked))).await?;
            serde_json::from_slice(&answer).map_err(|error| AskError::Answer { reason: error.to_string() })?
        }
        (None, None) => Shown::of(&hang::explain(&asked)?, asked.form)?,
    };
    Output.text(&shown.text)?;
    Ok(if shown.complete { Exit::Complete } else { Exit::Incomplete })
}

fn dump(pid: Option<u32>) -> Result<Exit, CommandError> {
    put_down_files_rights().map_err(CommandError::Rights)?;
    let Dumped { files, failures } = ask(pid)?;
    let exit = print(&format!("{}\n", files.join("\n")))?;
    // The files are there, and something is missing.
    failures.iter().for_each(say);
    Ok(if failures.is_empty() { exit } else { Exit::Incomplete })
}

fn draw(asked: &Plot) -> Result<Exit, CommandError> {
    put_down_files_rights().map_err(CommandError::Rights)?;
    Ok(plot(asked)?.into())
}

fn export_trace(asked: &Export) -> Result<Exit, CommandError> {
    put_down_files_rights().map_err(CommandError::Rights)?;
    match export(asked) {
        Err(ExportFailure::Output(error)) => Err(error.into()),
        Err(error) if error.is_wrong_usage() => Ok(wrong_usage(&error)),
        exported => Ok(exported?.into()),
    }
}

/// Says what can never be, which has an exit status of its own.
fn wrong_usage(error: &dyn Display) -> Exit {
    say(error);
    Exit::Unusable
}

fn find_waits(asked: &Waits) -> Result<Exit, CommandError> {
    put_down_files_rights().map_err(CommandError::Rights)?;
    match waits(asked) {
        Err(WaitsError::Output(error)) => Err(error.into()),
        Err(error) if error.is_wrong_usage() => Ok(wrong_usage(&error)),
        found => Ok(found?.into()),
    }
}

fn print_report(asked: &Report, verbose: bool) -> Result<Exit, CommandError> {
    put_down_files_rights().map_err(CommandError::Rights)?;
    match report(asked, verbose) {
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

fn compare_runs(asked: &Compare, verbose: bool) -> Result<Exit, CommandError> {
    put_down_files_rights().map_err(CommandError::Rights)?;
    match compare(asked, verbose) {
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

/// Each of a run's files is one of its own.
fn expect_files_apart(run: &Run) -> Result<(), String> {
    let files = [
        ("--profile", &run.profile),
        ("--report", &run.report),
        ("--trace", &run.trace),
        ("--record", &run.record.record),
    ];
    let mut seen: Vec<(&str, PathBuf)> = Vec::new();
    for (option, path) in files.into_iter().filter_map(|(option, path)| Some((option, path.as_ref()?))) {
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        if let Some((before, _)) = seen.iter().find(|(_, other)| *other == whole) {
            return Err(format!("nothing was run: {before} and {option} are both to be written to {}", path.display()));
        }
        seen.push((option, whole));
    }
    Ok(())
}

/// The file of a run's trace, and what goes into it.
fn trace_to(run: &Run) -> Option<TraceOptions> {
    let selection = run.traced.selection(run.functions);
    let (mode, ranks) = (run.record.files.file_mode, run.traced.ranks.clone());
    // Signals are the command's.
    let when = run.flight.when(false).unwrap_or_default();
    let to = run.trace.clone().map_or(TraceTo::Nobody, |path| TraceTo::File { path, mode });
    let waits = run.waits;
    let is_asked = waits || run.trace.is_some();
    is_asked.then_some(TraceOptions { to, selection, ranks, when, waits, latest: LatestCalls::None })
}

async fn run_command(run: &Run, arguments: &Arguments) -> Exit {
    let report = match expect_files_apart(run).and_then(|()| report_to(run)) {
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
        max_overhead: run.max_overhead,
        profile: profile_to(run.profile.as_ref(), run.record.files),
        report,
        tables: run.output.clone(),
        json: run.json,
        record: run.record.to(),
        trace: trace_to(run),
        interval: run.interval,
        text: TextOptions {
            width: if run.profile.is_none() { width_of(&io::stderr()) } else { None },
            all: arguments.verbose > 0,
            ..TextOptions::default()
        },
        trace_bpf: arguments.trace_bpf,
    };
    match launched::run_command(&options, run.engine).await {
        Ok(status) => Exit::Command(status),
        Err(error) => {
            say(&error);
            Exit::Command(error.exit_status())
        }
    }
}

async fn view_kept(asked: &View, verbose: bool) -> Result<Exit, CommandError> {
    put_down_files_rights().map_err(CommandError::Rights)?;
    if asked.sources.first().is_some_and(|first| is_trace(first)) {
        return view_trace(asked).await;
    }
    let run = open_moments(&asked.sources, Span::default(), asked.any_owner)?;
    let last = run.count().saturating_sub(1);
    let moment = asked.at.map_or(Ok(last), |at| run.find(at)).map_err(OpenError::from)?;
    if !asked.plain && !asked.json && mpiprobe_view::is_interactive() {
        let files = Files::new(&|name| std::env::var(name).ok());
        let start = ViewStart::new(asked.filter.clone(), None, files)?;
        mpiprobe_view::replay(run, moment, asked.appearance.options(), start).await?;
        return Ok(Exit::Complete);
    }
    for note in run.notes() {
        say(format_args!("{}: {note}", run.name()));
    }
    let profile = run.moment(moment).map_err(OpenError::from)?;
    let filter = asked.filter.as_ref();
    if asked.json {
        let shown = mpiprobe_report::present::filtered(&profile, filter);
        Output.json_line(&ProfileOutput::new(&shown, &profile))?;
    } else {
        let head = format!("{}, moment {} of {}\n", run.describe(moment), moment + 1, run.count());
        let options = TextOptions { width: width(), all: verbose, ..TextOptions::default() };
        show(&(head + &mpiprobe_report::present::profile(&options, &profile, &findings(&profile), filter)), true)?;
    }
    Ok(if profile.complete { Exit::Complete } else { Exit::Incomplete })
}

/// The timeline of a trace; without a terminal, as text.
async fn view_trace(asked: &View) -> Result<Exit, CommandError> {
    let name = asked.sources.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ");
    if asked.json {
        return Err(CommandError::NoProfile(name));
    }
    let options = [("--at", asked.at.is_some()), ("--filter", asked.filter.is_some())];
    if let Some((option, _)) = options.into_iter().find(|(_, is_given)| *is_given) {
        return Err(CommandError::NotOfTraces(option));
    }
    let files = traces::open(&asked.sources)?;
    let (appearance, mut notes) = (asked.appearance.options(), files.notes().to_vec());
    let trace: Arc<dyn Recorded + Send + Sync> = Arc::new(files);
    let clocks = compared(trace.as_ref())?;
    let is_whole = notes.is_empty() && trace.definitions().missing_calls() == 0;
    notes.extend(of_clocks(&clocks));
    if !asked.plain && mpiprobe_view::is_interactive() {
        mpiprobe_view::timeline(trace, clocks, &name, &notes, appearance).await?;
        return Ok(Exit::Complete);
    }
    notes.iter().for_each(say);
    let (text, is_read) = mpiprobe_view::timeline_text(&trace, &clocks, &name, width(), appearance)?;
    show(&text, true)?;
    Ok(if is_whole && is_read { Exit::Complete } else { Exit::Incomplete })
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
async fn list(json: bool, hint: bool, named: Option<&Path>) -> Result<Exit, CommandError> {
    if let Some(service) = service_for(named, Path::new(service::SOCKET))? {
        return list_by_service(&service, json, hint).await;
    }
    let root = ProcRoot::system()?;
    let mut scanner = Scanner::new(root, Caller::current()?, ImplementationRecogniser::default());
    let snapshot = scanner.scan()?;
    for error in &snapshot.errors {
        tracing::info!("{error}");
    }
    if json {
        Output.json(&JobList::new(&snapshot))?;
        return Ok(Exit::Complete);
    }
    Output.text(&mpiprobe_report::present::jobs(&JobList::new(&snapshot)))?;
    if hint {
        Output.text(&mpiprobe_report::present::next_step(&snapshot.jobs, true))?;
    }
    Ok(Exit::Complete)
}

async fn list_by_service(service: &Service, json: bool, hint: bool) -> Result<Exit, CommandError> {
    let answer = service.get("/v1/jobs").await?;
    let unreadable = |error: serde_json::Error| AskError::Answer { reason: error.to_string() };
    let listed: ListedJobs = serde_json::from_slice(&answer).map_err(unreadable)?;
    if json {
        Output.json(&listed.as_list())?;
        return Ok(Exit::Complete);
    }
    Output.text(&mpiprobe_report::present::jobs(&listed.as_list()))?;
    if hint {
        Output.text(&mpiprobe_report::present::next_step(&listed.jobs, false))?;
    }
    Ok(Exit::Complete)
}

fn tell_checks(report: &mpiprobe_model::Report, json: bool) -> Result<Exit, CommandError> {
    if json {
        Output.json(report)?;
    } else {
        Output.text(&mpiprobe_report::present::checks(report))?;
    }
    Ok(match report.worst() {
        Verdict::Info | Verdict::Ok => Exit::Complete,
        Verdict::Limited => Exit::Failed,
        Verdict::Failed => Exit::Unusable,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn two_files_of_a_run_are_not_one() {
        let told = |words: &[&str]| {
            let words = ["mpiprobe", "run"].iter().chain(words).chain(&["--", "true"]);
            let Some(Command::Run(run)) = Arguments::try_parse_from(words).unwrap().command else { panic!("no run") };
            expect_files_apart(&run)
        };
        let why = told(&["--trace", "ring.trace", "--record", "./ring.trace"]).unwrap_err();
        assert!(why.contains("--trace and --record") && why.contains("ring.trace"), "{why}");
        assert_eq!(told(&["--trace", "ring.trace", "--record", "ring.mpr", "-o", "ring.txt"]), Ok(()));
    }
}
