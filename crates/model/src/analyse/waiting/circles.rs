//! Circles in a graph.

use std::collections::{HashMap, HashSet, VecDeque};

use petgraph::{algo::kosaraju_scc, graph::DiGraph, graph::NodeIndex, visit::EdgeRef as _};

/// One shortest circle of each set of nodes that all lead to each other, each from its smallest node on; smallest first. Edges
/// may lead to nodes from `ranks` on, which stand for meeting points: these are left out of circles.
///
/// Where there are circles of `firm` edges alone, they are taken, and no others of the same nodes.
pub(super) fn circles(ranks: usize, firm: &[(usize, usize)], others: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut found: Vec<Vec<usize>> = sets(ranks, firm).into_iter().map(|(_, circle)| circle).collect();
    let known: HashSet<usize> = found.iter().flatten().copied().collect();
    let all: Vec<(usize, usize)> = firm.iter().chain(others).copied().collect();
    let is_new = |(set, _): &(Vec<usize>, _)| !set.iter().any(|node| known.contains(node));
    found.extend(sets(ranks, &all).into_iter().filter(is_new).map(|(_, circle)| circle));
    found.sort();
    found
}

/// Nodes that all lead to each other, and a shortest circle of them.
fn sets(ranks: usize, edges: &[(usize, usize)]) -> Vec<(Vec<usize>, Vec<usize>)> {
    let mut graph: DiGraph<(), ()> = DiGraph::new();
    let nodes = edges.iter().map(|&(from, to)| from.max(to) + 1).max().unwrap_or(0).max(ranks);
    for _ in 0..nodes {
        graph.add_node(());
    }
    for &(from, to) in edges {
        graph.add_edge(NodeIndex::new(from), NodeIndex::new(to), ());
    }
    let circle = |set: Vec<NodeIndex>| {
        let first = set.iter().min().copied()?;
        let is_circle = set.len() > 1 || graph.contains_edge(first, first);
        let circle = is_circle.then(|| shortest(&graph, first))?;
        let circle: Vec<usize> = circle.into_iter().filter(|&node| node < ranks).collect();
        (!circle.is_empty()).then(|| (set.into_iter().map(NodeIndex::index).collect(), circle))
    };
    kosaraju_scc(&graph).into_iter().filter_map(circle).collect()
}

/// The shortest way from a node back to it, itself first.
fn shortest(graph: &DiGraph<(), ()>, start: NodeIndex) -> Vec<usize> {
    let mut before: HashMap<NodeIndex, NodeIndex> = HashMap::new();
    let mut next = VecDeque::from([start]);
    while let Some(node) = next.pop_front() {
        let mut targets: Vec<NodeIndex> = graph.edges(node).map(|edge| edge.target()).collect();
        targets.sort();
        for target in targets {
            if target == start {
                let mut circle = vec![node.index()];
                let mut at = node;
                while let Some(&earlier) = before.get(&at).filter(|_| at != start) {
                    circle.push(earlier.index());
                    at = earlier;
                }
                circle.reverse();
                return circle;
            }
            if let std::collections::hash_map::Entry::Vacant(entry) = before.entry(target) {
                entry.insert(node);
                next.push_back(target);
            }
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_and_begin_with_their_smallest_rank() {
        assert_eq!(circles(5, &[(3, 1), (1, 2), (2, 3), (4, 1)], &[]), [vec![1, 2, 3]]);
        assert_eq!(circles(2, &[], &[(0, 0)]), [vec![0]]);
        assert!(circles(3, &[(0, 1)], &[(1, 2)]).is_empty());
        assert!(circles(0, &[], &[]).is_empty());
    }

    #[test]
    fn what_is_certain_is_told_first() {
        // 0 waits for 1, 2 or 3; 1 for 0 and 2; 2 for 1.
        let (firm, others) = ([(1, 0), (1, 2), (2, 1)], [(0, 1), (0, 2), (0, 3)]);
        assert_eq!(circles(4, &firm, &others), [vec![1, 2]]);
        assert_eq!(circles(4, &firm[..1], &others), [vec![0, 1]]);
        assert_eq!(circles(6, &firm, &[(0, 1), (4, 5), (5, 4)]), [vec![1, 2], vec![4, 5]]);
    }

    #[test]
    fn meeting_points_are_left_out() {
        // 0 and 2 meet at 4 and miss 1, which waits for 0.
        assert_eq!(circles(4, &[(0, 4), (2, 4), (4, 1), (1, 0)], &[]), [vec![0, 1]]);
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let edges: Vec<_> = (0..100_000).map(|node| (node, (node + 1) % 100_000)).collect();
        assert_eq!(circles(100_000, &edges, &[]).first().map(Vec::len), Some(100_000));
    }
}
