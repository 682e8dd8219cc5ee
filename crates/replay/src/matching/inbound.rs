//! Messages to one process: those from one process over one communicator with one tag are received in the order in which they were sent
//! (MPI-4.0, section 3.5).

use std::collections::VecDeque;

use hashbrown::HashMap;
use mpiprobe_trace::{CommunicatorId, LocationId, ProcessId};

use super::{
    call::{CallAt, Completion, End, Loose, Outcome, Sent, Unmatched},
    meaning::{ChannelKey, ChannelNames, Known},
    order::{CLOCKS_NS, Gone, Order, Over, that_may_wait},
    slab::{Key, Slab},
};
use crate::slices::Slice;

/// Gaps of one end of a channel that are told apart.
const MOST_GAPS: usize = 1 << 12;
/// Ends of one channel that may wait for the other one.
const MOST_OF_CHANNEL: usize = 1 << 17;

/// What comes from other processes, in the order of each of them.
#[derive(Clone, Copy, Debug)]
pub(super) enum FromOther {
    Sent {
        channel: u32,
        sent: Sent,
    },
    /// A send was cancelled before it could be received.
    Cancelled {
        channel: u32,
        key: Key,
    },
    /// It is not known whether something was sent.
    Doubtful {
        channel: u32,
        gap: Gap,
    },
}

/// What has become of a process's send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    pub(super) sender: ProcessId,
    pub(super) key: Key,
    pub(super) what: Meeting,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Meeting {
    /// Its receive may be found later than usual: it is not sure which one that is.
    Doubtful,
    /// The receive that this call has posted.
    Receive(CallAt),
    /// A receive that it had met has got another message.
    NotYet,
    /// Nobody will know.
    Never,
}

/// An end of a message, posted by a call that others of the same process may overlap.
#[derive(Clone, Copy, Debug)]
struct Recent {
    location: LocationId,
    return_ns: u64,
    key: Key,
}

/// A span in which calls of a process are missing, or in which it is not known what they have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    /// What begins before this has its place in the order.
    pub(super) from_ns: u64,
    /// What begins from here on is known, but not how many there were before it. [`STILL_OPEN`]: it goes on.
    pub(super) until_ns: u64,
}

/// It is not known yet when a gap ends.
pub(super) const STILL_OPEN: u64 = u64::MAX;

/// The one end of a channel, or the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChannelEnd {
    Source,
    Receiver,
}

/// What comes after the first gaps of a channel, of the sender and of the receiver, and before the next ones.
#[derive(Clone, Copy, Debug)]
struct Between {
    /// Whether the first gap of each is one of them.
    are_first: (bool, bool),
    from_ns: (u64, u64),
    until_ns: (u64, u64),
}

/// Gaps of one process, in the order of time.
#[derive(Debug, Default)]
struct Gaps(VecDeque<Gap>);

#[derive(Debug)]
struct Channel {
    key: ChannelKey,
    /// Of one of the two, there are none, but for those that come after a gap.
    sends: VecDeque<Sent>,
    receives: VecDeque<Key>,
    /// How many there have been.
    sent: u64,
    received: u64,
    /// Of the sender and the receiver. What comes after one is not matched until it is known how many messages were on their way.
    source_gaps: Gaps,
    own_gaps: Gaps,
    /// What is found out about that; `None`: nothing yet.
    order: Option<Order>,
    /// That it was found out, and by how much the clocks of the two may be off against each other, ns.
    found_out: Option<u64>,
    /// Probes, by the number of the message that they have found.
    probes: Vec<(u64, u32)>,
    /// The place of the last message that a receive has told to be its.
    last_done: Option<(u64, u64, u16)>,
    /// The last sends, and the last receives.
    recent: (Vec<Recent>, Vec<Recent>),
}

#[derive(Clone, Copy, Debug)]
struct Receive {
    posted: CallAt,
    /// Once it is known.
    channel: Option<u32>,
    send: Option<Sent>,
    completed: Option<Completion>,
    /// The other end will not be found.
    is_lost: bool,
    /// When it is complete, nobody will know.
    is_released: bool,
    /// Another thread has posted one on the same channel meanwhile: which of them came first is not known.
    is_concurrent: bool,
}

/// A receive that was posted after one from anybody, of which it is not known yet which channel it concerns.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    key: Key,
    /// `None`: not known yet; what is known is the rest.
    channel: Option<u32>,
    communicator: CommunicatorId,
    source: Option<ProcessId>,
    tag: Option<i32>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Inbound {
    process: ProcessId,
    channels: Vec<Channel>,
    /// How many of them are not sure.
    unsure: usize,
    receives: Slab<Receive>,
    waiting: Vec<Waiting>,
    /// The last gaps of the process itself, and of others.
    own_gap: Option<Gap>,
    source_gaps: HashMap<ProcessId, Gap>,
    /// What receives were to receive of which nobody knows what it was: they may have been of channels that have no number yet.
    given_up: Vec<(Waiting, Gap)>,
    /// What probes have found, and whose message it is if it may yet be known, by their number.
    found: HashMap<u32, (Option<ProcessId>, Option<CallAt>)>,
    probes: u32,
    /// Since the last time that somebody took them.
    pub(super) met: Vec<Met>,
    /// What has come of receives that were told to be known later, by [`Completion::held`].
    pub(super) late: Vec<(u64, Option<End>)>,
    /// Receives at a time.
    limit: usize,
    pub(super) counts: Unmatched,
    pub(super) loose: Loose,
}

