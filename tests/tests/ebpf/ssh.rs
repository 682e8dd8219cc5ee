//! A job over three nodes by ssh, observed by way of ssh: by its owner, who has no rights, and by root, who needs no service.

use std::ffi::OsString;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{
    Job, JobBuilder, Language, Mpi, Profiler, Requirement,
    bed::entered,
    program, requirement,
    second_user::{home_of, nobody_else},
    ssh::SshNodes,
    traced::{Extent, Order, agreement_of_files},
};
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::{
    check::{complete, expect_counts, expect_row, functions},
    trace::expect_sums,
};

const HOSTS: &str = "n1,n2,n3";

/// Debian's MPICH 4.0.2 does not always come to an end over several nodes, as [`crate::slurm`] says.
pub(crate) fn tests() -> Vec<Trial> {
    let trial = |mpi: Mpi, user: u32| {
        let needs = [
            Requirement::Bpf,
            Requirement::Root,
            Requirement::Mpi(mpi),
            Requirement::Language(mpi, Language::C),
            Requirement::Unpacked("sshd"),
            Requirement::Unpacked("ssh"),
            Requirement::Unpacked("ssh-keygen"),
            Requirement::Command("ip"),
            Requirement::Command("unshare"),
            Requirement::Command("nsenter"),
            Requirement::Command("setpriv"),
        ];
        requirement::trial(format!("{}::a_job_over_three_nodes_by_ssh", mpi.id()), &needs, move || {
            over_three(mpi, user)
        })
    };
    vec![trial(Mpi::OpenMpi, nobody_else()), trial(Mpi::Mpich5, 0)]
}

fn over_three(mpi: Mpi, user: u32) -> Result<(), Failed> {
    let nodes = SshNodes::start(user)?;
    exact(&nodes, mpi, user)?;
    lost(&nodes, mpi)
}

/// Two ranks on the first node, and one on each of the others.
fn on_nodes(nodes: &SshNodes, job: JobBuilder) -> Result<Job, Failed> {
    let job = job.ranks(4).args(["20"]).own_name().around(nodes.as_user("n1")?).over("n1:2,n2:1,n3:1");
    let mut job = job.spawn()?;
    job.wait_for_gate("start")?;
    Ok(job)
}

/// All calls of all nodes are counted, and recorded event for event.
fn exact(nodes: &SshNodes, mpi: Mpi, user: u32) -> Result<(), Failed> {
    let home = home_of(user)?;
    let file = |name: &str| home.path().join(name);
    let mut job = on_nodes(nodes, Job::builder(mpi, program::RING).gates(&["start"]).log())?;
    let named = ["--json", "--hosts", HOSTS, "--pid-of", job.called()].map(OsString::from);
    let start = |words: Vec<OsString>| -> Result<Profiler, Failed> {
        let mut profiler = Profiler::spawn(nodes.client("n1", words.iter().chain(&named))?)?;
        profiler.wait_for_processes(4)?;
        Ok(profiler)
    };
    let counting = start(["--traffic", "--interval", "1h"].map(OsString::from).into())?;
    let recording =
        start(["trace".into(), "--functions".into(), "all".into(), "-o".into(), file("job.trace").into()].into())?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    let ended = counting.wait()?;
    expect_counts(&complete(&ended)?, &job.snapshot()?, None, &functions("default")?)?;
    let last: Value = serde_json::from_str(ended.stdout.last().ok_or_else(|| ended.printed())?)?;
    let ranks = last.get("ranks").and_then(Value::as_array).ok_or("no ranks")?;
    let hosts: Vec<_> = ranks.iter().filter_map(|row| row.get("host")?.as_str()).collect();
    assert_eq!(hosts, ["n1", "n1", "n2", "n3"]);
    let profile = complete(&recording.wait()?)?;
    let files = ["job.n1.trace", "job.n2.trace", "job.n3.trace"].map(file);
    expect_sums(&agreement_of_files(mpi, &files, &job, Order::TruthOutside, Extent::Whole)?, &profile);
    Ok(())
}

/// A node that is lost is named, and the others are observed further.
fn lost(nodes: &SshNodes, mpi: Mpi) -> Result<(), Failed> {
    let mut job = on_nodes(nodes, Job::builder(mpi, program::RING).gates(&["start", "2"]).truth(true))?;
    let words = ["--json", "--interval", "100ms", "--hosts", HOSTS, "--pid-of", job.called()];
    let mut profiler = Profiler::spawn(nodes.client("n1", words)?)?;
    profiler.wait_for_processes(4)?;
    job.open_gate("start")?;
    job.wait_for_gate("2")?;
    let truth = job.snapshot()?;
    profiler.wait_for_output_with("\"host\":\"n3\"")?;
    nodes.kill("n3")?;
    profiler.wait_for("mpiprobe: n3: lost: ")?;
    kill_process(entered(&profiler)?, Signal::INT)?;
    let ended = profiler.wait()?;
    let profile = ended.profile()?;
    let whys = profile.incomplete_because.join("\n");
    assert!(!profile.complete && whys.contains("node n3 has been lost ("), "{}", ended.printed());
    for rank in [0, 1, 2] {
        let row = profile.rank(rank).ok_or_else(|| ended.printed())?;
        expect_row(row, truth.ranks.get(&rank).ok_or("no such rank")?, None, &functions("default")?);
    }
    Ok(())
}
