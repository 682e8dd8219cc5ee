//! Runs before, runs after, and what is different.

use std::{collections::BTreeSet, fmt, str::FromStr};

use mpiprobe_functions::by_name_ignoring_case;
use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;

use crate::{Scaling, ScalingRun};

use super::{
    Run, SCHEMA, Section, Subject,
    measure::Amounts,
    statistics::{LEVEL, Method, Values, is_enough, test},
};

/// Changes of less are of no use to anybody, however sure they are.
const LEAST_CHANGE: f64 = 0.01;
/// Of the elapsed time: what takes less in every run is not looked at.
const LEAST_SHARE: f64 = 1e-4;
/// Parts of a run that tell how much it varies.
const LEAST_PARTS: usize = 5;

/// What times are divided by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The run: its times as they are, of each rank in the mean.
    Run,
    /// The wall time that was observed.
    Time,
    /// The calls that they consist of.
    Call,
    Iteration(Iterations),
}

/// What is done once in each iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Iterations {
    /// Each rank calls this function.
    Function(&'static str),
    /// A phase of this name is opened.
    Phase(String),
}

impl FromStr for Basis {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "run" => Ok(Self::Run),
            "time" => Ok(Self::Time),
            "call" => Ok(Self::Call),
            _ => {
                let name = text.strip_prefix("iteration=").filter(|name| !name.is_empty()).ok_or(
                    "run, time, call, or iteration=NAME, where NAME is the function or the phase that there is one of in each iteration",
                )?;
                let function = by_name_ignoring_case(name).map(|id| Iterations::Function(id.function().name));
                Ok(Self::Iteration(function.unwrap_or_else(|| Iterations::Phase(name.into()))))
            }
        }
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run => formatter.write_str("time of a rank in a run, in the mean"),
            Self::Time => formatter.write_str("share of the wall time observed"),
            Self::Call => formatter.write_str("time of a call"),
            Self::Iteration(Iterations::Function(name)) => {
                write!(formatter, "time of a rank in an iteration, that is for each of its calls of {name}")
            }
            Self::Iteration(Iterations::Phase(name)) => {
                write!(formatter, "time of a rank in an iteration, that is for each time it opened the phase {name}")
            }
        }
    }
}

/// How runs are compared.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `None`: by run if all runs were observed to their ends, else by time.
    pub basis: Option<Basis>,
    /// Also if they are of different programs.
    pub anyway: bool,
    /// Ranks have as much to do each in runs of more ranks (weak scaling); otherwise there is as much to do in all.
    pub is_weak: bool,
}

/// Why there is no comparison.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Refused {
    #[error("there is nothing to compare: runs are needed on both sides")]
    OneSide,
    #[error("{0} has no ranks in it: nothing was observed")]
    Empty(String),
    #[error("these are runs of different programs: {0}; --anyway compares them all the same")]
    Programs(String),
    #[error("{run} has no iterations: nobody {what}")]
    Iterations { run: String, what: String },
}

/// What can be said of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every run has the same figure.
    Same,
    Slower,
    Faster,
    /// It may be chance, or is less than a hundredth.
    Chance,
    /// Whether it is chance is not known.
    Unknown,
    /// It takes next to no time.
    Negligible,
}

impl Verdict {
    pub fn is_difference(self) -> bool {
        matches!(self, Self::Slower | Self::Faster)
    }
}

/// A subject before and after.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    #[serde(flatten)]
    pub subject: Subject,
    /// Means over runs: ns, or shares by time.
    pub before: f64,
    pub after: f64,
    /// Calls of a run, in the mean; `null`: it does not consist of calls.
    pub calls_before: Option<f64>,
    pub calls_after: Option<f64>,
    /// Per cent; `null`: there was nothing before.
    pub change_percent: Option<f64>,
    /// Of 95 %; `null`: not known.
    pub change_interval_percent: Option<(f64, f64)>,
    /// Chance of any difference as large if nothing had changed, in all subjects together; `null`: not known.
    pub probability: Option<f64>,
    pub verdict: Verdict,
    /// The difference, in all: what counts for the order of findings.
    #[serde(skip)]
    pub(super) weight: f64,
}

/// All that is to be said.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Comparison {
    pub schema: &'static str,
    /// Names of the programs' files.
    pub programs: Vec<String>,
    pub before: Vec<String>,
    pub after: Vec<String>,
    pub basis: Basis,
    pub method: Method,
    /// What else is different, and what a reader must know to judge the figures.
    pub notes: Vec<String>,
    /// What is no chance, the most costly first.
    pub findings: Vec<Row>,
    pub rows: Vec<Row>,
    /// `null`: all runs have the same number of ranks.
    pub scaling: Option<Scaling>,
}