impl Inbound {
    pub(super) fn new(process: ProcessId, limit: usize) -> Self {
        Self {
            process,
            channels: Vec::new(),
            unsure: 0,
            receives: Slab::default(),
            waiting: Vec::new(),
            own_gap: None,
            source_gaps: HashMap::new(),
            given_up: Vec::new(),
            found: HashMap::new(),
            probes: 0,
            met: Vec::new(),
            late: Vec::new(),
            limit,
            counts: Unmatched::default(),
            loose: Loose::default(),
        }
    }

    /// Makes room for channels that have got numbers meanwhile. If one of the two processes had called MPI before anything is known, messages
    /// may have been on their way.
    pub(super) fn grow(&mut self, names: &ChannelNames, known: &Known) {
        for key in names.since(self.process, self.channels.len()) {
            let is_late = (known.began_before(self.process) || known.began_before(key.source))
                && !known.is_from_its_beginning(key.communicator);
            let before = is_late.then_some(Gap { from_ns: 0, until_ns: 0 });
            let mut channel = Channel {
                key,
                sends: VecDeque::new(),
                receives: VecDeque::new(),
                sent: 0,
                received: 0,
                source_gaps: Gaps(self.source_gaps.get(&key.source).copied().into_iter().collect()),
                own_gaps: Gaps(before.into_iter().chain(self.own_gap).collect()),
                order: None,
                found_out: None,
                probes: Vec::new(),
                last_done: None,
                recent: (Vec::new(), Vec::new()),
            };
            let given_up = self.given_up.iter().filter(|(one, _)| one.may_be(key.communicator, key.source, key.tag));
            for &(_, gap) in given_up {
                channel.own_gaps.add(gap);
            }
            self.unsure += usize::from(!channel.is_sure());
            self.channels.push(channel);
        }
    }

    /// Messages that nobody has received, and receives that have got none.
    pub(super) fn waiting(&self) -> (u64, u64) {
        let sends = self.channels.iter().map(|channel| channel.sends.len() as u64).sum();
        let posted = self.channels.iter().map(|channel| channel.receives.len() as u64).sum::<u64>();
        (sends, posted + self.waiting.len() as u64)
    }

    /// Whether a receive that was completed at that time has what it will get: its message, or there is nobody who may say more of it.
    pub(super) fn is_decided(&mut self, key: Key, at_ns: u64, slice: &Slice) -> bool {
        let Some(&mut Receive { channel, posted, send: None, is_lost: false, .. }) = self.receives.get_mut(key) else {
            return true;
        };
        match channel.and_then(|channel| self.channels.get(channel as usize)) {
            // Whether it is the next one is not sure before all have met.
            Some(channel) if !channel.own_gaps.are_after(posted.entry_ns) => at_ns < slice.until_ns,
            Some(channel) => at_ns < slice.until_of(channel.key.source),
            // It has to wait for another receive of the process.
            None => true,
        }
    }

    /// The same of what a probe has found.
    pub(super) fn is_probe_decided(&self, number: u32, at_ns: u64, slice: &Slice) -> bool {
        match self.found.get(&number) {
            Some(&(Some(source), None)) => at_ns < slice.until_of(source),
            _ => true,
        }
    }

    /// Posts a receive on a channel.
    pub(super) fn post(&mut self, channel: u32, posted: CallAt) -> Key {
        let key = self.receives.insert(Receive::new(posted));
        self.place(channel, key);
        self.keep_limit(posted.entry_ns);
        key
    }

    /// Posts one of which it is not known yet which channel it concerns.
    pub(super) fn post_any(
        &mut self,
        communicator: CommunicatorId,
        source: Option<ProcessId>,
        tag: Option<i32>,
        posted: CallAt,
    ) -> Key {
        let key = self.receives.insert(Receive::new(posted));
        self.waiting.push(Waiting { key, channel: None, communicator, source, tag });
        self.keep_limit(posted.entry_ns);
        key
    }

    /// It is the next one on the channel, unless one that was posted before may be.
    fn place(&mut self, channel: u32, key: Key) {
        let Some(ChannelKey { source, communicator, tag, .. }) = self.key_of(channel) else { return };
        let is_before = |one: &Waiting| one.channel.is_none() && one.may_be(communicator, source, tag);
        if self.waiting.iter().any(is_before) {
            self.waiting.push(Waiting {
                key,
                channel: Some(channel),
                communicator,
                source: Some(source),
                tag: Some(tag),
            });
        } else {
            self.join(channel, key);
        }
    }

    fn key_of(&self, channel: u32) -> Option<ChannelKey> {
        self.channels.get(channel as usize).map(|channel| channel.key)
    }

    /// It is known now which channel a receive from anybody concerns.
    pub(super) fn resolve(&mut self, key: Key, channel: u32) {
        if let Some(one) = self.waiting.iter_mut().find(|one| one.key == key && one.channel.is_none()) {
            one.channel = Some(channel);
            self.place_waiting();
        }
    }

