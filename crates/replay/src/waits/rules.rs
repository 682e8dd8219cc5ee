//! How long somebody has waited: the definitions of Scalasca's trace analyser, version 2.5 (pattern sources), on plain times.
//!
//! A call is its entry and its return, ns. What ends a wait in another process may lie behind the call's return only if clocks differ: then
//! the wait ends with the call, and the difference is a violation of causality.

/// From entry to return, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stay {
    pub(super) entry_ns: u64,
    pub(super) return_ns: u64,
}

/// How long a call waits, and by how much what it waits for is too late to be true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waited {
    pub(super) ns: u64,
    pub(super) violation_ns: u64,
}

/// Until something happens elsewhere that the call needs.
pub(super) fn until(event_ns: u64, call: Stay) -> Waited {
    Waited {
        ns: event_ns.min(call.return_ns).saturating_sub(call.entry_ns),
        violation_ns: event_ns.saturating_sub(call.return_ns),
    }
}

/// Of a receiver, in the call that completes the receive: until the message is sent.
pub(super) fn late_sender(send_entry_ns: u64, receive: Stay) -> Waited {
    until(send_entry_ns, receive)
}

/// Of a sender, in the call that completes the send: until the receive is posted; nothing if the call was over before. Whether the
/// library has waited for the receiver is seen by nothing else.
pub(super) fn late_receiver(receive_entry_ns: u64, send: Stay) -> u64 {
    if send.return_ns <= receive_entry_ns { 0 } else { receive_entry_ns.saturating_sub(send.entry_ns) }
}

/// Time in a call after the first one could leave, of members that all wait for the last entry.
pub(super) fn completion(last_entry_ns: u64, first_return_ns: u64, call: Stay) -> u64 {
    // Between two groups, those that it needs may all have come before.
    call.return_ns.saturating_sub(first_return_ns.max(last_entry_ns).max(call.entry_ns))
}

/// Of those of whom it is not known whether they need anything of each other: until the last one has come, if all were there at one moment.
pub(super) fn overlapping(last_entry_ns: u64, first_return_ns: u64, call: Stay) -> u64 {
    if first_return_ns > last_entry_ns { last_entry_ns.saturating_sub(call.entry_ns) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stay(entry_ns: u64, return_ns: u64) -> Stay {
        Stay { entry_ns, return_ns }
    }

    #[test]
    fn receivers_wait_until_the_message_is_sent() {
        assert_eq!(late_sender(2000, stay(1500, 2600)), Waited { ns: 500, violation_ns: 0 });
        assert_eq!(late_sender(1400, stay(1500, 2600)), Waited::default());
        assert_eq!(late_sender(2700, stay(1500, 2600)), Waited { ns: 1100, violation_ns: 100 });
    }

    #[test]
    fn senders_wait_until_somebody_receives_unless_they_have_left() {
        assert_eq!(late_receiver(4000, stay(1000, 5000)), 3000);
        assert_eq!(late_receiver(4000, stay(1000, 4001)), 3000);
        assert_eq!(late_receiver(4000, stay(1000, 4000)), 0);
        assert_eq!(late_receiver(4000, stay(1000, 1100)), 0);
        assert_eq!(late_receiver(500, stay(1000, 1100)), 0);
    }

    #[test]
    fn leaving_takes_time_after_the_first_has_left() {
        let calls = [stay(1000, 4500), stay(2000, 4600), stay(4000, 4700)];
        assert_eq!(calls.map(|call| completion(4000, 4500, call)), [0, 100, 200]);
        assert_eq!(calls.map(|call| overlapping(4000, 4500, call)), [3000, 2000, 0]);
        assert_eq!(overlapping(4000, 3900, calls[0]), 0);
    }
}
