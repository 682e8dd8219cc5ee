//! Communicators from the calls that make them on, and what else is made with them.
//!
//! Invariant ONE-COMMUNICATOR.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use mpiprobe_common::{
    Descriptor, Layout,
    descriptor::NONE,
    flow::{Degrees, Origin, communicator_kind, handle_of},
    layout::Side,
    rules::{
        call::Call,
        communicators::{self, Communicators, MEMBERS, Scope},
    },
};
use mpiprobe_functions::{Function, FunctionId};

use crate::setting::{Process, Shared, layouts};

const HANDLE: u64 = 0x8400_0002;
const PARENT: u32 = 3;
const RETURNED_NS: u64 = 5000;
/// Makes one that must not be used before another call has said that it is ready.
const NOT_READY: [&str; 2] = ["MPI_Comm_idup", "MPI_Comm_idup_with_info"];
const WINDOWS: [&str; 7] = [
    "MPI_Win_allocate",
    "MPI_Win_allocate_c",
    "MPI_Win_allocate_shared",
    "MPI_Win_allocate_shared_c",
    "MPI_Win_create",
    "MPI_Win_create_c",
    "MPI_Win_create_dynamic",
];
const FILES: [&str; 1] = ["MPI_File_open"];

/// An engine whose tables are maps.
#[derive(Default)]
struct Known {
    numbers: BTreeMap<u64, u32>,
    origins: BTreeMap<u64, Origin>,
    given_out: u32,
    is_full: bool,
}

impl Communicators for Known {
    fn release(&mut self, handle: u64) {
        self.numbers.remove(&handle);
        self.origins.remove(&handle);
    }

    fn keep_origin(&mut self, handle: u64, origin: Origin) {
        assert_eq!(self.origins.insert(handle, origin), None);
    }

    fn number(&mut self, handle: u64) -> u32 {
        *self.numbers.entry(handle).or_insert_with(|| {
            self.given_out += 1;
            self.given_out
        })
    }

    fn has_room_for_unused(&self) -> bool {
        !self.is_full
    }
}

