//! Programs from their start to their end, and what they take of the machine.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::param::clock_ticks_per_second;
use serde::Serialize;
use thiserror::Error;

use crate::proc::peak_kib;

/// Between two looks at the memory of a process.
const PAUSE: Duration = Duration::from_millis(1);

/// What a program has cost that was run several times.
#[derive(Debug, Serialize)]
pub(super) struct Cost {
    /// Of the fastest of all.
    pub(super) seconds: f64,
    /// Of all threads of that one, which other programs on the machine change little; `null`: not known.
    pub(super) processor_seconds: Option<f64>,
    /// The largest resident set of all of them; `null`: not known.
    pub(super) peak_rss_mib: Option<f64>,
    pub(super) written_mb: f64,
}

/// Why it has none.
#[derive(Debug, Error)]
pub enum CostError {
    #[error("{0}")]
    System(#[from] io::Error),
    #[error("it has failed: {0}")]
    Failed(String),
}

impl Cost {
    /// Runs a program so often, each time to its end. What it prints is not kept, nor what it writes to `output`, a file or a directory.
    pub(super) fn of(repetitions: u32, output: &Path, command: impl Fn() -> Command) -> Result<Self, CostError> {
        let mut cost = Self { seconds: f64::INFINITY, processor_seconds: None, peak_rss_mib: None, written_mb: 0.0 };
        for _ in 0..repetitions.max(1) {
            cost.run(&mut command())?;
            if output.exists() {
                cost.written_mb = size(output)? as f64 / 1e6;
                remove(output)?;
            }
        }
        Ok(cost)
    }

    fn run(&mut self, command: &mut Command) -> Result<(), CostError> {
        let begun = Instant::now();
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut processor = None;
        while child.try_wait()?.is_none() {
            self.peak_rss_mib = larger(self.peak_rss_mib, peak_rss_mib(child.id()));
            processor = larger(processor, processor_seconds(child.id()));
            thread::sleep(PAUSE);
        }
        let seconds = begun.elapsed().as_secs_f64();
        let ended = child.wait_with_output()?;
        if !ended.status.success() {
            return Err(CostError::Failed(String::from_utf8_lossy(&ended.stderr).into_owned()));
        }
        if seconds < self.seconds {
            (self.seconds, self.processor_seconds) = (seconds, processor);
        }
        Ok(())
    }
}

/// The most that a process has had in memory so far.
pub(super) fn peak_rss_mib(pid: u32) -> Option<f64> {
    peak_kib(pid).map(|kib| kib as f64 / 1024.0)
}

/// Of a process so far, all its threads together; proc(5): utime and stime, in ticks.
pub(super) fn processor_seconds(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / clock_ticks_per_second() as f64)
}

fn larger(one: Option<f64>, two: Option<f64>) -> Option<f64> {
    one.zip(two).map(|(one, two)| one.max(two)).or(one).or(two)
}

/// Bytes of a file, or of all in a directory.
fn size(path: &Path) -> io::Result<u64> {
    if path.is_dir() {
        return fs::read_dir(path)?.map(|entry| Ok(entry?.metadata()?.len())).sum();
    }
    Ok(fs::metadata(path)?.len())
}

fn remove(path: &Path) -> io::Result<()> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}
