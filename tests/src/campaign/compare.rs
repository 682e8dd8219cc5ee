//! What `mpiprobe compare` finds in five runs a side of a real job: the same program twice, where anything that is found is chance,
//! and one that is slower by a twentieth in one function of one rank.

use std::{
    fmt::{self, Write as _},
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use serde::Deserialize;

use super::{
    CampaignError,
    beside::{beside, processors},
};
use crate::{Job, Mpi, Profiler, Requirement, program};

/// Runs a side.
const RUNS: u32 = 5;
/// Rounds of a run, each of 6 ms.
const ROUNDS: u32 = 200;
/// By how much slower, thousandths.
const PLANTED: u32 = 50;
/// Of the function that is slower, which is the one that waits for what takes longer.
const WHERE: (&str, &str) = ("MPI_Recv", "1");
/// In fifty comparisons of the same program with itself, there may be so many findings at most.
const MOST_FINDINGS: (usize, u32) = (3, 50);

/// How it is tried.
#[derive(Debug, Clone)]
pub struct Trial {
    pub mpi: Mpi,
    /// `wrapper` or `ebpf`.
    pub engine: String,
    /// The program computes, instead of waiting for time to pass.
    pub computes: bool,
    /// So many others compute meanwhile.
    pub burners: usize,
}

/// What was found.
#[derive(Debug, Default, Clone)]
pub struct CompareReport {
    /// Comparisons of the program that is slower, and those in which that was found.
    pub planted: u32,
    pub found: u32,
    /// By how much longer it takes there, as each of these comparisons says, in per cent.
    pub changes: Vec<f64>,
    /// In these comparisons, findings that have nothing to do with it.
    pub strange: Vec<String>,
    /// Comparisons of the same, all findings in them, and those that have any.
    pub same: u32,
    pub findings: usize,
    pub with_findings: u32,
    pub first_finding: Option<String>,
    /// How much the time of that function varies between runs of the same: its standard deviation, in per cent.
    pub varies_percent: f64,
}

/// As `compare --format json` gives it.
#[derive(Debug, Deserialize)]
struct Comparison {
    method: String,
    findings: Vec<Row>,
    rows: Vec<Row>,
}

#[derive(Debug, Clone, Deserialize)]
struct Row {
    section: String,
    name: String,
    ranks: Option<String>,
    change_percent: Option<f64>,
    probability: Option<f64>,
    verdict: String,
}

impl fmt::Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { section, name, ranks, change_percent, probability, verdict } = self;
        let ranks = ranks.as_ref().map_or(String::new(), |ranks| format!(" in rank {ranks}"));
        let change = change_percent.unwrap_or(f64::NAN);
        write!(formatter, "{section} {name}{ranks} {change:+.2} % ({verdict}, p = {:.4})", probability.unwrap_or(1.0))
    }
}

/// So many comparisons of each kind, in each of which every run is a new one.
pub fn compare(
    trial: &Trial,
    planted: u32,
    same: u32,
    mut done: impl FnMut(u32),
) -> Result<CompareReport, CampaignError> {
    beside(trial.burners, || {
        let mut report = CompareReport::default();
        let mut times = Vec::new();
        for round in 0..planted + same {
            // Comparisons of both kinds are spread over the whole time alike.
            let is_planted = (round + 1) * planted / (planted + same) > round * planted / (planted + same);
            let comparison = one(trial, if is_planted { PLANTED } else { 0 }, round, &mut times)?;
            report.note(is_planted, &comparison, round)?;
            done(round + 1);
        }
        report.varies_percent = varies(&times);
        Ok(report)
    })
}

/// Runs that take turns, compared; `times` of runs of the unchanged program are added.
fn one(trial: &Trial, planted: u32, round: u32, times: &mut Vec<f64>) -> Result<Comparison, CampaignError> {
    let folder = tempfile::tempdir().map_err(|error| CampaignError::wrong(round, error.to_string()))?;
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for number in 0..RUNS {
        for (name, side, slower) in [("before", &mut before, 0), ("after", &mut after, planted)] {
            let (path, time) = run(trial, slower, &folder.path().join(format!("{name}{number}.json")), round)?;
            if slower == 0 {
                times.push(time);
            }
            side.push(path);
        }
    }
    let mut arguments: Vec<PathBuf> = vec!["compare".into(), "--format".into(), "json".into()];
    arguments.extend(before);
    arguments.push("--to".into());
    arguments.extend(after);
    let ended = Profiler::start(arguments)?.wait()?;
    let parsed = serde_json::from_str(&ended.stdout.join("\n"));
    parsed.map_err(|error| CampaignError::wrong(round, format!("{error}\n{}", ended.printed())))
}

/// Where the profile of a run is, and how long [`WHERE`] took in it, ns.
fn run(trial: &Trial, slower: u32, path: &Path, round: u32) -> Result<(PathBuf, f64), CampaignError> {
    let mut arguments = vec![ROUNDS.to_string(), slower.to_string()];
    arguments.extend(trial.computes.then(|| "compute".to_owned()));
    let job = Job::builder(trial.mpi, program::SLOWER).ranks(2).args(arguments);
    let mut job = job.run_by(&trial.engine, [] as [&str; 0])?.spawn()?;
    job.wait()?.success()?;
    let profile = job.profile()?;
    let function = profile.rank(1).and_then(|rank| rank.functions.iter().find(|row| row.name == WHERE.0));
    let (Some(function), true) = (function, profile.complete) else {
        return Err(CampaignError::wrong(round, format!("not complete: {:?}", profile.incomplete_because)));
    };
    fs::copy(job.profile_path(), path).map_err(|error| CampaignError::wrong(round, error.to_string()))?;
    Ok((path.into(), function.time_ns as f64))
}

