//! When what an operation moves is counted.

use crate::{
    Descriptor,
    descriptor::{amount, flags},
};

/// Whether what leaves is counted when a call returns, and what arrives; `begins`: it has begun an operation that is followed until
/// another call completes it.
#[inline(always)]
#[expect(clippy::inline_always, reason = "BPF programs pay for calls")]
pub const fn on_return(descriptor: &Descriptor, begins: bool) -> (bool, bool) {
    // What is made to be started later moves nothing yet; what a status tells is told when it is complete.
    let sends = !(begins && descriptor.flags & flags::PERSISTENT != 0);
    (sends, sends && !(begins && descriptor.receive_amount & amount::KIND == amount::STATUS))
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
