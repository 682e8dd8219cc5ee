//! What cannot be counted: the job runs as if nothing were, and one line says what is missing.
//!
//! Invariant JOB-RUNS.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::profiler::{Copy, binary};
use mpiprobe_tests::{Language, Mpi, Requirement, compile, copy_executable, program, requirement};
use tempfile::TempDir;

use crate::is_debians;

/// Whoever owns nothing (`nobody`).
const USER: u32 = 65534;

pub(crate) fn general_tests() -> Vec<Trial> {
    let compiled = |name: &str, test: fn() -> Result<(), Failed>| {
        requirement::trial(format!("refusals::{name}"), &[Requirement::Command("gcc")], test)
    };
    vec![
        requirement::trial("refusals::a_program_without_mpi_runs_as_it_is", &[], no_mpi),
        compiled("mpi_that_is_linked_statically_is_said_to_be_for_ebpf", linked_statically),
    ]
}

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    if !is_debians(mpi) {
        return Vec::new();
    }
    let needs = [Requirement::Mpi(mpi), Requirement::Language(mpi, Language::C), Requirement::Root];
    let root = |name: &str, test: fn(Mpi) -> Result<(), Failed>| {
        requirement::trial(format!("{}::{name}", mpi.id()), &needs, move || test(mpi))
    };
    let mut tests = vec![
        root("a_directory_that_cannot_be_written_to", unwritable),
        root("a_directory_that_cannot_be_made", impossible),
        root("a_full_disk", full_disk),
        root("a_full_place_for_tables", full_runtime_directory),
        root("full_shared_memory", full_shared_memory),
        root("tables_of_killed_runs_are_removed", stale),
        // Invariant EVERYBODY-OR-SAID.
        root("a_rank_that_has_lost_the_wrapper", lost_by_a_script),
    ];
    // Open MPI's launcher does not speak with ranks that have become another user's, wrapped or not.
    if mpi == Mpi::Mpich {
        tests.push(root("a_set_user_id_program", set_user_id));
    }
    tests
}

fn run(arguments: &[&str]) -> Result<Output, Failed> {
    Ok(Command::new(binary()?).args(["run", "--engine", "wrapper"]).args(arguments).output()?)
}

/// What mpiprobe, in or outside the job, has said besides its choice of engine.
fn said(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines = text.lines().filter_map(|line| line.strip_prefix("mpiprobe: "));
    lines.filter(|line| !line.starts_with("engine ")).map(str::to_owned).collect()
}

fn no_mpi() -> Result<(), Failed> {
    let output = run(&["--", "sh", "-c", "echo out; exit 7"])?;
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(7), b"out\n".as_slice()), "{output:?}");
    assert!(matches!(said(&output).as_slice(), [line] if line.contains("it does not use MPI")), "{output:?}");
    let profile = String::from_utf8_lossy(&output.stderr);
    assert!(profile.contains("INCOMPLETE: nothing was counted") && !profile.contains("Functions"), "{profile}");
    Ok(())
}

fn linked_statically() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("no_mpi");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/no_mpi.c");
    let compiled = Command::new("gcc").arg("-static").arg(source).arg("-o").arg(&program).status()?;
    assert!(compiled.success());
    let output = run(&["--", program.to_str().ok_or("no text")?])?;
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), b"3 calls\n".as_slice()), "{output:?}");
    let said = said(&output);
    assert!(matches!(said.as_slice(), [line] if line.contains("statically") && line.contains("eBPF")), "{output:?}");
    Ok(())
}

/// A ring of two ranks, started by a user in a directory of his own.
struct Ring {
    mpi: Mpi,
    program: PathBuf,
    copy: Copy,
    home: TempDir,
}

impl Ring {
    fn new(mpi: Mpi) -> Result<Self, Failed> {
        let (copy, home) = (Copy::new()?, tempfile::tempdir()?);
        let program = home.path().join("ring");
        copy_executable(&compile::executable(mpi, program::RING)?, &program)?;
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755))?;
        Ok(Self { mpi, program, copy, home })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// `mpiprobe run OPTIONS -- mpirun -n 2 ring 5`.
    fn command(&self, options: &[&OsStr]) -> Vec<OsString> {
        let mut command: Vec<OsString> = vec![self.copy.path().into(), "run".into(), "--json".into()];
        command.extend(["--engine".into(), "wrapper".into(), "-o".into(), self.path("profile").into()]);
        command.extend(options.iter().map(OsString::from));
        command.push("--".into());
        command.extend(self.bare());
        command
    }

    /// `mpirun -n 2 ring 5`.
    fn bare(&self) -> Vec<OsString> {
        let mut command: Vec<OsString> = vec![self.mpi.launcher().into()];
        command.extend(self.mpi.launcher_arguments(2, self.home.path(), None));
        command.extend([self.program.clone().into(), "5".into()]);
        command
    }

    fn start(&self, user: u32, command: &[OsString]) -> Result<Output, Failed> {
        let (program, arguments) = command.split_first().ok_or("no command")?;
        chown(self.home.path(), Some(user), Some(user))?;
        // None is overwritten.
        let _ = fs::remove_file(self.path("profile"));
        let mut command = Command::new(program);
        command.args(arguments).uid(user).gid(user).current_dir("/").env("HOME", self.home.path());
        let output = command.env_remove("XDG_RUNTIME_DIR").env_remove("XDG_CACHE_HOME").output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("all messages correct"), "{output:?}");
        Ok(output)
    }

    /// The same as root, where a file system of so many bytes is at `place`.
    fn start_with_small(&self, place: &Path, size: &str, options: &[&OsStr]) -> Result<Output, Failed> {
        let script = r#"mount -t tmpfs -o size="$1",mode=700 none "$2" && shift 2 && exec "$@""#;
        let mut command: Vec<OsString> = ["unshare", "--mount", "sh", "-c", script, "sh", size].map(Into::into).into();
        command.push(place.into());
        command.extend(self.command(options));
        self.start(0, &command)
    }
}

