//! Calls through Fortran and C++ layers are charged to the program's source lines.

use std::collections::{BTreeMap, BTreeSet};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::profiler::OpenCall;
use mpiprobe_tests::{Job, Language, Mpi, Profile, Profiler, Program, program};

use crate::check::complete;
use crate::trial_with;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let rings = [program::RING_USE_MPI, program::RING_USE_MPI_F08, program::RING_CXX].map(|program| {
        trial_with(mpi, program.language, &format!("call_sites_of_{}", program.name), move || flows(mpi, program))
    });
    let hangs = [program::HANG_MPIF, program::HANG_F08].map(|program| {
        let name = format!("call_sites_of_open_calls_of_{}", program.name);
        trial_with(mpi, Language::Fortran, &name, move || open_calls(mpi, program))
    });
    rings.into_iter().chain(hangs).collect()
}

/// Lines by function.
type Places = BTreeMap<String, BTreeSet<usize>>;

/// Without the truth library: with it, MPI's functions are called from there.
fn flows(mpi: Mpi, program: Program) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program).ranks(2).args(["10"]).gates(&["start"]).own_name().spawn()?;
    job.wait_for_gate("start")?;
    let profiler = Profiler::observe(["--traffic", "--pid-of", job.called()])?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    let profile = complete(&profiler.wait()?)?;
    let mut seen = Places::new();
    let flows = profile.ranks.iter().filter_map(|row| row.traffic.as_ref()).flat_map(|traffic| &traffic.flows);
    for flow in flows {
        let line = line(program, flow.site.as_deref()).ok_or_else(|| format!("{flow:?}"))?;
        seen.entry(flow.function.clone()).or_default().insert(line);
    }
    // What takes nothing but the error code gets the number of the program's first line from gfortran.
    seen.retain(|function, _| !["MPI_Init", "MPI_Finalize"].contains(&function.as_str()));
    let source = program.source()?;
    let expected: Places = seen.keys().map(|function| (function.clone(), calls(&source, function))).collect();
    assert_eq!(seen, expected);
    for function in ["MPI_Send", "MPI_Recv", "MPI_Sendrecv", "MPI_Waitall", "MPI_Allreduce", "MPI_Bcast"] {
        assert!(seen.contains_key(function), "{function}");
    }
    Ok(())
}

/// The line in `FILE:LINE in FUNCTION`, if that is the program's main file.
fn line(program: Program, site: Option<&str>) -> Option<usize> {
    let file = program.files().next()?.file_name()?.to_str()?.to_owned();
    site?.strip_prefix(&file)?.strip_prefix(':')?.split_once(" in ")?.0.parse().ok()
}

/// Where a source calls a function of MPI, in Fortran or by the C++ bindings.
fn calls(source: &str, function: &str) -> BTreeSet<usize> {
    let name = function.trim_start_matches("MPI_");
    let forms = [format!("call MPI_{name}("), format!(".{name}("), format!("::{name}(")];
    let is_call = |line: &str| forms.iter().any(|form| line.contains(form.as_str()));
    // gfortran gives a statement the number of its last line.
    let last = |(number, line): (usize, &str)| if line.ends_with('&') { number + 1 } else { number };
    (1..).zip(source.lines()).filter(|(_, line)| is_call(line)).map(last).collect()
}

/// As long as they are open, and when they have been cut short.
fn open_calls(mpi: Mpi, program: Program) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program).ranks(2).gates(&["start"]).own_name().spawn()?;
    job.wait_for_gate("start")?;
    let mut profiler = Profiler::start(["--json", "--interval", "100ms", "--pid-of", job.called()])?;
    profiler.wait_for("mpiprobe: observing ")?;
    job.open_gate("start")?;
    let source = program.source()?;
    let is_placed = |open: &OpenCall| {
        let line = line(program, open.site.as_deref());
        line.is_some() && line == calls(&source, &open.function).first().copied()
    };
    let mut nth = 0;
    loop {
        let profile: Profile = serde_json::from_str(&profiler.wait_for_output(nth)?)?;
        let open_in = |rank| profile.rank(rank).and_then(|row| row.open_calls.first());
        if let (Some(barrier), Some(receive)) = (open_in(0), open_in(1))
            && barrier.function == "MPI_Barrier"
            && receive.function == "MPI_Recv"
        {
            assert!(is_placed(barrier) && is_placed(receive), "{barrier:?} {receive:?}");
            break;
        }
        nth += 1;
    }
    job.kill_ranks()?;
    job.wait()?;
    let ended = profiler.wait()?.profile()?;
    let cut_short: Vec<&OpenCall> = ended.ranks.iter().flat_map(|row| &row.open_calls).collect();
    for open in &cut_short {
        assert!(open.ended_inside && is_placed(open), "{open:?}");
    }
    assert_eq!(cut_short.len(), 2);
    Ok(())
}
