//! One job that hangs on several nodes: an agent looks on each, and what they have seen is put together.
//!
//! Ranks wait for each other only if they do so at one time. Nobody looks for the last time before everybody has looked for the first
//! time, and [`OVER`] has gone by since: whoever has not gone on between the two has not gone on in that time, whatever the nodes' clocks say.
//! A message that is on its way between two nodes arrives within it, as it does between two processes of one.

use std::time::Duration;

use mpiprobe_model::analyse::merge_nodes;
use mpiprobe_report::present::recording::{FrameError, is_possible, value_of_json};
use mpiprobe_stacks::{RankSet, Report};
use serde::Deserialize;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};

use super::{Asked, Explained, Found, HangError, JobHang, OVER, causes};
use crate::nodes::{FromNode, Nodes, NodesError, other_version, say_of};

/// For the first look of every node: who has not looked by then is named, and nobody waits for it any more.
const PATIENCE: Duration = Duration::from_secs(10);
/// For the first node that looks: it may have to load programs, or to find many processes.
const FIRST_PATIENCE: Duration = Duration::from_mins(1);
/// For what all nodes have found.
const LAST_PATIENCE: Duration = Duration::from_mins(1);
/// Events that wait; nodes wait with more.
const WAITING: usize = 64;
/// Messages of one node that are shown.
const MOST_SAID: u32 = 100;

/// What has become of a node.
enum State {
    Starting,
    /// It has looked once.
    Looking,
    Found(Vec<Found>),
    /// Nobody is there who could be looked at.
    Absent(String),
    Failed(String),
}

struct Node {
    name: String,
    state: State,
    said: u32,
}

/// What a node has found, as its line has it.
#[derive(Deserialize)]
struct Line {
    found: Vec<Found>,
}

/// The answer for all nodes together.
pub async fn explain_nodes(nodes: &Nodes, asked: &Asked) -> Result<Explained, HangError> {
    let (to, mut events) = mpsc::channel(WAITING);
    let began = Instant::now();
    let agents = nodes.start(to)?;
    let node = |name: &String| Node { name: name.clone(), state: State::Starting, said: 0 };
    let mut all: Vec<Node> = nodes.hosts.iter().map(node).collect();
    let is_starting = |node: &Node| matches!(node.state, State::Starting);
    let is_looking = |node: &Node| matches!(node.state, State::Looking);
    listen(&mut all, &mut events, began + PATIENCE, &is_starting).await;
    if !all.iter().any(is_looking) {
        let nobody_looks = |node: &Node| is_starting(node);
        listen_until(&mut all, &mut events, began + FIRST_PATIENCE, &nobody_looks, &is_looking).await;
    }
    let late = format!("it has not looked within {} s", PATIENCE.as_secs());
    for node in all.iter_mut().filter(|node| is_starting(node)) {
        node.fail(late.clone());
    }
    listen(&mut all, &mut events, Instant::now() + OVER, &is_looking).await;
    agents.ask(mpiprobe_view::Asked::End);
    listen(&mut all, &mut events, Instant::now() + LAST_PATIENCE, &is_looking).await;
    let late = format!("it has not ended within {} s", LAST_PATIENCE.as_secs());
    for node in all.iter_mut().filter(|node| is_looking(node)) {
        node.fail(late.clone());
    }
    Ok(Explained { schema: Explained::SCHEMA, jobs: together(all, asked.depth)? })
}

/// Takes what nodes say as long as one `is_awaited`, until it is time.
async fn listen(
    all: &mut [Node],
    events: &mut mpsc::Receiver<(usize, FromNode)>,
    until: Instant,
    is_awaited: &dyn Fn(&Node) -> bool,
) {
    listen_until(all, events, until, is_awaited, &|_| false).await;
}

/// The same, or until one `is_enough`.
async fn listen_until(
    all: &mut [Node],
    events: &mut mpsc::Receiver<(usize, FromNode)>,
    until: Instant,
    is_awaited: &dyn Fn(&Node) -> bool,
    is_enough: &dyn Fn(&Node) -> bool,
) {
    while all.iter().any(is_awaited) && !all.iter().any(is_enough) {
        let Ok(Some((number, event))) = timeout_at(until, events.recv()).await else { return };
        if let Some(node) = all.get_mut(number) {
            node.take(event);
        }
    }
}