fn unwritable(mpi: Mpi) -> Result<(), Failed> {
    let ring = Ring::new(mpi)?;
    let place = tempfile::tempdir()?;
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755))?;
    let output = ring.start(USER, &ring.command(&["--output".as_ref(), place.path().as_os_str()]))?;
    let said_by_run = said(&output);
    assert!(
        matches!(said_by_run.as_slice(), [line] if line.contains("nothing of the command is counted")),
        "{output:?}"
    );

    // Where no mpiprobe is there to see it, the library itself says so.
    let library = ring
        .copy
        .command(USER, ["wrapper-path"])
        .env("HOME", ring.home.path())
        .env_remove("XDG_CACHE_HOME")
        .output()?;
    let library = String::from_utf8(library.stdout)?;
    let mut command: Vec<OsString> = vec!["env".into()];
    let mut place_variable = OsString::from("MPIPROBE_OUTPUT=");
    place_variable.push(place.path());
    command.push(place_variable);
    command.push(mpi.launcher().into());
    command.extend(mpi.launcher_arguments(2, ring.home.path(), Some(Path::new(library.trim()))));
    command.extend([ring.program.clone().into(), "5".into()]);
    let output = ring.start(USER, &command)?;
    assert!(
        matches!(said(&output).as_slice(), [line] if line.contains("not counted") && line.contains("not permitted")),
        "{output:?}"
    );
    Ok(())
}

fn impossible(mpi: Mpi) -> Result<(), Failed> {
    let ring = Ring::new(mpi)?;
    let output = ring.start(0, &ring.command(&["--output".as_ref(), "/proc/nowhere".as_ref()]))?;
    assert!(
        matches!(said(&output).as_slice(), [line] if line.contains("nothing of the command is counted")),
        "{output:?}"
    );
    Ok(())
}

/// From no room at all to too little: writing to a page without room behind it would be the end of the job.
/// Invariant ROOM-FIRST.
fn full_disk(mpi: Mpi) -> Result<(), Failed> {
    let ring = Ring::new(mpi)?;
    let place = tempfile::tempdir()?;
    for size in ["4k", "64k", "128k", "256k", "512k", "1m"] {
        let output = ring.start_with_small(place.path(), size, &["--output".as_ref(), place.path().as_os_str()])?;
        let profile: serde_json::Value = serde_json::from_slice(&fs::read(ring.path("profile"))?)?;
        let calls = profile.pointer("/totals/calls").and_then(serde_json::Value::as_u64);
        let said = said(&output);
        let is_missed = said.iter().any(|line| line.contains("no space left on the device"));
        let is_incomplete = profile.get("complete") == Some(&false.into());
        // Each of the two has its tables, or it is said that it has none; what had no room in them was counted as lost.
        let ranks = profile.get("ranks").and_then(serde_json::Value::as_array).map_or(0, Vec::len);
        assert!(ranks == 2 || is_missed || is_incomplete, "{size}: {ranks} ranks, {calls:?} calls, {output:?}");
        assert!(said.iter().filter(|line| line.contains("no space")).count() <= 1, "{size}: {output:?}");
        assert!(size != "4k" || (is_missed && ranks == 0), "{size}: {ranks} ranks, {output:?}");
    }
    Ok(())
}

/// The tables go to the next place that has room.
fn full_runtime_directory(mpi: Mpi) -> Result<(), Failed> {
    let ring = Ring::new(mpi)?;
    let place = tempfile::tempdir()?;
    let mut command: Vec<OsString> = vec!["env".into()];
    let mut variable = OsString::from("XDG_RUNTIME_DIR=");
    variable.push(place.path());
    command.push(variable);
    command.extend(ring.command(&[]));
    let script = r#"mount -t tmpfs -o size=32k,mode=700 none "$1" && shift && exec "$@""#;
    let mut whole: Vec<OsString> = ["unshare", "--mount", "sh", "-c", script, "sh"].map(Into::into).into();
    whole.push(place.path().into());
    whole.extend(command);
    let output = ring.start(0, &whole)?;
    let profile: serde_json::Value = serde_json::from_slice(&fs::read(ring.path("profile"))?)?;
    assert_eq!(profile.get("complete"), Some(&true.into()), "{output:?}");
    assert_eq!(profile.get("ranks").and_then(serde_json::Value::as_array).map(Vec::len), Some(2));
    Ok(())
}

