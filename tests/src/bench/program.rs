//! What the programs that measure have in common.

use std::fmt::Display;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::BenchError;

/// Becomes true when the user, or the system, asks for the end.
pub fn interruption() -> Result<Arc<AtomicBool>, BenchError> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let start = |source| BenchError::Start { program: "the signal handler".into(), source };
        signal_hook::flag::register(signal, Arc::clone(&interrupted)).map_err(start)?;
    }
    Ok(interrupted)
}

/// Prints a report: for people, or as a line of JSON.
pub fn print(report: &(impl Serialize + Display), json: bool) {
    if json {
        println!("{}", serde_json::to_string(report).unwrap_or_default());
    } else {
        println!("{report}");
    }
}

/// How a program of this name ends.
pub fn exit(name: &str, done: Result<(), impl Display>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}
