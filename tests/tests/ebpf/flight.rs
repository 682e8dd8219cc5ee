//! The last calls of a job, kept in memory until somebody wants them: what is written then is what the truth library has logged last, call for call.
//!
//! Invariant FLIGHT-TAIL.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::check::complete;
use mpiprobe_tests::profiler::{binary, is_failure_kept};
use mpiprobe_tests::second_user::{home_of, nobody_else};
use mpiprobe_tests::service::NodeService;
use mpiprobe_tests::traced::{Comparison, Extent, Order, agreement_of, agreement_of_files};
use mpiprobe_tests::{Job, JobBuilder, Language, Mpi, Profiler, program, requirement};
use mpiprobe_trace::store::TraceFiles;
use mpiprobe_trace::{Event, Span, Trace};
use rustix::process::{Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;

use crate::{
    nodes::{self, Nodes},
    trial,
};

const DEADLINE: Duration = Duration::from_mins(5);

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let over_nodes = |name: &str, run: fn(Mpi) -> Result<(), Failed>| {
        requirement::trial(format!("{}::{name}", mpi.id()), &nodes::needs(mpi), move || run(mpi))
    };
    vec![
        trial(mpi, Language::C, "flight_is_dumped_on_request", |mpi| on_request(mpi, &By::Root)),
        trial(mpi, Language::C, "flight_of_a_killed_rank", |mpi| of_killed_rank(mpi, &By::Root)),
        trial(mpi, Language::C, "flight_of_a_rank_that_fails", of_failing_rank),
        trial(mpi, Language::C, "flight_of_a_hang", |mpi| of_hang(mpi, &By::Root)),
        trial(mpi, Language::C, "flight_by_the_service_is_dumped_on_request", |mpi| on_request(mpi, &By::service()?)),
        trial(mpi, Language::C, "flight_by_the_service_of_a_killed_rank", |mpi| of_killed_rank(mpi, &By::service()?)),
        trial(mpi, Language::C, "flight_by_the_service_of_a_hang", |mpi| of_hang(mpi, &By::service()?)),
        over_nodes("flight_over_nodes", of_nodes),
        over_nodes("flight_over_nodes_of_what_goes_wrong_on_one", of_one_of_nodes),
        over_nodes("flight_over_nodes_of_which_one_is_lost", of_lost_node),
    ]
}

/// Who records.
pub(crate) enum By {
    /// mpiprobe, as root.
    Root,
    /// The node service, for a user without any right, in whose memory the calls are, and whose files.
    Service { service: NodeService, user: u32 },
}

impl By {
    fn service() -> Result<Self, Failed> {
        Ok(Self::Service { service: NodeService::start("")?, user: nobody_else() })
    }

    fn directory(&self) -> Result<TempDir, Failed> {
        match self {
            Self::Root => Ok(tempfile::tempdir()?),
            Self::Service { user, .. } => Ok(home_of(*user)?),
        }
    }

    /// The job, once it is at its first gate.
    fn start(&self, job: JobBuilder, gate: &str) -> Result<Job, Failed> {
        let job = job.own_name().deadline(DEADLINE);
        let mut job = if let Self::Service { user, .. } = self { job.user(*user) } else { job }.spawn()?;
        job.wait_for_gate(gate)?;
        Ok(job)
    }

    /// `mpiprobe trace --flight OPTIONS`, once it observes the job.
    pub(crate) fn record(&self, job: &Job, to: &Path, options: &[&str]) -> Result<Profiler, Failed> {
        let first = ["trace", "--json", "--pid-of", job.called(), "-o"].map(OsString::from);
        let words = first.into_iter().chain([to.into()]).chain(options.iter().map(OsString::from));
        let mut profiler = match self {
            Self::Root => Profiler::start(words)?,
            Self::Service { service, user } => Profiler::spawn(service.client(*user, words))?,
        };
        profiler.wait_for("mpiprobe: observing ")?;
        Ok(profiler)
    }

