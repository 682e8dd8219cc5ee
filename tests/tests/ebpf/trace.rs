//! The course of events as the kernel writes it down, event for event, against the truth library's log of the same job, whose profile has to be
//! as exact as without.
//!
//! Invariant TRACE-IS-TRUTH.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::check::complete;
use mpiprobe_tests::profiler::binary;
use mpiprobe_tests::second_user::{home_of, nobody_else};
use mpiprobe_tests::service::NodeService;
use mpiprobe_tests::traced::{
    Comparison, Extent, Order, agreement, agreement_of, agreement_of_files, has_call_that_its_process_ended_in,
    misses_calls_that_were_left, recorded,
};
use mpiprobe_tests::waits::wait_states;
use mpiprobe_tests::{Job, Language, Mpi, Profile, Profiler, Program, Requirement, program, requirement};
use mpiprobe_trace::store::TraceFiles;
use mpiprobe_trace::{Event, Span, Trace};
use serde_json::Value;

use crate::{
    nodes::{self, Nodes},
    trial_with,
    waits::expect_what_is_sure,
};

/// An application asks MPI what some ten thousand calls mean, on a machine that may be busy.
const DEADLINE: Duration = Duration::from_mins(5);

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let case = |name: &str, arguments: &'static [&'static str]| {
        trial_with(mpi, Language::C, &format!("trace_of_{name}"), move || agrees(mpi, program::SEMANTICS, arguments))
    };
    let named = |name: &str| format!("{}::{name}", mpi.id());
    let needs = [&nodes::needs(mpi)[..], &[Requirement::Command("setpriv")]].concat();
    vec![
        case("messages", &program::MEANING_OF_MESSAGES),
        case("scopes", &program::MEANING_OF_SCOPES),
        trial_with(mpi, Language::C, "trace_of_threads_of_a_job_that_runs", move || of_threads(mpi)),
        trial_with(mpi, Language::C, "trace_of_a_call_that_its_process_ended_in", move || {
            has_call_that_its_process_ended_in(mpi, "ebpf")
        }),
        trial_with(mpi, Language::C, "trace_misses_calls_that_were_left", move || {
            misses_calls_that_were_left(mpi, "ebpf")
        }),
        trial_with(mpi, Language::C, "trace_in_windows", move || in_windows(mpi)),
        requirement::trial(named("trace_by_the_service"), &needs, move || by_service(mpi)),
        requirement::trial(named("trace_of_several_nodes"), &needs, move || of_nodes(mpi)),
        requirement::trial(named("trace_on_a_full_disk"), &needs, move || on_full_disk(mpi)),
    ]
}

/// Every call is there, in order, with its arguments, in a job that is recorded by `run`.
fn agrees(mpi: Mpi, program: Program, arguments: &[&str]) -> Result<(), Failed> {
    let (job, compared) = recorded(mpi, "ebpf", program, arguments, Order::TruthOutside)?;
    let profile = job.profile()?;
    assert!(profile.complete && profile.lost().is_empty(), "{:?}", profile.incomplete_because);
    expect_sums(&compared, &profile);
    Ok(())
}

/// The same of `mpiprobe trace`, which comes before MPI is initialised.
fn of_threads(mpi: Mpi) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("job.trace");
    let job = with_threads(mpi, None)?;
    let profiler = Profiler::start(recording(&job, &path))?;
    followed(mpi, job, profiler, &path).map(drop)
}

/// And of a user without any right, by the node service: the file is the user's, and live wait states are there, too.
fn by_service(mpi: Mpi) -> Result<(), Failed> {
    let user = nobody_else();
    let (service, home) = (NodeService::start("")?, home_of(user)?);
    let path = home.path().join("job.trace");
    let job = with_threads(mpi, Some(user))?;
    let words = recording(&job, &path).into_iter().chain(["--waits".into()]);
    let profiler = Profiler::spawn(service.client(user, words))?;
    let last = followed(mpi, job, profiler, &path)?;
    assert!(last.get("wait_states").is_some_and(Value::is_object), "{last}");
    let state = path.metadata()?;
    assert_eq!((state.uid(), state.mode() & 0o777), (user, 0o600));
    Ok(())
}

