//! Messages to one process: those from one process over one communicator with one tag are received in the order in which they were sent
//! (MPI-4.0, section 3.5).

use std::collections::VecDeque;

use hashbrown::HashMap;
use mpiprobe_trace::{CommunicatorId, ProcessId};

use super::{
    call::{CallAt, Done, End, Loose, Unmatched},
    meaning::{ChannelKey, ChannelNames},
    slab::{Key, Slab},
};
use crate::slices::Slice;

/// Ends of one channel that may wait for the other one.
const MOST_OF_CHANNEL: usize = 1 << 17;

/// A message that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// In the process that has sent it.
    pub(super) key: Key,
    pub(super) call: CallAt,
    pub(super) bytes: Option<u64>,
}

/// A receive that was completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    pub(super) call: CallAt,
    pub(super) waited: bool,
    pub(super) bytes: Option<u64>,
}

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
}

/// That a process's send has met its receive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    pub(super) sender: ProcessId,
    pub(super) key: Key,
    pub(super) posted: CallAt,
}

#[derive(Debug)]
struct Channel {
    key: ChannelKey,
    /// Of one of the two, there are none.
    sends: VecDeque<Sent>,
    receives: VecDeque<Key>,
    /// How many there have been.
    sent: u64,
    received: u64,
    /// Until when it is not known how many there were; then nothing is matched until the two have come together in a collective.
    unsure_since_ns: Option<u64>,
    /// Probes, by the number of the message that they have found.
    probes: Vec<(u64, u32)>,
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
    /// Until when calls of the process itself, and of others, are not known.
    broken_ns: Option<u64>,
    broken: HashMap<ProcessId, u64>,
    /// What probes have found, and whose message it is if it may yet be known, by their number.
    found: HashMap<u32, (Option<ProcessId>, Option<CallAt>)>,
    probes: u32,
    /// Since the last time that somebody took them.
    pub(super) met: Vec<Met>,
    pub(super) late: Vec<Done>,
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
            broken_ns: None,
            broken: HashMap::new(),
            found: HashMap::new(),
            probes: 0,
            met: Vec::new(),
            late: Vec::new(),
            limit,
            counts: Unmatched::default(),
            loose: Loose::default(),
        }
    }

    /// Makes room for channels that have got numbers meanwhile. `is_late`: the process, or that one, had called MPI before anything is known,
    /// so that messages may have been on their way.
    pub(super) fn grow(&mut self, names: &ChannelNames, is_late: bool, other_is_late: impl Fn(ProcessId) -> bool) {
        for key in names.since(self.process, self.channels.len()) {
            let is_late = is_late || other_is_late(key.source);
            let broken = self.broken_ns.max(self.broken.get(&key.source).copied());
            let unsure_since_ns = broken.or(is_late.then_some(0));
            self.unsure += usize::from(unsure_since_ns.is_some());
            self.channels.push(Channel {
                key,
                sends: VecDeque::new(),
                receives: VecDeque::new(),
                sent: 0,
                received: 0,
                unsure_since_ns,
                probes: Vec::new(),
            });
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
        let Some(&mut Receive { channel, send: None, is_lost: false, .. }) = self.receives.get_mut(key) else {
            return true;
        };
        match channel.and_then(|channel| self.channels.get(channel as usize)) {
            // Whether it is the next one is not sure before all have met.
            Some(Channel { unsure_since_ns: Some(_), .. }) => at_ns < slice.until_ns,
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

    pub(super) fn is_unsure(&self) -> bool {
        self.unsure > 0
    }

    /// Posts a receive on a channel.
    pub(super) fn post(&mut self, channel: u32, posted: CallAt) -> Key {
        let key = self.receives.insert(Receive { posted, channel: None, send: None, completed: None, is_lost: false });
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
        let key = self.receives.insert(Receive { posted, channel: None, send: None, completed: None, is_lost: false });
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
        if let Some(receive) = self.receives.remove(key) {
            self.loose.receive(&receive.posted);
        }
        for index in 0..self.channels.len() {
            let concerns = self
                .channels
                .get(index)
                .is_some_and(|channel| one.may_be(channel.key.communicator, channel.key.source, channel.key.tag));
            if concerns {
                self.break_channel(index, at_ns);
            }
        }
        self.place_waiting();
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
        let Some(channel) = self.channels.get_mut(index) else { return };
        channel.received += 1;
        channel.receives.push_back(key);
        if channel.receives.len() > MOST_OF_CHANNEL {
            let at_ns = self.receives.get_mut(key).map_or(0, |receive| receive.posted.entry_ns);
            self.break_channel(index, at_ns);
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
            // It has met a send, which must be another one's.
            self.loose.send(&sent.call);
            self.counts.contradictions += 1;
            self.break_channel(index, at_ns);
        } else if let Some(channel) = self.channels.get_mut(index)
            && let Some(place) = channel.receives.iter().position(|&one| one == key)
        {
            channel.receives.remove(place);
            channel.received -= 1;
        }
    }

    /// A probe has found the first message on a channel that was not received. Gives the number by which to ask who has sent it.
    pub(super) fn probe(&mut self, channel: u32) -> u32 {
        self.probes = self.probes.wrapping_add(1);
        let number = self.probes;
        let (mut found, mut source) = (None, None);
        if let Some(channel) = self.channels.get_mut(channel as usize).filter(|one| one.unsure_since_ns.is_none()) {
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
            FromOther::Sent { channel, sent } => {
                let index = channel as usize;
                let Some(channel) = self.channels.get_mut(index) else { return };
                let number = channel.sent;
                channel.sent += 1;
                if !channel.probes.is_empty() {
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
                    self.break_channel(index, sent.call.entry_ns);
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
                    }
                    None if channel.unsure_since_ns.is_none() => self.counts.contradictions += 1,
                    None => {}
                }
            }
        }
    }

    /// Some calls of another process until then are not known.
    pub(super) fn break_from(&mut self, source: ProcessId, at_ns: u64) {
        self.broken.insert(source, at_ns);
        for index in 0..self.channels.len() {
            if self.channels.get(index).is_some_and(|channel| channel.key.source == source) {
                self.break_channel(index, at_ns);
            }
        }
    }

    /// Some calls of the process itself until then are not known.
    pub(super) fn break_all(&mut self, at_ns: u64) {
        self.broken_ns = Some(at_ns);
        (0..self.channels.len()).for_each(|index| self.break_channel(index, at_ns));
    }

    fn break_channel(&mut self, index: usize, at_ns: u64) {
        let Some(channel) = self.channels.get_mut(index) else { return };
        self.unsure += usize::from(channel.unsure_since_ns.is_none());
        channel.unsure_since_ns = Some(channel.unsure_since_ns.unwrap_or(0).max(at_ns));
        self.forget(index, at_ns, at_ns);
    }

    /// Forgets sends and receives until then.
    fn forget(&mut self, index: usize, sent_ns: u64, posted_ns: u64) {
        let Some(channel) = self.channels.get_mut(index) else { return };
        let before = channel.sends.len();
        let loose = &mut self.loose;
        channel.sends.retain(|sent| {
            let is_left = sent.call.entry_ns > sent_ns;
            if !is_left {
                loose.send(&sent.call);
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
            receive.completed.is_some()
        });
        if is_complete {
            self.counts.unsure += 1;
            self.receives.remove(key);
        }
    }

    /// The process and another one have both come to a collective in which everybody waits for everybody: what was sent before was
    /// received before, as far as anybody can know.
    pub(super) fn synchronised(&mut self, source: ProcessId, own_ns: u64, source_ns: u64) {
        for index in 0..self.channels.len() {
            let Some(channel) = self.channels.get_mut(index) else { continue };
            let is_later = |since| own_ns > since && source_ns > since;
            if channel.key.source != source || !channel.unsure_since_ns.is_some_and(is_later) {
                continue;
            }
            self.forget(index, source_ns, own_ns);
            if let Some(channel) = self.channels.get_mut(index) {
                self.unsure -= usize::from(channel.unsure_since_ns.take().is_some());
                channel.sent = channel.sends.len() as u64;
                channel.received = channel.receives.len() as u64;
                channel.probes.clear();
            }
            self.meet(index);
        }
    }

    /// Brings together what belongs together.
    fn meet(&mut self, index: usize) {
        while let Some(channel) = self.channels.get_mut(index).filter(|channel| channel.unsure_since_ns.is_none()) {
            let (Some(&sent), Some(&key)) = (channel.sends.front(), channel.receives.front()) else { return };
            channel.sends.pop_front();
            channel.receives.pop_front();
            let sender = channel.key.source;
            let Some(receive) = self.receives.get_mut(key) else { continue };
            receive.send = Some(sent);
            self.met.push(Met { sender, key: sent.key, posted: receive.posted });
            if let Some(completion) = receive.completed {
                let posted = receive.posted;
                self.receives.remove(key);
                if self.is_true(&sent, &posted, &completion) {
                    let Completion { call, waited, .. } = completion;
                    let end = End::Received { send: sent.call, posted };
                    self.late.push(Done { call, more: 0, end, waited, late: true });
                } else {
                    self.break_channel(index, completion.call.return_ns);
                }
            }
        }
    }

    /// A receive is complete. What has sent it, if that is known yet; otherwise it will be among the late.
    pub(super) fn complete(&mut self, key: Key, completion: Completion) -> Option<End> {
        let receive = self.receives.get_mut(key)?;
        if receive.is_lost {
            self.counts.unsure += 1;
            self.receives.remove(key);
            return None;
        }
        let Some(sent) = receive.send else {
            receive.completed = Some(completion);
            return None;
        };
        let (posted, channel) = (receive.posted, receive.channel);
        self.receives.remove(key);
        if self.is_true(&sent, &posted, &completion) {
            return Some(End::Received { send: sent.call, posted });
        }
        // Whatever is wrong, what follows in the channel is no better.
        if let Some(channel) = channel {
            self.break_channel(channel as usize, completion.call.return_ns);
        }
        None
    }

    /// Whether a message can be the one that has come.
    fn is_true(&mut self, sent: &Sent, posted: &CallAt, completion: &Completion) -> bool {
        let is_same = match (sent.bytes, completion.bytes) {
            (Some(sent), Some(come)) => sent == come,
            _ => true,
        };
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
            self.break_all(at_ns);
        }
    }

    /// Counts what was left when there is no more.
    pub(super) fn finish(&mut self) {
        for channel in &mut self.channels {
            let left = channel.sends.len() as u64;
            let is_unsure = channel.unsure_since_ns.is_some();
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

impl Waiting {
    fn may_be(&self, communicator: CommunicatorId, source: ProcessId, tag: i32) -> bool {
        self.communicator == communicator
            && self.source.is_none_or(|own| own == source)
            && self.tag.is_none_or(|own| own == tag)
    }
}
