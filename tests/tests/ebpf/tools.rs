//! Tools on MPI's profiling interface: each is a layer of its own, and what is counted at the library is as without them.

use std::collections::BTreeMap;
use std::path::Path;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::profiler::{Rank, ToolLayer};
use mpiprobe_tests::tool::{OUTPUT_VARIABLE, counted, next_tool, tool};
use mpiprobe_tests::{Job, JobBuilder, Language, Mpi, Profile, Profiler, Program, program};

use crate::call_sites::deadlock;
use crate::check::complete;
use crate::trial_with;

const RANKS: u32 = 2;
const ITERATIONS: u64 = 20;

/// For `--functions`.
const ALL: &str = "all";

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let c = |name: &str, test: Box<dyn FnOnce() -> Result<(), Failed> + Send>| trial_with(mpi, Language::C, name, test);
    let by_way =
        |way: &'static str| c(&format!("tools_preloaded_attached_by_{way}"), Box::new(move || preloaded(mpi, way)));
    let mut tests: Vec<Trial> = ["session", "multi", "perf-event"].into_iter().map(by_way).collect();
    tests.extend([
        c("tools_stacked", Box::new(move || stacked(mpi))),
        c("tools_linked_in", Box::new(move || linked_in(mpi))),
        c("tools_are_not_the_call_sites", Box::new(move || call_sites(mpi))),
        c("tools_are_not_the_call_sites_of_open_calls", Box::new(move || open_calls(mpi))),
    ]);
    tests
}

/// Calls by function.
type Calls<'a> = BTreeMap<&'a str, u64>;

fn ring(mpi: Mpi, program: Program, output: &Path) -> JobBuilder {
    let job = Job::builder(mpi, program).ranks(RANKS).args([ITERATIONS.to_string()]).gates(&["start"]).own_name();
    job.env(OUTPUT_VARIABLE, output)
}

/// What the program calls, as its source says.
fn of_program() -> Calls<'static> {
    let once = ["MPI_Init", "MPI_Comm_rank", "MPI_Comm_size", "MPI_Bcast", "MPI_Finalize"];
    let always = ["MPI_Send", "MPI_Recv", "MPI_Isend", "MPI_Irecv", "MPI_Waitall", "MPI_Sendrecv", "MPI_Allreduce"];
    let calls = once.map(|name| (name, 1)).into_iter().chain(always.map(|name| (name, ITERATIONS)));
    calls.chain([("MPI_Barrier", ITERATIONS / 10)]).collect()
}

/// What the tool concerns: perf events are detached one by one, which takes minutes of all functions.
const FEW: &str = "MPI_Allreduce,MPI_Barrier,MPI_Comm_rank,MPI_Finalize,MPI_Recv";

/// Observed from before the first call.
fn observe(job: JobBuilder, options: &[&str]) -> Result<Profile, Failed> {
    let mut job = job.spawn()?;
    job.wait_for_gate("start")?;
    let ours = ["--engine", "ebpf", "--pid-of", job.called()];
    let profiler = Profiler::observe([&ours, options].concat())?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    complete(&profiler.wait()?)
}

/// A tool's row of one function.
fn layer<'a>(rank: &'a Rank, function: &str, tool: &str) -> Result<&'a ToolLayer, Failed> {
    let row = rank.layers.iter().find(|row| row.function == function).ok_or_else(|| format!("no {function}"))?;
    let layer = row.tools.iter().find(|layer| layer.tool == tool);
    // Nothing of it is counted twice or left out.
    let costs: u64 = row.tools.iter().map(|layer| layer.cost_ns).sum();
    assert_eq!(costs + row.library.time_ns, row.time_ns, "{row:?}");
    Ok(layer.ok_or_else(|| format!("no {tool} before {function}: {row:?}"))?)
}

/// Calls that entered the tool, were passed on, and were made by it, by function.
fn seen(layer: &ToolLayer) -> (u64, u64, Calls<'_>) {
    assert_eq!((layer.by_mpi, layer.left), (0, 0), "{layer:?}");
    (layer.calls, layer.passed_on, layer.own.iter().map(|own| (own.function.as_str(), own.calls)).collect())
}