    /// It will never be known: what it may have taken is not known either.
    pub(super) fn give_up(&mut self, key: Key, at_ns: u64) {
        let Some(index) = self.waiting.iter().position(|one| one.key == key && one.channel.is_none()) else { return };
        let one = self.waiting.remove(index);
        let Some(receive) = self.receives.remove(key) else { return };
        self.loose.receive(&receive.posted);
        let gap = Gap { from_ns: receive.posted.entry_ns, until_ns: at_ns };
        match self.given_up.iter_mut().find(|(other, _)| other.is_like(&one)) {
            Some((_, known)) => *known = known.with(gap),
            None => self.given_up.push((one, gap)),
        }
        for index in 0..self.channels.len() {
            let concerns = self
                .channels
                .get(index)
                .is_some_and(|channel| one.may_be(channel.key.communicator, channel.key.source, channel.key.tag));
            if concerns {
                self.break_channel(index, gap);
            }
        }
        self.place_waiting();
    }

    /// Whether it is known which channel a receive concerns.
    pub(super) fn is_named(&mut self, key: Key) -> bool {
        self.receives.get_mut(key).is_some_and(|receive| receive.channel.is_some())
            || self.waiting.iter().any(|one| one.key == key && one.channel.is_some())
    }

    pub(super) fn is_posted_before(&mut self, key: Key, at_ns: u64) -> bool {
        self.receives.get_mut(key).is_some_and(|receive| receive.posted.entry_ns < at_ns)
    }

    /// It will never be known whether a receive whose channel is known has got a message.
    pub(super) fn doubt(&mut self, key: Key, at_ns: u64) {
        let Some(receive) = self.receives.remove(key) else { return };
        self.loose.receive(&receive.posted);
        self.counts.unsure += 1;
        if let Some(sent) = receive.send {
            self.loose.send(&sent.call);
            self.counts.unsure += 1;
        }
        let place = self.waiting.iter().position(|one| one.key == key);
        let waiting = place.and_then(|place| self.waiting.remove(place).channel);
        if let Some(index) = waiting.or(receive.channel).map(|channel| channel as usize) {
            if let Some(channel) = self.channels.get_mut(index) {
                channel.receives.retain(|&one| one != key);
                channel.order = None;
            }
            self.break_channel(index, Gap { from_ns: receive.posted.entry_ns, until_ns: at_ns });
        }
        self.place_waiting();
    }

    /// The program has given up a receive, which gets its message all the same.
    pub(super) fn release(&mut self, key: Key) {
        let Some(receive) = self.receives.get_mut(key) else { return };
        receive.is_released = true;
        if receive.is_lost {
            self.counts.unsure += 1;
            self.receives.remove(key);
        } else if let Some(sent) = receive.send {
            self.meet_released(key, &sent);
        }
    }

    /// Both ends are there, but no call that has completed the receive.
    fn meet_released(&mut self, key: Key, sent: &Sent) {
        if let Some(receive) = self.receives.remove(key) {
            self.counts.matched += 1;
            self.loose.send(&sent.call);
            self.loose.receive(&receive.posted);
        }
    }

    /// Places those that no receive before them may take the place of any more.
    fn place_waiting(&mut self) {
        let mut index = 0;
        while let Some(&one) = self.waiting.get(index) {
            let key = one.channel.and_then(|channel| Some((channel, self.key_of(channel)?)));
            let Some((channel, ChannelKey { source, communicator, tag, .. })) = key else {
                index += 1;
                continue;
            };
            let before = self.waiting.iter().take(index);
            let is_before = |other: &Waiting| match other.channel {
                None => other.may_be(communicator, source, tag),
                Some(other) => other == channel,
            };
            if before.clone().any(is_before) {
                index += 1;
            } else {
                self.waiting.remove(index);
                self.join(channel, one.key);
            }
        }
    }

    fn join(&mut self, channel: u32, key: Key) {
        let index = channel as usize;
        if let Some(receive) = self.receives.get_mut(key) {
            receive.channel = Some(channel);
        }
        self.note_concurrent_receive(index, key);
        let Some(channel) = self.channels.get_mut(index) else { return };
        channel.received += 1;
        channel.receives.push_back(key);
        if channel.receives.len() > MOST_OF_CHANNEL {
            let at_ns = self.receives.get_mut(key).map_or(0, |receive| receive.posted.entry_ns);
            self.forget_all(index, at_ns);
        } else {
            self.meet(index);
        }
    }

    /// A receive was cancelled.
    pub(super) fn cancel(&mut self, key: Key, at_ns: u64) {
        let Some(receive) = self.receives.remove(key) else { return };
        self.loose.receive(&receive.posted);
        if let Some(index) = self.waiting.iter().position(|one| one.key == key) {
            self.waiting.remove(index);
            self.place_waiting();
            return;
        }
        let Some(index) = receive.channel.map(|channel| channel as usize) else { return };
        if let Some(sent) = receive.send {
            self.pass_on(index, sent, Gap { from_ns: receive.posted.entry_ns, until_ns: at_ns });
        } else if let Some(channel) = self.channels.get_mut(index)
            && let Some(place) = channel.receives.iter().position(|&one| one == key)
        {
            channel.receives.remove(place);
            channel.received -= 1;
            channel.order = None;
        }
    }