/// All functions that make something with a communicator, as all libraries have them.
fn with_layouts(is_it: impl Fn(&Descriptor) -> bool, mut check: impl FnMut(&'static Function, &Descriptor, &Layout)) {
    for layout in layouts() {
        for function in FunctionId::all().map(FunctionId::function) {
            let descriptor = function.descriptor();
            if is_it(&descriptor) {
                check(function, &descriptor, &layout);
            }
        }
    }
}

/// What comes of a call that has left a handle in its variable.
fn made(descriptor: &Descriptor, layout: &Layout, handle: u64, known: &mut Known) -> u32 {
    let mut process = Process::default();
    let address = process.put(&[handle], layout.handle_width());
    process.give(descriptor.new_communicator, address, true);
    let process = Rc::new(RefCell::new(process));
    let call = Call { descriptor, layout, arguments: Shared(&process) };
    communicators::made(&call, 41, PARENT, RETURNED_NS, known)
}

#[test]
fn a_new_communicator_comes_from_the_call_that_made_it() {
    with_layouts(
        |descriptor| descriptor.new_communicator != NONE,
        |function, descriptor, layout| {
            let mut known = Known::default();
            let number = made(descriptor, layout, HANDLE, &mut known);
            let is_ready = !NOT_READY.contains(&function.name);
            assert_eq!(number, u32::from(is_ready), "{}", function.name);
            let origin = Origin { made_by_plus_1: 42, parent: PARENT, made_ns: RETURNED_NS, degrees: Degrees::UNKNOWN };
            assert_eq!(known.origins.get(&HANDLE), Some(&origin), "{}", function.name);
        },
    );
}

#[test]
fn one_that_has_the_handle_of_another_is_not_that_one() {
    with_layouts(
        |descriptor| descriptor.new_communicator != NONE,
        |function, descriptor, layout| {
            let mut known = Known::default();
            let before = known.number(HANDLE);
            known.keep_origin(HANDLE, Origin::default());
            made(descriptor, layout, HANDLE, &mut known);
            assert_ne!(known.number(HANDLE), before, "{}", function.name);
        },
    );
}

#[test]
fn who_is_in_no_group_has_made_nothing() {
    with_layouts(
        |descriptor| descriptor.new_communicator != NONE,
        |function, descriptor, layout| {
            let mut known = Known::default();
            assert_eq!(made(descriptor, layout, layout.constants.comm_null, &mut known), 0, "{}", function.name);
            assert!(known.origins.is_empty() && known.numbers.is_empty(), "{}", function.name);
        },
    );
}

#[test]
fn one_that_may_never_be_used_takes_no_room_from_others() {
    with_layouts(
        |descriptor| descriptor.new_communicator != NONE,
        |function, descriptor, layout| {
            let mut known = Known { is_full: true, ..Known::default() };
            assert_eq!(made(descriptor, layout, HANDLE, &mut known), 0, "{}", function.name);
            assert!(known.numbers.is_empty() && known.origins.len() == 1, "{}", function.name);
        },
    );
}

#[test]
fn windows_and_files_are_found_again_by_what_was_made() {
    let mut seen: Vec<&str> = Vec::new();
    with_layouts(
        |descriptor| descriptor.new_scope != NONE,
        |function, descriptor, layout| {
            seen.push(function.name);
            let is_file = FILES.contains(&function.name);
            // A handle of 32 bits has others behind it in memory; an address has an upper half.
            let handle = if is_file || layout.handle_width() == 8 { 0x7f00_a000_0002 } else { HANDLE };
            let mut process = Process::default();
            let address = process.put(&[handle], if is_file { 8 } else { layout.handle_width() });
            process.give(descriptor.new_scope, address, true);
            let process = Rc::new(RefCell::new(process));
            let made = Scope::made(&Call { descriptor, layout, arguments: Shared(&process) }).unwrap();
            assert_eq!(made, Scope { is_file, handle }, "{}", function.name);
            assert_eq!(made.kind(), if is_file { handle_of::FILE } else { handle_of::WINDOW });
        },
    );
    let all: Vec<&str> = WINDOWS.into_iter().chain(FILES).collect();
    assert!(all.iter().all(|name| seen.contains(name)), "{seen:?}");
    assert!(seen.iter().all(|name| all.contains(name)), "{seen:?}");
}

#[test]
fn a_call_on_a_window_or_a_file_is_over_it() {
    with_layouts(
        |descriptor| descriptor.window & descriptor.file != NONE,
        |function, descriptor, layout| {
            let is_file = descriptor.window == NONE;
            let position = if is_file { descriptor.file } else { descriptor.window };
            let is_wide = is_file || layout.handle_width() == 8;
            let handle = if is_wide { 0x7f00_a000_0002 } else { HANDLE };
            let mut process = Process::default();
            process.give(position, handle, is_wide);
            let process = Rc::new(RefCell::new(process));
            let given = Scope::given(&Call { descriptor, layout, arguments: Shared(&process) });
            assert_eq!(given, Some(Scope { is_file, handle }), "{}", function.name);
        },
    );
}

#[test]
fn members_that_are_looked_at_tell_groups_apart() {
    let looked_at =
        |size, is_inter| (0..MEMBERS).map(|step| communicators::member(step, size, is_inter)).collect::<Vec<_>>();
    assert_eq!(looked_at(8, false), [(Side::Local, 0), (Side::Local, 4), (Side::Local, 7)]);
    assert_eq!(looked_at(8, true), [(Side::Local, 0), (Side::Local, 4), (Side::Remote, 0)]);
    assert_eq!(looked_at(1, false), [(Side::Local, 0); 3]);
    // A group that hostile memory has told of.
    assert_eq!(looked_at(0, false), [(Side::Local, 0); 3]);
}

#[test]
fn what_every_program_has_is_told_from_what_it_has_made() {
    for layout in layouts().iter().filter(|layout| layout.constants.comm_world != 0) {
        let constants = &layout.constants;
        assert_eq!(communicators::kind(constants, constants.comm_world), communicator_kind::WORLD);
        assert_eq!(communicators::kind(constants, constants.comm_self), communicator_kind::OWN);
        assert_eq!(communicators::kind(constants, HANDLE), communicator_kind::MADE);
    }
}
