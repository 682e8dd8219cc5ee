//! What is kept of one job: sums over its ranks on this node, none of which gets smaller, and how it stood at the last look.

use std::{collections::BTreeMap, sync::Arc};

use mpiprobe_functions::Group;
use mpiprobe_model::{
    Efficiency, GroupRow, GroupTraffic, Profile, RankProfile, RankState,
    analyse::{Change, Look},
};

/// Of one job, or of several together.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    /// Whether it has been looked at. Otherwise nothing of it is known.
    pub(super) is_seen: bool,
    /// By the key of the group.
    pub(super) groups: BTreeMap<&'static str, GroupFigures>,
    /// Wall time of the threads that use MPI, ns.
    pub(super) wall_ns: u64,
    /// Calls whose time is not known.
    pub(super) untimed_calls: u64,
    /// What observing has cost the job, by calibration, ns.
    pub(super) own_cost_ns: f64,
    /// What was to be counted and was not.
    pub(super) lost: u64,
    /// Nothing is known to be missing.
    pub(super) is_complete: bool,
    /// `None`: it has not been looked at, or has ended.
    pub(super) now: Option<Now>,
}

/// What the calls of one group have taken and moved, all ranks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GroupFigures {
    pub(super) calls: u64,
    /// Of these, those whose time is not known.
    pub(super) untimed_calls: u64,
    /// In those whose time is known, and in open ones so far, ns.
    pub(super) time_ns: u64,
    /// `None`: it was not observed.
    pub(super) moved: Option<GroupTraffic>,
}

/// How a job stood at the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Now {
    /// Ranks that run.
    pub(super) ranks: u64,
    /// Of these, those of which a thread is in a call.
    pub(super) ranks_in_mpi: u64,
    /// `None`: no call is open.
    pub(super) oldest_call_ns: Option<u64>,
    /// How long all of them have been in the calls that they are in; 0: one is not in MPI.
    pub(super) all_in_mpi_ns: u64,
    /// Since the look before; `None`: not known.
    pub(super) efficiency: Option<Efficiency>,
}

/// The figures of a job that is observed.
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub(super) figures: Figures,
    last: Option<Look>,
}

impl Observed {
    /// Takes over what a profile says of the job with this name. Processes of another one have no part in it.
    pub(super) fn update(&mut self, job: &str, profile: &Arc<Profile>) {
        let mut seen = Figures { is_seen: true, is_complete: profile.complete, ..Figures::default() };
        let ranks = || profile.ranks.iter().filter(|rank| rank.job.as_deref() == Some(job));
        for rank in ranks() {
            seen.wall_ns = seen.wall_ns.saturating_add(rank.thread_wall_ns);
            seen.untimed_calls = seen.untimed_calls.saturating_add(rank.untimed_calls);
            for row in &rank.groups {
                seen.groups.entry(key_of(row.group)).or_default().add(&GroupFigures::of(row));
            }
        }
        seen.own_cost_ns = profile.own_cost.total_ns;
        seen.lost = profile.losses.lost().into_iter().fold(0, |all: u64, (lost, _)| all.saturating_add(lost));
        if profile.end.is_none() {
            let change = Change::since(self.last.as_ref(), profile);
            self.last = Some(Look::of(profile));
            seen.now = Some(Now::of(ranks(), change.efficiency()));
        }
        self.figures.rise_to(seen);
    }

    /// It is not looked at any more.
    pub(super) fn end(&mut self) {
        (self.figures.now, self.last) = (None, None);
    }
}

impl Figures {
    /// A call that has just returned is measured without what measuring costs, and an open one is not: sums do not fall for that.
    fn rise_to(&mut self, seen: Self) {
        let groups = std::mem::take(&mut self.groups);
        *self = Self {
            wall_ns: self.wall_ns.max(seen.wall_ns),
            untimed_calls: self.untimed_calls.max(seen.untimed_calls),
            own_cost_ns: self.own_cost_ns.max(seen.own_cost_ns),
            lost: self.lost.max(seen.lost),
            ..seen
        };
        for (group, before) in groups {
            self.groups.entry(group).or_default().rise_to(&before);
        }
    }

    /// Together with those of another job.
    pub(super) fn add(&mut self, other: &Self) {
        for (group, figures) in &other.groups {
            self.groups.entry(group).or_default().add(figures);
        }
        self.wall_ns = self.wall_ns.saturating_add(other.wall_ns);
        self.untimed_calls = self.untimed_calls.saturating_add(other.untimed_calls);
        self.own_cost_ns += other.own_cost_ns;
        self.lost = self.lost.saturating_add(other.lost);
        self.is_seen |= other.is_seen;
        self.is_complete &= other.is_complete || !other.is_seen;
        if let Some(more) = other.now {
            let now = self.now.get_or_insert_default();
            now.ranks += more.ranks;
            now.ranks_in_mpi += more.ranks_in_mpi;
            now.oldest_call_ns = now.oldest_call_ns.max(more.oldest_call_ns);
        }
    }
}

