//! Time in MPI, as it is shown, against the truth library's clock in the same run: by how long calls take.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::BenchError;
use crate::truth::Image;
use crate::{Job, Mpi, Profile, Profiler, program};

/// Calls whose mean is above this are long, ns.
const LONG_NS: f64 = 10_000.0;
/// How far the time in long calls may be from the truth library's.
const GOAL: f64 = 0.02;
/// What the program does besides is not what is measured.
const MEASURED: [&str; 8] = [
    "MPI_Test",
    "MPI_Iprobe",
    "MPI_Sendrecv",
    "MPI_Allreduce",
    "MPI_Sendrecv_replace",
    "MPI_Send",
    "MPI_Recv",
    "MPI_Barrier",
];

/// Who measures besides the truth library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    Ebpf,
    Wrapper,
}

/// One job.
#[derive(Debug, Serialize)]
pub struct TimesReport {
    mpi: String,
    by: By,
    turns: u32,
    /// What was subtracted of each call, and what of a call's cost is not in its measured time but may be in the truth library's, ns.
    /// `None`: not known.
    inside_ns: Option<f64>,
    outside_ns: Option<f64>,
    rows: Vec<Row>,
    /// The largest deviation of the time in long calls.
    worst: Option<f64>,
    met: bool,
}

/// One function in one rank, or all of a class. Times in ns.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Row {
    rank: u32,
    name: String,
    is_class: bool,
    calls: u64,
    truth_ns: u64,
    /// As measured, and without mpiprobe's own cost.
    raw_ns: u64,
    shown_ns: u64,
}

/// Runs the program under one MPI.
pub fn run(mpi: Mpi, by: By, turns: u32) -> Result<TimesReport, BenchError> {
    let builder = Job::builder(mpi, program::LENGTHS).ranks(2).args([turns.to_string()]).truth(true).own_name();
    let (job, profile) = match by {
        By::Ebpf => {
            let mut job = builder.gates(&["start"]).spawn()?;
            job.wait_for_gate("start")?;
            let profiler = Profiler::observe(["--pid-of", job.called()])?;
            job.open_gate("start")?;
            job.wait()?.success()?;
            (job, profiler.wait()?.profile()?)
        }
        By::Wrapper => {
            let mut job = builder.profiled([] as [&str; 0])?.spawn()?;
            job.wait()?.success()?;
            let profile = job.profile()?;
            (job, profile)
        }
    };
    let mut rows = Vec::new();
    for (rank, image) in job.snapshot()?.ranks {
        rows.extend(of_rank(rank, &image, &profile)?);
    }
    Ok(report(mpi, by, turns, rows, &profile))
}

fn report(mpi: Mpi, by: By, turns: u32, rows: Vec<Row>, profile: &Profile) -> TimesReport {
    let cost = &profile.own_cost;
    let long = rows.iter().filter(|row| row.is_class && row.is_long());
    let worst = long.map(|row| (row.ratio(row.shown_ns) - 1.0).abs()).max_by(f64::total_cmp);
    TimesReport {
        mpi: mpi.to_string(),
        by,
        turns,
        inside_ns: cost.inside_ns,
        outside_ns: cost.inside_ns.map(|inside| cost.per_call_ns - inside),
        worst,
        met: worst.is_some_and(|worst| worst <= GOAL),
        rows,
    }
}

