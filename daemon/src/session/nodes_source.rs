//! One job on several nodes as a source: an agent observes on each, and what they find is one profile.

use std::{io, time::Duration};

use mpiprobe_model::{EndReason, Profile, analyse::merge_nodes};
use mpiprobe_report::present::say;
use mpiprobe_trace::store::{Replica, Window};
use mpiprobe_view::{Asked, Calls, KeptCalls, Stacks};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};

use super::{
    error::SessionError,
    event_loop::until,
    nodes_waits::NodesWaits,
    options::Options,
    signals::StopSignals,
    source::{NEED_WAITS, Source, StacksBy},
    trace::{DumpRequests, FlightOptions, IncomingTrace, ToDump, TraceError, TraceOptions, TraceTo, WINDOW, When},
};
use crate::nodes::{Agents, FromNode, Nodes, NodesError, other_version, say_of};
use crate::viewed::LastCalls;

/// For the first sign of every node: who has given none is named, and nobody waits for it any more.
const PATIENCE: Duration = Duration::from_secs(5);
/// Whoever sits before a view sees the first nodes after so long, and the others as they come.
const GRACE: Duration = Duration::from_millis(300);
/// For the first node that begins: a service there may have to load programs first.
const FIRST_PATIENCE: Duration = Duration::from_mins(1);
/// For the next sign of life of a node. One that loses its power says nothing any more, and whoever has started the agent there may take
/// minutes to notice.
const SILENCE: Duration = Duration::from_secs(5);
/// For the last profiles of all nodes.
const LAST_PATIENCE: Duration = Duration::from_secs(15);
/// Events that wait; nodes wait with more.
const WAITING: usize = 64;
/// For others to say that something has gone wrong with the same job: each has judged by itself, and one file of each is enough.
const JUDGING: Duration = Duration::from_secs(1);
/// Messages of one node that are shown.
const MOST_SAID: u32 = 500;

/// What has become of a node.
#[derive(Debug, PartialEq, Eq)]
enum State {
    /// It has not begun; `is_named`: and that has been said.
    Starting {
        is_named: bool,
    },
    Observing,
    Ended,
    /// Nobody is there who could be observed.
    Absent(String),
    /// It does not observe, or does not any more.
    Failed(String),
}

#[derive(Debug)]
struct Node {
    name: String,
    state: State,
    latest: Option<Profile>,
    /// It has not been shown yet.
    is_fresh: bool,
    /// When anything has come from there.
    heard: Instant,
    /// Nothing has for so long that this has been said.
    is_silent: bool,
    said: u32,
    /// What it has recorded, once anything of that has come.
    trace: Option<IncomingTrace>,
    /// Why there is no file for that.
    has_no_trace: Option<String>,
    /// What a view shows besides, as far as it does: of the last looks.
    stacks: Option<Stacks>,
    has_new_stacks: bool,
    recent: LastCalls,
    /// The latest calls, where they are wanted.
    calls: Option<Replica>,
    /// Why no more come.
    has_no_calls: Option<String>,
}

impl Node {
    /// Whether something may yet come of it that is waited for.
    fn goes_on(&self) -> bool {
        matches!(self.state, State::Starting { is_named: false }) || self.is_heard()
    }

    /// Whether it observes, as far as anybody knows.
    fn is_heard(&self) -> bool {
        self.state == State::Observing && !self.is_silent
    }

    /// When it is silent if nothing comes.
    fn is_silent_at(&self) -> Option<Instant> {
        self.is_heard().then(|| self.heard + SILENCE)
    }

    fn say(&mut self, text: &str) {
        say_of(&self.name, text, &mut self.said, MOST_SAID);
    }

    /// Keeps its latest figures, with the last calls that it has told.
    fn note(&mut self, mut profile: Profile) {
        self.recent.add_to(&mut profile);
        self.latest = Some(profile);
        self.is_fresh = true;
    }

