//! What the page knows. Tables with many rows are columns, which compress well; the rest is as in the profile.

use std::collections::HashMap;

use crate::present::FindingText;
use mpiprobe_model::{
    EndReason, EngineInfo, FunctionLayers, FunctionProfile, GroupProfile, JobInfo, OtherCommunicators, OwnCost,
    PhaseProfile, Profile, ThreadLife, Totals,
};
use serde::Serialize;

use super::{
    by_rank::ByRank,
    moments::{Moments, Series},
    ranks::Ranks,
    source::{Excerpt, Sources},
};
use crate::{
    page::matrix::{Matrix, communicator_names},
    sites::sites,
};

/// More cells than these make a page slow.
const MOST_CELLS: usize = 150_000;

/// What a page is made of.
#[derive(Debug)]
pub struct Page<'a> {
    pub profile: &'a Profile,
    /// Most costly first.
    pub findings: &'a [Finding],
    /// What is wrong with the file it comes from.
    pub notes: &'a [String],
    /// `None`: of one moment.
    pub series: Option<&'a Series>,
    pub sources: &'a Sources,
}

/// Something that was found, in sentences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// In a word or two.
    pub name: String,
    /// With its figures and places.
    pub found: String,
    /// What shows it, a line each.
    pub evidence: Vec<String>,
    pub meaning: String,
    /// What to try.
    pub advice: String,
}

impl From<FindingText> for Finding {
    fn from(text: FindingText) -> Self {
        let FindingText { name, found, evidence, meaning, advice, .. } = text;
        Self { name: name.into(), found, evidence, meaning: meaning.into(), advice: advice.into() }
    }
}

/// Everything.
#[derive(Debug, Serialize)]
pub(super) struct Data<'a> {
    pub(super) title: String,
    pub(super) mpiprobe_version: &'a str,
    host: &'a str,
    began: &'a str,
    observed_ns: u64,
    end: Option<EndReason>,
    complete: bool,
    incomplete_because: &'a [String],
    notes: &'a [String],
    engine: &'a EngineInfo,
    jobs: &'a [JobInfo],
    totals: &'a Totals,
    findings: &'a [Finding],
    groups: &'a [GroupProfile],
    functions: &'a [FunctionProfile],
    ranks: Ranks<'a>,
    by_rank: ByRank<'a>,
    sites: Option<Sites>,
    sources: Vec<&'a Excerpt>,
    communicators: Vec<Communicator<'a>>,
    other_communicators: Option<&'a OtherCommunicators>,
    matrix: Option<Matrix>,
    phases: &'a [PhaseProfile],
    layers: &'a [FunctionLayers],
    open_calls: OpenCalls<'a>,
    requests: Requests<'a>,
    threads: Threads,
    losses: Vec<Loss>,
    own_cost: &'a OwnCost,
    moments: Option<Moments<'a>>,
}

impl<'a> Data<'a> {
    pub(super) fn of(page: &Page<'a>) -> Self {
        let profile = page.profile;
        let traffic = profile.traffic.as_ref();
        let mut sources = Vec::new();
        let sites = traffic.map(|_| Sites::of(profile, page, &mut sources));
        let communicators = traffic.map(|traffic| traffic.communicators.iter().map(Communicator::of).collect());
        let room = profile.engine.table_room();
        let described = profile.losses.described().into_iter().filter(|(count, _)| *count > 0);
        Self {
            title: title(profile),
            mpiprobe_version: profile.mpiprobe_version,
            host: &profile.host,
            began: &profile.began,
            observed_ns: profile.observed_ns,
            end: profile.end,
            complete: profile.complete,
            incomplete_because: &profile.incomplete_because,
            notes: page.notes,
            engine: &profile.engine,
            jobs: &profile.jobs,
            totals: &profile.totals,
            findings: page.findings,
            groups: &profile.groups,
            functions: &profile.functions,
            ranks: Ranks::of(profile),
            by_rank: ByRank::of(profile),
            sites,
            sources,
            communicators: communicators.unwrap_or_default(),
            other_communicators: traffic.and_then(|traffic| traffic.other_communicators.as_ref()),
            matrix: traffic.map(|_| Matrix::of(profile, MOST_CELLS, &|_, _, _| true)),
            phases: &profile.phases,
            layers: &profile.layers,
            open_calls: OpenCalls::of(profile),
            requests: Requests::of(profile),
            threads: Threads::of(profile),
            losses: described.map(|(count, what)| Loss { count, what: room.loss(what) }).collect(),
            own_cost: &profile.own_cost,
            moments: page.series.map(|series| series.moments(profile)),
        }
    }
}

/// "solve, 4 ranks".
fn title(profile: &Profile) -> String {
    let program = profile.ranks.first().map_or("no ranks", |rank| base_name(&rank.executable));
    let ranks = profile.ranks.len();
    let further = profile.ranks.iter().any(|rank| base_name(&rank.executable) != program);
    format!("{program}{}, {ranks} rank{}", if further { " and others" } else { "" }, if ranks == 1 { "" } else { "s" })
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}

/// What has not been counted.
#[derive(Debug, Serialize)]
struct Loss {
    count: u64,
    what: String,
}

/// One row a place and function, over ranks.
#[derive(Debug, Default, Serialize)]
struct Sites {
    site: Vec<String>,
    function: Vec<&'static str>,
    started_by: Vec<Option<&'static str>>,
    calls: Vec<u64>,
    time_ns: Vec<u64>,
    sent_bytes: Vec<u64>,
    received_bytes: Vec<u64>,
    waited_ns: Vec<u64>,
    imbalance: Vec<f64>,
    /// The rank with most time there, and that time.
    slowest: Vec<Option<u32>>,
    slowest_ns: Vec<u64>,
    ranks: Vec<usize>,
    /// Number of its excerpt.
    source: Vec<Option<usize>>,
}

