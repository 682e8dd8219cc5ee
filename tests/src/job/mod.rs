//! One running MPI job under a test's control.

mod builder;
mod error;
mod files;
mod observe;
mod processes;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub use builder::JobBuilder;
pub use error::JobError;

use crate::mpi::Mpi;
use crate::proc::Process;
use crate::program::Program;

/// Between two looks at a condition. Nothing is signalled to the harness, so it has to look.
const POLL: Duration = Duration::from_millis(2);

/// A started launcher and its ranks. Dropping it kills all processes of the job and removes its directory.
#[derive(Debug)]
pub struct Job {
    name: String,
    launcher: Child,
    status: Option<ExitStatus>,
    size: u32,
    /// Those seen so far.
    ranks: BTreeMap<u32, Process>,
    gates: BTreeMap<String, File>,
    deadline: Duration,
    called: String,
    library: Option<PathBuf>,
    directory: TempDir,
    _files: TempDir,
}

/// A job whose launcher has ended.
#[derive(Debug, Clone)]
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    job: String,
}

impl Finished {
    /// An error unless the launcher's exit status is 0.
    pub fn success(self) -> Result<Self, JobError> {
        if self.status.success() {
            return Ok(self);
        }
        Err(JobError::Failed { status: self.status, output: output(&self.stdout, &self.stderr), job: self.job })
    }
}

impl Job {
    pub fn builder(mpi: Mpi, program: Program) -> JobBuilder {
        JobBuilder::new(mpi, program)
    }

    /// The job's own directory, for files of the test (a stop file, say). Gone after the job is dropped.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The name of its program's executable or script.
    pub fn called(&self) -> &str {
        &self.called
    }

    /// The MPI library that only this job uses, if it was asked for.
    pub fn library(&self) -> Option<&Path> {
        self.library.as_deref()
    }

    /// What the job has printed up to now: standard output, standard error.
    pub fn output(&self) -> (String, String) {
        let read = |name| {
            let bytes = fs::read(self.directory.path().join(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        (read("stdout"), read("stderr"))
    }

    /// Waits until the launcher ends.
    pub fn wait(&mut self) -> Result<Finished, JobError> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.exit_status() {
                let (stdout, stderr) = self.output();
                return Ok(Finished { status, stdout, stderr, job: self.name.clone() });
            }
            self.pause(start, "its end")?;
        }
    }

    /// Waits until every rank stands at the gate (or has passed it, if it is open).
    pub fn wait_for_gate(&mut self, gate: &str) -> Result<(), JobError> {
        self.gate(gate)?;
        self.wait_until(&format!("all ranks at gate {gate}"), |job| {
            Ok((job.ranks_at(gate).len() >= job.size as usize).then_some(()))
        })
    }

    /// Lets everybody through, now and later.
    pub fn open_gate(&self, gate: &str) -> Result<(), JobError> {
        let path = self.directory.path().join(format!("gate-{gate}"));
        self.gate(gate)?.unlock().map_err(file_error("unlocking", &path))
    }

    /// Asks a program that runs until it is stopped to come to its end.
    pub fn stop(&self) -> Result<(), JobError> {
        let path = self.directory.path().join("stop");
        File::create(&path).map(drop).map_err(file_error("creating", &path))
    }

    fn gate(&self, gate: &str) -> Result<&File, JobError> {
        let gates = || self.gates.keys().cloned().collect();
        self.gates.get(gate).ok_or_else(|| JobError::NoGate {
            job: self.name.clone(),
            gate: gate.to_owned(),
            gates: gates(),
        })
    }

    /// Waits for `condition` as long as the job runs and the deadline allows.
    fn wait_until<T>(
        &mut self,
        what: &str,
        mut condition: impl FnMut(&mut Self) -> Result<Option<T>, JobError>,
    ) -> Result<T, JobError> {
        let start = Instant::now();
        loop {
            // In this order: what came true just before the end counts.
            let ended = self.exit_status();
            if let Some(result) = condition(self)? {
                return Ok(result);
            }
            if let Some(status) = ended {
                let output = self.printed();
                return Err(JobError::Ended { job: self.name.clone(), what: what.to_owned(), status, output });
            }
            self.pause(start, what)?;
        }
    }

    /// Waits a moment, unless the deadline has passed.
    fn pause(&self, start: Instant, what: &str) -> Result<(), JobError> {
        if start.elapsed() > self.deadline {
            let (job, what, output) = (self.name.clone(), what.to_owned(), self.printed());
            return Err(JobError::Timeout { job, what, waited: self.deadline, output });
        }
        thread::sleep(POLL);
        Ok(())
    }

    fn exit_status(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.launcher.try_wait().ok().flatten();
        }
        self.status
    }

    fn printed(&self) -> String {
        let (stdout, stderr) = self.output();
        output(&stdout, &stderr)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.kill_all();
    }
}

fn output(stdout: &str, stderr: &str) -> String {
    format!("--- standard output\n{stdout}\n--- standard error\n{stderr}")
}

fn file_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> JobError {
    let path = path.to_owned();
    move |source| JobError::File { action, path, source }
}
