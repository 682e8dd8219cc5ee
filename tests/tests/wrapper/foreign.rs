//! Whatever a job starts, it starts: programs of other C libraries, with sanitizers, and such as leave calls, confine themselves or lose
//! their tables. They answer as they do without the wrapper.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::profiler::binary;
use mpiprobe_tests::{Job, Language, Mpi, Profile, Requirement, program, requirement};
use tempfile::TempDir;

use crate::{is_debians, trial};

pub(crate) fn general_tests() -> Vec<Trial> {
    let of = |name: &str, compiler, options: &'static [&'static str]| {
        let needs = [Requirement::Command(compiler)];
        requirement::trial(format!("foreign::{name}"), &needs, move || starts(compiler, options))
    };
    vec![
        of("a_program_with_another_c_library", "musl-gcc", &[]),
        of("address_sanitizer", "gcc", &["-fsanitize=address"]),
        of("thread_sanitizer", "gcc", &["-fsanitize=thread"]),
        of("leak_and_undefined_behaviour_sanitizers", "gcc", &["-fsanitize=leak,undefined"]),
        requirement::trial("foreign::more_processes_than_open_files", &[Requirement::Command("gcc")], many),
    ]
}

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    if !is_debians(mpi) {
        return Vec::new();
    }
    let c = |name: &str, test: fn(Mpi) -> Result<(), Failed>| trial(mpi, Language::C, name, move || test(mpi));
    vec![
        c("calls_after_one_that_was_left_are_counted", left),
        c("callbacks_on_other_stacks_are_inside_their_call", stacks),
        c("calls_that_return_in_another_thread_are_a_counted_loss", migrates),
        c("a_confined_program_is_not_killed", confined),
        c("tables_that_are_cut_short_kill_nobody", cut_short),
        c("a_bus_error_of_the_program_is_its_own", bus_error),
    ]
}

/// `programs/no_mpi.c`, compiled in a way of its own.
fn compiled(compiler: &str, options: &[&str]) -> Result<(TempDir, PathBuf), Failed> {
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("no_mpi");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/no_mpi.c");
    let output = Command::new(compiler).args(options).arg(source).arg("-o").arg(&program).output()?;
    assert!(output.status.success(), "{output:?}");
    Ok((folder, program))
}

fn run(arguments: &[&str]) -> Result<Output, Failed> {
    Ok(Command::new(binary()?).args(["run", "--engine", "wrapper", "--"]).args(arguments).output()?)
}

/// As the command itself, by a script that knows nothing of it, and with options that the user has set.
/// Invariant ANY-LIBC.
fn starts(compiler: &str, options: &[&str]) -> Result<(), Failed> {
    let (_folder, program) = compiled(compiler, options)?;
    let program = program.to_str().ok_or("no text")?;
    let bare = Command::new(program).output()?;
    assert!(bare.status.success(), "{bare:?}");
    for command in
        [vec![program], vec!["sh", "-c", "exec \"$0\"", program], vec!["env", "ASAN_OPTIONS=color=never", program]]
    {
        let wrapped = run(&command)?;
        assert_eq!((wrapped.status, &wrapped.stdout), (bare.status, &bare.stdout), "{command:?}: {wrapped:?}");
    }
    Ok(())
}

/// `stays MODE` with everything counted.
fn odd(mpi: Mpi, mode: &str) -> Result<(Job, Profile), Failed> {
    let job = Job::builder(mpi, program::STAYS).ranks(2).args([mode]);
    let mut job = job.profiled(["--functions", "all"])?.spawn()?;
    let finished = job.wait()?.success()?;
    assert_eq!(finished.stdout.matches("stays: as it should be").count(), 2, "{finished:?}");
    let profile = job.profile()?;
    Ok((job, profile))
}

fn expect(profile: &Profile, function: &str, calls: u64) {
    for rank in &profile.ranks {
        assert_eq!(rank.completed().get(function).copied().unwrap_or(0), calls, "{function}: {rank:?}");
    }
}

/// Invariant LEFT-CALLS.
fn left(mpi: Mpi) -> Result<(), Failed> {
    let (_job, profile) = odd(mpi, "left")?;
    assert_eq!(profile.lost().into_iter().collect::<Vec<_>>(), [("entries_without_return", 2)]);
    expect(&profile, "MPI_Send", 0);
    expect(&profile, "MPI_Allreduce", 200);
    expect(&profile, "MPI_Finalize", 1);
    Ok(())
}