    fn user(&self) -> u32 {
        match self {
            Self::Root => 0,
            Self::Service { user, .. } => *user,
        }
    }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

fn mpiprobe(arguments: &[&str]) -> Result<Output, Failed> {
    Ok(Command::new(binary()?).args(arguments).output()?)
}

/// Names of the files in a directory.
fn files(directory: &Path) -> Result<BTreeSet<String>, Failed> {
    let entries = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    Ok(entries.iter().map(|entry| entry.file_name().display().to_string()).collect())
}

fn tail(mpi: Mpi, by: &By, file: &Path, job: &Job, until_ns: u64) -> Result<Comparison, Failed> {
    let state = fs::metadata(file)?;
    assert_eq!((state.uid(), state.mode() & 0o7777), (by.user(), 0o600));
    let compared = agreement_of(mpi, file, job, Order::TruthOutside, Extent::Tail { until_ns })?;
    assert_eq!(compared.clocks_differ_ns, 0, "{compared:?}");
    assert!(compared.before > 0, "nothing came before: {compared:?}");
    Ok(compared)
}

/// Somebody asks twice, by command and by signal; the job goes on, and its profile is exact.
fn on_request(mpi: Mpi, by: &By) -> Result<(), Failed> {
    let directory = by.directory()?;
    let path = directory.path().join("job.trace");
    let builder = Job::builder(mpi, program::SEMANTICS_THREADS).args(["4", "60"]).gates(&["start", "3"]).log();
    let mut job = by.start(builder, "start")?;
    let mut profiler = by.record(&job, &path, &["--functions", "all", "--flight", "1000calls"])?;
    job.open_gate("start")?;
    job.wait_for_gate("3")?;
    let until_ns = now_ns();
    assert_eq!(files(directory.path())?, BTreeSet::new(), "nothing is written before somebody asks");
    fs::write(directory.path().join("job.2.trace"), "precious")?;
    let pid = profiler.pid().to_string();
    let asked = mpiprobe(&["dump", "--pid", &pid])?;
    assert!(asked.status.success(), "{asked:?}");
    let dumped = PathBuf::from(String::from_utf8(asked.stdout)?.trim());
    assert_eq!(fs::canonicalize(&dumped)?, fs::canonicalize(&path)?);
    profiler.signal(Signal::USR1)?;
    profiler.wait_for("because SIGUSR1 has asked for it")?;
    job.open_gate("3")?;
    job.wait()?.success()?;
    let ended = profiler.wait()?;
    let profile = complete(&ended)?;
    assert!(ended.stderr.iter().any(|line| line.contains("the last of which were written 2 times")), "{ended:?}");
    let expected = ["job.trace", "job.2.trace", "job.3.trace"].map(str::to_owned).into();
    assert_eq!(files(directory.path())?, expected);
    assert_eq!(fs::read_to_string(directory.path().join("job.2.trace"))?, "precious");
    for file in ["job.trace", "job.3.trace"] {
        let file = directory.path().join(file);
        tail(mpi, by, &file, &job, until_ns)?;
        let trace = TraceFiles::open(&[&file])?;
        let mut kept: BTreeMap<Option<u32>, u64> = BTreeMap::new();
        for location in trace.definitions().location_ids() {
            let events = trace.events(location, Span::ALL).collect::<Result<Vec<_>, _>>()?;
            let process = trace.definitions().location(location).ok_or("no location")?.process;
            let process = trace.definitions().process(process).ok_or("no process")?;
            assert!(process.began_before, "{process:?}");
            *kept.entry(process.rank).or_default() += events.len() as u64;
        }
        // A chunk of each thread more, at most.
        assert!(kept.len() == 4 && kept.values().all(|kept| (1000..1000 + 6 * 125).contains(kept)), "{kept:?}");
    }
    for row in &profile.ranks {
        let truth = job.snapshot()?;
        let image = truth.ranks.get(&row.rank.ok_or("no rank")?).ok_or("no such rank")?;
        for function in ["MPI_Isend", "MPI_Recv", "MPI_Waitall", "MPI_Test", "MPI_Sendrecv"] {
            let counted = row.completed().get(function).copied().unwrap_or(0);
            assert_eq!(counted, image.calls(function).completed, "{function}");
        }
    }
    are_read(&path)
}

/// Whatever reads traces reads these.
fn are_read(file: &Path) -> Result<(), Failed> {
    let (picture, table) = (file.with_extension("svg"), file.with_extension("csv"));
    let (file, picture, table) =
        (file.display().to_string(), picture.display().to_string(), table.display().to_string());
    for command in [
        &["waits", &file][..],
        &["view", "--plain", &file],
        &["plot", "timeline", &file, "-o", &picture],
        &["export", &file, "--to", "csv", &table],
    ] {
        let read = mpiprobe(command)?;
        // The other ends of what was called before the first call are missed, which is no error.
        assert!(matches!(read.status.code(), Some(0 | 3)), "{command:?}: {read:?}");
    }
    assert!(fs::metadata(picture)?.len() > 0 && fs::metadata(table)?.len() > 0);
    Ok(())
}

/// A rank is killed: what all ranks have called in the time before is there.
fn of_killed_rank(mpi: Mpi, by: &By) -> Result<(), Failed> {
    let directory = by.directory()?;
    let path = directory.path().join("job.trace");
    let builder =
        Job::builder(mpi, program::RING).ranks(2).args(["--forever", "--pause-us", "2000"]).gates(&["start"]).log();
    let mut job = by.start(builder, "start")?;
    let mut profiler = by.record(&job, &path, &["--functions", "all", "--flight", "300ms"])?;
    job.open_gate("start")?;
    // Which takes a second at least.
    job.wait_for_calls("MPI_Allreduce", 500)?;
    assert_eq!(files(directory.path())?, BTreeSet::new());
    job.kill_rank(1, Signal::KILL)?;
    let how = if is_failure_kept() { " with signal 9 (SIGKILL)" } else { "" };
    let how = format!("has ended without MPI_Finalize{how}");
    profiler.wait_for(&how)?;
    job.wait()?;
    let ended = profiler.wait()?;
    let is_why = |line: &String| line.contains("job.trace: ") && line.contains(&how);
    assert!(ended.stderr.iter().any(is_why), "{}", ended.printed());
    assert_eq!(
        files(directory.path())?,
        BTreeSet::from(["job.trace".to_owned()]),
        "one file for all ranks that died of it"
    );
    tail(mpi, by, &path, &job, u64::MAX)?;
    are_read(&path)
}

/// A rank is not successful after it has finalised MPI.
fn of_failing_rank(mpi: Mpi) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("job.trace");
    let builder = Job::builder(mpi, program::EXITS).ranks(2).args(["fails"]).gates(&["start", "2"]).log();
    let mut job = By::Root.start(builder, "start")?;
    let profiler = By::Root.record(&job, &path, &["--functions", "all", "--flight", "1h"])?;
    job.open_gate("start")?;
    job.wait_for_gate("2")?;
    job.open_gate("2")?;
    job.wait()?;
    let ended = profiler.wait()?;
    let is_told = ended.stderr.iter().any(|line| line.contains("has ended with exit status 3"));
    assert!(is_told || !is_failure_kept(), "{}", ended.printed());
    assert_eq!(files(directory.path())?.len(), usize::from(is_told), "{}", ended.printed());
    if !is_told {
        return Ok(());
    }
    let trace = TraceFiles::open(&[&path])?;
    assert_eq!(trace.definitions().locations.len(), 2, "{}", ended.printed());
    let clocks =
        agreement_of(mpi, &path, &job, Order::TruthOutside, Extent::Tail { until_ns: u64::MAX })?.clocks_differ_ns;
    assert_eq!(clocks, 0);
    Ok(())
}

