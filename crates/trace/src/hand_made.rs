//! Traces that tests write down by hand.
#![allow(clippy::panic, clippy::indexing_slicing, reason = "whoever writes down a test wants to know at once")]
#![allow(clippy::cast_possible_truncation, reason = "nobody writes down so many")]

use std::collections::BTreeMap;

use mpiprobe_functions::FunctionId;
use mpiprobe_model::{CallSite, SourceFrame};

use super::{
    definitions::{
        Communicator, CommunicatorId, CommunicatorKind, Definitions, Location, LocationId, Losses, Node, NodeId,
        Process, ProcessId, SiteId,
    },
    event::{Bytes, Call, Change, Event, Lock, Object, Partner, RequestChange, RequestId, Root, Target, Transfer},
    part::Part,
    source::{Parts, Trace},
    span::Span,
};

/// A small generator, the same in each run.
#[derive(Clone, Debug)]
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    /// Half of it at least; the product of two is nearer to what times are like than one.
    fn about(&mut self, ns: u64) -> u64 {
        ns / 2 + self.below(ns) * self.below(100) / 100
    }
}

/// A trace in memory, of one job with one thread in each rank to begin with.
#[derive(Clone, Debug, Default)]
pub struct HandMade {
    pub definitions: Definitions,
    /// By location, in the order of time.
    events: Vec<Vec<Event>>,
}

/// The function of a name.
///
/// # Panics
/// There is none.
pub fn function(name: &str) -> FunctionId {
    mpiprobe_functions::by_name(name).unwrap_or_else(|| panic!("no function of MPI is called {name}"))
}

/// A call of the function of a name.
pub fn call(name: &str, entry_ns: u64, return_ns: u64) -> Call {
    Call::new(function(name), entry_ns, return_ns)
}

impl HandMade {
    pub const WORLD: CommunicatorId = CommunicatorId(0);

    /// Ranks 0 to `ranks` - 1 on one node. Location n is the only thread of rank n, process n; communicator 0 is the world.
    pub fn of_ranks(ranks: u32) -> Self {
        let mut made = Self::default();
        made.definitions.nodes.push(Node { host: "node".into(), ..Node::default() });
        for rank in 0..ranks {
            made.definitions.processes.push(Process {
                node: NodeId(0),
                pid: 1000 + rank,
                job: None,
                rank: Some(rank),
                world_size: Some(ranks),
                executable: "/bin/program".into(),
                library: String::new(),
                recorded_from_ns: 0,
                began_before: false,
                ended_ns: None,
            });
            made.thread(ProcessId(rank), 1000 + rank);
        }
        made.definitions.communicators.push(Communicator {
            name: "world".into(),
            kind: CommunicatorKind::World,
            job: None,
            members: (0..ranks).map(Some).collect(),
            remote_members: Vec::new(),
            parent: None,
            was_made: false,
            neighbours: BTreeMap::new(),
        });
        made
    }