impl Comparison {
    pub fn of(before: &[Run], after: &[Run], options: &Options) -> Result<Self, Refused> {
        if before.is_empty() || after.is_empty() {
            return Err(Refused::OneSide);
        }
        let all = || before.iter().chain(after);
        if let Some(run) = all().find(|run| run.ranks() == 0) {
            return Err(Refused::Empty(run.name.clone()));
        }
        let mut notes = Vec::new();
        if let Some(differ) = different_programs(before, after) {
            if !options.anyway {
                return Err(Refused::Programs(differ));
            }
            notes.push(format!("different programs: {differ}"));
        }
        let is_whole = all().all(|run| run.is_whole);
        let basis = options.basis.clone().unwrap_or(if is_whole { Basis::Run } else { Basis::Time });
        has_iterations(all(), &basis)?;
        notes.extend(circumstances(before, after));
        if !is_whole && options.basis.as_ref().is_some_and(|basis| *basis == Basis::Run) {
            notes.push("not all runs were observed to their ends: times of runs depend on how long that was".into());
        }
        let ranks: BTreeSet<usize> = all().map(Run::ranks).collect();
        let of_runs = || all().map(|run| run.scaling).collect::<Vec<ScalingRun>>();
        let scaling = (ranks.len() > 1).then(|| Scaling::of(&of_runs(), options.is_weak));
        if scaling.is_some() {
            notes.push("not all runs have as many ranks: ranks are not compared one by one".into());
        }
        let (method, sides) = sides(before, after);
        notes.extend(meaning(method, before.len(), after.len()));
        let rows = Table { before, after, basis: &basis, method, has_ranks: scaling.is_none() }.rows(&sides);
        let mut findings: Vec<Row> = rows.iter().filter(|row| row.verdict.is_difference()).cloned().collect();
        findings.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        let programs: BTreeSet<&String> = all().flat_map(|run| &run.facts.programs).collect();
        let programs = programs.into_iter().cloned().collect();
        let names = |runs: &[Run]| runs.iter().map(|run| run.name.clone()).collect();
        Ok(Self {
            schema: SCHEMA,
            programs,
            before: names(before),
            after: names(after),
            basis,
            method,
            notes,
            findings,
            rows,
            scaling,
        })
    }

    /// Whether every figure of every run is the same.
    pub fn is_same(&self) -> bool {
        self.rows.iter().all(|row| row.verdict == Verdict::Same)
    }
}

/// What is compared as if each were a run.
struct Sides {
    before: Vec<Amounts>,
    after: Vec<Amounts>,
}

fn sides(before: &[Run], after: &[Run]) -> (Method, Sides) {
    let whole = |runs: &[Run]| runs.iter().map(|run| run.amounts.clone()).collect::<Vec<_>>();
    let runs = Sides { before: whole(before), after: whole(after) };
    match (before, after) {
        ([one], [other]) => {
            let parts = Sides { before: one.parts(), after: other.parts() };
            if parts.before.len().min(parts.after.len()) >= LEAST_PARTS {
                (Method::Moments, parts)
            } else {
                (Method::None, runs)
            }
        }
        _ if before.len().min(after.len()) < 2 => (Method::None, runs),
        _ if is_enough(before.len(), after.len()) => (Method::Permutation, runs),
        _ => (Method::Student, runs),
    }
}

/// What the method can tell.
fn meaning(method: Method, before: usize, after: usize) -> Option<String> {
    match method {
        Method::Permutation => None,
        Method::Student => Some(format!(
            "{before} and {after} runs are few: Student's test, which takes times for normally distributed, and besides no more runs on the \
             wrong side of the other side's than chance allows; from 8 runs a side on nothing is assumed"
        )),
        Method::Moments => Some(
            "one run a side: what is no chance differs by more than parts of a run do, but how much runs differ from each other is not \
             known; compare several runs a side"
                .into(),
        ),
        Method::None => Some(
            "whether differences are chance is not known: that takes several runs a side, or one recording a side with moments enough \
             (--record, --interval)"
                .into(),
        ),
    }
}

