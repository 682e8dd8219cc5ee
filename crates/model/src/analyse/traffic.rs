//! Communicators and partners over ranks.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use mpiprobe_common::{Flow, flow::communicator_kind};
use mpiprobe_observe::{ProcessSnapshot, SHARED};

use super::{
    Observed, Session,
    communicator_names::{Name, name},
    communicators::{Group, MemberView, Recognised, world_rank},
    names::{self, amounts},
};
use crate::{
    Amounts, CommunicatorProfile, CommunicatorSize, FunctionAmounts, OtherCommunicators, PartnerRow,
    SaturatingSum as _, TrafficProfile,
};

/// Of more communicators than this, those that were used least are not listed.
const MOST_LISTED: usize = 1000;
/// Of larger ones members are not listed.
const MOST_MEMBERS: usize = 4096;

/// A process, and what was counted of it.
type Process<'a> = (&'a Observed, &'a ProcessSnapshot);

/// Everything about communicators, and which of it is shown.
pub(super) struct Traffic<'a> {
    processes: Vec<Process<'a>>,
    recognised: Recognised<'a>,
    names: Vec<Name>,
    used: Vec<Used>,
    /// By place in the order of all: whether it is listed, and shown at all.
    listed: BTreeSet<usize>,
    shown: Option<BTreeSet<usize>>,
    /// Calls over communicators that are not told apart.
    shared: Amounts,
}

/// What went over a communicator.
#[derive(Clone, Debug, Default)]
struct Used {
    all: Amounts,
    functions: BTreeMap<u16, Amounts>,
}

impl<'a> Traffic<'a> {
    pub(super) fn of(session: &Session, processes: Vec<Process<'a>>) -> Self {
        let recognised = Recognised::of(processes.iter().flat_map(|&process| known(process)).collect());
        let names = name(&recognised);
        let mut used = vec![Used::default(); recognised.groups.len()];
        let mut shared = Amounts::default();
        for (observed, tables) in &processes {
            for flow in &tables.flows {
                let amounts = amounts(flow, observed.self_cost);
                let index = recognised.index(tables.process, flow.key.communicator);
                if let Some(used) = index.and_then(|index| used.get_mut(index)) {
                    used.all.add(&amounts);
                    used.functions.entry(flow.key.function).or_default().add(&amounts);
                } else if flow.key.communicator == SHARED {
                    shared.add(&amounts);
                }
            }
        }
        let patterns = &session.communicators;
        let matching =
            |name: &Name| patterns.iter().any(|pattern| mpiprobe_functions::matches_pattern(pattern, &name.text));
        let all = 0..names.len();
        let shown: Option<BTreeSet<usize>> = (!patterns.is_empty())
            .then(|| all.clone().filter(|&index| names.get(index).is_some_and(matching)).collect());
        let mut by_use: Vec<usize> =
            all.filter(|index| shown.as_ref().is_none_or(|shown| shown.contains(index))).collect();
        by_use.sort_by_key(|&index| Reverse(used.get(index).map(|used| (used.all.time_ns, used.all.calls))));
        by_use.truncate(MOST_LISTED);
        Self { listed: by_use.into_iter().collect(), processes, recognised, names, used, shown, shared }
    }

    /// The id of a communicator of a process, if it is listed.
    pub(super) fn id(&self, process: u32, number: u32) -> Option<u32> {
        let index = self.recognised.index(process, number).filter(|index| self.listed.contains(index))?;
        Some(id(index))
    }

    /// Whether a flow is to be shown.
    pub(super) fn shows(&self, flow: &Flow) -> bool {
        let Some(shown) = &self.shown else { return true };
        self.recognised.index(flow.key.process, flow.key.communicator).is_some_and(|index| shown.contains(&index))
    }

    pub(super) fn profile(&self) -> TrafficProfile {
        let world_ranks: HashMap<u32, u32> = self
            .processes
            .iter()
            .filter_map(|&(observed, tables)| Some((tables.process, rank(observed, tables)?)))
            .collect();
        TrafficProfile {
            communicators: self.listed.iter().filter_map(|&index| self.communicator(index)).collect(),
            other_communicators: self.others(),
            communicator_sizes: self.sizes(),
            partners: self.partners(&world_ranks).into(),
        }
    }

    fn communicator(&self, index: usize) -> Option<CommunicatorProfile> {
        let (group, name, used) = (self.recognised.groups.get(index)?, self.names.get(index)?, self.used.get(index)?);
        let facts = group.facts();
        let mut functions: Vec<FunctionAmounts> = used
            .functions
            .iter()
            .map(|(&function, &amounts)| FunctionAmounts { function: names::name(function.into()), amounts })
            .collect();
        functions.sort_by_key(|row| (Reverse((row.amounts.time_ns, row.amounts.calls)), row.function));
        let (members, remote_members) = members(group);
        Some(CommunicatorProfile {
            id: id(index),
            name: name.text.clone(),
            is_named: name.is_given,
            job: group.job().map(ToOwned::to_owned),
            context: facts.context,
            size: Some(facts.size).filter(|&size| size > 0),
            remote_size: Some(facts.remote_size).filter(|_| facts.is_inter != 0),
            members,
            remote_members,
            parent: name.parent.map(id),
            made_by: name.made_by,
            ranks: u32::try_from(group.known.len()).unwrap_or(u32::MAX),
            freed: group.freed_ns().is_some(),
            amounts: used.all,
            functions,
        })
    }

