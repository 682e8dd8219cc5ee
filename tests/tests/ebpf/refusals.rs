//! What cannot be observed is refused with one message that tells why and what to do, with the documented exit status, and
//! before anything is attached.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, KernelObjects, Language, Mpi, Profiler, Requirement, copy_executable, program, requirement};
use tempfile::TempDir;

use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        requirement::trial(
            format!("{}::a_wrong_name_is_answered_with_the_nearest", mpi.id()),
            // Jobs of others have names that are nearly the same.
            &[Requirement::Bpf, Requirement::Mpi(mpi), Requirement::QuietMachine],
            move || wrong_name(mpi),
        ),
        trial(mpi, Language::C, "a_launcher_is_no_target", launcher),
        // Invariant ALL-OR-NOTHING.
        trial(mpi, Language::C, "targets_that_end_meanwhile", end_meanwhile),
    ]
}

/// Those that need no MPI.
pub(crate) fn general_tests() -> Vec<Trial> {
    let trial = |name: &str, test: fn() -> Result<(), Failed>| requirement::trial(name, &[Requirement::Bpf], test);
    vec![
        trial("a_program_without_mpi_is_no_target", not_mpi),
        trial("a_32_bit_process_is_refused", foreign),
        trial("an_unknown_function_is_answered_with_the_nearest", unknown_function),
        trial("a_pid_of_nobody_is_refused", no_process),
    ]
}

/// Runs mpiprobe, which must fail with this status; returns its message.
fn refused(status: i32, arguments: &[&str]) -> Result<String, Failed> {
    let ended = Profiler::start(arguments)?.wait()?;
    assert_eq!((ended.status.code(), ended.stdout.len()), (Some(status), 0), "{}", ended.printed());
    Ok(ended.stderr.join("\n"))
}

fn wrong_name(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::RING).ranks(2).args(["10"]).gates(&["1"]).own_name().spawn()?;
    job.wait_for_gate("1")?;
    let wrong = format!("{}x", job.called());
    let message = refused(1, &["--pid-of", &wrong])?;
    assert!(message.contains(&format!("no process is called \"{wrong}\"")), "{message}");
    assert!(message.contains(&format!("did you mean {}?", job.called())), "{message}");
    job.open_gate("1")?;
    job.wait()?.success()?;
    Ok(())
}

fn launcher(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::RING).ranks(2).args(["10"]).gates(&["1"]).own_name().spawn()?;
    job.wait_for_gate("1")?;
    let message = refused(1, &["--pid", &job.launcher_pid().to_string()])?;
    assert!(message.contains("starts MPI processes but is none") && message.contains(job.called()), "{message}");
    job.open_gate("1")?;
    job.wait()?.success()?;
    Ok(())
}

/// The job is killed at different stages of mpiprobe's start: there is a profile or a message, never a hang or a crash, and
/// nothing stays.
fn end_meanwhile(mpi: Mpi) -> Result<(), Failed> {
    for stage in ["at once", "loading", "attached"] {
        let mut job = Job::builder(mpi, program::RING).ranks(2).args(["10"]).gates(&["1"]).own_name().spawn()?;
        job.wait_for_gate("1")?;
        let mut profiler = Profiler::start(["--json", "--pid-of", job.called()])?;
        let mut objects = KernelObjects::default();
        match stage {
            "loading" => {
                // Ends, because mpiprobe does.
                while let (true, Ok(now)) = (objects.is_empty(), KernelObjects::of(profiler.pid())) {
                    objects = now;
                }
            }
            "attached" => {
                profiler.wait_for("mpiprobe: attached ")?;
                objects = KernelObjects::of(profiler.pid())?;
            }
            _ => {}
        }
        drop(job);
        let ended = profiler.wait()?;
        match ended.status.code() {
            Some(0) => drop(ended.profile()?),
            Some(1) => assert!(ended.stderr.iter().any(|line| line.starts_with("mpiprobe: ")), "{}", ended.printed()),
            _ => return Err(format!("{stage}: {}", ended.printed()).into()),
        }
        objects.wait_until_gone()?;
    }
    Ok(())
}

/// A process that waits until it is dropped.
struct Idle {
    child: Child,
    _files: TempDir,
}

impl Idle {
    fn start(program: &Path, name: &str) -> Result<Self, Failed> {
        let files = tempfile::tempdir()?;
        let copy = files.path().join(name);
        copy_executable(program, &copy)?;
        let child = Command::new(copy).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        Ok(Self { child, _files: files })
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn not_mpi() -> Result<(), Failed> {
    let name = format!("idle{:x}", std::process::id());
    let idle = Idle::start(Path::new("/bin/cat"), &name)?;
    for arguments in [["--pid-of", &name], ["--pid", &idle.child.id().to_string()]] {
        let message = refused(1, &arguments)?;
        assert!(message.contains("does not use MPI") && message.contains("--wait"), "{message}");
    }
    Ok(())
}

/// A 32-bit program that defines MPI's functions, without any library: this machine need not have 32-bit ones.
fn foreign() -> Result<(), Failed> {
    const SOURCE: &str =
        "int MPI_Init(void) { return 0; }\n int MPI_Send(void) { return 0; }\n int PMPI_Init(void) { return 0; }\n
        int PMPI_Send(void) { return 0; }\n
        void _start(void) { for (;;) __asm__ volatile(\"int $0x80\" : : \"a\"(29)); /* pause() */ }\n";
    let files = tempfile::tempdir()?;
    let (source, program): (PathBuf, PathBuf) = (files.path().join("foreign.c"), files.path().join("foreign"));
    std::fs::write(&source, SOURCE)?;
    let options = ["-m32", "-nostdlib", "-static", "-fno-pic", "-no-pie", "-fno-stack-protector", "-o"];
    let compiler = Command::new("gcc").args(options).args([&program, &source]).output()?;
    assert!(compiler.status.success(), "{}", String::from_utf8_lossy(&compiler.stderr));
    let name = format!("foreign{:x}", std::process::id());
    let idle = Idle::start(&program, &name)?;
    for arguments in [["--pid-of", &name], ["--pid", &idle.child.id().to_string()]] {
        let message = refused(1, &arguments)?;
        assert!(message.contains("32-bit"), "{message}");
    }
    Ok(())
}

fn unknown_function() -> Result<(), Failed> {
    let message = refused(2, &["--pid", "1", "--functions", "MPI_Sendd"])?;
    assert!(message.contains("MPI_Sendd") && message.contains("MPI_Send"), "{message}");
    Ok(())
}

fn no_process() -> Result<(), Failed> {
    // Above the largest pid that any Linux gives.
    let message = refused(1, &["--pid", "4194305"])?;
    assert!(message.contains("there is no process 4194305"), "{message}");
    Ok(())
}
