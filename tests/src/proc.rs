//! Finds the processes of a job in /proc by a variable in their environment, whoever their parent is by now.

use std::{fs, io};

/// A process that had the variable in its environment when it was looked at.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// Clock ticks since boot; tells a process from a later one with the same pid.
    pub(crate) start_time: u64,
    /// Rank in MPI_COMM_WORLD, if a launcher announced one.
    pub(crate) rank: Option<u32>,
}

/// All living processes with exactly this `NAME=value` in their environment. Processes that end or may not be read meanwhile are
/// left out.
pub(crate) fn with_environment(variable: &str) -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| inspect(pid, variable)).collect()
}

fn inspect(pid: u32, variable: &str) -> Option<Process> {
    let environment = environment_with(pid, variable)?;
    Some(Process { pid, start_time: state(pid)?.1, rank: rank(&environment) })
}

/// Has the process exactly this `NAME=value` in its environment?
pub(crate) fn has_environment(pid: u32, variable: &str) -> bool {
    environment_with(pid, variable).is_some()
}

/// What the kernel says of each descriptor that a process has open; those that are closed meanwhile are left out.
pub(crate) fn descriptors(pid: u32) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(format!("/proc/{pid}/fdinfo"))?.flatten();
    Ok(entries.filter_map(|entry| fs::read_to_string(entry.path()).ok()).collect())
}

/// The processes of which a process has a pidfd.
pub(crate) fn pidfds(holder: u32) -> Vec<u32> {
    let said = descriptors(holder).unwrap_or_default();
    let pid = |text: &String| text.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok());
    said.iter().filter_map(pid).collect()
}

fn environment_with(pid: u32, variable: &str) -> Option<Vec<u8>> {
    // Empty for a process that is ending or has ended.
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let is_there = environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes());
    is_there.then_some(environment)
}

/// The children of a process; none if it has ended.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    // Those of a thread; what is asked about here has one.
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// The largest resident set that a process has had, KiB; `None`: it has ended.
pub(crate) fn peak_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    value.trim().trim_end_matches(" kB").parse().ok()
}

impl Process {
    /// Neither gone, nor a zombie, nor followed by another process under the same pid.
    pub(crate) fn is_alive(&self) -> bool {
        state(self.pid).is_some_and(|(state, start_time)| !matches!(state, 'Z' | 'X') && start_time == self.start_time)
    }
}

/// Fields 3 (state) and 22 (start time) of /proc/PID/stat, counted after the command name, which may contain anything.
fn state(pid: u32) -> Option<(char, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.nth(18)?.parse().ok()?))
}

fn rank(environment: &[u8]) -> Option<u32> {
    let value = |name: &str| {
        let entry = environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(name.as_bytes()))?;
        str::from_utf8(entry).ok()?.parse().ok()
    };
    ["OMPI_COMM_WORLD_RANK=", "PMI_RANK=", "PMIX_RANK="].into_iter().find_map(value)
}
