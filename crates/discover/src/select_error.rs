//! Why what the user named cannot be observed, and what to do instead.

use std::fmt::Write as _;

use mpiprobe_elf::Architecture;

use super::{
    access::Refusal,
    job::{Job, ranges},
    mpi_process::Unanswered,
    proc_root::ProcRootError,
    process_error::ProcessError,
};

/// Each message says what is the matter, why, and what to type next; several have more than one line.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    #[error(
        "no process is called \"{name}\" ({examined} were looked at, by executable, command name and script){}\n{}",
        did_you_mean(nearest),
        listing(jobs)
    )]
    NoSuchName { name: String, examined: usize, nearest: Vec<String>, jobs: Vec<Job> },

    #[error(
        "{name} ({}) does not use MPI: none of the {files} files it has mapped for execution defines MPI_Init and \
         MPI_Send{}\nIf it loads MPI later, as Python's mpi4py does on import, add --wait. A program that contains MPI \
         (linked with libmpi.a) is recognised only if it is not stripped.\n{}",
        pids_of(pids),
        notes_of(notes),
        listing(jobs)
    )]
    NotMpi { name: String, pids: Vec<u32>, files: usize, notes: Vec<String>, jobs: Vec<Job> },

    #[error(
        "{name} (pid {pid}) starts MPI processes but is none; name its ranks instead, by program or with --job\n{}",
        listing(jobs)
    )]
    IsLauncher { name: String, pid: u32, jobs: Vec<Job> },

    #[error("{what} runs in {} jobs; choose one with --job ID, or take them all with --all-jobs\n{}", jobs.len(), listing(jobs))]
    SeveralJobs { what: String, jobs: Vec<Job> },

    #[error("{what} has no process in a job \"{wanted}\"{}\n{}", did_you_mean(nearest), listing(jobs))]
    NoSuchJob { what: String, wanted: String, nearest: Vec<String>, jobs: Vec<Job> },

    #[error(
        "no MPI process runs on this node{}; start one and name it: mpiprobe --pid-of PROGRAM{}",
        if *refused > 0 { format!(" that you may trace ({refused} processes of others were not looked at)") } else { String::new() },
        lines_of(unanswered)
    )]
    NoMpi { refused: usize, unanswered: Vec<Unanswered> },

    #[error(
        "there is no process {pid} here, but process {outside} has that number inside its container; use --pid {outside}"
    )]
    InsideContainer { pid: u32, outside: u32 },

    #[error(
        "process {pid} uses an MPI library for {architecture}, and this mpiprobe observes {} only; use an mpiprobe built for \
         it, if it is not a 32-bit one: those are not supported",
        Architecture::NATIVE
    )]
    Foreign { pid: u32, architecture: Architecture },

    #[error("process {pid} began to use MPI only while it was looked at; try again")]
    JustAppeared { pid: u32 },

    #[error("process {pid} is mpiprobe itself; name the MPI program to observe")]
    Own { pid: u32 },

    #[error("process {pid} is a thread of the kernel, not a program; name the MPI program to observe")]
    KernelThread { pid: u32 },

    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Proc(#[from] ProcRootError),
}

impl SelectError {
    /// Whether there is simply nobody here who could be observed.
    pub fn is_absence(&self) -> bool {
        match self {
            Self::NoMpi { refused, unanswered } => *refused == 0 && unanswered.is_empty(),
            Self::NoSuchName { .. } | Self::NoSuchJob { .. } => true,
            _ => false,
        }
    }
}

fn lines_of(unanswered: &[Unanswered]) -> String {
    unanswered.iter().fold(String::new(), |mut text, left| {
        let _ = write!(text, "\n{left}");
        text
    })
}

fn did_you_mean(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        [one] => format!("; did you mean {one}?"),
        several => format!("; did you mean one of {}?", several.join(", ")),
    }
}

fn pids_of(pids: &[u32]) -> String {
    format!("{} {}", if pids.len() == 1 { "pid" } else { "pids" }, ranges(pids))
}

fn notes_of(notes: &[String]) -> String {
    notes.iter().fold(String::new(), |mut text, note| {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n  {note}");
        text
    })
}

fn listing(jobs: &[Job]) -> String {
    if jobs.is_empty() {
        return "No MPI process runs on this node that you may trace.".to_owned();
    }
    jobs.iter().fold("MPI jobs on this node:".to_owned(), |mut text, job| {
        let _ = write!(text, "\n  {job}");
        text
    })
}
