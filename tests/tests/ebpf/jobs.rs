//! Several jobs at once: which one is meant, and that the others are left alone.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Ended, Job, Language, Mpi, Profiler, changed_bytes, program};

use crate::check::{complete, expect_counts, expect_rows, functions};
use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "two_jobs_of_one_name_ask_for_a_choice", choose),
        trial(mpi, Language::C, "one_job_of_two_is_chosen", chosen),
        trial(mpi, Language::C, "all_jobs_are_observed", all),
        trial(mpi, Language::C, "probes_for_one_process_leave_others_alone", scoped),
    ]
}

/// Two jobs of one name and one library, which stand at gate 1.
fn two(mpi: Mpi) -> Result<[Job; 2], Failed> {
    let builder = || Job::builder(mpi, program::RING).ranks(2).args(["10"]).gates(&["1"]).truth(true);
    let mut first = builder().own_name().own_library().spawn()?;
    let directory = first.library().and_then(|library| library.parent()).ok_or("no library of its own")?.to_owned();
    let mut second = builder().called(first.called()).env("LD_LIBRARY_PATH", directory).spawn()?;
    first.wait_for_gate("1")?;
    second.wait_for_gate("1")?;
    Ok([first, second])
}

/// The id of a job as `mpiprobe ps` has it.
fn id(job: &mut Job) -> Result<String, Failed> {
    let ended = Profiler::start(["ps", "--json"])?.wait()?;
    let list: serde_json::Value = serde_json::from_str(&ended.stdout.join("\n"))?;
    let pid = job.ranks()?.into_values().next().ok_or("no rank")?;
    let jobs = list.get("jobs").and_then(|jobs| jobs.as_array()).ok_or("no jobs")?;
    let has = |job: &&serde_json::Value| {
        let ranks = job.get("ranks").and_then(|ranks| ranks.as_array());
        ranks.is_some_and(|ranks| {
            ranks.iter().any(|rank| rank.get("pid").and_then(serde_json::Value::as_u64) == Some(pid.into()))
        })
    };
    let id = jobs.iter().find(has).and_then(|job| job.get("id")?.as_str());
    Ok(id.ok_or_else(|| format!("process {pid} is not listed: {list}"))?.to_owned())
}

fn finish(job: &mut Job) -> Result<(), Failed> {
    job.open_gate("1")?;
    job.wait()?.success()?;
    Ok(())
}

fn choose(mpi: Mpi) -> Result<(), Failed> {
    let [mut first, mut second] = two(mpi)?;
    let ended = Profiler::start(["--pid-of", first.called()])?.wait()?;
    let message = ended.stderr.join("\n");
    assert_eq!((ended.status.code(), ended.stdout.len()), (Some(1), 0), "{message}");
    assert!(
        message.contains("runs in 2 jobs") && message.contains("--job") && message.contains("--all-jobs"),
        "{message}"
    );
    for job in [&mut first, &mut second] {
        let id = id(job)?;
        assert!(message.contains(&id), "{id} is not in {message}");
    }
    Ok(())
}

fn chosen(mpi: Mpi) -> Result<(), Failed> {
    let [mut first, mut second] = two(mpi)?;
    let before = second.snapshot()?;
    let chosen = id(&mut second)?;
    let profiler = Profiler::observe(["--pid-of", first.called(), "--job", &chosen])?;
    finish(&mut first)?;
    finish(&mut second)?;
    let profile = complete(&profiler.wait()?)?;
    assert_eq!(profile.jobs.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), [chosen]);
    expect_counts(&profile, &second.snapshot()?, Some(&before), &functions("default")?)
}

fn all(mpi: Mpi) -> Result<(), Failed> {
    let mut jobs = two(mpi)?;
    let before = [jobs[0].snapshot()?, jobs[1].snapshot()?];
    let profiler = Profiler::observe(["--pid-of", jobs[0].called(), "--all-jobs"])?;
    for job in &mut jobs {
        finish(job)?;
    }
    let profile = complete(&profiler.wait()?)?;
    for (job, before) in jobs.iter().zip(&before) {
        expect_rows(&profile, &job.snapshot()?, Some(before), &functions("default")?)?;
    }
    assert_eq!((profile.ranks.len(), profile.jobs.len()), (4, 2), "{profile:?}");
    Ok(())
}

/// One process is named while three others use the same library: they get no probe, where the kernel would arm return probes in them.
fn scoped(mpi: Mpi) -> Result<(), Failed> {
    let [mut first, mut second] = two(mpi)?;
    let library = first.library().ok_or("no library of its own")?.to_owned();
    let before = first.snapshot()?;
    let ranks = first.ranks()?;
    let named = *ranks.get(&1).ok_or("no rank 1")?;
    let profiler = Profiler::observe(["--attach", "multi", "--pid", &named.to_string()])?;
    for (pid, is_probed) in
        ranks.into_values().map(|pid| (pid, pid == named)).chain(second.ranks()?.into_values().map(|pid| (pid, false)))
    {
        assert_eq!(changed_bytes(pid, &library)? > 0, is_probed, "process {pid}; {named} was named");
    }
    finish(&mut first)?;
    let ended: Ended = profiler.wait()?;
    finish(&mut second)?;
    let profile = complete(&ended)?;
    let mut truth = first.snapshot()?;
    truth.ranks.retain(|rank, _| *rank == 1);
    expect_counts(&profile, &truth, Some(&before), &functions("default")?)
}
