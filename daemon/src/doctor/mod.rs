//! What works here, what does not, why, and what to do about it.
//!
//! Features are found out by trying them, never by the kernel's version. Nothing stays attached, and a process that is checked
//! is only read: no probe is put onto it.

mod kernel_release;
mod process;
mod read;
mod rights;
mod service;
mod system;
mod text;

use std::error::Error;

use kernel_release::KernelRelease;
use mpiprobe_discover::{Caller, ProcRoot, Scanner};
use mpiprobe_model::{Check, Report};
use mpiprobe_plan::ImplementationRecogniser;
use rights::Rights;

pub use service::examine_service;

/// Checks the system, and a process if one is given.
pub fn examine(pid: Option<u32>) -> Report {
    let rights = Rights::own();
    let mut checks = system::examine(&rights);
    let mut scanner = match scanner() {
        Ok(scanner) => scanner,
        // Without /proc nothing can be said about processes.
        Err(error) => {
            checks.push(Check::failed_by("proc", error.as_ref()));
            return Report::new(pid, checks, Vec::new());
        }
    };
    checks.push(system::jobs::check(&mut scanner));
    let process = pid.map_or_else(Vec::new, |pid| process::examine(pid, &mut scanner, &KernelRelease::running()));
    Report::new(pid, checks, process)
}

fn scanner() -> Result<Scanner<ImplementationRecogniser>, Box<dyn Error>> {
    Ok(Scanner::new(ProcRoot::system()?, Caller::current()?, ImplementationRecogniser::default()))
}
