//! What can be typed.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use mpiprobe_attach::AttachMethod;
use mpiprobe_functions::FunctionSet;
use mpiprobe_model::filter::{self as filters, Filter};
use mpiprobe_report::Format as ReportFormat;
use mpiprobe_report::present::recording::{At, RecordTo};
use mpiprobe_trace::store::FlightSpan;
use mpiprobe_tracer::Selection;
use mpiprobe_view::{Scheme, ViewOptions};

use super::{
    compare::Compare,
    export::Export,
    output::{FileMode, filter},
    plot::Plot,
    report::Report,
    schema::Printed,
    waits::Waits,
};
use crate::nodes::{Launcher, host, launcher};
use crate::push::Address;
use crate::session::{
    EngineChoice, MaxOverhead, Returns,
    launched::RunEngine,
    trace::{FlightOptions, Ranks, When, flight_span},
};

/// Observes running, unmodified MPI programs: what every call costs, per rank and function.
///
/// Without a target and a command: lists the MPI jobs on this node.
#[derive(Debug, Parser)]
#[command(name = "mpiprobe", version, max_term_width = 110, after_help = EXIT_STATUS)]
pub struct Arguments {
    #[command(flatten)]
    pub observe: Observe,
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Say more on standard error (-v, -vv); RUST_LOG works too.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Say on standard error what the BPF programs see of processes: fork, exec, ends of threads.
    #[arg(long, global = true)]
    pub trace_bpf: bool,
    /// Where the service of this node listens, instead of its usual place.
    #[arg(long, global = true, value_name = "PATH")]
    pub socket: Option<PathBuf>,
}

const EXIT_STATUS: &str = "Exit status:
  0  a complete profile, or nothing wrong
  1  failed: no profile
  2  wrong usage, or (doctor) mpiprobe does not work here
  3  a profile with something missing; the profile says what
  4  (compare) a condition of --fail-if holds

Example: sudo mpiprobe --pid-of ring";

/// Which processes are meant.
#[derive(Args, Debug)]
pub struct Targets {
    /// Every process of one job whose program (executable, command name or script) is called NAME.
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = "Target")]
    pub pid_of: Option<String>,
    /// This process; may be given several times.
    #[arg(long, value_name = "PID", conflicts_with = "pid_of", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Target")]
    pub pid: Vec<u32>,
    /// This job, as `mpiprobe ps` names it, or the batch system does; with --pid-of, only its processes of that name.
    #[arg(long, value_name = "ID", help_heading = "Target")]
    pub job: Option<String>,
    /// All jobs that match, not just one.
    #[arg(long, conflicts_with = "job", help_heading = "Target")]
    pub all_jobs: bool,
}

/// On which nodes, and how they are reached.
#[derive(Args, Debug)]
pub struct OnNodes {
    /// Observe on these nodes, separated by commas, and show the ranks of all of them together: an agent is started on each.
    #[arg(long, value_name = "HOSTS", value_delimiter = ',', value_parser = host, conflicts_with = "pid", help_heading = "Nodes")]
    pub hosts: Vec<String>,
    /// What starts agents: `ssh`; `srun`, which knows the nodes of a Slurm job (--job 4711) by itself; or a command in which
    /// {host} stands for a node's name, and which executes the words that follow it there. The default is ssh, in a Slurm job of
    /// several nodes srun.
    #[arg(long, value_name = "COMMAND", value_parser = launcher, help_heading = "Nodes")]
    pub launcher: Option<Launcher>,
    /// Where mpiprobe is on the nodes, if not in the same place as here.
    #[arg(long, value_name = "PATH", help_heading = "Nodes")]
    pub agent: Option<PathBuf>,
    /// How many nodes one mpiprobe talks to. On more, agents talk to agents, which reach other nodes in the same way as this one does.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Nodes")]
    pub fan_out: u16,
}

/// What is observed, and how.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
pub struct Observe {
    #[command(flatten)]
    pub targets: Targets,
    #[command(flatten)]
    pub nodes: OnNodes,
    /// Wait for a process that matches, or that loads MPI later (Python), if there is none yet.
    #[arg(long, help_heading = "Target")]
    pub wait: bool,

