//! The jobs on this node.

use std::fmt::Write as _;

use mpiprobe_discover::{Job, Snapshot, Unanswered};
use serde::Serialize;

use super::{
    table::{
        Column::{Left, Right},
        table,
    },
    units::or_unknown,
};

/// What `ps` shows.
pub fn jobs(snapshot: &Snapshot) -> String {
    let mut text = if snapshot.jobs.is_empty() {
        format!(
            "No MPI process runs on this node ({} processes were looked at).\n",
            snapshot.examined - snapshot.refused
        )
    } else {
        listing(&snapshot.jobs)
    };
    if snapshot.refused > 0 {
        let _ = writeln!(text, "{} processes of other users were not looked at; root sees all.", snapshot.refused);
    }
    for left in &snapshot.unanswered {
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
    /// Processes that the caller may not trace: there may be MPI among them.
    not_looked_at: usize,
    /// Processes that may use MPI by way of files which do not answer, by user.
    unanswered: &'a [Unanswered],
}

impl<'a> JobList<'a> {
    pub fn new(snapshot: &'a Snapshot) -> Self {
        Self {
            schema: "mpiprobe.jobs/1",
            jobs: &snapshot.jobs,
            not_looked_at: snapshot.refused,
            unanswered: &snapshot.unanswered,
        }
    }
}

/// What to type next.
pub fn next_step(jobs: &[Job]) -> String {
    let Some(job) = jobs.first() else {
        return "Start an MPI program, then: sudo mpiprobe --pid-of PROGRAM\nWhat works on this system: sudo mpiprobe doctor\n".into();
    };
    let programs = job.programs();
    let target = match programs.first() {
        Some(program) if jobs.len() == 1 => format!("--pid-of {program}"),
        _ => format!("--job {}", job.id),
    };
    format!("\nTo observe: sudo mpiprobe {target}\n")
}
