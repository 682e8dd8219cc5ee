//! Accesses to windows: whether they change anything there.

use crate::{Descriptor, Layout, descriptor::NONE};

/// What an access does with what it is given to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It sends it.
    Changes,
    /// Its operation is `MPI_NO_OP`: nothing is sent, and the arguments for it mean nothing.
    OnlyFetches,
    /// It may be either: it fetches, and it is not known what `MPI_NO_OP` is.
    Unknown,
}

/// That of a call whose operation is `op`, as given; anything for a function that has none.
#[inline(always)]
pub fn effect(layout: &Layout, descriptor: &Descriptor, op: u64) -> Effect {
    if descriptor.op == NONE {
        return Effect::Changes;
    }
    match layout.constants.no_op {
        // Who only wants to send does not ask for nothing to be done with it.
        0 if descriptor.receive_amount == 0 => Effect::Changes,
        0 => Effect::Unknown,
        no_op if layout.handle(op) == no_op => Effect::OnlyFetches,
        _ => Effect::Changes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::amount::BUFFER;
    use crate::layout::{Constants, MPICH, handle_kind};

    const PUT: Descriptor = Descriptor { send_amount: BUFFER, ..Descriptor::EMPTY };
    const ACCUMULATE: Descriptor = Descriptor { op: 7, ..PUT };
    const FETCH: Descriptor = Descriptor { receive_amount: BUFFER, ..ACCUMULATE };

    #[test]
    fn no_op_sends_nothing_whether_or_not_it_fetches() {
        let layout = Layout { handles: handle_kind::INTEGER, constants: MPICH.constants, ..Layout::default() };
        let (sum, no_op) = (0x5800_0003, MPICH.constants.no_op);
        for (descriptor, op, expected) in [
            (PUT, no_op, Effect::Changes),
            (ACCUMULATE, sum, Effect::Changes),
            (ACCUMULATE, no_op, Effect::OnlyFetches),
            (FETCH, sum, Effect::Changes),
            // The upper half of a register means nothing.
            (FETCH, 0xffff_ffff_0000_0000 | no_op, Effect::OnlyFetches),
        ] {
            assert_eq!(effect(&layout, &descriptor, op), expected, "{op:#x}");
        }
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        let constants = Constants { no_op: 0, ..Constants::default() };
        let layout = Layout { handles: handle_kind::POINTER, constants, ..Layout::default() };
        assert_eq!(effect(&layout, &FETCH, 0x5000), Effect::Unknown);
        assert_eq!(effect(&layout, &ACCUMULATE, 0x5000), Effect::Changes);
    }
}
