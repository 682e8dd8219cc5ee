//! What monitoring is told: OpenMetrics 1.0 text (github.com/prometheus/OpenMetrics, specification 1.0).
//!
//! Labels are a job, a group of functions, and, if the administrator wishes, a user: never a rank, a path or a command. Whoever reaches
//! the port may read it. What is not known has no line. Who does not understand that is given the text that Prometheus had before.

use std::{fmt::Write as _, time::SystemTime};

use mpiprobe_functions::{FunctionSet, Group, by_name};

use super::{
    board::{Told, View},
    figures::{Figures, GroupFigures, Now},
    format::Format,
};

/// A metric: its samples have the labels of one of the lists below.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    pub name: &'static str,
    /// `counter`, `gauge` or `info`.
    pub kind: &'static str,
    /// What its name ends in; empty: none.
    pub unit: &'static str,
    /// Besides a user's.
    pub labels: &'static str,
    pub help: &'static str,
}

impl Family {
    const fn counter(name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self { name, kind: "counter", unit, labels: "", help }
    }

    const fn gauge(name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self { name, kind: "gauge", unit, labels: "", help }
    }

    /// What its samples are called.
    pub fn sample(&self) -> String {
        let suffix = match self.kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        format!("{}{suffix}", self.name)
    }
}

/// A number as it is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Count(u64),
    Real(f64),
}

impl Number {
    fn seconds(ns: u64) -> Self {
        Self::Real(ns as f64 / 1e9)
    }
}

type OfGroup = (Family, fn(&GroupFigures) -> Option<Number>);
type OfJob = (Family, fn(&Told) -> Option<Number>);
type OfNode = (Family, fn(&View, &OfService) -> Number);

/// With a job and a group as labels.
static OF_GROUPS: [OfGroup; 5] = [
    (
        Family::counter("mpiprobe_mpi_seconds", "seconds", "Time that ranks have spent in MPI, open calls included"),
        |group| (group.untimed_calls == 0).then(|| Number::seconds(group.time_ns)),
    ),
    (Family::counter("mpiprobe_mpi_calls", "", "Completed calls of MPI functions"), |group| {
        Some(Number::Count(group.calls))
    }),
    (Family::counter("mpiprobe_mpi_sent_bytes", "bytes", "What calls have sent, where traffic is observed"), |group| {
        Some(Number::Count(group.moved?.sent_bytes))
    }),
    (
        Family::counter("mpiprobe_mpi_received_bytes", "bytes", "What calls have received, where traffic is observed"),
        |group| Some(Number::Count(group.moved?.received_bytes)),
    ),
    (
        Family::counter(
            "mpiprobe_mpi_calls_of_unknown_amount",
            "",
            "Calls that may have moved data of which the amount is not known",
        ),
        |group| Some(Number::Count(group.moved?.calls_of_unknown_bytes)),
    ),
];

/// With a job as label.
static OF_JOBS: [OfJob; 12] = [
    (
        Family::counter(
            "mpiprobe_job_wall_seconds",
            "seconds",
            "Wall time of the threads that use MPI, all ranks together: what time in MPI is a part of",
        ),
        |told| seen(told, |figures| Number::seconds(figures.wall_ns)),
    ),
    (Family::gauge("mpiprobe_job_ranks", "", "Ranks on this node that are observed and run"), |told| {
        now(told, |now| Some(Number::Count(now.ranks)))
    }),
    (Family::gauge("mpiprobe_job_ranks_in_mpi", "", "Of these, those that were in MPI at the last look"), |told| {
        now(told, |now| Some(Number::Count(now.ranks_in_mpi)))
    }),
    (Family::gauge("mpiprobe_job_ranks_not_observed", "", "Ranks on this node that are not observed"), |told| {
        told.not_observed.map(Number::Count)
    }),
    (
        Family::gauge(
            "mpiprobe_job_oldest_open_call_seconds",
            "seconds",
            "Age of the oldest call that had not returned at the last look",
        ),
        |told| now(told, |now| now.oldest_call_ns.map(Number::seconds)),
    ),
    (
        Family::gauge(
            "mpiprobe_job_all_in_mpi_seconds",
            "seconds",
            "How long all ranks have been in the calls that they are in; 0 if one is not in MPI",
        ),
        |told| now(told, |now| told.user.is_some().then(|| Number::seconds(now.all_in_mpi_ns))),
    ),
    (
        Family::gauge("mpiprobe_job_parallel_efficiency_ratio", "ratio", "Parallel efficiency since the look before"),
        |told| now(told, |now| Some(Number::Real(now.efficiency?.parallel))),
    ),
    (Family::gauge("mpiprobe_job_load_balance_ratio", "ratio", "Load balance since the look before"), |told| {
        now(told, |now| Some(Number::Real(now.efficiency?.load_balance)))
    }),
    (
        Family::gauge(
            "mpiprobe_job_communication_efficiency_ratio",
            "ratio",
            "Communication efficiency since the look before",
        ),
        |told| now(told, |now| Some(Number::Real(now.efficiency?.communication))),
    ),
    (Family::counter("mpiprobe_job_losses", "", "What was to be counted and was not"), |told| {
        seen(told, |figures| Number::Count(figures.lost))
    }),
    (
        Family::gauge("mpiprobe_job_complete", "", "1: nothing is known to be missing since its observation began"),
        |told| seen(told, |figures| Number::Count(u64::from(figures.is_complete))),
    ),
    (
        Family::counter(
            "mpiprobe_job_own_cost_seconds",
            "seconds",
            "What observing has cost the job's ranks, by calibration",
        ),
        |told| seen(told, |figures| Number::Real(figures.own_cost_ns / 1e9)),
    ),
];

