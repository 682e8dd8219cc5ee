//! What lines say, and how it is put into them.

use bytemuck::{Pod, Zeroable};

use super::line::Words;
use crate::{
    peer,
    request::{Amount, certainty},
};

/// In place of a tag: there is none, or it is not known.
pub const NO_TAG: i32 = i32::MIN;

/// Roots that are no ranks, besides [`peer::NULL`].
pub mod root {
    /// `MPI_ROOT`.
    pub const OWN: i32 = -16;
}

/// A call that has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallRecord {
    pub tid: u32,
    /// Of the thread's calls that are counted, which one it is, from 0 on; as many bits as there is room for.
    pub number: u32,
    pub function: u16,
    /// Entry, ns.
    pub started_ns: u64,
    /// Duration, ns.
    pub ns: u64,
    /// Index plus one of its flow, which says where it was called from and over which communicator; 0: these are told here.
    pub flow_plus_1: u32,
    /// Return address, if there is no flow.
    pub call_site: u64,
    /// Number of the communicator, if there is no flow.
    pub communicator: u32,
    /// The rank sent to, in the communicator, or one of [`peer`]. Of a function that has a root, that.
    pub destination: i32,
    /// The rank received from; if the call says who it was, that one.
    pub source: i32,
    /// [`NO_TAG`]: none.
    pub send_tag: i32,
    /// If the call says what has come with which tag, that one.
    pub receive_tag: i32,
    pub sent: Amount,
    pub received: Amount,
    /// Handle of the request that it has given back; 0: none that could be told from others.
    pub request: u64,
    /// Handle of the window or file that it is about; 0: none.
    pub object: u64,
    pub result: i32,
    /// It was given `MPI_ANY_SOURCE`, `MPI_ANY_TAG`.
    pub any_source: bool,
    pub any_tag: bool,
    /// What it has done to some requests was not written.
    pub lacks_changes: bool,
}

/// Bits of the word that has function and flow.
mod bits {
    pub(super) const FUNCTION: u32 = 32;
    /// Two bits each.
    pub(super) const SENT: u32 = 48;
    pub(super) const RECEIVED: u32 = 50;
    pub(super) const ANY_SOURCE: u32 = 52;
    pub(super) const ANY_TAG: u32 = 53;
    /// The one partner that there is room for is the source.
    pub(super) const FROM: u32 = 54;
    /// The last word is a request, not bytes.
    pub(super) const REQUEST: u32 = 55;
    pub(super) const MORE: u32 = 56;
    pub(super) const LACKS_CHANGES: u32 = 57;
    /// The last three words are two partners, two amounts and two tags.
    pub(super) const EXCHANGE: u32 = 58;
}

/// Amounts below that have room for each other in a word.
const SHORT_BYTES: u64 = 1 << 32;

impl CallRecord {
    pub const NONE: Self = Self {
        tid: 0,
        number: 0,
        function: 0,
        started_ns: 0,
        ns: 0,
        flow_plus_1: 0,
        call_site: 0,
        communicator: 0,
        destination: peer::NONE,
        source: peer::NONE,
        send_tag: NO_TAG,
        receive_tag: NO_TAG,
        sent: Amount::NOTHING,
        received: Amount::NOTHING,
        request: 0,
        object: 0,
        result: 0,
        any_source: false,
        any_tag: false,
        lacks_changes: false,
    };

    /// Whether it needs a line of [`kind::MORE`](super::kind::MORE) before its own.
    #[inline]
    pub const fn needs_more(&self) -> bool {
        let moves_both = self.sent.certainty != certainty::NOTHING && self.received.certainty != certainty::NOTHING;
        let is_short = self.sent.bytes | self.received.bytes < SHORT_BYTES;
        self.flow_plus_1 == 0
            || self.result != 0
            || self.object != 0
            || (self.is_exchange() && (self.request != 0 || !is_short))
            || (moves_both && self.request != 0)
    }

    /// Whether it has two partners.
    const fn is_exchange(&self) -> bool {
        self.destination != peer::NONE && self.source != peer::NONE
    }