    /// What a receive had met that has got nothing is the next one's, whose message is that of the one after it, and so on.
    fn pass_on(&mut self, index: usize, first: Sent, gap: Gap) {
        let Some(channel) = self.channels.get_mut(index) else { return };
        if channel.last_done > Some(first.place()) {
            // One of those has told already what it had got.
            self.loose.send(&first.call);
            self.counts.contradictions += 1;
            self.break_channel(index, gap);
            return;
        }
        let mut others: Vec<&mut Receive> = self.receives.iter_mut().filter(|one| one.is_of(index)).collect();
        others.retain(|receive| receive.send.is_some_and(|sent| sent.place() > first.place()));
        others.sort_by_key(|receive| receive.send.map(|sent| sent.place()));
        let mut left = first;
        let sender = channel.key.source;
        for receive in others {
            self.met.push(Met { sender, key: left.key, what: Meeting::Receive(receive.posted) });
            left = receive.send.replace(left).unwrap_or(left);
        }
        self.met.push(Met { sender, key: left.key, what: Meeting::NotYet });
        channel.sends.push_front(left);
        channel.received -= 1;
        channel.order = None;
        self.meet(index);
    }

    /// A call has sent over a channel. Others of the process that had not returned may be its equals.
    fn note_concurrent_send(&mut self, index: usize, sent: &mut Sent) {
        let Some(channel) = self.channels.get_mut(index) else { return };
        let others = overlapping(&mut channel.recent.0, &sent.call, sent.key);
        sent.is_concurrent = !others.is_empty();
        for other in others {
            let is_it = |sent: &&mut Sent| sent.key == other;
            if let Some(sent) = self.channels.get_mut(index).and_then(|one| one.sends.iter_mut().find(is_it)) {
                sent.is_concurrent = true;
            } else {
                let met = self.receives.iter_mut().filter(|one| one.is_of(index));
                met.filter_map(|one| one.send.as_mut()).filter(is_it).for_each(|sent| sent.is_concurrent = true);
            }
        }
    }

    /// The same of receives that were posted.
    fn note_concurrent_receive(&mut self, index: usize, key: Key) {
        let Some(posted) = self.receives.get_mut(key).map(|receive| receive.posted) else { return };
        let Some(channel) = self.channels.get_mut(index) else { return };
        let mut all = overlapping(&mut channel.recent.1, &posted, key);
        if all.is_empty() {
            return;
        }
        all.push(key);
        for key in all {
            if let Some(receive) = self.receives.get_mut(key) {
                receive.is_concurrent = true;
            }
        }
    }

    /// A probe has found the first message on a channel that was not received. Gives the number by which to ask who has sent it.
    pub(super) fn probe(&mut self, channel: u32) -> u32 {
        self.probes = self.probes.wrapping_add(1);
        let number = self.probes;
        let (mut found, mut source) = (None, None);
        if let Some(channel) = self.channels.get_mut(channel as usize).filter(|one| one.is_sure()) {
            source = Some(channel.key.source);
            let first = channel.sent - channel.sends.len() as u64;
            let place = channel.received.checked_sub(first).and_then(|place| usize::try_from(place).ok());
            found = place.and_then(|place| channel.sends.get(place)).map(|sent| sent.call);
            if found.is_none() {
                channel.probes.push((channel.received, number));
            }
        }
        self.found.insert(number, (source, found));
        number
    }

    pub(super) fn found(&mut self, number: u32) -> Option<CallAt> {
        self.found.remove(&number)?.1
    }

    /// Takes in what has come from another process.
    pub(super) fn take(&mut self, from: FromOther) {
        match from {
            FromOther::Sent { channel, mut sent } => {
                let index = channel as usize;
                self.note_concurrent_send(index, &mut sent);
                let Some(channel) = self.channels.get_mut(index) else { return };
                if !channel.is_sure() {
                    self.met.push(Met { sender: channel.key.source, key: sent.key, what: Meeting::Doubtful });
                }
                let number = channel.sent;
                channel.sent += 1;
                if !channel.probes.is_empty() && channel.source_gaps.are_after(sent.call.entry_ns) {
                    channel.probes.retain(|&(of, probe)| {
                        if of == number
                            && let Some((_, found)) = self.found.get_mut(&probe)
                        {
                            *found = Some(sent.call);
                        }
                        of > number
                    });
                }
                channel.sends.push_back(sent);
                if channel.sends.len() > MOST_OF_CHANNEL {
                    self.forget_all(index, sent.call.entry_ns);
                } else {
                    self.meet(index);
                }
            }
            FromOther::Cancelled { channel, key } => {
                let Some(channel) = self.channels.get_mut(channel as usize) else { return };
                match channel.sends.iter().position(|sent| sent.key == key) {
                    Some(place) => {
                        channel.sends.remove(place);
                        channel.sent -= 1;
                        channel.order = None;
                    }
                    None if channel.is_sure() => self.counts.contradictions += 1,
                    None => {}
                }
            }
            FromOther::Doubtful { channel, gap } => {
                let Some(channel) = self.channels.get_mut(channel as usize) else { return };
                self.unsure += usize::from(channel.add_gap(ChannelEnd::Source, gap, &mut self.met));
            }
        }
    }

