//! Checks of one process: is it there, may it be observed, what will be seen of it. It is only read.

mod code;
mod identity;
mod libraries;
mod library;
mod loading;
mod returns;
mod sites;
mod threads;

use mpiprobe_discover::{Finding, MpiProcess, Process, Scanner, mappings::Mappings, mpi_process::Search};
use mpiprobe_model::Check;
use mpiprobe_plan::ImplementationRecogniser;

use super::{kernel_release::KernelRelease, text::finding_of};

pub(super) fn examine(
    pid: u32,
    scanner: &mut Scanner<ImplementationRecogniser>,
    release: &KernelRelease,
) -> Vec<Check> {
    let failed = |finding: &str, fix: &str| vec![Check::failed("process", format!("process {pid} {finding}"), fix)];
    match scanner.inspect(pid) {
        Ok(Finding::Mpi(process)) => mpi(&process, release),
        Ok(Finding::NotMpi(process, search)) => not_mpi(&process, &search, release),
        Ok(Finding::Launcher(process)) => {
            let mut checks = identity::examine(&process);
            checks.push(Check::failed(
                "mpi",
                "it starts MPI processes but is none",
                "name one of its ranks: mpiprobe ps lists them",
            ));
            checks
        }
        Ok(Finding::KernelThread) => failed("is a thread of the kernel, not a program", "name an MPI program"),
        Ok(Finding::Own) => failed("is mpiprobe itself", "name an MPI program"),
        Ok(Finding::Refused(refusal)) => vec![Check::failed_by("access", &refusal)],
        Err(error) => vec![Check::failed_by("process", &error)],
    }
}

fn mpi(process: &MpiProcess, release: &KernelRelease) -> Vec<Check> {
    let mut checks = identity::examine(&process.process);
    checks.push(identity::rank(process));
    checks.extend(process.namespace_pid.map(identity::container));
    let Some(library) = process.library() else { return checks };
    if let Some(architecture) = process.foreign_architecture() {
        checks.push(identity::foreign(architecture));
        return checks;
    }
    let mappings = match Mappings::of(&process.process) {
        Ok(mappings) => mappings,
        Err(error) => {
            checks.push(Check::failed_by("mapping", &error));
            return checks;
        }
    };
    checks.extend(library::examine(process, library, &mappings));
    checks.push(libraries::others(&process.libraries, &process.tools));
    checks.extend(returns::examine(&process.process, &mappings, release));
    checks.push(threads::examine(&process.process));
    checks
}

fn not_mpi(process: &Process, search: &Search, release: &KernelRelease) -> Vec<Check> {
    let mut checks = identity::examine(process);
    let unopened = match search.unopened.len() {
        0 => String::new(),
        number => format!(", and {number} could not be opened"),
    };
    let finding =
        format!("it does not use MPI: none of its {} mapped files defines MPI_Init{unopened}", search.examined);
    let reason = match search.unopened.first() {
        Some(error) => finding_of(error),
        None if search.anonymous_text > 0 => format!(
            "{} KiB of its code belong to no file; a program with MPI linked in is recognised only if it is not stripped",
            search.anonymous_text / 1024
        ),
        None => "a program with MPI linked in is recognised only if it is not stripped".to_owned(),
    };
    checks.push(
        Check::failed("mpi", finding, "if it loads MPI later, as Python does on import, observe it with --wait")
            .because(reason),
    );
    if let Ok(mappings) = Mappings::of(process) {
        checks.extend(returns::examine(process, &mappings, release));
    }
    checks
}