    /// Keeps stacks. That there are none is said once.
    fn note_stacks(&mut self, stacks: Stacks) {
        if let (Stacks::Refused(why), None | Some(Stacks::Seen { .. })) = (&stacks, &self.stacks) {
            self.say(&format!("stacks: {why}"));
        }
        self.stacks = Some(stacks);
        self.has_new_stacks = true;
    }

    /// Keeps the next of its calls. Once they cannot be understood, those that are there are all.
    fn keep_calls(&mut self, message: &[u8]) {
        if let Some(Err(error)) = self.calls.as_mut().map(|calls| calls.take(message)) {
            self.calls = None;
            self.note_no_calls(error.to_string());
        }
    }

    fn note_no_calls(&mut self, why: String) {
        self.say(&format!("no more calls come from there: {why}"));
        self.has_no_calls.get_or_insert(why);
    }

    fn forget_stacks(&mut self) {
        self.stacks = None;
        self.has_new_stacks = false;
    }

    /// Keeps the next part of its trace. The file is made with the first one: of nodes that the job does not use there is none. Gives why it
    /// is written down there and then, if it says that.
    fn keep(&mut self, trace: &TraceOptions, chunk: &[u8]) -> Option<String> {
        if self.trace.is_none() && self.has_no_trace.is_none() {
            match IncomingTrace::begin(&TraceOptions { to: trace.to.of_node(&self.name), ..trace.clone() }) {
                Ok(trace) => self.trace = trace,
                Err(error) => {
                    let why = error.to_string();
                    self.say(&why);
                    self.has_no_trace = Some(why);
                }
            }
        }
        self.trace.as_mut()?.take(chunk)
    }

    /// Has what it has recorded written down, if that is kept in memory; whether it is to give what it has first.
    fn write_down(&mut self, asked: ToDump) -> bool {
        let is_heard = self.is_heard();
        match &mut self.trace {
            Some(trace) if is_heard => trace.ask(asked),
            Some(trace) => {
                trace.write_for(asked);
                false
            }
            None => false,
        }
    }

    /// Why its trace is not whole.
    fn missing_of_trace(&self) -> Option<String> {
        self.has_no_trace.clone().or_else(|| Some(self.trace.as_ref()?.trouble()?.to_owned()))
    }

    /// Why waits are not known that it has a part in.
    fn missing_of_calls(&self) -> Option<String> {
        let why = self.has_no_calls.as_ref()?;
        Some(format!("who waits for whom is not known of node {}: {why}", self.name))
    }

    /// What its part of the profile lacks.
    fn missing(&self) -> Option<String> {
        let name = &self.name;
        let first_line = |why: &str| why.lines().next().unwrap_or_default().to_owned();
        match (&self.state, &self.latest) {
            (State::Failed(why), None) => Some(format!("node {name} is not observed: {}", first_line(why))),
            (State::Failed(why), Some(_)) => Some(format!(
                "node {name} has been lost ({}): figures of its ranks are those of the last moment before that",
                first_line(why)
            )),
            (State::Starting { .. }, _) => Some(format!("node {name} has not answered")),
            (State::Observing, _) if self.is_silent => Some(format!(
                "node {name} is silent: figures of its ranks are those of the last moment that has come from there"
            )),
            (State::Observing | State::Ended | State::Absent(_), _) => None,
        }
    }
}

/// An observation on several nodes.
#[derive(Debug)]
pub(super) struct NodesSource {
    nodes: Vec<Node>,
    agents: Agents,
    events: mpsc::Receiver<(usize, FromNode)>,
    /// What is recorded, and where each node's trace goes, apart from its name.
    trace: Option<TraceOptions>,
    requests: Option<DumpRequests>,
    incident: Option<Incident>,
    interval: Duration,
    /// When nodes are named that have not begun by then; `None`: they have been, or there are none.
    patience: Option<Instant>,
    /// When all that is there is shown, whoever is late.
    due: Option<Instant>,
    is_due: bool,
    viewed: Viewed,
    /// The latest calls of each node, if they are wanted, and who looks for waits in them.
    calls: Option<Vec<KeptCalls>>,
    waits: Option<NodesWaits>,
    was_anybody_there: bool,
}