fn with_threads(mpi: Mpi, user: Option<u32>) -> Result<Job, Failed> {
    let builder = Job::builder(mpi, program::SEMANTICS_THREADS).args(["4", "50"]).gates(&["start"]).log();
    let builder = builder.own_name().deadline(DEADLINE);
    let mut job = if let Some(user) = user { builder.user(user) } else { builder }.spawn()?;
    job.wait_for_gate("start")?;
    Ok(job)
}

fn recording(job: &Job, path: &Path) -> Vec<OsString> {
    let options = ["trace", "--functions", "all", "--json", "--pid-of", job.called(), "-o"].map(OsString::from);
    options.into_iter().chain([path.into()]).collect()
}

/// To the job's end: the trace is the truth, and the profile its sum. Gives that as JSON.
fn followed(mpi: Mpi, mut job: Job, mut profiler: Profiler, path: &Path) -> Result<Value, Failed> {
    profiler.wait_for("mpiprobe: observing ")?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    let ended = profiler.wait()?;
    expect_sums(&agreement(mpi, path, &job, Order::TruthOutside)?, &complete(&ended)?);
    Ok(serde_json::from_str(ended.stdout.last().ok_or_else(|| ended.printed())?)?)
}

/// Each node's calls are in a file of its own, and both are one trace. What is there is not overwritten.
fn of_nodes(mpi: Mpi) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let file = |name: &str| directory.path().join(name);
    let builder = Job::builder(mpi, program::RING).ranks(4).args(["50"]).gates(&["start"]).log().own_name();
    let mut job = builder.deadline(DEADLINE).spawn()?;
    job.wait_for_gate("start")?;
    let nodes = Nodes::of(&mut job)?;
    let record = |name: &str| -> Result<Profiler, Failed> {
        let mut command = Command::new(binary()?);
        command.args(recording(&job, &file(name))).args(["--hosts", "n1,n2,dead", "--launcher", &nodes.launcher()]);
        // Which is found out of all nodes' calls together, besides.
        command.arg("--waits");
        Ok(Profiler::spawn(command)?)
    };
    fs::write(file("there.n2.trace"), "something")?;
    let refused = record("there.trace")?.wait()?;
    assert!(refused.printed().contains("there.n2.trace exists already"), "{}", refused.printed());
    let mut profiler = record("job.trace")?;
    profiler.wait_for_processes(4)?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    let ended = profiler.wait()?;
    let profile = ended.profile()?;
    assert_eq!((profile.ranks.len(), profile.incomplete_because.len()), (4, 1), "{}", ended.printed());
    expect_what_is_sure(&wait_states(&ended.stdout.join("\n"))?, 4, 50)?;
    let files = ["job.n1.trace", "job.n2.trace"].map(file);
    let compared = agreement_of_files(mpi, &files, &job, Order::TruthOutside, Extent::Whole)?;
    expect_sums(&compared, &profile);
    assert_eq!(fs::read_dir(directory.path())?.count(), 3, "of a node without ranks there is no file");
    let trace = TraceFiles::open(&files)?;
    let hosts: Vec<&str> = trace.definitions().nodes.iter().map(|node| node.host.as_str()).collect();
    assert_eq!(hosts, ["n1", "n2"]);
    Ok(())
}

