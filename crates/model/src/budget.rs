//! What observing may cost, what it does, and what is counted with less care for that.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::names::{self, Name};

/// The limit of an observation's own cost, and what has been done to keep it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    /// Of the time of each rank, per cent, over any `period_ns` (`--max-overhead`); `null`: there is no limit.
    pub max_overhead: Option<f64>,
    /// The time that the limit is meant of, ns; `null`: there is no limit.
    #[serde(default)]
    pub period_ns: Option<u64>,
    /// Of the rank that pays most; `null`: nobody has been looked at yet.
    pub spent: Option<Spending>,
    /// Functions that are, or were for some time, not counted from entry to return.
    pub levels: Vec<Reduction>,
    /// When it first was not found out any more what calls move, ns since the beginning; `null`: that was found out all the time.
    pub traffic_until_ns: Option<u64>,
    /// For how long that was not found out, in all, ns.
    #[serde(default)]
    pub traffic_paused_ns: u64,
    /// Whether it is found out again.
    #[serde(default)]
    pub traffic_is_back: bool,
}

/// What a rank pays for being observed: probe hits × their calibrated cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spending {
    /// `null`: the process has none that is known.
    pub rank: Option<u32>,
    pub pid: u32,
    /// Of its time in the last second, per cent.
    pub percent: f64,
    /// Of its time in the last minute, per cent of a minute.
    pub minute_percent: f64,
    /// The function that costs most of it; `null`: none was called.
    #[serde(deserialize_with = "names::optional")]
    pub function: Option<Name>,
    /// What that costs of the rank's time, per cent.
    pub function_percent: f64,
}

/// How calls of a function are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// From entry to return.
    Full,
    /// At their entry alone: their number is exact, their times are not known.
    Entries,
    /// At their entry in short windows at random times: their number is estimated.
    Sampled,
}

/// A function that has not been counted from entry to return all the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reduction {
    #[serde(deserialize_with = "names::name")]
    pub function: Name,
    /// How it is counted now.
    pub level: Level,
    /// When it first was not from entry to return, ns since the beginning.
    pub since_ns: u64,
    /// How long it has been counted at its entry alone since then, and how long in windows, ns.
    pub entries_ns: u64,
    pub sampled_ns: u64,
}

/// How often a function was called of which some calls were not counted: with a confidence of 97.5 %, no less than a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Calls as often as they were made while they were counted, which slows them down; those included that were counted.
    pub calls: u64,
    pub calls_low: u64,
    /// `null`: there is no upper limit that could be given.
    pub calls_high: Option<u64>,
    /// Windows in which calls were counted.
    pub windows: u64,
}

impl Estimate {
    /// Of calls that were all counted.
    pub fn exact(calls: u64) -> Self {
        Self { calls, calls_low: calls, calls_high: Some(calls), windows: 0 }
    }

    /// Of both together. Limits add up, which is further than they need be apart.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            calls_low: self.calls_low.saturating_add(other.calls_low),
            calls_high: self.calls_high.zip(other.calls_high).map(|(one, other)| one.saturating_add(other)),
            windows: self.windows.max(other.windows),
        }
    }

    /// Of several, each with the number of calls that were counted; `None` if all were.
    pub fn of_all(rows: impl Iterator<Item = (u64, Option<Self>)> + Clone) -> Option<Self> {
        rows.clone().any(|(_, estimate)| estimate.is_some()).then(|| {
            let each = rows.map(|(calls, estimate)| estimate.unwrap_or_else(|| Self::exact(calls)));
            each.reduce(Self::and).unwrap_or_else(|| Self::exact(0))
        })
    }

    /// Of the time since `before`, in which `counted` calls were counted. How far two estimates of one run err together is not known:
    /// what was counted is the one limit, and there is no other.
    #[must_use]
    pub fn since(self, before: Option<Self>, counted: u64) -> Self {
        let calls = before.map_or(self.calls, |before| self.calls.saturating_sub(before.calls));
        let windows = before.map_or(self.windows, |before| self.windows.saturating_sub(before.windows));
        Self { calls: calls.max(counted), calls_low: counted, calls_high: None, windows }
    }
}

impl Budget {
    /// Whether a function is, or was, not counted from entry to return.
    pub fn has_reduced(&self) -> bool {
        !self.levels.is_empty() || self.traffic_until_ns.is_some()
    }

    /// That of an observation of several nodes.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        let other_period = other.period_ns;
        let higher = |(one, other): (f64, f64)| if other > one { (other, other_period) } else { (one, self.period_ns) };
        let limit = self.max_overhead.zip(other.max_overhead).map(higher);
        (self.max_overhead, self.period_ns) = limit.map_or((None, None), |(limit, period)| (Some(limit), period));
        self.spent = match (self.spent, other.spent) {
            (Some(one), Some(other)) => Some(if other.minute_percent > one.minute_percent { other } else { one }),
            (one, other) => one.or(other),
        };
        for more in other.levels {
            match self.levels.iter_mut().find(|known| known.function == more.function) {
                Some(known) => {
                    known.level = known.level.max(more.level);
                    known.since_ns = known.since_ns.min(more.since_ns);
                    known.entries_ns = known.entries_ns.max(more.entries_ns);
                    known.sampled_ns = known.sampled_ns.max(more.sampled_ns);
                }
                None => self.levels.push(more),
            }
        }
        // Whoever was never interrupted does not make it come back elsewhere.
        self.traffic_is_back = match (self.traffic_until_ns, other.traffic_until_ns) {
            (Some(_), Some(_)) => self.traffic_is_back && other.traffic_is_back,
            _ => self.traffic_is_back || other.traffic_is_back,
        };
        self.traffic_paused_ns = self.traffic_paused_ns.max(other.traffic_paused_ns);
        self.traffic_until_ns = match (self.traffic_until_ns, other.traffic_until_ns) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_estimates_add_up() {
        let some = Estimate { calls: 100, calls_low: 80, calls_high: Some(130), windows: 9 };
        assert_eq!(Estimate::of_all([(5, None), (7, None)].into_iter()), None);
        let all = Estimate::of_all([(5, None), (70, Some(some))].into_iter());
        assert_eq!(all, Some(Estimate { calls: 105, calls_low: 85, calls_high: Some(135), windows: 9 }));
        let open = Estimate { calls_high: None, ..some };
        assert_eq!(some.and(open).calls_high, None);
        assert_eq!(some.since(Some(Estimate::exact(60)), 3).calls, 40);
    }
}
