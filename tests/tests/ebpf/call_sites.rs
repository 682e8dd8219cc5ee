//! Where open calls were made from.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, Language, Mpi, Profile, Profiler, program};

use crate::trial_with;

/// `call rel32`, as compilers call functions of other files.
const CALL: (u8, u64) = (0xe8, 5);

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let of_way = |way: &'static str| {
        let name = format!("call_sites_of_open_calls_attached_by_{way}");
        trial_with(mpi, Language::C, &name, move || open_calls(mpi, way))
    };
    ["session", "multi"].map(of_way).into()
}

/// Without the truth library: with it, the calls of the MPI library are made from there.
fn open_calls(mpi: Mpi, way: &str) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::HANG).ranks(2).gates(&["start"]).own_name().own_library().spawn()?;
    job.wait_for_gate("start")?;
    let pids = job.ranks()?;
    let options = ["--json", "--interval", "100ms", "--attach", way, "--pid-of", job.called()];
    let mut profiler = Profiler::start(options)?;
    profiler.wait_for("mpiprobe: observing ")?;
    job.open_gate("start")?;

    let profile = deadlock(&mut profiler)?;
    let mut sites = Vec::new();
    for (rank, pid) in pids {
        let row = profile.rank(rank).ok_or("no such rank")?;
        let open = row.open_calls.first().ok_or("no open call")?;
        let site = open.call_site.ok_or("no call site")?;
        let base = base_of_program(pid, job.called(), site)?;
        let mut instruction = [0];
        File::open(format!("/proc/{pid}/mem"))?.read_exact_at(&mut instruction, site - CALL.1)?;
        assert_eq!(instruction[0], CALL.0, "rank {rank}: no call before {site:#x}");
        sites.push(site - base);
    }
    assert_ne!(sites.first(), sites.last(), "MPI_Barrier and MPI_Recv are called from different places");

    job.kill_ranks()?;
    job.wait()?;
    profiler.wait()?;
    Ok(())
}

/// Where the program calls a function, by its source.
pub(crate) fn place(function: &str) -> String {
    const SOURCE: &str = include_str!("../../programs/hang.c");
    let call = format!("{function}(");
    let line = SOURCE.lines().position(|line| line.contains(&call)).map_or(0, |line| line + 1);
    format!("hang.c:{line} in main")
}

/// The first report of the job where rank 0 waits in MPI_Barrier and rank 1 in MPI_Recv, called from where the source says: names may
/// come later than calls.
pub(crate) fn deadlock(profiler: &mut Profiler) -> Result<Profile, Failed> {
    let waits = |profile: &Profile, rank, function: &str| {
        let open = profile.rank(rank).and_then(|row| row.open_calls.first());
        open.is_some_and(|open| open.function == function && open.site == Some(place(function)))
    };
    for nth in 0.. {
        let profile: Profile = serde_json::from_str(&profiler.wait_for_output(nth)?)?;
        if waits(&profile, 0, "MPI_Barrier") && waits(&profile, 1, "MPI_Recv") {
            return Ok(profile);
        }
    }
    Err("no more reports".into())
}

/// Start of the first mapping of the program itself; an error if `address` is not in one of its mappings.
fn base_of_program(pid: u32, name: &str, address: u64) -> Result<u64, Failed> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let ranges: Vec<(u64, u64)> = maps
        .lines()
        .filter(|line| line.ends_with(&format!("/{name}")))
        .filter_map(|line| line.split_whitespace().next()?.split_once('-'))
        .filter_map(|(start, end)| Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?)))
        .collect();
    let inside = ranges.iter().any(|&(start, end)| (start..end).contains(&address));
    match ranges.first() {
        Some(&(base, _)) if inside => Ok(base),
        _ => Err(format!("{address:#x} is not in {name}: {ranges:x?}").into()),
    }
}
