//! What a call costs that counts itself: the same program bare, with the wrapper, and with the wrapper switched off, in rounds.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use super::callrate::{CallRate, LOOK_AWAY, LOOPS, Loop, PING_PONG, TIME_STAMPS};
use super::figures::{Figure, Figures};
use super::{BenchError, Effort};
use crate::Mpi;

/// What a call may cost more, ns.
const GOAL_NS: f64 = 20.0;
/// The same after `MPI_Pcontrol(0)`, ns.
const GOAL_OFF_NS: f64 = 5.0;

/// How the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum RunKind {
    Bare,
    Wrapper,
    SwitchedOff,
}

const RUN_KINDS: [RunKind; 3] = [RunKind::Bare, RunKind::Wrapper, RunKind::SwitchedOff];

/// Everything about one MPI.
#[derive(Debug, Serialize)]
pub struct WrapperReport {
    mpi: String,
    rounds: u32,
    batches: u32,
    turns: u32,
    rows: Vec<Row>,
    /// What it takes on this machine to know when a call begins and ends, at the least: two reads of the time stamp counter, ns.
    time_stamps_ns: f64,
    /// Means over the loops that were aimed at, and the aims.
    goals: [Goal; 2],
}

/// One loop; times per call, ns.
#[derive(Debug, Serialize)]
struct Row {
    functions: &'static str,
    bare: Figure,
    /// More than bare, of the fastest and the middle batches.
    wrapper: Figure,
    switched_off: Figure,
}

#[derive(Debug, Serialize)]
struct Goal {
    what: RunKind,
    at_most_ns: f64,
    mean_ns: f64,
    met: bool,
}

/// Measures under one MPI. Gives up between two steps when `interrupted` becomes true.
pub fn run(mpi: Mpi, effort: Effort, interrupted: &AtomicBool) -> Result<WrapperReport, BenchError> {
    let mut targets = [CallRate::start_two(mpi)?, CallRate::start_wrapped(mpi)?, CallRate::start_wrapped(mpi)?];
    let [_, _, off] = &mut targets;
    off.measure(&LOOK_AWAY, 1, 1)?;
    let loops: Vec<&'static Loop> = LOOPS.iter().filter(|each| !each.probed.is_empty()).chain([&PING_PONG]).collect();
    let mut figures = Figures::default();
    let mut time_stamps_ns = f64::INFINITY;
    for _ in 0..effort.rounds {
        let [bare, ..] = &mut targets;
        let time_stamps = bare.measure(&TIME_STAMPS, effort.batches, effort.turns)?;
        time_stamps_ns = time_stamps_ns.min(time_stamps.minimum_ns);
        for (index, each) in loops.iter().enumerate() {
            for (kind, target) in targets.iter_mut().enumerate() {
                if interrupted.load(Ordering::Relaxed) {
                    return Err(BenchError::Interrupted);
                }
                figures.add(index, kind, target.measure(each, effort.batches, effort.turns)?);
            }
        }
    }
    let [bare, wrapped, off] = targets;
    drop(bare);
    expect_calls(wrapped, true)?;
    expect_calls(off, false)?;
    let rows: Vec<Row> = loops.iter().enumerate().filter_map(|(index, each)| row(index, each, &figures)).collect();
    let goals = [
        goal(RunKind::Wrapper, GOAL_NS, rows.iter().map(|row| row.wrapper)),
        goal(RunKind::SwitchedOff, GOAL_OFF_NS, rows.iter().map(|row| row.switched_off)),
    ];
    let Effort { rounds, batches, turns } = effort;
    Ok(WrapperReport { mpi: mpi.to_string(), rounds, batches, turns, rows, time_stamps_ns, goals })
}

/// Whether all calls were counted, or none of them: else it is no cost of counting that was measured.
fn expect_calls(target: CallRate, all: bool) -> Result<(), BenchError> {
    let expected: Vec<(&'static str, u64)> = target.calls_made().collect();
    let counted = target.end()?;
    for (function, made) in expected {
        let made = if all { made } else { 0 };
        let counted = counted.get(function).copied().unwrap_or(0);
        // The ranks of the ping-pong are told by the job alone.
        if counted != made {
            return Err(BenchError::Miscounted { by: "the wrapper".into(), function, made, counted });
        }
    }
    Ok(())
}

fn row(index: usize, each: &Loop, figures: &Figures) -> Option<Row> {
    // Both ranks of a ping-pong are waited for.
    let calls = each.probed.len() * if each.takes_all { 2 } else { 1 };
    let figure = |kind: RunKind| figures.per_call(index, RUN_KINDS.iter().position(|known| *known == kind)?, calls);
    let bare = figure(RunKind::Bare)?;
    let added = |kind: RunKind| {
        let figure = figure(kind)?;
        Some(Figure { minimum_ns: figure.minimum_ns - bare.minimum_ns, median_ns: figure.median_ns - bare.median_ns })
    };
    Some(Row {
        functions: each.name,
        bare,
        wrapper: added(RunKind::Wrapper)?,
        switched_off: added(RunKind::SwitchedOff)?,
    })
}

fn goal(what: RunKind, at_most_ns: f64, added: impl ExactSizeIterator<Item = Figure>) -> Goal {
    let number = added.len().max(1) as f64;
    let mean_ns = added.map(|figure| figure.minimum_ns).sum::<f64>() / number;
    Goal { what, at_most_ns, mean_ns, met: mean_ns <= at_most_ns }
}

impl fmt::Display for WrapperReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mpi, rounds, batches, turns, .. } = self;
        writeln!(f, "{mpi}: {rounds} rounds of {batches} batches of {turns} turns; ns per call")?;
        writeln!(f, "{:<32}{:>30}{:>30}", "", "fastest batch", "middle batch")?;
        let titles = ["bare", "wrapper", "off"].map(|title| format!("{title:>10}")).concat();
        writeln!(f, "{:<32}{titles}{titles}", "loop")?;
        for Row { functions, bare, wrapper, switched_off } in &self.rows {
            write!(f, "{functions:<32}")?;
            for of in [|figure: &Figure| figure.minimum_ns, |figure: &Figure| figure.median_ns] {
                write!(f, "{:>10.1}{:>+10.1}{:>+10.1}", of(bare), of(wrapper), of(switched_off))?;
            }
            writeln!(f)?;
        }
        let time_stamps_ns = self.time_stamps_ns;
        writeln!(f, "of that, to read the time stamp counter twice takes {time_stamps_ns:.1} ns on this machine")?;
        for Goal { what, at_most_ns, mean_ns, met } in &self.goals {
            let what = if *what == RunKind::Wrapper { "wrapper" } else { "wrapper, switched off" };
            let verdict = if *met { "met" } else { "MISSED" };
            writeln!(f, "goal {what} <= {at_most_ns} ns more: {verdict} (mean {mean_ns:.1})")?;
        }
        Ok(())
    }
}
