//! A profile with those rows only that a filter keeps.

use std::collections::HashMap;

use super::{Facts, Field, Filter, facts};
use crate::model::{CommunicatorProfile, Profile};

/// Leaves rows out. Sums (totals, groups, losses) stay those of everything.
pub fn apply(filter: &Filter, profile: &mut Profile) {
    let known: HashMap<u32, CommunicatorProfile> = profile
        .traffic
        .iter()
        .flat_map(|traffic| &traffic.communicators)
        .map(|communicator| (communicator.id, communicator.clone()))
        .collect();
    let host = profile.host.clone();
    profile.functions.retain(|row| filter.keeps(&facts::of_all_ranks(row)));
    profile.ranks.retain(|rank| filter.keeps(&facts::rank(rank, &host)));
    for rank in &mut profile.ranks {
        let whose = facts::whose(rank, &host);
        rank.functions.retain(|row| filter.keeps(&facts::function(whose.clone(), row)));
        let Some(traffic) = &mut rank.traffic else { continue };
        let ids: HashMap<u32, u32> =
            traffic.communicators.iter().filter_map(|row| Some((row.number, row.id?))).collect();
        let over = |number: Option<u32>| known.get(ids.get(&number?)?);
        traffic.flows.retain(|row| filter.keeps(&facts::flow(whose.clone(), row, over(row.communicator))));
        traffic.pending.retain(|row| filter.keeps(&facts::pending(whose.clone(), row, over(row.communicator))));
    }
    if let Some(traffic) = &mut profile.traffic {
        traffic.communicators.retain(|row| filter.keeps(&facts::communicator(row)));
        traffic.partners.retain(|pair| {
            let facts = Facts::default()
                .number(Field::Rank, pair.rank)
                .number(Field::Peer, pair.peer)
                .maybe_text(Field::Job, pair.job.as_deref());
            filter.keeps(&facts)
        });
    }
}
