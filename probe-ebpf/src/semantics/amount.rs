//! How many bytes a call moved, by the rules that all engines have in common.

use mpiprobe_common::{
    Amount, Descriptor, Layout, ThreadState,
    flow::{Sum, Summing},
    layout::{Size, datatype_size},
    rules::{
        amount::{self, Datatypes, Objects, Membership, Way},
        call::{Arguments, Call},
        partner::Partners,
    },
};

use crate::apart::given;

use super::{arguments, communicator, user::User};

/// The datatypes in the memory of the current process.
pub struct InMemory<'a>(pub &'a Layout);

impl Datatypes for InMemory<'_> {
    #[inline(always)]
    fn size(&self, datatype: u64) -> Option<u64> {
        match datatype_bytes(self.0, datatype) {
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
    fn place(&self, communicator: u32) -> Membership {
        match communicator::facts(communicator) {
            Some(known) => Membership::of(known),
            None => Membership::UNKNOWN,
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
        find_amount(thread, descriptor, layout, 1);
    }
    if descriptor.send_amount != 0 {
        find_amount(thread, descriptor, layout, 0);
    }
}

/// Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn find_amount(thread: *mut ThreadState, descriptor: *const Descriptor, layout: *const Layout, arrives: u32) -> u32 {
    given!(thread, descriptor, layout);
    let call = arguments::call(thread, descriptor, layout);
    let completed = &mut thread.completed;
    let partners = Partners { destination: completed.destination, source: completed.source };
    let mut objects = ToBeSummed { datatypes: InMemory(layout), summing: &mut thread.summing };
    if arrives != 0 {
        completed.received = amount::arriving(&call, &mut objects, completed.communicator, partners);
        return 0;
    }
    match amount::leaving(&call, &mut objects, completed.communicator, partners) {
        Some(sent) => completed.sent = sent,
        None => {
            thread.summing.sent_is_received = 1;
            completed.sent = completed.received;
        }
    }
    0
}

/// Not the size of any datatype.
const UNKNOWN_SIZE: u64 = u64::MAX;

/// Size of a datatype, bytes; or [`UNKNOWN_SIZE`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn datatype_bytes(layout: *const Layout, datatype: u64) -> u64 {
    given!(layout);
    match datatype_size(layout, datatype, &User) {
        Size::Known(size) => size,
        Size::Unknown => UNKNOWN_SIZE,
    }
}
