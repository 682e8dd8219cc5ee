//! Agents on many nodes: who talks to whom.
//!
//! Each connection is a process of the launcher's and a few descriptors, so that one mpiprobe cannot have any number of them. Above
//! [`Nodes::fan_out`] nodes they are cut into groups of about as many as there are groups. The first node of each is talked to; its agent
//! starts those of the others, in the same way, and passes on what they say.
//!
//! A tree must not lose more than a star would. Who does not answer soon, is of another version, or ends has nobody (more) below it: the
//! next node of the group takes its place. A node that another one cannot reach is tried from here. Only nodes that had begun already are
//! lost with the one by which they were reached.

use std::{collections::BTreeMap, time::Duration};

use mpiprobe_view::Asked;
use serde::{Deserialize, Serialize};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, sleep_until},
};

use super::{
    Means, NodesError, Request,
    connection::{Connection, Heard},
    words::{Nature, Word, addressed},
};
use crate::viewed;

/// For the first word of a node that is to start others. Where it comes later, others are started without it. For trials another one can
/// be set.
const FIRST_WORD: Duration = Duration::from_millis(1500);
const FIRST_WORD_FOR_TRIALS: &str = "MPIPROBE_FIRST_WORD_MS";
/// Lines that wait; agents wait with more.
const WAITING: usize = 64;

/// Nodes that an agent is to start others on: by the numbers that they have for whoever asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Below {
    pub(crate) nodes: Vec<(usize, String)>,
    pub(crate) fan_out: usize,
}

/// All agents, which end when this is dropped.
#[derive(Debug)]
pub(crate) struct Agents {
    ask: mpsc::UnboundedSender<Asked>,
    task: JoinHandle<()>,
}

impl Agents {
    /// Starts an agent on each node. Whatever one says, and that it could not be started, is sent with the node's number.
    pub(crate) fn start<W: Word>(
        below: Below,
        means: Means,
        request: Request,
        to: mpsc::Sender<(usize, W)>,
    ) -> Result<Self, NodesError> {
        let set = std::env::var(FIRST_WORD_FOR_TRIALS).ok().and_then(|text| text.parse().ok());
        let first_word = set.map_or(FIRST_WORD, |ms: u64| Duration::from_millis(ms.min(600_000)));
        Self::start_by(below, means, request, (first_word, to))
    }

    fn start_by<W: Word>(
        below: Below,
        means: Means,
        request: Request,
        (first_word, to): (Duration, mpsc::Sender<(usize, W)>),
    ) -> Result<Self, NodesError> {
        if let Some((_, host)) = below.nodes.first() {
            // What is wrong with the command itself is told at once.
            means.command(host, true)?;
        }
        let (ask, wishes) = mpsc::unbounded_channel();
        let (heard_to, heard) = mpsc::channel(WAITING);
        let fan_out = below.fan_out.max(1);
        let groups = groups(below.nodes.len(), fan_out);
        let mut numbers = below.nodes.iter().map(|(number, _)| *number).collect::<Vec<_>>().into_iter();
        let groups: Vec<Vec<usize>> = groups.into_iter().map(|size| numbers.by_ref().take(size).collect()).collect();
        let node = |name| Node { name, is_heard: false, is_over: false };
        let nodes = below.nodes.into_iter().map(|(number, name)| (number, node(name))).collect();
        let (branches, is_ending, shown) = (Vec::new(), false, Vec::new());
        let tree = Tree { means, request, fan_out, first_word, nodes, branches, is_ending, shown, heard_to, to };
        Ok(Self { ask, task: tokio::spawn(tree.grow(groups, heard, wishes)) })
    }

