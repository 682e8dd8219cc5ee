//! What `--max-overhead` holds whole programs to: pairs of runs with the same work, alone and observed, each by the program's own clock. And
//! whether what is said of calls that were not counted is true.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;

use super::BenchError;
use crate::{Job, Mpi, Profiler, profiler::FunctionRow, program};

/// What is run, and steps for each second that it is to take.
const APPS: [(&str, u64); 3] = [("polling", 1_300_000), ("molecules", 700), ("bulk", 70)];
/// Per cent of a rank's time.
const LIMIT: f64 = 2.0;
/// The limit is held over a minute; runs are shorter, and so is the minute, ms.
const MINUTE: [(&str, &str); 1] = [("MPIPROBE_BUDGET_MINUTE_MS", "1000")];
/// That a limit of what is true is no larger than that: how often at least.
const GOAL_HELD: f64 = 0.95;
const RANKS: u32 = 2;

#[derive(Debug, Serialize)]
pub struct AppsReport {
    mpi: String,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    app: &'static str,
    /// Of one rank, alone.
    calls_per_s: f64,
    /// Of each pair, how much longer the run took that was observed, per cent.
    slowed_percent: Vec<f64>,
    /// Functions of a rank whose calls were estimated, and of how many of these the lower limit was no more than the truth.
    estimates: u64,
    held: u64,
    /// All others were counted exactly.
    exact: bool,
}

/// What a run says of itself.
struct Run {
    seconds: f64,
    calls: BTreeMap<u32, BTreeMap<String, u64>>,
}

/// So many pairs of each program, of about so many seconds each.
pub fn run(mpi: Mpi, pairs: u32, seconds: u64) -> Result<AppsReport, BenchError> {
    let rows = APPS.iter().map(|&(app, steps)| measured(mpi, app, steps * seconds, pairs)).collect::<Result<_, _>>()?;
    Ok(AppsReport { mpi: mpi.to_string(), rows })
}

fn measured(mpi: Mpi, app: &'static str, steps: u64, pairs: u32) -> Result<Row, BenchError> {
    let mut row = Row { app, calls_per_s: 0.0, slowed_percent: Vec::new(), estimates: 0, held: 0, exact: true };
    for pair in 0..pairs {
        let (mut alone, mut observed) = (0.0, 0.0);
        // Whatever changes with time meets both alike.
        for is_observed in [pair % 2 == 1, pair % 2 == 0] {
            if is_observed {
                observed = once(mpi, app, steps, Some(&mut row))?.seconds;
                continue;
            }
            let run = once(mpi, app, steps, None)?;
            let calls: u64 = run.calls.values().next().into_iter().flat_map(BTreeMap::values).sum();
            (alone, row.calls_per_s) = (run.seconds, calls as f64 / run.seconds);
        }
        row.slowed_percent.push(100.0 * (observed / alone - 1.0));
    }
    Ok(row)
}

fn once(mpi: Mpi, app: &str, steps: u64, seen: Option<&mut Row>) -> Result<Run, BenchError> {
    let job = Job::builder(mpi, program::APPS).ranks(RANKS).args([app, &steps.to_string()]).gates(&["1"]);
    let mut job = job.gates_are_linked_in().own_name().own_library().spawn()?;
    job.wait_for_gate("1")?;
    let limit = format!("{LIMIT}/1m");
    let observer = match &seen {
        Some(_) => Some(Profiler::observe_with(&MINUTE, ["--pid-of", job.called(), "--max-overhead", &limit])?),
        None => None,
    };
    job.open_gate("1")?;
    let said = job.wait()?.success()?.stdout;
    let run = Run::said(&said)
        .ok_or_else(|| BenchError::Target { reason: "it does not tell its time".into(), output: said })?;
    if let (Some(row), Some(observer)) = (seen, observer) {
        let profile = observer.wait()?.profile()?;
        for (rank, calls) in &run.calls {
            let functions = profile.rank(*rank).map(|rank| rank.functions.as_slice()).unwrap_or_default();
            for (name, calls) in calls {
                row.compare(functions, name, *calls);
            }
        }
    }
    Ok(run)
}

