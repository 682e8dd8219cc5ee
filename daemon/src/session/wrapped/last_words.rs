//! What the tables of a process have said last, in little room: of a job that starts thousands of processes one after the other, all
//! are kept until its end.

use std::sync::Arc;

use bytemuck::{bytes_of, bytes_of_mut};
use mpiprobe_common::FunctionStats;
use mpiprobe_observe::{ByFunction, PhaseSnapshot, ProcessSnapshot};

/// By function id.
type Functions = Box<[(u32, Sparse)]>;

/// Of one process that has ended.
#[derive(Debug)]
pub(super) struct LastWords {
    /// Without statistics of functions.
    snapshot: Box<ProcessSnapshot>,
    functions: Functions,
    /// By phase.
    in_phases: Box<[Functions]>,
    /// Where it had code, as it has noted it.
    code: Box<[u8]>,
}

/// Statistics of a function, most words of which are zero: the others, by their places.
#[derive(Debug)]
struct Sparse(Box<[(u16, [u8; 8])]>);

impl LastWords {
    pub(super) fn new(mut snapshot: ProcessSnapshot, code: Vec<u8>) -> Self {
        let functions = sparse(&std::mem::take(&mut snapshot.functions));
        let take = |phase: &mut PhaseSnapshot| sparse(&std::mem::take(&mut phase.functions));
        let in_phases = snapshot.phases.iter_mut().map(take).collect();
        Self { snapshot: Box::new(snapshot), functions, in_phases, code: code.into() }
    }

    pub(super) fn snapshot(&self) -> ProcessSnapshot {
        let mut snapshot = (*self.snapshot).clone();
        snapshot.functions = whole(&self.functions);
        for (phase, functions) in snapshot.phases.iter_mut().zip(&self.in_phases) {
            phase.functions = whole(functions);
        }
        snapshot
    }

    pub(super) fn code(&self) -> Vec<u8> {
        self.code.to_vec()
    }
}

fn sparse(functions: &ByFunction) -> Functions {
    functions.iter().map(|(function, stats)| (*function, Sparse::new(stats))).collect()
}

fn whole(functions: &[(u32, Sparse)]) -> ByFunction {
    functions.iter().map(|(function, stats)| (*function, Arc::new(stats.whole()))).collect()
}

impl Sparse {
    fn new(stats: &FunctionStats) -> Self {
        let words = (0..).zip(bytes_of(stats).as_chunks::<8>().0);
        Self(words.filter(|(_, word)| **word != [0; 8]).map(|(place, word)| (place, *word)).collect())
    }

    fn whole(&self) -> FunctionStats {
        let mut stats = FunctionStats::ZERO;
        let (words, _) = bytes_of_mut(&mut stats).as_chunks_mut::<8>();
        for (place, word) in &self.0 {
            if let Some(to) = words.get_mut(usize::from(*place)) {
                *to = *word;
            }
        }
        stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_come_back_as_they_were() {
        let mut stats = FunctionStats { calls: 7, min_complement: u64::MAX - 3, untimed: 1, ..FunctionStats::ZERO };
        stats.histogram[5] = 7;
        stats.received.sizes[39] = 2;
        let functions: ByFunction = vec![(3, Arc::new(stats))];
        let snapshot = ProcessSnapshot { functions, ..ProcessSnapshot::empty(1) };
        let words = LastWords::new(snapshot, vec![1, 2]);
        let back = words.snapshot();
        let [(3, back)] = back.functions.as_slice() else { panic!("{back:?}") };
        assert_eq!(bytes_of(&**back), bytes_of(&stats));
        assert_eq!(words.code(), [1, 2]);
    }
}