impl Sites {
    fn of<'a>(profile: &Profile, page: &Page<'a>, sources: &mut Vec<&'a Excerpt>) -> Self {
        let mut rows = Self::default();
        for site in sites(profile) {
            let excerpt = page.sources.of(&site.place.text);
            let slowest = site.slowest();
            rows.source.push(excerpt.map(|excerpt| number_of(excerpt, sources)));
            rows.function.push(site.function);
            rows.started_by.push(site.started_by);
            rows.calls.push(site.all.calls);
            rows.time_ns.push(site.all.time_ns);
            rows.sent_bytes.push(site.all.sent_bytes);
            rows.received_bytes.push(site.all.received_bytes);
            rows.waited_ns.push(site.waited_ns);
            rows.imbalance.push(site.time_over_ranks_ns.imbalance);
            rows.slowest.push(slowest.and_then(|(number, _)| profile.ranks.get(number)?.rank));
            rows.slowest_ns.push(slowest.map_or(0, |(_, time_ns)| time_ns));
            rows.ranks.push(site.ranks.len());
            rows.site.push(site.place.text);
        }
        rows
    }
}

fn number_of<'a>(excerpt: &'a Excerpt, sources: &mut Vec<&'a Excerpt>) -> usize {
    sources.iter().position(|known| std::ptr::eq(*known, excerpt)).unwrap_or_else(|| {
        sources.push(excerpt);
        sources.len() - 1
    })
}

/// Without its members, who are many.
#[derive(Debug, Serialize)]
struct Communicator<'a> {
    name: &'a str,
    job: Option<&'a str>,
    size: Option<u32>,
    made_by: Option<&'a str>,
    ranks: u32,
    freed: bool,
    #[serde(flatten)]
    amounts: mpiprobe_model::Amounts,
}

impl<'a> Communicator<'a> {
    fn of(communicator: &'a mpiprobe_model::CommunicatorProfile) -> Self {
        Self {
            name: &communicator.name,
            job: communicator.job.as_deref(),
            size: communicator.size,
            made_by: communicator.made_by,
            ranks: communicator.ranks,
            freed: communicator.freed,
            amounts: communicator.amounts,
        }
    }
}

/// Calls that had not returned.
#[derive(Debug, Default, Serialize)]
struct OpenCalls<'a> {
    rank: Vec<Option<u32>>,
    function: Vec<&'a str>,
    tid: Vec<u32>,
    open_ns: Vec<u64>,
    site: Vec<Option<&'a str>>,
    ended_inside: Vec<bool>,
}

impl<'a> OpenCalls<'a> {
    fn of(profile: &'a Profile) -> Self {
        let mut rows = Self::default();
        for (rank, call) in profile.ranks.iter().flat_map(|rank| rank.open_calls.iter().map(move |call| (rank, call))) {
            rows.rank.push(rank.rank);
            rows.function.push(call.function);
            rows.tid.push(call.tid);
            rows.open_ns.push(call.open_ns);
            rows.site.push(call.site.as_deref());
            rows.ended_inside.push(call.ended_inside);
        }
        rows
    }
}

/// Operations under way.
#[derive(Debug, Default, Serialize)]
struct Requests<'a> {
    rank: Vec<Option<u32>>,
    function: Vec<&'a str>,
    communicator: Vec<Option<&'a str>>,
    peer: Vec<Option<u32>>,
    tag: Vec<Option<i32>>,
    bytes: Vec<Option<u64>>,
    age_ns: Vec<u64>,
    site: Vec<Option<&'a str>>,
}

impl<'a> Requests<'a> {
    fn of(profile: &'a Profile) -> Self {
        let names = communicator_names(profile);
        let mut rows = Self::default();
        for rank in &profile.ranks {
            let Some(traffic) = &rank.traffic else { continue };
            let ids: HashMap<u32, u32> =
                traffic.communicators.iter().filter_map(|row| Some((row.number, row.id?))).collect();
            for pending in &traffic.pending {
                let id = pending.communicator.and_then(|number| ids.get(&number));
                rows.rank.push(rank.rank);
                rows.function.push(pending.function);
                rows.communicator.push(id.and_then(|id| names.get(id).copied()));
                rows.peer.push(pending.peer);
                rows.tag.push(pending.tag);
                rows.bytes.push(pending.sent_bytes.or(pending.received_bytes));
                rows.age_ns.push(pending.age_ns);
                rows.site.push(pending.site.as_deref());
            }
        }
        rows
    }
}

/// Threads that have entered MPI, of ranks that have several.
#[derive(Debug, Default, Serialize)]
struct Threads {
    rank: Vec<Option<u32>>,
    tid: Vec<u32>,
    state: Vec<ThreadLife>,
    calls: Vec<u64>,
    mpi_ns: Vec<u64>,
    wall_ns: Vec<u64>,
}

impl Threads {
    fn of(profile: &Profile) -> Self {
        let mut rows = Self::default();
        for rank in profile.ranks.iter().filter(|rank| rank.threads_in_mpi > 1) {
            for thread in &rank.threads {
                rows.rank.push(rank.rank);
                rows.tid.push(thread.tid);
                rows.state.push(thread.state);
                rows.calls.push(thread.calls);
                rows.mpi_ns.push(thread.mpi_ns);
                rows.wall_ns.push(thread.wall_ns);
            }
        }
        rows
    }
}
