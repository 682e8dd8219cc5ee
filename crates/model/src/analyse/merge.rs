//! Profiles of one job on several nodes, as one.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
};

use thiserror::Error;

use super::{over_ranks, whole};
use crate::{
    CommunicatorProfile, CommunicatorSize, JobInfo, OwnCost, Profile, RankProfile, SaturatingSum as _, TrafficProfile,
};

/// Why profiles cannot be one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MergeError {
    #[error("there is no profile to merge")]
    Nothing,
    #[error("{first} and {second} are of different jobs: {first} of {}, {second} of {}", Jobs(.first_jobs), Jobs(.second_jobs))]
    OtherJob { first: String, second: String, first_jobs: Vec<JobInfo>, second_jobs: Vec<JobInfo> },
    #[error("{first} and {second} both have {rank}: they are of the same node, or one is a copy of the other")]
    SameRank { first: String, second: String, rank: String },
    #[error(
        "{first} was counted by {first_engine} and {second} by {second_engine}: their figures are not of the same kind"
    )]
    OtherEngine { first: String, second: String, first_engine: String, second_engine: String },
}

/// Jobs in words.
struct Jobs<'a>(&'a [JobInfo]);

impl fmt::Display for Jobs<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return to.write_str("no job that is known");
        }
        for (place, job) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            match job.size {
                Some(size) => write!(to, "{comma}job {} of {size} ranks", job.id)?,
                None => write!(to, "{comma}job {}", job.id)?,
            }
        }
        Ok(())
    }
}

/// The ranks of several profiles together. Each is given with the name of what it was kept in.
///
/// Percentiles over ranks are known to within a factor of two where several profiles have calls of the function. Communicators of
/// different nodes are one if they have number of the library, sizes and members in common, in the order in which they come.
/// Ranks that are in none of the profiles make the result incomplete.
pub fn merge(profiles: Vec<(String, Profile)>) -> Result<Profile, MergeError> {
    check(&profiles)?;
    let is_single = profiles.len() == 1;
    let mut all = profiles.into_iter().map(|(_, profile)| profile);
    if is_single {
        return all.next().ok_or(MergeError::Nothing);
    }
    united(all).ok_or(MergeError::Nothing)
}

/// The ranks of nodes that are observed at once, each given with its node's name; `None`: of no node.
///
/// Their jobs may differ: those of a batch system's job. What does not fit to the nodes before is left out, and what a node lacks, or is
/// left out of it, makes the result incomplete, as do ranks of the jobs that are on none of the nodes.
pub fn merge_nodes(mut profiles: Vec<(String, Profile)>) -> Option<Profile> {
    let mut left_out = Vec::new();
    let mut seen: HashMap<String, String> = HashMap::new();
    let engine = profiles.first().map(|(_, profile)| profile.engine.engine);
    profiles.retain(|(node, profile)| {
        let twice = profile.ranks.iter().map(who).find_map(|who| Some((seen.get(&who)?.clone(), who)));
        let why = match twice {
            _ if Some(profile.engine.engine) != engine => {
                format!(
                    "it was counted by {}, and the nodes before by {}",
                    profile.engine.engine,
                    engine.unwrap_or("?")
                )
            }
            Some((other, who)) => format!("{who} is on {other} already: both names are of one node"),
            None => {
                seen.extend(profile.ranks.iter().map(|row| (who(row), node.clone())));
                return true;
            }
        };
        left_out.push(format!("node {node} is left out: {why}"));
        false
    });
    let of_nodes = profiles.into_iter().map(|(node, mut profile)| {
        for why in &mut profile.incomplete_because {
            *why = format!("node {node}: {why}");
        }
        profile
    });
    let mut all = united(of_nodes)?;
    all.incomplete_because.append(&mut left_out);
    all.complete = all.incomplete_because.is_empty();
    Some(all)
}

/// All of them, which are known to fit together.
fn united(mut profiles: impl Iterator<Item = Profile>) -> Option<Profile> {
    let mut all = profiles.next()?;
    let mut hosts: BTreeSet<String> = [all.host.clone()].into();
    let mut is_single = true;
    for more in profiles {
        is_single = false;
        hosts.insert(more.host.clone());
        add(&mut all, more);
    }
    if !is_single {
        all.host = hosts.into_iter().collect::<Vec<_>>().join(", ");
        all.ranks.sort_by(|a, b| key(a).cmp(&key(b)));
        over_ranks::sum_up(&mut all);
    }
    let mut seen = BTreeSet::new();
    all.incomplete_because.retain(|why| !whole::is_of_missing_ranks(why) && seen.insert(why.clone()));
    all.incomplete_because.extend(whole::missing_of_rows(&all.ranks));
    all.complete = all.incomplete_because.is_empty();
    Some(all)
}

