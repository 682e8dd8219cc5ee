//! What is compared: amounts of time by subject, of one profile.

use std::{collections::BTreeMap, fmt};

use mpiprobe_discover::printable;
use mpiprobe_model::{Profile, RankProfile};
use schemars::JsonSchema;
use serde::Serialize;

/// At most so many groups of ranks, so that a job of thousands is compared as one of tens is.
const MOST_GROUPS: u32 = 32;
/// Subjects of a section beyond so many, by time, are left out: a recording may name any number of call sites.
const MOST_SUBJECTS: usize = 2000;
/// Characters of a name that are kept.
const LONGEST_NAME: usize = 200;

/// In which table a subject stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Section {
    /// `elapsed`, `mpi` and `computing`.
    Whole,
    /// By its name.
    Function,
    /// Time in MPI and outside of it, of ranks.
    Ranks,
    /// A function in some ranks.
    FunctionInRanks,
    CallSite,
    Communicator,
    Phase,
}

impl Section {
    pub const ALL: [Self; 7] = [
        Self::Whole,
        Self::Function,
        Self::Ranks,
        Self::FunctionInRanks,
        Self::CallSite,
        Self::Communicator,
        Self::Phase,
    ];

    /// The heading of its table.
    pub fn title(self) -> &'static str {
        match self {
            Self::Whole => "The whole job",
            Self::Function => "Functions, all ranks",
            Self::Ranks => "Ranks",
            Self::FunctionInRanks => "Functions by rank",
            Self::CallSite => "Call sites",
            Self::Communicator => "Communicators",
            Self::Phase => "Phases",
        }
    }
}

/// Something that takes time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
pub struct Subject {
    pub section: Section,
    /// Fit for a terminal.
    pub name: String,
    /// The ranks meant, such as `3` or `0-31`; `null`: all.
    pub ranks: Option<String>,
}

impl Subject {
    fn new(section: Section, name: &str) -> Self {
        let name: String = printable(name.as_bytes()).chars().take(LONGEST_NAME).collect();
        Self { section, name, ranks: None }
    }

    fn of_ranks(section: Section, name: &str, ranks: &str) -> Self {
        Self { ranks: Some(ranks.into()), ..Self::new(section, name) }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match (self.section, self.name.as_str()) {
            (Section::Whole, "elapsed") => "elapsed time",
            (Section::Whole | Section::Ranks, "mpi") => "time in MPI",
            (Section::Whole | Section::Ranks, "computing") => "time outside MPI",
            (_, name) => name,
        };
        match (self.section, &self.ranks) {
            (Section::Communicator, _) => write!(formatter, "communicator {name}"),
            (Section::Phase, _) => write!(formatter, "phase {name}"),
            (_, Some(ranks)) if ranks.contains('-') => write!(formatter, "{name} in ranks {ranks}"),
            (_, Some(ranks)) => write!(formatter, "{name} in rank {ranks}"),
            (_, None) => formatter.write_str(name),
        }
    }
}

/// Time of a subject, ns, of all ranks that it is about, and the calls in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Amount {
    pub(super) time_ns: f64,
    /// `None`: it does not consist of calls.
    pub(super) calls: Option<f64>,
    /// Ranks that it is a sum over.
    pub(super) ranks: f64,
}

/// The amounts of one profile.
#[derive(Clone, Debug, Default)]
pub(super) struct Amounts {
    pub(super) by_subject: BTreeMap<Subject, Amount>,
    /// Wall time of the ranks, summed, ns.
    pub(super) wall_ns: f64,
    /// Of the longest rank, ns.
    pub(super) elapsed_ns: f64,
    pub(super) ranks: usize,
    /// How often each phase was opened by each rank that has opened it, in the mean.
    pub(super) opened: BTreeMap<String, f64>,
}

impl Amounts {
    pub(super) fn of(profile: &Profile) -> Self {
        let mut amounts = Self::default();
        let most = profile.ranks.iter().filter_map(|rank| rank.rank).max().unwrap_or(0);
        let width = most / MOST_GROUPS + 1;
        for rank in &profile.ranks {
            amounts.add_rank(rank, width);
        }
        let ranks = profile.ranks.len() as f64;
        for function in &profile.functions {
            let time = function.all.time_ns.saturating_add(function.all.open_ns);
            amounts.add(Subject::new(Section::Function, function.all.name), time, Some(function.all.calls), ranks);
        }
        for communicator in profile.traffic.iter().flat_map(|traffic| &traffic.communicators) {
            let (sum, ranks) = (communicator.amounts, f64::from(communicator.ranks));
            amounts.add(Subject::new(Section::Communicator, &communicator.name), sum.time_ns, Some(sum.calls), ranks);
        }
        for phase in &profile.phases {
            let ranks = phase.ranks as f64;
            amounts.add(Subject::new(Section::Phase, &phase.name), phase.mpi_ns, Some(phase.calls), ranks);
            amounts.opened.insert(phase.name.clone(), phase.opened as f64 / ranks.max(1.0));
        }
        amounts.keep_most();
        amounts
    }

