//! Times of several nodes: the kernel's clocks begin with each boot, so those of other nodes are moved by what the time of day says.

use mpiprobe_model::analyse::Observed;
use mpiprobe_observe::ProcessSnapshot;

use super::place::{Here, Origin};

/// What the clocks of all boots differ by.
#[derive(Debug)]
pub(super) struct Clocks {
    /// Boot, and when its clock was 0, ns since 1970. The first one's clock is kept.
    boots: Vec<([u8; 16], i128)>,
}

impl Clocks {
    /// Of these processes: the node that mpiprobe runs on keeps its time if one of them ran here.
    pub(super) fn of<'a>(here: &Here, headers: impl Iterator<Item = &'a Origin>) -> Self {
        let mut boots: Vec<([u8; 16], i128)> = Vec::new();
        for header in headers {
            if !boots.iter().any(|(boot, _)| *boot == header.boot) {
                boots.push((header.boot, i128::from(header.began_unix_ns) - i128::from(header.began_ns)));
            }
        }
        boots.sort_by_key(|(boot, _)| *boot != here.boot);
        Self { boots }
    }

    fn shift(&self, boot: &[u8; 16]) -> i128 {
        let zero = |boot: &[u8; 16]| self.boots.iter().find(|(other, _)| other == boot).map(|(_, zero)| *zero);
        let first = self.boots.first().map(|(_, zero)| *zero);
        zero(boot).zip(first).map_or(0, |(own, first)| own - first)
    }

    /// Moves what is said of a process to the first boot's clock.
    pub(super) fn adjust(&self, header: &Origin, who: &mut Observed, tables: &mut ProcessSnapshot) {
        let by = self.shift(&header.boot);
        if by == 0 {
            return;
        }
        let moved = |ns: u64| u64::try_from(i128::from(ns) + by).unwrap_or(if by < 0 { 0 } else { u64::MAX });
        let set = |ns: &mut u64| {
            if *ns != 0 {
                // Zero stands for never.
                *ns = moved(*ns).max(1);
            }
        };
        set(&mut who.since_ns);
        who.until_ns = who.until_ns.map(moved);
        set(&mut tables.counters.off_since_ns);
        for communicator in &mut tables.communicators {
            set(&mut communicator.facts.first_ns);
            set(&mut communicator.facts.freed_ns);
        }
        for call in tables.recent.iter_mut().flat_map(|recent| &mut recent.calls) {
            set(&mut call.started_ns);
        }
        for pending in &mut tables.requests {
            set(&mut pending.request.posted_ns);
        }
        for opened in &mut tables.phases {
            set(&mut opened.phase.since_ns);
        }
        for thread in &mut tables.ended_threads {
            set(&mut thread.first_entry_ns);
            set(&mut thread.ended_ns);
        }
        for thread in &mut tables.threads {
            set(&mut thread.state.first_entry_ns);
            set(&mut thread.state.last_return_ns);
            set(&mut thread.state.open.started_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_nodes_clock_is_kept_and_others_are_moved() {
        let here = Here { boot: [2; 16], ..Here::now() };
        let clocks = Clocks { boots: vec![([2; 16], 1000), ([1; 16], 400)] };
        assert_eq!(clocks.shift(&here.boot), 0);
        assert_eq!(clocks.shift(&[1; 16]), -600);
        assert_eq!(clocks.shift(&[9; 16]), 0);
    }
}
