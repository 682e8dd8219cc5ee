//! Who has waited for others between two looks at a job, of what was found out about that by then.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use crate::{Profile, WaitKind, WaitRow, WaitStates};

/// Waits of one kind in one thread at one place, whatever numbers these have in a profile.
pub type WaitId = u64;

/// What has been waited in a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    pub count: u64,
    pub ns: u64,
}

/// The growing numbers of wait states.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitLook {
    rows: HashMap<WaitId, Waited>,
    caused: HashMap<Process, u64>,
}

/// By host and pid.
type Process = (String, u32);

/// Something of processes, which on several nodes may have the same pid. One in a container may call its host otherwise than who counts.
#[derive(Clone, Debug)]
pub struct ByProcess<T>(HashMap<u32, Vec<(Option<u32>, String, T)>>);

impl<T> ByProcess<T> {
    /// Of ranks, if they are known, hosts and pids.
    pub fn of<'a>(all: impl IntoIterator<Item = (Option<u32>, &'a str, u32, T)>) -> Self {
        let mut by_pid: HashMap<u32, Vec<_>> = HashMap::new();
        for (rank, host, pid, of) in all {
            by_pid.entry(pid).or_default().push((rank, host.to_owned(), of));
        }
        Self(by_pid)
    }

    /// Of the one that is the same by its host, or by its rank.
    pub fn get(&self, rank: Option<u32>, host: &str, pid: u32) -> Option<&T> {
        let of_pid = self.0.get(&pid)?;
        let by_host = of_pid.iter().find(|(_, known, _)| known == host);
        let found = by_host.or_else(|| of_pid.iter().find(|(known, ..)| rank.is_some() && *known == rank));
        found.map(|(.., of)| of)
    }
}

impl<T> Default for ByProcess<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

/// What one process has waited for others, and they for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessWaits {
    /// All its threads together, ns.
    pub waited_ns: u64,
    /// The kind that has taken most, and how much.
    pub most: Option<(WaitKind, u64)>,
    /// What others have waited for it, directly and by those who have waited for these, ns.
    pub caused_ns: u64,
}

/// The difference of two looks at wait states.
#[derive(Clone, Debug, Default)]
pub struct WaitChange {
    /// In the order of the later profile's rows.
    pub rows: Vec<Waited>,
    pub processes: ByProcess<ProcessWaits>,
}

impl WaitLook {
    pub(super) fn of(profile: &Profile) -> Self {
        let Some(states) = &profile.wait_states else { return Self::default() };
        let rows = states.waits.iter().map(|row| (wait_id(states, row), Waited { count: row.count, ns: row.ns }));
        Self { rows: rows.collect(), caused: caused(states) }
    }
}

