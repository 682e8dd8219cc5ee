//! How many bytes a call moved, by the rules that all engines have in common.

use mpiprobe_common::{
    Amount, Descriptor, Layout, ThreadState,
    flow::{Sum, Summing},
    layout::{Size, datatype_size},
    rules::{
        amount::{self, Datatypes, Objects, Place, Way},
        call::{Arguments, Call},
        partner::Partners,
    },
};

use super::{arguments, communicator, user::User};

/// The datatypes in the memory of the current process.
pub struct InMemory<'a>(pub &'a Layout);

impl Datatypes for InMemory<'_> {
    #[inline(always)]
    fn size(&self, datatype: u64) -> Option<u64> {
        match size(self.0, datatype) {
            UNKNOWN_SIZE => None,
            size => Some(size),
        }
    }
}

/// The same, and where it is kept what is to be added up by another program.
struct ToBeSummed<'a> {
    datatypes: InMemory<'a>,
    summing: &'a mut Summing,
}

impl Datatypes for ToBeSummed<'_> {
    #[inline(always)]
    fn size(&self, datatype: u64) -> Option<u64> {
        self.datatypes.size(datatype)
    }
}

impl Objects for ToBeSummed<'_> {
    #[inline(always)]
    fn place(&self, communicator: u32) -> Place {
        match communicator::facts(communicator) {
            Some(known) => Place::of(known),
            None => Place::UNKNOWN,
        }
    }

    #[inline(always)]
    fn add_up<A: Arguments>(&mut self, _call: &Call<'_, A>, way: Way, sum: Sum) -> Amount {
        match way {
            Way::Arrives => self.summing.received = sum,
            Way::Leaves => self.summing.sent = sum,
        }
        Amount::UNKNOWN
    }
}

/// Finds out what arrives and what leaves, and keeps it in the completed call; of what has an array of counts, `summing` says then
/// what is to be added up.
#[inline(always)]
pub fn find(thread: &mut ThreadState, descriptor: &Descriptor, layout: &Layout) {
    // One function for both, which keeps its result in memory: what the verifier knows of registers at its end would multiply.
    if descriptor.receive_amount != 0 {
        find_one(thread, descriptor, layout, true);
    }
    if descriptor.send_amount != 0 {
        find_one(thread, descriptor, layout, false);
    }
}

#[inline(never)]
fn find_one(thread: &mut ThreadState, descriptor: &Descriptor, layout: &Layout, arrives: bool) {
    let call = arguments::call(thread, descriptor, layout);
    let completed = &mut thread.completed;
    let partners = Partners { destination: completed.destination, source: completed.source };
    let mut objects = ToBeSummed { datatypes: InMemory(layout), summing: &mut thread.summing };
    if arrives {
        completed.received = amount::arriving(&call, &mut objects, completed.communicator, partners);
        return;
    }
    match amount::leaving(&call, &mut objects, completed.communicator, partners) {
        Some(sent) => completed.sent = sent,
        None => {
            thread.summing.sent_is_received = 1;
            completed.sent = completed.received;
        }
    }
}

/// Not the size of any datatype.
const UNKNOWN_SIZE: u64 = u64::MAX;

/// Size of a datatype, bytes; or [`UNKNOWN_SIZE`].
#[inline(never)]
fn size(layout: &Layout, datatype: u64) -> u64 {
    match datatype_size(layout, datatype, &User) {
        Size::Known(size) => size,
        Size::Unknown => UNKNOWN_SIZE,
    }
}