    /// End after this time, such as 10s or 2min; the default is when all targets have ended.
    #[arg(long, value_name = "TIME", value_parser = positive_duration, help_heading = "Time")]
    pub duration: Option<Duration>,
    /// Time between two tables.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive_duration, help_heading = "Time")]
    pub interval: Duration,

    /// Functions to probe: `all`, `default`, groups (p2p, coll, completion, sync, rma, io, init, comm, type, query, tool, other) or
    /// names, separated by commas; `-NAME` leaves one out.
    #[arg(long, value_name = "LIST", default_value = "default", value_parser = functions, allow_hyphen_values = true, help_heading = "What is measured")]
    pub functions: FunctionSet,
    /// Time the calls too that MPI makes inside MPI, such as MPI-IO's collectives.
    #[arg(long, help_heading = "What is measured")]
    pub nested: bool,
    /// Whether eBPF sees when calls return; without, calls are counted exactly, and their times and bytes are not known.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t, help_heading = "What is measured")]
    pub returns: Returns,
    /// Count all the time and without phases, whatever programs ask for by `MPI_Pcontrol`.
    #[arg(long, help_heading = "What is measured")]
    pub ignore_pcontrol: bool,
    /// Find out what each call moves: bytes, partners, communicators, call sites. Calls cost up to a third more.
    #[arg(long, help_heading = "What is measured")]
    pub traffic: bool,
    /// Find out who waits for whom, for how long and why, while the job runs, with --traffic: each call is looked at one by one, which costs it more. Not for processes that count themselves.
    #[arg(long, conflicts_with = "max_overhead", help_heading = "What is measured")]
    pub waits: bool,
    /// Tell whoever looks for waits of each call: what front ends ask other nodes for.
    #[arg(long, conflicts_with_all = ["max_overhead", "waits"], hide = true)]
    pub single_calls: bool,
    /// Show only what went over communicators whose name matches, such as `world`, `row*`, `split#*`; may be given several
    /// times. Functions and ranks are shown as without.
    #[arg(long, value_name = "NAME", requires = "traffic", help_heading = "Output")]
    pub comm: Vec<String>,

    /// Tables on standard output even on a terminal, where there is a full-screen view otherwise.
    #[arg(long, help_heading = "Output")]
    pub plain: bool,
    /// One look only, after one interval, or after --duration: what ranks do, and who waits for whom.
    #[arg(long, requires = "plain", help_heading = "Output")]
    pub once: bool,
    /// Show only rows for which this is not false, in the view and in what is printed, such as 'func ~ "All" and bytes > 1MiB and rank in 0..15'; see docs/filter.md
    #[arg(long, value_name = "FILTER", value_parser = filter, help_heading = "Output")]
    pub filter: Option<Filter>,
    /// Open the full-screen view as it was saved under this name.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["plain", "json"], help_heading = "Output")]
    pub view: Option<String>,
    /// JSON, one profile on a line at each interval; the last is the final one.
    #[arg(long, conflicts_with = "plain", help_heading = "Output")]
    pub json: bool,

    #[command(flatten)]
    pub record: Record,
    #[command(flatten)]
    pub appearance: Appearance,

