//! Callers without the right to do everything.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::profiler::Copy;
use mpiprobe_tests::{Ended, Job, Mpi, Profiler, Requirement, program, requirement};

use crate::check::{complete, expect_counts, functions};

/// Whoever owns nothing (`nobody`).
const USER: u32 = 65534;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let trial = |name: &str, test: fn(Mpi) -> Result<(), Failed>| {
        let needs = [Requirement::Bpf, Requirement::Root, Requirement::Mpi(mpi)];
        requirement::trial(format!("{}::{name}", mpi.id()), &needs, move || test(mpi))
    };
    vec![
        trial("without_rights_there_is_a_clear_message", without_rights),
        trial("file_capabilities_show_ones_own_jobs", own_job),
        trial("file_capabilities_do_not_show_the_jobs_of_others", job_of_root),
    ]
}

/// As `setcap cap_bpf,cap_perfmon,cap_sys_ptrace=ep` does.
fn with_capabilities() -> Result<Copy, Failed> {
    const SYS_PTRACE: u32 = 1 << 19;
    // CAP_PERFMON (38) and CAP_BPF (39) are in the upper word.
    const PERFMON_AND_BPF: u32 = 1 << 6 | 1 << 7;
    /// `struct vfs_cap_data`, revision 2, effective (include/uapi/linux/capability.h): permitted and inheritable, twice.
    const WORDS: [u32; 5] = [0x0200_0001, SYS_PTRACE, 0, PERFMON_AND_BPF, 0];
    let copy = Copy::new()?;
    let value: Vec<u8> = WORDS.into_iter().flat_map(u32::to_le_bytes).collect();
    rustix::fs::setxattr(copy.path(), "security.capability", &value, rustix::fs::XattrFlags::empty())?;
    Ok(copy)
}

fn refused(copy: &Copy, arguments: &[&str]) -> Result<String, Failed> {
    let ended: Ended = Profiler::spawn(copy.command(USER, arguments))?.wait()?;
    assert_eq!((ended.status.code(), ended.stdout.len()), (Some(1), 0), "{}", ended.printed());
    Ok(ended.stderr.join("\n"))
}

fn job(mpi: Mpi, user: u32) -> Result<Job, Failed> {
    let job = Job::builder(mpi, program::RING).ranks(2).args(["10"]).gates(&["start"]).truth(true).own_name();
    let mut job = job.user(user).spawn()?;
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
    let copy = with_capabilities()?;
    let job = job(mpi, USER)?;
    let mut profiler = Profiler::spawn(copy.command(USER, ["--json", "--interval", "1h", "--pid-of", job.called()]))?;
    profiler.wait_for("mpiprobe: observing ")?;
    let job = finish(job)?;
    expect_counts(&complete(&profiler.wait()?)?, &job.snapshot()?, None, &functions("default")?)
}

fn job_of_root(mpi: Mpi) -> Result<(), Failed> {
    let copy = with_capabilities()?;
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
