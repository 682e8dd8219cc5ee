//! What was moved, from whom to whom, compared with what the truth library was told by MPI.
//!
//! The truth library, which comes after the wrapper, never lets MPI ignore a status; the wrapper sees what the program has passed. Where
//! that ignores a status, an upper bound is known only, and perhaps not from whom: then sums over partners are compared.

use std::collections::{BTreeMap, BTreeSet};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::traffic::{Sums, differences, hide, seen, told};
use mpiprobe_tests::{Job, Language, Mpi, Rank, program};

use crate::check::complete;
use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let sections = ["point-to-point", "collectives", "communicators", "datatypes", "requests"];
    let of_section = |section: &'static str| {
        let name = format!("traffic_of_{}", section.replace('-', "_"));
        trial(mpi, Language::C, &name, move || agrees(mpi, section))
    };
    sections.into_iter().map(of_section).collect()
}

fn agrees(mpi: Mpi, section: &str) -> Result<(), Failed> {
    let job = Job::builder(mpi, program::MEANING).args([section]).meaning();
    let mut job = job.profiled([] as [&str; 0])?.spawn()?;
    job.wait()?.success()?;
    let profile = complete(&job)?;
    let ranks = job.snapshot()?.ranks;
    let functions: BTreeSet<String> =
        ranks.values().flat_map(|image| image.traffic.functions().into_keys().map(str::to_owned)).collect();
    let size = u32::try_from(ranks.len())?;
    for (rank, image) in &ranks {
        let row = profile.rank(*rank).ok_or("no such rank")?;
        let mut told = told(image, None);
        assert!(!told.is_empty(), "the section calls none of the functions compared");
        if section == "requests" {
            hide(&mut told, (rank + size - 1) % size)?;
        }
        let mut seen = seen(row, &functions);
        let bounded = bounded(row);
        let (sums, bounds) = (take_sums(&mut told, &bounded), take_sums(&mut seen, &bounded));
        assert_eq!(differences(&told, &seen), Vec::<String>::new(), "rank {rank}");
        assert!(sums.keys().eq(bounds.keys()), "rank {rank}: {sums:?}, {bounds:?}");
        for ((function, true_sums), seen_sums) in sums.iter().zip(bounds.values()) {
            let ([calls, sent, received, unknown], [.., most, _]) = (true_sums, seen_sums);
            assert_eq!(*seen_sums, [*calls, *sent, *most, *unknown], "rank {rank}: {function}");
            let at_most = bounded.get(function).copied().unwrap_or(0);
            assert!((most - at_most..=*most).contains(received), "rank {rank}: {function}: {received} of {most}");
        }
    }
    Ok(())
}

/// Functions by which a status was ignored, with the bytes of which an upper bound is known only.
fn bounded(row: &Rank) -> BTreeMap<String, u64> {
    let mut bounded = BTreeMap::new();
    for flow in row.traffic.iter().flat_map(|traffic| &traffic.flows) {
        if flow.received_at_most_bytes > 0 || flow.partner == "any-source" {
            *bounded.entry(flow.function.clone()).or_default() += flow.received_at_most_bytes;
        }
    }
    bounded
}

/// Takes out what is of these functions, summed up over partners and communicators.
fn take_sums(traffic: &mut Sums, functions: &BTreeMap<String, u64>) -> BTreeMap<String, [u64; 4]> {
    let mut sums: BTreeMap<String, [u64; 4]> = BTreeMap::new();
    traffic.retain(|(operation, ..), amounts| {
        let function = operation.split(' ').next().unwrap_or_default();
        if !functions.contains_key(function) {
            return true;
        }
        for (sum, amount) in sums.entry(function.to_owned()).or_default().iter_mut().zip(amounts) {
            *sum += *amount;
        }
        false
    });
    sums
}