/// A job hangs: who is where in it is there. Nobody has asked; then it is killed, which is another reason.
fn of_hang(mpi: Mpi, by: &By) -> Result<(), Failed> {
    let directory = by.directory()?;
    let path = directory.path().join("job.trace");
    // MPI_Init may take longer than that on a busy machine.
    let builder = Job::builder(mpi, program::HANG).ranks(2).gates(&["1"]).truth(true);
    let mut job = by.start(builder, "1")?;
    let mut profiler = by.record(&job, &path, &["--flight", "1h", "--dump-on-hang", "3s"])?;
    job.open_gate("1")?;
    profiler.wait_for("because no call has returned for 3s, and 2 are open for longer")?;
    let trace = TraceFiles::open(&[&path])?;
    let mut open = BTreeMap::new();
    for location in trace.definitions().location_ids() {
        let process = trace.definitions().location(location).ok_or("no location")?.process;
        let rank = trace.definitions().process(process).ok_or("no process")?.rank.ok_or("no rank")?;
        for event in trace.events(location, Span::ALL) {
            if let Event::Call(call) = event?
                && !call.has_returned
            {
                open.insert(rank, call.function().function().name);
                // That is what somebody wants to know of a job that hangs.
                let site = call.call_site.and_then(|site| trace.definitions().call_site(site));
                let is_placed = site.is_some_and(|site| site.text.contains("hang.c:"));
                assert!(is_placed, "rank {rank} is in {site:?}");
            }
        }
    }
    assert_eq!(open, BTreeMap::from([(0, "MPI_Barrier"), (1, "MPI_Recv")]));
    job.kill_ranks()?;
    job.wait()?;
    let ended = profiler.wait()?;
    assert_eq!(files(directory.path())?, ["job.trace", "job.2.trace"].map(str::to_owned).into(), "{}", ended.printed());
    Ok(())
}

