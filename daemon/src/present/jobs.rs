//! The jobs on this node.

use super::{
    table::{Column::{Left, Right}, table},
    units::or_unknown,
};
use crate::discover::Job;

/// What `ps` shows.
pub fn jobs(jobs: &[Job]) -> String {
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
        let libraries: Vec<String> = job.libraries.iter().map(|library| {
            let name = library.implementation.clone().unwrap_or_else(|| "unknown MPI".into());
            if library.deleted { format!("{name} (library file replaced)") } else { name }
        }).collect();
        vec![
            job.id.to_string(),
            job.user.name.clone(),
            format!("{} of {}", job.ranks.len(), or_unknown(job.size)),
            job.programs().join(", "),
            libraries.join(", "),
            job.launcher.as_ref().map_or_else(|| "-".into(), |launcher| format!("{} ({})", launcher.program(), launcher.pid)),
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