impl Node {
    fn take(&mut self, event: FromNode) {
        let is_over = matches!(self.state, State::Found(_) | State::Absent(_) | State::Failed(_));
        match event {
            FromNode::Answered { version } => {
                if let Some(text) = other_version(&version) {
                    self.say(&text);
                }
            }
            FromNode::Said(text) => self.say(&text),
            FromNode::Alive => {}
            // It has been given up, or has found something already.
            _ if is_over => {}
            FromNode::Begun => self.state = State::Looking,
            FromNode::Found(line) => match found(&line) {
                Ok(found) => self.state = State::Found(found),
                Err(error) => self.fail(format!("what it has found cannot be understood: {error}")),
            },
            FromNode::Refused { why, is_absent: true } => {
                self.say(why.lines().next().unwrap_or_default());
                self.state = State::Absent(why);
            }
            FromNode::Refused { why, is_absent: false } | FromNode::Lost(why) => self.fail(why),
            FromNode::Ended => self.fail("it has ended without a word of what it has found".to_owned()),
            FromNode::Profile(_)
            | FromNode::Chunk(_)
            | FromNode::Stacks(_)
            | FromNode::Recent(_)
            | FromNode::Calls(_)
            | FromNode::NoCalls(_) => {
                self.fail("it observes, and does not look: it is of an earlier version".to_owned());
            }
        }
    }

    fn fail(&mut self, why: String) {
        self.say(&format!("not looked at: {why}"));
        self.state = State::Failed(why);
    }

    fn say(&mut self, text: &str) {
        say_of(&self.name, text, &mut self.said, MOST_SAID);
    }
}

/// Somebody else's word: nothing in it can drive a terminal, or is of ranks that MPI cannot have.
fn found(line: &[u8]) -> Result<Vec<Found>, FrameError> {
    let Line { found } = value_of_json(line)?;
    if found.iter().all(|one| is_possible(&one.profile)) { Ok(found) } else { Err(FrameError::Impossible) }
}

/// All of them, job by job.
fn together(all: Vec<Node>, depth: Option<usize>) -> Result<Vec<JobHang>, HangError> {
    let mut jobs: Vec<(String, Vec<(String, Found)>)> = Vec::new();
    let (mut silent, mut whys) = (Vec::new(), Vec::new());
    for node in all {
        match node.state {
            State::Found(found) => {
                for one in found {
                    match jobs.iter_mut().find(|(job, _)| *job == one.job) {
                        Some((_, parts)) => parts.push((node.name.clone(), one)),
                        None => jobs.push((one.job.clone(), vec![(node.name.clone(), one)])),
                    }
                }
            }
            State::Absent(why) => whys.push((node.name, why)),
            State::Failed(why) => {
                silent.push((node.name.clone(), why.clone()));
                whys.push((node.name, why));
            }
            // They have been given up.
            State::Starting | State::Looking => {}
        }
    }
    if jobs.is_empty() {
        return Err(NodesError::Nobody(whys).into());
    }
    Ok(jobs.into_iter().map(|(job, parts)| merged(job, parts, &silent, depth)).collect())
}

