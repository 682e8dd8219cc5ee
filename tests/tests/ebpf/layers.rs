//! Calls through Fortran and C++ layers are charged to the program's source lines.
//!
//! Invariant LAYERS-OWN-CALLS.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::call_sites::{self, calls, line};
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

/// Without the truth library: with it, MPI's functions are called from there.
/// Invariant USERS-SITES.
fn flows(mpi: Mpi, program: Program) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program).ranks(2).args(["10"]).gates(&["start"]).own_name().spawn()?;
    job.wait_for_gate("start")?;
    let profiler = Profiler::observe(["--traffic", "--pid-of", job.called()])?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    let profile = complete(&profiler.wait()?)?;
    call_sites::are_told(&profile, program)
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
            // Names may come later than calls.
            && is_placed(barrier)
            && is_placed(receive)
        {
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