/// Invariant LEFT-CALLS.
fn stacks(mpi: Mpi) -> Result<(), Failed> {
    for mode in ["lower-stack", "higher-stack"] {
        let (_job, profile) = odd(mpi, mode)?;
        assert!(profile.lost().is_empty(), "{mode}: {:?}", profile.lost());
        expect(&profile, "MPI_Comm_delete_attr", 1);
        expect(&profile, "MPI_Comm_size", 0);
        expect(&profile, "MPI_Allreduce", 200);
        assert!(profile.ranks.iter().all(|rank| rank.inner_calls >= 1), "{mode}: {profile:?}");
    }
    Ok(())
}

/// What is between the entry in one thread and the return in another one belongs to neither: the profile says that it is not whole.
fn migrates(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::MIGRATES).ranks(2).profiled(["--functions", "all"])?.spawn()?;
    job.wait()?.success()?;
    let profile = job.profile()?;
    assert!(!profile.complete, "{profile:?}");
    assert_eq!(profile.lost().into_iter().collect::<Vec<_>>(), [("entries_without_return", 20)]);
    expect(&profile, "MPI_Comm_delete_attr", 0);
    expect(&profile, "MPI_Comm_set_attr", 10);
    expect(&profile, "MPI_Barrier", 1);
    expect(&profile, "MPI_Finalize", 1);
    Ok(())
}

/// Invariant NO-NEW-CALLS.
fn confined(mpi: Mpi) -> Result<(), Failed> {
    let (_job, profile) = odd(mpi, "confined")?;
    assert!(profile.complete, "{:?}", profile.incomplete_because);
    expect(&profile, "MPI_Comm_dup", 103);
    expect(&profile, "MPI_Irecv", 500);
    expect(&profile, "MPI_Allreduce", 103);
    Ok(())
}

/// The profile says that there are none; the job ends as it would have.
/// Invariant ROOM-FIRST.
fn cut_short(mpi: Mpi) -> Result<(), Failed> {
    let (_job, profile) = odd(mpi, "cut-short")?;
    assert!(!profile.complete && profile.ranks.is_empty(), "{profile:?}");
    Ok(())
}

fn bus_error(mpi: Mpi) -> Result<(), Failed> {
    let (_job, profile) = odd(mpi, "bus-error")?;
    assert!(profile.complete, "{:?}", profile.incomplete_because);
    expect(&profile, "MPI_Allreduce", 200);
    Ok(())
}

/// More processes than files may be open, one after the other. What they leave is gone before the job has ended, which waits for that.
/// Invariant FEW-FILES.
fn many() -> Result<(), Failed> {
    const PROCESSES: u64 = 300;
    let place = tempfile::tempdir()?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/odd/brief.c");
    let file = |name: &str| place.path().join(name);
    let (library, brief, profile) = (file("libbrief.so"), file("brief"), file("profile"));
    let gcc = |arguments: &[&OsStr]| Command::new("gcc").arg(&source).args(arguments).output();
    let built = [
        gcc(&["-DLIBRARY".as_ref(), "-shared".as_ref(), "-fPIC".as_ref(), "-o".as_ref(), library.as_ref()])?,
        gcc(&["-o".as_ref(), brief.as_ref(), library.as_ref()])?,
    ];
    assert!(built.iter().all(|built| built.status.success()), "{built:?}");
    let script = format!(
        "i=0; while [ $i -lt {PROCESSES} ]; do \"$0\" || exit 1; i=$((i + 1)); done
         while [ -n \"$(ls \"$MPIPROBE_OUTPUT\")\" ]; do sleep 0.01; done; exit 7"
    );
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 48; exec \"$@\"", "sh"])
        .arg(binary()?)
        .args(["run", "--engine", "wrapper", "--json", "--profile"])
        .arg(&profile)
        .args(["--", "sh", "-c", &script])
        .arg(&brief)
        .output()?;
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let profile: serde_json::Value = serde_json::from_slice(&fs::read(profile)?)?;
    let ranks = profile.get("ranks").and_then(serde_json::Value::as_array).map_or(0, Vec::len);
    let calls = profile.pointer("/totals/calls").and_then(serde_json::Value::as_u64);
    assert_eq!((ranks as u64, calls), (PROCESSES, Some(5 * PROCESSES)), "{output:?}");
    assert_eq!(profile.get("complete"), Some(&true.into()), "{output:?}");
    Ok(())
}
