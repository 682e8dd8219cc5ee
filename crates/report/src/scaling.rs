//! Runs of different numbers of ranks: what the POP Centre of Excellence calls scalability (co-design.pop-coe.eu).

use std::collections::BTreeMap;

use mpiprobe_functions::Group;
use mpiprobe_model::{Efficiency, Profile, Spent};
use schemars::JsonSchema;
use serde::Serialize;

/// What is known of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalingRun {
    pub ranks: usize,
    /// Wall time of the longest rank, ns.
    pub elapsed_ns: f64,
    /// Time outside MPI of all ranks, ns, without what starts and ends MPI; `None`: not known.
    pub useful_ns: Option<f64>,
    /// `None`: not known.
    pub efficiency: Option<Efficiency>,
}

impl ScalingRun {
    pub fn of(profile: &Profile) -> Self {
        let useful = profile.ranks.iter().map(|rank| {
            let startup = rank.groups.iter().find(|group| group.group == Group::InitFinalize.title());
            let spent = Spent {
                wall_ns: rank.wall_ns,
                thread_wall_ns: rank.thread_wall_ns,
                mpi_ns: rank.mpi_ns,
                startup_ns: startup.map_or(0, |group| group.time_ns),
                unseen_ns: rank.unseen_ns,
                untimed_calls: rank.untimed_calls,
            };
            spent.useful().map(|(useful_ns, _)| useful_ns)
        });
        Self {
            ranks: profile.ranks.len(),
            elapsed_ns: profile.ranks.iter().map(|rank| rank.wall_ns).max().unwrap_or(0) as f64,
            useful_ns: useful.sum(),
            efficiency: profile.totals.efficiency,
        }
    }
}

/// By number of ranks, the fewest first; those are what the others are measured by.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Scaling {
    /// Ranks have as much to do each, whatever their number; otherwise there is as much to do in all.
    pub is_weak: bool,
    pub rows: Vec<ScalingRow>,
}

/// Runs of one number of ranks; means over them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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
    /// Time outside MPI with the fewest ranks over that with so many: below 1 where more ranks have more to compute in all. `null`: not
    /// known of a run, or nobody did anything outside MPI.
    pub computation: Option<f64>,
}

impl Scaling {
    pub fn of(runs: &[ScalingRun], is_weak: bool) -> Self {
        let mut by_ranks: BTreeMap<usize, Vec<&ScalingRun>> = BTreeMap::new();
        for run in runs {
            by_ranks.entry(run.ranks).or_default().push(run);
        }
        let mut fewest: Option<(usize, f64, Option<f64>)> = None;
        let rows = by_ranks.into_iter().map(|(ranks, runs)| {
            let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
            let known = |of: &dyn Fn(&ScalingRun) -> Option<f64>| {
                runs.iter().map(|run| of(run)).collect::<Option<Vec<f64>>>().map(mean)
            };
            let elapsed_ns = mean(runs.iter().map(|run| run.elapsed_ns).collect());
            let useful_ns = known(&|run| run.useful_ns);
            let (few_ranks, few_elapsed, few_useful) = *fewest.get_or_insert((ranks, elapsed_ns, useful_ns));
            // What there would be to do in all if nothing were lost.
            let work = if is_weak { ranks as f64 / few_ranks.max(1) as f64 } else { 1.0 };
            let computation = few_useful.zip(useful_ns.filter(|useful_ns| *useful_ns > 0.0));
            let computation = computation.map(|(few_useful, useful_ns)| few_useful * work / useful_ns);
            let parallel = known(&|run| Some(run.efficiency?.parallel));
            ScalingRow {
                ranks,
                runs: runs.len(),
                elapsed_ns,
                speedup: if elapsed_ns > 0.0 { few_elapsed * work / elapsed_ns } else { 0.0 },
                global: parallel.zip(computation).map(|(parallel, computation)| parallel * computation),
                parallel,
                load_balance: known(&|run| Some(run.efficiency?.load_balance)),
                communication: known(&|run| Some(run.efficiency?.communication)),
                computation,
            }
        });
        Self { is_weak, rows: rows.collect() }
    }
}
