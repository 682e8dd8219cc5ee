//! The communication matrix: who sent how much to whom.

use std::collections::{BTreeSet, HashMap};

use mpiprobe_model::{Amounts, CommunicatorProfile, FlowRow, Profile, RankProfile, TrafficProfile};

use super::TableData;
use crate::content::{Block, Matrix, MatrixCell};

/// Who did how much with whom.
struct Pairs<'a> {
    job: Option<&'a str>,
    /// How many ranks there are.
    number: u32,
    /// Over which communicator, and whose ranks these are.
    over: Option<String>,
    /// As many pairs as there are without the filter.
    unfiltered: usize,
    /// Rank, the other one.
    amounts: Vec<(u32, u32, Amounts)>,
}

/// Of the whole job or one communicator (by its id), or of a part of it, in as many rows and columns as there is room for: where that
/// is not enough, several ranks share one.
pub(crate) fn matrix(data: &TableData<'_>, of: Option<u32>, part: Option<Block>, room: (usize, usize)) -> Matrix {
    let profile = data.profile;
    let Some(traffic) = &profile.traffic else {
        return Matrix { empty: super::sites::NO_TRAFFIC, ..Matrix::default() };
    };
    let communicator = of.and_then(|id| {
        // The communicator itself may be filtered out.
        let all = data.all.profile.traffic.iter().flat_map(|traffic| &traffic.communicators);
        all.into_iter().find(|communicator| communicator.id == id)
    });
    let Pairs { job, number, over, unfiltered, amounts: pairs } = match communicator {
        Some(communicator) => over_one(data, communicator),
        None => over_all(data, traffic),
    };
    let number_of_pairs = pairs.len();
    let part = part.unwrap_or(Block { from: 0, to: 0, side: number });
    let side = part.side.max(1);
    let least = u32::try_from(room.0.min(room.1).max(1)).unwrap_or(u32::MAX);
    let step = side.div_ceil(least).max(1);
    let cells = side.div_ceil(step);
    let mut sums: HashMap<(u32, u32), MatrixCell> = HashMap::new();
    let place = |rank: u32, first: u32| rank.checked_sub(first).filter(|&distance| distance < side).map(|at| at / step);
    for (rank, peer, amounts) in pairs {
        if let Some(at) = place(rank, part.from).zip(place(peer, part.to)) {
            sums.entry(at).or_default().add(&amounts);
        }
    }
    Matrix {
        part,
        number,
        step,
        cells: usize::try_from(cells).unwrap_or(0),
        empty: if sums.is_empty() { "No message has been seen yet: collectives are not in the matrix." } else { "" },
        sums: sums.into_iter().map(|((from, to), sum)| ((from as usize, to as usize), sum)).collect(),
        pairs: number_of_pairs,
        unfiltered,
        job: if profile.jobs.len() > 1 { job.map(str::to_owned) } else { None },
        over,
    }
}

/// In ranks of `MPI_COMM_WORLD`. Those of different jobs have the same numbers: the first job is shown.
fn over_all<'a>(data: &TableData<'a>, traffic: &'a TrafficProfile) -> Pairs<'a> {
    let all = data.all.profile;
    let job = all.jobs.first().map(|job| job.id.as_str());
    let pairs = |traffic: &TrafficProfile| -> Vec<_> {
        let rows = traffic.partners.iter().filter(|pair| pair.job.as_deref() == job);
        rows.map(|pair| (pair.rank, pair.peer, pair.amounts)).collect()
    };
    // The same squares whatever the filter.
    let unfiltered = all.traffic.as_ref().map(pairs).unwrap_or_default();
    let number = number(&unfiltered).max(ranks(all, job));
    Pairs { job, number, over: None, unfiltered: unfiltered.len(), amounts: pairs(traffic) }
}

/// In the communicator's own ranks, if its members are known and of one group; else in those of `MPI_COMM_WORLD`.
fn over_one<'a>(data: &TableData<'a>, communicator: &'a CommunicatorProfile) -> Pairs<'a> {
    let job = communicator.job.as_deref();
    let members = communicator.members.as_deref().filter(|_| communicator.remote_size.is_none());
    let own: Option<HashMap<u32, u32>> =
        members.map(|members| (0..).zip(members).filter_map(|(own, world)| Some(((*world)?, own))).collect());
    let place = |world: u32| own.as_ref().map_or(Some(world), |own| own.get(&world).copied());
    let pairs = |profile: &Profile| -> Vec<(u32, u32, Amounts)> {
        let ranks = profile.ranks.iter().filter(|rank| rank.job.as_deref() == job);
        ranks
            .filter_map(|rank| Some((place(rank.rank?)?, rank)))
            .flat_map(|(from, rank)| {
                let flows = flows(rank).filter(|(id, _)| *id == communicator.id);
                flows.filter_map(move |(_, flow)| Some((from, flow.peer?, flow.amounts))).collect::<Vec<_>>()
            })
            .filter_map(|(from, peer, amounts)| Some((from, place(peer)?, amounts)))
            .collect()
    };
    let whose = if own.is_some() { "its own ranks" } else { "ranks of the world" };
    let all = data.all.profile;
    let unfiltered = pairs(all);
    let named = number(&unfiltered);
    let number = match members {
        Some(members) => u32::try_from(members.len()).unwrap_or(u32::MAX).max(named),
        None => ranks(all, job).max(named),
    };
    let over = Some(format!("{} ({whose})", communicator.name));
    Pairs { job, number, over, unfiltered: unfiltered.len(), amounts: pairs(data.profile) }
}

/// As many ranks as are named.
fn number(pairs: &[(u32, u32, Amounts)]) -> u32 {
    pairs.iter().map(|(rank, peer, _)| rank.max(peer).saturating_add(1)).max().unwrap_or(0)
}

/// What a rank did over communicators that are told apart, with their ids.
fn flows(rank: &RankProfile) -> impl Iterator<Item = (u32, &FlowRow)> {
    let traffic = rank.traffic.iter();
    traffic.flat_map(|traffic| {
        let ids: HashMap<u32, u32> =
            traffic.communicators.iter().filter_map(|row| Some((row.number, row.id?))).collect();
        traffic.flows.iter().filter_map(move |flow| Some((*ids.get(&flow.communicator?)?, flow)))
    })
}

/// Ids of communicators over which somebody did something with somebody.
pub(crate) fn communicators_with_pairs(profile: &Profile) -> BTreeSet<u32> {
    let of_pairs = profile.ranks.iter().flat_map(flows).filter(|(_, flow)| flow.peer.is_some());
    of_pairs.map(|(id, _)| id).collect()
}

fn ranks(profile: &Profile, job: Option<&str>) -> u32 {
    let of_job = profile.ranks.iter().filter(|rank| rank.job.as_deref() == job);
    of_job.filter_map(|rank| rank.size.or(rank.rank.map(|rank| rank + 1))).max().unwrap_or(0)
}
