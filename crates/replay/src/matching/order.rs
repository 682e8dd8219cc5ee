//! Which message a receive has got where it is not known how many were on their way: what waiting tells.
//!
//! Messages of a channel are received in the order in which they were sent. Once it is known of one receive which send it has got, it is known
//! of all that follow. Where recording began in the middle, or calls are missing, it is not known of any: messages may have been sent that were
//! not received yet, and receives posted that had got none. That all have met in a barrier changes nothing about that.
//!
//! A receive that was waiting when one message was sent, and no other, and was over soon afterwards, has got that one: had there been one before, it would not
//! have waited. The same is so of a send that was waiting when one receive was posted. And no receive has got what was sent after it was over. One such receive
//! may have been kept from going on by something else, which ended by chance when something was sent: some of few must say the same.

use std::collections::VecDeque;

use super::call::{CallAt, Completion, Sent};

/// So many must say the same.
const ENOUGH: u32 = 3;
/// Of so many receives one after the other.
const AMONG: u32 = 32;
/// The wrapper's times of different processes of a node agree to within less than that, ns.
pub(super) const CLOCKS_NS: u64 = 1000;
/// What waits is over after a part of the time that it has waited.
const SOON: u64 = 2;

/// What is said of one channel.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Sends that are not in the queue any more, and when the last of them was entered, ns.
    sends_gone: u64,
    gone_ns: u64,
    receives_gone: u64,
    /// When the last receive was posted that was looked at, and until when sends were looked at, ns.
    posted_ns: u64,
    over_ns: u64,
    /// The number of the receive that is looked at next.
    next: u64,
    examined: u32,
    /// Receive n has got send n + this, at most.
    most: Option<i64>,
    said: Option<Said>,
}

/// What some have said.
#[derive(Clone, Copy, Debug)]
struct Said {
    /// Receive n has got send n + this.
    shift: i64,
    times: u32,
    /// The first receive that has said so.
    first: u64,
}

/// What goes out of the queues, from their fronts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gone {
    pub(super) sends: usize,
    pub(super) receives: usize,
    /// What is left is in order.
    pub(super) is_known: bool,
}

/// A receive that is over, and what is around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Over {
    pub(super) posted_ns: u64,
    pub(super) completion: Completion,
    /// The next one was posted then, or later, ns.
    pub(super) next_posted_ns: u64,
    /// The same call has completed the next one.
    pub(super) is_with_next: bool,
}

impl Order {
    /// The place in the queue of the receive that is looked at next.
    pub(super) fn place(&self) -> usize {
        usize::try_from(self.next - self.receives_gone).unwrap_or(usize::MAX)
    }

    /// When the last receive was posted that was looked at, ns.
    pub(super) const fn posted_ns(&self) -> u64 {
        self.posted_ns
    }

    /// Until when sends were looked at, ns.
    pub(super) const fn over_ns(&self) -> u64 {
        self.over_ns
    }

    /// The next receive tells nothing.
    pub(super) fn pass(&mut self) {
        self.next += 1;
    }

    /// The next receive is over, and all sends are known that were entered until then. `apart_ns`: by how much the clocks of the two may be off
    /// against each other.
    pub(super) fn look(&mut self, sends: &VecDeque<Sent>, over: &Over, apart_ns: u64) -> Gone {
        let call = over.completion.call;
        let number = self.next;
        self.next += 1;
        self.examined += 1;
        let over_ns = call.return_ns.saturating_add(apart_ns).saturating_add(CLOCKS_NS);
        let most = self.shift(entered_until(sends, over_ns), number) - 1;
        let most = self.most.map_or(most, |known| known.min(most));
        self.most = Some(most);
        let told = self.by_receive(sends, over, apart_ns).or_else(|| self.by_send(sends, over, apart_ns));
        if let Some(shift) = told.map(|place| self.shift(place, number)) {
            self.said = Some(match self.said.filter(|said| said.shift == shift) {
                Some(said) => Said { times: said.times + 1, ..said },
                None => Said { shift, times: 1, first: number },
            });
        }
        self.posted_ns = over.posted_ns;
        self.over_ns = self.over_ns.max(call.return_ns);
        self.said = self.said.filter(|said| said.shift <= most);
        if let Some(said) = self.said.filter(|said| said.times >= ENOUGH) {
            return Gone { is_known: true, ..self.until(said) };
        }
        if self.examined >= AMONG {
            (self.examined, self.said) = (0, None);
        }
        let gone = match self.said {
            Some(said) => self.until(said),
            // What was sent before it has waited tells nothing of those that come later.
            None => Gone { sends: entered_until(sends, call.entry_ns), receives: self.place(), is_known: false },
        };
        self.go(sends, gone);
        gone
    }

