//! One observation from beginning to end: finds, probes, watches, reports, lets go.

mod code;
mod communicators;
mod course;
mod datatypes;
mod display;
mod error;
mod foreseen;
mod found;
mod functions;
mod host;
mod jobs;
pub mod launched;
mod layers;
mod layouts;
mod observation;
mod options;
mod probes;
mod readable;
mod recent;
mod recogniser;
mod returns;
mod roster;
mod run;
mod run_wrapped;
mod signals;
mod sites;
mod survey;
mod watch;
pub mod wrapped;

pub(crate) use code::compare_code;
pub use error::SessionError;
pub use functions::probed;
pub use options::{EngineChoice, Options, Outcome, Returns};
pub use recogniser::ImplementationRecogniser;
pub use run::run;
