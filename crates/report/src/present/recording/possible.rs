//! Whether a profile that somebody may have written can be one at all. Amounts are shown whatever they are; numbers that things are
//! counted up to are not believed.

use mpiprobe_model::Profile;

/// Ranks are `int`s in MPI.
const LAST_RANK: u32 = i32::MAX.cast_unsigned();

/// Whether all ranks and sizes of worlds are such that MPI could have them.
pub fn is_possible(profile: &Profile) -> bool {
    let pairs = profile.traffic.iter().flat_map(|traffic| &traffic.partners);
    let of_pairs = pairs.flat_map(|pair| [pair.rank, pair.peer]);
    let of_ranks = profile.ranks.iter().flat_map(|rank| [rank.rank, rank.size]).flatten();
    let of_jobs = profile.jobs.iter().filter_map(|job| job.size);
    of_pairs.chain(of_ranks).chain(of_jobs).all(|number| number <= LAST_RANK)
}