    fn others(&self) -> Option<OtherCommunicators> {
        let mut others = OtherCommunicators { communicators: 0, amounts: Amounts::default() };
        if self.shown.is_none() {
            others.communicators =
                self.processes.iter().map(|(_, tables)| tables.counters.communicators_shared).saturating_sum();
            others.amounts = self.shared;
        }
        for (index, used) in self.used.iter().enumerate() {
            if !self.listed.contains(&index) && self.shown.as_ref().is_none_or(|shown| shown.contains(&index)) {
                others.communicators = others.communicators.saturating_add(1);
                others.amounts.add(&used.all);
            }
        }
        Some(others).filter(|others| others.communicators > 0)
    }

    fn sizes(&self) -> Vec<CommunicatorSize> {
        let mut sizes: BTreeMap<u32, CommunicatorSize> = BTreeMap::new();
        for (index, (group, used)) in self.recognised.groups.iter().zip(&self.used).enumerate() {
            let facts = group.facts();
            if facts.size == 0 || self.shown.as_ref().is_some_and(|shown| !shown.contains(&index)) {
                continue;
            }
            let size = facts.size.saturating_add(facts.remote_size);
            let row = sizes.entry(size).or_insert(CommunicatorSize { size, ..CommunicatorSize::default() });
            row.communicators += 1;
            row.amounts.add(&used.all);
        }
        sizes.into_values().collect()
    }

    fn partners(&self, world_ranks: &HashMap<u32, u32>) -> Vec<PartnerRow> {
        let mut pairs: BTreeMap<(Option<&str>, u32, u32), Amounts> = BTreeMap::new();
        for (observed, tables) in &self.processes {
            let Some(&rank) = world_ranks.get(&tables.process) else { continue };
            for flow in tables.flows.iter().filter(|flow| self.shows(flow)) {
                let Ok(peer) = u32::try_from(flow.key.peer) else { continue };
                pairs
                    .entry((observed.identity.job.as_deref(), rank, peer))
                    .or_default()
                    .add(&amounts(flow, observed.self_cost));
            }
        }
        let mut rows: Vec<PartnerRow> = pairs
            .into_iter()
            .map(|((job, rank, peer), amounts)| PartnerRow { job: job.map(ToOwned::to_owned), rank, peer, amounts })
            .collect();
        rows.sort_by_key(|row| {
            Reverse((row.amounts.sent_bytes.saturating_add(row.amounts.received_bytes), row.amounts.calls))
        });
        rows
    }
}

/// Counted from 1, in the order in which they were made.
fn id(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1)
}

fn rank(observed: &Observed, tables: &ProcessSnapshot) -> Option<u32> {
    observed.identity.rank.or_else(|| world_rank(tables))
}

/// The communicators that a process knows. One that was registered twice at once has not been looked at, and not been used.
fn known((observed, tables): Process<'_>) -> impl Iterator<Item = MemberView<'_>> {
    let world_rank = rank(observed, tables);
    let is_real = |number: u32| tables.flows.iter().any(|flow| flow.key.communicator == number);
    let real = tables.communicators.iter();
    let real = real.filter(move |known| known.facts.kind != communicator_kind::NOT_YET || is_real(known.number));
    real.map(move |communicator| MemberView {
        process: tables.process,
        communicator,
        job: observed.identity.job.as_deref(),
        world_rank,
    })
}

/// World ranks by rank.
type List = Option<Vec<Option<u32>>>;

/// As read from the memory of one of them, or else those that are observed.
fn members(group: &Group<'_>) -> (List, List) {
    let facts = group.facts();
    if facts.kind == communicator_kind::OWN {
        let mut ranks: Vec<Option<u32>> = group.known.iter().map(|known| known.world_rank).collect();
        ranks.sort_unstable();
        return (Some(ranks), None);
    }
    let is_own_side = |known: &&MemberView<'_>| {
        let other = &known.communicator.facts;
        facts.is_inter == 0 || (other.size, other.first) == (facts.size, facts.first)
    };
    if let Some(read) = group.known.iter().filter(is_own_side).find_map(|known| known.communicator.members.as_deref()) {
        return (Some(read.own.clone()), Some(read.remote.clone()).filter(|_| facts.is_inter != 0));
    }
    let (own, other): (Vec<&MemberView<'_>>, Vec<&MemberView<'_>>) = group.known.iter().partition(is_own_side);
    (joined(facts.size, &own), if facts.is_inter == 0 { None } else { joined(facts.remote_size, &other) })
}

/// Everybody knows his own place.
fn joined(size: u32, known: &[&MemberView<'_>]) -> List {
    let size = usize::try_from(size).ok().filter(|&size| size <= MOST_MEMBERS)?;
    let mut members = vec![None; size];
    for known in known {
        let place = usize::try_from(known.communicator.facts.rank).ok().and_then(|rank| members.get_mut(rank));
        if let Some(place) = place {
            *place = known.world_rank;
        }
    }
    members.iter().any(Option::is_some).then_some(members)
}
