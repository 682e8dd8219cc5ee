//! How much each function moves.
//!
//! Invariant TRAFFIC-EXACT.

use std::{cell::RefCell, collections::BTreeSet, rc::Rc};

use mpiprobe_common::{
    Amount, Descriptor, Layout,
    flow::{Degrees, Sum},
    request::certainty,
    rules::{
        amount::{self, Datatypes, Membership, Objects, Way},
        call::{Arguments, Call},
        partner::Partners,
    },
};
use mpiprobe_functions::{Argument, Function, FunctionId, Group, Role, by_name};

use crate::setting::{Process, Shared, layouts};

const CASES: &str = include_str!("../data/amounts.txt");

/// Datatypes by their sizes: the handle has the size in it.
const DATATYPE: u64 = 0x4c00_0000;
const OF_NO_KNOWN_SIZE: u64 = 0x0c00_0000;
const SUM: u64 = 0x5800_0003;

struct World {
    place: Membership,
}

impl Datatypes for World {
    fn size(&self, datatype: u64) -> Option<u64> {
        let handle = datatype & 0xffff_ffff;
        assert!(handle >> 8 == DATATYPE >> 8 || handle == OF_NO_KNOWN_SIZE, "no datatype: {datatype:#x}");
        (handle != OF_NO_KNOWN_SIZE).then_some(handle & 0xff)
    }
}

impl Objects for World {
    fn place(&self, communicator: u32) -> Membership {
        assert_eq!(communicator, 7);
        self.place
    }

    fn add_up<A: Arguments>(&mut self, call: &Call<'_, A>, _way: Way, mut sum: Sum) -> Amount {
        while sum.next < sum.length {
            amount::add_next(&call.arguments, call.layout, amount::is_wide(call.descriptor), self, &mut sum);
        }
        amount::summed(self, &sum)
    }
}

struct Case {
    row: &'static str,
    function: &'static str,
    communicator: &'static str,
    arguments: Vec<(&'static str, &'static str)>,
    sent: &'static str,
    received: &'static str,
}

fn cases() -> impl Iterator<Item = Case> {
    CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(|row| {
        let words: Vec<&str> = row.split_whitespace().collect();
        let [function, communicator, arguments @ .., sent, received] = &words[..] else { panic!("{row}") };
        let arguments = arguments.iter().map(|word| word.split_once('=').unwrap()).collect();
        Case { row, function, communicator, arguments, sent, received }
    })
}

fn place(text: &str) -> Membership {
    if text == "?" {
        return Membership::UNKNOWN;
    }
    let (text, neighbours) = text.split_once('+').unwrap_or((text, ""));
    let (text, others) = text.split_once(':').unwrap_or((text, ""));
    let (rank, size) = text.split_once('/').unwrap();
    let (neighbours, absent) = neighbours.split_once('-').unwrap_or((neighbours, ""));
    let (comes, goes) = neighbours.split_once(',').unwrap_or(("", ""));
    let absent = absent.bytes().map(|digit| 1 << (digit - b'0')).sum();
    let number = |text: &str, otherwise: u32| text.parse().unwrap_or(otherwise);
    let own_size = size.parse().unwrap();
    Membership {
        rank: rank.parse().unwrap(),
        others: number(others, own_size),
        own_size,
        degrees: Degrees::new(number(comes, Degrees::NO_NUMBER), number(goes, Degrees::NO_NUMBER), absent),
        is_inter: !others.is_empty(),
        is_known: true,
    }
}

/// The functions that a row is about: those of the name, and the variants that have all arguments of the row.
fn variants(case: &Case) -> Vec<FunctionId> {
    let name = case.function;
    let nonblocking = match name.strip_prefix("File_") {
        Some(access) => format!("File_i{access}"),
        None => format!("I{}", name.to_lowercase()),
    };
    let of = |name: String| [by_name(&format!("MPI_{name}")), by_name(&format!("MPI_{name}_c"))];
    let has_all = |function: &FunctionId| {
        let has = |name: &str| function.function().arguments.iter().any(|argument| argument.name == name);
        case.arguments.iter().all(|(name, _)| has(name))
    };
    [name.to_owned(), nonblocking, format!("{name}_init")].into_iter().flat_map(of).flatten().filter(has_all).collect()
}

