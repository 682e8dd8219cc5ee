//! The jobs on this node.

use std::fmt::Write as _;

use mpiprobe_discover::{Job, KnownBy, Snapshot, Unanswered};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    table::{TextOptions, left, right, table},
    units::or_unknown,
};

/// What `ps` shows.
pub fn jobs(list: &JobList<'_>) -> String {
    let mut text = if list.jobs.is_empty() {
        let looked_at = list.looked_at;
        format!("No MPI process runs on this node ({looked_at} processes were looked at).\n")
    } else {
        listing(list.jobs)
    };
    if list.unopened > 0 {
        let why = list.why_unopened.unwrap_or("unknown");
        let _ = writeln!(
            text,
            "{} processes could not be told to use MPI or not, because files that they have mapped could not be opened: {why}.",
            list.unopened
        );
    }
    if list.not_looked_at > 0 {
        let _ = writeln!(text, "{} processes of other users were not looked at; root sees all.", list.not_looked_at);
    }
    for left in list.unanswered {
        let _ = writeln!(text, "{left}.");
    }
    text
}

fn listing(jobs: &[Job]) -> String {
    let is_known = jobs.iter().any(|job| !job.allocations.is_empty());
    let mut columns = vec![
        left("job"),
        left("user"),
        right("ranks"),
        left("program"),
        left("MPI"),
        left("launcher"),
        left("pids by rank"),
    ];
    if is_known {
        columns.insert(1, left("runs in"));
    }
    let rows = jobs.iter().map(|job| {
        let libraries: Vec<String> = job
            .libraries
            .iter()
            .map(|library| {
                let name = library.implementation.clone().unwrap_or_else(|| "unknown MPI".into());
                if library.deleted { format!("{name} (library file replaced)") } else { name }
            })
            .collect();
        let mut row = vec![
            job.id.to_string(),
            job.user.name.clone(),
            format!("{} of {}", job.ranks.len(), or_unknown(job.size)),
            job.programs().join(", "),
            libraries.join(", "),
            job.launcher
                .as_ref()
                .map_or_else(|| "-".into(), |launcher| format!("{} ({})", launcher.program(), launcher.pid)),
            pids(job),
        ];
        if is_known {
            row.insert(1, allocations(job));
        }
        row
    });
    let mut text = table(&TextOptions::default(), &columns, rows);
    if jobs.iter().flat_map(|job| &job.allocations).any(|one| one.known_by == KnownBy::Hint) {
        text.push_str("?: by the job's environment, or a cgroup that its user may have named; not sure.\n");
    }
    text
}

/// Where it runs; of many containers the first ones.
fn allocations(job: &Job) -> String {
    const SHOWN: usize = 2;
    let mut shown: Vec<String> = job.allocations.iter().take(SHOWN).map(ToString::to_string).collect();
    if job.allocations.len() > SHOWN {
        shown.push(format!("… {} more", job.allocations.len() - SHOWN));
    }
    if shown.is_empty() { "-".into() } else { shown.join(" ") }
}

/// The pids in the order of ranks; of long jobs the first ones.
fn pids(job: &Job) -> String {
    const SHOWN: usize = 16;
    let mut pids: Vec<String> = job.ranks.iter().take(SHOWN).map(|rank| rank.pid.to_string()).collect();
    if job.ranks.len() > SHOWN {
        pids.push(format!("… {} more", job.ranks.len() - SHOWN));
    }
    pids.join(" ")
}

/// What `ps --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobList<'a> {
    schema: &'static str,
    jobs: &'a [Job],
    /// Processes that were looked at.
    looked_at: usize,
    /// Processes that the caller may not trace: there may be MPI among them.
    not_looked_at: usize,
    /// Processes that have files mapped which could not be opened: there may be MPI among them.
    unopened: usize,
    /// Why one of these could not be.
    why_unopened: Option<&'a str>,
    /// Processes that may use MPI by way of files which do not answer, by user.
    unanswered: &'a [Unanswered],
}

impl<'a> JobList<'a> {
    /// Name and version of the JSON form.
    pub const SCHEMA: &'static str = "mpiprobe.jobs/1";

    pub fn new(snapshot: &'a Snapshot) -> Self {
        Self {
            schema: Self::SCHEMA,
            jobs: &snapshot.jobs,
            looked_at: snapshot.examined.saturating_sub(snapshot.refused),
            not_looked_at: snapshot.refused,
            unopened: snapshot.unopened,
            why_unopened: snapshot.why_unopened.as_deref(),
            unanswered: &snapshot.unanswered,
        }
    }
}

/// The same as another process has written it.
#[derive(Debug, Deserialize)]
pub struct ListedJobs {
    pub jobs: Vec<Job>,
    looked_at: usize,
    not_looked_at: usize,
    unopened: usize,
    why_unopened: Option<String>,
    unanswered: Vec<Unanswered>,
}

impl ListedJobs {
    pub fn as_list(&self) -> JobList<'_> {
        JobList {
            schema: JobList::SCHEMA,
            jobs: &self.jobs,
            looked_at: self.looked_at,
            not_looked_at: self.not_looked_at,
            unopened: self.unopened,
            why_unopened: self.why_unopened.as_deref(),
            unanswered: &self.unanswered,
        }
    }
}

/// What to type next. `needs_root`: no service does it.
pub fn next_step(jobs: &[Job], needs_root: bool) -> String {
    let sudo = if needs_root { "sudo " } else { "" };
    let Some(job) = jobs.first() else {
        return format!(
            "Start an MPI program, then: {sudo}mpiprobe --pid-of PROGRAM\nWhat works on this system: sudo mpiprobe doctor\n"
        );
    };
    let programs = job.programs();
    let target = match programs.first() {
        Some(program) if jobs.len() == 1 => format!("--pid-of {}", quoted(program)),
        _ => format!("--job {}", quoted(&job.id.to_string())),
    };
    format!("\nTo observe: {sudo}mpiprobe {target}\n")
}

/// As one word of a shell: whoever has named a program or a job must not have chosen what is typed.
fn quoted(name: &str) -> String {
    // What it cannot quote no name contains.
    shlex::try_quote(name).map_or_else(|_| "NAME".into(), std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_a_command_when_it_is_typed() {
        assert_eq!(["ring", "hydra:vm:4711", "a b"].map(quoted), ["ring", "hydra:vm:4711", "'a b'"]);
        for hostile in ["$(reboot)", "`reboot`", "a;reboot", "a\'b", "a|b&c", "~", "*"] {
            let words = shlex::split(&format!("mpiprobe --pid-of {}", quoted(hostile))).unwrap();
            assert_eq!(words.last().map(String::as_str), Some(hostile));
            assert!(quoted(hostile).starts_with(['\'', '"']), "{}", quoted(hostile));
        }
    }
}
