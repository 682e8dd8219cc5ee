//! Each way of attaching counts the same, and leaves nothing behind.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, KernelObjects, Language, Mpi, Profiler, changed_bytes, program};

use crate::check::{complete, expect_counts, functions};
use crate::trial_with;

/// The option's value, its words in the profile, functions: detaching perf events takes 0.1 s for each.
const WAYS: [(&str, &str, &str); 3] = [
    ("session", "uprobe session link", "default"),
    ("multi", "uprobe multi links", "default"),
    ("perf-event", "perf-event uprobes", "MPI_Send,MPI_Recv,MPI_Waitall,MPI_Allreduce"),
];

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let test = |(way, words, selection): (&'static str, &'static str, &'static str)| {
        // Invariant TRY-DON'T-ASK.
        let name = format!("attached_by_{}_counts_exactly_and_leaves_nothing", way.replace('-', "_"));
        trial_with(mpi, Language::C, &name, move || attach_by(mpi, way, words, selection))
    };
    WAYS.into_iter().map(test).collect()
}

fn attach_by(mpi: Mpi, way: &str, words: &str, selection: &str) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::RING)
        .ranks(4)
        .gates(&["start", "3"])
        .truth(true)
        .own_name()
        .own_library()
        .spawn()?;
    job.wait_for_gate("start")?;
    let library = job.library().ok_or("no library of its own")?.to_owned();
    let pids: Vec<u32> = job.ranks()?.into_values().collect();
    for &pid in &pids {
        assert_eq!(changed_bytes(pid, &library)?, 0);
    }

    let profiler = Profiler::observe(["--pid-of", job.called(), "--attach", way, "--functions", selection])?;
    let objects = KernelObjects::of(profiler.pid())?;
    assert!(!objects.is_empty());
    let mut probed = Vec::new();
    for &pid in &pids {
        probed.push(changed_bytes(pid, &library)?);
    }
    job.open_gate("start")?;
    job.wait_for_gate("3")?;

    let ended = profiler.interrupt()?;
    objects.wait_until_gone()?;
    for &pid in &pids {
        assert_eq!(changed_bytes(pid, &library)?, 0, "a probe was left in process {pid}");
    }
    let profile = complete(&ended)?;
    assert_eq!((profile.engine.attached_by.as_str(), profile.end.as_deref()), (words, Some("interrupted")));
    let [library] = profile.engine.libraries.as_slice() else { return Err("not one library".into()) };
    assert!(probed.iter().all(|&places| places as u64 == library.functions), "{probed:?}, {}", library.functions);
    expect_counts(&profile, &job.snapshot()?, None, &functions(selection)?)?;

    job.open_gate("3")?;
    job.wait()?.success()?;
    Ok(())
}