    /// The line before its own.
    #[inline]
    pub const fn write_more(&self, to: &mut Words) {
        *to = [
            pair(self.tid, self.number),
            self.call_site,
            self.request,
            self.object,
            ints(self.source, self.receive_tag),
            self.received.bytes,
            pair(self.communicator, self.result.cast_unsigned()),
        ];
    }

    /// Its own line. `has_more`: there is one before.
    #[inline]
    pub const fn write(&self, has_more: bool, to: &mut Words) {
        let is_from = !has_more && self.destination == peer::NONE;
        let (partner, tag) = if is_from { (self.source, self.receive_tag) } else { (self.destination, self.send_tag) };
        let sends = has_more || self.sent.certainty != certainty::NOTHING;
        let is_request = !has_more && self.request != 0;
        let is_exchange = !has_more && self.is_exchange();
        let flags = self.sent.certainty << bits::SENT
            | self.received.certainty << bits::RECEIVED
            | (self.any_source as u64) << bits::ANY_SOURCE
            | (self.any_tag as u64) << bits::ANY_TAG
            | (is_from as u64) << bits::FROM
            | (is_request as u64) << bits::REQUEST
            | (has_more as u64) << bits::MORE
            | (self.lacks_changes as u64) << bits::LACKS_CHANGES
            | (is_exchange as u64) << bits::EXCHANGE;
        let last = if is_exchange {
            [
                ints(self.destination, self.source),
                self.sent.bytes | self.received.bytes << 32,
                ints(self.send_tag, self.receive_tag),
            ]
        } else {
            [
                ints(partner, tag),
                if sends { self.sent.bytes } else { self.received.bytes },
                if is_request { self.request } else { self.received.bytes },
            ]
        };
        *to = [
            pair(self.tid, self.number),
            self.started_ns,
            self.ns,
            flags | (self.function as u64) << bits::FUNCTION | self.flow_plus_1 as u64,
            last[0],
            last[1],
            last[2],
        ];
    }

    /// When a call returned, by its line, ns.
    pub const fn returned_ns(words: &Words) -> u64 {
        let [_, started_ns, ns, ..] = *words;
        started_ns.saturating_add(ns)
    }

    /// Whether a call's line says that there is one before.
    pub const fn has_more(words: &Words) -> bool {
        let [_, _, _, flags, ..] = *words;
        is(flags, bits::MORE)
    }

    /// As it was written. `more`: the line before, if there is to be one.
    pub const fn read(words: &Words, more: Option<&Words>) -> Self {
        let [who, started_ns, ns, flags, partners, bytes, last] = *words;
        let ((tid, number), (partner, tag)) = (halves(who), signed(partners));
        let (sent, received) = (flags >> bits::SENT & 3, flags >> bits::RECEIVED & 3);
        let is_from = is(flags, bits::FROM);
        let is_request = is(flags, bits::REQUEST);
        let call = Self {
            tid,
            number,
            function: low16(flags >> bits::FUNCTION),
            started_ns,
            ns,
            flow_plus_1: halves(flags).0,
            any_source: is(flags, bits::ANY_SOURCE),
            any_tag: is(flags, bits::ANY_TAG),
            lacks_changes: is(flags, bits::LACKS_CHANGES),
            destination: if is_from { peer::NONE } else { partner },
            source: if is_from { partner } else { peer::NONE },
            send_tag: if is_from { NO_TAG } else { tag },
            receive_tag: if is_from { tag } else { NO_TAG },
            sent: amount(sent, bytes),
            received: amount(received, if sent == certainty::NOTHING || is_request { bytes } else { last }),
            request: if is_request { last } else { 0 },
            ..Self::NONE
        };
        if is(flags, bits::EXCHANGE) {
            let ((destination, source), (send_tag, receive_tag)) = (signed(partners), signed(last));
            let (sent_bytes, received_bytes) = halves(bytes);
            let (sent, received) = (amount(sent, sent_bytes as u64), amount(received, received_bytes as u64));
            return Self { destination, source, send_tag, receive_tag, sent, received, request: 0, ..call };
        }
        let Some(&[_, call_site, request, object, source, received_bytes, others]) = more else { return call };
        let ((source, receive_tag), (communicator, result)) = (signed(source), signed(others));
        let communicator = communicator.cast_unsigned();
        let received = amount(received, received_bytes);
        Self { call_site, communicator, source, receive_tag, received, request, object, result, ..call }
    }
}