    /// Ranks exchange with six neighbours each and reduce, with times that vary as those of real codes do, and that can be true: nobody
    /// has received what was not sent, or left before all have come.
    pub fn halo(ranks: u32, steps: u64) -> Self {
        const LATENCY_NS: u64 = 1500;
        let mut made = Self::of_ranks(ranks);
        for line in 80..84 {
            made.site("exchange", "halo.c", line);
        }
        let mut numbers: Vec<Numbers> = (0..ranks).map(|rank| Numbers(u64::from(rank) + 1)).collect();
        let mut now = vec![1_000_000u64; ranks as usize];
        for step in 0..steps {
            let mut posted: Vec<Vec<Call>> = Vec::new();
            for ((rank, now), numbers) in (0..ranks).zip(&mut now).zip(&mut numbers) {
                *now += numbers.about(2_000_000);
                let calls = (0..12u32).map(|side| {
                    let offset = side % 6 / 2 + 1;
                    let is_up = side % 2 == 0;
                    // Who receives from above is sent to from below.
                    let up = (rank + offset) % ranks;
                    let down = (rank + ranks * 4 - offset) % ranks;
                    let name = if side < 6 { "MPI_Irecv" } else { "MPI_Isend" };
                    let entry = *now + numbers.about(90);
                    *now = entry + numbers.about(400);
                    let request = step * 12 + u64::from(side) + 1;
                    let made = call(name, entry, *now).at(SiteId(side / 6)).posts(request);
                    let (tag, bytes) = (side.cast_signed() % 6, 8192 << (side % 3));
                    if side < 6 {
                        made.from(if is_up { up } else { down }, tag, bytes)
                    } else {
                        made.to(if is_up { down } else { up }, tag, bytes)
                    }
                });
                posted.push(calls.collect());
            }
            let sent = |rank: u32, side: usize| posted[rank as usize][6 + side].entry_ns + LATENCY_NS;
            let waits: Vec<Call> = (0..ranks)
                .zip(&mut now)
                .zip(&mut numbers)
                .map(|((rank, now), numbers)| {
                    let entry = *now + numbers.about(100);
                    let arrivals = (0..6usize).map(|side| {
                        let offset = u32::try_from(side / 2).unwrap_or(0) + 1;
                        let from = if side % 2 == 0 { rank + offset } else { rank + ranks * 4 - offset };
                        sent(from % ranks, side)
                    });
                    *now = arrivals.fold(entry, u64::max) + numbers.about(3000);
                    let wait = call("MPI_Waitall", entry, *now).at(SiteId(2));
                    posted[rank as usize].iter().fold(wait, Call::completes)
                })
                .collect();
            let entries: Vec<u64> = now.iter().zip(&mut numbers).map(|(now, one)| now + one.about(3000)).collect();
            let last = entries.iter().copied().max().unwrap_or(0);
            for (rank, ((calls, wait), entry)) in (0..).zip(posted.into_iter().zip(waits).zip(entries)) {
                let back = last + 2000 + numbers[rank as usize].about(3000);
                now[rank as usize] = back;
                let reduce = call("MPI_Allreduce", entry, back).at(SiteId(3)).moves(8, 8);
                for call in calls.into_iter().chain([wait, reduce]) {
                    made.add(rank, call);
                }
            }
        }
        made
    }

    /// Each rank sends messages of any size and tag to some others, who take them in whichever order they come: nothing of it repeats.
    pub fn irregular(ranks: u32, steps: u64) -> Self {
        const LATENCY_NS: u64 = 1500;
        struct Message {
            from: u32,
            to: u32,
            tag: i32,
            bytes: u64,
            sent_ns: u64,
        }
        let mut made = Self::of_ranks(ranks);
        for line in 40..43 {
            made.site("work", "queue.c", line);
        }
        let mut numbers = Numbers(1);
        let mut now = vec![1_000_000u64; ranks as usize];
        let mut request = 0;
        let mut post = |mut made: Call| {
            request += 1;
            made.request = Some(RequestId(request));
            made
        };
        for _ in 0..steps {
            let (mut messages, mut open): (Vec<Message>, Vec<Vec<Call>>) = (Vec::new(), vec![Vec::new(); now.len()]);
            for (from, now) in (0..ranks).zip(&mut now) {
                *now += numbers.about(200_000);
                for _ in 0..=numbers.below(6) {
                    let to = (from + 1 + numbers.below(u64::from(ranks) - 1) as u32) % ranks;
                    let (tag, bytes) = (numbers.below(50) as i32, (1 << numbers.below(20)) + numbers.below(1000));
                    let entry = *now + numbers.about(2000);
                    *now = entry + numbers.about(600);
                    let sends = post(call("MPI_Isend", entry, *now).at(SiteId(0)).to(to, tag, bytes));
                    open[from as usize].push(sends.clone());
                    made.add(from, sends);
                    messages.push(Message { from, to, tag, bytes, sent_ns: entry });
                }
            }
            // Those of one sender come in the order in which they were sent.
            messages.sort_by_key(|message| message.sent_ns);
            let mut arrivals: Vec<Vec<u64>> = open.iter().map(|open| vec![0; open.len()]).collect();
            for Message { from, to, tag, bytes, sent_ns } in messages {
                let now = &mut now[to as usize];
                let entry = *now + numbers.about(300);
                *now = entry + numbers.about(300);
                let posted = post(call("MPI_Irecv", entry, *now).at(SiteId(1)).from(from, tag, bytes).from_any(bytes));
                made.add(to, posted.clone());
                open[to as usize].push(posted);
                arrivals[to as usize].push(sent_ns + LATENCY_NS);
            }
            for (rank, (open, arrivals)) in (0..).zip(open.iter().zip(&arrivals)) {
                for (posted, arrival) in open.iter().zip(arrivals) {
                    let now = &mut now[rank as usize];
                    let entry = *now + numbers.about(500);
                    *now = entry.max(*arrival) + numbers.about(900);
                    made.add(rank, call("MPI_Waitany", entry, *now).at(SiteId(2)).completes(posted));
                }
            }
        }
        made
    }