    /// What comes before the first that have said something.
    fn until(&self, said: Said) -> Gone {
        let send = said.first.saturating_add_signed(said.shift);
        Gone {
            sends: usize::try_from(send.saturating_sub(self.sends_gone)).unwrap_or(usize::MAX),
            receives: usize::try_from(said.first.saturating_sub(self.receives_gone)).unwrap_or(usize::MAX),
            is_known: false,
        }
    }

    fn go(&mut self, sends: &VecDeque<Sent>, gone: Gone) {
        if let Some(last) = gone.sends.checked_sub(1).and_then(|last| sends.get(last)) {
            self.gone_ns = last.call.entry_ns;
        }
        self.sends_gone += gone.sends as u64;
        self.receives_gone += gone.receives as u64;
    }

    fn shift(&self, place: usize, number: u64) -> i64 {
        let send = self.sends_gone.saturating_add(place as u64);
        i64::try_from(send).unwrap_or(i64::MAX).saturating_sub_unsigned(number)
    }

    /// The place of the message that a receive has waited for.
    fn by_receive(&self, sends: &VecDeque<Sent>, over: &Over, apart_ns: u64) -> Option<usize> {
        let Completion { call, waited, .. } = over.completion;
        // The last message of several that a call waits for is the last one's.
        if !waited || over.is_with_next || call.entry_ns < self.gone_ns {
            return None;
        }
        let place = only_entered(sends, &call, apart_ns)?;
        let sent = sends.get(place)?;
        (sent.is_alone && has_ended(&call, sent.call.entry_ns, apart_ns)).then_some(place)
    }

    /// The place of the message that has waited for a receive.
    fn by_send(&self, sends: &VecDeque<Sent>, over: &Over, apart_ns: u64) -> Option<usize> {
        let (place, sent) = that_may_wait(sends, over.posted_ns)?;
        let call = sent.call;
        let is_only = self.posted_ns.saturating_add(apart_ns) < call.entry_ns
            && over.next_posted_ns > call.return_ns.saturating_add(apart_ns);
        (sent.is_alone && is_only && has_ended(&call, over.posted_ns, apart_ns)).then_some(place)
    }
}

/// How many sends were entered until then.
fn entered_until(sends: &VecDeque<Sent>, ns: u64) -> usize {
    sends.partition_point(|sent| sent.call.entry_ns <= ns)
}

/// The message that may have waited for a receive that was posted then, and its place: the last one before it.
pub(super) fn that_may_wait(sends: &VecDeque<Sent>, posted_ns: u64) -> Option<(usize, &Sent)> {
    let place = entered_until(sends, posted_ns).checked_sub(1)?;
    Some((place, sends.get(place).filter(|sent| sent.waits)?))
}

/// The place of the only send that was entered while a call ran, with what clocks may be off.
fn only_entered(sends: &VecDeque<Sent>, call: &CallAt, apart_ns: u64) -> Option<usize> {
    let first = sends.partition_point(|sent| sent.call.entry_ns < call.entry_ns.saturating_sub(apart_ns));
    let end = entered_until(sends, call.return_ns.saturating_add(apart_ns));
    (end == first + 1).then_some(first)
}

/// Whether a call has waited for what has happened elsewhere, and was over soon afterwards.
fn has_ended(call: &CallAt, event_ns: u64, apart_ns: u64) -> bool {
    let waited_ns = event_ns.saturating_sub(call.entry_ns);
    let rest_ns = call.return_ns.saturating_sub(event_ns);
    waited_ns > apart_ns && event_ns <= call.return_ns && rest_ns.saturating_mul(SOON) <= waited_ns
}
