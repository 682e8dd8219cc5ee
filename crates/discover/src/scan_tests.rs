use std::sync::atomic::AtomicUsize;

use mpiprobe_elf::Architecture;

use super::*;
use crate::{
    fake::FakeProc,
    foreign::ForeignFile,
    mappings::FileId,
    recognise::{Recognised, Role},
    select::{JobChoice, Target, select},
    select_error::SelectError,
};

const ROOT: Caller = Caller { user: 0, group: 0, may_trace_all: true, within: None };

fn recognised() -> Recognised {
    let architecture = Architecture::NATIVE;
    Recognised {
        role: Role::Library,
        soname: None,
        defines_pmpi: true,
        is_static: false,
        architecture,
        implementation: None,
    }
}

/// A recogniser to which everything is MPI.
#[expect(clippy::unnecessary_wraps, reason = "the signature is the trait's")]
fn everything(_: &ForeignFile, _: FileId) -> Option<Recognised> {
    Some(recognised())
}

/// A file to stand for an MPI library.
fn library() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "MPI").unwrap();
    file
}

#[test]
fn a_library_is_examined_once_however_many_processes_map_it() {
    let (proc, library) = (FakeProc::new(), library());
    for pid in 100..300 {
        proc.process(pid, 1, "ring", &["./ring"]);
        proc.map(pid, library.path());
    }
    let examined = AtomicUsize::new(0);
    let recogniser = |_: &ForeignFile, _| {
        examined.fetch_add(1, Ordering::Relaxed);
        Some(recognised())
    };
    let mut scanner = Scanner::new(proc.root(), ROOT, recogniser);
    for _ in 0..2 {
        let snapshot = scanner.scan().unwrap();
        assert_eq!(snapshot.processes.iter().map(MpiProcess::pid).collect::<Vec<_>>(), (100..300).collect::<Vec<_>>());
        assert_eq!((snapshot.examined, snapshot.refused, snapshot.errors.len()), (200, 0, 0));
        assert_eq!(snapshot.jobs.len(), 200);
    }
    assert_eq!(examined.load(Ordering::Relaxed), 1);
}

#[test]
fn jobs_that_go_on_are_not_read_again() {
    let (proc, library) = (FakeProc::new(), library());
    for pid in [10, 11] {
        proc.process(pid, 1, "ring", &["./ring"]);
        proc.map(pid, library.path());
        proc.file(pid, "environ", b"PMIX_NAMESPACE=77\0OMPI_COMM_WORLD_RANK=0\0");
    }
    let stat = |pid: u32, comm: &str, stack_start: u64| {
        let line = format!("{pid} ({comm}) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12 0 0 0 0 0 {stack_start} 0 0\n");
        proc.file(pid, "stat", line.as_bytes());
    };
    let mut scanner = Scanner::new(proc.root(), ROOT, everything);
    let mut ranks = || {
        let jobs = scanner.scan_jobs().unwrap().jobs;
        assert!(jobs.iter().all(|job| job.id.as_str() == "ompi:77"), "{jobs:?}");
        jobs.iter().flat_map(|job| &job.ranks).map(|rank| rank.pid).collect::<Vec<_>>()
    };
    stat(10, "ring", 4096);
    stat(11, "ring", 0);
    assert_eq!(ranks(), [10, 11]);
    for pid in [10, 11] {
        proc.file(pid, "maps", b"");
    }
    assert_eq!(ranks(), [10], "of the other one it is not known whether it is what it was");
    assert_eq!(ranks(), [10]);
    stat(10, "ring", 8192);
    assert_eq!(ranks(), [] as [u32; 0], "it has executed something else");
}