    /// The same with other events of each location, as they would be [added](Self::add).
    #[must_use]
    pub fn with_events(&self, mut change: impl FnMut(LocationId, &[Event]) -> Vec<Event>) -> Self {
        let mut made = Self { definitions: self.definitions.clone(), events: vec![Vec::new(); self.events.len()] };
        for (location, events) in self.definitions.location_ids().zip(&self.events) {
            for event in change(location, events) {
                match event {
                    Event::Call(call) => made.add(location.0, call),
                    Event::Phase(_) => made.push(location.0, event),
                }
            }
        }
        made
    }

    /// The same course so many times, one after the other. It is in memory once only.
    pub fn repeated(&self, times: u64) -> Repeated<'_> {
        Repeated { made: self, times }
    }

    /// The same job over several nodes, each with a clock of its own: `node` says where a rank is, `clock` what a node's clock shows at a time.
    #[must_use]
    pub fn over_nodes(&self, node: impl Fn(u32) -> u32, clock: impl Fn(u32, u64) -> u64) -> Self {
        let mut made = self.clone();
        let definitions = &mut made.definitions;
        let of = |process: &Process| node(process.rank.unwrap_or(0));
        let count = definitions.processes.iter().map(|process| of(process) + 1).max().unwrap_or(1);
        definitions.nodes = (0..count)
            .map(|node| Node { host: format!("node{node}"), boot: format!("boot{node}"), clock: Vec::new() })
            .collect();
        for process in &mut definitions.processes {
            process.node = NodeId(of(process));
        }
        for (events, location) in made.events.iter_mut().zip(&definitions.locations) {
            let node = definitions.processes[location.process.index()].node.0;
            for event in events {
                match event {
                    Event::Call(call) => {
                        call.entry_ns = clock(node, call.entry_ns);
                        call.return_ns = clock(node, call.return_ns);
                    }
                    Event::Phase(phase) => phase.at_ns = clock(node, phase.at_ns),
                }
            }
        }
        made
    }

    /// A further thread.
    pub fn thread(&mut self, process: ProcessId, tid: u32) -> LocationId {
        self.definitions.locations.push(Location {
            process,
            tid,
            began_ns: 0,
            ended_ns: None,
            losses: Losses::default(),
        });
        self.events.push(Vec::new());
        LocationId(self.events.len() as u32 - 1)
    }

    /// A communicator of these ranks of the world.
    pub fn communicator(&mut self, name: &str, members: &[u32]) -> CommunicatorId {
        self.definitions.communicators.push(Communicator {
            name: name.into(),
            kind: CommunicatorKind::Made,
            job: None,
            members: members.iter().copied().map(Some).collect(),
            remote_members: Vec::new(),
            parent: Some(Self::WORLD),
            was_made: false,
            neighbours: BTreeMap::new(),
        });
        CommunicatorId(self.definitions.communicators.len() as u32 - 1)
    }

    /// A call site in the function of a name.
    pub fn site(&mut self, function: &str, file: &str, line: u32) -> SiteId {
        let at = SourceFrame { function: Some(function.into()), file: Some(file.into()), line: Some(line) };
        let offset = self.definitions.call_sites.len() as u64;
        let site = CallSite {
            module: "build-id:00".into(),
            path: "/bin/program".into(),
            deleted: false,
            offset,
            at,
            inlined: Vec::new(),
            function_offset: None,
            text: String::new(),
        };
        self.definitions.call_sites.push(site.with_text());
        SiteId(offset as u32)
    }

    /// The next call of a location. Its number follows from those before; one that is given is how many calls are missing before it.
    ///
    /// # Panics
    /// There is no such location.
    pub fn add(&mut self, location: u32, mut call: Call) {
        let events = self.events.get_mut(location as usize).unwrap_or_else(|| panic!("no location {location}"));
        call.number += events.iter().filter_map(Event::call).next_back().map_or(0, |last| last.number + 1);
        events.push(Event::Call(call));
    }

    /// Another event of a location.
    pub fn push(&mut self, location: u32, event: Event) {
        if let Some(events) = self.events.get_mut(location as usize) {
            events.push(event);
        }
    }
}

impl Trace for HandMade {
    fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    fn span(&self) -> Span {
        let events = || self.events.iter().flatten();
        Span {
            from_ns: events().map(Event::time_ns).min().unwrap_or(0),
            until_ns: events().map(Event::end_ns).max().unwrap_or(0),
        }
    }