    fn add_rank(&mut self, rank: &RankProfile, width: u32) {
        self.ranks += 1;
        let wall = rank.wall_ns as f64;
        self.wall_ns += wall;
        self.elapsed_ns = self.elapsed_ns.max(wall);
        // Of several threads, what each does in the mean: as efficiencies are worked out.
        let in_mpi = if rank.thread_wall_ns == 0 { 0.0 } else { rank.mpi_ns as f64 / rank.thread_wall_ns as f64 };
        let mpi = wall * in_mpi.min(1.0);
        let group = group(rank.rank, width);
        let whole = |name| Subject::new(Section::Whole, name);
        let in_ranks = |name| Subject::of_ranks(Section::Ranks, name, &group);
        for (subject, ns) in [
            (whole("mpi"), mpi),
            (whole("computing"), wall - mpi),
            (in_ranks("mpi"), mpi),
            (in_ranks("computing"), wall - mpi),
        ] {
            let amount = self.by_subject.entry(subject).or_default();
            amount.time_ns += ns;
            amount.ranks += 1.0;
        }
        self.by_subject.insert(whole("elapsed"), Amount { time_ns: self.elapsed_ns, calls: None, ranks: 1.0 });
        for function in &rank.functions {
            let subject = Subject::of_ranks(Section::FunctionInRanks, function.name, &group);
            self.add(subject, function.time_ns.saturating_add(function.open_ns), Some(function.calls), 1.0);
        }
        for flow in rank.traffic.iter().flat_map(|traffic| &traffic.flows) {
            let Some(site) = &flow.site else { continue };
            let subject = Subject::new(Section::CallSite, &format!("{} at {site}", flow.function));
            self.add(subject, flow.amounts.time_ns, Some(flow.amounts.calls), 0.0);
        }
    }

    fn add(&mut self, subject: Subject, time_ns: u64, calls: Option<u64>, ranks: f64) {
        let amount = self.by_subject.entry(subject).or_default();
        amount.time_ns += time_ns as f64;
        amount.calls = calls.map(|calls| amount.calls.unwrap_or_default() + calls as f64);
        amount.ranks += ranks;
    }

    /// Call sites are of all ranks that there are; and what nobody could look through is left out.
    fn keep_most(&mut self) {
        let ranks = self.ranks as f64;
        for (_, amount) in self.by_subject.iter_mut().filter(|(subject, _)| subject.section == Section::CallSite) {
            amount.ranks = ranks;
        }
        for section in Section::ALL {
            let of_section = self.by_subject.iter().filter(|(subject, _)| subject.section == section);
            let mut times: Vec<f64> = of_section.map(|(_, amount)| amount.time_ns).collect();
            times.sort_by(|a, b| b.total_cmp(a));
            let Some(&least) = times.get(MOST_SUBJECTS) else { continue };
            self.by_subject.retain(|subject, amount| subject.section != section || amount.time_ns > least);
        }
    }

    /// What has been added since an earlier profile of the same run.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let less = |now: f64, then: f64| (now - then).max(0.0);
        let change = |(subject, now): (&Subject, &Amount)| {
            let then = earlier.by_subject.get(subject).copied().unwrap_or_default();
            let calls = now.calls.map(|calls| less(calls, then.calls.unwrap_or_default()));
            (subject.clone(), Amount { time_ns: less(now.time_ns, then.time_ns), calls, ranks: now.ranks })
        };
        let opened = |(name, now): (&String, &f64)| {
            (name.clone(), less(*now, earlier.opened.get(name).copied().unwrap_or_default()))
        };
        Self {
            by_subject: self.by_subject.iter().map(change).collect(),
            wall_ns: less(self.wall_ns, earlier.wall_ns),
            elapsed_ns: less(self.elapsed_ns, earlier.elapsed_ns),
            ranks: self.ranks,
            opened: self.opened.iter().map(opened).collect(),
        }
    }
}

/// "3", or "96-127" where ranks are looked at in groups.
fn group(rank: Option<u32>, width: u32) -> String {
    let Some(rank) = rank else { return "?".into() };
    if width == 1 {
        return rank.to_string();
    }
    let first = rank - rank % width;
    format!("{first}-{}", first.saturating_add(width - 1))
}
