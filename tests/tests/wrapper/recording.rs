//! Recordings of jobs that count themselves.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, Language, Mpi, Profile, Profiler, profiler::Ended, program};
use serde_json::Value;

use crate::{
    check::{complete, expect_counts, functions},
    trial,
};

/// How long a job may take until its first moments are on disk.
const PATIENCE: Duration = Duration::from_mins(5);

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![trial(mpi, Language::C, "a_recording_ends_with_the_profile", move || ends_with_the_profile(mpi))]
}

fn view(file: &Path, number: Option<usize>) -> Result<Ended, Failed> {
    let mut arguments = vec!["view".into(), file.display().to_string(), "--json".into()];
    arguments.extend(number.into_iter().flat_map(|number| ["--at".into(), format!("#{number}")]));
    Ok(Profiler::start(arguments)?.wait()?)
}

fn profile(text: &str) -> Result<Profile, Failed> {
    Ok(serde_json::from_str(text)?)
}

fn ends_with_the_profile(mpi: Mpi) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("job.rec");
    let options = ["--interval".as_ref(), "20ms".as_ref(), "--record".as_ref(), file.as_os_str()];
    let mut job =
        Job::builder(mpi, program::RING).ranks(3).args(["20"]).gates(&["2"]).truth(true).profiled(options)?.spawn()?;
    job.wait_for_gate("2")?;
    // 3: a rank was making its tables at that moment.
    let is_there = |ended: &Ended| matches!(ended.status.code(), Some(0 | 3));
    let mut early = view(&file, Some(2))?;
    let until = Instant::now() + PATIENCE;
    while !is_there(&early) && Instant::now() < until {
        early = view(&file, Some(2))?;
    }
    assert!(is_there(&early), "nothing was recorded while the job ran: {}", early.printed());
    assert!(early.stderr.iter().any(|line| line.contains("killed, or records still")), "{}", early.printed());
    let early = profile(&early.stdout.concat())?;
    assert_eq!(early.end, None);
    job.open_gate("2")?;
    job.wait()?.success()?;

    let last = view(&file, None)?;
    // On a busy machine there may be moments for which the disk was too slow; it says so.
    let is_harmless = |line: &String| line.contains("were not recorded: it was written too slowly");
    assert!(last.status.code() == Some(0) && last.stderr.iter().all(is_harmless), "{}", last.printed());
    let text = std::fs::read_to_string(job.directory().join("profile.json"))?;
    let all: Value = serde_json::from_str(&text)?;
    assert_eq!(serde_json::from_str::<Value>(&last.stdout.concat())?, all);
    let calls = |profile: &Profile| profile.ranks.iter().map(|rank| rank.calls).sum::<u64>();
    assert!(calls(&profile(&text)?) > calls(&early), "{text}");
    expect_counts(&complete(&job)?, &job.snapshot()?, None, &functions("default")?)
}
