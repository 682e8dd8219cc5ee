//! Copies of registers and stacks of many threads, by whatever way disturbs them least.

use std::{
    collections::HashMap,
    fs, io,
    time::{Duration, Instant},
};

use crate::{
    CaptureError,
    copy::{Certainty, Progress, Replaced, State, SystemCall, ThreadCopy, Way},
    kernel::{
        iterator::{CopiedThread, Iterator},
        sample, stop,
    },
    proc,
};

/// How much is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Threads in all, and of one process.
    pub threads: usize,
    pub threads_of_process: usize,
    /// For all of it.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { threads: 16 << 10, threads_of_process: 1 << 10, time: Duration::from_secs(10) }
    }
}

/// What looks at threads.
#[derive(Debug)]
pub struct Capture {
    /// `None`: threads are stopped for a moment.
    iterator: Option<Iterator>,
    limits: Limits,
}

/// The threads of the processes that were asked for.
#[derive(Debug, Default)]
pub struct Captured {
    pub threads: Vec<ThreadCopy>,
    /// Threads that were left out, by process: there are more than the limits permit.
    pub left_out: Vec<(u32, usize)>,
    /// Threads that could not be looked at, and why: (pid, tid, reason).
    pub refused: Vec<(u32, u32, String)>,
}

/// Looks that are taken of a thread that runs meanwhile.
const TRIES: usize = 3;
/// How long a thread that is on a CPU may take to be sampled, which takes a tenth of a millisecond of its running.
const SAMPLE_PATIENCE: Duration = Duration::from_millis(20);

impl Capture {
    /// Without stopping anybody.
    pub fn without_stopping(limits: Limits) -> Result<Self, CaptureError> {
        Ok(Self { iterator: Some(Iterator::load()?), limits })
    }

    /// By stopping each thread for a moment, which some of its system calls notice.
    pub fn by_stopping(limits: Limits) -> Self {
        Self { iterator: None, limits }
    }

    /// Whether threads are stopped.
    pub fn stops(&self) -> bool {
        self.iterator.is_none()
    }

    /// Whether a thread can be copied.
    pub(crate) fn reaches(&mut self, tid: u32) -> Result<bool, CaptureError> {
        match &mut self.iterator {
            Some(iterator) => Ok(iterator.look(&[tid])?.iter().any(|found| found.registers.is_some())),
            None => Ok(false),
        }
    }

    /// Looks at all threads of these processes.
    pub fn look(&mut self, processes: &[u32]) -> Result<Captured, CaptureError> {
        let until = Instant::now() + self.limits.time;
        let mut captured = Captured::default();
        let mut threads = Vec::new();
        for pid in processes {
            // The first thread first: it is the one that cannot be missed.
            let mut own = proc::threads(*pid);
            own.sort_by_key(|tid| (tid != pid, *tid));
            let room = self.limits.threads.saturating_sub(threads.len()).min(self.limits.threads_of_process);
            if own.len() > room {
                captured.left_out.push((*pid, own.len() - room));
                own.truncate(room);
            }
            threads.extend(own.into_iter().map(|tid| (*pid, tid)));
        }
        match &mut self.iterator {
            Some(iterator) => copy(iterator, &threads, until, &mut captured)?,
            None => stop(&threads, until, &mut captured),
        }
        let place: HashMap<_, _> = threads.iter().enumerate().map(|(place, thread)| (*thread, place)).collect();
        captured.threads.sort_by_key(|thread| place.get(&(thread.pid, thread.tid)).copied());
        Ok(captured)
    }
}

