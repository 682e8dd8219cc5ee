//! Invariant ONE-COMMUNICATOR.
use super::*;

fn snapshot(number: u32, facts: Communicator) -> CommunicatorSnapshot {
    CommunicatorSnapshot {
        number,
        facts: Communicator { kind: communicator_kind::MADE, ..facts },
        ..Default::default()
    }
}

/// A communicator of two that a process has made at some time; the ranks are those in the world.
fn pair(rank: u32, members: [i32; 2], first_ns: u64) -> Communicator {
    Communicator {
        context: 7,
        rank,
        size: 2,
        first: members[0],
        middle: members[1],
        last: members[1],
        first_ns,
        made_by_plus_1: 1,
        ..Communicator::default()
    }
}

fn recognise(records: &[(u32, &CommunicatorSnapshot)]) -> Vec<Vec<(u32, u32)>> {
    let known = records.iter().map(|&(process, communicator)| MemberView {
        process,
        communicator,
        job: Some("job"),
        world_rank: Some(process),
    });
    let found = Recognised::of(known.collect());
    let numbers = |group: &Group<'_>| {
        let mut numbers: Vec<_> = group.known.iter().map(|known| (known.process, known.communicator.number)).collect();
        numbers.sort_unstable();
        numbers
    };
    found.groups.iter().map(numbers).collect()
}

#[test]
fn parts_of_a_split_are_told_apart_although_they_have_one_number() {
    let parts =
        [pair(0, [0, 1], 10), pair(1, [0, 1], 12), pair(0, [2, 3], 11), pair(1, [2, 3], 13)].map(|f| snapshot(1, f));
    let records: Vec<_> = (0..).zip(&parts).collect();
    assert_eq!(recognise(&records), [vec![(0, 1), (1, 1)], vec![(2, 1), (3, 1)]]);
}

#[test]
fn a_number_that_is_used_again_is_another_one() {
    let freed = |facts: Communicator| Communicator { freed_ns: facts.first_ns + 1, ..facts };
    let first = [pair(0, [0, 1], 10), pair(1, [0, 1], 12)].map(|facts| snapshot(1, freed(facts)));
    let second = [pair(0, [0, 1], 20), pair(1, [0, 1], 22)].map(|facts| snapshot(2, facts));
    let records = [(0, &first[0]), (0, &second[0]), (1, &first[1]), (1, &second[1])];
    assert_eq!(recognise(&records), [vec![(0, 1), (1, 1)], vec![(0, 2), (1, 2)]]);
    // Of the first one, somebody knows nothing.
    assert_eq!(recognise(&records[..3]), [vec![(0, 1), (1, 1)], vec![(0, 2)]]);
    assert_eq!(recognise(&[records[0], records[1], records[3]]), [vec![(0, 1)], vec![(0, 2), (1, 2)]]);
}

#[test]
fn out_of_different_ones_threads_may_make_others_in_any_order() {
    let world = |rank| {
        let facts = Communicator { made_by_plus_1: 0, context: 0, ..pair(rank, [0, 1], 1) };
        let mut world = snapshot(1, facts);
        world.facts.kind = communicator_kind::WORLD;
        world
    };
    let made = |rank, number: u32, parent| {
        let facts = Communicator { context: 0, parent, ..pair(rank, [0, 1], u64::from(10 * number + rank)) };
        snapshot(number, facts)
    };
    let of = |rank, parents: [u32; 2]| {
        let [first, second] = parents;
        [world(rank), made(rank, 2, 1), made(rank, 3, 1), made(rank, 4, first), made(rank, 5, second)]
    };
    // One makes one out of the first before it makes one out of the second, and the other one the other way round.
    let (one, other) = (of(0, [2, 3]), of(1, [3, 2]));
    let records: Vec<_> = one.iter().map(|known| (0, known)).chain(other.iter().map(|known| (1, known))).collect();
    let expected = [[(0, 1), (1, 1)], [(0, 2), (1, 2)], [(0, 3), (1, 3)], [(0, 4), (1, 5)], [(0, 5), (1, 4)]];
    let found = recognise(&records);
    assert_eq!(found.len(), expected.len());
    assert!(expected.iter().all(|group| found.contains(&group.to_vec())), "{found:?}");
}

#[test]
fn what_was_there_before_belongs_to_what_others_saw_being_made() {
    let gone = snapshot(1, Communicator { freed_ns: 11, ..pair(0, [0, 1], 10) });
    let made = snapshot(2, pair(0, [0, 1], 20));
    let found = snapshot(5, Communicator { made_by_plus_1: 0, ..pair(1, [0, 1], 30) });
    assert_eq!(recognise(&[(0, &gone), (0, &made), (1, &found)]), [vec![(0, 1)], vec![(0, 2), (1, 5)]]);
}

#[test]
fn both_sides_of_an_inter_communicator_are_one() {
    let side = |rank, first, last| {
        let facts = Communicator { remote_size: 2, is_inter: 1, middle: 9, last, ..pair(rank, [first, 9], 10) };
        snapshot(1, facts)
    };
    let sides = [side(0, 0, 1), side(0, 1, 0), side(1, 0, 1), side(1, 1, 0)];
    let records: Vec<_> = (0..).zip(&sides).collect();
    assert_eq!(recognise(&records), [vec![(0, 1), (1, 1), (2, 1), (3, 1)]]);
}