/// Something has gone wrong on a node, of which the calls of all are written down.
#[derive(Debug)]
struct Incident {
    why: String,
    /// Of which nodes they have been: those have said so by themselves.
    written: Vec<usize>,
    /// When those of the others are.
    due: Instant,
}

impl Incident {
    fn now(why: String) -> Self {
        Self { why, written: Vec::new(), due: Instant::now() + JUDGING }
    }
}

/// What a view shows besides profiles.
#[derive(Debug, Default)]
struct Viewed {
    stacks: bool,
    /// When those that have come are shown, whoever is late.
    stacks_due: Option<Instant>,
    recent_calls: bool,
}

/// What has happened.
#[derive(Debug)]
pub(super) enum Event {
    Node(usize, FromNode),
    /// Some nodes are later than others.
    Due,
    /// The same with stacks.
    StacksDue,
    /// Of some nothing has come for long.
    Silence,
    /// Some have not begun.
    Late,
    /// Somebody here wants what is kept in memory to be written down.
    AskedToDump(ToDump),
    /// It is to be written down because of what has gone wrong somewhere.
    DumpDue,
    /// What somebody waits for has not come.
    DumpLate,
}

impl NodesSource {
    /// Starts all agents, and waits until each has begun or failed, or has had its time; for a view, until some have begun.
    pub(super) async fn begin(
        nodes: &Nodes,
        Options { interval, trace, is_viewed, .. }: &Options,
        signals: &mut StopSignals,
    ) -> Result<Self, SessionError> {
        let has_waits = trace.as_ref().is_some_and(|trace| trace.waits);
        let trace = trace.clone().map(|trace| shared(trace, nodes.hosts.len()));
        let to = trace.as_ref().map_or(&TraceTo::Nobody, |trace| &trace.to);
        for name in &nodes.hosts {
            to.of_node(name).check()?;
        }
        let requests = trace.as_ref().map(DumpRequests::listen).transpose()?.flatten();
        let (to, events) = mpsc::channel(WAITING);
        let began = Instant::now();
        let node = |name: &String| Node {
            name: name.clone(),
            state: State::Starting { is_named: false },
            latest: None,
            is_fresh: false,
            heard: began,
            is_silent: false,
            said: 0,
            trace: None,
            has_no_trace: None,
            stacks: None,
            has_new_stacks: false,
            recent: LastCalls::default(),
            calls: None,
            has_no_calls: None,
        };
        let (agents, nodes) = (nodes.start(to)?, nodes.hosts.iter().map(node).collect());
        let patience = Some(began + PATIENCE);
        let mut source = Self {
            nodes,
            agents,
            events,
            interval: *interval,
            trace,
            requests,
            incident: None,
            patience,
            due: None,
            is_due: false,
            viewed: Viewed::default(),
            calls: None,
            waits: None,
            was_anybody_there: false,
        };
        if has_waits {
            source.look_for_waits().map_err(TraceError::Thread)?;
        }
        let mut first: Option<Instant> = None;
        loop {
            if source.has_begun() {
                first.get_or_insert_with(Instant::now);
            }
            if !source.nodes.iter().any(|node| matches!(node.state, State::Starting { .. })) {
                source.patience = None;
                break;
            }
            // Once some have begun, nobody who is late is waited for.
            let until = match (first, source.patience) {
                (Some(first), Some(patience)) if *is_viewed => patience.min(first + GRACE),
                (_, Some(patience)) => patience,
                (Some(_), None) => break,
                (None, None) => began + FIRST_PATIENCE,
            };
            tokio::select! {
                next = timeout_at(until, source.events.recv()) => match next {
                    Ok(Some((number, event))) => source.take(number, event),
                    Err(_) if source.patience.is_some_and(|patience| patience <= Instant::now()) => {
                        source.name_the_late();
                    }
                    Ok(None) | Err(_) => break,
                },
                () = signals.next() => return Err(NodesError::Interrupted.into()),
            }
        }
        if source.has_begun() {
            return Ok(source);
        }
        let whys = source.nodes.into_iter().map(|node| match node.state {
            State::Failed(why) | State::Absent(why) => (node.name, why),
            _ => (node.name, "it has not answered".into()),
        });
        Err(NodesError::Nobody(whys.collect()).into())
    }

