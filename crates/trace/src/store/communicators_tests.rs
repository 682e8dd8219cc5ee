//! Communicators of several processes, as each of them knows them.
#![allow(clippy::cast_possible_truncation, reason = "nothing here is so long")]

use super::*;
use crate::{HandMade, NodeId};

fn processes(count: u32) -> Vec<Process> {
    HandMade::of_ranks(count).definitions.processes
}

/// One that a process has made, of these ranks of the world.
fn made(process: u32, number: u32, members: &[u32]) -> LocalCommunicator {
    let at = |place: usize| members.get(place).copied();
    LocalCommunicator {
        process: ProcessId(process),
        number,
        name: String::new(),
        kind: CommunicatorKind::Made,
        context: 0,
        size: members.len() as u32,
        remote_size: 0,
        rank: members.iter().position(|&rank| rank == process).unwrap() as u32,
        parent: None,
        made_by: Some("MPI_Comm_split".into()),
        outline: [at(0), at(members.len() / 2), at(members.len() - 1)],
        members: Vec::new(),
        remote_members: Vec::new(),
        neighbours: None,
        was_made: true,
        first_ns: u64::from(number) * 10,
        freed_ns: None,
    }
}

fn world(process: u32, size: u32) -> LocalCommunicator {
    let members: Vec<u32> = (0..size).collect();
    let name = "MPI_COMM_WORLD".into();
    LocalCommunicator {
        kind: CommunicatorKind::World,
        made_by: None,
        name,
        was_made: false,
        ..made(process, 1, &members)
    }
}

fn united(locals: Vec<LocalCommunicator>, count: u32) -> (Vec<Communicator>, Numbers) {
    let known = locals.into_iter().map(|local| ((local.process, local.number), local)).collect();
    unite(&known, &Numbers::new(), &processes(count))
}

#[test]
fn everybody_knows_his_own_place_and_all_together_all_places() {
    let mut locals: Vec<_> = (0..4).map(|rank| world(rank, 4)).collect();
    // Two splits, of which each rank knows its part only.
    for rank in 0..4 {
        let part: &[u32] = if rank % 2 == 0 { &[2, 0] } else { &[1, 3] };
        locals.push(LocalCommunicator { parent: Some(1), ..made(rank, 2, part) });
        locals.push(made(rank, 3, &[3, 2, 1, 0]));
    }
    let (communicators, numbers) = united(locals, 4);
    let of = |process, number| &communicators[numbers[&(ProcessId(process), number)].index()];
    assert_eq!(communicators.len(), 4);
    assert_eq!((of(3, 1).name.as_str(), of(3, 1).members.len()), ("world", 4));
    assert_eq!(of(0, 2).members, [Some(2), Some(0)]);
    assert_eq!(of(1, 2).members, [Some(1), Some(3)]);
    assert_eq!(of(2, 3).members, [Some(3), Some(2), Some(1), Some(0)]);
    assert_eq!((numbers[&(ProcessId(0), 2)], of(0, 2).parent), (numbers[&(ProcessId(2), 2)], Some(CommunicatorId(0))));
    let mut names: Vec<&str> = communicators.iter().map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["split#1 of world", "split#2 of world", "split#3", "world"]);
}

#[test]
fn a_world_that_was_told_of_before_it_was_used_is_the_one_that_is_used() {
    let before = LocalCommunicator { number: 99, outline: [None; 3], name: String::new(), first_ns: 0, ..world(1, 2) };
    let (communicators, numbers) = united(vec![world(0, 2), before, world(1, 2)], 2);
    assert_eq!(communicators.len(), 1, "{communicators:?}");
    assert!(numbers.values().all(|id| *id == CommunicatorId(0)) && numbers.len() == 3, "{numbers:?}");
}

#[test]
fn the_nth_with_the_same_members_is_the_nth_of_everybody() {
    let locals = (0..2).flat_map(|rank| [2, 3].map(|number| made(rank, number, &[0, 1]))).collect();
    let (communicators, numbers) = united(locals, 2);
    assert_eq!(communicators.len(), 2);
    for number in [2, 3] {
        assert_eq!(numbers[&(ProcessId(0), number)], numbers[&(ProcessId(1), number)]);
    }
}

#[test]
fn out_of_different_ones_threads_may_make_others_in_any_order() {
    let mut locals: Vec<_> = (0..2).map(|rank| world(rank, 2)).collect();
    for rank in 0..2 {
        locals.extend([2, 3].map(|number| LocalCommunicator { parent: Some(1), ..made(rank, number, &[0, 1]) }));
        // The first process makes one out of the first one before it makes one out of the second, and the other one the other way round.
        let parents = if rank == 0 { [2, 3] } else { [3, 2] };
        let made = |(number, parent)| LocalCommunicator { parent: Some(parent), ..made(rank, number, &[0, 1]) };
        locals.extend([4, 5].into_iter().zip(parents).map(made));
    }
    let (communicators, numbers) = united(locals, 2);
    assert_eq!(communicators.len(), 5);
    let of = |process, number| numbers[&(ProcessId(process), number)];
    assert_eq!((of(0, 4), of(0, 5)), (of(1, 5), of(1, 4)));
}

