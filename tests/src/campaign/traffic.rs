//! `--traffic` of a job under one MPI: who sent how much to whom, over which communicator, compared with what the truth library was told
//! by MPI. The tests have one job for each MPI, and all languages of Debian's; `cargo xtask soak wheels` the others of PyPI's.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::Failed;

use crate::check::complete;
use crate::traffic::{Sums, differences, hide, seen, told};
use crate::truth::Image;
use crate::{Ended, Job, Mpi, Profiler, Program, Rank, Requirement, program};

/// An application asks MPI what some ten thousand calls mean, on a machine that may be busy.
const DEADLINE: Duration = Duration::from_mins(5);

/// A program, and what it is started with.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    pub program: Program,
    arguments: &'static [&'static str],
    /// The gate behind the first calls that tell something of objects.
    known: &'static str,
    /// The gate at which nearly all objects have been made.
    made: &'static str,
    /// What must be among the functions called: else it has not done what it is there for.
    calls: &'static [&'static str],
}

/// All that arguments and statuses tell.
pub const C: Case = Case {
    name: "c",
    program: program::SEMANTICS,
    arguments: &program::MEANING_OF_MESSAGES,
    known: "1",
    made: "2",
    calls: &[],
};
/// What is made by calls that have to be seen.
pub const SCOPES: Case = Case { name: "scopes", arguments: &program::MEANING_OF_SCOPES, ..C };
/// Threads that exchange messages at once.
pub const THREADS: Case = Case { name: "threads", program: program::SEMANTICS_THREADS, arguments: &["4", "50"], ..C };
/// Without `MPI_COMM_WORLD`.
pub const SESSION: Case =
    Case { name: "a_session", program: program::SEMANTICS_SESSION, arguments: &[], known: "2", ..C };
pub const F08: Case = Case { name: "use_mpi_f08", program: program::SEMANTICS_F08, arguments: &[], ..C };
pub const CXX: Case = Case { name: "cxx", program: program::SEMANTICS_CXX, arguments: &[], ..C };
pub const MPI4PY: Case = Case { name: "mpi4py", program: program::SEMANTICS_MPI4PY, arguments: &[], ..C };
/// An application that knows nothing of us: it stops where the truth library stops it, after functions that it calls.
pub const HPCC: Case = Case {
    name: "hpcc",
    program: program::HPCC,
    arguments: &[],
    known: "MPI_Init",
    made: "MPI_Alltoall",
    calls: &[
        "MPI_Allreduce",
        "MPI_Alltoall",
        "MPI_Bcast",
        "MPI_Irecv",
        "MPI_Isend",
        "MPI_Issend",
        "MPI_Recv",
        "MPI_Reduce",
        "MPI_Send",
        "MPI_Sendrecv",
        "MPI_Ssend",
    ],
};

/// Whether a profiler comes before MPI_Init, or when all types and communicators are there, or one each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attached {
    AtStart,
    Late,
    Both,
}

/// Runs it, and compares.
pub fn agrees(mpi: Mpi, case: Case, when: Attached) -> Result<(), Failed> {
    let (from_start, late) = (when != Attached::Late, when != Attached::AtStart);
    let mut gates = Vec::new();
    if from_start {
        // Held once more, until MPI has been initialised.
        gates.extend(["start", case.known]);
    }
    if late {
        gates.push(case.made);
    }
    let arguments = case.arguments.iter().copied();
    let mut job = Job::builder(mpi, case.program)
        .args(arguments)
        .gates(&gates)
        .semantics()
        .own_name()
        .deadline(DEADLINE)
        .spawn()?;
    let arguments = ["-v", "--traffic", "--pid-of", job.called()].map(ToOwned::to_owned);
    let mut observers = Vec::new();
    if from_start {
        job.wait_for_gate("start")?;
        let mut profiler = Profiler::observe(&arguments)?;
        job.open_gate("start")?;
        job.wait_for_gate(case.known)?;
        profiler.wait_for_meaning(job.ranks()?.len())?;
        job.open_gate(case.known)?;
        observers.push((profiler, BTreeMap::new(), Attached::AtStart));
    }
    if late {
        job.wait_for_gate(case.made)?;
        let before = job.snapshot()?.ranks;
        observers.push((Profiler::observe(&arguments)?, before, Attached::Late));
        job.open_gate(case.made)?;
    }
    job.wait()?.success()?;
    let ranks = job.snapshot()?.ranks;
    for (profiler, before, when) in observers {
        judge(case, when, &profiler.wait()?, &ranks, &before)?;
    }
    Ok(())
}