/// Of all jobs and nodes.
fn who(row: &RankProfile) -> String {
    match row.rank {
        Some(rank) => format!("rank {rank} of job {}", row.job.as_deref().unwrap_or("?")),
        None => format!("process {} of {}", row.pid, row.host),
    }
}

fn key(rank: &RankProfile) -> (&Option<String>, bool, Option<u32>, &str, u32) {
    (&rank.job, rank.rank.is_none(), rank.rank, &rank.host, rank.pid)
}

fn check(profiles: &[(String, Profile)]) -> Result<(), MergeError> {
    let Some((first_name, first)) = profiles.first() else { return Err(MergeError::Nothing) };
    let ids = |profile: &Profile| profile.jobs.iter().map(|job| job.id.clone()).collect::<BTreeSet<_>>();
    // By their places: a file may be named twice.
    let mut seen: HashMap<String, (usize, &str)> = HashMap::new();
    for (place, (name, profile)) in profiles.iter().enumerate() {
        let size = |id: &str, profile: &Profile| profile.jobs.iter().find(|job| job.id == id).and_then(|job| job.size);
        let same_sizes =
            ids(first).iter().all(|id| size(id, first).zip(size(id, profile)).is_none_or(|(one, other)| one == other));
        if ids(profile) != ids(first) || !same_sizes {
            return Err(MergeError::OtherJob {
                first: first_name.clone(),
                second: name.clone(),
                first_jobs: first.jobs.clone(),
                second_jobs: profile.jobs.clone(),
            });
        }
        if profile.engine.engine != first.engine.engine {
            return Err(MergeError::OtherEngine {
                first: first_name.clone(),
                second: name.clone(),
                first_engine: first.engine.engine.to_owned(),
                second_engine: profile.engine.engine.to_owned(),
            });
        }
        for row in &profile.ranks {
            let who = who(row);
            match seen.get(&who) {
                Some(&(other, known)) if other != place => {
                    return Err(MergeError::SameRank { first: known.to_owned(), second: name.clone(), rank: who });
                }
                _ => drop(seen.insert(who, (place, name))),
            }
        }
    }
    Ok(())
}

fn add(all: &mut Profile, mut more: Profile) {
    let (one, two) = (all.observed_ns, more.observed_ns);
    // The same moment by two clocks: what began first says when.
    if more.began < all.began {
        all.began.clone_from(&more.began);
    }
    all.observed_ns = one.max(two);
    all.end = all.end.and(more.end);
    all.interval = None;
    all.incomplete_because.append(&mut more.incomplete_because);
    for library in more.engine.libraries {
        if !all.engine.libraries.contains(&library) {
            all.engine.libraries.push(library);
        }
    }
    for tool in more.engine.tools {
        if !all.engine.tools.contains(&tool) {
            all.engine.tools.push(tool);
        }
    }
    if !all.engine.attached_by.split(", ").any(|way| way == more.engine.attached_by) {
        all.engine.attached_by = format!("{}, {}", all.engine.attached_by, more.engine.attached_by);
    }
    all.engine.attach_ns = all.engine.attach_ns.max(more.engine.attach_ns);
    all.losses.add(&more.losses);
    all.inner_calls = match (all.inner_calls.take(), more.inner_calls) {
        (Some(mut inner), Some(others)) => {
            for calls in others {
                match inner.iter_mut().find(|known| (known.outer, known.inner) == (calls.outer, calls.inner)) {
                    Some(known) => {
                        known.calls = known.calls.saturating_add(calls.calls);
                        known.time_ns = known.time_ns.saturating_add(calls.time_ns);
                    }
                    None => inner.push(calls),
                }
            }
            inner.sort_by_key(|calls| std::cmp::Reverse((calls.time_ns, calls.calls)));
            Some(inner)
        }
        (inner, others) => inner.or(others),
    };
    all.budget = match (all.budget.take(), more.budget.take()) {
        (Some(budget), Some(other)) => Some(budget.and(other)),
        (budget, other) => budget.or(other),
    };
    let wall_ns = all.ranks.iter().chain(&more.ranks).map(|rank| rank.wall_ns).saturating_sum();
    let (cost, other) = (all.own_cost, more.own_cost);
    let calls = cost.calls.saturating_add(other.calls);
    let total_ns = cost.total_ns + other.total_ns;
    all.own_cost = OwnCost {
        per_call_ns: if calls == 0 { cost.per_call_ns } else { total_ns / calls as f64 },
        inside_ns: cost.inside_ns.zip(other.inside_ns).map(|(one, two)| f64::midpoint(one, two)),
        subtracted_ns: cost.subtracted_ns.saturating_add(other.subtracted_ns),
        calls,
        total_ns,
        percent_of_wall: if wall_ns == 0 { 0.0 } else { 100.0 * total_ns / wall_ns as f64 },
    };
    all.traffic = match (all.traffic.take(), more.traffic.take()) {
        (Some(mut traffic), Some(others)) => {
            let ids = add_traffic(&mut traffic, others);
            for row in more.ranks.iter_mut().flat_map(|rank| &mut rank.traffic).flat_map(|own| &mut own.communicators) {
                row.id = row.id.and_then(|id| ids.get(&id).copied());
            }
            Some(traffic)
        }
        (traffic, others) => traffic.or(others),
    };
    // What one node sees no other end of may have it on another.
    all.unmatched.clear();
    all.standstill.append(&mut more.standstill);
    // Each node has told those of its own calls, which waits for other nodes are not in.
    all.wait_states = None;
    all.ranks.append(&mut more.ranks);
}

