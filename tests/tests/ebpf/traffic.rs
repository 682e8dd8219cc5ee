//! `--traffic`: who sent how much to whom, over which communicator, compared with what the truth library was told by MPI.

use std::collections::{BTreeMap, BTreeSet};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::traffic::{Sums, differences, hide, seen, told};
use mpiprobe_tests::{Job, Language, Mpi, Profiler, Rank, program};

use crate::check::complete;
use crate::trial_with;

/// Whether the profiler comes before MPI_Init, or when all types and communicators are there.
#[derive(Clone, Copy)]
enum Attached {
    AtStart,
    Late,
}

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let sections = ["point-to-point", "collectives", "communicators", "datatypes", "requests"];
    let of_section = |section: &'static str| {
        [(Attached::AtStart, "at_start"), (Attached::Late, "late")].map(|(when, suffix)| {
            let name = format!("traffic_of_{}_attached_{suffix}", section.replace('-', "_"));
            trial_with(mpi, Language::C, &name, move || agrees(mpi, section, when))
        })
    };
    sections.into_iter().flat_map(of_section).collect()
}

fn agrees(mpi: Mpi, section: &str, when: Attached) -> Result<(), Failed> {
    let gates: &[&str] = match when {
        // Not before MPI has been initialised, so that nothing is called whose meaning cannot be known yet.
        Attached::AtStart => &["start", "1"],
        Attached::Late => &["2"],
    };
    let mut job = Job::builder(mpi, program::MEANING).args([section]).gates(gates).meaning().own_name().spawn()?;
    let first = gates.first().copied().unwrap_or("start");
    job.wait_for_gate(first)?;
    let before = match when {
        Attached::AtStart => BTreeMap::new(),
        Attached::Late => job.snapshot()?.ranks,
    };
    let profiler = Profiler::observe(["--traffic", "--pid-of", job.called()])?;
    job.open_gate(first)?;
    if matches!(when, Attached::AtStart) {
        job.wait_for_gate("1")?;
        job.open_gate("1")?;
    }
    job.wait()?.success()?;
    let ended = profiler.wait()?;
    let profile = complete(&ended)?;
    let ranks = job.snapshot()?.ranks;
    let functions: BTreeSet<String> =
        ranks.values().flat_map(|image| image.traffic.functions().into_keys().map(str::to_owned)).collect();
    let size = u32::try_from(ranks.len())?;
    for (rank, image) in &ranks {
        let row = profile.rank(*rank).ok_or("no such rank")?;
        let told = told(image, before.get(rank));
        assert!(!told.is_empty(), "the section calls none of the functions compared");
        let mut seen = seen(row, &functions);
        let mut told = told;
        if section == "requests" {
            hide(&mut told, (rank + size - 1) % size)?;
        }
        if matches!(when, Attached::Late) {
            forgive_unknown_requests(row, &mut told, &mut seen)?;
        }
        assert_eq!(differences(&told, &seen), Vec::<String>::new(), "rank {rank}");
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
