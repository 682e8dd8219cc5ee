//! Sums over ranks of what has changed.

use std::collections::BTreeMap;

use mpiprobe_functions::Group;
use mpiprobe_model::{FunctionProfile, Spread, analyse::FunctionChange};

use super::TableData;

/// What one function has done in all ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionSum<'a> {
    /// Since the beginning.
    pub profile: &'a FunctionProfile,
    pub change: FunctionChange,
    /// Time per rank in the span, ns.
    pub over_ranks_ns: Spread,
    /// Of the time of all threads in MPI in the span, per cent.
    pub wall_percent: f64,
}

/// The functions of a profile, in its order; each of all ranks, whatever the filter.
pub(super) fn functions<'a>(data: &TableData<'a>) -> Vec<FunctionSum<'a>> {
    let mut sums: BTreeMap<&str, (FunctionChange, Vec<f64>)> = BTreeMap::new();
    for (rank, (_, functions)) in data.all.profile.ranks.iter().zip(&data.all.change.ranks) {
        for (row, change) in rank.functions.iter().zip(functions) {
            let (sum, times) = sums.entry(row.name).or_default();
            *sum = sum.plus(*change);
            times.push(change.time_ns as f64);
        }
    }
    let wall: f64 = data.all.change.ranks.iter().map(|(rank, _)| rank.thread_wall_ns as f64).sum();
    let number = data.all.profile.ranks.len();
    let sum = |profile: &'a FunctionProfile| {
        let (change, mut times) = sums.remove(profile.all.name).unwrap_or_default();
        // A rank without a call counts as 0.
        times.resize(number.max(times.len()), 0.0);
        let wall_percent = if wall > 0.0 { 100.0 * change.time_ns as f64 / wall } else { 0.0 };
        FunctionSum { profile, change, over_ranks_ns: Spread::of(times).unwrap_or_default(), wall_percent }
    };
    data.profile.functions.iter().map(sum).collect()
}

/// Most time in the span first.
pub(crate) fn functions_by_time<'a>(data: &TableData<'a>) -> Vec<FunctionSum<'a>> {
    let mut functions = functions(data);
    functions.sort_by_key(|function| std::cmp::Reverse((function.change.time_ns, function.profile.all.calls)));
    functions
}

/// Time of a rank by group in the span, ns, in the order of groups.
pub(super) fn groups(functions: impl Iterator<Item = (&'static str, FunctionChange)>) -> BTreeMap<Group, u64> {
    let mut groups = BTreeMap::new();
    for (name, change) in functions {
        let group = mpiprobe_functions::by_name(name).map_or(Group::Other, |id| id.function().group);
        let sum: &mut u64 = groups.entry(group).or_default();
        *sum = sum.saturating_add(change.time_ns);
    }
    groups
}
