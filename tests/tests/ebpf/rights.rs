//! Callers without the right to do everything.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::profiler::Copy;
use mpiprobe_tests::second_user::nobody_else;
use mpiprobe_tests::{
    Ended, Job, JobBuilder, Language, Mpi, Profiler, Requirement, changed_bytes, program, requirement,
};

use crate::check::{complete, expect_counts, functions};

/// Whoever owns nothing (`nobody`).
const USER: u32 = 65534;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let trial = |name: &str, test: fn(Mpi) -> Result<(), Failed>| {
        let needs =
            [Requirement::Bpf, Requirement::Root, Requirement::Mpi(mpi), Requirement::Language(mpi, Language::Cxx)];
        requirement::trial(format!("{}::{name}", mpi.id()), &needs, move || test(mpi))
    };
    vec![
        trial("without_rights_there_is_a_clear_message", without_rights),
        trial("file_capabilities_show_ones_own_jobs", own_job),
        trial("file_capabilities_put_probes_into_ones_own_processes_only", own_processes),
        trial("file_capabilities_do_not_show_the_jobs_of_others", job_of_root),
    ]
}

fn refused(copy: &Copy, arguments: &[&str]) -> Result<String, Failed> {
    let ended: Ended = Profiler::spawn(copy.command(USER, arguments))?.wait()?;
    assert_eq!((ended.status.code(), ended.stdout.len()), (Some(1), 0), "{}", ended.printed());
    Ok(ended.stderr.join("\n"))
}

fn builder(mpi: Mpi) -> JobBuilder {
    Job::builder(mpi, program::RING).ranks(2).args(["10"]).gates(&["start"]).truth(true).own_name()
}

fn job(mpi: Mpi, user: u32) -> Result<Job, Failed> {
    let mut job = builder(mpi).user(user).spawn()?;
    job.wait_for_gate("start")?;
    Ok(job)
}

fn finish(mut job: Job) -> Result<Job, Failed> {
    job.open_gate("start")?;
    job.wait()?.success()?;
    Ok(job)
}

fn without_rights(mpi: Mpi) -> Result<(), Failed> {
    let copy = Copy::new()?;
    let (own, of_root) = (job(mpi, USER)?, job(mpi, 0)?);
    let message = refused(&copy, &["--pid-of", own.called()])?;
    assert!(message.contains("CAP_BPF") && message.contains("root"), "{message}");
    let message = refused(&copy, &["--pid-of", of_root.called()])?;
    assert!(message.contains("run mpiprobe as root"), "{message}");
    finish(own)?;
    finish(of_root)?;
    Ok(())
}

fn own_job(mpi: Mpi) -> Result<(), Failed> {
    let copy = Copy::with_capabilities()?;
    let job = job(mpi, USER)?;
    let mut profiler = Profiler::spawn(copy.command(USER, ["--json", "--interval", "1h", "--pid-of", job.called()]))?;
    profiler.wait_for("mpiprobe: observing ")?;
    let job = finish(job)?;
    expect_counts(&complete(&profiler.wait()?)?, &job.snapshot()?, None, &functions("default")?)
}

/// By every way of attaching, also where whoever comes later would be probed with all others: nobody else gets return probes.
/// Invariant OWN-PROCESSES.
fn own_processes(mpi: Mpi) -> Result<(), Failed> {
    let copy = Copy::with_capabilities()?;
    // Of all jobs of this user's, there are none but those of this test.
    let user = nobody_else();
    for way in ["session", "multi"] {
        let mut own = builder(mpi).own_library().user(user).spawn()?;
        own.wait_for_gate("start")?;
        let library = own.library().ok_or("no library of its own")?.to_owned();
        // Return probes would be the end of it.
        let of_root = Job::builder(mpi, program::THROWS).ranks(2).args(["10"]).gates(&["1"]).own_name();
        let mut of_root = of_root.library_of(&own).spawn()?;
        of_root.wait_for_gate("1")?;
        let others: Vec<u32> = of_root.ranks()?.into_values().collect();
        let arguments = ["--json", "--interval", "1h", "--attach", way, "--all-jobs"];
        let mut profiler = Profiler::spawn(copy.command(user, arguments))?;
        profiler.wait_for("mpiprobe: observing ")?;
        for pid in own.ranks()?.into_values() {
            assert!(changed_bytes(pid, &library)? > 0, "{way}: process {pid}");
        }
        // Where the kernel does not ask before it arms one, they have no breakpoint either.
        for pid in others.into_iter().filter(|_| way != "session") {
            assert_eq!(changed_bytes(pid, &library)?, 0, "{way}: process {pid}");
        }
        of_root.open_gate("1")?;
        let finished = of_root.wait()?.success()?;
        assert!(finished.stdout.contains("10 exceptions caught"), "{way}: {finished:?}");
        let own = finish(own)?;
        // Nobody else has that user's processes.
        let profile = complete(&profiler.wait()?)?;
        expect_counts(&profile, &own.snapshot()?, None, &functions("default")?)?;
    }
    // Nor does a job that is started have others probed.
    let ended = Profiler::spawn(copy.command(USER, ["run", "--engine", "ebpf", "--", "true"]))?.wait()?;
    let told = ended.stderr.join("\n");
    assert!(ended.status.code() == Some(1) && told.contains("all processes of the node"), "{}", ended.printed());
    Ok(())
}

fn job_of_root(mpi: Mpi) -> Result<(), Failed> {
    let copy = Copy::with_capabilities()?;
    let mut of_root = job(mpi, 0)?;
    let pid = of_root.ranks()?.into_values().next().ok_or("no rank")?.to_string();
    for arguments in [["--pid-of", of_root.called()], ["--pid", &pid]] {
        let message = refused(&copy, &arguments)?;
        assert!(message.contains("run mpiprobe as root"), "{message}");
    }
    let listed = Profiler::spawn(copy.command(USER, ["ps"]))?.wait()?;
    assert!(!listed.printed().contains(of_root.called()), "{}", listed.printed());
    finish(of_root)?;
    Ok(())
}
