//! `mpiprobe compare`, on runs of real jobs in which one computes much longer.

use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Ended, Job, Language, Mpi, Profiler, program};

use crate::{is_debians, trial};

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    if !is_debians(mpi) {
        return Vec::new();
    }
    vec![trial(mpi, Language::C, "runs_are_compared", move || compared(mpi))]
}

/// The profile of a ring that computes so long in each of ten iterations, as JSON.
fn profile(mpi: Mpi, folder: &Path, microseconds: &str) -> Result<PathBuf, Failed> {
    let (path, tables) = (folder.join(format!("{microseconds}.json")), folder.join(microseconds));
    let job = Job::builder(mpi, program::RING).ranks(2).args(["10", "--pause-us", microseconds]);
    let mut job = job.profiled(["--output".as_ref(), tables.as_os_str()])?.spawn()?;
    job.wait()?.success()?;
    let arguments = ["report".as_ref(), tables.as_os_str(), "--json".as_ref(), "-o".as_ref(), path.as_os_str()];
    let reported = Profiler::start(arguments)?.wait()?;
    assert_eq!(reported.status.code(), Some(0), "{}", reported.printed());
    Ok(path)
}

fn compare(files: [&Path; 2], more: &[&str]) -> Result<Ended, Failed> {
    let arguments = ["compare".as_ref(), files[0].as_os_str(), files[1].as_os_str()];
    Ok(Profiler::start(arguments.into_iter().chain(more.iter().map(AsRef::as_ref)))?.wait()?)
}

fn compared(mpi: Mpi) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let short = profile(mpi, folder.path(), "100")?;
    // Two seconds, which nothing else in the short run takes on the busiest machine.
    let long = profile(mpi, folder.path(), "200000")?;

    let same = compare([&short, &short], &["--fail-if", "elapsed > 0 %"])?;
    assert_eq!(same.status.code(), Some(0), "{}", same.printed());
    assert!(same.printed().contains("No difference: every figure is the same."), "{}", same.printed());

    let slower = compare([&short, &long], &["--fail-if", "computing > +100 %", "--fail-if", "Bcast > 1e9 %"])?;
    assert_eq!(slower.status.code(), Some(4), "{}", slower.printed());
    let said = slower.stderr.join("\n");
    assert!(said.contains("--fail-if 'computing > +100 %': time outside MPI changed by +"), "{said}");
    assert!(!said.contains("Bcast"), "{said}");
    let faster = compare([&long, &short], &["--fail-if", "computing > 0 %", "--format", "json"])?;
    assert_eq!(faster.status.code(), Some(0), "{}", faster.printed());

    let unknown = compare([&short, &long], &["--fail-if", "Scan > 1 %"])?;
    assert_eq!(unknown.status.code(), Some(1), "{}", unknown.printed());
    Ok(())
}
