//! How it went: figures of the moments of a recording, as what each interval added.

use std::collections::HashMap;

use mpiprobe_model::Profile;
use serde::Serialize;

use crate::present::recording::{Process, Sums};

/// Figures of several moments, as they add up since the beginning.
#[derive(Debug, Default)]
pub struct Series {
    at_ns: Vec<u64>,
    /// How many moments there are in all, of which these are some.
    of: usize,
    ranks: HashMap<Process, Curves<5>>,
    functions: HashMap<String, Curves<4>>,
    groups: HashMap<String, Curves<1>>,
    has_traffic: bool,
    /// The first moment is the one that the others go on from.
    begins_later: bool,
}

/// So many figures at each moment.
#[derive(Debug)]
struct Curves<const N: usize>([Vec<u64>; N]);

impl<const N: usize> Default for Curves<N> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Vec::new()))
    }
}

impl<const N: usize> Curves<N> {
    /// Whoever was not there in the moments before had done nothing.
    fn push(&mut self, moment: usize, figures: [u64; N]) {
        for (curve, figure) in self.0.iter_mut().zip(figures) {
            let last = curve.last().copied().unwrap_or(0);
            curve.resize(moment, last);
            curve.push(figure);
        }
    }

    /// What each of so many intervals added to one of the figures.
    fn increments(&self, figure: usize, moments: usize, begins_later: bool) -> Vec<i64> {
        let curve = self.0.get(figure).map_or(&[][..], Vec::as_slice);
        let (mut before, curve) = match curve.split_first() {
            Some((first, rest)) if begins_later => (*first, rest),
            _ => (0, curve),
        };
        let mut increments: Vec<i64> = Vec::with_capacity(moments);
        for &now in curve {
            increments.push(now.wrapping_sub(before).cast_signed());
            before = now;
        }
        increments.resize(moments, 0);
        increments
    }
}

impl Series {
    /// Of some of so many moments. If it begins later than the observation, the first one is that which it goes on from.
    pub fn new(of: usize, begins_later: bool) -> Self {
        Self { of, begins_later, ..Self::default() }
    }

    /// Takes in the next moment. One that is not later than the one before is left out.
    pub fn add(&mut self, sums: &Sums) {
        if self.at_ns.last().is_some_and(|last| sums.observed_ns <= *last) {
            return;
        }
        let moment = self.at_ns.len();
        self.at_ns.push(sums.observed_ns);
        self.has_traffic |= sums.has_traffic;
        for (process, figures) in sums.ranks() {
            self.ranks.entry(process).or_default().push(moment, figures);
        }
        add(&mut self.functions, moment, sums.functions());
        add(&mut self.groups, moment, sums.groups());
    }

    /// For a picture: of each group its share of the ranks' wall time in each interval.
    pub(crate) fn shares<'a>(&self, profile: &'a Profile) -> Shares<'a> {
        let Moments { at_ns, ranks, groups, .. } = self.moments(profile);
        let of_interval = |table: &Table, at: usize| -> i64 {
            table.iter().filter_map(|row| row.get(at)).fold(0, |sum, more| sum.saturating_add(*more))
        };
        let wall: Vec<i64> = (0..at_ns.len()).map(|at| of_interval(&ranks.wall_ns, at)).collect();
        let percents = |row: &Vec<i64>| -> Vec<f64> {
            let percent =
                |(part, whole): (&i64, &i64)| if *whole > 0 { 100.0 * *part as f64 / *whole as f64 } else { 0.0 };
            row.iter().zip(&wall).map(percent).collect()
        };
        let times_ns = std::iter::once(0).chain(at_ns).collect();
        Shares { times_ns, groups: groups.names.iter().copied().zip(groups.time_ns.iter().map(percents)).collect() }
    }

    /// For the page, with rows in the order of the profile.
    pub(super) fn moments<'a>(&self, profile: &'a Profile) -> Moments<'a> {
        let (begin_ns, at_ns) = match self.at_ns.split_first() {
            Some((first, rest)) if self.begins_later => (*first, rest),
            _ => (0, self.at_ns.as_slice()),
        };
        let at_ns: Vec<u64> = at_ns.iter().map(|ns| ns - begin_ns).collect();
        let (moments, later) = (at_ns.len(), self.begins_later);
        let now = Sums::of(profile);
        let ranks: Vec<Option<&Curves<5>>> = now.ranks().map(|(process, _)| self.ranks.get(&process)).collect();
        let of_ranks = |figure| table(&ranks, figure, moments, later);
        let names: Vec<&str> = profile.functions.iter().map(|function| function.all.name).collect();
        let functions: Vec<Option<&Curves<4>>> = names.iter().map(|name| self.functions.get(*name)).collect();
        let of_functions = |figure| table(&functions, figure, moments, later);
        let group_names: Vec<&str> = profile.groups.iter().map(|group| group.all.group).collect();
        let groups: Vec<Option<&Curves<1>>> = group_names.iter().map(|name| self.groups.get(*name)).collect();
        Moments {
            taken: moments,
            of: self.of.saturating_sub(usize::from(later)).max(moments),
            at_ns,
            ranks: RankCurves {
                wall_ns: of_ranks(0),
                mpi_ns: of_ranks(1),
                calls: of_ranks(2),
                sent_bytes: self.has_traffic.then(|| of_ranks(3)),
                received_bytes: self.has_traffic.then(|| of_ranks(4)),
            },
            functions: FunctionCurves {
                names,
                calls: of_functions(0),
                time_ns: of_functions(1),
                sent_bytes: self.has_traffic.then(|| of_functions(2)),
                received_bytes: self.has_traffic.then(|| of_functions(3)),
            },
            groups: GroupCurves { names: group_names, time_ns: table(&groups, 0, moments, later) },
        }
    }
}