/// What the one tool does, called so, and what arrives at the library.
fn check_tool(profile: &Profile, name: &str, functions: &str, output: &Path) -> Result<(), Failed> {
    for number in 0..RANKS {
        let rank = profile.rank(number).ok_or("no such rank")?;
        let barriers = [("MPI_Barrier", ITERATIONS)].into();
        assert_eq!(seen(layer(rank, "MPI_Allreduce", name)?), (ITERATIONS, ITERATIONS, barriers), "rank {number}");
        assert_eq!(seen(layer(rank, "MPI_Recv", name)?), (ITERATIONS, ITERATIONS, Calls::new()), "rank {number}");
        assert_eq!(seen(layer(rank, "MPI_Finalize", name)?), (1, 1, [("MPI_Comm_rank", 1)].into()), "rank {number}");
        assert_eq!(rank.layers.len(), 3, "{:?}", rank.layers);
        for row in &rank.layers {
            let of_library = rank.functions.iter().find(|of_library| of_library.name == row.function);
            let of_library = of_library.map(|of_library| (of_library.calls, of_library.time_ns));
            let (calls, time_ns) = of_library.ok_or("not seen by the library")?;
            // They are all the calls of these functions that the library has seen. What probes cost is taken off there, not here.
            assert_eq!(calls, row.library.calls, "rank {number}: {row:?}");
            assert!(time_ns <= row.library.time_ns, "rank {number}: {time_ns} ns, {row:?}");
            assert_eq!(row.calls, row.library.calls);
        }
        let mut expected = of_program();
        for (function, more) in [("MPI_Barrier", ITERATIONS), ("MPI_Comm_rank", 1)] {
            *expected.entry(function).or_default() += more;
        }
        expected.retain(|name, _| functions == ALL || functions.split(',').any(|function| function == *name));
        assert_eq!(rank.completed(), expected, "rank {number}");
        assert_eq!(counted(output, number), Some((ITERATIONS, ITERATIONS)));
    }
    Ok(())
}

fn preloaded(mpi: Mpi, way: &str) -> Result<(), Failed> {
    let output = tempfile::tempdir()?;
    let functions = if way == "perf-event" { FEW } else { ALL };
    let job = ring(mpi, program::RING, output.path()).own_library().preload(tool(mpi)?);
    let profile = observe(job, &["--attach", way, "--functions", functions])?;
    assert_eq!(profile.engine.tools.iter().map(|tool| tool.functions).collect::<Vec<_>>(), [3]);
    check_tool(&profile, "libtool.so", functions, output.path())
}

/// The program defines the functions itself.
fn linked_in(mpi: Mpi) -> Result<(), Failed> {
    let output = tempfile::tempdir()?;
    let profile = observe(ring(mpi, program::RING_WITH_TOOL, output.path()), &["--functions", ALL])?;
    let [tool] = &profile.engine.tools[..] else { return Err(format!("{:?}", profile.engine).into()) };
    check_tool(&profile, &tool.name, ALL, output.path())
}

