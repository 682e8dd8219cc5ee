//! Runs of different numbers of ranks: what the POP Centre of Excellence calls scalability (co-design.pop-coe.eu).

use std::collections::BTreeMap;

use serde::Serialize;

use super::Run;

/// By number of ranks, the fewest first; those are what the others are measured by.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scaling {
    /// Ranks have as much to do each, whatever their number; otherwise there is as much to do in all.
    pub is_weak: bool,
    pub rows: Vec<ScalingRow>,
}

/// Runs of one number of ranks; means over them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScalingRow {
    pub ranks: usize,
    pub runs: usize,
    /// Of the longest rank, ns.
    pub elapsed_ns: f64,
    /// By how much faster it was than with the fewest ranks; of weak scaling, with as much to do for each.
    pub speedup: f64,
    /// `parallel` × `computation`; `null`: not known.
    pub global: Option<f64>,
    /// `load_balance` × `communication`; these are `null` where they are not known of a run.
    pub parallel: Option<f64>,
    pub load_balance: Option<f64>,
    pub communication: Option<f64>,
    /// Time outside MPI with the fewest ranks over that with so many: below 1 where more ranks have more to compute in all. `null`:
    /// nobody did anything outside MPI.
    pub computation: Option<f64>,
}

impl Scaling {
    pub(super) fn of(runs: &[&Run], is_weak: bool) -> Self {
        let mut by_ranks: BTreeMap<usize, Vec<&Run>> = BTreeMap::new();
        for run in runs {
            by_ranks.entry(run.ranks()).or_default().push(run);
        }
        let mut fewest: Option<(usize, f64, f64)> = None;
        let rows = by_ranks.into_iter().map(|(ranks, runs)| {
            let mean = |of: &dyn Fn(&Run) -> f64| runs.iter().map(|run| of(run)).sum::<f64>() / runs.len() as f64;
            let (elapsed_ns, useful_ns) = (mean(&|run| run.amounts.elapsed_ns), mean(&|run| run.useful_ns));
            let (few_ranks, few_elapsed, few_useful) = *fewest.get_or_insert((ranks, elapsed_ns, useful_ns));
            // What there would be to do in all if nothing were lost.
            let work = if is_weak { ranks as f64 / few_ranks as f64 } else { 1.0 };
            let known: Option<Vec<_>> = runs.iter().map(|run| run.efficiency).collect();
            let efficiency = |of: &dyn Fn(&mpiprobe_model::Efficiency) -> f64| {
                known.as_ref().map(|known| known.iter().map(of).sum::<f64>() / known.len() as f64)
            };
            let parallel = efficiency(&|known| known.parallel);
            let computation = (useful_ns > 0.0).then(|| few_useful * work / useful_ns);
            ScalingRow {
                ranks,
                runs: runs.len(),
                elapsed_ns,
                speedup: if elapsed_ns > 0.0 { few_elapsed * work / elapsed_ns } else { 0.0 },
                global: parallel.zip(computation).map(|(parallel, computation)| parallel * computation),
                parallel,
                load_balance: efficiency(&|known| known.load_balance),
                communication: efficiency(&|known| known.communication),
                computation,
            }
        });
        Self { is_weak, rows: rows.collect() }
    }
}
