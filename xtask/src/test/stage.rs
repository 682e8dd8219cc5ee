//! One cargo run of the tests.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};

use super::summary::Summary;
use super::times::Times;
use crate::command;

/// Something that cargo does, which succeeds or fails.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) name: &'static str,
    cargo: Command,
}

impl Stage {
    /// A check counts only if it fails.
    pub(super) fn check(name: &'static str, arguments: &[&str]) -> Self {
        let mut cargo = command::cargo();
        cargo.args(arguments);
        Self { name, cargo }
    }

    /// Each test counts. `arguments` may hold a `--` of their own.
    pub(super) fn tests(name: &'static str, arguments: &[&str]) -> Self {
        let mut cargo = command::cargo();
        cargo.args(["test", "--no-fail-fast"]).args(arguments);
        if io::stdout().is_terminal() {
            // We stand between cargo and the terminal.
            cargo.env("CARGO_TERM_COLOR", "always");
        }
        Self { name, cargo }
    }

    /// With a variable in its environment.
    pub(super) fn with(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.cargo.env(name, value);
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

    /// Runs it, passes its output on as it comes and adds the results to `summary` and `times`. Returns whether all was well.
    pub(super) fn run(&mut self, summary: &mut Summary, times: &mut Times) -> Result<bool> {
        eprintln!("$ {}", command::shown(&self.cargo));
        let start = Instant::now();
        let before = summary.failed;
        let mut child =
            self.cargo.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cargo cannot be started")?;
        let mut lines = BufReader::new(child.stdout.take().context("the output of cargo is not there")?);
        let (mut line, mut stdout) = (Vec::new(), io::stdout().lock());
        while lines.read_until(b'\n', &mut line).context("the output of cargo cannot be read")? > 0 {
            stdout.write_all(&line).and_then(|()| stdout.flush()).context("the output cannot be passed on")?;
            let text = String::from_utf8_lossy(&line);
            summary.add(&text);
            times.add(&text);
            line.clear();
        }
        let status = child.wait().context("cargo cannot be waited for")?;
        eprintln!("{}: {} s", self.name, start.elapsed().as_secs());
        if !status.success() && summary.failed == before {
            // What failed was no test: the check, the build, or a test program that died before it could report.
            summary.failed += 1;
        }
        Ok(status.success())
    }
}