    fn span_of(&self, location: LocationId) -> Option<Span> {
        let events = self.events.get(location.index())?.iter();
        let from_ns = events.clone().map(Event::time_ns).min()?;
        Some(Span { from_ns, until_ns: events.map(Event::end_ns).max()? })
    }

    fn event_count(&self) -> u64 {
        self.events.iter().map(Vec::len).sum::<usize>() as u64
    }

    fn parts(&self, location: LocationId, span: Span) -> Parts<'_> {
        let events = self.events.get(location.index()).map(Vec::as_slice).unwrap_or_default();
        let part = |events: &[Event]| Ok(Part::of_events(events.iter().filter(|event| span.touches(event))));
        Box::new(events.chunks(1024).map(part).collect::<Vec<_>>().into_iter())
    }
}

/// See [`HandMade::repeated`].
#[derive(Clone, Copy, Debug)]
pub struct Repeated<'a> {
    made: &'a HandMade,
    times: u64,
}

impl Repeated<'_> {
    /// From one turn to the next.
    fn period_ns(self) -> u64 {
        self.made.span().until_ns
    }

    /// An event of a location, as it is in a turn.
    fn event(self, location: LocationId, event: &Event, turn: u64, period_ns: u64) -> Event {
        let events = self.made.events.get(location.index()).map(Vec::as_slice).unwrap_or_default();
        let calls = events.iter().filter_map(Event::call);
        let numbers = calls.clone().next_back().map_or(0, |last| last.number + 1);
        let shifted = |RequestId(request): RequestId| RequestId(request + (turn << 32));
        let mut event = event.clone();
        match &mut event {
            Event::Call(call) => {
                call.entry_ns += turn * period_ns;
                call.return_ns += turn * period_ns;
                call.number += turn * numbers;
                call.request = call.request.map(shifted);
                call.requests.iter_mut().for_each(|change| change.request = shifted(change.request));
            }
            Event::Phase(phase) => phase.at_ns += turn * period_ns,
        }
        event
    }
}

impl Trace for Repeated<'_> {
    fn definitions(&self) -> &Definitions {
        &self.made.definitions
    }

    fn span(&self) -> Span {
        let Span { from_ns, until_ns } = self.made.span();
        Span { from_ns, until_ns: until_ns * self.times }
    }

    fn span_of(&self, location: LocationId) -> Option<Span> {
        let Span { from_ns, until_ns } = self.made.span_of(location)?;
        Some(Span { from_ns, until_ns: until_ns + (self.times - 1) * self.period_ns() })
    }

    fn event_count(&self) -> u64 {
        self.made.event_count() * self.times
    }

    fn parts(&self, location: LocationId, span: Span) -> Parts<'_> {
        let events = self.made.events.get(location.index()).map(Vec::as_slice).unwrap_or_default();
        let (repeated, period_ns) = (*self, self.period_ns());
        Box::new((0..self.times).flat_map(move |turn| {
            let part = move |events: &[Event]| {
                let events: Vec<Event> =
                    events.iter().map(|event| repeated.event(location, event, turn, period_ns)).collect();
                Ok(Part::of_events(events.iter().filter(|event| span.touches(event))))
            };
            events.chunks(1024).map(part).collect::<Vec<_>>()
        }))
    }
}

/// What calls do, added one by one. Unless said otherwise, over the world.
impl Call {
    #[must_use]
    pub fn over(mut self, communicator: CommunicatorId) -> Self {
        self.operation.communicator = Some(communicator);
        self
    }

    /// About that window or file, or making it.
    #[must_use]
    pub fn on(mut self, object: Object) -> Self {
        self.operation.object = Some(object);
        self
    }

    #[must_use]
    pub fn at(mut self, site: SiteId) -> Self {
        self.call_site = Some(site);
        self
    }

    /// Sends a message.
    #[must_use]
    pub fn to(mut self, rank: u32, tag: i32, bytes: u64) -> Self {
        self.operation.communicator.get_or_insert(HandMade::WORLD);
        self.operation.send = Some(Transfer::with(rank, tag, bytes));
        self
    }

    /// Receives a message.
    #[must_use]
    pub fn from(mut self, rank: u32, tag: i32, bytes: u64) -> Self {
        self.operation.communicator.get_or_insert(HandMade::WORLD);
        self.operation.receive = Some(Transfer::with(rank, tag, bytes));
        self
    }

