//! The jobs on this node.

use std::fmt::Write as _;

use mpiprobe_discover::{Job, Snapshot, Unanswered};
use serde::{Deserialize, Serialize};

use super::{
    table::{
        Column::{Left, Right},
        table,
    },
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
    let columns = [
        Left("job"),
        Left("user"),
        Right("ranks"),
        Left("program"),
        Left("MPI"),
        Left("launcher"),
        Left("pids by rank"),
    ];
    let rows = jobs.iter().map(|job| {
        let libraries: Vec<String> = job
            .libraries
            .iter()
            .map(|library| {
                let name = library.implementation.clone().unwrap_or_else(|| "unknown MPI".into());
                if library.deleted { format!("{name} (library file replaced)") } else { name }
            })
            .collect();
        vec![
            job.id.to_string(),
            job.user.name.clone(),
            format!("{} of {}", job.ranks.len(), or_unknown(job.size)),
            job.programs().join(", "),
            libraries.join(", "),
            job.launcher
                .as_ref()
                .map_or_else(|| "-".into(), |launcher| format!("{} ({})", launcher.program(), launcher.pid)),
            pids(job),
        ]
    });
    table(&columns, rows)
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
#[derive(Debug, Serialize)]
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
    pub fn new(snapshot: &'a Snapshot) -> Self {
        Self {
            schema: SCHEMA,
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
            schema: SCHEMA,
            jobs: &self.jobs,
            looked_at: self.looked_at,
            not_looked_at: self.not_looked_at,
            unopened: self.unopened,
            why_unopened: self.why_unopened.as_deref(),
            unanswered: &self.unanswered,
        }
    }
}

const SCHEMA: &str = "mpiprobe.jobs/1";

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
        Some(program) if jobs.len() == 1 => format!("--pid-of {program}"),
        _ => format!("--job {}", job.id),
    };
    format!("\nTo observe: {sudo}mpiprobe {target}\n")
}
