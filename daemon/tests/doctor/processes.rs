//! What it says of processes.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, Language, Mpi, Requirement, program, requirement};
use serde_json::json;

use crate::run::{MPIPROBE, Report};

pub(crate) fn tests() -> Vec<Trial> {
    let mut tests = vec![
        requirement::trial("a_process_without_mpi_cannot_be_observed", &[], without_mpi),
        requirement::trial("its_own_process_cannot_be_observed", &[], itself),
        requirement::trial("a_dead_process_cannot_be_observed", &[], dead),
        requirement::trial("nobody_may_not_look_into_a_process_of_root", &[Requirement::Root], of_root),
    ];
    tests.extend(Mpi::ALL.into_iter().map(|mpi| {
        let needs =
            [Requirement::Mpi(mpi), Requirement::Language(mpi, Language::C), Requirement::Root, Requirement::Bpf];
        requirement::trial(format!("{}::a_rank_can_be_observed", mpi.id()), &needs, move || rank(mpi))
    }));
    tests
}

/// Where Debian puts libraries.
const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu";

/// Sleeps until dropped.
struct Sleep(Child);

impl Sleep {
    fn start() -> Result<Self, Failed> {
        Ok(Self(Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn()?))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn without_mpi() -> Result<(), Failed> {
    let sleep = Sleep::start()?;
    let report = Report::of(&[&sleep.pid()])?;
    assert_eq!(report.status, 2);
    assert_eq!(report.verdict("mpi")?, "failed");
    assert!(report.finding("mpi")?.starts_with("it does not use MPI"), "{}", report.finding("mpi")?);
    assert!(report.fix("mpi")?.contains("--wait"), "{}", report.fix("mpi")?);
    assert_eq!(report.verdict("process")?, "ok");
    assert_eq!(report.verdict("access")?, "ok");
    assert_eq!(report.data("process")?["threads"], 1);
    Ok(())
}

fn itself() -> Result<(), Failed> {
    let report = Report::from(Command::new("sh").args(["-c", "exec \"$0\" doctor --json $$", MPIPROBE]))?;
    assert_eq!(report.status, 2);
    assert!(report.finding("process")?.ends_with("is mpiprobe itself"), "{}", report.finding("process")?);
    Ok(())
}

fn dead() -> Result<(), Failed> {
    let mut sleep = Sleep::start()?;
    let pid = sleep.pid();
    sleep.0.kill()?;
    sleep.0.wait()?;
    let report = Report::of(&[&pid])?;
    assert_eq!(report.status, 2);
    assert!(report.finding("process")?.starts_with(&format!("there is no process {pid}")));
    Ok(())
}

fn of_root() -> Result<(), Failed> {
    let sleep = Sleep::start()?;
    let report = Report::as_nobody(&[&sleep.pid()])?;
    assert_eq!(report.verdict("access")?, "failed");
    let finding = report.finding("access")?;
    assert_eq!(finding, format!("process {} belongs to user 0 and you are user 65534", sleep.pid()));
    assert!(report.fix("access")?.contains("sudo"), "{}", report.fix("access")?);
    // Nothing else is told of it.
    assert!(!report.has("process"));
    Ok(())
}

/// The ranks use a copy of the library: other sessions and tools on this machine may have probes on the library itself.
fn rank(mpi: Mpi) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join(mpi.c_library());
    fs::copy(Path::new(LIBRARIES).join(mpi.c_library()), &copy)?;
    let mut job =
        Job::builder(mpi, program::RING).args(["10"]).gates(&["1"]).env("LD_LIBRARY_PATH", folder.path()).spawn()?;
    job.wait_for_gate("1")?;
    let ranks = job.ranks()?;
    for (rank, pid) in &ranks {
        let report = Report::of(&[&pid.to_string()])?;
        assert!(report.status < 2, "{}", report.finding("library")?);
        assert_eq!(report.data("rank")?["rank"], *rank);
        assert_eq!(report.data("rank")?["size"], 4);
        let library = report.data("library")?;
        let name = match mpi {
            Mpi::OpenMpi => "Open MPI ",
            Mpi::OpenMpi5 => "Open MPI 5",
            Mpi::Intel | Mpi::IntelAbi => "Intel MPI ",
            Mpi::Mpich | Mpi::Mpich5 | Mpi::Mpich5Abi => "MPICH ",
        };
        assert!(library["implementation"].as_str().is_some_and(|shown| shown.starts_with(name)), "{library}");
        assert_eq!(library["path"].as_str(), copy.to_str());
        assert_eq!((&library["static"], &library["loading"]), (&json!(false), &json!("linked")));
        assert_eq!(report.finding("library-file")?, "it is still the file of that name");
        let [default, all] =
            [report.data("sites")?, report.data("all-sites")?].map(|census| census["functions"].as_u64());
        assert!(default > Some(100) && all > default, "{default:?} {all:?}");
        // Every rank is looked at: the doctor's visit to one left no probe that the next would see.
        assert_eq!(report.data("code")?["breakpoints"], 0);
        assert_eq!(report.data("code")?["same"].as_u64(), default);
        assert_eq!(report.verdict("other-libraries")?, "ok");
    }
    fs::remove_file(&copy)?;
    let first = ranks.values().next().ok_or("no rank")?;
    let report = Report::of(&[&first.to_string()])?;
    assert!(report.status < 2, "{}", report.finding("library")?);
    assert_eq!(report.data("library-file")?["on_disk"], "deleted");
    job.open_gate("1")?;
    job.wait()?.success()?;
    Ok(())
}