/// What the command line calls a group that reports give this title.
pub(super) fn key_of(title: &'static str) -> &'static str {
    Group::ALL.into_iter().find(|group| group.title() == title).map_or(title, Group::key)
}

impl GroupFigures {
    fn of(row: &GroupRow) -> Self {
        let &GroupRow { calls, untimed_calls, time_ns, traffic: moved, .. } = row;
        Self { calls, untimed_calls, time_ns, moved }
    }

    fn with(&mut self, other: &Self, join: impl Fn(u64, u64) -> u64) {
        self.calls = join(self.calls, other.calls);
        self.untimed_calls = join(self.untimed_calls, other.untimed_calls);
        self.time_ns = join(self.time_ns, other.time_ns);
        if let Some(more) = other.moved {
            let moved = self.moved.get_or_insert_default();
            moved.sent_bytes = join(moved.sent_bytes, more.sent_bytes);
            moved.received_bytes = join(moved.received_bytes, more.received_bytes);
            moved.received_at_most_bytes = join(moved.received_at_most_bytes, more.received_at_most_bytes);
            moved.calls_of_unknown_bytes = join(moved.calls_of_unknown_bytes, more.calls_of_unknown_bytes);
        }
    }

    fn add(&mut self, other: &Self) {
        self.with(other, u64::saturating_add);
    }

    fn rise_to(&mut self, before: &Self) {
        self.with(before, u64::max);
    }
}

impl Now {
    fn of<'a>(ranks: impl Iterator<Item = &'a RankProfile>, efficiency: Option<Efficiency>) -> Self {
        let mut now = Self { efficiency, ..Self::default() };
        let mut youngest = u64::MAX;
        for rank in ranks.filter(|rank| rank.state == RankState::Running) {
            let open = || rank.open_calls.iter().filter(|call| !call.ended_inside).map(|call| call.open_ns);
            now.ranks += 1;
            now.ranks_in_mpi += u64::from(open().next().is_some());
            now.oldest_call_ns = now.oldest_call_ns.max(open().max());
            youngest = youngest.min(open().min().unwrap_or(0));
        }
        now.all_in_mpi_ns = if now.ranks == 0 { 0 } else { youngest };
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(calls: u64, time_ns: u64, moved: Option<GroupTraffic>) -> GroupFigures {
        GroupFigures { calls, untimed_calls: 0, time_ns, moved }
    }

    #[test]
    fn groups_are_named_as_on_the_command_line() {
        assert_eq!(
            ["point-to-point", "init/finalize", "of later versions"].map(key_of),
            ["p2p", "init", "of later versions"]
        );
    }

    #[test]
    fn sums_never_fall() {
        let seen = |time_ns, wall_ns| Figures {
            groups: [("p2p", group(1, time_ns, None))].into(),
            wall_ns,
            ..Figures::default()
        };
        let mut figures = Figures::default();
        figures.rise_to(seen(100, 50));
        figures.rise_to(seen(90, 60));
        assert_eq!((figures.groups["p2p"].time_ns, figures.wall_ns), (100, 60));
        // A look at which the group is missing takes nothing away.
        figures.rise_to(Figures::default());
        assert_eq!((figures.groups["p2p"].time_ns, figures.wall_ns), (100, 60));
    }

    #[test]
    fn several_jobs_add_up_and_what_is_not_known_of_them_stays_unknown() {
        let now = |ranks, oldest_call_ns| Now { ranks, ranks_in_mpi: 1, oldest_call_ns, ..Now::default() };
        let one = Figures {
            groups: [("p2p", group(1, 10, None)), ("coll", group(2, 20, None))].into(),
            now: Some(now(2, Some(7))),
            is_complete: true,
            is_seen: true,
            ..Figures::default()
        };
        let moved = GroupTraffic { sent_bytes: 5, ..GroupTraffic::default() };
        let other = Figures {
            groups: [("p2p", group(3, 30, Some(moved)))].into(),
            now: Some(now(3, None)),
            is_seen: true,
            ..Figures::default()
        };
        let mut both = Figures { is_complete: true, ..Figures::default() };
        both.add(&one);
        both.add(&other);
        assert_eq!((both.groups["p2p"], both.groups["coll"]), (group(4, 40, Some(moved)), group(2, 20, None)));
        let now = both.now.unwrap();
        assert_eq!((now.ranks, now.ranks_in_mpi, now.oldest_call_ns, now.efficiency), (5, 2, Some(7), None));
        assert!(!both.is_complete);
    }
}