#[test]
fn copies_of_different_inter_communicators_may_be_made_in_any_order() {
    // Two of one process on each side.
    let inter = |process: u32, number| LocalCommunicator {
        remote_size: 1,
        rank: 0,
        outline: [Some(process), None, Some(1 - process)],
        ..made(process, number, &[process])
    };
    let of = |process, parents: [u32; 2]| {
        let [first, second] = parents;
        let bridges = [2, 3].map(|number| inter(process, number));
        let copies = [(4, first), (5, second)];
        let copies =
            copies.map(|(number, parent)| LocalCommunicator { parent: Some(parent), ..inter(process, number) });
        [bridges, copies].concat()
    };
    let (communicators, numbers) = united([of(0, [2, 3]), of(1, [3, 2])].concat(), 2);
    assert_eq!(communicators.len(), 4);
    let number = |process, number| numbers[&(ProcessId(process), number)];
    assert_eq!((number(0, 4), number(0, 5)), (number(1, 5), number(1, 4)));
}

#[test]
fn who_comes_late_is_not_taken_for_what_is_known() {
    // All have said of the second one with these members that they use it, and nobody yet that there is a first one.
    let second: Vec<_> = (0..3).map(|rank| made(rank, 3, &[0, 1, 2])).collect();
    let given: Numbers = (0..3).map(|rank| ((ProcessId(rank), 3), CommunicatorId(7))).collect();
    let first: Vec<_> = (0..3).map(|rank| made(rank, 2, &[0, 1, 2])).collect();
    for told in 1..=3 {
        let locals = first.iter().take(told).chain(&second).cloned();
        let known = locals.map(|local| ((local.process, local.number), local)).collect();
        let (communicators, numbers) = unite(&known, &given, &processes(3));
        assert_eq!(communicators.len(), 2);
        let of = |number, told: usize| {
            (0..told as u32).map(|rank| numbers[&(ProcessId(rank), number)]).collect::<HashSet<CommunicatorId>>()
        };
        assert_eq!((of(2, told).len(), of(3, 3).len()), (1, 1));
        assert!(of(2, told).is_disjoint(&of(3, 3)));
        let names: Vec<&str> = communicators.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["split#2", "split#1"], "they are named in the order in which they were made");
    }
}

#[test]
fn whoever_is_not_recorded_is_not_known() {
    let known = LocalCommunicator { members: vec![None, Some(7), None], ..made(0, 2, &[0, 7, 9]) };
    let (communicators, _) = united(vec![known], 1);
    assert_eq!(communicators[0].members, [Some(0), Some(7), None]);
}

#[test]
fn each_side_of_an_inter_communicator_calls_the_other_one_remote() {
    let inter = |process: u32, own: &[u32], other: &[u32]| LocalCommunicator {
        remote_size: other.len() as u32,
        outline: [Some(own[0]), None, Some(other[0])],
        ..made(process, 2, own)
    };
    let locals = vec![inter(0, &[0], &[1, 2]), inter(1, &[1, 2], &[0]), inter(2, &[1, 2], &[0])];
    let (communicators, numbers) = united(locals, 3);
    assert_eq!(communicators.len(), 1);
    assert_eq!(numbers.len(), 3);
    assert_eq!(communicators[0].members, [Some(0)]);
    assert_eq!(communicators[0].remote_members, [Some(1), Some(2)]);
}

#[test]
fn a_number_of_the_librarys_that_is_used_again_is_of_another_one() {
    let with = |process, number, first_ns, freed_ns| LocalCommunicator {
        context: 5,
        was_made: false,
        first_ns,
        freed_ns,
        ..made(process, number, &[0, 1])
    };
    let locals = vec![with(0, 2, 10, Some(20)), with(0, 3, 30, None), with(1, 2, 31, None)];
    let (communicators, numbers) = united(locals, 2);
    assert_eq!(communicators.len(), 2);
    assert_eq!(numbers[&(ProcessId(0), 3)], numbers[&(ProcessId(1), 2)]);
}

#[test]
fn processes_on_other_nodes_have_ranks_too() {
    let mut all = processes(2);
    all[1].node = NodeId(1);
    let known = (0..2).map(|rank| ((ProcessId(rank), 2), made(rank, 2, &[1, 0]))).collect();
    let (communicators, _) = unite(&known, &Numbers::new(), &all);
    assert_eq!(communicators[0].members, [Some(1), Some(0)]);
}
