//! One observation from beginning to end: finds, probes, watches, reports, lets go.

mod error;
mod host;
mod options;
mod probes;
mod recogniser;
mod roster;
mod run;
mod watch;

pub use error::SessionError;
pub use options::{Options, Outcome};
pub use recogniser::ImplementationRecogniser;
pub use run::run;
