//! Which calls are written.

use hashbrown::HashMap;
use mpiprobe_functions::{FunctionSet, matches_pattern};
use mpiprobe_trace::{Call, CommunicatorId, LeftOut};

/// What the user has asked for; what he has not asked for is counted.
#[derive(Clone, Debug)]
pub struct Selection {
    pub functions: FunctionSet,
    /// Patterns of names of communicators; empty: all, and calls over none too.
    pub communicators: Vec<String>,
    /// Calls that took less are left out, ns.
    pub min_duration_ns: u64,
}

impl Default for Selection {
    fn default() -> Self {
        Self { functions: FunctionSet::all(), communicators: Vec::new(), min_duration_ns: 0 }
    }
}

/// Which communicators of a process are meant, by number.
pub(crate) type Chosen = HashMap<u32, bool>;

impl Selection {
    /// Whether a call is written; else it is counted why not. `name` is that of a communicator of the process.
    pub(crate) fn takes(
        &self,
        call: &Call,
        chosen: &mut Chosen,
        name: impl FnMut(u32) -> Option<String>,
        left_out: &mut LeftOut,
    ) -> bool {
        let counter = if !self.functions.contains(call.function()) {
            &mut left_out.by_function
        } else if !self.communicators.is_empty() && !self.is_over_chosen(call, chosen, name) {
            &mut left_out.by_communicator
        } else if call.has_returned && call.duration_ns() < self.min_duration_ns {
            &mut left_out.by_duration
        } else {
            return true;
        };
        *counter += 1;
        false
    }

    /// A call that completes requests is over the communicators that they are over.
    fn is_over_chosen(&self, call: &Call, chosen: &mut Chosen, mut name: impl FnMut(u32) -> Option<String>) -> bool {
        let of_requests = call.requests.iter().filter_map(|change| change.operation.communicator);
        let mut all = call.operation.communicator.into_iter().chain(of_requests);
        all.any(|CommunicatorId(number)| {
            *chosen.entry(number).or_insert_with(|| {
                let name = name(number);
                name.is_some_and(|name| self.communicators.iter().any(|pattern| matches_pattern(pattern, &name)))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use mpiprobe_functions::{by_name, select};
    use mpiprobe_trace::{Change, Operation, RequestChange, RequestId};

    use super::*;

    fn call(name: &str, ns: u64, communicator: Option<u32>) -> Call {
        let mut call = Call::new(by_name(name).unwrap(), 100, 100 + ns);
        call.operation.communicator = communicator.map(CommunicatorId);
        call
    }

    fn name(number: u32) -> Option<String> {
        ["world", "row", "row#2"].get(number as usize).map(|&name| name.into())
    }

    fn taken(selection: &Selection, calls: &[Call]) -> (Vec<bool>, LeftOut) {
        let (mut chosen, mut left_out) = (Chosen::new(), LeftOut::default());
        let taken = calls.iter().map(|call| selection.takes(call, &mut chosen, name, &mut left_out)).collect();
        (taken, left_out)
    }

    #[test]
    fn everything_unless_asked_otherwise() {
        let calls = [call("MPI_Send", 0, Some(0)), call("MPI_Comm_rank", 5, None)];
        assert_eq!(taken(&Selection::default(), &calls), (vec![true, true], LeftOut::default()));
    }

    #[test]
    fn what_is_left_out_is_counted_by_why() {
        let selection =
            Selection { functions: select("p2p,Waitall").unwrap(), min_duration_ns: 10, ..Selection::default() };
        let mut open = call("MPI_Send", 5, Some(0));
        open.has_returned = false;
        let calls =
            [call("MPI_Send", 10, Some(0)), call("MPI_Send", 9, Some(0)), call("MPI_Barrier", 1000, Some(0)), open];
        let left_out = LeftOut { by_function: 1, by_duration: 1, ..LeftOut::default() };
        assert_eq!(taken(&selection, &calls), (vec![true, false, false, true], left_out));
    }

    #[test]
    fn calls_are_over_the_communicators_of_what_they_complete() {
        let selection = Selection { communicators: vec!["row*".into()], ..Selection::default() };
        let wait = |number| {
            let operation = Operation {
                communicator: Some(CommunicatorId(number)),
                ..Operation::new(by_name("MPI_Isend").unwrap())
            };
            let mut wait = call("MPI_Wait", 1, None);
            wait.requests.push(RequestChange { request: RequestId(1), change: Change::Completed, operation });
            wait
        };
        let calls =
            [call("MPI_Send", 1, Some(1)), call("MPI_Send", 1, Some(0)), wait(2), wait(0), call("MPI_Wait", 1, None)];
        let left_out = LeftOut { by_communicator: 3, ..LeftOut::default() };
        assert_eq!(taken(&selection, &calls), (vec![true, false, true, false, false], left_out));
    }
}