/// Compares what was observed to the end, from a moment on at which the truth was `before`.
fn judge(
    case: Case,
    when: Attached,
    ended: &Ended,
    ranks: &BTreeMap<u32, Image>,
    before: &BTreeMap<u32, Image>,
) -> Result<(), Failed> {
    let profile = complete(ended)?;
    let functions: BTreeSet<String> =
        ranks.values().flat_map(|image| image.traffic.functions().into_keys().map(str::to_owned)).collect();
    let absent: Vec<_> = case.calls.iter().filter(|name| !functions.contains(**name)).collect();
    assert!(absent.is_empty(), "nobody calls {absent:?}, but {functions:?}");
    let size = u32::try_from(ranks.len())?;
    for (rank, image) in ranks {
        let row = profile.rank(*rank).ok_or("no such rank")?;
        let (mut seen, mut told) = (seen(row, &functions), told(image, before.get(rank)));
        assert!(!told.is_empty(), "the section calls none of the functions compared");
        if case.arguments.contains(&"requests") {
            hide(&mut told, (rank + size - 1) % size)?;
        }
        // All that it posts is complete, though by calls that return errors.
        if case.arguments.contains(&"errors") {
            let pending: Vec<_> = row.traffic.iter().flat_map(|traffic| &traffic.pending).collect();
            assert!(pending.is_empty(), "rank {rank}: {pending:?}");
        }
        if when == Attached::Late {
            forgive_unknown_requests(row, &mut told, &mut seen)?;
        }
        assert_eq!(differences(&told, &seen), Vec::<String>::new(), "rank {rank}, {when:?}");
    }
    Ok(())
}

/// Of persistent requests that were made before the profiler came, it is unknown what they move: so many starts must be
/// said to be of unknown bytes, and no more may be missing.
fn forgive_unknown_requests(row: &Rank, told: &mut Sums, seen: &mut Sums) -> Result<(), Failed> {
    let started = |sums: &Sums| -> u64 {
        sums.iter().filter(|((operation, ..), _)| operation.contains(" by ")).map(|(_, [calls, ..])| calls).sum()
    };
    let flows = row.traffic.iter().flat_map(|traffic| &traffic.flows);
    let unknown: u64 =
        flows.filter(|flow| flow.function.starts_with("MPI_Start")).map(|flow| flow.calls_of_unknown_bytes).sum();
    assert_eq!(started(told), started(seen) + unknown, "starts");
    for (key, amounts) in seen.iter().filter(|((operation, ..), _)| operation.contains(" by ")) {
        let most = told.get(key).ok_or_else(|| format!("nobody told of {key:?}"))?;
        assert!(amounts.iter().zip(most).all(|(seen, told)| seen <= told), "{key:?}: {amounts:?} of {most:?}");
    }
    for sums in [told, seen] {
        sums.retain(|(operation, ..), _| !operation.contains(" by "));
    }
    Ok(())
}

/// `cargo xtask soak wheels`: what the tests leave out of PyPI's MPIs.
pub fn wheels() -> ExitCode {
    let mut failed = false;
    for mpi in Mpi::EVERY.into_iter().filter(|mpi| !Mpi::ALL.contains(mpi)) {
        let of_python = has_mpi4py(mpi).then_some((MPI4PY, Attached::Late));
        for (case, when) in [(THREADS, Attached::AtStart), (SESSION, Attached::AtStart)].into_iter().chain(of_python) {
            let needs = [Requirement::Bpf, Requirement::Mpi(mpi), Requirement::Language(mpi, case.program.language)];
            if let Some(missing) = needs.into_iter().find_map(Requirement::missing) {
                println!("{mpi}: {}: left out: {missing}", case.name);
                failed = true;
                continue;
            }
            match agrees(mpi, case, when) {
                Ok(()) => println!("{mpi}: {}: as the truth library was told", case.name),
                Err(error) => {
                    println!("{mpi}: {}: {}", case.name, error.message().unwrap_or("failed"));
                    failed = true;
                }
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// mpi4py's wheels are not made for the standard ABI.
fn has_mpi4py(mpi: Mpi) -> bool {
    !matches!(mpi, Mpi::Mpich5Abi | Mpi::IntelAbi)
}