fn merged(name: String, parts: Vec<(String, Found)>, silent: &[(String, String)], depth: Option<usize>) -> JobHang {
    let (mut seen, mut profiles, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    let mut members = RankSet::default();
    for (node, Found { seen: part, mut profile, .. }) in parts {
        if let Some(member) = part.members.iter().find(|member| member.is_rank() && members.contains(*member)) {
            left_out.push((node, format!("rank {member} is on another node, too: both names are of one")));
            continue;
        }
        members.extend(part.members.iter());
        for rank in &mut profile.ranks {
            rank.host.clone_from(&node);
        }
        seen.push(part.on(&node));
        profiles.push((node, profile));
    }
    let mut report = Report::of(seen, depth);
    if let Some(profile) = merge_nodes(profiles) {
        causes::explain(&mut report, &profile);
    }
    for (node, why) in left_out.into_iter().chain(silent.iter().cloned()) {
        report.add_silent(node, why);
    }
    JobHang { name, report }
}

#[cfg(test)]
mod tests {
    use mpiprobe_model::{OpenCallInfo, sample};
    use mpiprobe_stacks::{Certainty, Doing, Label, Member, MpiCall, Seen, Stacked, ThreadReport, Verdict, Way};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const ESCAPE: char = '\u{1b}';

    /// A rank in a call, as its node sees it.
    fn thread(rank: u32, function: &str) -> ThreadReport {
        let function = mpiprobe_functions::by_name(function).unwrap();
        let call = MpiCall { function, site: None, from_python: false, words: Vec::new() };
        ThreadReport {
            member: Member::Rank(rank),
            node: None,
            pid: 100 + rank % 2,
            tid: 100 + rank % 2,
            doing: Doing::Mpi { call, arguments: Vec::new() },
            called: Some(function.function().name.to_owned()),
            gone_on: Some(false),
            polls: false,
            exchanges: false,
            left_mpi: false,
            cpu_percent: Some(98),
            other: None,
            is_one_of_several: false,
            way: Way::Copied,
            certainty: Certainty::Exact,
        }
    }

    /// Two ranks of a job of `size`, whose processes have the same numbers on each node: the first receives from `from`, the other waits
    /// for all.
    fn node(first: u32, from: u32, size: u32) -> Found {
        let threads = vec![thread(first, "MPI_Recv"), thread(first + 1, "MPI_Barrier")];
        let stacks = threads.iter().map(|thread| Stacked {
            frames: vec![Label::new("main", Some("solve.c:7".into()))],
            members: vec![thread.member],
        });
        let members = threads.iter().map(|thread| thread.member).collect();
        let seen = Seen { size: Some(size), looks: 11, stacks: stacks.collect(), members, threads, ..Seen::default() };
        let mut ranks = sample::ranks(size);
        ranks.retain(|rank| rank.rank.is_some_and(|rank| rank / 2 == first / 2));
        for rank in &mut ranks {
            let number = rank.rank.unwrap();
            rank.pid = 100 + number % 2;
            let call = if number == first {
                sample::receive(from, 1)
            } else {
                sample::open("MPI_Barrier", sample::over_world())
            };
            rank.open_calls = vec![OpenCallInfo { tid: rank.pid, ..call }];
        }
        Found { job: "job".into(), seen, profile: sample::profile(ranks) }
    }

    /// As it comes from a node.
    fn told(of: &Found) -> Found {
        let line = serde_json::to_vec(&json!({ "found": [of] })).unwrap();
        found(&line).unwrap().remove(0)
    }

    fn parts(nodes: [(&str, Found); 2]) -> Vec<(String, Found)> {
        nodes.into_iter().map(|(name, found)| (name.to_owned(), told(&found))).collect()
    }

    #[test]
    fn ranks_of_two_nodes_wait_for_each_other() {
        let hang = merged("job".into(), parts([("n1", node(0, 2, 4)), ("n2", node(2, 0, 4))]), &[], None);
        let text = hang.report.text();
        assert_eq!(hang.report.verdict, Verdict::NobodyGoesOn, "{text}");
        assert!(text.starts_with("Deadlock: 0 → 2 → 0\n"), "{text}");
        for line in ["  Rank 0 (n1) in MPI_Recv, ", "  Rank 2 (n2) in MPI_Recv, ", "[0-3]  main (solve.c:7)"] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(hang.report.is_whole() && hang.report.not_looked_at.is_empty(), "{text}");
    }

    #[test]
    fn who_was_not_looked_at_is_named_and_nothing_is_concluded_of_them() {
        let silent = [("n3".to_owned(), "no route\nto it".to_owned())];
        let hang = merged("job".into(), parts([("n1", node(0, 5, 6)), ("n2", node(2, 4, 6))]), &silent, None);
        let text = hang.report.text();
        assert!(text.contains("node n3 was not looked at: no route\n"), "{text}");
        assert!(text.contains("Ranks 4,5 were not looked at"), "{text}");
        assert!(!text.contains("Deadlock") && !hang.report.is_whole(), "{text}");
    }

    #[test]
    fn one_node_under_two_names_is_one() {
        let hang = merged("job".into(), parts([("n1", node(0, 1, 2)), ("other", node(0, 1, 2))]), &[], None);
        let text = hang.report.text();
        assert!(text.contains("node other was not looked at: rank 0 is on another node, too"), "{text}");
        assert_eq!(hang.report.threads.len(), 2, "{text}");
    }

    /// Invariant BOUNDED-READS.
    #[test]
    fn what_could_drive_a_terminal_or_cannot_be_is_not_believed() {
        let mut one = node(0, 1, 2);
        one.seen.threads[0].called = Some("\u{1b}[2J".into());
        one.seen.stacks[0].frames[0].function = "\u{9b}31m".into();
        let text = merged("job".into(), parts([("n1", one), ("n2", node(2, 0, 4))]), &[], None).report.text();
        assert!(!text.contains(['\u{1b}', '\u{9b}']), "{text}");
        let mut impossible = json!({ "found": [node(0, 1, 2)] });
        impossible["found"][0]["profile"]["ranks"][0]["rank"] = u32::MAX.into();
        assert!(found(&serde_json::to_vec(&impossible).unwrap()).is_err());
    }

    proptest! {
        #[test]
        fn never_panics(line: Vec<u8>, place in 0_usize..4096, byte: u8) {
            let _ = found(&line);
            let mut line = serde_json::to_vec(&json!({ "found": [node(0, 1, 2)] })).unwrap();
            let place = place % line.len();
            line[place] = byte;
            if let Ok(all) = found(&line) {
                let parts = all.into_iter().map(|one| ("n1".to_owned(), one)).collect();
                let shown = merged("job".into(), parts, &[], Some(3)).report.text();
                prop_assert!(!shown.contains(ESCAPE));
            }
        }
    }
}
