//! One cargo run of the tests.

use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{ChildStderr, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

use super::Results;
use super::programs::Program;
use crate::command;

/// Something that cargo does, which succeeds or fails.
#[derive(Debug)]
pub(super) struct Stage {
    name: &'static str,
    cargo: Command,
    /// A warning is a failure.
    denies_warnings: bool,
}

impl Stage {
    /// A check counts only if it fails.
    pub(super) fn check(name: &'static str, arguments: &[&str]) -> Self {
        let mut cargo = command::cargo();
        cargo.args(arguments);
        Self { name, cargo, denies_warnings: false }
    }

    /// Each test counts. `arguments` may hold a `--` of their own.
    pub(super) fn tests(name: &'static str, arguments: &[&str]) -> Self {
        let mut cargo = command::cargo();
        cargo.args(["test", "--no-fail-fast"]).args(arguments);
        if io::stdout().is_terminal() {
            // We stand between cargo and the terminal.
            cargo.env("CARGO_TERM_COLOR", "always");
        }
        Self { name, cargo, denies_warnings: false }
    }

    /// With clippy as the compiler of this workspace, and no warning left over. What was compiled with it is compiled again without, and the
    /// other way round.
    pub(super) fn linted(mut self) -> Self {
        // Warnings are told by the word that their lines begin with.
        self.cargo.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver").env("CARGO_TERM_COLOR", "never");
        self.denies_warnings = true;
        self
    }

    pub(super) fn by_root(mut self) -> Self {
        let arguments: Vec<_> = self.cargo.get_args().map(ToOwned::to_owned).collect();
        let mut cargo = command::cargo();
        command::run_as_root(&mut cargo);
        cargo.args(arguments);
        self.cargo = cargo;
        self
    }

    /// Runs it, and passes its output on as it comes.
    pub(super) fn run(&mut self, results: &mut Results) -> Result<()> {
        let before = results.summary.failed;
        if !self.follow(|stdout| pass_on(stdout, &mut io::stdout(), |line| results.add(line)))? {
            results.note_failure(self.name, before);
        }
        Ok(())
    }

    /// The test programs that it builds; `None`: not all was well.
    pub(super) fn build(&mut self, results: &mut Results) -> Result<Option<Vec<Program>>> {
        let mut programs = Vec::new();
        if self.follow(|stdout| pass_on(stdout, &mut io::sink(), |line| programs.extend(Program::of_message(line))))? {
            return Ok(Some(programs));
        }
        results.note_failure(self.name, results.summary.failed);
        Ok(None)
    }

    /// Runs it with somebody who reads its output. Whether all was well.
    fn follow(&mut self, read: impl FnOnce(ChildStdout) -> Result<()>) -> Result<bool> {
        eprintln!("$ {}", command::shown(&self.cargo));
        let start = Instant::now();
        let stderr = if self.denies_warnings { Stdio::piped() } else { Stdio::inherit() };
        self.cargo.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = self.cargo.spawn().context("cargo cannot be started")?;
        let stdout = child.stdout.take().context("the output of cargo is not there")?;
        let stderr = child.stderr.take();
        let (is_read, warnings) = thread::scope(|scope| {
            let reading = stderr.map(|stderr| scope.spawn(move || warnings(stderr)));
            (read(stdout), reading.map_or(Ok(0), |reading| reading.join().unwrap_or(Ok(1))))
        });
        is_read?;
        let warnings = warnings?;
        let status = child.wait().context("cargo cannot be waited for")?;
        eprintln!("{}: {} s", self.name, start.elapsed().as_secs());
        if warnings > 0 {
            eprintln!("{}: {warnings} warnings, and there should be none", self.name);
        }
        Ok(status.success() && warnings == 0)
    }
}

/// Passes them on, with all else that is said.
fn warnings(stderr: ChildStderr) -> Result<u64> {
    let mut warnings = 0;
    pass_on(stderr, &mut io::stderr(), |line| warnings += u64::from(line.starts_with("warning")))?;
    Ok(warnings)
}

/// Shows each line as soon as it is there.
pub(super) fn pass_on(from: impl Read, to: &mut impl Write, mut each: impl FnMut(&str)) -> Result<()> {
    let (mut lines, mut line) = (BufReader::new(from), Vec::new());
    while lines.read_until(b'\n', &mut line).context("the output of cargo cannot be read")? > 0 {
        to.write_all(&line).and_then(|()| to.flush()).context("the output cannot be passed on")?;
        each(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(())
}