impl WaitChange {
    pub(super) fn since(base: Option<&WaitLook>, profile: &Profile) -> Option<Self> {
        let states = profile.wait_states.as_ref()?;
        // Of what has been forgotten meanwhile nobody knows how much it was.
        let base = base.filter(|_| !states.is_short);
        let mut rows = Vec::new();
        let mut processes: HashMap<Process, ProcessWaits> = HashMap::new();
        let mut kinds: HashMap<(Process, WaitKind), u64> = HashMap::new();
        for row in &states.waits {
            let before = base.and_then(|base| base.rows.get(&wait_id(states, row))).copied().unwrap_or_default();
            let waited = Waited { count: row.count.saturating_sub(before.count), ns: row.ns.saturating_sub(before.ns) };
            rows.push(waited);
            if let Some(process) = process(states, row.thread).filter(|_| row.kind.is_waiting()) {
                let sum = kinds.entry((process, row.kind)).or_default();
                *sum = sum.saturating_add(waited.ns);
            }
        }
        for ((process, kind), ns) in kinds {
            let of_process = processes.entry(process).or_default();
            of_process.waited_ns = of_process.waited_ns.saturating_add(ns);
            // Of two that have taken as long, always the same.
            if ns > 0 && of_process.most.is_none_or(|(known, most)| (ns, known) > (most, kind)) {
                of_process.most = Some((kind, ns));
            }
        }
        for (process, ns) in caused(states) {
            let before = base.and_then(|base| base.caused.get(&process)).copied().unwrap_or(0);
            processes.entry(process).or_default().caused_ns = ns.saturating_sub(before);
        }
        let ranks: HashMap<Process, Option<u32>> =
            states.threads.iter().map(|thread| ((thread.host.clone(), thread.pid), thread.rank)).collect();
        let processes = processes.iter().map(|(process, waits)| {
            let (host, pid) = process;
            (ranks.get(process).copied().flatten(), host.as_str(), *pid, *waits)
        });
        Some(Self { rows, processes: ByProcess::of(processes) })
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and times are not negative")]
fn caused(states: &WaitStates) -> HashMap<Process, u64> {
    let mut caused: HashMap<Process, f64> = HashMap::new();
    for row in &states.delays {
        if let Some(process) = process(states, row.thread) {
            *caused.entry(process).or_default() += row.direct_ns + row.indirect_ns;
        }
    }
    caused.into_iter().map(|(process, ns)| (process, ns as u64)).collect()
}

fn process(states: &WaitStates, thread: u32) -> Option<Process> {
    states.threads.get(thread as usize).map(|thread| (thread.host.clone(), thread.pid))
}

/// What a row is about.
pub fn wait_id(states: &WaitStates, row: &WaitRow) -> WaitId {
    let mut hasher = DefaultHasher::new();
    let thread = states.threads.get(row.thread as usize).map(|thread| (&thread.host, thread.pid, thread.tid));
    let site = states.call_sites.get(row.site as usize).map(|site| (&site.function, &site.site));
    (row.kind, thread, site).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Activity, DelayRow, WaitSite, WaitingThread,
        sample::{profile, ranks},
    };

    fn states(waits: &[(WaitKind, u32, u64)], caused_ns: f64) -> WaitStates {
        let thread = |pid| WaitingThread { pid, tid: pid, ..WaitingThread::default() };
        let row = |&(kind, thread, ns): &(WaitKind, u32, u64)| WaitRow {
            kind,
            thread,
            site: 0,
            count: ns / 10,
            ns,
            longest_ns: ns,
            longest_at_ns: 0,
            wrong_order_same_source_ns: 0,
            wrong_order_other_source_ns: 0,
            early_fence_ns: 0,
            late_complete_ns: 0,
            caused_by: Vec::new(),
            unexplained_ns: ns,
        };
        let activity = Activity::Calling { site: 0 };
        WaitStates {
            threads: vec![thread(100), thread(101)],
            call_sites: vec![WaitSite { function: "MPI_Recv".into(), ..WaitSite::default() }],
            waits: waits.iter().map(row).collect(),
            delays: vec![DelayRow { thread: 1, activity, direct_ns: caused_ns, indirect_ns: 5.0 }],
            ..WaitStates::default()
        }
    }

    fn with(states: WaitStates) -> Profile {
        Profile { wait_states: Some(states), ..profile(ranks(2)) }
    }

    #[test]
    fn waits_of_a_window_are_those_that_have_come_meanwhile_in_whatever_order_rows_are() {
        let before = with(states(&[(WaitKind::LateSender, 0, 100), (WaitKind::Barrier, 1, 40)], 100.0));
        let now = with(states(
            &[
                (WaitKind::Barrier, 0, 700),
                (WaitKind::LateSender, 0, 300),
                (WaitKind::Barrier, 1, 40),
                (WaitKind::BarrierCompletion, 1, 30),
            ],
            180.0,
        ));
        let look = WaitLook::of(&before);
        let change = WaitChange::since(Some(&look), &now).unwrap();
        let rows = change.rows.iter().map(|row| (row.count, row.ns)).collect::<Vec<_>>();
        assert_eq!(rows, [(70, 700), (20, 200), (0, 0), (3, 30)]);
        let of = |pid| change.processes.get(None, "", pid).copied().unwrap();
        let most = Some((WaitKind::Barrier, 700));
        assert_eq!(of(100), ProcessWaits { waited_ns: 900, most, caused_ns: 0 });
        // Leaving takes time, and is no waiting.
        assert_eq!(of(101), ProcessWaits { waited_ns: 0, most: None, caused_ns: 80 });
        assert!(WaitChange::since(Some(&look), &profile(ranks(2))).is_none());
        let short = WaitStates { is_short: true, ..states(&[(WaitKind::LateSender, 0, 60)], 0.0) };
        let change = WaitChange::since(Some(&look), &with(short)).unwrap();
        assert_eq!(change.rows, [Waited { count: 6, ns: 60 }], "what has been forgotten is not taken away");
    }
    #[test]
    fn processes_of_several_nodes_may_have_one_pid() {
        let of = ByProcess::of([(Some(0), "n1", 7, "first"), (Some(2), "n2", 7, "third"), (None, "n1", 8, "unknown")]);
        assert_eq!(of.get(Some(2), "n2", 7), Some(&"third"));
        assert_eq!(of.get(Some(0), "container", 7), Some(&"first"));
        assert_eq!(of.get(Some(1), "n1", 8), Some(&"unknown"), "its rank was not known yet");
        assert_eq!(of.get(Some(3), "n3", 7), None);
    }
}
