//! Real jobs of the installed MPI implementations.

use std::process::{Command, Stdio};

use serde_json::json;

use super::{
    mpi_job::{MPICH, Mpi, OPEN_MPI, PROGRAM, Running, compile, installed},
    select::{JobChoice, Selection, Target, select},
    *,
};

fn scanner() -> Scanner<SymbolRecogniser> {
    Scanner::new(ProcRoot::system().unwrap(), Caller::current().unwrap(), SymbolRecogniser)
}

fn by_name(name: &str) -> Result<Selection, SelectError> {
    select(&mut scanner(), &Target::Name(name.to_owned()), &JobChoice::Only)
}

/// Checks everything about a job that was started by mpirun.
fn check_job(mpi: &Mpi, name: &str, key: &str) {
    let tools = ["mpicc", "mpirun"].map(|tool| format!("{tool}.{}", mpi.suffix));
    if !installed(name, &[&tools[0], &tools[1]]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), name, PROGRAM, &tools[0], &[]);
    let running = Running::mpirun(mpi, folder.path(), &program, 3);
    let Selection { processes, jobs, .. } = by_name(name).unwrap();

    let mut found: Vec<_> = processes.iter().map(|process| (process.rank.rank, process.pid())).collect();
    found.sort_unstable();
    let expected: Vec<_> = (0..).map(Some).zip(running.pids.iter().copied()).collect();
    assert_eq!(found, expected);
    for process in &processes {
        assert_eq!(process.rank.size, Some(3));
        assert_eq!(process.rank.local_size, Some(3));
        assert_eq!(process.rank.local_rank, process.rank.rank);
        let library = process.library().unwrap();
        assert!(library.recognised.defines_pmpi && !library.recognised.is_static);
        assert_eq!(process.libraries.len(), 1);
        assert!(open_mapped(&process.process, &library.file).is_ok());
    }

    let [job] = jobs.as_slice() else { panic!("{jobs:?}") };
    assert!(job.id.as_str().starts_with(key), "{}", job.id);
    assert_eq!(job.size, Some(3));
    assert_eq!(job.user.id, rustix::process::getuid().as_raw());
    assert_eq!(job.programs(), [name]);
    assert_eq!(job.ranks.iter().map(|rank| (rank.rank, rank.pid)).collect::<Vec<_>>(), expected);
    let launcher = job.launcher.as_ref().unwrap();
    assert_eq!(launcher.pid, running.launcher.id());
    assert_eq!(launcher.program(), tools[1]);
    let json = serde_json::to_value(job).unwrap();
    assert_eq!(json["libraries"][0]["implementation"], json!(null));
    assert_eq!(
        json["ranks"][2],
        json!({
            "rank": 2, "pid": running.pids[2], "namespace_pid": null,
            "executable": program.to_str().unwrap(), "executable_deleted": false,
        })
    );

    let error = select(&mut scanner(), &Target::Pids(vec![launcher.pid]), &JobChoice::Only).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{} (pid {}) starts MPI processes but is none; name its ranks instead, by program or with --job\n\
             MPI jobs on this node:\n  {job}",
            tools[1].get(..15).unwrap_or(&tools[1]),
            launcher.pid
        )
    );
}

#[test]
fn a_job_of_open_mpi() {
    check_job(&OPEN_MPI, "discover-ompi", "ompi:");
}

#[test]
fn a_job_of_mpich() {
    check_job(&MPICH, "discover-mpich", "hydra:");
}

/// Cgroups of the form that Slurm makes them in, removed at the end if nobody is in them any more.
struct Step(Vec<std::path::PathBuf>);