fn amount(text: &str) -> Amount {
    let number = |text: &str| text.parse().unwrap();
    match text {
        "-" => Amount::NOTHING,
        "?" => Amount::UNKNOWN,
        text => match text.strip_prefix("<=") {
            Some(most) => Amount { bytes: number(most), certainty: certainty::AT_MOST },
            None => Amount::known(number(text)),
        },
    }
}

/// What stands for a value in a row.
fn value(layout: &Layout, argument: &Argument, text: &str) -> u64 {
    let constants = &layout.constants;
    match (argument.role, text) {
        (Role::Datatype, "?") => OF_NO_KNOWN_SIZE,
        (Role::Datatype, size) => DATATYPE | size.parse::<u64>().unwrap(),
        (Role::Op, "NO_OP") => constants.no_op,
        (Role::Op, _) => SUM,
        (Role::Buffer, "IN_PLACE") => constants.in_place,
        (_, "NULL") => i64::from(constants.proc_null) as u64,
        (_, "ANY") => i64::from(constants.any_source) as u64,
        (_, "ROOT") => i64::from(constants.root) as u64,
        (_, number) => number.parse::<i64>().unwrap_or_else(|_| panic!("{}={text}", argument.name)) as u64,
    }
}

fn give(layout: &Layout, process: &mut Process, position: u8, argument: &Argument, text: &str) {
    let handle_width = layout.handle_width();
    if argument.role == Role::Status {
        let ignored = layout.constants.status_ignore;
        let status = if text == "IGNORE" { ignored } else { process.put_status(layout, text.parse().unwrap()) };
        return process.give(position, status, true);
    }
    if let Some(list) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let values: Vec<u64> =
            list.split(',').filter(|text| !text.is_empty()).map(|text| value(layout, argument, text)).collect();
        let is_handle = argument.role == Role::Datatype;
        let width = if is_handle {
            handle_width
        } else if argument.wide {
            8
        } else {
            4
        };
        let address = process.put(&values, width);
        return process.give(position, address, true);
    }
    let is_wide = match argument.role {
        Role::Datatype | Role::Op => handle_width == 8,
        Role::Buffer => true,
        _ => argument.wide,
    };
    process.give(position, value(layout, argument, text), is_wide);
}

fn moved(layout: &Layout, function: &Function, case: &Case) -> (Amount, Amount) {
    let process = Rc::new(RefCell::new(Process::default()));
    for (name, text) in &case.arguments {
        let position = function.arguments.iter().position(|argument| argument.name == *name).unwrap();
        let argument = &function.arguments[position];
        give(layout, &mut process.borrow_mut(), position as u8, argument, text);
    }
    let descriptor: Descriptor = function.descriptor();
    let call = Call { descriptor: &descriptor, layout, arguments: Shared(&process) };
    let mut world = World { place: place(case.communicator) };
    amount::both(&call, &mut world, 7, Partners::given(&call))
}

#[test]
fn every_function_moves_what_the_standard_says() {
    for case in cases() {
        let (variants, expected) = (variants(&case), (amount(case.sent), amount(case.received)));
        assert!(!variants.is_empty(), "of no function: {}", case.row);
        for function in variants {
            for layout in layouts() {
                let found = moved(&layout, function.function(), &case);
                assert_eq!(
                    found,
                    expected,
                    "{} with handles {}: {}",
                    function.function().name,
                    layout.handles,
                    case.row
                );
            }
        }
    }
}

/// By their arguments: what has a buffer that is not only filled or looked at locally moves it.
#[test]
fn no_function_that_moves_data_is_without_a_case() {
    let tested: BTreeSet<FunctionId> = cases().flat_map(|case| variants(&case)).collect();
    let moves = |function: &&FunctionId| {
        let group = function.function().group;
        let is_communication = [Group::PointToPoint, Group::Collective, Group::OneSided, Group::Io].contains(&group);
        let ends = function.function().name.ends_with("_end");
        let is_local = function.function().name.starts_with("MPI_Reduce_local");
        is_communication && !ends && !is_local && function.function().position(Role::Buffer).is_some()
    };
    let all: BTreeSet<FunctionId> = FunctionId::all().collect();
    let expected: BTreeSet<FunctionId> = all.iter().filter(moves).copied().collect();
    assert_eq!(tested.symmetric_difference(&expected).collect::<Vec<_>>(), Vec::<&FunctionId>::new());
    for function in all {
        let descriptor = function.function().descriptor();
        let moves = descriptor.send_amount | descriptor.receive_amount != 0;
        assert_eq!(moves, expected.contains(&function), "{}", function.function().name);
    }
}