fn joined<T: fmt::Display + Ord>(names: &BTreeSet<T>) -> String {
    const SHOWN: usize = 5;
    let mut text: Vec<String> = names.iter().take(SHOWN).map(ToString::to_string).collect();
    if names.len() > SHOWN {
        text.push(format!("{} more", names.len() - SHOWN));
    }
    if text.is_empty() { "nothing".into() } else { text.join(", ") }
}

/// What all runs of a side have of something.
fn union<'a, T: Ord + Clone + 'a>(runs: &'a [Run], of: impl Fn(&'a Run) -> &'a BTreeSet<T>) -> BTreeSet<T> {
    runs.iter().flat_map(|run| of(run).iter().cloned()).collect()
}

/// In words.
fn different_programs(before: &[Run], after: &[Run]) -> Option<String> {
    let first = &before.first()?.facts.programs;
    let other = before.iter().chain(after).find(|run| run.facts.programs != *first)?;
    let functions = [union(before, |run| &run.facts.functions), union(after, |run| &run.facts.functions)];
    let [before, after] = &functions;
    let only = |a: &BTreeSet<&'static str>, b: &BTreeSet<&'static str>, side: &str| {
        let only: BTreeSet<_> = a.difference(b).copied().collect();
        if only.is_empty() { String::new() } else { format!("; {} called {side} only", joined(&only)) }
    };
    let functions = only(before, after, "before") + &only(after, before, "after");
    Some(format!("{} and {}{functions}", joined(first), joined(&other.facts.programs)))
}

/// What is different besides the program, and what is missing.
fn circumstances(before: &[Run], after: &[Run]) -> Vec<String> {
    let mut notes = Vec::new();
    let libraries = [union(before, |run| &run.facts.libraries), union(after, |run| &run.facts.libraries)];
    let hosts = [union(before, |run| &run.facts.hosts), union(after, |run| &run.facts.hosts)];
    for (what, [before, after]) in [("MPI libraries", libraries), ("nodes", hosts)] {
        if before != after {
            notes.push(format!("different {what}: {} before, {} after", joined(&before), joined(&after)));
        }
    }
    let all = || before.iter().chain(after);
    let engines: BTreeSet<_> = all().map(|run| run.facts.engine).collect();
    if engines.len() > 1 {
        notes.push(format!(
            "counted by different engines ({}), which cost the program different time",
            joined(&engines)
        ));
    }
    if all().any(|run| run.facts.has_traffic) && !all().all(|run| run.facts.has_traffic) {
        notes.push("some runs were observed without --traffic: they have no call sites and no communicators".into());
    }
    for run in all() {
        if let Some(why) = run.incomplete.first() {
            notes.push(format!("{} is incomplete: {why}", run.name));
        }
    }
    notes
}

fn has_iterations<'a>(mut runs: impl Iterator<Item = &'a Run>, basis: &Basis) -> Result<(), Refused> {
    let Basis::Iteration(iterations) = basis else { return Ok(()) };
    let without = runs.find(|run| iterations.of(&run.amounts) <= 0.0);
    let what = match iterations {
        Iterations::Function(name) => format!("called {name}"),
        Iterations::Phase(name) => format!("opened a phase {name}, and no function is called that"),
    };
    without.map_or(Ok(()), |run| Err(Refused::Iterations { run: run.name.clone(), what }))
}

impl Iterations {
    /// Of each rank, in the mean.
    fn of(&self, amounts: &Amounts) -> f64 {
        match self {
            Self::Function(name) => {
                let is_it = |subject: &Subject| subject.section == Section::Function && subject.name == *name;
                let found = amounts.by_subject.iter().find(|(subject, _)| is_it(subject));
                found.and_then(|(_, amount)| Some(amount.calls? / amount.ranks.max(1.0))).unwrap_or_default()
            }
            Self::Phase(name) => amounts.opened.get(name).copied().unwrap_or_default(),
        }
    }
}

/// How rows come about.
struct Table<'a> {
    before: &'a [Run],
    after: &'a [Run],
    basis: &'a Basis,
    method: Method,
    has_ranks: bool,
}

