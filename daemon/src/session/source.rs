//! What an observation needs of whatever is observed.

use std::sync::Arc;

use mpiprobe_model::{EndReason, Profile};
use mpiprobe_trace::store::Window;
use mpiprobe_view::{Calls, KeptCalls, Stacks};

use super::error::SessionError;

/// Why single calls are not there that could be.
pub(super) const NEED_WAITS: &str =
    "Single calls are kept with --waits only: end this with q, and type the same with --traffic --waits.";

/// Calls that are kept at one place.
pub(super) fn kept(window: Arc<Window>) -> Calls {
    Calls::Kept(vec![KeptCalls { node: None, window }])
}

/// Who looks at stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StacksBy {
    /// Whoever shows them.
    Viewer,
    /// Whoever counts, and tells of them: [`Source::take_stacks`].
    Source,
}

/// Where counts come from: tables in the kernel, or files that the processes themselves write. A recording or another node could be
/// one as well.
pub(super) trait Source {
    /// Something that has happened, or that is due.
    type Event;

    /// Waits for the next event. The wait may be given up at any time, and nothing is lost by that.
    async fn event(&mut self) -> Result<Self::Event, SessionError>;

    /// Does what an event calls for.
    fn handle(&mut self, event: Self::Event) -> Result<(), SessionError>;

    /// Looks now for what it would otherwise look for later: processes that have come, or turned out to use MPI.
    fn look(&mut self) -> Result<(), SessionError>;

    /// An interval is over, whether or not somebody looks at it.
    fn end_interval(&mut self) {}

    /// Whether it says by itself when there is something to be shown, and nobody else need look at intervals.
    fn paces_itself(&self) -> bool {
        false
    }

    /// Whether its processes are counted, and may be looked at, by this program; if not, by another one.
    fn is_here(&self) -> bool {
        true
    }

    /// Has whoever counts come to an end, where that is another process: the next profile is the last one.
    async fn conclude(&mut self) -> Result<(), SessionError> {
        Ok(())
    }

    /// Everything counted up to now; `end` says why there will be no later profile.
    fn profile(&mut self, end: Option<EndReason>) -> Result<Profile, SessionError>;

    /// Whether a program has asked since the last time for what was counted to be written out.
    fn take_flush(&mut self) -> bool;

    /// Whether the last calls of each rank are to be shown.
    fn show_recent_calls(&mut self, _wanted: bool) {}

    /// Who looks at stacks of its processes, from now on or (not `_wanted`) not any more.
    fn show_stacks(&mut self, _wanted: bool) -> StacksBy {
        StacksBy::Viewer
    }

    /// Stacks that were looked at since the last time, where the source does.
    fn take_stacks(&mut self) -> Option<Stacks> {
        None
    }

    /// The calls that are kept for whoever looks at them, or why there are none.
    fn calls(&mut self) -> Calls {
        Calls::Refused(
            "These processes count themselves, and hand single calls to the run that has started them only: mpiprobe run --trace FILE \
             writes them, and mpiprobe view FILE shows them."
                .into(),
        )
    }

    /// What is kept in memory by whoever looks on is to be written down there: all of it goes there first.
    fn dump(&mut self) {}

    /// Whether an MPI process has been observed yet.
    fn was_anybody_there(&self) -> bool;

    /// Whether a target is still there, or a process that may yet become one. Looks once more where it is not told of new ones.
    fn is_anybody_left(&mut self) -> bool;

    /// Whether a process that uses MPI is still there.
    fn is_rank_left(&self) -> bool {
        false
    }

    /// Whether the command has ended that mpiprobe has started.
    fn has_command_ended(&self) -> bool {
        false
    }

    /// Leaves the targets as they were before.
    async fn end(self);
}
