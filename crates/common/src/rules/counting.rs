//! When what an operation moves is counted.

use super::tables::Counts;
use crate::{
    Amount, Descriptor,
    descriptor::{amount, flags},
    request::{certainty, receiving},
};

/// Whether what leaves is counted when a call returns, and what arrives; `begins`: it has begun an operation that is followed until
/// another call completes it.
#[inline(always)]
pub const fn on_return(descriptor: &Descriptor, begins: bool) -> (bool, bool) {
    // What is made to be started later moves nothing yet; what a status tells is told when it is complete.
    let sends = !(begins && descriptor.flags & flags::PERSISTENT != 0);
    (sends, sends && !(begins && descriptor.receive_amount & amount::KIND == amount::STATUS))
}

/// What was found out about a call that has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Of the one partner, or the one sent to; and of another one received from.
    pub flow_plus_1: u32,
    pub second_flow_plus_1: u32,
    pub sent: Amount,
    pub received: Amount,
}

/// Accounts for a call that has returned: its flows, and what it has moved by now.
#[inline(always)]
pub fn account<T: Counts>(
    tables: &mut T,
    descriptor: &Descriptor,
    begins: bool,
    statistics: T::Statistics,
    ns: u64,
    moved: &Moved,
) {
    let (sends_now, receives_now) = on_return(descriptor, begins);
    tables.add_calls(moved.flow_plus_1, 1, ns);
    // Of a call with two partners, its time is in the flow of the one it sends to.
    if moved.second_flow_plus_1 != 0 {
        tables.add_calls(moved.second_flow_plus_1, 1, 0);
    }
    let receiving = receiving(moved.flow_plus_1, moved.second_flow_plus_1);
    let sent = if sends_now { moved.sent } else { Amount::NOTHING };
    let received = if receives_now { moved.received } else { Amount::NOTHING };
    add(tables, statistics, (moved.flow_plus_1, sent), (receiving, received));
}

/// Adds what has left, over one flow, and what has arrived, over another or the same one.
#[inline(always)]
pub fn add<T: Counts>(tables: &mut T, statistics: T::Statistics, sent: (u32, Amount), received: (u32, Amount)) {
    if sent.1.certainty == certainty::UNKNOWN || received.1.certainty == certainty::UNKNOWN {
        tables.add_unknown(statistics, received.0);
    }
    if sent.1.is_some() {
        tables.add_sent(statistics, sent.0, sent.1);
    }
    if received.1.is_some() {
        tables.add_received(statistics, received.0, received.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_complete_is_counted_later() {
        let receive = Descriptor { receive_amount: amount::STATUS, ..Descriptor::EMPTY };
        let bcast = Descriptor { receive_amount: amount::BUFFER, ..Descriptor::EMPTY };
        let made = Descriptor { flags: flags::PERSISTENT, ..bcast };
        assert_eq!(on_return(&receive, false), (true, true));
        assert_eq!(on_return(&receive, true), (true, false));
        assert_eq!(on_return(&bcast, true), (true, true));
        assert_eq!(on_return(&made, true), (false, false));
        // Nobody follows it: then its bytes are those of the first time.
        assert_eq!(on_return(&made, false), (true, true));
    }
}