/// Without labels.
static OF_SERVICE: [OfNode; 10] = [
    (Family::gauge("mpiprobe_service_jobs", "", "MPI jobs on this node"), |view, _| Number::Count(view.totals.there)),
    (Family::gauge("mpiprobe_service_jobs_observed", "", "Of these, those that are observed unasked"), |view, _| {
        Number::Count(view.observed)
    }),
    (
        Family::gauge("mpiprobe_service_jobs_in_other", "", "Of those, the ones without series of their own"),
        |view, _| Number::Count(view.in_other),
    ),
    (Family::counter("mpiprobe_service_jobs_seen", "", "Jobs that were to be observed unasked"), |view, _| {
        Number::Count(view.totals.seen)
    }),
    (Family::counter("mpiprobe_service_jobs_failed", "", "Of these, those that could not be"), |view, _| {
        Number::Count(view.totals.failed)
    }),
    (Family::gauge("mpiprobe_service_observations", "", "Observations that clients have asked for"), |_, service| {
        Number::Count(service.observations)
    }),
    (
        Family::gauge("mpiprobe_service_table_bytes", "bytes", "Tables of all observations in the kernel"),
        |view, service| Number::Count(view.bytes.saturating_add(service.table_bytes)),
    ),
    (Family::counter("mpiprobe_service_refusals", "", "What clients were refused for a quota"), |_, service| {
        Number::Count(service.refusals)
    }),
    (
        Family::counter("mpiprobe_service_cpu_seconds", "seconds", "Processor time of the service's worker"),
        |_, service| Number::Real(service.cpu_seconds),
    ),
    (
        Family::gauge("mpiprobe_service_uptime_seconds", "seconds", "Since the service's worker has begun"),
        |_, service| Number::Real(service.uptime_seconds),
    ),
];

/// With the version as label.
static BUILD: Family =
    Family { name: "mpiprobe_build", kind: "info", unit: "", labels: "version", help: "The version of mpiprobe" };

/// What the service knows of itself.
#[derive(Clone, Copy, Debug)]
pub(in crate::service) struct OfService {
    pub(in crate::service) observations: u64,
    /// Of these, bytes.
    pub(in crate::service) table_bytes: u64,
    pub(in crate::service) refusals: u64,
    pub(in crate::service) cpu_seconds: f64,
    pub(in crate::service) uptime_seconds: f64,
    /// When its worker began, by the clock of the day: the same each time, as counters would otherwise seem to begin anew.
    pub(in crate::service) began: SystemTime,
}

/// Every metric that there is, in the order in which they are told.
pub fn families() -> Vec<Family> {
    let service = OF_SERVICE.iter().map(|(family, _)| *family);
    let jobs = OF_JOBS.iter().map(|(family, _)| Family { labels: "job_id", ..*family });
    let groups = OF_GROUPS.iter().map(|(family, _)| Family { labels: "job_id, group", ..*family });
    [BUILD].into_iter().chain(service).chain(jobs).chain(groups).collect()
}

