//! Recordings of real jobs: what was recorded is what was told, also if the recorder is killed.

use std::path::Path;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, Language, Mpi, Profiler, profiler::Ended, program};
use rustix::process::Signal;
use serde_json::Value;

use crate::{
    check::{complete, expect_counts, functions},
    trial,
};

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "a_recording_has_every_moment_and_all_counts", every_moment),
        trial(mpi, Language::C, "a_killed_recorder_leaves_what_it_has_recorded", killed),
        trial(mpi, Language::C, "no_recording_overwrites_a_file", no_overwriting),
    ]
}

fn view(file: &Path, options: &[&str]) -> Result<Ended, Failed> {
    let file = file.display().to_string();
    Ok(Profiler::start(["view", &file].iter().chain(options))?.wait()?)
}

/// The one line that was printed.
fn only(ended: &Ended) -> Result<&str, Failed> {
    match ended.stdout.as_slice() {
        [line] => Ok(line),
        _ => Err(ended.printed().into()),
    }
}

fn says(ended: &Ended, what: &str) -> bool {
    ended.stderr.iter().any(|line| line.contains(what))
}

/// The profile of a moment as JSON; the first is 1.
fn moment(file: &Path, number: usize) -> Result<Value, Failed> {
    let ended = view(file, &["--json", "--at", &format!("#{number}")])?;
    Ok(serde_json::from_str(only(&ended)?)?)
}

fn every_moment(mpi: Mpi) -> Result<(), Failed> {
    let mut job =
        Job::builder(mpi, program::RING).ranks(3).args(["20"]).gates(&["start"]).truth(true).own_name().spawn()?;
    job.wait_for_gate("start")?;
    let before = job.snapshot()?;
    let file = job.directory().join("job.rec");
    let recorded = file.display().to_string();
    let mut profiler =
        Profiler::start(["--json", "--interval", "50ms", "--record", &recorded, "--pid-of", job.called()])?;
    profiler.wait_for("mpiprobe: observing ")?;
    profiler.wait_for_output(2)?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    let ended = profiler.wait()?;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.printed());
    // The last one, without being asked for: all calls, exactly.
    let last = view(&file, &["--json"])?;
    assert_eq!(last.status.code(), Some(0), "{}", last.printed());
    // On a busy machine there may be moments for which the disk was too slow; it says how many.
    let skipped: usize = match last.stderr.as_slice() {
        [] => 0,
        [line] if line.contains("moments were not recorded: it was written too slowly") => {
            let number = line.split_whitespace().find_map(|word| word.parse().ok());
            number.ok_or_else(|| last.printed())?
        }
        _ => return Err(last.printed().into()),
    };
    let number_recorded = ended.stdout.len() - skipped;
    let mut told = ended.stdout.iter();
    for number in 1..=number_recorded {
        let recorded = moment(&file, number)?;
        let is_told = told.any(|line| serde_json::from_str::<Value>(line).is_ok_and(|line| line == recorded));
        assert!(is_told, "moment {number} is none of those told after the one before: {recorded}");
    }
    let beyond = view(&file, &["--json", "--at", &format!("#{}", number_recorded + 1)])?;
    assert!(says(&beyond, "there is no such moment"), "{}", beyond.printed());

    let mut wanted = functions("default")?;
    // What the program says by it is always heard.
    wanted.insert(mpiprobe_functions::by_name("MPI_Pcontrol").ok_or("not in the table")?);
    expect_counts(&complete(&last)?, &job.snapshot()?, Some(&before), &wanted)?;
    let text = view(&file, &["--plain"])?.stdout.join("\n");
    assert!(text.contains("until all targets had ended") && text.contains("MPI_Sendrecv"), "{text}");
    Ok(())
}

/// Invariant KEPT-MOMENTS.
fn killed(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::RING).ranks(2).args(["--forever"]).truth(true).own_name().spawn()?;
    job.wait_for_calls("MPI_Allreduce", 10)?;
    let file = job.directory().join("job.rec");
    let recorded = file.display().to_string();
    let mut profiler =
        Profiler::start(["--json", "--interval", "50ms", "--record", &recorded, "--pid-of", job.called()])?;
    profiler.wait_for_output(9)?;
    profiler.signal(Signal::KILL)?;
    let ended = profiler.wait()?;
    let last = view(&file, &["--json"])?;
    assert!(says(&last, "mpiprobe was killed, or records still"), "{}", last.printed());
    let profile: Value = serde_json::from_str(only(&last)?)?;
    assert!(profile.get("end").is_some_and(Value::is_null), "{}", last.printed());
    // At most two moments wait to be written, and one is being written.
    for (line, number) in ended.stdout.iter().zip(1..=7) {
        assert_eq!(moment(&file, number)?, serde_json::from_str::<Value>(line)?, "moment {number}");
    }
    job.stop()?;
    job.wait()?.success()?;
    Ok(())
}

fn no_overwriting(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::RING).ranks(2).args(["--forever"]).truth(true).own_name().spawn()?;
    job.wait_for_calls("MPI_Allreduce", 10)?;
    let file = job.directory().join("precious");
    std::fs::write(&file, "precious")?;
    let recorded = file.display().to_string();
    let ended = Profiler::start(["--json", "--record", &recorded, "--pid-of", job.called()])?.wait()?;
    assert_eq!((ended.status.code(), ended.stdout.len()), (Some(1), 0), "{}", ended.printed());
    assert!(says(&ended, "exists already"), "{}", ended.printed());
    assert_eq!(std::fs::read_to_string(&file)?, "precious");
    let foreign = view(&file, &["--json"])?;
    assert!(says(&foreign, "is neither a recording of mpiprobe"), "{}", foreign.printed());
    job.stop()?;
    job.wait()?.success()?;
    Ok(())
}
