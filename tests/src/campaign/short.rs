//! Many short jobs, one after the other, beside somebody who uses the processors: whether each of their calls is understood, from the
//! return of `MPI_Init` on.

use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use super::CampaignError;
use crate::{Job, Mpi, Profile, program};

/// What was seen of all runs.
#[derive(Debug, Default, Clone, Copy)]
pub struct ShortReport {
    pub runs: u32,
    /// Of which the partner or the bytes of some call are unknown.
    pub unknown: u32,
    /// Of which the profile says that it is incomplete.
    pub incomplete: u32,
    /// Of which it does not, although something is unknown.
    pub silent: u32,
}

/// Runs a program that sends as soon as it may, by eBPF, so many times.
pub fn short(mpi: Mpi, runs: u32, mut done: impl FnMut(u32)) -> Result<ShortReport, CampaignError> {
    let is_over = AtomicBool::new(false);
    let processors = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    spin_loop();
                }
            });
        }
        let mut report = ShortReport::default();
        let ended = (1..=runs).try_for_each(|round| {
            report.note(&once(mpi)?);
            done(round);
            Ok(())
        });
        is_over.store(true, Ordering::Relaxed);
        ended.map(|()| report)
    })
}

fn once(mpi: Mpi) -> Result<Profile, CampaignError> {
    let mut job = Job::builder(mpi, program::WINDOW).ranks(2).run_by("ebpf", [] as [&str; 0])?.spawn()?;
    job.wait()?.success()?;
    Ok(job.profile()?)
}

impl ShortReport {
    fn note(&mut self, profile: &Profile) {
        let flows = profile.ranks.iter().filter_map(|row| row.traffic.as_ref()).flat_map(|traffic| &traffic.flows);
        let is_unknown = flows.into_iter().any(|flow| flow.partner == "unknown" || flow.calls_of_unknown_bytes > 0);
        self.runs += 1;
        self.unknown += u32::from(is_unknown);
        self.incomplete += u32::from(!profile.complete);
        self.silent += u32::from(is_unknown && profile.complete);
    }
}
