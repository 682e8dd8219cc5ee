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

/// Whether something was called that is possible in a process only that has initialised MPI.
fn communicates(tables: &ProcessSnapshot) -> bool {
    let completed = tables.functions.iter().filter(|(_, stats)| stats.calls > 0).map(|(function, _)| *function);
    let open = tables.threads.iter().filter_map(|thread| thread.state.open_function());
    completed.chain(open).map(names::group).any(|group| {
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
