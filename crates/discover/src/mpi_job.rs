//! Runs jobs of the installed MPI implementations for tests.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};

pub(crate) const PROGRAM: &str = r#"
#include <mpi.h>
#include <stdio.h>
#include <fcntl.h>
#include <unistd.h>
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank < 0) MPI_Send(&rank, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    printf("rank %d pid %d\n", rank, (int)getpid());
    fflush(stdout);
    char byte;
    if (read(open(argv[1], O_RDONLY), &byte, 1) < 0) return 1;
    MPI_Finalize();
    return 0;
}
"#;

/// One installed implementation, by the suffix of its commands.
pub(crate) struct Mpi {
    pub suffix: &'static str,
    pub run_options: &'static [&'static str],
}

pub(crate) const OPEN_MPI: Mpi = Mpi { suffix: "openmpi", run_options: &["--allow-run-as-root", "--oversubscribe"] };
pub(crate) const MPICH: Mpi = Mpi { suffix: "mpich", run_options: &[] };

/// Whether the commands a test needs are there. Where everything must be tested (CI=true), they have to be.
pub(crate) fn installed(test: &str, commands: &[&str]) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |command: &&str| std::env::split_paths(&paths).any(|folder| folder.join(command).exists());
    let missing: Vec<_> = commands.iter().filter(|command| !is_there(command)).collect();
    assert!(missing.is_empty() || std::env::var_os("CI").is_none(), "{test} needs {missing:?}");
    if !missing.is_empty() {
        eprintln!("{test} was NOT RUN: it needs {missing:?}");
    }
    missing.is_empty()
}

pub(crate) fn compile(folder: &Path, name: &str, source: &str, compiler: &str, options: &[&str]) -> PathBuf {
    let (code, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&code, source).unwrap();
    let output = Command::new(compiler).arg(&code).arg("-o").arg(&program).args(options).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// A running job whose ranks have called `MPI_Init` and wait.
pub(crate) struct Running {
    pub launcher: Child,
    /// By rank.
    pub pids: Vec<u32>,
    gate: File,
}

impl Running {
    /// Starts a command that runs [`PROGRAM`] (or one like it) in `ranks` processes, with the gate's path as last argument.
    pub(crate) fn start(folder: &Path, command: &mut Command, ranks: usize) -> Self {
        let gate = folder.join("gate");
        mknodat(CWD, &gate, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let command = command.arg(&gate).stdin(Stdio::null()).stdout(Stdio::piped());
        // Open for reading as well, so that opening waits for nobody and readers wait for a byte.
        let gate = File::options().read(true).write(true).open(&gate).unwrap();
        let mut launcher = command.spawn().unwrap();
        let lines = BufReader::new(launcher.stdout.take().unwrap()).lines();
        let mut ready: Vec<(u32, u32)> = lines
            .map(|line| {
                let line = line.unwrap();
                let words: Vec<_> = line.split(' ').collect();
                (words[1].parse().unwrap(), words[3].parse().unwrap())
            })
            .take(ranks)
            .collect();
        ready.sort_unstable();
        assert_eq!(ready.len(), ranks, "the job ended early");
        Self { launcher, pids: ready.into_iter().map(|(_, pid)| pid).collect(), gate }
    }

    pub(crate) fn mpirun(mpi: &Mpi, folder: &Path, program: &Path, ranks: usize) -> Self {
        let mut command = Command::new(format!("mpirun.{}", mpi.suffix));
        command.args(mpi.run_options).arg("-n").arg(ranks.to_string()).arg(program);
        Self::start(folder, &mut command, ranks)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.gate.write_all(&vec![0; self.pids.len()]);
        let _ = self.launcher.wait();
    }
}