/// One before the other; what the first one calls by MPI's names comes to the second one too.
/// Invariant LAYERS-APART.
fn stacked(mpi: Mpi) -> Result<(), Failed> {
    let output = tempfile::tempdir()?;
    let tools = format!("{}:{}", next_tool(mpi)?.display(), tool(mpi)?.display());
    let profile = observe(ring(mpi, program::RING, output.path()).preload(tools), &["--functions", ALL])?;
    let (next, last) = ("libnext.so", "libtool.so");
    for number in 0..RANKS {
        let rank = profile.rank(number).ok_or("no such rank")?;
        let through = |function, tool, own: &[(&'static str, u64)]| {
            let layer = layer(rank, function, tool)?;
            let calls = if function == "MPI_Finalize" { 1 } else { ITERATIONS };
            let own: Calls<'_> = own.iter().copied().collect();
            assert_eq!(seen(layer), (calls, calls, own), "rank {number}, {function} in {tool}");
            Ok::<u64, Failed>(layer.by_tools)
        };
        assert_eq!(through("MPI_Allreduce", next, &[("MPI_Comm_size", ITERATIONS)])?, 1);
        assert_eq!(through("MPI_Allreduce", last, &[("MPI_Barrier", ITERATIONS)])?, 1);
        assert_eq!(through("MPI_Sendrecv", next, &[])?, 0);
        assert_eq!(through("MPI_Recv", last, &[])?, 0);
        // Whatever else it brings about.
        let own = [("MPI_Allreduce", 1), ("MPI_Barrier", 1), ("MPI_Comm_size", 1)];
        assert_eq!(through("MPI_Finalize", next, &own)?, 0);
        assert_eq!(through("MPI_Finalize", last, &[("MPI_Comm_rank", 1)])?, 0);

        let row = rank.layers.iter().find(|row| row.function == "MPI_Allreduce").ok_or("no MPI_Allreduce")?;
        assert_eq!(row.tools.iter().map(|layer| layer.tool.as_str()).collect::<Vec<_>>(), [next, last]);
        assert_eq!((row.calls, row.library.calls), (ITERATIONS, ITERATIONS));
        let mut expected = of_program();
        let more = [
            ("MPI_Allreduce", 1),
            ("MPI_Barrier", ITERATIONS + 1),
            ("MPI_Comm_size", ITERATIONS + 1),
            ("MPI_Comm_rank", 1),
        ];
        for (function, more) in more {
            *expected.entry(function).or_default() += more;
        }
        assert_eq!(rank.completed(), expected, "rank {number}");
    }
    Ok(())
}

/// Also of calls that a tool makes itself: they are made because of the program's.
fn call_sites(mpi: Mpi) -> Result<(), Failed> {
    let output = tempfile::tempdir()?;
    let tools = format!("{}:{}", next_tool(mpi)?.display(), tool(mpi)?.display());
    let profile = observe(ring(mpi, program::RING, output.path()).preload(tools), &["--traffic", "--functions", ALL])?;
    let source = program::RING.source()?;
    let line_of = |function: &str| {
        let call = format!(" {function}(");
        let called = |line: &str| line.contains(&call) && !line.starts_with(" *");
        (1..).zip(source.lines()).filter(|(_, line)| called(line)).map(|(number, _)| number).collect::<Vec<usize>>()
    };
    let flows = profile.ranks.iter().filter_map(|rank| rank.traffic.as_ref()).flat_map(|traffic| &traffic.flows);
    let mut checked = 0;
    for flow in flows {
        let site = flow.site.as_deref().ok_or_else(|| format!("{flow:?}"))?;
        let line = site.strip_prefix("ring.c:").and_then(|site| site.strip_suffix(" in main"));
        let line: usize = line.ok_or_else(|| format!("{flow:?}"))?.parse()?;
        let mut expected = line_of(&flow.function);
        // Made in there.
        if ["MPI_Barrier", "MPI_Comm_size", "MPI_Comm_rank", "MPI_Allreduce"].contains(&flow.function.as_str()) {
            expected.extend([line_of("MPI_Allreduce"), line_of("MPI_Finalize")].concat());
        }
        assert!(expected.contains(&line), "{flow:?}: {expected:?}");
        checked += 1;
    }
    assert!(checked > 0, "no flows");
    Ok(())
}

fn open_calls(mpi: Mpi) -> Result<(), Failed> {
    let job = Job::builder(mpi, program::HANG).ranks(RANKS).gates(&["start"]).own_name().preload(tool(mpi)?);
    let mut job = job.spawn()?;
    job.wait_for_gate("start")?;
    let mut profiler = Profiler::start(["--json", "--interval", "100ms", "--pid-of", job.called()])?;
    profiler.wait_for("mpiprobe: observing ")?;
    job.open_gate("start")?;
    deadlock(&mut profiler)?;
    job.kill_ranks()?;
    job.wait()?;
    profiler.wait()?;
    Ok(())
}