    /// Has all nodes hand on their calls.
    fn look_for_waits(&mut self) -> io::Result<()> {
        let limit = WINDOW / u64::try_from(self.nodes.len()).unwrap_or(1).max(1);
        let kept = self.nodes.iter_mut().map(|node| {
            let calls = node.calls.insert(Replica::new(Window::new(limit)));
            KeptCalls { node: Some(node.name.clone()), window: calls.window() }
        });
        let kept: Vec<_> = kept.collect();
        self.waits = Some(NodesWaits::begin(kept.clone())?);
        self.calls = Some(kept);
        self.agents.ask(Asked::Calls);
        Ok(())
    }

    /// Whether any node observes, or has.
    fn has_begun(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node.state, State::Observing | State::Ended))
    }

    /// Says of nodes that have not begun that they have not.
    fn name_the_late(&mut self) {
        self.patience = None;
        for node in &mut self.nodes {
            if let State::Starting { is_named: is_named @ false } = &mut node.state {
                *is_named = true;
                let waited = PATIENCE.as_secs();
                node.say(&format!(
                    "it has not begun within {waited} s; if it does later, its ranks are shown from then on"
                ));
            }
        }
    }

    fn take(&mut self, number: usize, event: FromNode) {
        let Some(node) = self.nodes.get_mut(number) else { return };
        node.heard = Instant::now();
        if std::mem::take(&mut node.is_silent) && !matches!(event, FromNode::Lost(_)) {
            node.say("it answers again");
        }
        match event {
            FromNode::Answered { version } => {
                if let Some(text) = other_version(&version) {
                    node.say(&text);
                }
            }
            FromNode::Said(text) => {
                self.was_anybody_there |= text.starts_with("observing ") || text.starts_with("joined: ");
                node.say(&text);
            }
            FromNode::Begun => node.state = State::Observing,
            FromNode::Profile(profile) => {
                self.was_anybody_there |= !profile.ranks.is_empty();
                node.note(*profile);
                // Longer than nodes are apart that are all well.
                self.due.get_or_insert_with(|| Instant::now() + self.interval.min(Duration::from_secs(1)));
            }
            FromNode::Chunk(chunk) => {
                if let Some(why) = self.trace.as_ref().and_then(|trace| node.keep(trace, &chunk)) {
                    let why = format!("on {}: {why}", node.name);
                    self.incident.get_or_insert_with(|| Incident::now(why)).written.push(number);
                }
            }
            // What comes once nobody wants it any more was on its way.
            FromNode::Stacks(stacks) if self.viewed.stacks => {
                node.note_stacks(stacks);
                self.viewed.stacks_due.get_or_insert_with(|| Instant::now() + GRACE);
            }
            FromNode::Recent(calls) if self.viewed.recent_calls => {
                node.recent = LastCalls::of(calls);
            }
            FromNode::Stacks(_) | FromNode::Recent(_) | FromNode::Alive => {}
            FromNode::Calls(message) => node.keep_calls(&message),
            FromNode::NoCalls(why) => node.note_no_calls(why),
            FromNode::Found(_) => {
                let why = "it has looked at stacks, which it was not asked for".to_owned();
                node.say(&why);
                node.state = State::Failed(why);
            }
            FromNode::Ended => node.state = State::Ended,
            FromNode::Refused { why, is_absent: true } => {
                node.say(why.lines().next().unwrap_or_default());
                node.state = State::Absent(why);
            }
            FromNode::Refused { why, is_absent: false } => {
                node.say(&format!("not observed: {why}"));
                node.state = State::Failed(why);
            }
            FromNode::Lost(why) => {
                let what =
                    if node.latest.is_some() || node.state == State::Observing { "lost" } else { "not observed" };
                node.say(&format!("{what}: {why}"));
                if node.trace.is_some() {
                    let why = format!("node {} has been lost", node.name);
                    self.incident.get_or_insert_with(|| Incident::now(why));
                }
                node.state = State::Failed(why);
            }
        }
        if !node.is_heard()
            && let Some(trace) = &mut node.trace
        {
            trace.write_for_waiting();
        }
        let has_news = self.nodes.iter().any(|node| node.is_fresh);
        let all_have = self.nodes.iter().filter(|node| node.is_heard()).all(|node| node.is_fresh);
        self.is_due |= has_news && all_have;
    }

    /// Has what has been recorded on some of the nodes written down.
    fn write_down(&mut self, asked: ToDump, nodes: &[usize]) {
        let mut waits = false;
        for (number, asked) in nodes.iter().zip(asked.of_parts(nodes.len())) {
            waits |= self.nodes.get_mut(*number).is_some_and(|node| node.write_down(asked));
        }
        if waits {
            // What has been called by now is here before the answer.
            self.agents.ask(Asked::Dump);
        }
    }

    /// Somebody wants all of it.
    fn write_all(&mut self, asked: ToDump) {
        let nodes: Vec<_> =
            (0..).zip(&self.nodes).filter(|(_, node)| node.trace.is_some()).map(|(number, _)| number).collect();
        if nodes.is_empty() {
            asked.refuse("no call has been recorded yet: nothing is written");
        } else {
            self.write_down(asked, &nodes);
        }
    }

    /// Something has gone wrong, and everybody has had the time to say so. Of whoever has ended, and is written already, there is nothing
    /// more to write.
    fn write_incident(&mut self) {
        let Some(Incident { why, written, .. }) = self.incident.take() else { return };
        let is_left = |(number, node): &(usize, &Node)| {
            let trace = node.trace.as_ref().filter(|trace| node.is_heard() || trace.is_new());
            trace.is_some() && !written.contains(number)
        };
        let nodes: Vec<_> = (0..).zip(&self.nodes).filter(is_left).map(|(number, _)| number).collect();
        self.write_down(ToDump::because(why), &nodes);
    }

    /// Names nodes of which nothing has come for long; the others go on.
    fn name_the_lost(&mut self) {
        let now = Instant::now();
        // Before there are any figures there is no profile to say it in.
        let has_figures = self.nodes.iter().any(|node| node.latest.is_some());
        for node in &mut self.nodes {
            if node.is_silent_at().is_some_and(|at| at <= now) {
                node.is_silent = true;
                let waited = now.saturating_duration_since(node.heard).as_secs();
                node.say(&format!("silent: nothing has come from there for {waited} s; the others go on"));
                // It is in the next profile.
                if has_figures {
                    self.due.get_or_insert(now);
                }
            }
        }
    }

    /// All nodes together.
    fn merged(&self) -> Option<Profile> {
        let parts = self.nodes.iter().filter_map(|node| Some((node.name.clone(), node.latest.clone()?)));
        let mut profile = merge_nodes(parts.collect())?;
        profile.incomplete_because.extend(self.nodes.iter().filter_map(Node::missing));
        profile.incomplete_because.extend(self.nodes.iter().filter_map(Node::missing_of_trace));
        profile.incomplete_because.extend(self.nodes.iter().filter_map(Node::missing_of_calls));
        profile.complete = profile.incomplete_because.is_empty();
        profile.wait_states = self.waits.as_ref().and_then(NodesWaits::latest);
        Some(profile)
    }
}