#[test]
fn who_is_gone_is_of_the_job_of_its_launcher() {
    let proc = FakeProc::new();
    let proxy = ["hydra_pmi_proxy", "--control-port", "vm:5", "--proxy-id", "0"];
    proc.process_started_at(10, 1, "hydra_pmi_proxy", &proxy, 2);
    proc.process(11, 10, "ring", &["./ring"]);
    let scanner = Scanner::new(proc.root(), ROOT, everything);
    let environment: Environment = [("PMI_RANK", "3"), ("PMI_SIZE", "4")].into_iter().collect();
    let found = |image: Image<'_>| {
        let (rank, job) = scanner.rank_and_job(&image, &environment);
        (rank.rank, job.map(|job| (job.to_string(), job.is_of_tree())))
    };
    let now_ns = Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap().as_nanos().try_into().unwrap();
    let gone = Image { pid: 12, process: None, parent: Some(10), began_ns: now_ns };
    let of_proxy = (Some(3), Some(("hydra:vm:5".to_owned(), false)));
    assert_eq!(found(gone), of_proxy);
    let process = Process::open(scanner.root(), 11).unwrap();
    let there = Image { pid: 11, process: Some(&process), parent: None, began_ns: now_ns };
    assert_eq!(found(there), of_proxy);
    // Its parent has ended, and others took it over.
    proc.file(11, "stat", b"11 (ring) Z 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 11 0 0\n");
    assert_eq!(found(Image { parent: Some(10), ..there }), of_proxy);
    assert_eq!(found(Image { parent: None, ..gone }), (Some(3), None));
    assert_eq!(found(Image { parent: Some(13), ..gone }), (Some(3), Some(("tree:13".to_owned(), true))));
    // Somebody else has got the number since.
    proc.process_started_at(14, 1, "hydra_pmi_proxy", &proxy, u64::MAX / 2);
    assert_eq!(found(Image { parent: Some(14), ..gone }), (Some(3), Some(("tree:14".to_owned(), true))));
}

#[test]
fn launchers_ended_processes_and_those_without_mpi_are_left_out() {
    let (proc, library) = (FakeProc::new(), library());
    for (pid, comm) in [(10, "mpirun"), (11, "ring"), (12, "zombie"), (13, "bash")] {
        proc.process(pid, 10, comm, &[comm]);
    }
    for pid in [10, 11] {
        proc.map(pid, library.path());
    }
    proc.file(12, "stat", b"12 (zombie) Z 10 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12 0 0\n");
    // A half-finished process: nothing of it can be read any more.
    std::fs::create_dir(proc.path(14)).unwrap();
    let mut scanner = Scanner::new(proc.root(), ROOT, everything);
    let snapshot = scanner.scan().unwrap();
    assert_eq!(snapshot.processes.iter().map(MpiProcess::pid).collect::<Vec<_>>(), [11]);
    assert!(snapshot.errors.is_empty(), "{:?}", snapshot.errors);
    assert!(matches!(scanner.inspect(10), Ok(Finding::Launcher(_))));
    assert!(matches!(scanner.inspect(12), Err(ProcessError::Vanished { pid: 12 })));
    assert!(matches!(scanner.inspect(13), Ok(Finding::NotMpi(..))));
    // Its parent names no job, but started it.
    assert_eq!(snapshot.jobs[0].id.to_string(), "tree:10");
}

/// Its environment would be empty, and it nobody's rank; its end is not told yet.
#[test]
fn who_has_lost_his_memory_is_gone() {
    let (proc, library) = (FakeProc::new(), library());
    proc.process(11, 10, "ring", &["ring"]);
    proc.map(11, library.path());
    let mut scanner = Scanner::new(proc.root(), ROOT, everything);
    assert!(matches!(scanner.inspect(11), Ok(Finding::Mpi(_))));
    proc.file(11, "stat", b"11 (ring) R 10 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 11 0 0\n");
    assert!(matches!(scanner.inspect(11), Err(ProcessError::Vanished { pid: 11 })));
    std::fs::remove_file(proc.path(11).join("exe")).unwrap();
    assert!(matches!(scanner.inspect(11), Err(ProcessError::Vanished { pid: 11 })));
    proc.file(11, "maps", b"");
    assert!(matches!(scanner.inspect(11), Err(ProcessError::Vanished { pid: 11 })));
}

#[test]
fn jobs_are_of_one_user_whatever_their_environment_claims() {
    let (proc, library) = (FakeProc::new(), library());
    for (pid, user, rank) in [(10, 1000, 1), (11, 1000, 0), (12, 1001, 2)] {
        proc.process(pid, 1, "ring", &["./ring"]);
        proc.ids(pid, [user; 3], [100; 3]);
        proc.map(pid, library.path());
        let environment = format!("PMIX_NAMESPACE=77\0OMPI_COMM_WORLD_RANK={rank}\0OMPI_COMM_WORLD_SIZE=4\0");
        proc.file(pid, "environ", environment.as_bytes());
    }
    let mut snapshot = Scanner::new(proc.root(), ROOT, everything).scan().unwrap();
    let jobs: Vec<_> = snapshot.jobs.iter().map(|job| (job.id.as_str(), job.ranks.len(), job.size)).collect();
    assert_eq!(jobs, [("ompi:77@1000", 2, Some(4)), ("ompi:77@1001", 1, Some(4))]);
    let ranks: Vec<_> = snapshot.jobs[0].ranks.iter().map(|rank| (rank.rank, rank.pid)).collect();
    assert_eq!(ranks, [(Some(0), 11), (Some(1), 10)]);
    assert_eq!(snapshot.processes.pop().unwrap().job, snapshot.jobs[1].id);
}

