//! The communication matrix: who sent how much to whom.

use std::collections::HashMap;

use super::Known;
use crate::{
    model::Profile,
    view::state::{Block, Matrix, MatrixCell},
};

/// Of the whole job, or of a part of it, in as many rows and columns as there is room for: where that is not enough, several
/// ranks share one.
pub(in crate::view) fn matrix(known: &Known<'_>, part: Option<Block>, room: (usize, usize)) -> Matrix {
    let profile = known.profile;
    let Some(traffic) = &profile.traffic else {
        return Matrix { empty: super::sites::NO_TRAFFIC, ..Matrix::default() };
    };
    // Ranks of different jobs have the same numbers: the first job is shown.
    let job = profile.jobs.first().map(|job| job.id.as_str());
    let pairs = traffic.partners.iter().filter(|pair| pair.job.as_deref() == job);
    // The same squares whatever the filter.
    let all = known.all.profile.traffic.iter().flat_map(|traffic| &traffic.partners);
    let highest = all.filter(|pair| pair.job.as_deref() == job).map(|pair| pair.rank.max(pair.peer) + 1).max();
    let number = ranks(known.all.profile, job).max(highest.unwrap_or(0));
    let part = part.unwrap_or(Block { from: 0, to: 0, side: number });
    let side = part.side.max(1);
    let least = u32::try_from(room.0.min(room.1).max(1)).unwrap_or(u32::MAX);
    let step = side.div_ceil(least).max(1);
    let cells = side.div_ceil(step);
    let number_of_pairs = pairs.clone().count();
    let mut sums: HashMap<(u32, u32), MatrixCell> = HashMap::new();
    let place = |rank: u32, first: u32| rank.checked_sub(first).filter(|&distance| distance < side).map(|at| at / step);
    for pair in pairs {
        if let Some(at) = place(pair.rank, part.from).zip(place(pair.peer, part.to)) {
            sums.entry(at).or_default().add(&pair.amounts);
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
        job: if profile.jobs.len() > 1 { job.map(str::to_owned) } else { None },
    }
}

fn ranks(profile: &Profile, job: Option<&str>) -> u32 {
    let of_job = profile.ranks.iter().filter(|rank| rank.job.as_deref() == job);
    of_job.filter_map(|rank| rank.size.or(rank.rank.map(|rank| rank + 1))).max().unwrap_or(0)
}
