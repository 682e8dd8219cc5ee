//! A job of Slurm's over two nodes, observed by its owner, who has no rights: by way of srun and the nodes' services.
#![expect(clippy::indexing_slicing, reason = "answers in JSON, where what is missing is null")]

use std::time::Instant;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{
    Ended, Job, JobBuilder, Language, Mpi, Profiler, Requirement,
    bed::entered,
    hang::{CASES, PATIENCE, lines, parsed},
    program, requirement,
    second_user::nobody_else,
    slurm::Slurm,
};
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::{
    check::{complete, expect_counts, expect_row, functions},
    nodes::TOLD,
    service::{truth_of, wait_until},
};

/// How Debian's Slurm starts ranks.
fn pmi(mpi: Mpi) -> &'static str {
    if mpi == Mpi::OpenMpi { "--mpi=pmix" } else { "--mpi=pmi2" }
}

/// Ranks of a node talk by memory, those of several by the network that there is.
fn network(mpi: Mpi) -> &'static [(&'static str, &'static str)] {
    match mpi {
        Mpi::OpenMpi => &[
            ("OMPI_MCA_pml", "ob1"),
            ("OMPI_MCA_btl", "self,vader,tcp"),
            ("OMPI_MCA_btl_tcp_if_include", "eth0"),
            ("OMPI_MCA_mpi_yield_when_idle", "1"),
        ],
        _ => &[("FI_PROVIDER", "tcp"), ("FI_TCP_IFACE", "eth0")],
    }
}

/// What a node tells monitoring.
const SCRAPE: &str = r"exec 3<>/dev/tcp/127.0.0.1/9464; printf 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n' >&3; cat <&3";

/// Debian's MPICH 4.0.2 does not always come to an end over several nodes, whoever looks: in MPI_Finalize, a rank waits for the others without
/// answering those that still take leave of it.
pub(crate) fn tests() -> Vec<Trial> {
    vec![trial(Mpi::OpenMpi), trial(Mpi::Mpich5)]
}

fn trial(mpi: Mpi) -> Trial {
    let needs = [
        Requirement::Bpf,
        Requirement::Root,
        Requirement::Mpi(mpi),
        Requirement::Language(mpi, Language::C),
        Requirement::Unpacked("srun"),
        Requirement::Unpacked("munged"),
        Requirement::Command("ip"),
        Requirement::Command("unshare"),
        Requirement::Command("nsenter"),
        Requirement::Command("setpriv"),
    ];
    requirement::trial(format!("{}::a_job_of_slurm_over_two_nodes", mpi.id()), &needs, move || over_two_nodes(mpi))
}

/// Started by alice on the node that users log in to, with two ranks on the first node.
fn by_srun(slurm: &Slurm, mpi: Mpi, job: JobBuilder) -> Result<JobBuilder, Failed> {
    let mut words = slurm.as_user("n0")?;
    let srun = ["srun", "--quiet", pmi(mpi), "--nodes=2", "--ntasks-per-node=2", "--kill-on-bad-exit=0"];
    words.extend(srun.map(str::to_owned));
    let job = network(mpi).iter().fold(job, |job, (name, value)| job.env(name, value));
    Ok(job.own_name().by_srun(words))
}

/// `mpiprobe ARGUMENTS` of alice's for a Slurm job, with agents by srun.
fn client(slurm: &Slurm, arguments: &[&str], number: &str) -> Result<Profiler, Failed> {
    let by = ["--launcher", "srun", "--job", number];
    Ok(Profiler::spawn(slurm.client("n0", arguments.iter().chain(&by))?)?)
}

/// The number that Slurm has given to the only job that runs.
fn number(slurm: &Slurm) -> Result<String, Failed> {
    let listed = slurm.asked("n0", ["squeue", "--noheader", "--states=running", "--format=%A"])?;
    match listed.stdout.as_slice() {
        [number] => Ok(number.clone()),
        _ => Err(listed.printed().into()),
    }
}

fn no_job(slurm: &Slurm) -> Result<(), Failed> {
    wait_until(|| Ok(slurm.asked("n0", ["squeue", "--noheader"])?.stdout.is_empty()))
}

fn json(ended: &Ended) -> Result<Value, Failed> {
    Ok(serde_json::from_str(ended.stdout.last().ok_or_else(|| ended.printed())?)?)
}

fn over_two_nodes(mpi: Mpi) -> Result<(), Failed> {
    let slurm = Slurm::start(nobody_else())?;
    exact(&slurm, mpi)?;
    hung(&slurm, mpi)?;
    lost(&slurm, mpi)
}