    /// Calls of another process are not known.
    pub(super) fn break_from(&mut self, source: ProcessId, gap: Gap) {
        self.source_gaps.insert(source, gap);
        for channel in self.channels.iter_mut().filter(|channel| channel.key.source == source) {
            self.unsure += usize::from(channel.add_gap(ChannelEnd::Source, gap, &mut self.met));
        }
    }

    /// Nobody will say any more from whom those receives were that are open.
    pub(super) fn give_up_open(&mut self, at_ns: u64) {
        while let Some(key) = self.waiting.iter().find(|one| one.channel.is_none()).map(|one| one.key) {
            self.give_up(key, at_ns);
        }
    }

    /// Calls of the process itself are not known.
    pub(super) fn break_all(&mut self, gap: Gap) {
        self.own_gap = Some(gap);
        (0..self.channels.len()).for_each(|index| self.break_channel(index, gap));
    }

    /// It is not known how many of the process's receives from a gap on were of this channel.
    fn break_channel(&mut self, index: usize, gap: Gap) {
        let Some(channel) = self.channels.get_mut(index) else { return };
        self.unsure += usize::from(channel.add_gap(ChannelEnd::Receiver, gap, &mut self.met));
    }

    /// Too much waits: nothing until then will be matched.
    fn forget_all(&mut self, index: usize, at_ns: u64) {
        self.break_channel(index, Gap { from_ns: 0, until_ns: at_ns });
        self.forget(index, at_ns, at_ns);
    }

    /// Forgets sends and receives until then.
    fn forget(&mut self, index: usize, sent_ns: u64, posted_ns: u64) {
        let Some(channel) = self.channels.get_mut(index) else { return };
        channel.order = None;
        let before = channel.sends.len();
        let (loose, met, sender) = (&mut self.loose, &mut self.met, channel.key.source);
        channel.sends.retain(|sent| {
            let is_left = sent.call.entry_ns > sent_ns;
            if !is_left {
                loose.send(&sent.call);
                met.push(Met { sender, key: sent.key, what: Meeting::Never });
            }
            is_left
        });
        self.counts.unsure += (before - channel.sends.len()) as u64;
        for key in std::mem::take(&mut channel.receives) {
            let is_before = self.receives.get_mut(key).is_none_or(|receive| receive.posted.entry_ns <= posted_ns);
            if is_before {
                self.lose(key);
            } else if let Some(channel) = self.channels.get_mut(index) {
                channel.receives.push_back(key);
            }
        }
    }

    fn lose(&mut self, key: Key) {
        let loose = &mut self.loose;
        let is_complete = self.receives.get_mut(key).is_some_and(|receive| {
            loose.receive(&receive.posted);
            receive.is_lost = true;
            receive.completed.is_some() || receive.is_released
        });
        if is_complete {
            self.counts.unsure += 1;
            let completed = self.receives.remove(key).and_then(|receive| receive.completed);
            self.late.extend(completed.map(|completion| (completion.held, None)));
        }
    }

    /// Finds out, by receives that are over, how many messages were on their way where that is not known.
    ///
    /// `whole_until_ns`: by process, until when no calls are missing besides those that are known to be.
    pub(super) fn find_order(&mut self, whole_until_ns: &[u64], known: &Known) {
        if self.unsure == 0 {
            return;
        }
        let until_of = |process: ProcessId| whole_until_ns.get(process.index()).copied().unwrap_or(0);
        let own_ns = until_of(self.process);
        for index in 0..self.channels.len() {
            let Some(source) = self.channels.get(index).map(|channel| channel.key.source) else { continue };
            let until_ns = (until_of(source), own_ns);
            while self.look(index, until_ns, known) {}
            if let Some(channel) = self.channels.get_mut(index) {
                channel.unite_gaps(until_ns.0.min(until_ns.1));
            }
        }
    }

