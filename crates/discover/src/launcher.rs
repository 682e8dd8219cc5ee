//! The launcher above a process, found by walking up its ancestors.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    command_line::CommandLine, proc_root::ProcRoot, process::Process, process_error::ProcessError, stat::Stat,
    text::base_name, text::plain,
};

/// The program that started a job, or its part on this node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Launcher {
    pub pid: u32,
    /// Its command line, made printable, at most 200 characters.
    pub command: String,
}

/// A process group of MPICH's launcher: all proxies of one, on all nodes, are given the same two values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HydraGroup {
    control_port: String,
    /// 0, or the number of a group that was spawned by `MPI_Comm_spawn`.
    group: String,
}

impl HydraGroup {
    /// Whether it is what `mpiexec` was asked for; since MPICH 4.2, what such processes spawn is in it, too.
    pub(crate) fn is_first(&self) -> bool {
        self.group == "0"
    }
}

impl fmt::Display for HydraGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hydra:{}", self.control_port)?;
        if self.is_first() { Ok(()) } else { write!(f, "/{}", self.group) }
    }
}

/// What is above a process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ancestry {
    /// The outermost of the launchers that started each other: `mpiexec`, not its proxy.
    pub launcher: Option<Launcher>,
    /// The innermost of them.
    pub nearest: Option<u32>,
    /// Whether that one is a proxy of MPICH's or Intel MPI's launcher, and if it is MPICH's, of which group.
    pub under_hydra: bool,
    pub hydra: Option<HydraGroup>,
}

/// More generations than any chain of launchers, shells and containers has.
const GENERATIONS: usize = 64;

/// Programs that start ranks; none of them is a rank. Those with a suffix (`mpiexec.hydra`, `mpirun.openmpi`) count too.
const LAUNCHERS: [&str; 14] = [
    "mpirun",
    "mpiexec",
    "orterun",
    "prterun",
    "orted",
    "prted",
    "hydra_pmi_proxy",
    "hydra_bstrap_proxy",
    "mpispawn",
    "mpirun_rsh",
    "srun",
    "slurmstepd",
    "palsd",
    "aprun",
];

/// Whether a program of this base name is a launcher.
pub(crate) fn is_launcher(name: &[u8]) -> bool {
    // The kernel cuts command names at 15 bytes.
    LAUNCHERS.iter().any(|launcher| {
        let launcher = launcher.as_bytes();
        name == launcher
            || name.strip_prefix(launcher).is_some_and(|rest| rest.starts_with(b"."))
            || (name.len() == 15 && launcher.starts_with(name))
    })
}

/// Looks up ancestors, each process once however many descend from it.
#[derive(Debug, Default)]
pub(crate) struct Genealogy {
    known: HashMap<u32, Option<Arc<Relative>>>,
}

#[derive(Debug)]
struct Relative {
    pid: u32,
    stat: Stat,
    command_line: CommandLine,
}

impl Relative {
    fn open(root: &ProcRoot, pid: u32) -> Result<Self, ProcessError> {
        let process = Process::open(root, pid)?;
        Ok(Self { pid, stat: process.stat()?, command_line: process.command_line()? })
    }

    fn is_launcher(&self) -> bool {
        is_launcher(&self.stat.comm) || self.command_line.command().is_some_and(is_launcher)
    }

    fn is_hydra_proxy(&self) -> bool {
        let names = [Some(self.stat.comm.as_slice()), self.command_line.command()];
        names.into_iter().flatten().any(|name| name.starts_with(b"hydra_"))
    }

    fn hydra_group(&self) -> Option<HydraGroup> {
        let value = |option| self.command_line.value_of(option).and_then(plain).map(ToOwned::to_owned);
        let group = value("--pgid").unwrap_or_else(|| "0".to_owned());
        Some(HydraGroup { control_port: value("--control-port")?, group })
    }
}

impl Genealogy {
    /// The launchers above a process that this `parent` has started; `youngest`: when that was, clock ticks since boot.
    pub(crate) fn ancestry(&mut self, root: &ProcRoot, mut parent: u32, mut youngest: u64) -> Ancestry {
        let mut ancestry = Ancestry::default();
        for _ in 0..GENERATIONS {
            let Some(relative) = self.look_up(root, parent) else { break };
            // Younger than its child: the parent has died and its pid is somebody else's.
            if relative.stat.start_ticks > youngest {
                break;
            }
            if relative.is_launcher() {
                if ancestry.nearest.is_none() {
                    ancestry.nearest = Some(relative.pid);
                    ancestry.under_hydra = relative.is_hydra_proxy();
                    ancestry.hydra = if ancestry.under_hydra { relative.hydra_group() } else { None };
                }
                let command = relative.command_line.display(200);
                ancestry.launcher = Some(Launcher { pid: relative.pid, command });
            } else if ancestry.nearest.is_some() {
                // Further up may be the rank of another job that called mpirun.
                break;
            }
            (parent, youngest) = (relative.stat.parent, relative.stat.start_ticks);
        }
        ancestry
    }

    fn look_up(&mut self, root: &ProcRoot, pid: u32) -> Option<Arc<Relative>> {
        // 0 stands for "none in this pid namespace".
        if pid == 0 {
            return None;
        }
        self.known.entry(pid).or_insert_with(|| Relative::open(root, pid).ok().map(Arc::new)).clone()
    }
}

impl Launcher {
    /// The launcher's program, without its path.
    pub fn program(&self) -> &str {
        let first = self.command.split(' ').next().unwrap_or_default();
        std::str::from_utf8(base_name(first.as_bytes())).unwrap_or(first)
    }
}

#[cfg(test)]
#[path = "launcher_tests.rs"]
mod tests;