    /// Asks all for something, those too that begin later: the last profile, or the last look; what a view shows besides profiles.
    pub(crate) fn ask(&self, wish: Asked) {
        // They may have ended by themselves.
        let _ = self.ask.send(wish);
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How many nodes each group has: as few connections as there are nodes in a group, and never more than are permitted.
fn groups(nodes: usize, fan_out: usize) -> Vec<usize> {
    if nodes <= fan_out {
        return vec![1; nodes];
    }
    let root = nodes.isqrt();
    let groups = (root + usize::from(root * root < nodes)).clamp(1, fan_out);
    let (each, more) = (nodes / groups, nodes % groups);
    (0..groups).map(|group| each + usize::from(group < more)).collect()
}

#[derive(Debug)]
struct Node {
    name: String,
    is_heard: bool,
    is_over: bool,
}

/// A connection, and who is reached by it.
#[derive(Debug)]
struct Branch {
    /// The first one is who is talked to.
    numbers: Vec<usize>,
    connection: Option<Connection>,
    /// The first word of who is to start others is awaited.
    until: Option<Instant>,
}

#[derive(Debug)]
struct Tree<W> {
    means: Means,
    request: Request,
    fan_out: usize,
    first_word: Duration,
    nodes: BTreeMap<usize, Node>,
    branches: Vec<Branch>,
    /// They are asked to end: nobody is started any more.
    is_ending: bool,
    /// What a view shows besides profiles: whoever begins later is asked for it, too.
    shown: Vec<Asked>,
    heard_to: mpsc::Sender<(usize, Heard)>,
    to: mpsc::Sender<(usize, W)>,
}

impl<W: Word> Tree<W> {
    /// Until all is over, or nobody hears it.
    async fn grow(
        mut self,
        groups: Vec<Vec<usize>>,
        mut heard: mpsc::Receiver<(usize, Heard)>,
        mut wishes: mpsc::UnboundedReceiver<Asked>,
    ) {
        for group in groups {
            self.open(group).await;
        }
        while self.branches.iter().any(|branch| branch.connection.is_some()) && !self.to.is_closed() {
            let late = self.branches.iter().filter_map(|branch| branch.until).min();
            let is_late = async {
                match late {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some((branch, heard)) = heard.recv() => match heard {
                    Heard::Line(line) => self.take(branch, line).await,
                    Heard::Over(why) => self.lose(branch, &why).await,
                },
                () = is_late => self.go_on_without_the_late().await,
                Some(wish) = wishes.recv(), if !self.is_ending => match wish {
                    Asked::End => self.ask_to_end(),
                    wish => self.show(wish),
                },
            }
        }
    }

    /// Starts the agent of the first of some nodes, which is to start the others.
    async fn open(&mut self, numbers: Vec<usize>) {
        let Some(&first) = numbers.first().filter(|_| !self.is_ending) else { return };
        let Some(node) = self.nodes.get(&first) else { return };
        let number = self.branches.len();
        match self.means.command(&node.name, self.nodes.len() > self.fan_out) {
            Ok(command) => {
                let connection = Some(Connection::open(command, number, self.heard_to.clone()));
                let until = (numbers.len() > 1).then(|| Instant::now() + self.first_word);
                self.branches.push(Branch { numbers, connection, until });
                if until.is_none() {
                    self.order(number, Vec::new());
                }
            }
            Err(error) => {
                for number in numbers {
                    self.tell(number, W::lost(error.to_string())).await;
                }
            }
        }
    }

    /// Says what is wanted to the agent of a branch.
    fn order(&mut self, branch: usize, below: Vec<(usize, String)>) {
        let Some(branch) = self.branches.get_mut(branch) else { return };
        branch.until = None;
        let below = (!below.is_empty()).then_some(Below { nodes: below, fan_out: self.fan_out });
        let request = Request { below, ..self.request.clone() };
        if let (Some(connection), Ok(line)) = (&branch.connection, serde_json::to_vec(&request)) {
            connection.order(line);
            for wish in &self.shown {
                connection.order(viewed::word(*wish).into());
            }
        }
    }

    /// Tells all who have been asked to observe what a view shows besides profiles, or does not any more.
    fn show(&mut self, wish: Asked) {
        let ends = match wish {
            Asked::Stacks(false) => Some(Asked::Stacks(true)),
            Asked::RecentCalls(false) => Some(Asked::RecentCalls(true)),
            _ => None,
        };
        self.shown.retain(|shown| *shown != wish && Some(*shown) != ends);
        if ends.is_none() {
            self.shown.push(wish);
        }
        let asked = self.branches.iter().filter(|branch| branch.until.is_none());
        for connection in asked.filter_map(|branch| branch.connection.as_ref()) {
            connection.order(viewed::word(wish).into());
        }
    }

    /// By a line; an input that ends would do as well, but a launcher may end with it.
    fn ask_to_end(&mut self) {
        self.is_ending = true;
        for branch in &mut self.branches {
            if branch.until.take().is_some() {
                // It has not been asked for anything yet.
                branch.connection = None;
            } else if let Some(connection) = &branch.connection {
                connection.order(viewed::word(Asked::End).into());
            }
        }
    }

    /// Somebody of a branch says something.
    async fn take(&mut self, number: usize, line: Vec<u8>) {
        let Some(branch) = self.branches.get(number).filter(|branch| branch.connection.is_some()) else { return };
        let Some(&own) = branch.numbers.first() else { return };
        let (of, line) = match addressed(&line) {
            Some((of, said)) => (of, said.to_vec()),
            None => (own, line),
        };
        if !branch.numbers.contains(&of) {
            return self.lose(number, "it speaks for a node that it was not to reach").await;
        }
        let is_awaited = of == own && branch.until.is_some();
        if self.nodes.get(&of).is_none_or(|node| node.is_over) {
            return;
        }
        let word = match W::understood(line) {
            Ok(word) => word,
            Err(why) if of == own => return self.lose(number, &why).await,
            Err(why) => W::lost(why),
        };
        match word.nature() {
            Nature::Answered(version) if is_awaited => {
                if version == env!("CARGO_PKG_VERSION") {
                    let names = branch.numbers.iter().skip(1);
                    let names = names.filter_map(|below| Some((*below, self.nodes.get(below)?.name.clone())));
                    let below = names.collect();
                    self.order(number, below);
                } else {
                    self.start_others(number).await;
                }
            }
            Nature::Lost if of != own && self.nodes.get(&of).is_some_and(|node| !node.is_heard) => {
                if let Some(branch) = self.branches.get_mut(number) {
                    branch.numbers.retain(|below| *below != of);
                }
                return self.open(vec![of]).await;
            }
            Nature::Answered(_) | Nature::Lost | Nature::Last | Nature::Other => {}
        }
        self.tell(of, word).await;
        self.close_if_over(number);
    }

    /// Says something of a node to whoever asks.
    async fn tell(&mut self, number: usize, word: W) {
        if let Some(node) = self.nodes.get_mut(&number) {
            node.is_heard = true;
            node.is_over |= matches!(word.nature(), Nature::Last | Nature::Lost);
        }
        // Who does not hear it any more is seen before the next word.
        let _ = self.to.send((number, word)).await;
    }

    fn close_if_over(&mut self, number: usize) {
        if let Some(branch) = self.branches.get_mut(number)
            && branch.numbers.iter().all(|number| self.nodes.get(number).is_none_or(|node| node.is_over))
        {
            branch.connection = None;
        }
    }

    /// A branch is over before all have said their last word.
    async fn lose(&mut self, number: usize, why: &str) {
        let Some(branch) = self.branches.get_mut(number) else { return };
        branch.connection = None;
        branch.until = None;
        let numbers = std::mem::take(&mut branch.numbers);
        let Some(&own) = numbers.first() else { return };
        let name = self.nodes.get(&own).map_or_else(String::new, |node| node.name.clone());
        let mut others = Vec::new();
        for number in numbers {
            let Some(node) = self.nodes.get(&number).filter(|node| !node.is_over) else { continue };
            if number == own {
                self.tell(number, W::lost(why.to_owned())).await;
            } else if node.is_heard {
                self.tell(number, W::lost(format!("it was reached by {name}, which has been lost"))).await;
            } else {
                others.push(number);
            }
        }
        self.open(others).await;
    }

    /// Somebody is not to start others after all.
    async fn start_others(&mut self, number: usize) {
        let Some(branch) = self.branches.get_mut(number) else { return };
        let others = branch.numbers.split_off(branch.numbers.len().min(1));
        self.order(number, Vec::new());
        self.open(others).await;
    }

    async fn go_on_without_the_late(&mut self) {
        let now = Instant::now();
        let late =
            self.branches.iter().enumerate().filter(|(_, branch)| branch.until.is_some_and(|until| until <= now));
        for number in late.map(|(number, _)| number).collect::<Vec<_>>() {
            self.start_others(number).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::{FromNode, Kind, Launcher};

    /// Agents of several kinds, by the beginning of the node's name. Who is asked to start others says all that they would.
    const AGENT: &str = r#"
case $0 in
gone*) exit 7;;
mute*) while read -r line; do :; done; exit;;
old*) echo '{"version":"0.0"}';;
*) echo '{"version":"VERSION"}';;
esac
read -r request
for number in $(printf %s "$request" | sed 's/.*"nodes":\[\(.*\)\].*/\1/; t; d' | grep -o '\[[0-9]*' | tr -d '['); do
case $0 in
liar*) echo '{"from":99,"line":{"ended":true}}';;
lame*) echo "{\"from\":$number,\"line\":{\"lost\":\"no way\"}}";;
*) echo "{\"from\":$number,\"line\":{\"said\":\"by $0\"}}"; echo "{\"from\":$number,\"line\":{\"ended\":true}}";;
esac
done
case $0 in hears*) while read -r wish && [ "$wish" != end ]; do echo "{\"said\":\"$wish\"}"; done;; esac
echo '{"ended":true}'
"#;

    /// Of the program that says all this.
    fn means() -> Means {
        let script = AGENT.replace("VERSION", env!("CARGO_PKG_VERSION"));
        let launcher = Launcher::Command(vec!["sh".into(), "-c".into(), script, "{host}".into()]);
        Means { launcher, program: "mpiprobe".into(), slurm_job: None, verbose: 0 }
    }

    fn below(hosts: &[&str]) -> Below {
        Below { nodes: hosts.iter().map(|host| (*host).to_owned()).enumerate().collect(), fan_out: 1 }
    }

    /// What is said of each node in the end, and by whom, if one connection is permitted.
    fn said(hosts: &[&str]) -> Vec<String> {
        let request = Request::new("pid-of=x".into(), "auto".into(), Kind::Observation);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut said = vec![String::new(); hosts.len()];
        runtime.block_on(async {
            let (to, mut words) = mpsc::channel(1);
            let first_word = Duration::from_millis(if hosts.contains(&"mute") { 50 } else { 600_000 });
            let agents = Agents::start_by(below(hosts), means(), request, (first_word, to)).unwrap();
            let mut awaited = hosts.iter().filter(|host| **host != "mute").count();
            while awaited > 0 {
                let (number, word): (usize, FromNode) = words.recv().await.unwrap();
                awaited -= usize::from(matches!(word.nature(), Nature::Last | Nature::Lost));
                let text = match word {
                    FromNode::Said(text) => text + ", ",
                    FromNode::Answered { .. } => "itself, ".into(),
                    FromNode::Lost(why) => "lost: ".to_owned() + &why,
                    other => format!("{other:?}"),
                };
                said[number].push_str(&text);
            }
            drop(agents);
        });
        said
    }

    #[test]
    fn whoever_does_not_start_others_is_no_loss_for_them() {
        assert_eq!(said(&["a", "b", "c"]), ["itself, Ended", "by a, Ended", "by a, Ended"]);
        let gone = "lost: the launcher has ended (exit status: 7) and said nothing";
        assert_eq!(said(&["gone", "b", "c"]), [gone, "itself, Ended", "by b, Ended"]);
        assert_eq!(said(&["old", "b", "c"]), ["itself, Ended", "itself, Ended", "by b, Ended"]);
        let late = said(&["mute", "b", "c"]);
        // It may be late itself, so that the next one is started from here.
        assert!(late[..2] == ["", "itself, Ended"] && late[2].ends_with(", Ended"), "{late:?}");
        assert_eq!(said(&["lame", "b", "c"]), ["itself, Ended"; 3]);
        assert_eq!(said(&["lame", "gone", "c"]), ["itself, Ended", gone, "itself, Ended"]);
        let liar = "itself, lost: it speaks for a node that it was not to reach";
        assert_eq!(said(&["liar", "b"]), [liar, "itself, Ended"]);
    }

    #[test]
    fn wishes_come_to_whoever_has_been_asked_to_observe_and_whoever_is_later() {
        let request = Request::new("pid-of=x".into(), "auto".into(), Kind::Observation);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (to, mut words) = mpsc::channel(1);
            let first_word = Duration::from_mins(10);
            let agents = Agents::start_by(below(&["hears", "b"]), means(), request, (first_word, to)).unwrap();
            // The first one before it has said its first word, after which it is asked to observe.
            for wish in [Asked::Stacks(true), Asked::Stacks(false)] {
                agents.ask(wish);
                loop {
                    let (number, word): (usize, FromNode) = words.recv().await.unwrap();
                    assert!(!matches!(word, FromNode::Lost(_)), "{number}: {word:?}");
                    if matches!(word, FromNode::Said(text) if number == 0 && text == viewed::word(wish)) {
                        break;
                    }
                }
            }
            agents.ask(Asked::End);
            while !matches!(words.recv().await.unwrap(), (0, FromNode::Ended)) {}
        });
    }

    #[test]
    fn groups_are_about_as_many_as_they_are_large() {
        assert_eq!(groups(3, 200), [1, 1, 1]);
        assert_eq!(groups(0, 200), [0; 0]);
        assert_eq!(groups(7, 2), [4, 3]);
        assert_eq!(groups(3, 1), [3]);
        for (nodes, most) in [(201, 15), (1_000, 32), (10_000, 100), (100_000, 200)] {
            let groups = groups(nodes, 200);
            assert_eq!((groups.len(), groups.iter().sum::<usize>()), (most, nodes));
            assert!(groups.iter().max().unwrap() - groups.iter().min().unwrap() <= 1);
        }
    }
}
