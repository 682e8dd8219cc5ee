//! What `/proc` says of threads. Bounded reads of small files of the kernel's.

use mpiprobe_discover::privileged::{thread_file, thread_list};

use crate::copy::{Progress, State};

/// The threads of a process, in no order; none if it has ended.
pub(crate) fn threads(pid: u32) -> Vec<u32> {
    thread_list(pid)
}

pub(crate) fn state(pid: u32, tid: u32) -> Option<State> {
    let stat = thread_file(pid, tid, "stat").ok()?;
    // The name before it may have any characters, parentheses too.
    let after_name = stat.iter().rposition(|&byte| byte == b')')?;
    stat.get(after_name + 2).copied().map(State::of_letter)
}

pub(crate) fn progress(pid: u32, tid: u32) -> Option<Progress> {
    let (status, times) = (thread_file(pid, tid, "status").ok()?, thread_file(pid, tid, "schedstat").ok());
    let status = String::from_utf8_lossy(&status);
    let number = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
    let run_ns = times.and_then(|times| String::from_utf8_lossy(&times).split_whitespace().next()?.parse().ok());
    Some(Progress {
        voluntary: number("voluntary_ctxt_switches:")?,
        involuntary: number("nonvoluntary_ctxt_switches:")?,
        run_ns: run_ns.unwrap_or(0),
        on_cpu: false,
    })
}

/// The function of the kernel that a thread waits in; `None` if it does not wait, or that is nobody's business.
pub fn waits_in(pid: u32, tid: u32) -> Option<String> {
    let name = String::from_utf8(thread_file(pid, tid, "wchan").ok()?).ok()?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte));
    (is_name && !name.is_empty() && name != "0").then_some(name)
}

/// By the monotonic clock, ns.
pub(crate) fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let part = |part: i64| u64::try_from(part).unwrap_or(0);
    part(now.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(now.tv_nsec))
}