/// What each of several nodes is to record, for all together to take as much memory as they may.
fn shared(mut trace: TraceOptions, nodes: usize) -> TraceOptions {
    if let When::Flight(FlightOptions { memory, .. }) = &mut trace.when {
        *memory /= u64::try_from(nodes).unwrap_or(1).max(1);
    }
    trace
}

/// The stacks of all nodes, or why there are none; `None`: no node has said anything.
fn together<'a>(nodes: impl Iterator<Item = (&'a str, &'a Stacks)>) -> Option<Stacks> {
    let (mut all, mut longest, mut refused) = (Vec::new(), None, Vec::new());
    for (name, of_node) in nodes {
        match of_node {
            Stacks::Seen { stacks, took } => {
                all.extend(stacks.iter().cloned());
                longest = longest.max(Some(*took));
            }
            Stacks::Refused(why) => refused.push(format!("{name}: {why}")),
        }
    }
    match longest {
        Some(took) => Some(Stacks::Seen { stacks: all, took }),
        None if refused.is_empty() => None,
        None => Some(Stacks::Refused(refused.join("; "))),
    }
}

impl Source for NodesSource {
    type Event = Event;

    async fn event(&mut self) -> Result<Event, SessionError> {
        let (due, stacks_due) = (until(self.due), until(self.viewed.stacks_due));
        let silence = until(self.nodes.iter().filter_map(Node::is_silent_at).min());
        let patience = until(self.patience);
        let dump_due = until(self.incident.as_ref().map(|incident| incident.due));
        let traces = self.nodes.iter().filter_map(|node| node.trace.as_ref());
        let dump_late = until(traces.filter_map(IncomingTrace::deadline).min());
        tokio::select! {
            // Whoever has been stopped has not read yet what has come meanwhile.
            biased;
            event = self.events.recv() => match event {
                Some((number, event)) => Ok(Event::Node(number, event)),
                // All have ended, which the goal is.
                None => std::future::pending().await,
            },
            () = due => Ok(Event::Due),
            () = stacks_due => Ok(Event::StacksDue),
            () = silence => Ok(Event::Silence),
            () = patience => Ok(Event::Late),
            asked = DumpRequests::next(&mut self.requests) => Ok(Event::AskedToDump(asked)),
            () = dump_due => Ok(Event::DumpDue),
            () = dump_late => Ok(Event::DumpLate),
        }
    }