/// What makes communicators of two nodes one, besides their members. Their names do not: each node numbers those that it sees.
type Kind = (Option<String>, u64, Option<&'static str>, [Option<u32>; 2]);

/// World ranks of one group of an inter-communicator, or of all of another one.
type Side = Option<Vec<Option<u32>>>;

/// The same, with its members, and how many of those were before it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Same {
    kind: Kind,
    sides: [Side; 2],
    time: usize,
}

/// By what they have in common, those of one profile numbered.
fn known(communicators: &[CommunicatorProfile]) -> Vec<Same> {
    let mut times: BTreeMap<(Kind, [Side; 2]), usize> = BTreeMap::new();
    let mut keys = Vec::with_capacity(communicators.len());
    for one in communicators {
        let is_predefined = |name: &&str| !one.is_named && one.name == *name;
        let predefined = ["world", "self"].into_iter().find(is_predefined);
        let mut sides = [(one.size, one.members.clone()), (one.remote_size, one.remote_members.clone())];
        if one.remote_size.is_some() {
            // Each group calls the other one remote.
            sides.sort();
        }
        let [(size, members), (remote_size, remote_members)] = sides;
        // Everybody has one of his own, and they are one.
        let members = members.filter(|_| predefined != Some("self"));
        let (kind, sides) =
            ((one.job.clone(), one.context, predefined, [size, remote_size]), [members, remote_members]);
        let time = times.entry((kind.clone(), sides.clone())).or_insert(0);
        keys.push(Same { kind, sides, time: *time });
        *time += 1;
    }
    keys
}

impl Same {
    /// Whether it may be another one whose members are not known where this one's are, or the other way round.
    fn may_be(&self, other: &Self) -> bool {
        let is_open = |sides: &[Side; 2]| sides.iter().all(Option::is_none);
        self.kind == other.kind && is_open(&self.sides) != is_open(&other.sides)
    }
}