/// A ring that turns until it is killed.
fn ring(mpi: Mpi, ranks: u32) -> Result<Job, Failed> {
    let builder = Job::builder(mpi, program::RING).ranks(ranks).args(["--forever", "--pause-us", "2000"]);
    let mut job = builder.gates(&["start"]).log().own_name().deadline(DEADLINE).spawn()?;
    job.wait_for_gate("start")?;
    Ok(job)
}

/// `mpiprobe trace --flight 300ms`, once it observes so many processes.
fn record_nodes(job: &Job, nodes: &Nodes, to: &Path, processes: usize) -> Result<Profiler, Failed> {
    let launcher = nodes.launcher();
    let mut command = Command::new(binary()?);
    command.args(["trace", "--json", "--functions", "all", "--pid-of", job.called(), "--hosts", "n1,n2"]);
    command.args(["--flight", "300ms", "--launcher", &launcher, "-o"]).arg(to);
    let mut profiler = Profiler::spawn(command)?;
    profiler.wait_for_processes(processes)?;
    Ok(profiler)
}

/// Whoever asks gets a file of each node; both are one trace. So it is when a rank dies, which each node sees of its own.
fn of_nodes(mpi: Mpi) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut job = ring(mpi, 4)?;
    let nodes = Nodes::of(&mut job)?;
    let profiler = record_nodes(&job, &nodes, &directory.path().join("job.trace"), 4)?;
    job.open_gate("start")?;
    job.wait_for_calls("MPI_Allreduce", 500)?;
    assert_eq!(files(directory.path())?, BTreeSet::new(), "nothing is written before somebody asks");
    let asked = mpiprobe(&["dump", "--pid", &profiler.pid().to_string()])?;
    assert!(asked.status.success(), "{asked:?}");
    let shown = String::from_utf8(asked.stdout)?;
    let dumped = shown.lines().map(fs::canonicalize).collect::<Result<BTreeSet<_>, _>>()?;
    let named = |node: &str, number: u32| match number {
        1 => directory.path().join(format!("job.{node}.trace")),
        _ => directory.path().join(format!("job.{node}.{number}.trace")),
    };
    let files_of = ["n1", "n2"].map(|node| named(node, 1));
    let first = files_of.iter().map(fs::canonicalize).collect::<Result<BTreeSet<_>, _>>()?;
    assert_eq!((dumped, shown.lines().count()), (first, 2));
    let trace = TraceFiles::open(&files_of)?;
    let hosts: Vec<&str> = trace.definitions().nodes.iter().map(|node| node.host.as_str()).collect();
    assert_eq!((hosts, trace.definitions().processes.len()), (vec!["n1", "n2"], 4));
    for location in trace.definitions().location_ids() {
        assert!(trace.events(location, Span::ALL).next().is_some(), "of {location:?} nothing is there");
    }
    job.kill_rank(1, Signal::KILL)?;
    job.wait()?;
    let ended = profiler.wait()?;
    // One whose own ranks die much later has two, of which the last one has all that they came to.
    let last = |node| (2..4).rev().map(|number| named(node, number)).find(|path| path.exists());
    let last = ["n1", "n2"].into_iter().map(last).collect::<Option<Vec<_>>>().ok_or_else(|| ended.printed())?;
    let whole = Extent::Tail { until_ns: u64::MAX };
    let compared = agreement_of_files(mpi, &last, &job, Order::TruthOutside, whole)?;
    assert!(compared.before > 0 && compared.clocks_differ_ns == 0, "{compared:?}");
    Ok(())
}

