//! What of a profile went over some of its communicators.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
};

use mpiprobe_functions::matches_pattern;

use crate::{Amounts, CommunicatorProfile, CommunicatorSize, PartnerRow, Profile, RankTraffic};

/// The same profile with those communicators whose name matches one of the patterns, as they are chosen when a job is observed (`--comm`):
/// of communicators, their sizes, partners, flows and operations under way. Functions and ranks are as they were.
pub fn over_communicators(profile: &Profile, patterns: &[String]) -> Profile {
    let mut chosen = profile.clone();
    let Some(traffic) = &mut chosen.traffic else { return chosen };
    let is_chosen = |one: &CommunicatorProfile| patterns.iter().any(|pattern| matches_pattern(pattern, &one.name));
    traffic.communicators.retain(is_chosen);
    traffic.other_communicators = None;
    traffic.communicator_sizes = sizes(&traffic.communicators);
    let ids: HashSet<u32> = traffic.communicators.iter().map(|one| one.id).collect();
    for traffic in chosen.ranks.iter_mut().filter_map(|rank| rank.traffic.as_mut()) {
        leave_out(traffic, &ids);
    }
    let partners = partners(&chosen);
    if let Some(traffic) = &mut chosen.traffic {
        traffic.partners = partners.into();
    }
    chosen
}

fn leave_out(traffic: &mut RankTraffic, ids: &HashSet<u32>) {
    let known: HashMap<u32, Option<u32>> = traffic.communicators.iter().map(|row| (row.number, row.id)).collect();
    let over = |number: Option<u32>| {
        number.and_then(|number| known.get(&number).copied().flatten()).is_some_and(|id| ids.contains(&id))
    };
    traffic.flows = traffic.flows.iter().filter(|flow| over(flow.communicator)).cloned().collect();
    traffic.pending.retain(|row| over(row.communicator));
}

fn sizes(communicators: &[CommunicatorProfile]) -> Vec<CommunicatorSize> {
    let mut sizes: BTreeMap<u32, CommunicatorSize> = BTreeMap::new();
    for one in communicators {
        let Some(own) = one.size else { continue };
        let size = own.saturating_add(one.remote_size.unwrap_or(0));
        let row = sizes.entry(size).or_insert(CommunicatorSize { size, ..CommunicatorSize::default() });
        row.communicators = row.communicators.saturating_add(1);
        row.amounts.add(&one.amounts);
    }
    sizes.into_values().collect()
}

/// Of the flows, most bytes first.
fn partners(profile: &Profile) -> Vec<PartnerRow> {
    let mut pairs: BTreeMap<(Option<&str>, u32, u32), Amounts> = BTreeMap::new();
    for rank in &profile.ranks {
        let Some(own) = rank.rank else { continue };
        for flow in rank.traffic.iter().flat_map(|traffic| &traffic.flows) {
            let Some(peer) = flow.peer else { continue };
            pairs.entry((rank.job.as_deref(), own, peer)).or_default().add(&flow.amounts);
        }
    }
    let row = |((job, rank, peer), amounts): ((Option<&str>, u32, u32), Amounts)| PartnerRow {
        job: job.map(ToOwned::to_owned),
        rank,
        peer,
        amounts,
    };
    let mut rows: Vec<PartnerRow> = pairs.into_iter().map(row).collect();
    rows.sort_by_key(|row| {
        Reverse((row.amounts.sent_bytes.saturating_add(row.amounts.received_bytes), row.amounts.calls))
    });
    rows
}
