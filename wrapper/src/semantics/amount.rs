//! How many bytes a call moved, by the rules that all engines have in common.

use mpiprobe_common::{
    Amount,
    flow::Sum,
    rules::{
        amount::{self, Datatypes, Membership, Objects, Way},
        call::{Arguments, Call as GivenCall},
        partner::Partners,
    },
};

use super::{Call, communicator, datatype};

/// What the library says of the objects that a call was given.
struct Asked<'a>(&'a Call<'a>);

impl Datatypes for Asked<'_> {
    #[inline]
    fn size(&self, datatype: u64) -> Option<u64> {
        datatype::size(self.0, datatype)
    }
}

impl Objects for Asked<'_> {
    fn place(&self, communicator: u32) -> Membership {
        communicator::facts(communicator).map_or(Membership::UNKNOWN, |known| Membership::of(&known))
    }

    fn add_up<A: Arguments>(&mut self, call: &GivenCall<'_, A>, _way: Way, mut sum: Sum) -> Amount {
        while sum.next < sum.length && sum.unknown == 0 {
            amount::add_next(&call.arguments, call.layout, amount::is_wide(call.descriptor), self, &mut sum);
        }
        amount::summed(self, &sum)
    }
}

/// What leaves and what arrives by a successful call with these partners, over the communicator of that number.
pub(super) fn find(call: &Call<'_>, number: u32, partners: Partners) -> (Amount, Amount) {
    amount::both(&call.given(), &mut Asked(call), number, partners)
}

/// What has arrived by a call that a status tells about.
#[inline]
pub(super) fn received(call: &Call<'_>, partners: Partners) -> Amount {
    amount::arriving(&call.given(), &mut Asked(call), 0, partners)
}