    /// Is to receive from anybody: with [`Self::from`], who it was.
    #[must_use]
    pub fn from_any(mut self, bytes: u64) -> Self {
        self.operation.communicator.get_or_insert(HandMade::WORLD);
        let known = self.operation.receive;
        self.operation.receive = Some(Transfer {
            any_source: true,
            any_tag: true,
            ..known.unwrap_or(Transfer {
                partner: Partner::Any,
                tag: None,
                bytes: Bytes::AtMost(bytes),
                any_source: true,
                any_tag: true,
            })
        });
        self
    }

    /// A collective: what leaves and what arrives.
    #[must_use]
    pub fn moves(mut self, sent: u64, received: u64) -> Self {
        self.operation.communicator.get_or_insert(HandMade::WORLD);
        self.operation.send = Some(Transfer::of_group(Bytes::Known(sent)));
        self.operation.receive = Some(Transfer::of_group(Bytes::Known(received)));
        self
    }

    #[must_use]
    pub fn rooted(mut self, rank: u32) -> Self {
        self.operation.communicator.get_or_insert(HandMade::WORLD);
        self.operation.root = Some(Root::Rank(rank));
        self
    }

    /// A one-sided call that moves nothing: about whose part of the window it is, and how it locks it.
    #[must_use]
    pub fn about(mut self, rank: u32, lock: Option<Lock>) -> Self {
        self.operation.communicator.get_or_insert(HandMade::WORLD);
        self.operation.target = Some(Target { partner: Partner::Rank(rank), lock });
        self
    }

    /// Gives back a request.
    #[must_use]
    pub fn posts(mut self, request: u64) -> Self {
        self.request = Some(RequestId(request));
        self
    }

    /// Completes the request that `posted` has given back.
    #[must_use]
    pub fn completes(self, posted: &Self) -> Self {
        self.changes(posted, Change::Completed)
    }

    /// Starts the persistent request that `made` has given back.
    #[must_use]
    pub fn starts(self, made: &Self) -> Self {
        self.changes(made, Change::Started)
    }

    /// # Panics
    /// `of` has given back no request.
    #[must_use]
    pub fn changes(mut self, of: &Self, change: Change) -> Self {
        let request = of.request.unwrap_or_else(|| panic!("the call has given back no request"));
        self.requests.push(RequestChange { request, change, operation: of.operation });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_order;

    #[test]
    fn calls_come_in_order_and_refer_to_whom_they_mean() {
        let mut made = HandMade::of_ranks(3);
        let pair = made.communicator("pair", &[2, 0]);
        let posted = call("MPI_Irecv", 1000, 1010).from(0, 7, 8).over(pair).posts(1);
        made.add(0, call("MPI_Isend", 2000, 2500).to(1, 7, 8).over(pair).posts(1));
        made.add(2, posted.clone());
        made.add(2, call("MPI_Wait", 1500, 2600).completes(&posted));
        let merged: Vec<_> = in_order(&made, made.definitions.location_ids(), Span::ALL)
            .map(|event| event.map(|(location, event)| (location.0, event.time_ns())).unwrap())
            .collect();
        assert_eq!(merged, [(2, 1000), (2, 1500), (0, 2000)]);
        assert_eq!(made.span(), Span { from_ns: 1000, until_ns: 2600 });
        let late = made.events(LocationId(2), Span { from_ns: 2000, until_ns: 3000 });
        let numbers: Vec<_> = late.map(|event| event.unwrap().call().unwrap().number).collect();
        assert_eq!(numbers, [1]);
        let by_rank = made.definitions.by_rank();
        let at = |from, rank| made.definitions.process_at(&by_rank, ProcessId(from), pair, rank);
        assert_eq!([at(0, 0), at(0, 1), at(0, 2)], [Some(ProcessId(2)), Some(ProcessId(0)), None]);
    }

    #[test]
    fn ranks_of_the_other_group_are_meant_in_an_inter_communicator() {
        let mut made = HandMade::of_ranks(4);
        let inter = made.communicator("inter", &[0, 1]);
        made.definitions.communicators[inter.index()].remote_members = vec![Some(3), Some(2)];
        let by_rank = made.definitions.by_rank();
        let at = |from, rank| made.definitions.process_at(&by_rank, ProcessId(from), inter, rank).map(|id| id.0);
        assert_eq!([at(0, 0), at(1, 1), at(2, 0), at(3, 1)], [Some(3), Some(2), Some(0), Some(1)]);
    }
}