    /// Looks at the next receive of a channel that is over; `false`: there is none, or nothing has to be found out. `known_ns`: so far the
    /// source and the process itself are known.
    fn look(&mut self, index: usize, known_ns: (u64, u64), known: &Known) -> bool {
        let Some(channel) = self.channels.get_mut(index).filter(|channel| !channel.is_sure()) else { return false };
        let source = channel.key.source;
        let between = channel.between();
        let mut is_before = |key: &&Key| {
            let receive = self.receives.get_mut(**key);
            receive.is_none_or(|receive| receive.posted.entry_ns < between.from_ns.1)
        };
        if between.begins_open() {
            return false;
        }
        let place = channel.order.as_ref().map(Order::place);
        let place = place.unwrap_or_else(|| channel.receives.iter().take_while(|key| is_before(key)).count());
        let Some(&key) = channel.receives.get(place) else { return false };
        let Some(receive) = self.receives.get_mut(key) else {
            channel.receives.remove(place);
            return true;
        };
        let posted_ns = receive.posted.entry_ns;
        if between.until_ns.1 != u64::MAX && posted_ns >= between.until_ns.1 {
            return known_ns.0 > posted_ns && self.skip(index, between);
        }
        let Some(completion) = receive.completed else {
            let is_passed = receive.is_released && channel.order.is_some();
            if let Some(order) = channel.order.as_mut().filter(|_| is_passed) {
                order.pass();
            }
            return is_passed;
        };
        // Who can say when one has come before the other?
        let Some(apart_ns) = known.within_ns(&[self.process, source]) else { return false };
        let over_ns = completion.call.return_ns.saturating_add(apart_ns);
        if between.until_ns.0 != u64::MAX && over_ns >= between.until_ns.0 {
            return known_ns.1 > over_ns && self.skip(index, between);
        }
        // When the message has gone that may have waited for it.
        let gone_ns = that_may_wait(&channel.sends, posted_ns).map_or(0, |(_, sent)| sent.call.return_ns);
        let needed_ns = over_ns.max(gone_ns.saturating_add(apart_ns));
        let sent_ns = over_ns.saturating_add(CLOCKS_NS);
        if known_ns.0 <= sent_ns || known_ns.1 <= needed_ns {
            return false;
        }
        if channel.order.is_none() {
            // What came before the gaps has no place among what has come since.
            self.forget(index, between.from_ns.0.saturating_sub(1), between.from_ns.1.saturating_sub(1));
            if let Some(channel) = self.channels.get_mut(index) {
                channel.order = Some(Order::default());
            }
            return true;
        }
        let next = channel.receives.get(place + 1).and_then(|&next| self.receives.get_mut(next));
        let next = next.map(|next| (next.posted.entry_ns, next.completed.map(|next| next.call)));
        let own = (completion.call.location, completion.call.number);
        let over = Over {
            posted_ns,
            completion,
            next_posted_ns: next.map_or(u64::MAX, |(posted_ns, _)| posted_ns),
            is_with_next: next.and_then(|(_, call)| call).is_some_and(|call| (call.location, call.number) == own),
        };
        let Some(order) = &mut channel.order else { return false };
        let gone = order.look(&channel.sends, &over, apart_ns);
        self.pass(index, gone, between, apart_ns);
        true
    }

    /// Nothing has told what belongs together of what comes between the first gaps and the next ones. `false`: it is not known yet which
    /// those are.
    fn skip(&mut self, index: usize, first: Between) -> bool {
        let Some(channel) = self.channels.get_mut(index) else { return false };
        let next = channel.after(first);
        if next.begins_open() {
            return false;
        }
        // What comes before the first gap of its own process has no place any more, nor what comes before the next one; the rest may belong to
        // what comes behind the other one's.
        let last =
            |is_next: bool, from_ns: u64, until_ns: u64| if is_next { until_ns } else { from_ns }.saturating_sub(1);
        let (source, own) = next.are_first;
        let sent_ns = last(source, first.from_ns.0, first.until_ns.0);
        self.forget(index, sent_ns, last(own, first.from_ns.1, first.until_ns.1));
        if let Some(channel) = self.channels.get_mut(index) {
            channel.end_gaps(first);
        }
        true
    }

    /// What has gone out of a channel's queues will not be matched.
    fn pass(&mut self, index: usize, gone: Gone, between: Between, apart_ns: u64) {
        let Some(channel) = self.channels.get_mut(index) else { return };
        let sender = channel.key.source;
        let sends = channel.sends.drain(..gone.sends.min(channel.sends.len()));
        for sent in sends {
            self.counts.unsure += 1;
            self.loose.send(&sent.call);
            self.met.push(Met { sender, key: sent.key, what: Meeting::Never });
        }
        let receives: Vec<Key> = channel.receives.drain(..gone.receives.min(channel.receives.len())).collect();
        if gone.is_known {
            channel.end_gaps(between);
            channel.found_out = Some(apart_ns);
            channel.sent = channel.sends.len() as u64;
            channel.received = channel.receives.len() as u64;
            channel.probes.clear();
            self.unsure -= usize::from(channel.is_sure());
        }
        for key in receives {
            self.lose(key);
        }
        self.meet(index);
    }

    /// Brings together what belongs together.
    fn meet(&mut self, index: usize) {
        while let Some(channel) = self.channels.get_mut(index) {
            let (Some(&sent), Some(&key)) = (channel.sends.front(), channel.receives.front()) else { return };
            let sender = channel.key.source;
            let Some(receive) = self.receives.get_mut(key) else {
                channel.receives.pop_front();
                continue;
            };
            if !channel.source_gaps.are_after(sent.call.entry_ns)
                || !channel.own_gaps.are_after(receive.posted.entry_ns)
            {
                return;
            }
            channel.sends.pop_front();
            channel.receives.pop_front();
            receive.send = Some(sent);
            self.met.push(Met { sender, key: sent.key, what: Meeting::Receive(receive.posted) });
            if receive.is_released {
                self.meet_released(key, &sent);
                continue;
            }
            if let Some(completion) = receive.completed {
                let one = *receive;
                self.receives.remove(key);
                let end = self.judge(index, &one, &sent, &completion);
                self.late.push((completion.held, end));
            }
        }
    }

    /// A receive is complete.
    pub(super) fn complete(&mut self, key: Key, completion: Completion) -> Outcome {
        let Some(receive) = self.receives.get_mut(key) else { return Outcome::Never };
        if receive.is_lost {
            self.counts.unsure += 1;
            self.receives.remove(key);
            return Outcome::Never;
        }
        let Some(sent) = receive.send else {
            receive.completed = Some(completion);
            return Outcome::Later;
        };
        let one = *receive;
        self.receives.remove(key);
        let index = one.channel.map_or(usize::MAX, |channel| channel as usize);
        self.judge(index, &one, &sent, &completion).map_or(Outcome::Never, Outcome::Known)
    }