/// Of each row what each interval added.
fn table<const N: usize>(rows: &[Option<&Curves<N>>], figure: usize, moments: usize, later: bool) -> Table {
    let nothing = Curves::default();
    rows.iter().map(|curves| curves.unwrap_or(&nothing).increments(figure, moments, later)).collect()
}

fn add<'a, const N: usize>(
    rows: &mut HashMap<String, Curves<N>>,
    moment: usize,
    figures: impl Iterator<Item = (&'a str, [u64; N])>,
) {
    for (name, figures) in figures {
        match rows.get_mut(name) {
            Some(curves) => curves.push(moment, figures),
            None => rows.entry(name.to_owned()).or_default().push(moment, figures),
        }
    }
}

/// One row a function, group or rank; in it, what each interval added.
type Table = Vec<Vec<i64>>;

/// Shares of wall time, per cent, by group.
#[derive(Debug)]
pub(crate) struct Shares<'a> {
    /// The beginning, and the end of each interval.
    pub(crate) times_ns: Vec<u64>,
    pub(crate) groups: Vec<(&'a str, Vec<f64>)>,
}

/// What the page gets: intervals end at `at_ns`, and the first begins at 0.
#[derive(Debug, Serialize)]
pub(super) struct Moments<'a> {
    taken: usize,
    of: usize,
    at_ns: Vec<u64>,
    ranks: RankCurves,
    functions: FunctionCurves<'a>,
    groups: GroupCurves<'a>,
}

#[derive(Debug, Serialize)]
struct RankCurves {
    /// Of the threads that use MPI.
    wall_ns: Table,
    mpi_ns: Table,
    calls: Table,
    sent_bytes: Option<Table>,
    received_bytes: Option<Table>,
}

#[derive(Debug, Serialize)]
struct FunctionCurves<'a> {
    names: Vec<&'a str>,
    calls: Table,
    time_ns: Table,
    sent_bytes: Option<Table>,
    received_bytes: Option<Table>,
}

#[derive(Debug, Serialize)]
struct GroupCurves<'a> {
    names: Vec<&'a str>,
    time_ns: Table,
}

#[cfg(test)]
mod tests {
    use mpiprobe_model::sample;

    use super::*;

    #[test]
    fn increments_add_up_and_whoever_comes_later_had_done_nothing() {
        let mut curves = Curves::<1>::default();
        curves.push(2, [5]);
        curves.push(3, [7]);
        curves.push(5, [6]);
        assert_eq!(curves.increments(0, 7, false), [0, 0, 5, 2, 0, -1, 0]);
        assert_eq!(curves.increments(0, 5, true), [0, 5, 2, 0, -1]);
        assert_eq!(curves.increments(1, 2, false), [0, 0]);
    }

    #[test]
    fn a_span_of_all_moments_is_the_profile() {
        let mut series = Series::new(9, false);
        let mut profile = sample::profile(sample::ranks(2));
        for seconds in 1..=3 {
            profile.observed_ns = seconds * sample::SECOND;
            for rank in &mut profile.ranks {
                (rank.calls, rank.mpi_ns) = (10 * seconds, 100 * seconds + u64::from(rank.pid));
            }
            series.add(&Sums::of(&profile));
            series.add(&Sums::of(&profile));
        }
        let moments = series.moments(&profile);
        assert_eq!((moments.taken, moments.of), (3, 9));
        assert_eq!(moments.ranks.calls, [[10, 10, 10], [10, 10, 10]]);
        for (rank, increments) in profile.ranks.iter().zip(&moments.ranks.mpi_ns) {
            assert_eq!(increments.iter().sum::<i64>(), rank.mpi_ns.cast_signed());
        }
    }
}
