//! What every rank does, by several looks a moment apart: the answer to "why does it not go on?", as far as stacks tell it.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    ranks::{Member, RankSet},
    seen::Seen,
    thread_report::{Doing, ThreadReport},
    tree::Tree,
};

/// Of larger jobs it is not told who was not looked at.
const MOST_RANKS: u32 = 1 << 20;

/// How the whole looks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Some ranks have gone on in the program while they were looked at: nothing hangs.
    GoesOn,
    /// All ranks are in MPI, or have ended, or are stopped, and none has gone on.
    NobodyGoesOn,
    /// Some ranks have not gone on; others are in the program's own code, and what comes of that is not known.
    SomeAreOutside,
    /// There was one look only, or not enough could be seen.
    NotKnown,
}

/// Several looks, in short.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Report {
    pub verdict: Verdict,
    /// How often it was looked, and over how long.
    pub looks: usize,
    pub over_ms: u64,
    /// Whether threads were stopped for it.
    pub stopped: bool,
    /// Why ranks do not go on, as far as that is certain; empty until somebody has put threads and their calls together.
    pub causes: Vec<Cause>,
    pub threads: Vec<ThreadReport>,
    /// Threads that were left out, by process: there are more than the limits permit.
    pub left_out: Vec<(Member, usize)>,
    /// Threads that could not be looked at, and why.
    pub refused: Vec<(Member, u32, String)>,
    /// Ranks of the job that nobody has looked at: they are on other nodes, or were not asked for.
    #[serde(skip_serializing_if = "RankSet::is_empty")]
    pub not_looked_at: RankSet,
    /// Where it was looked, if that was on nodes by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeReport>,
    pub tree: Tree,
    /// Those that were looked at.
    #[serde(skip)]
    members: RankSet,
}

/// One of the nodes of a job.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NodeReport {
    pub node: String,
    /// Those that were looked at there.
    pub ranks: RankSet,
    /// Why nobody was; `null` if they were.
    pub not_looked_at: Option<String>,
}

/// Something that keeps ranks from going on.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Cause {
    pub kind: CauseKind,
    /// Of a circle in its order.
    pub ranks: Vec<Member>,
    /// Those that wait for them.
    pub others: RankSet,
    /// The same in words, over several lines.
    pub text: String,
}

/// What kind of thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// Each of the ranks waits for the next one, the last for the first.
    Circle,
    /// Each of the ranks waits for another one of them; of some it is not known for which.
    Knot,
    /// They are in one collective call and mean different roots.
    DifferentRoots,
    /// Others wait for this one, and it is not known to wait for anybody in MPI.
    WaitedFor,
    /// All ranks of the job are in one collective call, and none has returned: what is missing is none of their calls.
    AllAreThere,
}

impl Report {
    /// Of one job, by what was seen of it on each node that it was looked at on. Of more than `depth` functions the innermost are left out.
    pub fn of(parts: Vec<Seen>, depth: Option<usize>) -> Self {
        let mut report = Self {
            looks: parts.iter().map(|part| part.looks).min().unwrap_or(0),
            over_ms: parts.iter().map(|part| part.over_ms).min().unwrap_or(0),
            stopped: parts.iter().any(|part| part.stopped),
            ..Self::default()
        };
        let mut size = parts.first().and_then(|part| part.size);
        for part in parts {
            // Those who disagree on it do not know it.
            size = size.filter(|size| part.size == Some(*size));
            if let Some(node) = &part.node {
                let ranks = part.members.clone();
                report.nodes.push(NodeReport { node: node.clone(), ranks, not_looked_at: None });
            }
            report.members.extend(part.members.iter());
            for stack in part.stacks {
                for member in stack.members {
                    report.tree.add(member, stack.frames.iter().cloned(), depth);
                }
            }
            report.threads.extend(part.threads);
            report.left_out.extend(part.left_out);
            report.refused.extend(part.refused);
        }
        report.threads.sort_by_key(|thread| thread.member);
        let mut of_process: HashMap<(Option<Arc<str>>, u32), usize> = HashMap::new();
        for thread in &report.threads {
            *of_process.entry((thread.node.clone(), thread.pid)).or_default() += 1;
        }
        for thread in &mut report.threads {
            let number = of_process.get(&(thread.node.clone(), thread.pid));
            thread.is_one_of_several = thread.pid != 0 && number.is_some_and(|number| *number > 1);
        }
        report.tree.sort();
        let all = (0..size.unwrap_or(0).min(MOST_RANKS)).map(Member::Rank);
        report.not_looked_at = all.filter(|member| !report.members.contains(*member)).collect();
        report.verdict = verdict(&report.threads, report.looks);
        report
    }

    /// Adds a node on which nobody was looked at, and why.
    pub fn add_silent(&mut self, node: String, why: String) {
        self.nodes.push(NodeReport { node, ranks: RankSet::default(), not_looked_at: Some(why) });
    }

    /// Whether everybody was looked at who was to be.
    pub fn is_whole(&self) -> bool {
        self.left_out.is_empty()
            && self.refused.is_empty()
            && self.nodes.iter().all(|node| node.not_looked_at.is_none())
    }