    /// Who counts: `auto` takes the tables of processes that count themselves (`mpiprobe run`), else eBPF, by the service of this
    /// node where the rights are missing.
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t, help_heading = "What is measured")]
    pub engine: EngineChoice,

    /// What eBPF may cost each rank, per cent of its time over any ten minutes (or another time: 2/1m), or `off`. Half of that may be spent at
    /// once. What would cost more is counted with less care: functions that are called very often by their entry alone, then in samples, and the
    /// profile says so. No limit holds for --waits and --nested, which need each call.
    #[arg(long, value_name = "PERCENT", default_value_t, help_heading = "Limits")]
    pub max_overhead: MaxOverhead,
    /// Attach in this way only, instead of the best one that works.
    #[arg(long, value_name = "WAY", value_enum, help_heading = "Limits")]
    pub attach: Option<AttachMethod>,
    /// Room for this many processes (8.5 KiB each, 18.5 KiB in the full-screen view).
    #[arg(long, value_name = "N", default_value_t = mpiprobe_common::PROCESS_SLOTS, value_parser = clap::value_parser!(u32).range(2..=65_536), help_heading = "Limits")]
    pub max_processes: u32,
    /// Room for this many live threads that call MPI (1.3 KiB each).
    #[arg(long, value_name = "N", default_value_t = mpiprobe_common::THREAD_SLOTS, value_parser = clap::value_parser!(u32).range(1..=4_194_304), help_heading = "Limits")]
    pub max_threads: u32,

    /// Room for this many different combinations of process, function, call site, communicator and partner
    #[arg(long, value_name = "N", default_value_t = mpiprobe_common::FLOW_SLOTS, value_parser = clap::value_parser!(u32).range(1..=4_194_304), help_heading = "Limits")]
    pub max_flows: u32,

    /// Room for this many communicators, those of all processes together
    #[arg(long, value_name = "N", default_value_t = mpiprobe_common::COMMUNICATOR_SLOTS, value_parser = clap::value_parser!(u32).range(2..=1_048_576), help_heading = "Limits")]
    pub max_communicators: u32,
    /// Room for this many requests outstanding at once, those of all processes together
    #[arg(long, value_name = "N", default_value_t = mpiprobe_common::REQUEST_SLOTS, value_parser = clap::value_parser!(u32).range(1..=4_194_304), help_heading = "Limits")]
    pub max_requests: u32,
    /// Room for statistics of this many pairs of process and function (2.6 KiB each).
    #[arg(long, value_name = "N", default_value_t = mpiprobe_common::STATS_ENTRIES, value_parser = clap::value_parser!(u32).range(1..=1_048_576), help_heading = "Limits")]
    pub max_stats: u32,
}

impl Targets {
    fn has_any(&self) -> bool {
        self.pid_of.is_some() || !self.pid.is_empty() || self.job.is_some() || self.all_jobs
    }
}

impl Observe {
    /// Whether anything was named to be observed.
    pub fn has_target(&self) -> bool {
        self.targets.has_any()
    }

    /// The full-screen view, where there is a terminal and nobody wants something else.
    pub fn view_options(&self, is_interactive: bool) -> Option<ViewOptions> {
        let wanted = is_interactive && !self.plain && !self.json;
        wanted.then_some(self.appearance.options())
    }
}

/// How the view looks.
#[derive(Args, Debug)]
pub struct Appearance {
    /// Colours of the view.
    #[arg(long, value_name = "SCHEME", value_enum, default_value_t, help_heading = "Output")]
    pub colours: Scheme,
    /// Nothing but ASCII in the view; so it is anyway where the locale is not UTF-8.
    #[arg(long, help_heading = "Output")]
    pub ascii: bool,
    /// Use the mouse in the view: the wheel scrolls, a click chooses a row, another one looks into it.
    #[arg(long, help_heading = "Output")]
    pub mouse: bool,
}

impl Appearance {
    pub fn options(&self) -> ViewOptions {
        ViewOptions { scheme: self.colours, ascii: self.ascii, mouse: self.mouse }
    }
}

/// What is recorded besides.
#[derive(Args, Debug)]
#[expect(clippy::struct_field_names, reason = "fields have the names of their options")]
pub struct Record {
    /// Record the profile of each --interval, and the last one, into a new FILE; `mpiprobe view FILE` shows them.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub record: Option<PathBuf>,
    /// Record no more than this, such as 500MB or 4GiB.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size, help_heading = "Output")]
    pub record_limit: u64,
    #[command(flatten)]
    pub files: FileMode,
}

