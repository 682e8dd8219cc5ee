//! How processes are called.

use mpiprobe_discover::printable;
use mpiprobe_trace::{Definitions, LocationId};

/// "rank 3", "process 17", and its job where there are several.
pub(super) fn process_name(definitions: &Definitions, location: LocationId) -> String {
    let process = definitions.location(location).and_then(|location| definitions.process(location.process));
    let Some(process) = process else { return "an unknown process".into() };
    let is_several = definitions.processes.iter().any(|other| other.job != process.job);
    match (process.rank, &process.job) {
        (Some(rank), Some(job)) if is_several => format!("rank {rank} of {}", printable(job.as_bytes())),
        (Some(rank), _) => format!("rank {rank}"),
        (None, _) => format!("process {}", process.pid),
    }
}