/// A rank dies on one node, of which nothing is seen on the other: the calls of that one are written, too, once.
fn of_one_of_nodes(mpi: Mpi) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let (mut first, mut second) = (ring(mpi, 2)?, ring(mpi, 2)?);
    let nodes = Nodes::with([first.ranks()?, second.ranks()?].map(|pids| pids.into_values().collect()))?;
    let mut profiler = record_nodes(&first, &nodes, &directory.path().join("job.trace"), 4)?;
    for job in [&mut first, &mut second] {
        job.open_gate("start")?;
        job.wait_for_calls("MPI_Allreduce", 500)?;
    }
    second.kill_rank(0, Signal::KILL)?;
    second.wait()?;
    let (mut is_written, mut has_ended) = (false, false);
    while !(is_written && has_ended) {
        let line = profiler.wait_for("mpiprobe: ")?;
        is_written |= line.contains("job.n1.trace: ");
        has_ended |= line.starts_with("mpiprobe: n2: ") && line.contains(" events");
    }
    let trace = TraceFiles::open(&[directory.path().join("job.n1.trace")])?;
    assert_eq!(trace.definitions().processes.len(), 2);
    first.kill_ranks()?;
    first.wait()?;
    let ended = profiler.wait()?;
    let is_why = |line: &String| line.contains("job.n1.trace: ") && line.contains("because on n2: rank ");
    assert!(ended.stderr.iter().any(is_why), "{}", ended.printed());
    let expected = BTreeSet::from(["job.n1.trace", "job.n2.trace", "job.n1.2.trace"].map(str::to_owned));
    let written = files(directory.path())?;
    // Where the launcher takes long to end the ranks of a job, those that die much later are written down once more.
    let is_later = |name: &String| (2..5).any(|number| name.ends_with(&format!(".{number}.trace")));
    let is_each_expected = expected.is_subset(&written) && written.difference(&expected).all(is_later);
    assert!(is_each_expected, "{written:?}: {}", ended.printed());
    Ok(())
}

/// An agent is killed, as when its node is: what had come from there is written, and what the others have called by then.
fn of_lost_node(mpi: Mpi) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut job = ring(mpi, 4)?;
    let nodes = Nodes::of(&mut job)?;
    let mut profiler = record_nodes(&job, &nodes, &directory.path().join("job.trace"), 4)?;
    job.open_gate("start")?;
    job.wait_for_calls("MPI_Allreduce", 500)?;
    kill_process(nodes.agent("n2")?, Signal::KILL)?;
    profiler.wait_for("job.n1.trace: ")?;
    job.kill_ranks()?;
    job.wait()?;
    let ended = profiler.wait()?;
    let is_why = |line: &String| line.contains(".trace: ") && line.contains("because node n2 has been lost");
    assert_eq!(ended.stderr.iter().filter(|line| is_why(line)).count(), 2, "{}", ended.printed());
    let files = ["n1", "n2"].map(|node| directory.path().join(format!("job.{node}.trace")));
    let trace = TraceFiles::open(&files)?;
    assert_eq!(trace.definitions().processes.len(), 4);
    for location in trace.definitions().location_ids() {
        assert!(trace.events(location, Span::ALL).next().is_some(), "of {location:?} nothing is there");
    }
    Ok(())
}