    /// The answer in words, and then the tree.
    pub fn text(&self) -> String {
        let mut lines: Vec<String> = self.causes.iter().map(|cause| cause.text.clone()).collect();
        lines.push(self.summary());
        let mut groups: Vec<(Vec<&ThreadReport>, RankSet)> = Vec::new();
        let mut place: HashMap<String, usize> = HashMap::new();
        for thread in &self.threads {
            let found = *place.entry(thread.words(None)).or_insert_with(|| {
                groups.push((Vec::new(), RankSet::default()));
                groups.len() - 1
            });
            if let Some((threads, ranks)) = groups.get_mut(found) {
                threads.push(thread);
                ranks.insert(thread.member);
            }
        }
        for (threads, ranks) in &groups {
            let Some((first, rest)) = threads.split_first() else { continue };
            // What differs from rank to rank is not said here.
            let called = first.called.as_deref().filter(|_| rest.iter().all(|thread| thread.called == first.called));
            lines.push(format!("  {} {}", subject(ranks), first.words(called)));
        }
        for (member, left) in &self.left_out {
            lines.push(format!(
                "  of {}, {left} threads were not looked at: there are too many",
                subject(&[*member].into_iter().collect())
            ));
        }
        let mut reasons: BTreeMap<&str, RankSet> = BTreeMap::new();
        for (member, _, reason) in &self.refused {
            reasons.entry(reason).or_default().insert(*member);
        }
        for (reason, ranks) in reasons {
            lines.push(format!("  {}: threads could not be looked at: {reason}", subject(&ranks)));
        }
        for node in &self.nodes {
            if let Some(why) = &node.not_looked_at {
                lines.push(format!(
                    "  node {} was not looked at: {}",
                    node.node,
                    why.lines().next().unwrap_or_default()
                ));
            }
        }
        if !self.not_looked_at.is_empty() {
            let verb = if self.not_looked_at.len() == 1 { "was" } else { "were" };
            lines.push(format!("  {} {verb} not looked at", subject(&self.not_looked_at)));
        }
        if self.stopped {
            lines.push("  each thread was stopped for a moment: timed waits may have been interrupted".to_owned());
        }
        lines.push(String::new());
        lines.push(self.tree.text());
        lines.join("\n")
    }

    fn summary(&self) -> String {
        let seconds = || format!("{:.1} s", std::time::Duration::from_millis(self.over_ms).as_secs_f64());
        match self.verdict {
            Verdict::GoesOn => {
                let gone = self.threads.iter().filter(|thread| thread.gone_on == Some(true));
                let ranks: RankSet = gone.map(|thread| thread.member).collect();
                let verb = if ranks.len() == 1 { "has" } else { "have" };
                format!("Nothing hangs: {} {verb} gone on within {}", subject(&ranks).to_lowercase(), seconds())
            }
            Verdict::NobodyGoesOn if self.not_looked_at.is_empty() => {
                format!("No rank has gone on for {} at least:", seconds())
            }
            Verdict::NobodyGoesOn => format!("No rank that was looked at has gone on for {} at least:", seconds()),
            Verdict::SomeAreOutside => {
                let held = self.threads.iter().filter(|thread| matches!(thread.doing, Doing::Mpi { .. }));
                let ranks: RankSet = held.map(|thread| thread.member).collect();
                if ranks.is_empty() {
                    return "No rank is in MPI:".to_owned();
                }
                let verb = if ranks.len() == 1 { "waits" } else { "wait" };
                format!("{} {verb} in MPI for {} at least; others are not in MPI:", subject(&ranks), seconds())
            }
            Verdict::NotKnown => "Whether anything hangs is not known:".to_owned(),
        }
    }
}

impl Default for Report {
    fn default() -> Self {
        Self {
            verdict: Verdict::NotKnown,
            looks: 0,
            over_ms: 0,
            stopped: false,
            causes: Vec::new(),
            threads: Vec::new(),
            left_out: Vec::new(),
            refused: Vec::new(),
            not_looked_at: RankSet::default(),
            nodes: Vec::new(),
            tree: Tree::default(),
            members: RankSet::default(),
        }
    }
}

/// "Rank 3", "Ranks 0-2,7".
pub fn subject(ranks: &RankSet) -> String {
    let first = ranks.iter().next();
    match (ranks.len(), first) {
        (1, Some(Member::Pid(pid))) => format!("Process {pid}"),
        (1, _) => format!("Rank {ranks}"),
        (_, Some(Member::Pid(_))) => format!("Processes {}", ranks.to_string().replace("pid ", "")),
        _ => format!("Ranks {ranks}"),
    }
}

/// Whether somebody has gone on, and who has not.
fn verdict(threads: &[ThreadReport], looks: usize) -> Verdict {
    let in_mpi: HashSet<_> =
        threads.iter().filter(|thread| matches!(thread.doing, Doing::Mpi { .. })).map(ThreadReport::process).collect();
    let is_outside = |thread: &ThreadReport| match &thread.doing {
        // Its process is in MPI by another thread.
        Doing::SystemCall { waits_within: Some(_), .. } => !in_mpi.contains(&thread.process()),
        doing => matches!(doing, Doing::Computes { .. } | Doing::SystemCall { .. } | Doing::Waits { .. }),
    };
    if looks < 2 || threads.is_empty() {
        Verdict::NotKnown
    } else if threads.iter().any(|thread| thread.gone_on == Some(true) && (!is_outside(thread) || thread.left_mpi)) {
        Verdict::GoesOn
    } else if threads.iter().any(|thread| is_outside(thread) && thread.left_mpi) {
        Verdict::NotKnown
    } else if threads.iter().any(is_outside) {
        Verdict::SomeAreOutside
    } else if threads.iter().all(|thread| thread.gone_on == Some(false)) {
        Verdict::NobodyGoesOn
    } else {
        Verdict::NotKnown
    }
}