/// A script on the way takes the library out of the environment of one of two ranks.
fn lost_by_a_script(mpi: Mpi) -> Result<(), Failed> {
    let ring = Ring::new(mpi)?;
    let script = ring.path("script");
    fs::write(&script, "#!/bin/sh\n[ \"${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\" = 1 ] && unset LD_PRELOAD\nexec \"$@\"\n")?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    let mut command = ring.command(&[]);
    let program = command.iter().position(|argument| *argument == ring.program).ok_or("no program")?;
    command.insert(program, script.into());
    let output = ring.start(0, &command)?;
    let profile: serde_json::Value = serde_json::from_slice(&fs::read(ring.path("profile"))?)?;
    assert_eq!(profile.get("complete"), Some(&false.into()), "{profile}\n{output:?}");
    let why = profile.get("incomplete_because").map(ToString::to_string).unwrap_or_default();
    assert!(why.contains("1 of 2 ranks") && why.contains("(rank 1)"), "{why}");
    Ok(())
}

/// Not a byte is left in /dev/shm. Whether MPI can do without is its own affair: the job ends as it does without the wrapper.
fn full_shared_memory(mpi: Mpi) -> Result<(), Failed> {
    let ring = Ring::new(mpi)?;
    let script = r#"mount -t tmpfs -o size=64k none /dev/shm && head -c 64k /dev/zero >/dev/shm/full && exec "$@""#;
    let run = |command: Vec<OsString>| -> Result<Output, Failed> {
        let mut whole = Command::new("unshare");
        whole.args(["--mount", "sh", "-c", script, "sh"]).args(command).env("HOME", ring.home.path());
        Ok(whole.env_remove("XDG_RUNTIME_DIR").env_remove("XDG_CACHE_HOME").output()?)
    };
    let is_correct = |output: &Output| String::from_utf8_lossy(&output.stdout).contains("all messages correct");
    let (bare, wrapped) = (run(ring.bare())?, run(ring.command(&[]))?);
    // A launcher ends with the status of the rank that it hears of first: one that has failed, or one that it has ended for that.
    let ended = |output: &Output| {
        let said = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat();
        (output.status.success(), said.contains("signal 7"))
    };
    assert_eq!(ended(&bare), ended(&wrapped), "{bare:?}\n{wrapped:?}");
    assert_eq!(is_correct(&bare), is_correct(&wrapped), "{bare:?}\n{wrapped:?}");
    if is_correct(&bare) {
        let profile: serde_json::Value = serde_json::from_slice(&fs::read(ring.path("profile"))?)?;
        assert_eq!(profile.get("complete"), Some(&true.into()), "{wrapped:?}");
        assert_eq!(profile.get("ranks").and_then(serde_json::Value::as_array).map(Vec::len), Some(2));
    }
    Ok(())
}

/// The dynamic linker does not load the library into it.
fn set_user_id(mpi: Mpi) -> Result<(), Failed> {
    let ring = Ring::new(mpi)?;
    fs::set_permissions(&ring.program, fs::Permissions::from_mode(0o4755))?;
    let output = ring.start(USER, &ring.command(&[]))?;
    assert!(said(&output).iter().any(|line| line.contains("set-user-ID")), "{output:?}");
    Ok(())
}

/// What a run that was killed has left goes when it is a day old, and not before.
fn stale(mpi: Mpi) -> Result<(), Failed> {
    let ring = Ring::new(mpi)?;
    let runtime = tempfile::tempdir()?;
    let abandoned = runtime.path().join("mpiprobe/run-1-1");
    fs::create_dir_all(&abandoned)?;
    fs::set_permissions(abandoned.parent().ok_or("no parent")?, fs::Permissions::from_mode(0o700))?;
    let old = abandoned.join(format!("node-{}-1.mpiprobe", i32::MAX));
    let young = abandoned.join(format!("node-{}-2.mpiprobe", i32::MAX));
    fs::write(&young, "")?;
    let file = fs::File::create(&old)?;
    file.set_times(fs::FileTimes::new().set_modified(std::time::SystemTime::UNIX_EPOCH))?;
    let mut command: Vec<OsString> = vec!["env".into()];
    let mut variable = OsString::from("XDG_RUNTIME_DIR=");
    variable.push(runtime.path());
    command.push(variable);
    command.extend(ring.command(&[]));
    ring.start(0, &command)?;
    assert!(!old.exists() && young.exists());
    Ok(())
}
