//! How much a job is slowed while `mpiprobe hang` looks at it, by its own clock: processes that compute count their own work, for a
//! second without a look and for one with an answer, in turns.

use std::{
    env,
    hint::black_box,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use mpiprobe_discover::{ProcRoot, Process};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    time::{ClockId, clock_gettime},
};
use serde::Serialize;

use super::hang::{HangError, LOOKS, Targets, answer, looker};

/// Of a second around an answer, a job may lose so much.
const MOST_PERCENT: f64 = 1.0;
/// Of an answer, from its first look to its last.
const OVER: Duration = Duration::from_secs(1);

/// What it was.
#[derive(Debug, Serialize)]
pub struct SlowedReport {
    ranks: u32,
    /// By pair of a second with an answer and one without: how much less was done for the same time on a CPU, percent.
    slowed_percent: Vec<f64>,
    /// CPU time of mpiprobe for one answer, ms, and the CPUs of the machine.
    answer_cpu_ms: f64,
    cpus: usize,
}

/// Is a process that works. At each byte of standard input it says how much it has done, and in how much time on a CPU, ns.
pub fn work() -> io::Result<()> {
    /// A tenth of a millisecond, or so.
    const STEPS: u32 = 30_000;
    let (mut done, mut state) = (0_u64, 1_u64);
    let input = io::stdin();
    loop {
        for _ in 0..STEPS {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
        black_box(state);
        done += 1;
        let ready = poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&Timespec::default()))?;
        if ready > 0 {
            if io::stdin().read(&mut [0])? == 0 {
                return Ok(());
            }
            println!("{done} {}", cpu_ns());
        }
    }
}

fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    u64::try_from(i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)).unwrap_or(0)
}

/// Killed when dropped.
struct Working(Vec<(Child, ChildStdin, BufReader<ChildStdout>)>);

impl Working {
    fn start(count: u32, arguments: &[String]) -> Result<Self, HangError> {
        let program = env::current_exe()?;
        let mut working = Self(Vec::new());
        for _ in 0..count {
            let mut command = Command::new(&program);
            let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
            let ends = child.stdin.take().zip(child.stdout.take()).ok_or(HangError::Ended)?;
            working.0.push((child, ends.0, BufReader::new(ends.1)));
        }
        Ok(working)
    }

    /// What each has done so far, and in how much time of its own.
    fn marks(&mut self) -> Result<Vec<(f64, f64)>, HangError> {
        for (_, input, _) in &mut self.0 {
            input.write_all(b"\n")?;
        }
        let mark = |(_, _, output): &mut (Child, ChildStdin, BufReader<ChildStdout>)| {
            let mut line = String::new();
            output.read_line(&mut line)?;
            let (done, ns) = line.trim().split_once(' ').ok_or(HangError::Ended)?;
            done.parse().ok().zip(ns.parse().ok()).ok_or(HangError::Ended)
        };
        self.0.iter_mut().map(mark).collect()
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        for (child, ..) in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// So many processes that are this program with `arguments`, by which it [works](work), in so many pairs of seconds.
pub fn run(ranks: u32, pairs: u32, arguments: &[String]) -> Result<SlowedReport, HangError> {
    let mut looker = looker()?;
    let mut working = Working::start(ranks, arguments)?;
    let root = ProcRoot::system()?;
    let processes: Vec<Process> =
        working.0.iter().map(|(child, ..)| Process::open(&root, child.id())).collect::<Result<_, _>>()?;
    let targets = Targets::of(&processes)?;
    // Its files are read only once.
    answer(&mut looker, &targets.all(), Duration::ZERO)?;
    let (mut slowed_percent, mut answers_ns) = (Vec::new(), 0);
    for pair in 0..pairs {
        // What changes slowly on the machine does as much good to the one as to the other.
        let is_quiet_first = pair % 2 == 0;
        let mut rates = [0.0; 2];
        for (place, rate) in rates.iter_mut().enumerate() {
            let before = working.marks()?;
            let began = Instant::now();
            if (place == 0) != is_quiet_first {
                let own = cpu_ns();
                answer(&mut looker, &targets.all(), OVER)?;
                answers_ns += cpu_ns() - own;
            }
            thread::sleep(OVER.saturating_sub(began.elapsed()));
            *rate = rate_of(&before, &working.marks()?);
        }
        let [first, second] = rates;
        let (quiet, looked_at) = if is_quiet_first { (first, second) } else { (second, first) };
        slowed_percent.push((1.0 - looked_at / quiet) * 100.0);
    }
    let answer_cpu_ms = Duration::from_nanos(answers_ns / u64::from(pairs.max(1))).as_secs_f64() * 1e3;
    let cpus = thread::available_parallelism()?.get();
    Ok(SlowedReport { ranks, slowed_percent, answer_cpu_ms, cpus })
}

/// Work per ns of all together.
fn rate_of(before: &[(f64, f64)], after: &[(f64, f64)]) -> f64 {
    let pairs = || before.iter().zip(after);
    let done: f64 = pairs().map(|(before, after)| after.0 - before.0).sum();
    let ns: f64 = pairs().map(|(before, after)| after.1 - before.1).sum();
    done / ns
}

impl std::fmt::Display for SlowedReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut sorted = self.slowed_percent.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |place: usize| sorted.get(place.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN);
        let (median, low, high) = (at(sorted.len() / 2), at(sorted.len() / 4), at(sorted.len() * 3 / 4));
        writeln!(
            f,
            "{} processes that compute, {} pairs of seconds, with and without an answer",
            self.ranks,
            sorted.len()
        )?;
        writeln!(
            f,
            "slowed by their own clocks: {median:.2} % (median; half of all pairs from {low:.2} to {high:.2} %)"
        )?;
        let is_met = if median < MOST_PERCENT { "met" } else { "MISSED" };
        writeln!(f, "goal < {MOST_PERCENT:.0} %: {is_met}")?;
        let share = self.answer_cpu_ms / (OVER.as_secs_f64() * 1e3 * self.cpus as f64) * 100.0;
        writeln!(
            f,
            "CPU time of an answer of {LOOKS} looks: {:.0} ms, {share:.1} % of a second on all {} CPUs, where none is idle",
            self.answer_cpu_ms, self.cpus
        )
    }
}