#[test]
fn a_batch_systems_job_is_known_by_its_cgroup_and_not_by_what_the_environment_claims() {
    let (proc, library) = (FakeProc::new(), library());
    for (pid, job, step) in [(10, 3, 0), (11, 3, 1), (12, 4, 0)] {
        proc.process(pid, 1, "ring", &["./ring"]);
        proc.map(pid, library.path());
        proc.file(pid, "environ", b"SLURM_JOB_ID=99\0SLURM_STEP_ID=9\0SLURM_PROCID=0\0SLURM_NTASKS=1\0");
        let cgroup = format!("0::/system.slice/slurmstepd.scope/job_{job}/step_{step}/user/task_0\n");
        proc.file(pid, "cgroup", cgroup.as_bytes());
    }
    let mut scanner = Scanner::new(proc.root(), ROOT, everything);
    let snapshot = scanner.scan().unwrap();
    let jobs: Vec<_> = snapshot.jobs.iter().map(|job| (job.id.as_str(), job.slurm_job.as_deref())).collect();
    assert_eq!(jobs, [("slurm:3.0", Some("3")), ("slurm:3.1", Some("3")), ("slurm:4.0", Some("4"))]);
    let mut pids = |name: &str| {
        let selection = select(&mut scanner, &Target::Any, &JobChoice::Named(name.into()))?;
        Ok::<_, SelectError>(selection.processes.iter().map(MpiProcess::pid).collect::<Vec<_>>())
    };
    // A job of the batch system's is all that runs in it.
    assert_eq!(
        (pids("3").unwrap(), pids("slurm:3").unwrap(), pids("3.1").unwrap()),
        (vec![10, 11], vec![10, 11], vec![11])
    );
    assert_eq!((pids("slurm:3.0").unwrap(), pids("4").unwrap()), (vec![10], vec![12]));
    assert!(pids("99").is_err());
}

/// Invariant CALLERS-RIGHTS.
#[test]
fn what_the_caller_may_not_trace_is_counted_and_not_read() {
    let (proc, library) = (FakeProc::new(), library());
    proc.process(10, 1, "ring", &["./ring"]);
    proc.map(10, library.path());
    proc.ids(10, [7; 3], [7; 3]);
    // Reading these would be an error.
    for secret in ["maps", "environ", "cmdline"] {
        std::fs::remove_file(proc.path(10).join(secret)).unwrap();
    }
    let stranger = Caller { user: 8, group: 8, may_trace_all: false, within: None };
    let mut scanner = Scanner::new(proc.root(), stranger, everything);
    let snapshot = scanner.scan().unwrap();
    assert_eq!((snapshot.processes.len(), snapshot.refused, snapshot.errors.len()), (0, 1, 0));
    assert!(matches!(scanner.inspect(10), Ok(Finding::Refused(Refusal::OtherUser { owner: 7, caller: 8, .. }))));
}

#[test]
fn a_foreign_library_and_a_container_are_seen() {
    let (proc, library) = (FakeProc::new(), library());
    proc.process(10, 1, "ring", &["./ring"]);
    proc.map(10, library.path());
    proc.file(10, "status", b"Tgid:\t10\nUid:\t1\t1\t1\t1\nGid:\t1\t1\t1\t1\nNSpid:\t10\t3\n");
    let foreign = Architecture { bits: 32, big_endian: false, machine: 3 };
    let recogniser = |_: &ForeignFile, _| Some(Recognised { architecture: foreign, ..recognised() });
    let snapshot = Scanner::new(proc.root(), ROOT, recogniser).scan().unwrap();
    assert_eq!(snapshot.processes[0].foreign_architecture(), Some(foreign));
    assert_eq!(snapshot.processes[0].namespace_pid, Some(3));
}

#[test]
fn scanning_while_processes_come_and_go_is_no_error() {
    let root = ProcRoot::system().unwrap();
    let mut scanner = Scanner::new(root, Caller::current().unwrap(), |_: &ForeignFile, _: FileId| None);
    let stop = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                std::process::Command::new("/bin/true").status().unwrap();
            }
        });
        for _ in 0..20 {
            let snapshot = scanner.scan().unwrap();
            // A container's first process may be closed to root itself.
            let denied = |error: &ProcessError| matches!(error, ProcessError::Denied { .. });
            assert!(snapshot.errors.iter().all(denied), "{:?}", snapshot.errors);
        }
        stop.store(true, Ordering::Relaxed);
    });
}
