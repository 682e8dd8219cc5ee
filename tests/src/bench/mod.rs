//! What a probed MPI call costs: one running process under each kind of probes in turn, in rounds, so that whatever else
//! the machine does meanwhile meets all of them alike.

pub mod apps;
mod attached;
mod callrate;
mod child;
pub mod clocks;
mod cost;
mod error;
mod figures;
pub mod files;
pub mod formats;
pub mod hang;
pub mod nodes;
pub mod program;
mod report;
pub mod service;
mod settled;
mod sites;
pub mod slowed;
pub mod start;
mod times;
mod trace;
pub mod view;
mod wrapper;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use mpiprobe_attach::{Engine, choose_method};
use mpiprobe_common::Config;

pub use error::BenchError;
pub use report::{Goal, Report};
pub use times::{By as MeasuredBy, TimesReport, run as run_times};
pub use trace::{TraceReport, run as run_trace};
pub use wrapper::{WrapperReport, run as run_wrapper};

use attached::Attached;
use callrate::{CallRate, LOOPS};
use figures::Figures;
use settled::settle;
use sites::Sites;

use crate::Mpi;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// How often each kind of probes is attached.
    pub rounds: u32,
    /// Batches of each loop in a round; short, so that some are not disturbed.
    pub batches: u32,
    /// Turns of the loop in a batch.
    pub turns: u32,
}

/// What is attached while a loop runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probes {
    Bare,
    /// A program that does nothing, at mpiprobe's sites and attached in mpiprobe's way.
    Empty,
    /// mpiprobe as users start it: this executable, without `--traffic` or with it.
    Mpiprobe(PathBuf, Counting),
    /// bpftrace with a script for the same purpose.
    Bpftrace(Script),
}

/// What mpiprobe is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// What it gives without options: calls and times.
    Calls,
    /// Bytes, partners, communicators and call sites too.
    Traffic,
}

/// What bpftrace is asked for, by function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// What mpiprobe gives without options: calls; total, shortest and longest time; a histogram.
    SameFigures,
    /// The least that is of use: calls and total time.
    Sums,
}

/// Measures under one MPI. `builds` are executables of mpiprobe; the first is the one that the goals are about.
///
/// Gives up between two steps when `interrupted` becomes true. Nothing is left attached or running when this returns.
pub fn run(mpi: Mpi, builds: &[PathBuf], effort: Effort, interrupted: &AtomicBool) -> Result<Report, BenchError> {
    let engine = choose_method(&Config::DEFAULT, None)?;
    let mut target = CallRate::start(mpi)?;
    let sites = Sites::plan(target.library())?;
    let mut kinds = vec![Probes::Bare, Probes::Empty];
    for build in builds {
        kinds.extend([Counting::Calls, Counting::Traffic].map(|counting| Probes::Mpiprobe(build.clone(), counting)));
    }
    kinds.extend([Script::SameFigures, Script::Sums].map(Probes::Bpftrace));

    let mut figures = Figures::default();
    for _ in 0..effort.rounds {
        for (kind, probes) in kinds.iter().enumerate() {
            if interrupted.load(Ordering::Relaxed) {
                return Err(BenchError::Interrupted);
            }
            let figures = &mut |index, batches| figures.add(index, kind, batches);
            measure(&mut target, probes, &sites, &engine, effort, figures)?;
        }
    }
    Ok(Report::new(mpi, engine.method, &sites, &kinds, effort, &figures))
}

/// One kind of probes in one round: all loops, and whether every call was counted.
fn measure(
    target: &mut CallRate,
    probes: &Probes,
    sites: &Sites,
    engine: &Engine,
    effort: Effort,
    add: &mut impl FnMut(usize, callrate::Batches),
) -> Result<(), BenchError> {
    let attached = Attached::attach(probes, target, sites, engine)?;
    settle(engine, sites)?;
    target.forget_calls();
    for (index, each) in LOOPS.iter().enumerate() {
        add(index, target.measure(each, effort.batches, effort.turns)?);
    }
    let Some(counted) = attached.detach()? else { return Ok(()) };
    for (function, made) in target.calls_made() {
        let counted = counted.get(function).copied().unwrap_or(0);
        if counted != made {
            return Err(BenchError::Miscounted { by: probes.to_string(), function, made, counted });
        }
    }
    Ok(())
}

impl std::fmt::Display for Probes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bare => formatter.write_str("bare"),
            Self::Empty => formatter.write_str("empty"),
            Self::Mpiprobe(path, counting) => {
                let more = if *counting == Counting::Traffic { ", traffic" } else { "" };
                write!(formatter, "{}{more}", path.file_name().unwrap_or(path.as_os_str()).display())
            }
            Self::Bpftrace(Script::SameFigures) => formatter.write_str("bpftrace"),
            Self::Bpftrace(Script::Sums) => formatter.write_str("bpftrace, sums"),
        }
    }
}
