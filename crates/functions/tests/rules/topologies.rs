//! Who the neighbours of a process are, by MPI-4.1, section 8.

use mpiprobe_common::{
    flow::{Topology, topology_kind},
    rules::amount::Way,
};

fn grid(lengths: &[i32], periodic: &[i32]) -> Topology {
    let mut grid = Topology { kind: topology_kind::GRID, ..Topology::NONE };
    grid.first[..lengths.len()].copy_from_slice(lengths);
    grid.second[..periodic.len()].copy_from_slice(periodic);
    (grid.first_length, grid.second_length) = (lengths.len() as u32, periodic.len() as u32);
    grid
}

fn of(topology: &Topology, rank: u32) -> Option<Vec<u32>> {
    let all = |way| topology.neighbours(rank, way).map(Iterator::collect::<Vec<u32>>);
    assert_eq!(all(Way::Arrives), all(Way::Leaves));
    all(Way::Arrives)
}

#[test]
fn in_a_grid_they_are_before_and_behind_in_each_dimension() {
    // Ranks: 0 1 2 / 3 4 5, open from above to below, closed from left to right.
    let plane = grid(&[2, 3], &[0, 1]);
    assert_eq!(of(&plane, 0), Some(vec![3, 2, 1]));
    assert_eq!(of(&plane, 4), Some(vec![1, 3, 5]));
    assert_eq!(of(&plane, 5), Some(vec![2, 4, 3]));
    // Of one process, alone in both directions.
    assert_eq!(of(&grid(&[1, 1], &[0, 1]), 0), Some(vec![0, 0]));
    assert_eq!(of(&grid(&[], &[]), 0), Some(vec![]));
}

#[test]
fn what_no_grid_is_has_no_neighbours() {
    assert_eq!(of(&grid(&[2, 0], &[0, 0]), 0), None);
    assert_eq!(of(&grid(&[i32::MAX, i32::MAX, i32::MAX], &[1, 1, 1]), 7), None);
    // More dimensions than there is room for.
    let many =
        Topology { kind: topology_kind::GRID, first_length: 100, second_length: 100, ..grid(&[1; 100], &[1; 100]) };
    assert_eq!(of(&many, 0), None);
    assert_eq!(of(&Topology { first_length: u32::MAX, ..grid(&[], &[]) }, 0), None);
    assert_eq!(of(&Topology::NONE, 0), None);
}

#[test]
fn lists_are_of_one_rank() {
    let mut tree =
        Topology { kind: topology_kind::GRAPH, rank: 1, first_length: 1, second_length: 3, ..Topology::NONE };
    tree.second[..3].copy_from_slice(&[2, 3, -1]);
    let all = |topology: &Topology, rank, way| topology.neighbours(rank, way).map(Iterator::collect::<Vec<u32>>);
    assert_eq!(all(&tree, 1, Way::Arrives), Some(vec![0]));
    assert_eq!(all(&tree, 1, Way::Leaves), Some(vec![2, 3]));
    // It was given another rank than it had, and the lists are of whoever has that one now.
    assert_eq!(all(&tree, 2, Way::Arrives), None);
    let graph = Topology { kind: topology_kind::BOTH_WAYS, ..tree };
    assert_eq!(of(&graph, 1), Some(vec![0]));
}