/// Gives the ids that those of the other profile have now.
fn add_traffic(all: &mut TrafficProfile, more: TrafficProfile) -> HashMap<u32, u32> {
    let places: BTreeMap<Same, usize> =
        known(&all.communicators).into_iter().enumerate().map(|(place, key)| (key, place)).collect();
    let mut next = all.communicators.iter().map(|one| one.id).max().map_or(0, |id| id.saturating_add(1));
    let mut ids = HashMap::new();
    let keys = known(&more.communicators);
    let mut added = Vec::new();
    for (mut one, key) in more.communicators.into_iter().zip(keys) {
        if !places.contains_key(&key) {
            // Of none of those that it may be anything follows that depends on which are one.
            let perhaps: Vec<usize> =
                places.iter().filter(|(known, _)| known.may_be(&key)).map(|(_, at)| *at).collect();
            for place in &perhaps {
                if let Some(other) = all.communicators.get_mut(*place) {
                    (other.members, other.remote_members) = (None, None);
                }
            }
            if !perhaps.is_empty() {
                (one.members, one.remote_members) = (None, None);
            }
        }
        let same = places.get(&key).and_then(|&place| all.communicators.get_mut(place));
        if let Some(same) = same {
            ids.insert(one.id, same.id);
            if one.is_named && !same.is_named {
                (same.name, same.is_named) = (one.name, true);
            }
            same.ranks = same.ranks.saturating_add(one.ranks);
            same.freed &= one.freed;
            same.amounts.add(&one.amounts);
            for row in one.functions {
                match same.functions.iter_mut().find(|known| known.function == row.function) {
                    Some(known) => known.amounts.add(&row.amounts),
                    None => same.functions.push(row),
                }
            }
            same.functions.sort_by_key(|row| std::cmp::Reverse(row.amounts.time_ns));
        } else {
            ids.insert(one.id, next);
            one.id = next;
            next = next.saturating_add(1);
            added.push(one);
        }
    }
    for one in &mut added {
        one.parent = one.parent.and_then(|parent| ids.get(&parent).copied());
    }
    all.communicators.append(&mut added);
    all.other_communicators = match (all.other_communicators, more.other_communicators) {
        (Some(mut one), Some(other)) => {
            one.communicators = one.communicators.saturating_add(other.communicators);
            one.amounts.add(&other.amounts);
            Some(one)
        }
        (one, other) => one.or(other),
    };
    let mut sizes: BTreeMap<u32, CommunicatorSize> = BTreeMap::new();
    for row in all.communicator_sizes.iter().chain(&more.communicator_sizes) {
        let size = sizes.entry(row.size).or_insert(CommunicatorSize { size: row.size, ..CommunicatorSize::default() });
        // Each node sees the same ones, as far as it has members in them.
        size.communicators = size.communicators.max(row.communicators);
        size.amounts.add(&row.amounts);
    }
    all.communicator_sizes = sizes.into_values().collect();
    all.partners.extend(more.partners.iter().cloned());
    all.partners.sort_by_key(|row| {
        (std::cmp::Reverse(row.amounts.sent_bytes.saturating_add(row.amounts.received_bytes)), row.rank, row.peer)
    });
    ids
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, SECOND, function};

    /// The ranks of a node, of a job of four.
    fn node(host: &str, ranks: std::ops::Range<u32>) -> (String, Profile) {
        let mut profile = sample::profile(
            sample::ranks(4).into_iter().filter(|row| row.rank.is_some_and(|rank| ranks.contains(&rank))).collect(),
        );
        profile.host = host.into();
        profile.jobs = vec![JobInfo { id: "job".into(), ranks: ranks.len(), size: Some(4) }];
        for row in &mut profile.ranks {
            row.host = host.into();
            let rank = u64::from(row.rank.unwrap());
            row.functions = vec![function("MPI_Send", 10 + rank, 1000).all].into();
            (row.calls, row.mpi_ns) = (10 + rank, SECOND);
        }
        (format!("{host}.rec"), profile)
    }

    #[test]
    fn ranks_of_all_nodes_are_together() {
        let all = merge(vec![node("b", 2..4), node("a", 0..2)]).unwrap();
        assert_eq!(all.ranks.iter().map(|row| row.rank.unwrap()).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!((all.host.as_str(), all.complete), ("a, b", true));
        assert_eq!((all.totals.calls, all.functions[0].all.calls, all.functions[0].all.mean_ns), (46, 46, 1000.0));
        assert_eq!((all.jobs[0].ranks, all.totals.mpi_percent_of_all), (4, Some(10.0)));
    }

    /// Communicators as a node sees them: names, sizes, and who is in them.
    fn communicators(of: &[(&str, u32, Option<&[u32]>)]) -> TrafficProfile {
        let row = |(id, (name, size, members)): (u32, &(&str, u32, Option<&[u32]>))| CommunicatorProfile {
            id,
            name: (*name).into(),
            is_named: false,
            job: Some("job".into()),
            context: 3,
            size: Some(*size),
            remote_size: None,
            members: members.map(|members| members.iter().copied().map(Some).collect()),
            remote_members: None,
            parent: None,
            made_by: None,
            ranks: 1,
            freed: false,
            amounts: crate::Amounts::default(),
            functions: Vec::new(),
        };
        TrafficProfile { communicators: (1..).zip(of).map(row).collect(), ..TrafficProfile::default() }
    }

    #[test]
    fn communicators_of_nodes_are_one_whatever_each_node_calls_them() {
        let mut all = communicators(&[("split#1 of world", 1, Some(&[0])), ("split#2 of world", 3, Some(&[1, 2, 3]))]);
        let ids = add_traffic(&mut all, communicators(&[("split#1 of world", 3, Some(&[1, 2, 3]))]));
        assert_eq!((ids[&1], all.communicators.len(), all.communicators[1].ranks), (2, 2, 2));
        // Parts of one split.
        let ids = add_traffic(&mut all, communicators(&[("split#1 of world", 3, Some(&[4, 5, 6]))]));
        assert_eq!((ids[&1], all.communicators.len()), (3, 3));
    }

    #[test]
    fn of_communicators_whose_members_a_node_does_not_know_nothing_is_taken_for_certain() {
        let mut all = communicators(&[("split#1 of world", 2, Some(&[0, 1])), ("split#2 of world", 2, Some(&[2, 3]))]);
        add_traffic(&mut all, communicators(&[("split#1 of world", 2, None)]));
        assert!(all.communicators.iter().all(|one| one.members.is_none()), "{all:?}");
    }

    /// Invariant EVERYBODY-OR-SAID.
    #[test]
    fn of_nodes_that_are_observed_at_once_what_does_not_fit_is_left_out_and_said() {
        let (mut other, mut wrapped, mut lacking) = (node("d", 1..2), node("e", 3..4), node("b", 2..3));
        other.1.jobs[0].id = "other".into();
        other.1.ranks.iter_mut().for_each(|row| row.job = Some("other".into()));
        wrapped.1.engine.engine = "wrapper";
        lacking.1.incomplete_because = vec!["something".into(), "3 of 4 ranks of job job are not counted".into()];
        let all = merge_nodes(vec![node("a", 0..2), lacking, node("c", 1..2), other, wrapped]).unwrap();
        assert_eq!(all.ranks.iter().map(|row| row.rank.unwrap()).collect::<Vec<_>>(), [0, 1, 2, 1]);
        assert_eq!((all.jobs.len(), all.complete), (2, false));
        let why = all.incomplete_because;
        assert_eq!(why[0], "node b.rec: something");
        assert!(why[1].starts_with("1 of 4 ranks of job job are not counted (rank 3)"), "{why:?}");
        assert!(why[2].starts_with("3 of 4 ranks of job other are not counted"), "{why:?}");
        assert_eq!(why[3], "node c.rec is left out: rank 1 of job job is on a.rec already: both names are of one node");
        assert_eq!(why[4], "node e.rec is left out: it was counted by wrapper, and the nodes before by ebpf");
        assert!(merge_nodes(vec![node("a", 0..4)]).unwrap().complete);
        assert!(merge_nodes(Vec::new()).is_none());
    }

    #[test]
    fn a_node_that_is_missing_is_said() {
        let mut first = node("a", 0..1);
        first.1.incomplete_because = vec!["3 of 4 ranks of job job are not counted (rank 1-3)".into()];
        let all = merge(vec![first, node("b", 2..4)]).unwrap();
        assert_eq!(all.incomplete_because, ["1 of 4 ranks of job job are not counted (rank 1)"]);
        assert!(!all.complete);
    }

    #[test]
    fn other_jobs_and_ranks_that_are_there_twice_are_refused() {
        let mut other = node("b", 2..4);
        other.1.jobs[0].id = "other".into();
        let error = merge(vec![node("a", 0..2), other]).unwrap_err().to_string();
        assert_eq!(
            error,
            "a.rec and b.rec are of different jobs: a.rec of job job of 4 ranks, b.rec of job other of 4 ranks"
        );
        let error = merge(vec![node("a", 0..2), node("b", 1..3)]).unwrap_err().to_string();
        assert!(error.starts_with("a.rec and b.rec both have rank 1 of job job"), "{error}");
        let mut wrapped = node("b", 2..4);
        wrapped.1.engine.engine = "wrapper";
        assert!(matches!(merge(vec![node("a", 0..2), wrapped]), Err(MergeError::OtherEngine { .. })));
        assert_eq!(merge(vec![]).unwrap_err(), MergeError::Nothing);
    }
}
