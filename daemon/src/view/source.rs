//! Where what is shown comes from.

use std::sync::Arc;

use crate::model::Profile;

/// What the source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Running {
    /// An observation under way.
    Live,
    /// One that has ended: nothing more will come.
    Ended,
}

/// What a source tells.
#[derive(Clone, Debug)]
pub enum Update {
    /// A further look at the job.
    Profile(Arc<Profile>),
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
}
