//! Reports of a recording by eBPF: each figure of every format is that of the JSON.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::reports::{NEEDS, say_the_same};
use mpiprobe_tests::{Job, Mpi, Profiler, Requirement, program, requirement};

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let needs = [&[Requirement::Bpf, Requirement::Mpi(mpi)], NEEDS.as_slice()].concat();
    let name = format!("{}::a_recording_says_the_same_in_every_format", mpi.id());
    vec![requirement::trial(name, &needs, move || formats(mpi))]
}

/// On a job with something of everything.
fn formats(mpi: Mpi) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let [recording, data] = ["job.rec", "data"].map(|name| folder.path().join(name));
    let job = Job::builder(mpi, program::REPORT).ranks(4).args([data.to_str().ok_or("no text")?]);
    let mut job = job.gates(&["1"]).own_name().spawn()?;
    job.wait_for_gate("1")?;
    let options = ["--traffic".as_ref(), "--plain".as_ref(), "--record".as_ref(), recording.as_os_str()];
    let target = ["--pid-of".as_ref(), job.called().as_ref()];
    let mut profiler = Profiler::start(options.into_iter().chain(target))?;
    profiler.wait_for("mpiprobe: observing ")?;
    job.open_gate("1")?;
    job.wait()?.success()?;
    let ended = profiler.wait()?;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.printed());
    say_the_same(&recording, &folder.path().join("reports"))
}