    /// What a receive that is complete has got, if that can be what it has met.
    fn judge(&mut self, index: usize, receive: &Receive, sent: &Sent, completion: &Completion) -> Option<End> {
        let channel = self.channels.get_mut(index);
        if sent.is_concurrent || receive.is_concurrent {
            self.counts.unsure += 2;
            self.loose.send(&sent.call);
            self.loose.receive(&receive.posted);
            if let Some(sender) = channel.map(|channel| channel.key.source) {
                self.met.push(Met { sender, key: sent.key, what: Meeting::Never });
            }
            return None;
        }
        if let Some(channel) = channel {
            channel.last_done = channel.last_done.max(Some(sent.place()));
        }
        if self.is_true(index, sent, &receive.posted, completion) {
            return Some(End::Received { send: sent.call, posted: receive.posted });
        }
        self.contradict(index, completion);
        None
    }

    /// What a receive has got cannot be what it has met: whatever is wrong, what follows in the channel is no better.
    fn contradict(&mut self, index: usize, completion: &Completion) {
        let at_ns = completion.call.return_ns;
        self.break_channel(index, Gap { from_ns: 0, until_ns: at_ns });
        self.forget(index, at_ns, at_ns);
    }

    /// Whether a message can be the one that has come.
    fn is_true(&mut self, index: usize, sent: &Sent, posted: &CallAt, completion: &Completion) -> bool {
        let is_same = match (sent.bytes, completion.bytes) {
            (Some(sent), Some(come)) => sent == come,
            _ => true,
        };
        let found_out = self.channels.get(index).and_then(|channel| channel.found_out);
        let is_in_time = found_out.is_none_or(|apart_ns| {
            let over_ns = completion.call.return_ns.saturating_add(apart_ns).saturating_add(CLOCKS_NS);
            sent.call.entry_ns <= over_ns
        });
        let is_same = is_same && is_in_time;
        if is_same {
            self.counts.matched += 1;
        } else {
            self.counts.contradictions += 1;
            self.loose.send(&sent.call);
            self.loose.receive(posted);
        }
        is_same
    }

    fn keep_limit(&mut self, at_ns: u64) {
        if self.receives.len() > self.limit {
            (0..self.channels.len()).for_each(|index| self.forget_all(index, at_ns));
        }
    }

    /// Counts what was left when there is no more.
    pub(super) fn finish(&mut self) {
        for channel in &mut self.channels {
            let left = channel.sends.len() as u64;
            let is_unsure = !channel.is_sure();
            *(if is_unsure { &mut self.counts.unsure } else { &mut self.counts.sends }) += left;
            channel.sends.drain(..).for_each(|sent| self.loose.send(&sent.call));
            for key in channel.receives.drain(..) {
                let Some(receive) = self.receives.remove(key) else { continue };
                self.loose.receive(&receive.posted);
                // Those that are not complete when recording ends are no mistake.
                if receive.completed.is_some() {
                    *(if is_unsure { &mut self.counts.unsure } else { &mut self.counts.receives }) += 1;
                }
            }
        }
        // Messages that have arrived, which nobody has looked at.
        for receive in self.receives.drain() {
            self.loose.receive(&receive.posted);
            if let Some(sent) = receive.send {
                self.loose.send(&sent.call);
            }
        }
    }
}

impl Receive {
    fn new(posted: CallAt) -> Self {
        Self {
            posted,
            channel: None,
            send: None,
            completed: None,
            is_lost: false,
            is_released: false,
            is_concurrent: false,
        }
    }

    /// Whether it is known to be of a channel.
    fn is_of(&self, index: usize) -> bool {
        self.channel.is_some_and(|channel| channel as usize == index)
    }
}

/// The ends of other threads' calls that had not returned when this one began, whose end is one of them from then on.
fn overlapping(recent: &mut Vec<Recent>, call: &CallAt, key: Key) -> Vec<Key> {
    recent.retain(|one| one.return_ns > call.entry_ns && one.location != call.location);
    let others = recent.iter().map(|one| one.key).collect();
    recent.push(Recent { location: call.location, return_ns: call.return_ns, key });
    others
}

impl Gap {
    /// One that both are in.
    fn with(self, other: Self) -> Self {
        Self { from_ns: self.from_ns.min(other.from_ns), until_ns: self.until_ns.max(other.until_ns) }
    }
}

impl Gaps {
    /// Whether a call that begins then has its place in the order.
    fn are_after(&self, entry_ns: u64) -> bool {
        self.0.front().is_none_or(|gap| entry_ns < gap.from_ns)
    }

    fn end_before(&self, ns: u64) -> bool {
        self.0.back().is_none_or(|last| last.until_ns < ns)
    }

    /// Where nothing has come between them, they are one.
    fn unite(&mut self) {
        let all = self.0.drain(..).reduce(Gap::with);
        self.0.extend(all);
    }

