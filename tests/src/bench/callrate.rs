//! The measured process: calls in loops on request (`programs/callrate.c`).

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::error::{BenchError, file_error};
use crate::mpi::find_library;
use crate::{Job, Mpi, program};

/// The longest that one request, or the start, may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// One loop of the program.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) name: &'static str,
    /// What a turn calls, each once, of the functions probed by default.
    pub(super) probed: &'static [&'static str],
}

/// All of them; the last is not probed by default, so it shows what a call costs that is left alone.
pub(super) const LOOPS: [Loop; 6] = [
    Loop { name: "MPI_Iprobe", probed: &["MPI_Iprobe"] },
    Loop { name: "MPI_Test", probed: &["MPI_Test"] },
    Loop { name: "MPI_Sendrecv", probed: &["MPI_Sendrecv"] },
    Loop { name: "MPI_Irecv+MPI_Isend+MPI_Waitall", probed: &["MPI_Irecv", "MPI_Isend", "MPI_Waitall"] },
    Loop { name: "MPI_Allreduce", probed: &["MPI_Allreduce"] },
    Loop { name: "MPI_Comm_rank", probed: &[] },
];

/// Time of a turn of a loop, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Batches {
    /// In the fastest batch.
    pub(super) minimum_ns: f64,
    /// In the middle one.
    pub(super) median_ns: f64,
}

/// A job of one rank. It runs on a copy of the MPI library, so that nobody else's probes are on it, and ours on nobody else.
#[derive(Debug)]
pub(super) struct CallRate {
    // First: the process ends by itself when the connection does.
    peer: BufReader<UnixStream>,
    job: Job,
    pid: u32,
    library: PathBuf,
    calls: BTreeMap<&'static str, u64>,
    _directory: TempDir,
}

impl CallRate {
    pub(super) fn start(mpi: Mpi) -> Result<Self, BenchError> {
        let directory = tempfile::tempdir().map_err(|source| file_error("creating a directory in", "/tmp", source))?;
        let library = directory.path().join(mpi.c_library());
        let original = find_library(mpi.c_library()).ok_or(BenchError::NoLibrary { mpi })?;
        fs::copy(&original, &library).map_err(|source| file_error("copying", &original, source))?;
        let socket = directory.path().join("socket");
        let listener = UnixListener::bind(&socket).map_err(|source| file_error("binding", &socket, source))?;

        let builder = Job::builder(mpi, program::CALLRATE).ranks(1).args([&socket]);
        let mut job = builder.env("LD_LIBRARY_PATH", directory.path()).spawn()?;
        let pid = job.ranks()?.into_values().next().unwrap_or(0);
        let peer = accept(&listener, &job).map_err(|source| file_error("waiting at", &socket, source))?;
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        if !maps.lines().any(|line| line.ends_with(&format!(" {}", library.display()))) {
            return Err(BenchError::OtherLibrary { pid, library });
        }
        Ok(Self { peer: BufReader::new(peer), job, pid, library, calls: BTreeMap::new(), _directory: directory })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// The MPI library that the process, and nobody else, has mapped.
    pub(super) fn library(&self) -> &Path {
        &self.library
    }

    pub(super) fn measure(&mut self, each: &'static Loop, batches: u32, turns: u32) -> Result<Batches, BenchError> {
        let failed = |job: &Job, reason: String| {
            let (stdout, stderr) = job.output();
            BenchError::Target { reason, output: stdout + &stderr }
        };
        let mut line = String::new();
        writeln!(self.peer.get_mut(), "{} {batches} {turns}", each.name)
            .and_then(|()| self.peer.read_line(&mut line))
            .map_err(|error| failed(&self.job, error.to_string()))?;
        let (minimum, median) = line.trim_end().split_once(' ').ok_or_else(|| failed(&self.job, line.clone()))?;
        let per_turn = |text: &str| Some(text.parse::<u64>().ok()? as f64 / f64::from(turns));
        let times = per_turn(minimum).zip(per_turn(median));
        let (minimum_ns, median_ns) = times.ok_or_else(|| failed(&self.job, line.clone()))?;
        for function in each.probed {
            *self.calls.entry(function).or_default() += u64::from(batches) * u64::from(turns);
        }
        Ok(Batches { minimum_ns, median_ns })
    }

    /// Calls of functions that are probed by default, made since [`Self::forget_calls`].
    pub(super) fn calls_made(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.calls.iter().map(|(function, calls)| (*function, *calls))
    }

    pub(super) fn forget_calls(&mut self) {
        self.calls.clear();
    }
}

/// The first connection. The job is looked after meanwhile: it may have failed to start.
fn accept(listener: &UnixListener, job: &Job) -> std::io::Result<UnixStream> {
    listener.set_nonblocking(true)?;
    let end = Instant::now() + PATIENCE;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < end => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) => {
                let (stdout, stderr) = job.output();
                return Err(std::io::Error::new(error.kind(), format!("{error}\n{stdout}{stderr}")));
            }
        }
    }
}