    fn handle(&mut self, event: Event) -> Result<(), SessionError> {
        match event {
            Event::Node(number, event) => self.take(number, event),
            Event::Due => {
                self.due = None;
                self.is_due = true;
            }
            // They are taken next.
            Event::StacksDue => {}
            Event::Silence => self.name_the_lost(),
            Event::Late => self.name_the_late(),
            Event::AskedToDump(asked) => self.write_all(asked),
            Event::DumpDue => self.write_incident(),
            Event::DumpLate => {
                self.nodes.iter_mut().filter_map(|node| node.trace.as_mut()).for_each(IncomingTrace::look_after_late);
            }
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), SessionError> {
        Ok(())
    }

    fn is_here(&self) -> bool {
        false
    }

    async fn conclude(&mut self) -> Result<(), SessionError> {
        self.agents.ask(Asked::End);
        let deadline = Instant::now() + LAST_PATIENCE;
        while self.nodes.iter().any(Node::is_heard) {
            match timeout_at(deadline, self.events.recv()).await {
                Ok(Some((number, event))) => self.take(number, event),
                Ok(None) => break,
                Err(_) => {
                    let waited = LAST_PATIENCE.as_secs();
                    for node in self.nodes.iter_mut().filter(|node| node.is_heard()) {
                        let why = format!("it has not ended within {waited} s");
                        node.say(&why);
                        node.state = State::Failed(why);
                    }
                }
            }
        }
        if let Some(waits) = &mut self.waits {
            waits.finish().await;
        }
        Ok(())
    }

    fn profile(&mut self, end: Option<EndReason>) -> Result<Profile, SessionError> {
        let why = |node: &Node| match &node.state {
            State::Failed(why) | State::Absent(why) => why.clone(),
            _ => "no figures have come from there yet".into(),
        };
        let whys = || self.nodes.iter().map(|node| (node.name.clone(), why(node))).collect();
        let mut profile = self.merged().ok_or_else(|| NodesError::Nobody(whys()))?;
        profile.end = end;
        Ok(profile)
    }

    fn take_flush(&mut self) -> bool {
        let is_due = std::mem::take(&mut self.is_due);
        if is_due {
            self.due = None;
            for node in &mut self.nodes {
                node.is_fresh = false;
            }
        }
        is_due
    }

    fn show_recent_calls(&mut self, wanted: bool) {
        self.viewed.recent_calls = wanted;
        self.nodes.iter_mut().for_each(|node| node.recent = LastCalls::default());
        self.agents.ask(Asked::RecentCalls(wanted));
    }

    fn show_stacks(&mut self, wanted: bool) -> StacksBy {
        self.viewed = Viewed { stacks: wanted, stacks_due: None, ..self.viewed };
        self.nodes.iter_mut().for_each(Node::forget_stacks);
        self.agents.ask(Asked::Stacks(wanted));
        StacksBy::Source
    }

    fn take_stacks(&mut self) -> Option<Stacks> {
        let is_late = self.viewed.stacks_due? <= Instant::now();
        let all_have = || self.nodes.iter().filter(|node| node.is_heard()).all(|node| node.has_new_stacks);
        if !is_late && !all_have() {
            return None;
        }
        self.viewed.stacks_due = None;
        self.nodes.iter_mut().for_each(|node| node.has_new_stacks = false);
        let heard = self.nodes.iter().filter(|node| node.is_heard());
        together(heard.filter_map(|node| Some((node.name.as_str(), node.stacks.as_ref()?))))
    }

    fn calls(&mut self) -> Calls {
        self.calls.clone().map_or_else(|| Calls::Refused(NEED_WAITS.into()), Calls::Kept)
    }

    fn paces_itself(&self) -> bool {
        true
    }

    fn was_anybody_there(&self) -> bool {
        self.was_anybody_there
    }

    fn is_anybody_left(&mut self) -> bool {
        self.nodes.iter().any(Node::goes_on)
    }

    async fn end(mut self) {
        // All that was called has come.
        self.write_incident();
        let is_flight = self.trace.is_some_and(|trace| matches!(trace.when, When::Flight(_)));
        for node in self.nodes {
            match node.trace.and_then(IncomingTrace::finish) {
                Some(what) if is_flight => say(format_args!("{}: {what}", node.name)),
                Some(what) => say(what),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mpiprobe_stacks::{Member, Stacked};

    use super::*;

    fn seen(rank: u32, ms: u64) -> Stacks {
        let stacks = vec![Stacked { frames: Vec::new(), members: vec![Member::Rank(rank)] }];
        Stacks::Seen { stacks, took: Duration::from_millis(ms) }
    }

    #[test]
    fn stacks_of_all_nodes_that_have_some_are_shown() {
        assert!(together([].into_iter()).is_none());
        let (first, second, none) = (seen(0, 3), seen(7, 1), Stacks::Refused("no right".into()));
        let Some(Stacks::Seen { stacks, took }) = together([("a", &first), ("b", &none), ("c", &second)].into_iter())
        else {
            panic!("no stacks")
        };
        let members: Vec<Member> = stacks.into_iter().flat_map(|stack| stack.members).collect();
        assert_eq!((members, took), (vec![Member::Rank(0), Member::Rank(7)], Duration::from_millis(3)));
        let Some(Stacks::Refused(why)) = together([("a", &none), ("b", &none)].into_iter()) else { panic!("stacks") };
        assert_eq!(why, "a: no right; b: no right");
    }
}
