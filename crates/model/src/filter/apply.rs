//! A profile with those rows only that a filter keeps.

use std::collections::HashMap;

use super::{Facts, Filter, facts};
use crate::{CommunicatorProfile, Profile, RankProfile, RankTraffic, Rows, TrafficProfile};

/// What a filter leaves of a profile.
#[derive(Clone, Debug)]
pub struct Kept {
    pub profile: Profile,
    /// Of each rank that is left: its place among all ranks, and those of its functions that are left among all of its.
    pub places: Vec<(usize, Vec<usize>)>,
}

/// Leaves rows out. Sums (totals, groups, losses) stay those of everything.
pub fn apply(filter: &Filter, profile: &Profile) -> Kept {
    let mut kept = profile.clone();
    kept.functions.retain(|row| filter.keeps(&facts::of_all_ranks(row)));
    if let Some(traffic) = &mut kept.traffic {
        leave_out(filter, traffic);
    }
    let places;
    (kept.ranks, places) = ranks(filter, profile);
    Kept { profile: kept, places }
}

/// By id.
type Communicators<'a> = HashMap<u32, &'a CommunicatorProfile>;

fn ranks(filter: &Filter, profile: &Profile) -> (Rows<RankProfile>, Vec<(usize, Vec<usize>)>) {
    let communicators = profile.traffic.iter().flat_map(|traffic| &traffic.communicators);
    let known: Communicators<'_> = communicators.map(|communicator| (communicator.id, communicator)).collect();
    let ranks = profile.ranks.iter().enumerate().filter(|(_, rank)| filter.keeps(&facts::rank(rank, &profile.host)));
    let kept = ranks.map(|(place, rank)| {
        let whose = facts::whose(rank, &profile.host);
        let functions = rank.functions.iter().enumerate();
        let functions = functions.filter(|(_, row)| filter.keeps(&facts::function(whose.clone(), row)));
        let (places, rows): (_, Vec<_>) = functions.map(|(place, row)| (place, row.clone())).unzip();
        let mut kept = rank.clone();
        kept.functions = rows.into();
        if let Some(traffic) = &mut kept.traffic {
            leave_out_of_rank(filter, traffic, &whose, &known);
        }
        (kept, (place, places))
    });
    let (ranks, places): (Vec<_>, _) = kept.unzip();
    (ranks.into(), places)
}

fn leave_out_of_rank(filter: &Filter, traffic: &mut RankTraffic, whose: &Facts<'_>, known: &Communicators<'_>) {
    let ids: HashMap<u32, u32> = traffic.communicators.iter().filter_map(|row| Some((row.number, row.id?))).collect();
    let over = |number: Option<u32>| known.get(ids.get(&number?)?).copied();
    let flows = traffic.flows.iter();
    let flows = flows.filter(|row| filter.keeps(&facts::flow(whose.clone(), row, over(row.communicator))));
    traffic.flows = flows.cloned().collect();
    traffic.pending.retain(|row| filter.keeps(&facts::pending(whose.clone(), row, over(row.communicator))));
}

fn leave_out(filter: &Filter, traffic: &mut TrafficProfile) {
    traffic.communicators.retain(|row| filter.keeps(&facts::communicator(row)));
    traffic.partners = traffic.partners.iter().filter(|row| filter.keeps(&facts::pair(row))).cloned().collect();
}