    /// One that reaches into the last ones makes one of them.
    fn add(&mut self, gap: Gap) {
        // Of one that goes on, it is known now when it ends.
        let open = self.0.pop_back_if(|last| last.until_ns == STILL_OPEN);
        let mut all = Gap { from_ns: open.map_or(gap.from_ns, |open| open.from_ns.min(gap.from_ns)), ..gap };
        while let Some(last) = self.0.pop_back_if(|last| all.from_ns <= last.until_ns) {
            all = all.with(last);
        }
        self.0.push_back(all);
        if self.0.len() > MOST_GAPS
            && let Some(first) = self.0.pop_front()
            && let Some(next) = self.0.front_mut()
        {
            *next = next.with(first);
        }
    }
}

impl Between {
    /// One of the first gaps goes on.
    fn begins_open(&self) -> bool {
        self.from_ns.0 == STILL_OPEN || self.from_ns.1 == STILL_OPEN
    }

    /// The first gaps, and where they end.
    fn from(&self) -> ((bool, bool), (u64, u64)) {
        (self.are_first, self.from_ns)
    }
}

impl Channel {
    fn is_sure(&self) -> bool {
        self.source_gaps.0.is_empty() && self.own_gaps.0.is_empty()
    }

    /// The first gaps, and the next ones.
    fn between(&self) -> Between {
        self.between_after((0, 0))
    }

    /// The gaps that come after the first ones, and the next ones after those.
    fn after(&self, first: Between) -> Between {
        self.between_after((usize::from(first.are_first.0), usize::from(first.are_first.1)))
    }

    /// The same without so many of the source and of the process's own.
    fn between_after(&self, (source, own): (usize, usize)) -> Between {
        type From<'a> = (&'a VecDeque<Gap>, usize);
        let (of_source, of_own) = ((&self.source_gaps.0, source), (&self.own_gaps.0, own));
        let first = |(gaps, from): From<'_>| gaps.get(from).copied();
        // One that begins after the other one's has ended is a later one.
        let is_first = |own: From<'_>, other: From<'_>| match (first(own), first(other)) {
            (Some(own), Some(other)) => own.from_ns < other.until_ns.max(1),
            (own, _) => own.is_some(),
        };
        let are_first = match (is_first(of_source, of_own), is_first(of_own, of_source)) {
            // Whoever has written the trace may say that gaps end before they begin.
            (false, false) => (first(of_source).is_some(), first(of_own).is_some()),
            are_first => are_first,
        };
        let from = |gaps: From<'_>, is_first: bool| first(gaps).filter(|_| is_first).map_or(0, |gap| gap.until_ns);
        let until = |(gaps, from): From<'_>, is_first: bool| {
            gaps.get(from + usize::from(is_first)).map_or(u64::MAX, |gap| gap.from_ns)
        };
        Between {
            are_first,
            from_ns: (from(of_source, are_first.0), from(of_own, are_first.1)),
            until_ns: (until(of_source, are_first.0), until(of_own, are_first.1)),
        }
    }

    /// What comes after the first gaps is in order, or gone.
    fn end_gaps(&mut self, between: Between) {
        if between.are_first.0 {
            self.source_gaps.0.pop_front();
        }
        if between.are_first.1 {
            self.own_gaps.0.pop_front();
        }
        self.order = None;
    }

    /// What comes later comes behind all gaps: where nothing waits, those before the last tell nothing. `until_ns`: so far both are known.
    fn unite_gaps(&mut self, until_ns: u64) {
        let are_over = [&self.source_gaps, &self.own_gaps].iter().all(|gaps| gaps.end_before(until_ns));
        if are_over && self.sends.is_empty() && self.receives.is_empty() {
            if self.own_gaps.0.len() > 1 || self.source_gaps.0.len() > 1 {
                self.order = None;
            }
            self.own_gaps.unite();
            self.source_gaps.unite();
        }
    }

    /// Which receives those will have got that wait is not sure any more.
    fn doubt_sends(&self, met: &mut Vec<Met>) {
        let sender = self.key.source;
        met.extend(self.sends.iter().map(|sent| Met { sender, key: sent.key, what: Meeting::Doubtful }));
    }

    /// It is not known how many there were in a gap. Gives whether it was sure up to now.
    fn add_gap(&mut self, of: ChannelEnd, gap: Gap, met: &mut Vec<Met>) -> bool {
        let was_sure = self.is_sure();
        if was_sure {
            self.doubt_sends(met);
        }
        let first = self.between().from();
        match of {
            ChannelEnd::Source => self.source_gaps.add(gap),
            ChannelEnd::Receiver => self.own_gaps.add(gap),
        }
        // A later gap changes nothing about what was found out.
        let is_later = |order: &Order| match of {
            ChannelEnd::Source => order.over_ns() < gap.from_ns,
            ChannelEnd::Receiver => order.posted_ns() < gap.from_ns,
        };
        let is_same = self.between().from() == first;
        self.order = self.order.take().filter(|order| is_same && is_later(order));
        was_sure
    }
}

impl Waiting {
    /// Whether another one may be of the same messages.
    fn is_like(&self, other: &Self) -> bool {
        (self.communicator, self.source, self.tag) == (other.communicator, other.source, other.tag)
    }

    fn may_be(&self, communicator: CommunicatorId, source: ProcessId, tag: i32) -> bool {
        self.communicator == communicator
            && self.source.is_none_or(|own| own == source)
            && self.tag.is_none_or(|own| own == tag)
    }
}
