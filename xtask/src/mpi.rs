//! The MPI installation that the demo uses.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{self, is_in_path, is_root};

/// A compiler wrapper and a launcher that belong together.
#[derive(Debug)]
pub(crate) struct Mpi {
    mpicc: &'static str,
    mpirun: &'static str,
    /// Allow more ranks than cores.
    oversubscribe: &'static [&'static str],
    /// Allow a job of root's.
    as_root: &'static [&'static str],
}

/// Debian's names: there, both families can be installed side by side.
const FAMILIES: [Mpi; 2] = [
    Mpi {
        mpicc: "mpicc.openmpi",
        mpirun: "mpirun.openmpi",
        // Waiting ranks give their core to those that have work.
        oversubscribe: &["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"],
        as_root: &["--allow-run-as-root"],
    },
    Mpi { mpicc: "mpicc.mpich", mpirun: "mpirun.mpich", oversubscribe: &[], as_root: &[] },
];

impl Mpi {
    /// Open MPI, else MPICH.
    pub(crate) fn find() -> Result<Self> {
        let is_there = |mpi: &Self| is_in_path(mpi.mpicc) && is_in_path(mpi.mpirun);
        FAMILIES.into_iter().find(is_there).context("neither Open MPI nor MPICH is there; run `cargo xtask setup`")
    }

    pub(crate) fn compile(&self, source: &Path, program: &Path) -> Result<()> {
        command::run(Command::new(self.mpicc).args(["-O2", "-g", "-o"]).args([program, source]))
    }

    /// The launcher with its options for a job of so many ranks, however few cores there are and whoever we are.
    pub(crate) fn launcher(&self, ranks: u32) -> (&'static str, Vec<String>) {
        let mut options = vec!["-n".to_owned(), ranks.to_string()];
        options.extend(self.oversubscribe.iter().copied().map(String::from));
        if is_root() {
            options.extend(self.as_root.iter().copied().map(String::from));
        }
        (self.mpirun, options)
    }
}
