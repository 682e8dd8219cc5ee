//! With what the observation of a process began: its first call, or somewhere in its run.

use mpiprobe_functions::{Group, by_name};
use mpiprobe_observe::ProcessSnapshot;

use super::{Beginning, Observed, names};

/// What makes a process a part of a job: before it, nothing that communicates can be called.
const BEGINNINGS: [&str; 3] = ["MPI_Init", "MPI_Init_thread", "MPI_Session_init"];

/// Whether calls that came before the first one seen were missed, of a process that was to be seen from its beginning on.
pub(super) fn lacks_its_beginning(observed: &Observed, tables: &ProcessSnapshot) -> bool {
    observed.beginning == Beginning::Awaited && communicates(tables) && !has_begun(observed, tables)
}

/// Whether a process may have been inside a call when its observation began.
pub(super) fn may_be_inside(observed: &Observed, tables: &ProcessSnapshot) -> bool {
    match observed.beginning {
        Beginning::MidRun => true,
        Beginning::Awaited => !has_begun(observed, tables),
        Beginning::FirstCall => false,
    }
}

fn called<'a>(observed: &'a Observed, tables: &'a ProcessSnapshot) -> impl Iterator<Item = u32> + 'a {
    let completed = tables.functions.iter().filter(|(_, stats)| stats.calls > 0).map(|(function, _)| *function);
    let open = tables.threads.iter().filter_map(|thread| thread.state.open_function());
    completed.chain(open).chain(observed.ended_in.iter().map(|call| call.function))
}

fn has_begun(observed: &Observed, tables: &ProcessSnapshot) -> bool {
    let is_beginning =
        |function| BEGINNINGS.iter().any(|name| by_name(name).map(|id| u32::from(id.number())) == Some(function));
    called(observed, tables).any(is_beginning)
}

/// Whether a process is known to have called nothing before a moment (ns) that needs an initialised MPI: it has initialised MPI later,
/// which is possible once only. A session may have been one of several.
pub fn is_seen_from_its_beginning(tables: &ProcessSnapshot, since_ns: u64) -> bool {
    let [init, init_thread, session] = BEGINNINGS.map(|name| by_name(name).map(|id| u32::from(id.number())));
    let completed =
        || tables.functions.iter().filter(|(_, stats)| stats.calls > 0).map(|(function, _)| Some(*function));
    let living = tables.threads.iter().map(|thread| thread.state.first_entry_ns);
    let first_ns =
        living.chain(tables.ended_threads.iter().map(|thread| thread.first_entry_ns)).filter(|&ns| ns > 0).min();
    completed().any(|function| function == init || function == init_thread)
        && !completed().any(|function| function == session)
        && first_ns.is_some_and(|first_ns| first_ns >= since_ns)
}

/// Whether something was called that is possible in a process only that has initialised MPI.
fn communicates(tables: &ProcessSnapshot) -> bool {
    let completed = tables.functions.iter().filter(|(_, stats)| stats.calls > 0).map(|(function, _)| *function);
    let open = tables.threads.iter().filter_map(|thread| thread.state.open_function());
    let before = tables.began_before.iter().flat_map(|found| &found.calls).map(|call| call.function);
    completed.chain(open).chain(before).map(names::group).any(|group| {
        matches!(
            group,
            Group::PointToPoint
                | Group::Collective
                | Group::Completion
                | Group::Synchronisation
                | Group::OneSided
                | Group::Io
                | Group::Communicator
        )
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mpiprobe_common::{EndedThread, FunctionStats};

    use super::*;

    #[test]
    fn who_has_initialised_mpi_later_has_called_nothing_before() {
        let tables = |called: &[&str]| {
            let stats = Arc::new(FunctionStats { calls: 1, ..FunctionStats::ZERO });
            let row = |name: &&str| (u32::from(by_name(name).unwrap().number()), Arc::clone(&stats));
            let ended_threads = vec![EndedThread { first_entry_ns: 100, ..EndedThread::default() }];
            ProcessSnapshot { functions: called.iter().map(row).collect(), ended_threads, ..ProcessSnapshot::empty(1) }
        };
        let init = tables(&["MPI_Init", "MPI_Send"]);
        assert!(is_seen_from_its_beginning(&init, 100));
        assert!(!is_seen_from_its_beginning(&init, 101), "not all functions were probed by then");
        assert!(is_seen_from_its_beginning(&tables(&["MPI_Init_thread"]), 50));
        for called in [&["MPI_Send"][..], &["MPI_Init", "MPI_Session_init"], &["MPI_Session_init"], &[]] {
            assert!(!is_seen_from_its_beginning(&tables(called), 50), "{called:?}");
        }
    }
}