impl Run {
    fn said(text: &str) -> Option<Self> {
        let seconds = text.lines().find_map(|line| line.strip_prefix("seconds ")?.split(',').next()?.parse().ok())?;
        let ranks = text.lines().filter_map(|line| line.strip_prefix("rank ")?.split_once(": "));
        let calls = ranks.filter_map(|(rank, said)| {
            let words = said.split(", ").filter_map(|pair| pair.split_once(' '));
            let called = words.filter_map(|(name, calls)| Some((name.to_owned(), calls.parse().ok()?)));
            Some((rank.parse().ok()?, called.filter(|(_, calls)| *calls > 0).collect()))
        });
        Some(Self { seconds, calls: calls.collect() })
    }
}

impl Row {
    /// What is said of a function with what is true.
    fn compare(&mut self, functions: &[FunctionRow], name: &str, truth: u64) {
        let row = functions.iter().find(|row| row.name == name);
        match row.and_then(|row| row.estimated) {
            Some(estimate) => {
                let high = estimate.calls_high.unwrap_or(u64::MAX);
                self.estimates += 1;
                self.held += u64::from((estimate.calls_low..=high).contains(&truth));
            }
            None => self.exact &= row.is_some_and(|row| row.calls == truth),
        }
    }

    /// The median, and between which values it is with a confidence of 95 %, whatever the distribution: by the sign test.
    fn median(&self) -> Option<(f64, [f64; 2])> {
        let mut sorted = self.slowed_percent.clone();
        sorted.sort_by(f64::total_cmp);
        let number = sorted.len();
        let middle = (sorted.get((number.checked_sub(1)?) / 2)? + sorted.get(number / 2)?) / 2.0;
        let outside = outside(number);
        Some((middle, [*sorted.get(outside)?, *sorted.get(number - 1 - outside)?]))
    }
}

/// How many values may be left out at each end of so many: one less than there are numbers of values below the median that are as rare as
/// that together.
fn outside(number: usize) -> usize {
    let (mut probability, mut sum, mut rare) = (0.5_f64.powi(i32::try_from(number).unwrap_or(i32::MAX)), 0.0, 0);
    while rare < number {
        sum += probability;
        if 2.0 * sum > 0.05 {
            break;
        }
        probability *= (number - rare) as f64 / (rare + 1) as f64;
        rare += 1;
    }
    rare.saturating_sub(1)
}

impl fmt::Display for AppsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: whole programs of {RANKS} ranks, observed with --max-overhead {LIMIT}, by their own clocks",
            self.mpi
        )?;
        let heads = ["", "calls/s", "slowed by %", "95 %: from", "to", "estimates", "held"];
        writeln!(f, "{}", heads.map(|head| format!("{head:>12}")).concat())?;
        for row in &self.rows {
            let Some((median, [from, to])) = row.median() else { continue };
            let cells = [
                row.app.to_owned(),
                format!("{:.0}", row.calls_per_s),
                format!("{median:.2}"),
                format!("{from:.2}"),
                format!("{to:.2}"),
                row.estimates.to_string(),
                row.held.to_string(),
            ];
            let is_within = from <= LIMIT;
            let is_true = row.held as f64 >= GOAL_HELD * row.estimates as f64 && row.exact;
            let verdict = |is_met: bool| if is_met { "met" } else { "MISSED" };
            writeln!(
                f,
                "{}    goal <= {LIMIT} % and noise: {}; all others exact, {:.0} % of estimates: {}",
                cells.map(|cell| format!("{cell:>12}")).concat(),
                verdict(is_within),
                100.0 * GOAL_HELD,
                verdict(is_true)
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_sign_test() {
        // 1 - 2 P(fewer than k of n are below), from tables: all of 6, without the ends of 9 and 10, without two at each end of 12.
        for (number, out) in [(5, 0), (6, 0), (9, 1), (10, 1), (12, 2), (20, 5)] {
            assert_eq!(outside(number), out, "{number}");
        }
    }

    #[test]
    fn what_programs_say() {
        let said = "rank 1: MPI_Iprobe 0, MPI_Sendrecv 12\nseconds 1.25, in the end 3\n";
        let run = Run::said(said).unwrap();
        assert_eq!((run.seconds, run.calls[&1].len(), run.calls[&1]["MPI_Sendrecv"]), (1.25, 1, 12));
        assert!(Run::said("rank 1: MPI_Iprobe 0\n").is_none());
    }
}
