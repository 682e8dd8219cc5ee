//! What `/proc` says of threads. Bounded reads of small files of the kernel's.

use std::{fs, fs::File, io::Read as _};

use crate::copy::{Progress, State};

/// Far more than any of these files has, bytes.
const LIMIT: u64 = 64 << 10;

/// The threads of a process, in no order; none if it has ended.
pub(crate) fn threads(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

pub(crate) fn state(pid: u32, tid: u32) -> Option<State> {
    let stat = read(pid, tid, "stat")?;
    // The name before it may have any characters, parentheses too.
    let after_name = stat.iter().rposition(|&byte| byte == b')')?;
    stat.get(after_name + 2).copied().map(State::of_letter)
}

pub(crate) fn progress(pid: u32, tid: u32) -> Option<Progress> {
    let (status, times) = (read(pid, tid, "status")?, read(pid, tid, "schedstat"));
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
    let name = String::from_utf8(read(pid, tid, "wchan")?).ok()?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte));
    (is_name && !name.is_empty() && name != "0").then_some(name)
}

fn read(pid: u32, tid: u32, name: &str) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    File::open(format!("/proc/{pid}/task/{tid}/{name}")).ok()?.take(LIMIT).read_to_end(&mut content).ok()?;
    Some(content)
}

/// By the monotonic clock, ns.
pub(crate) fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let part = |part: i64| u64::try_from(part).unwrap_or(0);
    part(now.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(now.tv_nsec))
}