impl Table<'_> {
    fn rows(&self, sides: &Sides) -> Vec<Row> {
        let all = || self.before.iter().chain(self.after);
        let subjects: BTreeSet<&Subject> = all().flat_map(|run| run.amounts.by_subject.keys()).collect();
        let (mut rows, mut tested, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for subject in subjects.into_iter().filter(|subject| self.is_compared(subject)) {
            let Some(row) = self.row(subject) else { continue };
            if row.verdict == Verdict::Unknown
                && self.can_tell(subject)
                && let Some(values) = self.values(sides, subject)
            {
                tested.push(values);
                places.push(rows.len());
            }
            rows.push(row);
        }
        for (place, tested) in places.into_iter().zip(test(&tested)) {
            let Some(row) = rows.get_mut(place) else { continue };
            row.probability = Some(tested.p);
            row.change_interval_percent = tested.interval.map(|(low, high)| (100.0 * low, 100.0 * high));
            let change = row.change_percent.unwrap_or(f64::INFINITY);
            row.verdict = match () {
                () if tested.p > LEVEL || change.abs() < 100.0 * LEAST_CHANGE => Verdict::Chance,
                () if change > 0.0 => Verdict::Slower,
                () => Verdict::Faster,
            };
        }
        rows
    }

    fn is_compared(&self, subject: &Subject) -> bool {
        let is_of_ranks = subject.ranks.is_some();
        (self.has_ranks || !is_of_ranks) && !(*self.basis == Basis::Time && is_elapsed(subject))
    }

    /// Whether it can be known what of its difference is chance. Parts of one run tell nothing of how long runs take.
    fn can_tell(&self, subject: &Subject) -> bool {
        match self.method {
            Method::None => false,
            Method::Moments => !is_elapsed(subject),
            Method::Permutation | Method::Student => true,
        }
    }

    /// `None`: it has no value by this basis.
    fn row(&self, subject: &Subject) -> Option<Row> {
        let of =
            |runs: &[Run]| -> Option<Vec<f64>> { runs.iter().map(|run| self.value(&run.amounts, subject)).collect() };
        let (all_before, all_after) = (of(self.before)?, of(self.after)?);
        let (before, after) = (mean(&all_before), mean(&all_after));
        let calls = |runs: &[Run]| {
            let of_run = |run: &Run| run.amounts.by_subject.get(subject).map_or(Some(0.0), |amount| amount.calls);
            runs.iter().map(of_run).collect::<Option<Vec<f64>>>().map(|calls| mean(&calls))
        };
        let (calls_before, calls_after) = (calls(self.before), calls(self.after));
        let all = || self.before.iter().chain(self.after);
        let is_small = all().all(|run| {
            let amount = run.amounts.by_subject.get(subject).copied().unwrap_or_default();
            amount.time_ns / amount.ranks.max(1.0) < LEAST_SHARE * run.amounts.elapsed_ns
        });
        let first = all_before.first().copied().unwrap_or_default();
        let is_same = all_before.iter().chain(&all_after).all(|value| value.to_bits() == first.to_bits());
        let verdict = match () {
            () if is_same => Verdict::Same,
            () if is_small => Verdict::Negligible,
            () => Verdict::Unknown,
        };
        let ranks = all().filter_map(|run| Some(run.amounts.by_subject.get(subject)?.ranks)).fold(1.0, f64::max);
        let times = if *self.basis == Basis::Call { calls_after.unwrap_or(1.0) } else { ranks };
        Some(Row {
            subject: subject.clone(),
            before,
            after,
            calls_before,
            calls_after,
            change_percent: (before > 0.0).then(|| 100.0 * (after / before - 1.0)),
            change_interval_percent: None,
            probability: None,
            verdict,
            weight: (after - before).abs() * times,
        })
    }

    fn values(&self, sides: &Sides, subject: &Subject) -> Option<Values> {
        let of = |side: &[Amounts]| -> Option<Vec<f64>> {
            side.iter().map(|amounts| self.value(amounts, subject)).collect()
        };
        Some(Values { before: of(&sides.before)?, after: of(&sides.after)? })
    }

    /// Of one run, by the basis; `None`: that cannot be.
    fn value(&self, amounts: &Amounts, subject: &Subject) -> Option<f64> {
        let amount = amounts.by_subject.get(subject).copied().unwrap_or_default();
        let of_rank = amount.time_ns / amount.ranks.max(1.0);
        match self.basis {
            Basis::Run => Some(of_rank),
            Basis::Time => {
                Some(of_rank / (amounts.wall_ns / amounts.ranks.max(1) as f64)).filter(|share| share.is_finite())
            }
            Basis::Call => amount.calls.filter(|calls| *calls > 0.0).map(|calls| amount.time_ns / calls),
            Basis::Iteration(iterations) => {
                Some(iterations.of(amounts)).filter(|number| *number > 0.0).map(|number| of_rank / number)
            }
        }
    }
}

fn is_elapsed(subject: &Subject) -> bool {
    subject.section == Section::Whole && subject.name == "elapsed"
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}
