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
    /// It has a gate after `MPI_Init`, at which an observer can be attached.
    has_gate: bool,
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
/// A user that no program needs.
const NOBODY: u32 = 65534;

const fn odd(name: &'static str, program: Program, arguments: &'static [&'static str]) -> Odd {
    Odd {
        name,
        program,
        arguments,
        start: |job| job,
        only: None,
        needs: &[],
        calls: &[("MPI_Finalize", 1)],
        has_gate: true,
    }
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
        Odd { name: "static", only: Some(Mpi::Mpich), start: JobBuilder::linked_in, ..ring() },
        Odd {
            name: "setuid",
            needs: &[Requirement::Root],
            start: |job| job.set_user(NOBODY),
            // The gates are a preloaded library's, too.
            has_gate: false,
            ..ring()
        },
        Odd {
            name: "other-user",
            needs: &[Requirement::Root, Requirement::Command("setpriv")],
            start: |job| job.within(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]),
            ..ring()
        },
        Odd {
            name: "namespaces",
            needs: &[Requirement::Root, Requirement::Command("unshare")],
            start: |job| job.within(["unshare", "--mount", "--uts", "--cgroup", "--net"]),
            ..ring()
        },
        Odd {
            name: "chroot",
            needs: &[Requirement::Root, Requirement::Command("unshare")],
            start: |job| job.within(["unshare", "--mount", "sh", "-c", CHROOT, "sh"]),
            ..ring()
        },
    ]
}

/// Mounts all that there is at another place, makes that the root, and executes its arguments.
const CHROOT: &str = "mount --rbind / /mnt && exec chroot /mnt \"$@\"";

impl Odd {
    /// Why it cannot be run with an MPI here; `None` if it can.
    pub fn missing(&self, mpi: Mpi) -> Option<String> {
        if self.only.is_some_and(|only| only != mpi) {
            return Some(format!("{mpi} has no such library"));
        }
        let language = [Requirement::Mpi(mpi), Requirement::Language(mpi, self.program.language)];
        language.iter().chain(self.needs).find_map(|needed| Some(format!("needs {needed}: {}", needed.missing()?)))
    }

    fn job(&self, mpi: Mpi) -> JobBuilder {
        (self.start)(Job::builder(mpi, self.program).ranks(RANKS).args(self.arguments).own_name())
    }

    /// What it says when nobody looks on.
    pub fn bare(&self, mpi: Mpi) -> Result<Answer, CampaignError> {
        Ok(Answer::of(&self.job(mpi).spawn()?.wait()?))
    }

    /// What it says when it is looked at, and what is said of it; `None`: there is no such way with this program.
    pub fn observed(&self, mpi: Mpi, way: Way) -> Result<Option<(Answer, Profile)>, CampaignError> {
        match way {
            Way::Attached(_) if !self.has_gate => Ok(None),
            Way::Attached(rung) => {
                let mut job = self.job(mpi).gates(&["1"]).spawn()?;
                job.wait_for_gate("1")?;
                let functions = if rung == "perf-event" { FEW } else { "all" };
                let profiler =
                    Profiler::observe(["--pid-of", job.called(), "--attach", rung, "--functions", functions])?;
                job.open_gate("1")?;
                let answer = Answer::of(&job.wait()?);
                Ok(Some((answer, profiler.wait()?.profile()?)))
            }
            Way::Run(engine) => {
                let mut job = self.job(mpi).run_by(engine, ["--functions", "all"])?.spawn()?;
                let answer = Answer::of(&job.wait()?);
                Ok(Some((answer, job.profile()?)))
            }
        }
    }

    /// Looks at it in this way and compares. Tells in what way the profile is incomplete.
    pub fn check(&self, mpi: Mpi, way: Way, bare: &Answer) -> Result<Verdict, CampaignError> {
        let wrong = |what: String| CampaignError::wrong(0, format!("{} {way:?}: {what}", self.name));
        let Some((answer, profile)) = self.observed(mpi, way)? else { return Ok(Verdict::NoSuchWay) };
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
                    return Err(wrong(format!("rank {rank}: {counted:?} calls of {name}, not {calls}")));
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
    printed: Vec<String>,
}

impl Answer {
    fn of(finished: &Finished) -> Self {
        let mut printed: Vec<String> = finished.stdout.lines().map(ToOwned::to_owned).collect();
        // Of different ranks in any order.
        printed.sort_unstable();
        Self { status: finished.status.code(), printed }
    }
}

/// What the comparison came to, if nothing is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The profile is complete, and the calls known are what it says.
    Right,
    /// It says what is missing.
    Incomplete(Vec<String>),
    /// The program cannot be looked at like this.
    NoSuchWay,
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
