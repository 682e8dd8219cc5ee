//! Functions by rank.

use std::collections::HashMap;

use mpiprobe_model::Profile;
use serde::Serialize;

/// One row a function, in the order of the profile; in it, one figure a rank.
#[derive(Debug, Serialize)]
pub(super) struct ByRank<'a> {
    functions: Vec<&'a str>,
    calls: Vec<Vec<u64>>,
    /// Open calls not included.
    time_ns: Vec<Vec<u64>>,
}

impl<'a> ByRank<'a> {
    pub(super) fn of(profile: &'a Profile) -> Self {
        let functions: Vec<&str> = profile.functions.iter().map(|function| function.all.name).collect();
        let numbers: HashMap<&str, usize> =
            functions.iter().enumerate().map(|(number, name)| (*name, number)).collect();
        let none = vec![vec![0; profile.ranks.len()]; functions.len()];
        let (mut calls, mut time_ns) = (none.clone(), none);
        for (rank, row) in profile.ranks.iter().enumerate() {
            for function in &row.functions {
                let Some(&number) = numbers.get(function.name) else { continue };
                for (table, figure) in [(&mut calls, function.calls), (&mut time_ns, function.time_ns)] {
                    if let Some(cell) = table.get_mut(number).and_then(|row: &mut Vec<u64>| row.get_mut(rank)) {
                        *cell = figure;
                    }
                }
            }
        }
        Self { functions, calls, time_ns }
    }
}