/// Its functions by the length of their calls, and the sums of both classes.
fn of_rank(rank: u32, image: &Image, profile: &Profile) -> Result<Vec<Row>, BenchError> {
    let shown = profile.rank(rank);
    let mut rows = Vec::new();
    for name in MEASURED {
        let truth = image.calls(name);
        let row = shown.and_then(|shown| shown.functions.iter().find(|row| row.name == name));
        let counted = row.map_or(0, |row| row.calls);
        if counted != truth.completed {
            return Err(BenchError::Miscounted {
                by: "mpiprobe".into(),
                function: name,
                made: truth.completed,
                counted,
            });
        }
        if let Some(row) = row {
            rows.push(Row {
                rank,
                name: name.to_owned(),
                is_class: false,
                calls: truth.completed,
                truth_ns: ns(truth.time),
                raw_ns: row.time_ns + row.self_cost_ns,
                shown_ns: row.time_ns,
            });
        }
    }
    rows.sort_by(|a, b| a.mean_ns().total_cmp(&b.mean_ns()));
    let (long, short): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(Row::is_long);
    let classes = [(short, "all up to 10 µs"), (long, "all above 10 µs")];
    Ok(classes.into_iter().flat_map(|(rows, name)| with_sum(rows, rank, name)).collect())
}

fn with_sum(mut rows: Vec<Row>, rank: u32, name: &str) -> Vec<Row> {
    let sum = |of: fn(&Row) -> u64| rows.iter().map(of).sum();
    let all = Row {
        rank,
        name: name.to_owned(),
        is_class: true,
        calls: sum(|row| row.calls),
        truth_ns: sum(|row| row.truth_ns),
        raw_ns: sum(|row| row.raw_ns),
        shown_ns: sum(|row| row.shown_ns),
    };
    rows.extend((all.calls > 0).then_some(all));
    rows
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Row {
    fn mean_ns(&self) -> f64 {
        self.truth_ns as f64 / self.calls.max(1) as f64
    }

    fn is_long(&self) -> bool {
        self.mean_ns() > LONG_NS
    }

    fn ratio(&self, ns: u64) -> f64 {
        ns as f64 / self.truth_ns.max(1) as f64
    }

    /// What the truth library has measured more of each call, ns.
    fn less_ns(&self) -> f64 {
        (self.truth_ns as f64 - self.shown_ns as f64) / self.calls.max(1) as f64
    }
}

impl fmt::Display for TimesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = if self.by == By::Ebpf { "eBPF" } else { "wrapper" };
        let known = |ns: Option<f64>| ns.map_or_else(|| "unknown".to_owned(), |ns| format!("{ns:.0} ns"));
        writeln!(
            f,
            "{}, {by}, {} turns; self cost subtracted: {} per call; outside measured times: {}",
            self.mpi,
            self.turns,
            known(self.inside_ns),
            known(self.outside_ns)
        )?;
        writeln!(
            f,
            "{:<5}{:<22}{:>9}{:>14}{:>10}{:>10}{:>18}",
            "rank", "calls of", "calls", "truth, mean ns", "measured", "shown", "truth - shown, ns"
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "{:<5}{:<22}{:>9}{:>14.0}{:>9.1}%{:>9.1}%{:>18.0}",
                row.rank,
                row.name,
                row.calls,
                row.mean_ns(),
                100.0 * row.ratio(row.raw_ns),
                100.0 * row.ratio(row.shown_ns),
                row.less_ns()
            )?;
        }
        let verdict = if self.met { "met" } else { "MISSED" };
        let worst =
            self.worst.map_or_else(|| "no such calls".to_owned(), |worst| format!("worst {:.2} %", 100.0 * worst));
        writeln!(f, "goal calls above 10 µs within {:.0} % of the truth library's: {verdict} ({worst})", 100.0 * GOAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, calls: u64, truth_ns: u64) -> Row {
        let shown_ns = truth_ns - calls * 100;
        Row { rank: 0, name: name.to_owned(), is_class: false, calls, truth_ns, raw_ns: truth_ns, shown_ns }
    }

    #[test]
    fn a_class_is_the_sum_of_its_functions() {
        let rows = with_sum(vec![row("a", 10, 2_000), row("b", 30, 9_000)], 0, "all");
        let all = rows.last().unwrap();
        assert_eq!((all.calls, all.truth_ns, all.shown_ns), (40, 11_000, 7_000));
        assert!((all.less_ns() - 100.0).abs() < 1e-9 && !all.is_long());
        assert!(with_sum(Vec::new(), 0, "all").is_empty());
    }
}