/// How many jobs can have series of their own where there are to be so many at most, if these functions are observed.
pub(super) fn most_own(series: u32, functions: &FunctionSet, traffic: bool) -> usize {
    let groups = Group::ALL.into_iter().filter(|group| {
        // What the program says by it is always heard.
        let heard = by_name("MPI_Pcontrol").is_some_and(|id| id.function().group == *group);
        heard || functions.iter().any(|id| id.function().group == *group)
    });
    let of_a_group = if traffic { OF_GROUPS.len() } else { 2 };
    let of_a_job = OF_JOBS.len() + groups.count() * of_a_group;
    let of_jobs = usize::try_from(series).unwrap_or(usize::MAX).saturating_sub(OF_SERVICE.len() + 1);
    // One for all others.
    (of_jobs / of_a_job).saturating_sub(1)
}

/// Names and values.
pub(super) type Labels<'a> = Vec<(&'static str, &'a str)>;

/// All that there is of a metric.
#[derive(Debug)]
pub(super) struct Samples<'a> {
    pub(super) family: &'static Family,
    pub(super) of: Vec<(Labels<'a>, Number)>,
}

/// Every metric, also those of which there is nothing.
pub(super) fn metrics<'a>(view: &'a View, service: &OfService, with_user: bool) -> Vec<Samples<'a>> {
    let build = Samples { family: &BUILD, of: vec![(vec![("version", env!("CARGO_PKG_VERSION"))], Number::Count(1))] };
    let of_service = OF_SERVICE.iter().map(|(family, number)| {
        let of = vec![(Labels::new(), number(view, service))];
        Samples { family, of }
    });
    let of_jobs = OF_JOBS.iter().map(|(family, number)| {
        let known = view.jobs.iter().filter_map(|told| Some((labels(told, with_user), number(told)?)));
        Samples { family, of: known.collect() }
    });
    let of_groups = OF_GROUPS.iter().map(|(family, number)| {
        let groups = view.jobs.iter().flat_map(|told| told.figures.groups.iter().map(move |group| (told, group)));
        let known = groups.filter_map(|(told, (key, group))| {
            let number = number(group)?;
            let mut labels = labels(told, with_user);
            labels.push(("group", *key));
            Some((labels, number))
        });
        Samples { family, of: known.collect() }
    });
    [build].into_iter().chain(of_service).chain(of_jobs).chain(of_groups).collect()
}

pub(super) fn text(metrics: &[Samples<'_>], format: Format) -> String {
    let mut text = String::with_capacity(32 << 10);
    for Samples { family, of } in metrics {
        head(&mut text, family, format);
        for (labels, number) in of {
            sample(&mut text, family, labels, *number);
        }
    }
    if format == Format::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

fn seen(told: &Told, number: impl FnOnce(&Figures) -> Number) -> Option<Number> {
    told.figures.is_seen.then(|| number(&told.figures))
}

fn now(told: &Told, number: impl FnOnce(&Now) -> Option<Number>) -> Option<Number> {
    told.figures.now.as_ref().and_then(number)
}

fn labels(told: &Told, with_user: bool) -> Labels<'_> {
    let user = told.user.as_deref().filter(|_| with_user).map(|user| ("user", user));
    [("job_id", told.job.as_str())].into_iter().chain(user).collect()
}

fn head(text: &mut String, family: &Family, format: Format) {
    let Family { name, kind, unit, help, .. } = family;
    if format == Format::Text {
        // There, a family is called as its samples are, and there is no information but as a value.
        let (sample, kind) = (family.sample(), if *kind == "info" { "gauge" } else { kind });
        let _ = writeln!(text, "# HELP {sample} {help}\n# TYPE {sample} {kind}");
        return;
    }
    let _ = writeln!(text, "# TYPE {name} {kind}");
    if !unit.is_empty() {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
    let _ = writeln!(text, "# HELP {name} {help}");
}

fn sample(text: &mut String, family: &Family, labels: &[(&str, &str)], number: Number) {
    text.push_str(&family.sample());
    for (place, (name, value)) in labels.iter().enumerate() {
        let _ = write!(text, "{}{name}=\"", if place == 0 { '{' } else { ',' });
        for character in value.chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                character => text.push(character),
            }
        }
        text.push('"');
    }
    let end = if labels.is_empty() { "" } else { "}" };
    let _ = match number {
        Number::Count(count) => writeln!(text, "{end} {count}"),
        Number::Real(real) => writeln!(text, "{end} {real}"),
    };
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