fn copy(
    iterator: &mut Iterator,
    threads: &[(u32, u32)],
    until: Instant,
    captured: &mut Captured,
) -> Result<(), CaptureError> {
    let processes: HashMap<u32, u32> = threads.iter().map(|&(pid, tid)| (tid, pid)).collect();
    let mut left: Vec<u32> = threads.iter().map(|&(_, tid)| tid).collect();
    let mut doubtful: Vec<ThreadCopy> = Vec::new();
    // Samples of which it is not known where a call returns to, by thread: the last of each counts if there is no better one.
    let mut unclear: HashMap<u32, ThreadCopy> = HashMap::new();
    for attempt in 0..TRIES {
        let mut moved = Vec::new();
        let mut replaced = HashMap::new();
        for some in left.chunks(Iterator::MOST) {
            // A number may have been given to another process's thread meanwhile.
            let found = iterator.look(some)?;
            let found = found.into_iter().filter(|found| processes.get(&found.tid) == Some(&found.pid));
            for found in found {
                replaced.insert(found.tid, found.replaced.clone());
                let copy = thread_copy(found);
                if copy.certainty == Certainty::Exact { captured.threads.push(copy) } else { moved.push(copy) }
            }
        }
        let on_cpu: Vec<u32> = moved.iter().filter(|copy| copy.progress.on_cpu).map(|copy| copy.tid).collect();
        if !on_cpu.is_empty() {
            match sample::take(&on_cpu, SAMPLE_PATIENCE) {
                Ok(samples) => {
                    // What is replaced on the others' stacks has been put back.
                    replaced.retain(|tid, _| on_cpu.contains(tid));
                    let others = keep_lasting(iterator, &mut replaced)?;
                    for mut sample in samples {
                        if let Some(replaced) = replaced.get(&sample.tid) {
                            replaced.put_back(&mut sample.stack);
                        }
                        let is_its = |copy: &&ThreadCopy| (copy.pid, copy.tid) == (sample.pid, sample.tid);
                        let Some(copy) = moved.iter().find(is_its) else { continue };
                        let sp = sample.registers.sp().unwrap_or(0);
                        let is_clear =
                            others.get(&sample.tid).is_none_or(|others| !others.hide_a_return(&sample.stack, sp));
                        let copy = ThreadCopy {
                            registers: Some(sample.registers),
                            stack: sample.stack,
                            way: Way::Sampled,
                            certainty: Certainty::Exact,
                            system_call: None,
                            // Not the stack that was copied, which is large and of another moment.
                            ..*copy
                        };
                        if is_clear {
                            unclear.remove(&copy.tid);
                            moved.retain(|other| other.tid != copy.tid);
                            captured.threads.push(copy);
                        } else {
                            unclear.insert(copy.tid, copy);
                        }
                    }
                }
                Err(error) => tracing::debug!("no samples of running threads: {error}"),
            }
        }
        left = moved.iter().map(|copy| copy.tid).collect();
        doubtful = moved;
        if left.is_empty() || attempt + 1 == TRIES || Instant::now() >= until {
            break;
        }
    }
    captured.threads.extend(doubtful.into_iter().map(|copy| unclear.remove(&copy.tid).unwrap_or(copy)));
    Ok(())
}

/// A sample is of a moment between two looks: of return addresses that probes have replaced, those are believed that both have found. Gives
/// those that only one of them has.
fn keep_lasting(
    iterator: &mut Iterator,
    replaced: &mut HashMap<u32, Replaced>,
) -> Result<HashMap<u32, Replaced>, CaptureError> {
    let mut others = HashMap::new();
    let threads: Vec<u32> = replaced.keys().copied().collect();
    for some in threads.chunks(Iterator::MOST) {
        for found in iterator.look(some)? {
            if let Some(replaced) = replaced.get_mut(&found.tid) {
                others.insert(found.tid, replaced.keep_common(&found.replaced));
            }
        }
    }
    Ok(others)
}

fn thread_copy(found: CopiedThread) -> ThreadCopy {
    let CopiedThread { before, after, .. } = found;
    let rested = !before.on_cpu
        && !after.on_cpu
        && (before.voluntary, before.involuntary) == (after.voluntary, after.involuntary);
    let has_ended = found.registers.is_none();
    ThreadCopy {
        pid: found.pid,
        tid: found.tid,
        system_call: found.registers.as_ref().zip(found.system_call).map(|(own, number)| SystemCall::of(number, own)),
        registers: found.registers,
        stack: found.stack,
        thread_pointer: found.thread_pointer,
        way: Way::Copied,
        certainty: if rested || has_ended { Certainty::Exact } else { Certainty::Doubtful },
        state: if has_ended { State::Zombie } else { State::of_bits(found.state) },
        progress: after,
        at_ns: found.at_ns,
    }
}

fn stop(threads: &[(u32, u32)], until: Instant, captured: &mut Captured) {
    // As it was before it was stopped.
    let before: Vec<_> = threads.iter().map(|&(pid, tid)| (proc::state(pid, tid), proc::progress(pid, tid))).collect();
    let stopped = stop::look(threads, until);
    for ((&(pid, tid), (state, progress)), stopped) in threads.iter().zip(before).zip(stopped) {
        let (state, progress) = (state.unwrap_or(State::Unknown), progress.unwrap_or(Progress::default()));
        let gone = |error: &io::Error| error.raw_os_error() == Some(libc::ESRCH);
        match stopped {
            Ok(stopped) => captured.threads.push(ThreadCopy {
                pid: stopped.pid,
                tid: stopped.tid,
                registers: Some(stopped.registers),
                stack: stopped.stack,
                thread_pointer: stopped.thread_pointer,
                way: Way::Stopped,
                certainty: Certainty::Exact,
                state,
                system_call: stopped.system_call,
                progress,
                at_ns: proc::now(),
            }),
            Err(error) if gone(&error) && fs::metadata(format!("/proc/{pid}/task/{tid}")).is_err() => {}
            Err(error) => captured.refused.push((pid, tid, refusal(&error))),
        }
    }
}

/// Why a thread could not be stopped, with the rule that forbids it where there is one.
pub(crate) fn refusal(error: &io::Error) -> String {
    let is_forbidden = error.raw_os_error() == Some(libc::EPERM);
    let scope = is_forbidden.then(|| fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()).flatten();
    match scope.as_deref().map(str::trim) {
        Some(scope) if scope != "0" => format!("{error} (kernel.yama.ptrace_scope is {scope})"),
        _ => error.to_string(),
    }
}