/// Each node names job and step, the whole is counted exactly, and the epilog hands its summaries to the user.
fn exact(slurm: &Slurm, mpi: Mpi) -> Result<(), Failed> {
    let job = Job::builder(mpi, program::RING).ranks(4).args(["20"]).gates(&["start"]).semantics();
    let mut job = by_srun(slurm, mpi, job)?.spawn()?;
    job.wait_for_gate("start")?;
    let number = number(slurm)?;
    for node in ["n1", "n2"] {
        let listed = Profiler::spawn(slurm.client(node, ["ps", "--json"])?)?.wait()?;
        let list: Value = serde_json::from_str(&listed.stdout.join("\n"))?;
        let jobs = list["jobs"].as_array().ok_or_else(|| listed.printed())?;
        let [found] = jobs.as_slice() else { return Err(listed.printed().into()) };
        assert_eq!(found["id"], format!("slurm:{number}.0"), "{found}");
        assert_eq!(found["ranks"].as_array().map(Vec::len), Some(2), "{found}");
        assert_eq!(found["user"]["name"], "alice", "{found}");
    }

    // Root may not start anything in somebody else's job: what Slurm says of that comes first.
    let mut refused = slurm.on("n0", ["mpiprobe", "--json", "--launcher", "srun", "--job"])?;
    refused.arg(&number);
    let refused = Profiler::spawn(refused)?.wait()?;
    let said = format!("n1: srun: error: Unable to create step for job {number}: Access/permission denied");
    assert!(refused.status.code() == Some(1) && refused.printed().contains(&said), "{}", refused.printed());

    // Unasked, too.
    for node in ["n1", "n2"] {
        let there = format!("mpiprobe_job_ranks{{job_id=\"slurm:{number}.0\"}} 2");
        wait_until(|| Ok(slurm.asked(node, ["bash", "-c", SCRAPE])?.stdout.contains(&there)))?;
    }
    let mut star = client(slurm, &["--json", "--interval", "1h"], &number)?;
    star.wait_for_processes(4)?;
    // The first node's agent starts that of the other, by a step from inside a step, if it is there soon.
    let mut chain = client(slurm, &["--json", "--interval", "1h", "--fan-out", "1"], &number)?;
    chain.wait_for_processes(4)?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    for profiler in [star, chain] {
        let ended = profiler.wait()?;
        expect_counts(&complete(&ended)?, &job.snapshot()?, None, &functions("default")?)?;
        let last = json(&ended)?;
        let hosts: Vec<_> = last["ranks"].as_array().ok_or("no ranks")?.iter().map(|row| &row["host"]).collect();
        assert_eq!(hosts, ["n1", "n1", "n2", "n2"]);
    }

    no_job(slurm)?;
    let mut calls = 0.0;
    for node in ["n1", "n2"] {
        let file = format!("var/log/mpiprobe-jobs/{number}.{node}.jsonl");
        wait_until(|| Ok(!slurm.read(node, &file)?.is_empty()))?;
        let summary: Value = serde_json::from_str(slurm.read(node, &file)?.trim())?;
        assert_eq!((&summary["complete"], &summary["ranks"]), (&true.into(), &2.into()), "{summary}");
        calls += summary["calls"].as_f64().unwrap_or(f64::NAN);
    }
    let (truth, _) = truth_of(&job)?;
    assert_eq!(calls.to_bits(), truth.values().sum::<f64>().to_bits(), "{truth:?}");
    Ok(())
}

/// Why a job does not go on, which its owner is told without rights and without stopping it.
fn hung(slurm: &Slurm, mpi: Mpi) -> Result<(), Failed> {
    let case = CASES.iter().find(|case| case.name == "other-partner").ok_or("no such case")?;
    let program = case.program.compiled(&["-fno-optimize-sibling-calls"]);
    let job = by_srun(slurm, mpi, Job::builder(mpi, program).ranks(case.ranks()).args([case.name]))?.spawn()?;
    wait_until(|| Ok(number(slurm).is_ok()))?;
    let number = number(slurm)?;
    let until = Instant::now() + PATIENCE;
    loop {
        let ended = client(slurm, &["hang", "--json"], &number)?.wait()?;
        // Its ranks may not be there yet.
        let answer = if ended.status.code() == Some(0) { parsed(&ended)? } else { Value::Null };
        let told = lines(case, &answer)?;
        if told == TOLD {
            // By the nodes' services, which stop nobody.
            let threads = answer["threads"].as_array().ok_or("no threads")?;
            assert!(
                threads.iter().all(|thread| ["copied", "sampled"].map(Some).contains(&thread["way"].as_str())),
                "{answer}"
            );
            break;
        }
        assert!(Instant::now() < until, "{told:?}: {}\n{:?}", ended.printed(), job.output());
    }
    slurm.asked("n0", ["scancel", &number])?;
    drop(job);
    no_job(slurm)
}

/// A node that is lost is named, and what is left is observed.
fn lost(slurm: &Slurm, mpi: Mpi) -> Result<(), Failed> {
    let job = Job::builder(mpi, program::RING).ranks(4).args(["20"]).gates(&["start", "2"]).truth(true);
    let mut job = by_srun(slurm, mpi, job)?.spawn()?;
    job.wait_for_gate("start")?;
    let mut profiler = client(slurm, &["--json", "--interval", "100ms"], &number(slurm)?)?;
    profiler.wait_for_processes(4)?;
    job.open_gate("start")?;
    job.wait_for_gate("2")?;
    let truth = job.snapshot()?;
    // Until that much has come from there.
    profiler.wait_for_output_with("\"host\":\"n2\"")?;
    slurm.kill("n2")?;
    // Slurm itself may notice minutes later.
    profiler.wait_for("mpiprobe: n2: silent: nothing has come from there for ")?;
    kill_process(entered(&profiler)?, Signal::INT)?;
    let ended = profiler.wait()?;
    let profile = ended.profile()?;
    assert!(!profile.complete && profile.incomplete_because.join("\n").contains("node n2 is silent"), "{ended:?}");
    for rank in [0, 1] {
        let row = profile.rank(rank).ok_or_else(|| ended.printed())?;
        expect_row(row, &truth.ranks[&rank], None, &functions("default")?);
    }
    assert_eq!(profile.ranks.len(), 4, "{}", ended.printed());
    Ok(())
}
