//! Statistics per process and function.

use std::sync::{Arc, atomic::Ordering};

use mpiprobe_common::{FUNCTION_SLOTS, FunctionStats};

use super::{ByFunction, shared::SharedArray};

/// Reads the statistics wherever they are handed out.
#[derive(Debug)]
pub struct StatsReader {
    index: SharedArray<u64>,
    stats: SharedArray<FunctionStats>,
}

impl StatsReader {
    /// Of the two tables that hold them.
    pub fn new(index: SharedArray<u64>, stats: SharedArray<FunctionStats>) -> Self {
        Self { index, stats }
    }

    /// What a function has cost in a process, outside its phases, so far; `None` if it was never completed there. A phase's row is
    /// behind those of all processes.
    pub fn read(&self, process: u32, function: u32) -> Option<FunctionStats> {
        let row = (process as usize).checked_mul(FUNCTION_SLOTS as usize)?;
        let entry = self.index.word_of(row + function as usize, 0)?.load(Ordering::Relaxed);
        self.stats.read(usize::try_from(entry).ok()?.checked_sub(1)?).map(FunctionStats::with_numbers)
    }

    /// All functions that a process has completed, by id. The calibration's is none of them.
    pub fn read_all(&self, process: u32) -> ByFunction {
        let read = |function| Some((function, Arc::new(self.read(process, function)?)));
        (0..FUNCTION_SLOTS - 1).filter_map(read).collect()
    }
}
