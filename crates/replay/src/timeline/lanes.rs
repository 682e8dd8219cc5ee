//! Which threads there are, in the order of their jobs and ranks.

use mpiprobe_trace::{Definitions, LocationId, Process, ProcessId};

/// A thread.
#[derive(Clone, Debug)]
pub struct Lane {
    pub location: LocationId,
    /// "3", "3.1" of the second thread, "pid 17" if the rank is not known.
    pub name: String,
}

/// All threads of a trace.
pub fn lanes(definitions: &Definitions) -> Vec<Lane> {
    let key = |id: &LocationId| {
        let process = definitions.location(*id).map(|location| location.process);
        let known = process.and_then(|process| definitions.process(process));
        (known.and_then(|known| known.job.clone()), known.map(|known| known.rank.unwrap_or(u32::MAX)), process, id.0)
    };
    let mut ids: Vec<LocationId> = definitions.location_ids().collect();
    ids.sort_by_cached_key(key);
    let mut before: Option<(ProcessId, u32)> = None;
    let lane = |location: LocationId| {
        let process = definitions.location(location).map_or(ProcessId(u32::MAX), |location| location.process);
        let thread = before.filter(|(last, _)| *last == process).map_or(0, |(_, thread)| thread + 1);
        before = Some((process, thread));
        let rank = definitions.process(process).map_or_else(|| "?".into(), short);
        Lane { location, name: if thread == 0 { rank } else { format!("{rank}.{thread}") } }
    };
    ids.into_iter().map(lane).collect()
}

fn short(process: &Process) -> String {
    process.rank.map_or_else(|| format!("pid {}", process.pid), |rank| rank.to_string())
}
