//! Call sites over ranks: the places in the program that call MPI, from the flows of `--traffic`.

use std::{cmp::Reverse, collections::HashMap};

use mpiprobe_model::{Amounts, FlowRow, Profile, Spread};

/// One function called at one place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Site {
    pub(crate) function: &'static str,
    /// `MPI_Start` or `MPI_Startall`, of what a persistent request has moved.
    pub(crate) started_by: Option<&'static str>,
    pub(crate) place: Place,
    pub(crate) all: Amounts,
    /// Of operations with a request, over ranks, as in [`mpiprobe_model::FlowRow`].
    pub(crate) completed: u64,
    pub(crate) pending_ns: u64,
    pub(crate) waited_ns: u64,
    /// Time over all ranks, ns: those that have not been there are in it.
    pub(crate) time_over_ranks_ns: Spread,
    /// By the place of the rank in the profile, ascending.
    pub(crate) ranks: Vec<(usize, Amounts)>,
}

impl Site {
    /// The rank with most time there (its place in the profile), and that time, ns.
    pub(crate) fn slowest(&self) -> Option<(usize, u64)> {
        let times = self.ranks.iter().map(|(rank, amounts)| (*rank, amounts.time_ns));
        times.max_by_key(|(rank, time_ns)| (*time_ns, Reverse(*rank)))
    }

    /// What was called: of a persistent operation, the call that starts it.
    pub(crate) fn called(&self) -> &'static str {
        self.started_by.unwrap_or(self.function)
    }
}

/// A place in a program, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// As the profile says it; an address where nothing else is known.
    pub(crate) text: String,
    /// A file of the source, or of the program; `None`: not known.
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    /// The function that calls MPI.
    pub(crate) function: Option<String>,
    /// The function that it was inlined into.
    pub(crate) caller: Option<String>,
}

impl Place {
    /// From the words of a call site, which `CallSite::text` of the model makes.
    fn of(text: &str) -> Self {
        let mut place = Self { text: text.to_owned(), ..Self::default() };
        let (at, inside) = match text.split_once(" in ") {
            Some((at, inside)) => (at, Some(inside)),
            None => (text, None),
        };
        if let Some((file, line)) = at.rsplit_once(':')
            && let Ok(line) = line.parse()
        {
            (place.file, place.line) = (Some(file.to_owned()), Some(line));
            let (function, caller) = match inside.map(|inside| inside.split_once(", inlined into ")) {
                Some(Some((function, caller))) => (Some(function), Some(caller)),
                _ => (inside, None),
            };
            place.function = function.map(ToOwned::to_owned);
            place.caller = caller.map(ToOwned::to_owned);
        } else if let Some(module) = inside {
            place.file = Some(module.to_owned());
            place.function = Some(at.split_once("+0x").map_or(at, |(function, _)| function).to_owned());
        }
        place
    }
}

/// What tells flows of different sites apart: the address only where nothing else is known.
type Key<'a> = (&'static str, Option<&'static str>, Result<&'a str, u64>);

/// All of them, most time first. Empty without `--traffic`.
///
/// A call with two partners, such as `MPI_Sendrecv`, is in the profile for both of them, and in `calls` here as often.
pub(crate) fn sites(profile: &Profile) -> Vec<Site> {
    let mut numbers: HashMap<Key<'_>, usize> = HashMap::new();
    let mut sites: Vec<Site> = Vec::new();
    for (number, rank) in profile.ranks.iter().enumerate() {
        for flow in rank.traffic.iter().flat_map(|traffic| &traffic.flows) {
            let text = flow.site.as_deref().ok_or(flow.call_site);
            let place = *numbers.entry((flow.function, flow.started_by, text)).or_insert_with(|| {
                sites.push(Site::begin(flow));
                sites.len() - 1
            });
            if let Some(site) = sites.get_mut(place) {
                site.add(number, flow);
            }
        }
    }
    for site in &mut sites {
        let absent = profile.ranks.len().saturating_sub(site.ranks.len());
        let times = site.ranks.iter().map(|(_, amounts)| amounts.time_ns as f64);
        site.time_over_ranks_ns = Spread::of(times.chain(std::iter::repeat_n(0.0, absent))).unwrap_or_default();
    }
    sites.sort_by(|a, b| {
        let key = |site: &Site| (Reverse(site.all.time_ns), Reverse(site.all.calls));
        key(a)
            .cmp(&key(b))
            .then_with(|| (a.function, a.started_by, &a.place).cmp(&(b.function, b.started_by, &b.place)))
    });
    sites
}

impl Site {
    fn begin(flow: &FlowRow) -> Self {
        let text = flow.site.as_deref().map_or_else(|| format!("{:#x}", flow.call_site), ToOwned::to_owned);
        Self {
            function: flow.function,
            started_by: flow.started_by,
            place: Place::of(&text),
            all: Amounts::default(),
            completed: 0,
            pending_ns: 0,
            waited_ns: 0,
            time_over_ranks_ns: Spread::default(),
            ranks: Vec::new(),
        }
    }

    /// Ranks come one after the other.
    fn add(&mut self, rank: usize, flow: &FlowRow) {
        self.all.add(&flow.amounts);
        self.completed = self.completed.saturating_add(flow.completed);
        self.pending_ns = self.pending_ns.saturating_add(flow.pending_ns);
        self.waited_ns = self.waited_ns.saturating_add(flow.waited_ns);
        match self.ranks.last_mut() {
            Some((last, amounts)) if *last == rank => amounts.add(&flow.amounts),
            _ => self.ranks.push((rank, flow.amounts)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parts = (Option<String>, Option<u32>, Option<String>, Option<String>);

    fn place(text: &str) -> Parts {
        let place = Place::of(text);
        (place.file, place.line, place.function, place.caller)
    }

    fn known(file: &str, line: Option<u32>, function: &str, caller: Option<&str>) -> Parts {
        (Some(file.into()), line, Some(function.into()), caller.map(Into::into))
    }

    #[test]
    fn the_words_of_a_place_are_taken_apart() {
        assert_eq!(place("solve.f90:112 in step"), known("solve.f90", Some(112), "step", None));
        assert_eq!(
            place("solve.f90:112 in step, inlined into main"),
            known("solve.f90", Some(112), "step", Some("main"))
        );
        assert_eq!(place("step+0x1f in libsolve.so"), known("libsolve.so", None, "step", None));
        assert_eq!(place("libsolve.so+0x1234"), (None, None, None, None));
        assert_eq!(place("0x55"), (None, None, None, None));
    }
}
