//! The same deterministic job, observed from outside and counting itself: the same calls, and the same traffic.

use std::collections::BTreeSet;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::traffic::{bounded, differences, expect_within_bounds, seen};
use mpiprobe_tests::{Job, JobBuilder, Mpi, Profile, Profiler, Program, program};

use crate::check::complete;
use crate::trial_with;

const RANKS: u32 = 4;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    // Debian has no static Open MPI.
    // Invariant LINKED-IN.
    let linked_in = (mpi == Mpi::Mpich).then_some([LINKED_IN, F08_LINKED_IN]);
    CASES
        .into_iter()
        .chain(linked_in.into_iter().flatten())
        .map(|case| {
            let name = format!("engines_agree_on_{}", case.name);
            trial_with(mpi, case.program.language, &name, move || agree(mpi, case))
        })
        .collect()
}

/// A program that calls the same whenever it is run, and what it is started with.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    program: Program,
    arguments: &'static [&'static str],
    functions: &'static str,
    /// Gate at which MPI has been initialised.
    known: &'static str,
    /// What is observed from outside has MPI's library in the program; it could not count itself.
    linked_in: bool,
}

/// Others ask until something has arrived: no two runs of those are the same.
const MESSAGES: Case = Case {
    name: "messages",
    program: program::SEMANTICS,
    arguments: &["point-to-point", "collectives", "communicators", "datatypes", "large"],
    functions: "all",
    known: "1",
    linked_in: false,
};
/// Accesses to windows and files, neighbours, collectives that go on meanwhile.
const SCOPES: Case = Case {
    name: "scopes",
    arguments: &["nonblocking-collectives", "neighbourhoods", "one-sided", "input-output"],
    ..MESSAGES
};
const F08: Case = Case { name: "use_mpi_f08", program: program::SEMANTICS_F08, arguments: &[], ..MESSAGES };
/// Open MPI's C++ library asks whether MPI is initialised when it is loaded, before the gate.
const CXX: Case =
    Case { name: "cxx", program: program::SEMANTICS_CXX, arguments: &[], functions: "all,-Initialized", ..MESSAGES };
const LINKED_IN: Case = Case { name: "mpi_linked_in", linked_in: true, ..MESSAGES };
/// What the Fortran procedures in the program ask on their own account is not the program's there either.
const F08_LINKED_IN: Case = Case { name: "use_mpi_f08_linked_in", linked_in: true, ..F08 };
const CASES: [Case; 4] = [MESSAGES, SCOPES, F08, CXX];

fn job(mpi: Mpi, case: Case) -> JobBuilder {
    Job::builder(mpi, case.program).ranks(RANKS).args(case.arguments.iter().copied())
}

/// From outside, from before the first call.
fn by_kernel(mpi: Mpi, case: Case) -> Result<Profile, Failed> {
    // Held once more, until MPI has been initialised.
    let builder = job(mpi, case).gates(&["start", case.known]).own_name();
    let mut job = if case.linked_in { builder.linked_in() } else { builder }.spawn()?;
    job.wait_for_gate("start")?;
    let options = ["-v", "--traffic", "--functions", case.functions, "--engine", "ebpf", "--pid-of", job.called()];
    let mut profiler = Profiler::observe(options)?;
    job.open_gate("start")?;
    job.wait_for_gate(case.known)?;
    profiler.wait_for_meaning(RANKS as usize)?;
    job.open_gate(case.known)?;
    job.wait()?.success()?;
    complete(&profiler.wait()?)
}

fn by_wrapper(mpi: Mpi, case: Case) -> Result<Profile, Failed> {
    let mut job = job(mpi, case).profiled(["--functions", case.functions])?.spawn()?;
    job.wait()?.success()?;
    Ok(job.profile()?)
}

/// Invariant LAYERS-OWN-CALLS.
fn agree(mpi: Mpi, case: Case) -> Result<(), Failed> {
    let (outside, inside) = (by_kernel(mpi, case)?, by_wrapper(mpi, case)?);
    assert_ne!(outside.engine.attached_by, "LD_PRELOAD");
    assert_eq!(inside.engine.attached_by, "LD_PRELOAD");
    for rank in 0..RANKS {
        let rows = (outside.rank(rank).ok_or("no such rank")?, inside.rank(rank).ok_or("no such rank")?);
        assert_eq!(rows.0.completed(), rows.1.completed(), "rank {rank}");
        let functions: BTreeSet<String> = rows.0.completed().into_keys().map(str::to_owned).collect();
        let (mut from_outside, mut from_inside) = (seen(rows.0, &functions), seen(rows.1, &functions));
        // Where the program wants no status, the wrapper passes one of its own, and knows how much has come, and from whom.
        expect_within_bounds(&mut from_inside, &mut from_outside, &bounded(rows.0));
        assert_eq!(differences(&from_outside, &from_inside), Vec::<String>::new(), "rank {rank}");
    }
    Ok(())
}
