//! Programs that do legal things that few do: each has to give the same answer whoever looks on, and its profile has to be right or
//! to say that it is not.

use std::process::ExitCode;

use super::CampaignError;
use crate::job::{Finished, JobBuilder};
use crate::profiler::{Profile, Profiler};
use crate::program::{self, Program};
use crate::{Job, Mpi, Requirement};

/// One of them.
#[derive(Debug, Clone)]
pub struct Odd {
    pub name: &'static str,
    program: Program,
    arguments: &'static [&'static str],
    /// What is odd about how it is started.
    start: fn(JobBuilder) -> JobBuilder,
    /// Only this MPI has it.
    only: Option<Mpi>,
    needs: &'static [Requirement],
    /// Calls of one rank after its first gate.
    calls: &'static [(&'static str, u64)],
}

/// How a job is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From a moment on, by the kernel, attached in this way.
    Attached(&'static str),
    /// From its start, by `mpiprobe run` with this engine.
    Run(&'static str),
}

pub const WAYS: [Way; 6] = [
    Way::Attached("session"),
    Way::Attached("multi"),
    Way::Attached("perf-event"),
    Way::Run("auto"),
    Way::Run("ebpf"),
    Way::Run("wrapper"),
];

const RANKS: u32 = 2;
/// Of perf events, each takes the kernel a tenth of a second to detach.
const FEW: &str = "MPI_Comm_delete_attr,MPI_Comm_size,MPI_Allreduce,MPI_Send,MPI_Barrier";
/// Becomes a user that no program needs.
const NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

const fn odd(name: &'static str, program: Program, arguments: &'static [&'static str]) -> Odd {
    Odd { name, program, arguments, start: |job| job, only: None, needs: &[], calls: &[("MPI_Finalize", 1)] }
}

/// Those whose calls are the same: attributes that are deleted.
const DELETES: &[(&str, u64)] = &[("MPI_Comm_delete_attr", 10), ("MPI_Barrier", 1), ("MPI_Finalize", 1)];
const ALLREDUCES: &[(&str, u64)] = &[("MPI_Allreduce", 10), ("MPI_Finalize", 1)];

/// All of them.
pub fn all() -> Vec<Odd> {
    let ring = || Odd { calls: ALLREDUCES, ..odd("", program::RING, &["10"]) };
    vec![
        Odd { calls: DELETES, ..odd("stack-up", program::STACKS, &["up"]) },
        Odd { calls: DELETES, ..odd("stack-down", program::STACKS, &["down"]) },
        Odd { calls: DELETES, ..odd("sigaltstack", program::STACKS, &["signal"]) },
        Odd { calls: &[("MPI_Barrier", 1), ("MPI_Finalize", 1)], ..odd("longjmp", program::STACKS, &["jump"]) },
        Odd { calls: DELETES, ..odd("migration", program::MIGRATES, &[]) },
        Odd { calls: &[("MPI_Barrier", 1), ("MPI_Finalize", 1)], ..odd("exceptions", program::THROWS, &["10"]) },
        odd("fork", program::EXITS, &["fork"]),
        Odd { calls: ALLREDUCES, ..odd("vfork", program::VFORKS, &[]) },
        Odd { calls: &[("MPI_Allreduce", 103), ("MPI_Finalize", 1)], ..odd("seccomp", program::STAYS, &["confined"]) },
        Odd {
            name: "sanitizer",
            // What the library itself does not give back is no concern of ours.
            start: |job| job.gates_are_linked_in().as_it_is().env("ASAN_OPTIONS", "detect_leaks=0"),
            program: program::RING_WITH_SANITIZER,
            ..ring()
        },
        Odd {
            needs: &[Requirement::Command("musl-gcc")],
            start: |job| job.with_musl().gates_are_linked_in().as_it_is(),
            calls: &[("MPI_Barrier", 3), ("MPI_Finalize", 1)],
            ..odd("musl", program::BRIEF, &[])
        },
        Odd { name: "static", only: Some(Mpi::Mpich), start: JobBuilder::linked_in, ..ring() },
        Odd {
            name: "setuid",
            // Open MPI's launcher does not speak with processes of others.
            only: Some(Mpi::Mpich),
            needs: &[Requirement::Root, Requirement::Command("setpriv")],
            start: |job| job.within(NOBODY).set_user(0).gates_are_linked_in().as_it_is(),
            program: program::RING_WITH_GATES,
            ..ring()
        },
        Odd {
            name: "other-user",
            needs: &[Requirement::Root, Requirement::Command("setpriv")],
            start: |job| job.around(NOBODY),
            ..ring()
        },
        in_namespaces("namespaces", |job| job.within(["unshare", "--mount", "--uts", "--cgroup", "--ipc"])),
        Odd {
            // Open MPI needs a network.
            only: Some(Mpi::Mpich),
            ..in_namespaces("net-namespace", |job| job.within(["unshare", "--mount", "--net"]))
        },
        in_namespaces("pid-namespace", |job| {
            job.around(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"])
        }),
        in_namespaces("user-namespace", |job| job.around(["unshare", "--user", "--map-root-user"])),
        in_namespaces("container", |job| {
            job.around([
                "unshare",
                "--user",
                "--map-root-user",
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                "--mount-proc",
            ])
        }),
        in_namespaces("chroot", |job| job.within(["unshare", "--mount", "sh", "-c", CHROOT, "sh"])),
    ]
}

fn in_namespaces(name: &'static str, start: fn(JobBuilder) -> JobBuilder) -> Odd {
    Odd {
        needs: &[Requirement::Root, Requirement::Command("unshare")],
        start,
        calls: ALLREDUCES,
        ..odd(name, program::RING, &["10"])
    }
}

/// Mounts all that there is at another place, makes that the root, and executes its arguments.
const CHROOT: &str = "mount --rbind / /mnt && exec chroot /mnt \"$@\"";

impl Odd {
    /// Why it cannot be run with an MPI here; `None` if it can.
    pub fn missing(&self, mpi: Mpi) -> Option<String> {
        if self.only.is_some_and(|only| only != mpi) {
            return Some(format!("{mpi} has no such jobs"));
        }
        let language = [Requirement::Mpi(mpi), Requirement::Language(mpi, self.program.language)];
        language.iter().chain(self.needs).find_map(|needed| Some(format!("needs {needed}: {}", needed.missing()?)))
    }

    fn job(&self, mpi: Mpi) -> JobBuilder {
        let job = Job::builder(mpi, self.program).ranks(RANKS).args(self.arguments).own_name();
        // Probes that others have in a library that all share are armed here, too.
        (self.start)(job.own_library_if_possible())
    }

    /// What it says when nobody looks on.
    pub fn bare(&self, mpi: Mpi) -> Result<Answer, CampaignError> {
        Ok(Answer::of(&self.job(mpi).spawn()?.wait()?.success()?))
    }

    /// What it says when it is looked at, and what is said of it.
    pub fn observed(&self, mpi: Mpi, way: Way) -> Result<(Answer, Profile), CampaignError> {
        match way {
            Way::Attached(method) => {
                let mut job = self.job(mpi).gates(&["1"]).spawn()?;
                job.wait_for_gate("1")?;
                let functions = if method == "perf-event" { FEW } else { "all" };
                let profiler =
                    Profiler::observe(["--pid-of", job.called(), "--attach", method, "--functions", functions])?;
                job.open_gate("1")?;
                let answer = Answer::of(&job.wait()?);
                Ok((answer, profiler.wait()?.profile()?))
            }
            Way::Run(engine) => {
                let mut job = self.job(mpi).run_by(engine, ["--functions", "all"])?.spawn()?;
                let answer = Answer::of(&job.wait()?);
                Ok((answer, job.profile()?))
            }
        }
    }

    /// Looks at it in this way and compares. Tells in what way the profile is incomplete.
    pub fn check(&self, mpi: Mpi, way: Way, bare: &Answer) -> Result<Verdict, CampaignError> {
        let wrong = |what: String| CampaignError::wrong(0, format!("{} {way:?}: {what}", self.name));
        let (answer, profile) = self.observed(mpi, way)?;
        if answer != *bare {
            return Err(wrong(format!("the program says {answer:?}, bare {bare:?}")));
        }
        if !profile.complete {
            if profile.incomplete_because.is_empty() {
                return Err(wrong("incomplete without a reason".to_owned()));
            }
            return Ok(Verdict::Incomplete(profile.incomplete_because));
        }
        let few = |name: &str| way != Way::Attached("perf-event") || FEW.split(',').any(|probed| probed == name);
        for &(name, calls) in self.calls.iter().filter(|(name, _)| few(name)) {
            for rank in 0..RANKS {
                let counted = profile.rank(rank).and_then(|row| row.completed().get(name).copied());
                if counted != Some(calls) {
                    let rows: Vec<_> = profile.ranks.iter().map(|row| (row.rank, row.pid, row.calls)).collect();
                    return Err(wrong(format!("rank {rank}: {counted:?} calls of {name}, not {calls}: {rows:?}")));
                }
            }
        }
        Ok(Verdict::Right)
    }
}

/// What a job tells of itself: its end, and what it prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    status: Option<i32>,
    /// The characters, in their order: lines of different ranks may be in one another.
    printed: String,
}

impl Answer {
    fn of(finished: &Finished) -> Self {
        let mut printed: Vec<char> = finished.stdout.chars().collect();
        printed.sort_unstable();
        Self { status: finished.status.code(), printed: printed.into_iter().collect() }
    }
}

/// What the comparison came to, if nothing is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The profile is complete, and the calls known are what it says.
    Right,
    /// It says what is missing.
    Incomplete(Vec<String>),
}

/// `cargo xtask soak odd [NAME…]`
pub fn main(names: &[String]) -> ExitCode {
    let chosen = all().into_iter().filter(|odd| names.is_empty() || names.iter().any(|name| name == odd.name));
    let mut failed = false;
    for (odd, mpi) in chosen.flat_map(|odd| Mpi::ALL.map(|mpi| (odd.clone(), mpi))) {
        if let Some(missing) = odd.missing(mpi).or_else(|| Requirement::Bpf.missing()) {
            println!("{mpi}: {}: left out: {missing}", odd.name);
            continue;
        }
        match odd.bare(mpi) {
            Ok(bare) => {
                for way in WAYS {
                    match odd.check(mpi, way, &bare) {
                        Ok(verdict) => println!("{mpi}: {}: {way:?}: {verdict:?}", odd.name),
                        Err(error) => {
                            println!("{mpi}: {}: WRONG: {error}", odd.name);
                            failed = true;
                        }
                    }
                }
            }
            Err(error) => {
                println!("{mpi}: {}: bare: {error}", odd.name);
                failed = true;
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
