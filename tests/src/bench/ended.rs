//! A program from its start to its end, and what it has taken of the machine.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::param::clock_ticks_per_second;

/// Between two looks at the memory of a process.
const PAUSE: Duration = Duration::from_millis(1);

/// A process that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) seconds: f64,
    /// Of all its threads, which other programs on the machine change little; `None`: not known.
    pub(super) processor_seconds: Option<f64>,
    /// The largest resident set; `None`: not known.
    pub(super) peak_rss_mib: Option<f64>,
    pub(super) has_succeeded: bool,
    /// What it has written to its standard error.
    pub(super) errors: String,
}

impl Ended {
    /// Starts a program and waits for its end. What it prints is not kept.
    pub(super) fn of(command: &mut Command) -> io::Result<Self> {
        let begun = Instant::now();
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let process = child.id();
        let (mut peak_rss, mut processor) = (None, None);
        while child.try_wait()?.is_none() {
            peak_rss = larger(peak_rss, peak_rss_mib(process));
            processor = larger(processor, processor_seconds(process));
            thread::sleep(PAUSE);
        }
        let seconds = begun.elapsed().as_secs_f64();
        let output = child.wait_with_output()?;
        Ok(Self {
            seconds,
            processor_seconds: processor,
            peak_rss_mib: peak_rss,
            has_succeeded: output.status.success(),
            errors: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

fn peak_rss_mib(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kib = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    kib.split_whitespace().next()?.parse::<f64>().ok().map(|kib| kib / 1024.0)
}

/// Of a process so far, all its threads together; proc(5): utime and stime, in ticks.
pub(super) fn processor_seconds(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / clock_ticks_per_second() as f64)
}

pub(super) fn larger(one: Option<f64>, two: Option<f64>) -> Option<f64> {
    one.zip(two).map(|(one, two)| one.max(two)).or(one).or(two)
}

/// Bytes of a file, or of all in a directory.
pub(super) fn size(path: &Path) -> io::Result<u64> {
    if path.is_dir() {
        return fs::read_dir(path)?.map(|entry| Ok(entry?.metadata()?.len())).sum();
    }
    Ok(fs::metadata(path)?.len())
}

pub(super) fn remove(path: &Path) -> io::Result<()> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}