/// What is the same in the lines of calls that are the same but for who makes them, when, with which tags, how much has arrived, and the
/// request that each gives back.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct CommonLine([u64; 3]);

/// What each of them has of its own, as in its [`CallRecord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnLine {
    pub tid: u32,
    pub number: u32,
    pub started_ns: u64,
    pub ns: u64,
    pub send_tag: i32,
    pub receive_tag: i32,
    pub received: Amount,
    pub request: u64,
    pub any_tag: bool,
    pub lacks_changes: bool,
}

#[expect(clippy::inline_always, reason = "BPF programs have 512 bytes of stack and pay for calls")]
impl CommonLine {
    /// In place of one that is not known.
    pub const EMPTY: Self = Self([0; 3]);

    /// Of such calls, by one of them. `gives_request`: they may give one back. `None`: some need a line more.
    pub const fn of(call: &CallRecord, gives_request: bool) -> Option<Self> {
        let common = CallRecord {
            send_tag: 0,
            receive_tag: 0,
            request: gives_request as u64,
            any_tag: false,
            lacks_changes: false,
            ..*call
        };
        if common.needs_more() {
            return None;
        }
        let mut words = [0; 7];
        CallRecord { received: Amount::NOTHING, request: 0, ..common }.write(false, &mut words);
        let [_, _, _, flags, partners, bytes, _] = words;
        Some(Self([flags, partners, bytes]))
    }

    /// Whether one line has room for what has arrived by one of them.
    #[inline(always)]
    pub const fn has_room(&self, received: Amount) -> bool {
        let [flags, ..] = self.0;
        !is(flags, bits::EXCHANGE) || received.bytes < SHORT_BYTES
    }

    /// The line of one of them, if it has room.
    #[inline(always)]
    pub const fn write(&self, own: &OwnLine, to: &mut Words) {
        let [common_flags, common_partners, sent] = self.0;
        let received = own.received.bytes;
        let flags = common_flags
            | own.received.certainty << bits::RECEIVED
            | (own.any_tag as u64) << bits::ANY_TAG
            | ((own.request != 0) as u64) << bits::REQUEST
            | (own.lacks_changes as u64) << bits::LACKS_CHANGES;
        let (partners, bytes, last) = if is(flags, bits::EXCHANGE) {
            (common_partners, sent | received << 32, ints(own.send_tag, own.receive_tag))
        } else {
            let tag = if is(flags, bits::FROM) { own.receive_tag } else { own.send_tag };
            let bytes = if flags >> bits::SENT & 3 == certainty::NOTHING { received } else { sent };
            (common_partners | ints(0, tag), bytes, if own.request == 0 { received } else { own.request })
        };
        *to = [pair(own.tid, own.number), own.started_ns, own.ns, flags, partners, bytes, last];
    }
}

/// What has become of a request by a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeRecord {
    /// The call's.
    pub tid: u32,
    pub number: u32,
    /// One of [`change`].
    pub kind: u8,
    pub handle: u64,
    /// What tells its operation from others that have, or had, the same handle: see [`crate::Request::epoch`].
    pub epoch: u64,
    /// The same of its operation that begins now, if it is [`change::STARTED`].
    pub next_epoch: u64,
    /// Its operation, as far as it is known without the call that has posted it.
    pub function: u16,
    pub communicator: u32,
    pub destination: i32,
    /// If it is complete, from whom; and with which tag.
    pub source: i32,
    pub tag: i32,
    pub any_source: bool,
    pub any_tag: bool,
    /// What leaves, if nothing arrives.
    pub sent: Amount,
    pub received: Amount,
}

/// Kinds of changes.
pub mod change {
    pub const STARTED: u8 = 0;
    pub const COMPLETED: u8 = 1;
    pub const CANCELLED: u8 = 2;
    pub const FAILED: u8 = 3;
    pub const RELEASED: u8 = 4;
    /// Partitions of it may go.
    pub const READY: u8 = 5;
}

