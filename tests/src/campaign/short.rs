//! Many short jobs, one after the other, beside somebody who uses the processors: whether each of their calls is understood, from the
//! return of `MPI_Init` on.

use std::fmt;

use super::{
    CampaignError,
    beside::{beside, processors},
};
use crate::profiler::{Flow, Rank};
use crate::{Job, Mpi, Profile, program};

/// What was seen of all runs.
#[derive(Debug, Default, Clone)]
pub struct ShortReport {
    pub runs: u32,
    /// Of which some rank is not known.
    pub ranks: u32,
    /// Of which the partner, the communicator or the bytes of some call are unknown.
    pub unknown: u32,
    /// Of which some operation is not seen to be completed.
    pub not_completed: u32,
    /// Of which some call has no call site.
    pub without_site: u32,
    /// Of which the profile says that it is incomplete.
    pub incomplete: u32,
    /// Of which it does not, although something of the above is so.
    pub silent: u32,
    /// Of the first run with something of the above, what it is.
    pub first: Option<String>,
}

/// Runs a program that sends as soon as it may, by eBPF, so many times.
pub fn short(mpi: Mpi, runs: u32, mut done: impl FnMut(u32)) -> Result<ShortReport, CampaignError> {
    beside(processors(), || {
        let mut report = ShortReport::default();
        for round in 1..=runs {
            report.note(&once(mpi)?);
            done(round);
        }
        Ok(report)
    })
}

fn once(mpi: Mpi) -> Result<Profile, CampaignError> {
    let mut job = Job::builder(mpi, program::WINDOW).ranks(2).run_by("ebpf", [] as [&str; 0])?.spawn()?;
    job.wait()?.success()?;
    Ok(job.profile()?)
}

/// What a profile of [`program::WINDOW`] lacks, compared with what the program does.
#[derive(Debug, Default, Clone)]
pub struct Lacks {
    pub ranks: Vec<String>,
    pub unknown: Vec<String>,
    pub not_completed: Vec<String>,
    pub without_site: Vec<String>,
}

impl Lacks {
    pub fn of(profile: &Profile) -> Self {
        let mut lacks = Self::default();
        for rank in 0..2 {
            match profile.rank(rank) {
                Some(row) => lacks.note(rank, row),
                None => lacks.ranks.push(format!("rank {rank}")),
            }
        }
        lacks
    }

    fn note(&mut self, rank: u32, row: &Rank) {
        // Of which, each has 220 calls of one int.
        let (functions, sent, received) =
            if rank == 0 { (["MPI_Send", "MPI_Isend"], 880, 0) } else { (["MPI_Recv", "MPI_Irecv"], 0, 880) };
        let flows = row.traffic.as_ref().map(|traffic| traffic.flows.as_slice()).unwrap_or_default();
        let say = |flow: &Flow| format!("rank {rank}: {flow:?}");
        // Of the others, a communicator is none of their arguments.
        let is_over = |flow: &Flow| functions.contains(&flow.function.as_str()) || flow.function == "MPI_Bcast";
        let is_unknown = |flow: &&Flow| {
            flow.partner == "unknown"
                || flow.calls_of_unknown_bytes > 0
                || (is_over(flow) && flow.communicator.is_none())
        };
        self.unknown.extend(flows.iter().filter(is_unknown).map(say));
        self.without_site.extend(flows.iter().filter(|flow| flow.site.is_none()).map(say));
        for function in functions {
            let of: Vec<&Flow> = flows.iter().filter(|flow| flow.function == function).collect();
            let sums = of.iter().fold([0; 3], |[calls, sent, received], flow| {
                let right = if flow.peer == Some(1 - rank) { flow.calls } else { 0 };
                [calls + right, sent + flow.sent_bytes, received + flow.received_bytes]
            });
            if sums != [220, sent, received] {
                self.unknown.push(format!("rank {rank}: {function}: {sums:?}"));
            }
            let completed: u64 = of.iter().map(|flow| flow.completed).sum();
            if function.contains("_I") && completed != 220 {
                self.not_completed.push(format!("rank {rank}: {completed} of 220 completed: {of:?}"));
            }
        }
    }

    pub fn is_nothing(&self) -> bool {
        self.all().next().is_none()
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        [&self.ranks, &self.unknown, &self.not_completed, &self.without_site].into_iter().flatten()
    }
}

impl fmt::Display for Lacks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.all().try_for_each(|what| writeln!(formatter, "{what}"))
    }
}

impl ShortReport {
    fn note(&mut self, profile: &Profile) {
        let lacks = Lacks::of(profile);
        self.runs += 1;
        self.ranks += u32::from(!lacks.ranks.is_empty());
        self.unknown += u32::from(!lacks.unknown.is_empty());
        self.not_completed += u32::from(!lacks.not_completed.is_empty());
        self.without_site += u32::from(!lacks.without_site.is_empty());
        self.incomplete += u32::from(!profile.complete);
        self.silent += u32::from(profile.complete && !lacks.is_nothing());
        if self.first.is_none() && !(lacks.is_nothing() && profile.complete) {
            let why = profile.incomplete_because.join("; ");
            self.first = Some(format!("complete: {}, {why}\n{lacks}", profile.complete));
        }
    }

    /// Whether everything was understood.
    pub fn is_right(&self) -> bool {
        self.first.is_none()
    }
}

impl fmt::Display for ShortReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, ranks, unknown, not_completed, without_site, incomplete, silent, first } = self;
        write!(
            formatter,
            "{runs} short jobs: {ranks} with unknown ranks, {unknown} with unknown partners or bytes, {not_completed} with operations \
             not seen to be completed, {without_site} without call sites, {incomplete} said to be incomplete, {silent} lack something and \
             do not say so"
        )?;
        first.as_ref().map_or(Ok(()), |first| write!(formatter, "\nthe first one: {first}"))
    }
}
