//! In a pid namespace of its own, as in a container, mpiprobe sees the processes of that, by the numbers that they have there.

use std::ffi::OsString;
use std::fs;
use std::process::Command;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::check::{expect_counts, functions};
use mpiprobe_tests::profiler::{Copy, binary};
use mpiprobe_tests::truth::Snapshot;
use mpiprobe_tests::{Job, Mpi, Profile, Profiler, Requirement, program, requirement};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::check::complete;

/// The command that follows, as the first process of a namespace.
const UNSHARE: [&str; 6] = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
/// Its first process, with whose end the kernel ends all others: it goes on until somebody has written into the FIFO.
const UNTIL_TOLD: &str = "fifo=$1; shift; \"$@\"; status=$?; read -r _ < \"$fifo\"; exit $status";
/// Processes of a namespace that has just been made have small numbers.
const FEW: u32 = 1000;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let needs = [
        Requirement::Bpf,
        Requirement::Root,
        Requirement::Mpi(mpi),
        Requirement::Command("unshare"),
        Requirement::Command("nsenter"),
        Requirement::Command("setpriv"),
    ];
    let trial = |name: &str, test: fn(Mpi) -> Result<(), Failed>| {
        requirement::trial(format!("{}::{name}", mpi.id()), &needs, move || test(mpi))
    };
    vec![
        trial("attached_within_a_pid_namespace", attached),
        trial("run_within_a_pid_namespace", run),
        trial("rights_that_lack_within_a_pid_namespace_are_told_as_elsewhere", without_rights),
    ]
}

/// From before main, and from mid-run on; and a look at stacks meanwhile.
fn attached(mpi: Mpi) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let fifo = folder.path().join("end");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0)?;
    let first = ["sh", "-c", UNTIL_TOLD, "sh"].map(OsString::from).into_iter().chain([fifo.clone().into()]);
    let builder = Job::builder(mpi, program::RING).args(["20"]).ranks(2);
    let builder = builder.around(UNSHARE.map(OsString::from).into_iter().chain(first));
    let mut job = builder.gates(&["start", "2"]).truth(true).own_name().spawn()?;
    let mut observers = Vec::new();
    for gate in ["start", "2"] {
        job.wait_for_gate(gate)?;
        let before = job.snapshot()?;
        let pid = *job.ranks()?.values().next().ok_or("no rank")?;
        let mut command = within(pid)?;
        command.args(["--json", "--interval", "1h", "--functions", "all", "--pid-of", job.called()]);
        let mut profiler = Profiler::spawn(command)?;
        profiler.wait_for("mpiprobe: observing ")?;
        observers.push((profiler, before));

        let looked = within(pid)?.args(["hang", "--pid-of", job.called()]).output()?;
        let (said, seen) = (String::from_utf8_lossy(&looked.stderr), String::from_utf8_lossy(&looked.stdout));
        assert!(looked.status.success() && said.is_empty(), "{said}{seen}");
        assert!(seen.contains("wait_at_gate") || seen.contains("gate"), "{seen}");
        job.open_gate(gate)?;
    }
    let mut ended = Vec::new();
    for (profiler, before) in observers {
        ended.push((profiler.wait()?, before));
    }
    fs::write(&fifo, "\n")?;
    job.wait()?.success()?;
    let truth = job.snapshot()?;
    ended.iter().try_for_each(|(ended, before)| judge(&complete(ended)?, &truth, Some(before)))
}

/// Processes that fork and execute are followed there, too.
fn run(mpi: Mpi) -> Result<(), Failed> {
    let mut command: Vec<OsString> = UNSHARE.map(OsString::from).into();
    command.push(binary()?.into());
    command.extend(
        ["run", "--json", "--engine", "ebpf", "--functions", "all", "--profile", "profile.json", "--"]
            .map(OsString::from),
    );
    let mut job = Job::builder(mpi, program::RING).args(["20"]).ranks(2).under(command).truth(true).spawn()?;
    job.wait()?.success()?;
    let profile = job.profile()?;
    assert!(profile.complete, "{:?}", profile.incomplete_because);
    judge(&profile, &job.snapshot()?, None)
}

/// Whoever owns nothing (`nobody`).
const USER: &str = "65534";

/// It is not the namespace that is in the way.
fn without_rights(_: Mpi) -> Result<(), Failed> {
    let copy = Copy::new()?;
    let [unshare, namespaces @ ..] = UNSHARE;
    let mut command = Command::new(unshare);
    command.args(namespaces).args(["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"]);
    let ended = command.arg(copy.path()).arg("doctor").current_dir("/").output()?;
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(["ok    pid-namespace", "FAIL  bpf-object", "CAP_BPF"].iter().all(|part| said.contains(part)), "{said}");
    Ok(())
}

/// mpiprobe in the namespaces of a process.
fn within(pid: u32) -> Result<Command, Failed> {
    let mut command = Command::new("nsenter");
    command.args(["--target", &pid.to_string(), "--pid", "--mount", "--"]).arg(binary()?);
    Ok(command)
}

fn judge(profile: &Profile, truth: &Snapshot, before: Option<&Snapshot>) -> Result<(), Failed> {
    assert!(profile.ranks.iter().all(|rank| rank.pid < FEW && rank.state == "ended"), "{profile:?}");
    expect_counts(profile, truth, before, &functions("all")?)
}