impl Record {
    pub fn to(&self) -> Option<RecordTo> {
        self.record.clone().map(|path| RecordTo { path, mode: self.files.file_mode, limit: self.record_limit })
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say of every rank where it is, and whether it goes on, by the stacks of its threads, which are not stopped for it: for jobs that
    /// hang. Without a target: the one job here.
    Hang(Hang),
    /// List the MPI jobs on this node.
    Ps {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run a command, such as `mpirun -n 4 ./app`, and print the profile of its MPI processes when it has ended. Counted by eBPF
    /// where that is permitted and misses no call, else by a preloaded library, which needs no rights. Exits as the command does.
    Run(Box<Run>),
    /// Record the course of events of a job that runs: each call with its times, partners, tags, bytes and requests. Without a target: of the
    /// one job here. Ends when all targets have ended, after --duration, or by Ctrl-C, and prints the profile of that time.
    Trace(Box<Trace>),
    /// Have the last calls written down that `mpiprobe trace --flight` keeps in memory; prints the names of the files, of several nodes one
    /// each. Only who has started that, and root, may ask.
    Dump {
        /// The process that keeps them; the default is the only one that there is.
        #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
        pid: Option<u32>,
    },
    /// Show what is kept of a run: in the full-screen view, at first its last moment, or without a terminal that moment only. Of a trace,
    /// its timeline.
    View(View),
    /// Print what is kept of a run: of a recording, a profile as JSON, a directory of tables, or several files of its nodes.
    Report(Box<Report>),
    /// Draw a picture of what is kept of a run, as SVG: for papers.
    Plot(Box<Plot>),
    /// Say who has waited for whom in a trace, for how long and why, by the definitions of Scalasca.
    Waits(Waits),
    /// Write a trace as files that other tools open: OTF2, Perfetto, Parquet, CSV.
    Export(Box<Export>),
    /// Compare runs: what got slower or faster, and how sure that is. Several runs a side tell most.
    Compare(Box<Compare>),
    /// Show which defaults hold, and which file sets them: `~/.config/mpiprobe/config.toml`, or `/etc/mpiprobe.toml`.
    Config,
    /// Print the JSON Schema of what mpiprobe prints as JSON.
    Schema {
        #[arg(value_enum, default_value_t)]
        of: Printed,
    },
    /// Print what makes a shell complete mpiprobe's options, for bash, elvish, fish, powershell or zsh.
    ///
    /// Such as `mpiprobe completions bash > ~/.local/share/bash-completion/completions/mpiprobe`.
    Completions { shell: Shell },
    /// Print the manual page of mpiprobe, or of one of its commands: `mpiprobe man | man -l -`.
    Man {
        /// Such as `hang`, whose page is called mpiprobe-hang.
        command: Option<String>,
    },
    /// What --hosts starts on a node.
    #[command(hide = true)]
    Agent {
        /// How it reaches nodes that it is to start agents on, as for --hosts.
        #[arg(long, value_parser = launcher)]
        launcher: Option<Launcher>,
        /// Where mpiprobe is on those nodes.
        #[arg(long, value_name = "PATH", requires = "launcher")]
        agent: Option<PathBuf>,
        /// Slurm's number of the job.
        #[arg(long, requires = "launcher")]
        slurm_job: Option<String>,
    },
    /// Print the path of the library for LD_PRELOAD that `run` uses, where a launcher has to be told by hand.
    WrapperPath,
    /// Serve this node: its users observe the jobs that are theirs without rights of their own, and root all of them. Needs root, or four
    /// capabilities; see docs/service.md.
    Service(Service),
    /// Hand what the service of this node tells monitoring on to a collector of OpenTelemetry's, by OTLP over HTTP, until it is ended. The
    /// service itself makes no connections. Needs no rights with --from, else to see all jobs; see docs/service.md.
    Push(PushTo),
    /// Check what works here, or whether and how a process can be observed; exits with 0 (all well), 1 (works, with
    /// limits) or 2 (does not work).
    Doctor {
        /// The process to check.
        pid: Option<u32>,
        /// Check the service of this node instead: whether it answers, which version it is, what you may have of it, and what is wrong.
        #[arg(long, conflicts_with = "pid")]
        service: bool,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

/// What is looked at, and how it is shown.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
#[derive(Args, Debug)]
pub struct Hang {
    #[command(flatten)]
    pub targets: Targets,
    #[command(flatten)]
    pub nodes: OnNodes,
    /// All threads in the tree, those of MPI's own making too; otherwise those that are in MPI, and the first of each rank.
    #[arg(long, help_heading = "Output")]
    pub all_threads: bool,
    /// So many functions of each stack at most, counted from the outermost one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Output")]
    pub depth: Option<u32>,
    /// As JSON.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// The tree for Graphviz, as STAT writes it.
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub dot: bool,
    /// The tree as folded stacks, for flame graphs.
    #[arg(long, conflicts_with_all = ["json", "dot"], help_heading = "Output")]
    pub folded: bool,
}

/// Where the service is, and what is set for it.
#[derive(Args, Debug)]
pub struct Service {
    /// The file with its settings.
    #[arg(long, value_name = "FILE", default_value = "/etc/mpiprobe/service.toml")]
    pub configuration: PathBuf,
}

/// What is asked, and what is told.
#[derive(Args, Debug)]
pub struct PushTo {
    /// The collector, such as http://localhost:4318, which is the default. OTEL_EXPORTER_OTLP_ENDPOINT in the environment names another one,
    /// OTEL_EXPORTER_OTLP_HEADERS what it wants to be told besides, such as a key.
    #[arg(long, value_name = "URL")]
    pub to: Option<Address>,
    /// The port where the service tells metrics, such as http://localhost:9464, instead of its socket, where only those may have them who
    /// see all jobs.
    #[arg(long, value_name = "URL")]
    pub from: Option<Address>,
    /// Time between two times.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = positive_duration)]
    pub interval: Duration,
    /// One time only, which fails if it does not get there.
    #[arg(long)]
    pub once: bool,
}

/// A run that was kept, and how it is shown.
#[derive(Args, Debug)]
pub struct View {
    /// A recording (--record), profiles as JSON (--json), a directory of tables (run --output), or a trace; several are parts of one job, of
    /// a node each.
    #[arg(required = true, value_name = "SOURCE")]
    pub sources: Vec<PathBuf>,
    /// The profile of one moment, or a trace's timeline, as text, even on a terminal.
    #[arg(long)]
    pub plain: bool,
    /// The profile of one moment as JSON.
    #[arg(long, conflicts_with = "plain")]
    pub json: bool,
    /// This moment instead of the last one: 90s or +01:30 since the beginning, 12:34:56 by the clock (UTC), or #13 by its number.
    #[arg(long, value_name = "TIME")]
    pub at: Option<At>,
    /// Show only rows of the profile for which this is not false; see docs/filter.md
    #[arg(long, value_name = "FILTER", value_parser = filter)]
    pub filter: Option<Filter>,
    /// Take tables of other users in as well, who may have written anything into them.
    #[arg(long)]
    pub any_owner: bool,
    #[command(flatten)]
    pub appearance: Appearance,
}

/// What is run, and what becomes of the profile.
#[derive(Args, Debug)]
pub struct Run {
    /// Who counts.
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t)]
    pub engine: RunEngine,
    /// Functions to count: as for an observation.
    #[arg(long, value_name = "LIST", default_value = "default", value_parser = functions, allow_hyphen_values = true)]
    pub functions: FunctionSet,
    /// Whether eBPF, where it counts, sees when calls return; `auto` engine takes the wrapper where that may do harm.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub returns: Returns,
    /// Count all the time and without phases, whatever programs ask for by `MPI_Pcontrol`.
    #[arg(long)]
    pub ignore_pcontrol: bool,
    /// What eBPF, where it counts, may cost each rank: as for an observation. Not with --trace and --waits, which need each call.
    #[arg(long, value_name = "PERCENT", default_value_t)]
    pub max_overhead: MaxOverhead,
    /// The profile as JSON.
    #[arg(long)]
    pub json: bool,
    /// Write the profile to a new FILE instead of standard error.
    #[arg(short = 'o', long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Write a report to a new FILE besides: .html, .md, .txt, .mpip, .folded, .cubex or .json.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// What the report is written as, if not as the ending of its name says.
    #[arg(long, value_name = "FORMAT", value_enum, requires = "report")]
    pub report_format: Option<ReportFormat>,
    /// Record each call, in a new FILE besides: with its times, partners, tags, bytes and requests.
    #[arg(long, value_name = "FILE", group = "trace-file", conflicts_with = "max_overhead")]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub traced: TraceChoice,
    #[command(flatten)]
    pub flight: FlightChoice,
    /// Find out who waits for whom, for how long and why, while the command runs; without --trace, in no file.
    #[arg(long, conflicts_with_all = ["flight", "max_overhead"])]
    pub waits: bool,
    /// Keep the processes' tables in DIR; for jobs over several nodes, a directory that all of them share.
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Time between two moments of --record.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive_duration)]
    pub interval: Duration,
    #[command(flatten)]
    pub record: Record,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// What is recorded, and where.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
pub struct Trace {
    #[command(flatten)]
    pub targets: Targets,
    #[command(flatten)]
    pub nodes: OnNodes,
    /// Wait for a process that matches, or that loads MPI later (Python), if there is none yet.
    #[arg(long, help_heading = "Target")]
    pub wait: bool,
    /// The new FILE. With --flight, the next ones have a number before the ending: ring.2.trace; of several nodes (--hosts) each one has its
    /// own, with its name there: ring.n1.trace.
    #[arg(short = 'o', long, value_name = "FILE", group = "trace-file", help_heading = "Output")]
    pub output: PathBuf,
    #[command(flatten)]
    pub files: FileMode,
    /// The profile as JSON.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// End after this time, such as 10s or 2min; the default is when all targets have ended.
    #[arg(long, value_name = "TIME", value_parser = positive_duration, help_heading = "Time")]
    pub duration: Option<Duration>,
    /// Record for some time in each period only, such as 200ms@every:10s. The profile is of all the time.
    #[arg(long, value_name = "TIME@every:TIME", conflicts_with = "flight", help_heading = "Time")]
    pub window: Option<When>,
    #[command(flatten)]
    pub flight: FlightChoice,
    /// Find out who waits for whom, for how long and why, while it is recorded.
    #[arg(long, conflicts_with_all = ["flight", "window"], help_heading = "Output")]
    pub waits: bool,
    /// As for an observation.
    #[arg(long, conflicts_with_all = ["flight", "window", "waits"], hide = true)]
    pub single_calls: bool,
    /// Functions to record: as for an observation.
    #[arg(long, value_name = "LIST", default_value = "default", value_parser = functions, allow_hyphen_values = true, help_heading = "What is recorded")]
    pub functions: FunctionSet,
    #[command(flatten)]
    pub traced: TraceChoice,
    /// Record all the time and without phases, whatever programs ask for by `MPI_Pcontrol`.
    #[arg(long, help_heading = "What is recorded")]
    pub ignore_pcontrol: bool,
    /// Attach in this way only, instead of the best one that works.
    #[arg(long, value_name = "WAY", value_enum, help_heading = "Limits")]
    pub attach: Option<AttachMethod>,
}

/// Whether a trace stays in memory, and what of it.
#[derive(Args, Debug)]
pub struct FlightChoice {
    /// Keep the last part in memory, such as 30s, or 100000calls of each process, and write it to the file only when somebody wants it (`mpiprobe dump`,
    /// or SIGUSR1 to `trace`) or a rank ends without MPI_Finalize or with a failure. Each time there is another file.
    #[arg(long, value_name = "SPAN", value_parser = flight_span, requires = "trace-file", help_heading = "Flight recorder")]
    pub flight: Option<FlightSpan>,
    /// Memory for the calls of --flight, of all nodes together; if they need more, less is kept.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = memory, help_heading = "Flight recorder")]
    pub flight_memory: u64,
    /// With --flight, write also when no call has returned for this time, and some have been open for as long.
    #[arg(long, value_name = "TIME", requires = "flight", value_parser = positive_duration, help_heading = "Flight recorder")]
    pub dump_on_hang: Option<Duration>,
}

impl FlightChoice {
    /// `by_signal`: signals are for mpiprobe.
    pub fn when(&self, by_signal: bool) -> Option<When> {
        let flight = |span| FlightOptions { span, memory: self.flight_memory, hang: self.dump_on_hang, by_signal };
        self.flight.map(flight).map(When::Flight)
    }
}

/// Which calls a trace has.
#[derive(Args, Debug)]
pub struct TraceChoice {
    /// Record these ranks only, such as 0,4-7.
    #[arg(long, value_name = "LIST", help_heading = "What is recorded")]
    pub ranks: Option<Ranks>,
    /// Record calls that take at least so long, such as 10us; the others are counted.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, help_heading = "What is recorded")]
    pub min_duration: Option<Duration>,
    /// Record calls over communicators whose name matches, such as `world`, `row*`, or of one without a name how it was made: `split`, `cart`,
    /// `dup`; may be given several times. The others are counted.
    #[arg(long, value_name = "NAME", help_heading = "What is recorded")]
    pub comm: Vec<String>,
}

impl TraceChoice {
    /// With these functions.
    pub fn selection(&self, functions: FunctionSet) -> Selection {
        let min_duration = self.min_duration.unwrap_or_default();
        Selection {
            functions,
            communicators: self.comm.clone(),
            min_duration_ns: u64::try_from(min_duration.as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

fn size(text: &str) -> Result<u64, String> {
    filters::bytes(text).ok_or_else(|| "such as 500MB or 4GiB".into())
}

fn memory(text: &str) -> Result<u64, String> {
    size(text).and_then(|bytes| if bytes < 1 << 20 { Err("at least 1MiB".into()) } else { Ok(bytes) })
}

fn functions(text: &str) -> Result<FunctionSet, String> {
    mpiprobe_functions::select(text).map_err(|error| error.to_string())
}

fn positive_duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(duration) if duration < Duration::from_millis(10) => Err("at least 10ms".into()),
        Ok(duration) => Ok(duration),
        // A bare number means seconds to everybody.
        Err(error) => match text.parse::<f64>().map(Duration::try_from_secs_f64) {
            Ok(Ok(duration)) if duration >= Duration::from_millis(10) => Ok(duration),
            _ => Err(format!("{error}; such as 500ms, 10s, 2min")),
        },
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn pids_and_times() {
        let arguments =
            Arguments::try_parse_from(["mpiprobe", "--pid", "4711", "--pid", "4712", "--duration", "10s", "--json"])
                .unwrap();
        assert_eq!(arguments.observe.targets.pid, [4711, 4712]);
        assert_eq!(arguments.observe.duration, Some(Duration::from_secs(10)));
        assert!(arguments.observe.json);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for wrong in [
            &["--pid-of", ""][..],
            &["--pid", "0"],
            &["--pid-of", "a", "--pid", "1"],
            &["--job", "x", "--all-jobs"],
            &["--json", "--plain"],
            &["--once"],
            &["--view", "x", "--plain"],
            &["--filter", "rank ="],
            &["--interval", "0"],
            &["--duration", "-1"],
            &["--functions", "Sendd"],
            &["--max-processes", "1"],
            &["--max-overhead", "0"],
            &["--max-overhead", "-1"],
            &["--max-overhead", "101"],
            &["--max-overhead", "abc"],
            &["--max-overhead", "nan"],
            &["--max-overhead", "2/"],
            &["--max-overhead", "2/30s"],
            &["--max-overhead", "2/2days"],
            &["--max-overhead", "1", "--waits", "--pid", "1"],
            &["run", "--max-overhead", "1", "--trace", "x", "true"],
            &["compare"],
            &["report", "a", "--by", "rank"],
            &["compare", "a", "b", "--per", "rank"],
            &["compare", "a", "b", "--fail-if", "Send"],
            &["trace", "-o", "x", "--flight", "30s", "--window", "1s@every:2s"],
            &["trace", "-o", "x", "--dump-on-hang", "30s"],
            &["trace", "-o", "x", "--flight", "30s", "--flight-memory", "1kB"],
            &["run", "--flight", "30s", "true"],
        ] {
            assert!(Arguments::try_parse_from(["mpiprobe"].iter().chain(wrong)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn files_are_private_unless_asked_otherwise() {
        let mode = |arguments: &[&str]| {
            let arguments = ["mpiprobe", "--pid", "1", "--record", "x"].iter().chain(arguments);
            Arguments::try_parse_from(arguments).ok().and_then(|arguments| Some(arguments.observe.record.to()?.mode))
        };
        assert_eq!((mode(&[]), mode(&["--file-mode", "0644"])), (Some(0o600), Some(0o644)));
        for wrong in ["755", "4644", "u+r", "9", ""] {
            assert_eq!(mode(&["--file-mode", wrong]), None, "{wrong}");
        }
    }

    #[test]
    fn a_bare_number_is_seconds() {
        assert_eq!(positive_duration("1.5"), Ok(Duration::from_millis(1500)));
        assert!(positive_duration("1e300").is_err());
        assert!(positive_duration("soon").is_err());
    }
}