/// What has no room in the file is missing there, which is said and told by the status; what is counted is exact all the same.
fn on_full_disk(mpi: Mpi) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let builder = Job::builder(mpi, program::RING).ranks(2).args(["20000"]).gates(&["start"]).truth(true);
    let mut job = builder.own_name().deadline(DEADLINE).spawn()?;
    job.wait_for_gate("start")?;
    let script = r#"mount -t tmpfs -o size=64k none "$1" && shift && exec "$@""#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(directory.path()).arg(binary()?);
    command.args(recording(&job, &directory.path().join("job.trace")));
    let mut profiler = Profiler::spawn(command)?;
    profiler.wait_for("mpiprobe: observing ")?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    let ended = profiler.wait()?;
    let profile = ended.profile()?;
    let is_why = |why: &String| why.starts_with("the trace is not whole: ");
    assert!(ended.status.code() == Some(3) && profile.incomplete_because.iter().all(is_why), "{}", ended.printed());
    assert!(!profile.complete && profile.incomplete_because.len() == 1, "{}", ended.printed());
    let truth = job.snapshot()?;
    for row in &profile.ranks {
        let image = truth.ranks.get(&row.rank.ok_or("no rank")?).ok_or("no such rank")?;
        for function in ["MPI_Send", "MPI_Recv", "MPI_Allreduce"] {
            let counted = row.completed().get(function).copied().unwrap_or(0);
            assert_eq!(counted, image.calls(function).completed, "{function}");
        }
    }
    assert_eq!(profile.ranks.len(), 2);
    Ok(())
}

/// For some time in each period: what is recorded is as it was, and all else is counted.
fn in_windows(mpi: Mpi) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("job.trace");
    let builder = Job::builder(mpi, program::RING).ranks(2).args(["500", "--pause-us", "1000"]).gates(&["start"]).log();
    let mut job = builder.own_name().deadline(DEADLINE).spawn()?;
    job.wait_for_gate("start")?;
    let options = ["trace", "--functions", "all", "--window", "30ms@every:100ms", "--json", "--pid-of", job.called()];
    let options = options.map(OsString::from).into_iter().chain(["-o".into(), path.clone().into()]);
    let mut profiler = Profiler::start(options)?;
    profiler.wait_for("mpiprobe: observing ")?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    let profile = complete(&profiler.wait()?)?;
    let compared = agreement_of(mpi, &path, &job, Order::TruthOutside, Extent::Windows)?;
    assert!(compared.before > 100 && compared.clocks_differ_ns == 0, "{compared:?}");
    let trace = TraceFiles::open(&[&path])?;
    for location in trace.definitions().location_ids() {
        let known = trace.definitions().location(location).ok_or("no location")?;
        let process = trace.definitions().process(known.process).ok_or("no process")?;
        let events = trace.events(location, Span::ALL).collect::<Result<Vec<_>, _>>()?;
        let numbers: Vec<u64> = events
            .iter()
            .filter_map(|event| match event {
                Event::Call(call) => Some(call.number),
                Event::Phase(_) => None,
            })
            .collect();
        let pairs = numbers.iter().zip(numbers.iter().skip(1));
        let windows = 1 + pairs.filter(|(before, after)| **after != **before + 1).count();
        assert!(windows >= 3, "{windows} windows in {process:?}");
        let row = profile.rank(process.rank.ok_or("no rank")?).ok_or("no such rank")?;
        let all: u64 = row.completed().values().sum();
        let out = known.losses.left_out;
        assert_eq!(numbers.len() as u64 + out.by_time + out.by_pressure, all, "{known:?}");
    }
    Ok(())
}

/// What the truth library has called itself was counted and recorded too: so there are as many calls of each function as the profile says. Both
/// read the same clock.
pub(crate) fn expect_sums(compared: &Comparison, profile: &Profile) {
    assert_eq!(compared.clocks_differ_ns, 0, "{compared:?}");
    for row in &profile.ranks {
        let of_rank = compared.by_function.iter().filter(|((rank, _), _)| Some(*rank) == row.rank);
        let recorded: BTreeMap<&str, u64> = of_rank.map(|((_, name), calls)| (*name, *calls)).collect();
        assert_eq!(recorded, row.completed(), "rank {:?}", row.rank);
    }
}
