//! What happened since the last look, as text.

use std::fmt::Write as _;

use mpiprobe_model::{
    Profile, RankProfile, RankState,
    analyse::{Change, RankChange},
    filter::{Filter, apply},
};

use super::{
    doing::doing,
    profile::{functions, header},
    ranks::efficiency,
    table::{TextOptions, left, right, section, table},
    units::{maybe_percent, or_unknown, rate, unless},
    unmatched::unmatched,
    waiting::waits,
};

/// Functions shown of those that took most time.
const FUNCTIONS_SHOWN: usize = 12;

/// One turn of the refreshed table: what ranks did in the interval (`change`), and functions since the beginning.
pub fn interval(options: &TextOptions, all: &Profile, change: &Change, filter: Option<&Filter>) -> String {
    let kept = filter.map(|filter| apply(filter, all));
    let now = kept.as_ref().map_or(all, |kept| &kept.profile);
    let places: Vec<usize> = match &kept {
        Some(kept) => kept.places.iter().map(|(place, _)| *place).collect(),
        None => (0..all.ranks.len()).collect(),
    };
    let columns = [right("rank"), right("pid"), right("MPI %"), right("calls/s"), right("calls"), left("now")];
    let rows = now.ranks.iter().zip(places).filter_map(|(rank, place)| Some(row(rank, &change.ranks.get(place)?.0)));
    let mut ranks = table(options, &columns, rows);
    let has_times = all.ranks.iter().all(|rank| rank.untimed_calls == 0);
    ranks.push_str(&efficiency(all, change.efficiency().filter(|_| has_times)));
    if !now.complete {
        let _ = writeln!(ranks, "INCOMPLETE: {}", now.incomplete_because.join("; "));
    }
    let shown = now.functions.get(..FUNCTIONS_SHOWN).unwrap_or(&now.functions);
    let mut sections =
        vec![header(options, now), section("Ranks, since the last table", &ranks), functions(options, shown)];
    sections.extend([waits(options, all), unmatched(options, all)].into_iter().filter(|section| !section.is_empty()));
    sections.join("\n") + "\n"
}

fn row(rank: &RankProfile, change: &RankChange) -> Vec<String> {
    let calls = if change.wall_ns > 0 { change.calls as f64 / (change.wall_ns as f64 / 1e9) } else { 0.0 };
    let doing = match rank.open_calls.first() {
        Some(call) => doing(call),
        None if rank.calls == 0 => "no MPI call seen yet".into(),
        None => "outside MPI".into(),
    };
    vec![
        or_unknown(rank.rank),
        rank.pid.to_string(),
        unless(rank.untimed_calls, maybe_percent(change.mpi_percent())),
        rate(calls),
        super::units::count(rank.calls),
        match rank.state {
            RankState::Running if rank.stopped => format!("stopped {doing}"),
            RankState::Running => doing,
            RankState::Ended | RankState::Execed => rank.failure.map_or_else(|| "ended".into(), |one| one.to_string()),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpiprobe_model::analyse::Look;
    use mpiprobe_model::sample::{SECOND, profile, ranks};

    /// Ten seconds later, of which rank 1 was in MPI for five.
    fn later(before: &Profile) -> Profile {
        let mut now = before.clone();
        now.observed_ns += 10 * SECOND;
        for rank in &mut now.ranks {
            rank.wall_ns += 10 * SECOND;
            rank.thread_wall_ns += 10 * SECOND;
        }
        now.ranks[1].mpi_ns += 5 * SECOND;
        now.ranks[1].calls += 20;
        now
    }

    fn shown(filter: Option<&str>) -> String {
        let before = profile(ranks(2));
        let now = later(&before);
        let filter = filter.map(|text| text.parse().unwrap());
        let text =
            interval(&TextOptions::default(), &now, &Change::since(Some(&Look::of(&before)), &now), filter.as_ref());
        let ranks = text.split("\n\n").find(|section| section.starts_with("Ranks")).unwrap();
        ranks.to_owned()
    }

    #[test]
    fn it_has_the_efficiencies_of_the_interval() {
        insta::assert_snapshot!(shown(None));
    }

    #[test]
    fn a_filter_leaves_out_ranks_and_changes_no_efficiency() {
        insta::assert_snapshot!(shown(Some("rank == 1")));
    }
}