/// Bits of the word that has function and communicator.
mod change_bits {
    pub(super) const FUNCTION: u32 = 32;
    pub(super) const SENT: u32 = 48;
    pub(super) const RECEIVED: u32 = 50;
    pub(super) const ANY_SOURCE: u32 = 52;
    pub(super) const ANY_TAG: u32 = 53;
    /// Three bits.
    pub(super) const KIND: u32 = 54;
}

/// Operations are told apart by so many bits.
const EPOCH_BITS: u32 = 32;

impl ChangeRecord {
    #[inline]
    pub const fn write(&self, to: &mut Words) {
        let flags = self.sent.certainty << change_bits::SENT
            | self.received.certainty << change_bits::RECEIVED
            | (self.any_source as u64) << change_bits::ANY_SOURCE
            | (self.any_tag as u64) << change_bits::ANY_TAG
            | (self.kind as u64) << change_bits::KIND;
        let receives = self.received.certainty != certainty::NOTHING;
        *to = [
            pair(self.tid, self.number),
            self.handle,
            self.epoch & ((1 << EPOCH_BITS) - 1) | self.next_epoch << EPOCH_BITS,
            flags | (self.function as u64) << change_bits::FUNCTION | self.communicator as u64,
            ints(self.destination, self.source),
            self.tag.cast_unsigned() as u64,
            if receives { self.received.bytes } else { self.sent.bytes },
        ];
    }

    pub const fn read(words: &Words) -> Self {
        let [who, handle, epochs, flags, partners, tag, bytes] = *words;
        let ((tid, number), (destination, source)) = (halves(who), signed(partners));
        let ((epoch, next_epoch), (communicator, _)) = (halves(epochs), halves(flags));
        let (sent, received) = (flags >> change_bits::SENT & 3, flags >> change_bits::RECEIVED & 3);
        let is_receive = received != certainty::NOTHING;
        // There is room for one of them.
        let sent = match sent {
            certainty::NOTHING => Amount::NOTHING,
            known => {
                if is_receive {
                    Amount::UNKNOWN
                } else {
                    amount(known, bytes)
                }
            }
        };
        Self {
            tid,
            number,
            kind: (low16(flags >> change_bits::KIND) & 7).to_le_bytes()[0],
            handle,
            epoch: epoch as u64,
            next_epoch: next_epoch as u64,
            function: low16(flags >> change_bits::FUNCTION),
            communicator,
            destination,
            source,
            tag: signed(tag).0,
            any_source: is(flags, change_bits::ANY_SOURCE),
            any_tag: is(flags, change_bits::ANY_TAG),
            sent,
            received: amount(received, bytes),
        }
    }
}

/// The process is in another phase, by a thread's call of `MPI_Pcontrol` that has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseRecord {
    pub tid: u32,
    /// Of the thread's next call.
    pub number: u32,
    pub at_ns: u64,
    /// What calls are counted as from then on: bits of [`crate::phase::current`].
    pub current: u64,
}

impl PhaseRecord {
    #[inline]
    pub const fn write(&self, to: &mut Words) {
        *to = [pair(self.tid, self.number), self.at_ns, self.current, 0, 0, 0, 0];
    }

    pub const fn read(words: &Words) -> Self {
        let [who, at_ns, current, ..] = *words;
        let (tid, number) = halves(who);
        Self { tid, number, at_ns, current }
    }
}

const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

const fn ints(low: i32, high: i32) -> u64 {
    pair(low.cast_unsigned(), high.cast_unsigned())
}

#[expect(clippy::cast_possible_truncation, reason = "cut into halves")]
const fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

const fn signed(word: u64) -> (i32, i32) {
    let (low, high) = halves(word);
    (low.cast_signed(), high.cast_signed())
}

#[expect(clippy::cast_possible_truncation, reason = "cut off on purpose")]
const fn low16(word: u64) -> u16 {
    word as u16
}

const fn is(flags: u64, bit: u32) -> bool {
    flags >> bit & 1 != 0
}

/// Bytes mean something only if they are known.
const fn amount(certainty: u64, bytes: u64) -> Amount {
    match certainty {
        certainty::KNOWN | certainty::AT_MOST => Amount { bytes, certainty },
        _ => Amount { bytes: 0, certainty },
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
