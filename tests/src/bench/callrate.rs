//! The measured process: calls in loops on request (`programs/callrate.c`).

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::cost::processor_seconds;
use super::error::{BenchError, file_error};
use crate::mpi::find_library;
use crate::{Job, JobBuilder, Mpi, Rank, program};

/// The longest that one request, or the start, may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// One loop of the program.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) name: &'static str,
    /// What a turn calls, each once, of the functions probed by default.
    pub(super) probed: &'static [&'static str],
    /// Whether all ranks take part.
    pub(super) takes_all: bool,
}

impl Loop {
    const fn of_one(name: &'static str, probed: &'static [&'static str]) -> Self {
        Self { name, probed, takes_all: false }
    }
}

/// All of them; the last is not probed by default, so it shows what a call costs that is left alone.
pub(super) const LOOPS: [Loop; 6] = [
    Loop::of_one("MPI_Iprobe", &["MPI_Iprobe"]),
    Loop::of_one("MPI_Test", &["MPI_Test"]),
    Loop::of_one("MPI_Sendrecv", &["MPI_Sendrecv"]),
    Loop::of_one("MPI_Irecv+MPI_Isend+MPI_Waitall", &["MPI_Irecv", "MPI_Isend", "MPI_Waitall"]),
    Loop::of_one("MPI_Allreduce", &["MPI_Allreduce"]),
    Loop::of_one("MPI_Comm_rank", &[]),
];

/// Messages of eight bytes to and fro between two ranks.
pub(super) const PING_PONG: Loop =
    Loop { name: "MPI_Send+MPI_Recv", probed: &["MPI_Send", "MPI_Recv"], takes_all: true };
/// One turn of it tells the wrapper to stop counting, in each rank.
pub(super) const LOOK_AWAY: Loop = Loop { name: "MPI_Pcontrol", probed: &[], takes_all: true };
/// Two reads of the time stamp counter: no call can be timed for less.
pub(super) const TIME_STAMPS: Loop = Loop { name: "time-stamps", probed: &[], takes_all: true };

/// Time of a turn of a loop, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Batches {
    /// In the fastest batch.
    pub(super) minimum_ns: f64,
    /// In the middle one.
    pub(super) median_ns: f64,
}

/// A job of one rank, or of several that are asked for the same at once. It runs on a copy of the MPI library, so that nobody else's probes are on it, and ours on nobody else.
#[derive(Debug)]
pub(super) struct CallRate {
    // First: the processes end by themselves when the connections do.
    peers: Vec<BufReader<UnixStream>>,
    job: Job,
    pid: u32,
    library: PathBuf,
    calls: BTreeMap<&'static str, u64>,
    _directory: TempDir,
}

impl CallRate {
    pub(super) fn start(mpi: Mpi) -> Result<Self, BenchError> {
        Self::start_as(mpi, Job::builder(mpi, program::CALLRATE).ranks(1), 1)
    }

    /// Two ranks that count themselves.
    pub(super) fn start_wrapped(mpi: Mpi) -> Result<Self, BenchError> {
        Self::start_as(mpi, Job::builder(mpi, program::CALLRATE).ranks(2).profiled([] as [&str; 0])?, 2)
    }

    /// The same, and each call is recorded in a file.
    pub(super) fn start_traced(mpi: Mpi, trace: &Path) -> Result<Self, BenchError> {
        let options = ["--trace".into(), trace.as_os_str().to_owned()];
        Self::start_as(mpi, Job::builder(mpi, program::CALLRATE).ranks(2).profiled(options)?, 2)
    }

    /// Two ranks as they are.
    pub(super) fn start_two(mpi: Mpi) -> Result<Self, BenchError> {
        Self::start_as(mpi, Job::builder(mpi, program::CALLRATE).ranks(2), 2)
    }

