//! The same deterministic job, observed from outside and counting itself: the same calls, and the same traffic.

use std::collections::BTreeSet;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::traffic::{differences, seen};
use mpiprobe_tests::{Job, JobBuilder, Language, Mpi, Profile, Profiler, program};

use crate::check::complete;
use crate::trial_with;

const RANKS: u32 = 4;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    // Others ask until something has arrived: no two runs of those are the same.
    let sections = ["point-to-point", "collectives", "communicators", "datatypes"];
    let of_section = |section: &'static str| {
        let name = format!("engines_agree_on_{}", section.replace('-', "_"));
        trial_with(mpi, Language::C, &name, move || agree(mpi, section))
    };
    sections.into_iter().map(of_section).collect()
}

fn job(mpi: Mpi, section: &'static str) -> JobBuilder {
    Job::builder(mpi, program::MEANING).ranks(RANKS).args([section])
}

/// From outside, from before the first call.
fn by_kernel(mpi: Mpi, section: &'static str) -> Result<Profile, Failed> {
    let mut job = job(mpi, section).gates(&["start"]).own_name().spawn()?;
    job.wait_for_gate("start")?;
    let options = ["--traffic", "--functions", "all", "--engine", "ebpf", "--pid-of", job.called()];
    let profiler = Profiler::observe(options)?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    complete(&profiler.wait()?)
}

fn by_wrapper(mpi: Mpi, section: &'static str) -> Result<Profile, Failed> {
    let mut job = job(mpi, section).profiled(["--functions", "all"])?.spawn()?;
    job.wait()?.success()?;
    Ok(job.profile()?)
}

fn agree(mpi: Mpi, section: &'static str) -> Result<(), Failed> {
    let (outside, inside) = (by_kernel(mpi, section)?, by_wrapper(mpi, section)?);
    assert_ne!(outside.engine.attached_by, "LD_PRELOAD");
    assert_eq!(inside.engine.attached_by, "LD_PRELOAD");
    for rank in 0..RANKS {
        let rows = (outside.rank(rank).ok_or("no such rank")?, inside.rank(rank).ok_or("no such rank")?);
        assert_eq!(rows.0.completed(), rows.1.completed(), "rank {rank}");
        let functions: BTreeSet<String> = rows.0.completed().into_keys().map(str::to_owned).collect();
        let (from_outside, from_inside) = (seen(rows.0, &functions), seen(rows.1, &functions));
        assert_eq!(differences(&from_outside, &from_inside), Vec::<String>::new(), "rank {rank}");
    }
    Ok(())
}
