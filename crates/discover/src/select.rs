//! Finds the processes that a user named.

use std::collections::BTreeSet;

use super::{
    explain::{explain_name, explain_pid},
    job::Job,
    mpi_process::{MpiProcess, Unanswered},
    nearest::nearest,
    recognise::Recognise,
    scan::{Scanner, Snapshot},
    select_error::SelectError,
    text::{base_name, printable},
};

/// What the user named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Every process of this name (`--pid-of`); of a path, the base name counts.
    Name(String),
    /// These processes (`--pid`).
    Pids(Vec<u32>),
    /// Every MPI process: a job is named instead.
    Any,
}

/// Which of the jobs that the target has processes in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobChoice {
    /// There must be one only, unless the processes were named one by one.
    Only,
    /// All of them (`--all-jobs`).
    All,
    /// The job of this name (`--job`).
    Named(String),
}

/// What is to be observed.
#[derive(Debug)]
pub struct Selection {
    /// At least one, in ascending order of pid.
    pub processes: Vec<MpiProcess>,
    /// The jobs they belong to, each with all its processes on this node, named or not.
    pub jobs: Vec<Job>,
    /// Others that may be meant and could not be looked at.
    pub unanswered: Vec<Unanswered>,
}

/// Finds the MPI processes that `target` and `choice` name, all of them of this machine's architecture and open to the
/// caller.
///
/// mpiprobe itself and launchers are never among them.
pub fn select<R: Recognise + Send>(
    scanner: &mut Scanner<R>,
    target: &Target,
    choice: &JobChoice,
) -> Result<Selection, SelectError> {
    let Snapshot { processes, jobs, examined, refused, unanswered, .. } = scanner.scan()?;
    let named: Vec<MpiProcess> = match target {
        Target::Name(name) => {
            let name = base_name(name.as_bytes());
            let (named, others): (Vec<_>, _) = processes.into_iter().partition(|process| process.is_called(name));
            if named.is_empty() {
                return Err(explain_name(scanner, name, examined, &others, jobs));
            }
            named
        }
        Target::Pids(pids) => {
            for pid in pids {
                if !processes.iter().any(|process| process.pid() == *pid) {
                    return Err(explain_pid(scanner, *pid, &processes, jobs));
                }
            }
            processes.into_iter().filter(|process| pids.contains(&process.pid())).collect()
        }
        Target::Any => processes,
    };
    if named.is_empty() {
        return Err(SelectError::NoMpi { refused, unanswered });
    }
    let processes = choose(named, target, choice, &jobs)?;
    if let Some((pid, architecture)) =
        processes.iter().find_map(|found| Some((found.pid(), found.foreign_architecture()?)))
    {
        return Err(SelectError::Foreign { pid, architecture });
    }
    let jobs = jobs_of(&processes, jobs);
    Ok(Selection { processes, jobs, unanswered })
}

/// Keeps the processes of the wanted jobs.
fn choose(
    mut named: Vec<MpiProcess>,
    target: &Target,
    choice: &JobChoice,
    jobs: &[Job],
) -> Result<Vec<MpiProcess>, SelectError> {
    let what = || match target {
        Target::Name(name) => printable(name.as_bytes()),
        Target::Pids(_) => "what you named".to_owned(),
        Target::Any => "MPI".to_owned(),
    };
    let candidates = jobs_of(&named, jobs.to_vec());
    match choice {
        JobChoice::All => {}
        JobChoice::Only if candidates.len() <= 1 || matches!(target, Target::Pids(_)) => {}
        JobChoice::Only => return Err(SelectError::SeveralJobs { what: what(), jobs: candidates }),
        JobChoice::Named(wanted) => {
            let meant: Vec<_> = candidates.iter().filter(|job| job.id.is_meant_by(wanted)).collect();
            // Two jobs may differ only before the colon.
            let exact = meant.iter().find(|job| job.id.as_str() == wanted);
            match (exact, meant.as_slice()) {
                (Some(job), _) | (None, [job]) => named.retain(|process| process.job == job.id),
                // All that a batch system's job runs: it may have several of MPI.
                (None, []) if named.iter().any(|process| process.is_allocated_as(wanted)) => {
                    named.retain(|process| process.is_allocated_as(wanted));
                }
                (None, []) => {
                    let nearest = nearest(wanted, candidates.iter().map(|job| job.id.as_str()));
                    let wanted = printable(wanted.as_bytes());
                    return Err(SelectError::NoSuchJob { what: what(), wanted, nearest, jobs: candidates });
                }
                _ => return Err(SelectError::SeveralJobs { what: what(), jobs: meant.into_iter().cloned().collect() }),
            }
        }
    }
    Ok(named)
}

fn jobs_of(processes: &[MpiProcess], mut jobs: Vec<Job>) -> Vec<Job> {
    let ids: BTreeSet<_> = processes.iter().map(|process| &process.job).collect();
    jobs.retain(|job| ids.contains(&job.id));
    jobs
}

#[cfg(test)]
#[path = "select_tests.rs"]
mod tests;