    fn start_as(mpi: Mpi, builder: JobBuilder, ranks: usize) -> Result<Self, BenchError> {
        let directory = tempfile::tempdir().map_err(|source| file_error("creating a directory in", "/tmp", source))?;
        let library = directory.path().join(mpi.c_library());
        let original = find_library(mpi.c_library()).ok_or(BenchError::NoLibrary { mpi })?;
        fs::copy(&original, &library).map_err(|source| file_error("copying", &original, source))?;
        let socket = directory.path().join("socket");
        let listener = UnixListener::bind(&socket).map_err(|source| file_error("binding", &socket, source))?;

        let mut job = builder.args([&socket]).env("LD_LIBRARY_PATH", directory.path()).spawn()?;
        let pid = job.ranks()?.into_values().next().unwrap_or(0);
        let accepted: std::io::Result<_> = (0..ranks).map(|_| accept(&listener, &job).map(BufReader::new)).collect();
        let peers = accepted.map_err(|source| file_error("waiting at", &socket, source))?;
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        if !maps.lines().any(|line| line.ends_with(&format!(" {}", library.display()))) {
            return Err(BenchError::OtherLibrary { pid, library });
        }
        Ok(Self { peers, job, pid, library, calls: BTreeMap::new(), _directory: directory })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Processor time so far of what has started the job, in seconds; `None`: not known.
    pub(super) fn launcher_seconds(&self) -> Option<f64> {
        processor_seconds(self.job.launcher_pid())
    }

    /// The MPI library that the process, and nobody else, has mapped.
    pub(super) fn library(&self) -> &Path {
        &self.library
    }

    /// As fast as it goes.
    pub(super) fn measure(&mut self, each: &'static Loop, batches: u32, turns: u32) -> Result<Batches, BenchError> {
        self.measure_apart(each, batches, turns, Duration::ZERO)
    }

    /// Batches begin at least so long after one another.
    pub(super) fn measure_apart(
        &mut self,
        each: &'static Loop,
        batches: u32,
        turns: u32,
        apart: Duration,
    ) -> Result<Batches, BenchError> {
        let failed = |job: &Job, reason: String| {
            let (stdout, stderr) = job.output();
            BenchError::Target { reason, output: stdout + &stderr }
        };
        let mut line = String::new();
        let peers =
            if each.takes_all { self.peers.as_mut_slice() } else { self.peers.get_mut(..1).unwrap_or_default() };
        let mut ask = || {
            for peer in &mut *peers {
                writeln!(peer.get_mut(), "{} {batches} {turns} {}", each.name, apart.as_nanos())?;
            }
            // They take the same time: one of them is asked for it.
            for peer in &mut *peers {
                line.clear();
                peer.read_line(&mut line)?;
            }
            Ok(())
        };
        ask().map_err(|error: std::io::Error| failed(&self.job, error.to_string()))?;
        let ranks = peers.len() as u64;
        let (minimum, median) = line.trim_end().split_once(' ').ok_or_else(|| failed(&self.job, line.clone()))?;
        let per_turn = |text: &str| Some(text.parse::<u64>().ok()? as f64 / f64::from(turns));
        let times = per_turn(minimum).zip(per_turn(median));
        let (minimum_ns, median_ns) = times.ok_or_else(|| failed(&self.job, line.clone()))?;
        for function in each.probed {
            *self.calls.entry(function).or_default() += ranks * u64::from(batches) * u64::from(turns);
        }
        Ok(Batches { minimum_ns, median_ns })
    }

    /// Calls of functions that are probed by default, made since [`Self::forget_calls`].
    pub(super) fn calls_made(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.calls.iter().map(|(function, calls)| (*function, *calls))
    }

    /// Ends it, and gives the calls that it has counted itself, by function.
    pub(super) fn end(mut self) -> Result<BTreeMap<String, u64>, BenchError> {
        self.peers.clear();
        self.job.wait()?.success()?;
        let profile = self.job.profile()?;
        let mut calls = BTreeMap::new();
        for (function, number) in profile.ranks.iter().flat_map(Rank::completed) {
            *calls.entry(function.to_owned()).or_default() += number;
        }
        Ok(calls)
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
