//! MPI libraries that are not simply there: deleted, replaced, stripped, or part of the program.

use std::fs;
use std::path::Path;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::profiler::changed_bytes_from;
use mpiprobe_tests::{Job, Language, Mpi, Profiler, program};

use crate::check::{complete, expect_counts, functions};
use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let mut tests = vec![
        trial(mpi, Language::C, "a_deleted_library_is_probed", deleted),
        trial(mpi, Language::C, "a_replaced_library_is_probed_where_it_is_mapped", replaced),
    ];
    if mpi == Mpi::Mpich {
        // Debian has no static Open MPI.
        tests.push(trial(mpi, Language::C, "a_program_with_mpi_linked_in", linked_in));
    }
    tests
}

/// Something is done to the library's file while the job stands at its beginning; then all calls are counted.
fn changed(mpi: Mpi, change: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::RING)
        .ranks(2)
        .args(["20"])
        .gates(&["start", "3"])
        .truth(true)
        .own_name()
        .own_library()
        .spawn()?;
    job.wait_for_gate("start")?;
    let library = job.library().ok_or("no library of its own")?.to_owned();
    let content = fs::read(&library)?;
    change(&library)?;
    let profiler = Profiler::observe(["--pid-of", job.called()])?;
    job.open_gate("start")?;
    job.wait_for_gate("3")?;
    let ended = profiler.interrupt()?;
    for pid in job.ranks()?.into_values() {
        assert_eq!(changed_bytes_from(pid, &library, &content)?, 0, "a probe was left in process {pid}");
    }
    expect_counts(&complete(&ended)?, &job.snapshot()?, None, &functions("default")?)?;
    job.open_gate("3")?;
    job.wait()?.success()?;
    Ok(())
}

fn deleted(mpi: Mpi) -> Result<(), Failed> {
    changed(mpi, |library| fs::remove_file(library))
}

/// As a package manager does it: another file is put in the place of the old one.
fn replaced(mpi: Mpi) -> Result<(), Failed> {
    changed(mpi, |library| {
        let new = library.with_extension("new");
        // Other code at all the old places.
        fs::copy("/proc/self/exe", &new)?;
        fs::rename(&new, library)
    })
}

/// The truth library cannot count here: the program counts for itself.
fn linked_in(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::GROUPS).linked_in().gates(&["start"]).own_name().spawn()?;
    job.wait_for_gate("start")?;
    let profiler = Profiler::observe(["--pid-of", job.called(), "--functions", "all"])?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    let profile = complete(&profiler.wait()?)?;
    assert_eq!(profile.ranks.len(), 4, "{:?}", profile.ranks);
    for row in &profile.ranks {
        let counted = row.completed();
        let expected = job.own_counts(row.rank.ok_or("no rank")?)?;
        let counted = counted.into_iter().map(|(name, calls)| (name.to_owned(), calls)).collect();
        assert_eq!(expected, counted, "rank {:?}", row.rank);
    }
    Ok(())
}