/// Standard deviation over the mean, in per cent.
fn varies(times: &[f64]) -> f64 {
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let squares: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
    100.0 * (squares / (times.len() as f64 - 1.0)).sqrt() / mean
}

impl CompareReport {
    fn note(&mut self, is_planted: bool, comparison: &Comparison, round: u32) -> Result<(), CampaignError> {
        if comparison.method != "student" {
            return Err(CampaignError::wrong(round, format!("compared by {}", comparison.method)));
        }
        if !is_planted {
            self.same += 1;
            self.findings += comparison.findings.len();
            self.with_findings += u32::from(!comparison.findings.is_empty());
            if self.first_finding.is_none() {
                let found: Vec<String> = comparison.findings.iter().map(ToString::to_string).collect();
                self.first_finding = (!found.is_empty()).then(|| found.join("; "));
            }
            return Ok(());
        }
        self.planted += 1;
        let is_it = |row: &&Row| {
            row.section == "function-in-ranks" && row.name == WHERE.0 && row.ranks.as_deref() == Some(WHERE.1)
        };
        let row = comparison.rows.iter().find(is_it);
        let row = row.ok_or_else(|| CampaignError::wrong(round, "what is slower is no row of the comparison"))?;
        self.found += u32::from(row.verdict == "slower");
        self.changes.extend(row.change_percent);
        // Rank 0 works longer, and rank 1 waits for it: nothing else takes longer.
        let is_strange = |row: &&Row| row.name.starts_with("MPI_") && !row.name.starts_with(WHERE.0);
        let strange = comparison.findings.iter().filter(is_strange);
        self.strange.extend(strange.map(ToString::to_string));
        Ok(())
    }

    /// Whether it finds what there is, and nothing else.
    pub fn is_right(&self) -> bool {
        let (most, of) = MOST_FINDINGS;
        self.found == self.planted && self.findings * of as usize <= most * (self.same.max(of)) as usize
    }
}

impl fmt::Display for CompareReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { planted, found, same, findings, with_findings, varies_percent, .. } = self;
        let mut changes = String::new();
        for change in &self.changes {
            write!(changes, " {change:+.1}")?;
        }
        writeln!(
            formatter,
            "{} % in {} of rank {} found in {found} of {planted} comparisons of {RUNS} runs a side (per cent:{changes}); in {same} comparisons \
             of the same, {findings} findings in {with_findings} of them; {} of that rank varies by {varies_percent:.2} % between runs",
            f64::from(PLANTED) / 10.0,
            WHERE.0,
            WHERE.1,
            WHERE.0,
        )?;
        for what in self.strange.iter().chain(&self.first_finding) {
            writeln!(formatter, "  also found: {what}")?;
        }
        Ok(())
    }
}

/// `soak compare [wrapper|ebpf] [openmpi|mpich] [compute] [beside] [PLANTED [SAME]]`.
pub fn main(arguments: &[String]) -> ExitCode {
    let Some((trials, planted, same)) = asked(arguments) else {
        eprintln!("usage: soak compare [wrapper|ebpf] [openmpi|mpich] [compute] [beside] [PLANTED [SAME]]");
        return ExitCode::from(2);
    };
    let mut failed = false;
    for trial in &trials {
        let began = Instant::now();
        let Trial { mpi, engine, computes, burners } = trial;
        let how = format!(
            "{mpi}, {engine}, {}{}",
            if *computes { "computing" } else { "waiting" },
            if *burners > 0 { ", beside others" } else { "" }
        );
        match compare(trial, planted, same, |done| eprint!("\r{how}: {done} of {}", planted + same)) {
            Ok(report) => {
                println!("\r{how}, {:.0} s: {report}", began.elapsed().as_secs_f64());
                failed |= !report.is_right();
            }
            Err(error) => {
                eprintln!("\r{how}: {error}");
                failed = true;
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// What is to be tried, and how many comparisons of either kind.
fn asked(arguments: &[String]) -> Option<(Vec<Trial>, u32, u32)> {
    let (mut mpis, mut engines, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    let (mut computes, mut burners) = (false, 0);
    for argument in arguments {
        match argument.as_str() {
            "wrapper" | "ebpf" => engines.push(argument.clone()),
            "compute" => computes = true,
            "beside" => burners = processors(),
            name => match Mpi::ALL.into_iter().find(|mpi| mpi.id() == name) {
                Some(mpi) => mpis.push(mpi),
                None => numbers.push(name.parse().ok()?),
            },
        }
    }
    if engines.is_empty() {
        engines = vec!["wrapper".into(), "ebpf".into()];
    }
    if mpis.is_empty() {
        mpis = Mpi::ALL.into();
    }
    mpis.retain(|mpi| Requirement::Mpi(*mpi).missing().is_none());
    let trials = engines
        .iter()
        .flat_map(|engine| mpis.iter().map(move |mpi| Trial { mpi: *mpi, engine: engine.clone(), computes, burners }));
    match numbers.as_slice() {
        [] => Some((trials.collect(), 10, 50)),
        [planted] => Some((trials.collect(), *planted, 50)),
        [planted, same] => Some((trials.collect(), *planted, *same)),
        _ => None,
    }
}
