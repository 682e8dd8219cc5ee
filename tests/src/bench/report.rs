//! What was measured, as a table and as JSON, and whether it is what was aimed at.

use std::fmt;

use mpiprobe_attach::AttachMethod;
use mpiprobe_plan::Census;
use serde::Serialize;

use super::{
    Counting, Effort, Probes, Script,
    callrate::LOOPS,
    figures::{Figure, Figures},
    sites::Sites,
};
use crate::Mpi;

/// mpiprobe's cost over that of a probe that does nothing, at most.
const GOAL_EMPTY: f64 = 1.15;
/// mpiprobe's cost over bpftrace's, at most.
const GOAL_BPFTRACE: f64 = 0.65;

/// Everything about one MPI.
#[derive(Debug, Serialize)]
pub struct Report {
    mpi: String,
    attached_by: AttachMethod,
    rounds: u32,
    batches: u32,
    turns: u32,
    census: String,
    /// Default functions that are single-stepped, with the reason why no better site was found.
    slow: Vec<String>,
    rows: Vec<Row>,
    goals: Vec<Goal>,
}

/// One loop under one kind of probes.
#[derive(Debug, Serialize)]
struct Row {
    functions: &'static str,
    probes: String,
    #[serde(flatten)]
    per_call: Figure,
    /// More than bare.
    added: Option<Figure>,
    /// The minimum added over that of the empty probe.
    to_empty: Option<f64>,
    /// The same over bpftrace's, where both probe the same instructions.
    to_bpftrace: Option<f64>,
}

/// One aim.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Goal {
    what: &'static str,
    at_most: f64,
    /// Geometric mean over the loops.
    mean: f64,
    /// The worst loop.
    worst: f64,
    met: bool,
}

impl Report {
    pub(super) fn new(
        mpi: Mpi,
        attached_by: AttachMethod,
        sites: &Sites,
        kinds: &[Probes],
        effort: Effort,
        figures: &Figures,
    ) -> Self {
        let rows: Vec<Row> = (0..LOOPS.len()).flat_map(|index| rows(index, sites, kinds, figures)).collect();
        let rows_of = |wanted: Counting| {
            let measured =
                kinds.iter().find(|kind| matches!(kind, Probes::Mpiprobe(_, counting) if *counting == wanted));
            let measured = measured.map(ToString::to_string);
            rows.iter().filter(move |row| Some(&row.probes) == measured.as_ref())
        };
        let (calls, traffic) = (|| rows_of(Counting::Calls), || rows_of(Counting::Traffic));
        let goals = [
            goal("mpiprobe / empty probe", GOAL_EMPTY, calls().filter_map(|row| row.to_empty)),
            goal("mpiprobe / bpftrace", GOAL_BPFTRACE, calls().filter_map(|row| row.to_bpftrace)),
            goal("mpiprobe with traffic / empty probe", GOAL_EMPTY, traffic().filter_map(|row| row.to_empty)),
            goal("mpiprobe with traffic / bpftrace", GOAL_BPFTRACE, traffic().filter_map(|row| row.to_bpftrace)),
        ];
        let goals = goals.into_iter().flatten().collect();
        let Census { slow, .. } = &sites.census;
        Self {
            mpi: format!("{mpi} ({})", sites.implementation),
            attached_by,
            rounds: effort.rounds,
            batches: effort.batches,
            turns: effort.turns,
            census: sites.census.to_string(),
            slow: slow.iter().map(|function| format!("{}: {}", function.name, function.reason)).collect(),
            rows,
            goals,
        }
    }
}

fn rows(index: usize, sites: &Sites, kinds: &[Probes], figures: &Figures) -> Vec<Row> {
    let Some(each) = LOOPS.get(index) else { return Vec::new() };
    let figure = |kind: usize| figures.per_call(index, kind, each.probed.len());
    let bare = figure(0);
    // A call that is not probed has no cost of its own to compare.
    let added = |kind: usize| {
        let (figure, bare) = (figure(kind)?, bare?);
        let added =
            Figure { minimum_ns: figure.minimum_ns - bare.minimum_ns, median_ns: figure.median_ns - bare.median_ns };
        (kind != 0 && !each.probed.is_empty()).then_some(added)
    };
    let position = |wanted: Probes| kinds.iter().position(|kind| *kind == wanted);
    let reference = |wanted: Probes| position(wanted).and_then(added).map(|added| added.minimum_ns);
    let ratio = |kind: usize, reference: Option<f64>| Some(added(kind)?.minimum_ns / reference.filter(|ns| *ns > 0.0)?);
    let empty = reference(Probes::Empty);
    let bpftrace = reference(Probes::Bpftrace(Script::SameFigures)).filter(|_| sites.are_at_entry(each.probed));
    let row = |(kind, probes): (usize, &Probes)| {
        Some(Row {
            functions: each.name,
            probes: probes.to_string(),
            per_call: figure(kind)?,
            added: added(kind),
            to_empty: ratio(kind, empty),
            to_bpftrace: ratio(kind, bpftrace),
        })
    };
    kinds.iter().enumerate().filter_map(row).collect()
}

/// `None` without any ratio.
fn goal(what: &'static str, at_most: f64, ratios: impl Iterator<Item = f64>) -> Option<Goal> {
    let ratios: Vec<f64> = ratios.collect();
    let worst = ratios.iter().copied().max_by(f64::total_cmp)?;
    let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    Some(Goal { what, at_most, mean, worst, met: mean <= at_most })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mpi, attached_by, rounds, batches, turns, .. } = self;
        writeln!(f, "{mpi}, {attached_by}: {rounds} rounds of {batches} batches of {turns} turns; ns per call")?;
        writeln!(f, "{:>72}   {:>20}", "fastest batch", "middle batch")?;
        writeln!(
            f,
            "{:<32}{:<18}{:>9}{:>9}{:>9}{:>11}{:>9}{:>9}",
            "loop", "probes", "call", "added", "/ empty", "/ bpftrace", "call", "added"
        )?;
        let mut last = "";
        for row in &self.rows {
            let name = if row.functions == last { "" } else { row.functions };
            last = row.functions;
            let ns = |ns: Option<f64>| ns.map_or_else(String::new, |ns| format!("{ns:.0}"));
            let ratio = |ratio: Option<f64>| ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
            let of_bare = row.added.is_none();
            writeln!(
                f,
                "{:<32}{:<18}{:>9.1}{:>9}{:>9}{:>11}{:>9.1}{:>9}",
                name,
                row.probes,
                row.per_call.minimum_ns,
                ns(row.added.map(|added| added.minimum_ns)),
                if of_bare { String::new() } else { ratio(row.to_empty) },
                if of_bare { String::new() } else { ratio(row.to_bpftrace) },
                row.per_call.median_ns,
                ns(row.added.map(|added| added.median_ns)),
            )?;
        }
        writeln!(f, "sites: {}", self.census)?;
        for slow in &self.slow {
            writeln!(f, "  slow: {slow}")?;
        }
        for Goal { what, at_most, mean, worst, met } in &self.goals {
            let verdict = if *met { "met" } else { "MISSED" };
            writeln!(f, "goal {what} <= {at_most}: {verdict} (mean {mean:.2}, worst {worst:.2})")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_judged_by_the_geometric_mean() {
        let goal = goal("a / b", 2.0, [1.0, 4.0].into_iter()).unwrap();
        assert!((goal.mean - 2.0).abs() < 1e-9 && (goal.worst - 4.0).abs() < 1e-9 && goal.met);
        assert_eq!(super::goal("a / b", 2.0, std::iter::empty()), None);
    }
}