impl Step {
    /// `None`: there is no cgroup2 here that this user may make groups in.
    fn make() -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let of_cgroup2 = |line: &&str| line.split(' ').nth(2) == Some("cgroup2");
        let mut folder = std::path::PathBuf::from(mounts.lines().find(of_cgroup2)?.split(' ').nth(1)?);
        let mut made = Vec::new();
        let daemon = format!("mpiprobe-test-{}_slurmstepd.scope", std::process::id());
        for name in ["system.slice", &daemon, "job_4711", "step_3"] {
            folder.push(name);
            match std::fs::create_dir(&folder) {
                Ok(()) => made.push(folder.clone()),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(_) => return None,
            }
        }
        Some(Self(made))
    }

    fn take(&self, pids: &[u32]) {
        let processes = self.0.last().unwrap().join("cgroup.procs");
        for pid in pids {
            std::fs::write(&processes, pid.to_string()).unwrap();
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        for folder in self.0.iter().rev() {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

#[test]
fn a_job_is_known_by_the_cgroup_it_runs_in() {
    let test = "a_job_is_known_by_the_cgroup_it_runs_in";
    if !installed(test, &["mpicc.openmpi", "mpirun.openmpi"]) {
        return;
    }
    let Some(step) = Step::make() else {
        eprintln!("{test} was NOT RUN: it needs a cgroup2 to make groups in");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "discover-cgroup", PROGRAM, "mpicc.openmpi", &[]);
    let running = Running::mpirun(&OPEN_MPI, folder.path(), &program, 2);
    step.take(&running.pids);
    let chosen = |job: &str| {
        let target = Target::Name("discover-cgroup".into());
        select(&mut scanner(), &target, &JobChoice::Named(job.into())).map(|selection| selection.jobs)
    };
    for id in ["4711", "slurm:4711", "4711.3"] {
        let jobs = chosen(id).unwrap();
        let [job] = jobs.as_slice() else { panic!("{jobs:?}") };
        assert_eq!((job.ranks.len(), job.slurm_job.as_deref()), (2, Some("4711")));
        assert_eq!(
            (job.allocations[0].to_string().as_str(), job.allocations[0].known_by),
            ("slurm:4711.3", KnownBy::Cgroup)
        );
        // Its name is still that of the ranks' own world.
        assert!(job.id.as_str().starts_with("ompi:"), "{}", job.id);
    }
    assert!(chosen("4712").is_err());
    drop(running);
}

#[test]
fn two_jobs_of_one_program_name() {
    let test = "two_jobs_of_one_program_name";
    if !installed(test, &["mpicc.openmpi", "mpirun.openmpi", "mpicc.mpich", "mpirun.mpich"]) {
        return;
    }
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let name = "discover-both";
    let one = compile(folders[0].path(), name, PROGRAM, "mpicc.openmpi", &[]);
    let other = compile(folders[1].path(), name, PROGRAM, "mpicc.mpich", &[]);
    let one = Running::mpirun(&OPEN_MPI, folders[0].path(), &one, 2);
    let other = Running::mpirun(&MPICH, folders[1].path(), &other, 2);
    let target = Target::Name(name.to_owned());

    let SelectError::SeveralJobs { jobs, .. } = by_name(name).unwrap_err() else { panic!("not two jobs") };
    assert_eq!(jobs.len(), 2);
    assert_eq!(
        by_name(name).unwrap_err().to_string(),
        format!(
            "discover-both runs in 2 jobs; choose one with --job ID, or take them all with --all-jobs\n\
             MPI jobs on this node:\n  {}\n  {}",
            jobs[0], jobs[1]
        )
    );

    let all = select(&mut scanner(), &target, &JobChoice::All).unwrap();
    assert_eq!(all.processes.len(), 4);
    assert_eq!(all.jobs, jobs);
    for (running, prefix) in [(&one, "ompi:"), (&other, "hydra:")] {
        let job = jobs.iter().find(|job| job.id.as_str().starts_with(prefix)).unwrap();
        for wanted in [job.id.as_str(), job.id.as_str().strip_prefix(prefix).unwrap()] {
            let chosen = select(&mut scanner(), &target, &JobChoice::Named(wanted.to_owned())).unwrap();
            let mut pids: Vec<_> = chosen.processes.iter().map(MpiProcess::pid).collect();
            pids.sort_unstable();
            let mut expected = running.pids.clone();
            expected.sort_unstable();
            assert_eq!(pids, expected);
            assert_eq!(chosen.jobs, std::slice::from_ref(job));
        }
    }
    let error = select(&mut scanner(), &target, &JobChoice::Named("ompi:none".to_owned())).unwrap_err();
    assert!(error.to_string().starts_with("discover-both has no process in a job \"ompi:none\""), "{error}");

    // Processes that were named one by one may be of several jobs.
    let pids = Target::Pids(vec![one.pids[1], other.pids[0]]);
    let picked = select(&mut scanner(), &pids, &JobChoice::Only).unwrap();
    assert_eq!((picked.processes.len(), picked.jobs.len()), (2, 2));
}

#[test]
fn a_python_program_is_called_by_its_script() {
    let test = "a_python_program_is_called_by_its_script";
    if !installed(test, &["mpirun.openmpi", "/usr/bin/python3"]) {
        return;
    }
    let import = Command::new("/usr/bin/python3").args(["-c", "import mpi4py"]).stderr(Stdio::null()).status();
    if !import.unwrap().success() && !installed(test, &["mpi4py"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("discover-app.py");
    // One write a line: the launcher forwards what it gets as it comes.
    let source = "import os, sys\nfrom mpi4py import MPI\n\
        os.write(1, f'rank {MPI.COMM_WORLD.Get_rank()} pid {os.getpid()}\\n'.encode())\n\
        os.read(os.open(sys.argv[1], os.O_RDONLY), 1)\n";
    std::fs::write(&script, source).unwrap();
    let mut command = Command::new("mpirun.openmpi");
    command.args(OPEN_MPI.run_options).args(["-n", "2", "/usr/bin/python3", "-u"]).arg(&script);
    let running = Running::start(folder.path(), &mut command, 2);
    let found = by_name("discover-app.py").unwrap();
    assert_eq!(found.jobs[0].ranks.iter().map(|rank| rank.pid).collect::<Vec<_>>(), running.pids);
    assert_eq!(found.jobs[0].size, Some(2));
}

#[test]
fn mpi_linked_into_the_program() {
    let test = "mpi_linked_into_the_program";
    if !installed(test, &["mpicc.mpich", "cc"]) || !installed(test, &["/usr/lib/x86_64-linux-gnu/libmpich.a"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let options = ["-I/usr/include/x86_64-linux-gnu/mpich", "-l:libmpich.a", "-lucp", "-lucs", "-lhwloc", "-lm"];
    let program = compile(folder.path(), "discover-static", PROGRAM, "cc", &options);
    // Without a launcher: a job of its own.
    let running = Running::start(folder.path(), &mut Command::new(&program), 1);
    let found = by_name("discover-static").unwrap();
    let process = &found.processes[0];
    assert_eq!(process.pid(), running.pids[0]);
    let library = process.library().unwrap();
    assert!(library.recognised.is_static && library.recognised.defines_pmpi);
    assert_eq!(library.file.display_path(), program.display().to_string());
    assert_eq!(process.rank.rank, None);
    assert_eq!(process.job.to_string(), format!("single:{}", process.pid()));
    assert_eq!(found.jobs[0].launcher, None);
}

#[test]
fn a_tool_that_wraps_mpi_is_not_taken_for_it() {
    let test = "a_tool_that_wraps_mpi_is_not_taken_for_it";
    if !installed(test, &["mpicc.mpich", "mpirun.mpich"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let wrapper = "#include <mpi.h>\n\
        int MPI_Init(int *c, char ***v) { return PMPI_Init(c, v); }\n\
        int MPI_Send(const void *b, int c, MPI_Datatype t, int d, int g, MPI_Comm m) { return PMPI_Send(b, c, t, d, g, m); }\n";
    // Called like an MPI library: a name must not matter.
    let wrapper = compile(folder.path(), "libmpi.so.40", wrapper, "mpicc.mpich", &["-shared", "-fPIC"]);
    let program = compile(folder.path(), "discover-wrapped", PROGRAM, "mpicc.mpich", &[]);
    let mut command = Command::new("mpirun.mpich");
    command.args(["-n", "1", "-genv", "LD_PRELOAD"]).arg(&wrapper).arg(&program);
    let _running = Running::start(folder.path(), &mut command, 1);
    let found = by_name("discover-wrapped").unwrap();
    let libraries: Vec<_> = found.processes[0]
        .libraries
        .iter()
        .map(|library| (library.file.display_path(), library.recognised.defines_pmpi))
        .collect();
    assert_eq!(libraries.len(), 2);
    assert!(libraries[0].1 && libraries[0].0 != wrapper.display().to_string(), "{libraries:?}");
    assert_eq!(libraries[1], (wrapper.display().to_string(), false));
}
