//! A tracer that runs beside us: read line by line, ended in the way its users end it, and never left behind.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{BenchError, cost::processor_seconds};

/// The longest between two lines: starting, or detaching from every function.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Tracer {
    name: String,
    child: Child,
    lines: Receiver<String>,
    errors: File,
}

impl Tracer {
    /// Starts `program`. The kernel ends it if we are killed, and Ctrl-C does not reach it: it ends with us, after us.
    pub(super) fn start(program: &OsStr, arguments: &[&OsStr]) -> Result<Self, BenchError> {
        let name = program.display().to_string();
        let failed = |source| BenchError::Start { program: name.clone(), source };
        let errors = tempfile::tempfile().map_err(failed)?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]).arg(program).args(arguments).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors.try_clone().map_err(failed)?);
        let mut child = command.spawn().map_err(failed)?;
        let output = child.stdout.take();
        let (sender, lines) = channel();
        thread::spawn(move || {
            let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines());
            // Nobody listens any more: nothing is wanted of it but its end.
            lines.map_while(Result::ok).for_each(|line| drop(sender.send(line)));
        });
        Ok(Self { name, child, lines, errors })
    }

    /// The next line on its standard output; `what` says what it does until then.
    pub(super) fn line(&mut self, what: &'static str) -> Result<String, BenchError> {
        self.lines.recv_timeout(PATIENCE).map_err(|_| {
            let output = self.said();
            BenchError::Silent { program: self.name.clone(), what, waited: PATIENCE, output }
        })
    }

    /// Waits until it has said this on its standard error.
    pub(super) fn wait_for(&mut self, text: &'static str) -> Result<(), BenchError> {
        let end = Instant::now() + PATIENCE;
        loop {
            let output = self.said();
            if output.contains(text) {
                return Ok(());
            }
            if Instant::now() > end || !matches!(self.child.try_wait(), Ok(None)) {
                let program = self.name.clone();
                return Err(BenchError::Silent { program, what: text, waited: PATIENCE, output });
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Its processor time so far, in seconds; `None`: not known.
    pub(super) fn processor_seconds(&self) -> Option<f64> {
        processor_seconds(self.child.id())
    }

    /// All that it has said on its standard error. It goes on where it was: at the end.
    fn said(&self) -> String {
        let mut bytes = Vec::new();
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = self.errors.read_at(&mut piece, bytes.len() as u64) {
            bytes.extend(piece.get(..length).unwrap_or_default());
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Interrupts it and gives what it still has to say.
    pub(super) fn stop(mut self) -> Result<Vec<String>, BenchError> {
        self.signal(Signal::INT);
        let mut lines = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => lines.push(line),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                    return Err(self.line("ended").err().unwrap_or(BenchError::Interrupted));
                }
            }
        }
        let _ = self.child.wait();
        Ok(lines)
    }

    fn signal(&self, signal: Signal) {
        // Not waited for yet, so the id is its own.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
