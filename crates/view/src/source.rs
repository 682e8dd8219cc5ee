//! Where what is shown comes from.

use std::{sync::Arc, time::Duration};

use mpiprobe_model::Profile;
use mpiprobe_stacks::Stacked;
use mpiprobe_trace::store::Window;
use serde::{Deserialize, Serialize};

/// What the source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Running {
    /// An observation under way.
    Live,
    /// One that has ended: nothing more will come.
    Ended,
    /// A recording: moments of an observation, of which the user chooses one.
    Replay,
}

/// A moment of a recording.
#[derive(Clone, Debug)]
pub struct Moment {
    pub profile: Arc<Profile>,
    /// Those that were before it, oldest first, unless it follows the last one told.
    pub before: Vec<Arc<Profile>>,
    /// It is the one after the last one told.
    pub follows: bool,
    /// Nothing was recorded before those.
    pub from_start: bool,
    pub position: Position,
}

/// Where in a recording one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Number of the moment, the first is 0.
    pub index: usize,
    /// Moments in all.
    pub count: usize,
    /// When it was: by the clock, and since the beginning.
    pub when: String,
    pub is_playing: bool,
}

/// What the user asks of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// To a moment so many further, or back.
    Step(isize),
    /// To play it, or to pause.
    Play,
    /// The last calls of each rank, from now on or not any more.
    RecentCalls(bool),
    /// The stacks of all threads, from now on or not any more.
    Stacks(bool),
    /// The calls of all ranks.
    Calls,
}

/// What is kept of a job's calls on one node.
#[derive(Clone, Debug)]
pub struct KeptCalls {
    /// `None`: there is no other one.
    pub node: Option<String>,
    pub window: Arc<Window>,
}

/// The calls of all ranks, for whoever looks at them.
#[derive(Clone, Debug)]
pub enum Calls {
    /// The latest ones, of each node.
    Kept(Vec<KeptCalls>),
    /// There are none: why, in a sentence.
    Refused(String),
}

/// The stacks of all threads at one moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stacks {
    Seen {
        stacks: Vec<Stacked>,
        /// What the look has taken.
        took: Duration,
    },
    /// They cannot be looked at: why, behind "Stacks: ".
    Refused(String),
}

/// What a source tells.
#[derive(Clone, Debug)]
pub enum Update {
    /// A further look at the job.
    Profile(Arc<Profile>),
    /// The moment of a recording that is to be shown.
    Moment(Box<Moment>),
    /// The same moment is shown, but it is played now, or is not any more.
    Position(Position),
    /// A further look at stacks.
    Stacks(Arc<Stacks>),
    /// Where the calls of all ranks are.
    Calls(Calls),
    /// Something that was said besides.
    Message(String),
    /// The view is to be closed.
    Close,
}

/// Something to look at: an observation, a recording.
pub trait Source {
    fn running(&self) -> Running;

    /// Waits for the next thing told; [`Update::Close`] when there is nobody any more to tell something.
    fn next(&mut self) -> impl Future<Output = Update>;

    /// The user asks for something; what comes of it is told next.
    fn wish(&mut self, wish: Wish) {
        // An observation under way goes on by itself.
        let _ = wish;
    }
}
