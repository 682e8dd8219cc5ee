//! Circles in a graph, and knots.

use std::collections::{HashMap, HashSet, VecDeque};

use petgraph::{algo::kosaraju_scc, graph::DiGraph, graph::NodeIndex, visit::EdgeRef as _};

use super::needs::Need;

/// From ranks to ranks, or to points where ranks meet: nodes from the number of ranks on.
#[derive(Clone, Debug, Default)]
pub(super) struct Edges {
    /// All of them are certain.
    firm: Vec<(usize, usize)>,
    /// Of those from one node, any would do.
    any: Vec<(usize, usize)>,
    /// Of those from one node, one is certain, and it is not known which.
    unsure: Vec<(usize, usize)>,
}

impl Edges {
    /// Those of needs like this one.
    pub(super) const fn of(&mut self, need: &Need) -> &mut Vec<(usize, usize)> {
        match need {
            Need::All(_) => &mut self.firm,
            Need::Any(_) => &mut self.any,
            Need::OneOf(_) => &mut self.unsure,
        }
    }

    /// One shortest circle of each set of nodes that all lead to each other, each from its smallest node on; smallest first. Meeting points
    /// are left out. Where there are circles of certain edges alone, they are taken, and no others of the same nodes.
    ///
    /// Where circles go over edges that are not sure: the sets that nothing leads out of (knots), sorted. Each node waits for another one of
    /// its set, whichever. Of two nodes that is a circle.
    pub(super) fn circles(self, ranks: usize) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
        let Self { firm, any, unsure } = self;
        let mut graph = graph(ranks, &[&firm, &any, &unsure]);
        add(&mut graph, &firm);
        let mut circles: Vec<Vec<usize>> = sets(&graph).iter().filter_map(|set| circle(&graph, ranks, set)).collect();
        let mut known: HashSet<usize> = circles.iter().flatten().copied().collect();
        add(&mut graph, &any);
        for set in new_sets(&graph, &known) {
            circles.extend(circle(&graph, ranks, &set));
        }
        known.extend(circles.iter().flatten());
        add(&mut graph, &unsure);
        let mut knots = Vec::new();
        for set in new_sets(&graph, &known).into_iter().filter(|set| is_closed(&graph, set)) {
            let mut knot: Vec<usize> = set.iter().map(|node| node.index()).filter(|&node| node < ranks).collect();
            knot.sort_unstable();
            match knot.len() {
                0 | 1 => {}
                2 => circles.push(knot),
                _ => knots.push(knot),
            }
        }
        circles.sort();
        knots.sort();
        (circles, knots)
    }
}

type Graph = DiGraph<(), ()>;

/// Without edges yet.
fn graph(ranks: usize, edges: &[&[(usize, usize)]]) -> Graph {
    let nodes = edges.iter().copied().flatten().map(|&(from, to)| from.max(to) + 1).max().unwrap_or(0).max(ranks);
    let mut graph = DiGraph::new();
    for _ in 0..nodes {
        graph.add_node(());
    }
    graph
}

fn add(graph: &mut Graph, edges: &[(usize, usize)]) {
    for &(from, to) in edges {
        graph.add_edge(NodeIndex::new(from), NodeIndex::new(to), ());
    }
}

/// Nodes that all lead to each other.
fn sets(graph: &Graph) -> Vec<Vec<NodeIndex>> {
    let is_circle = |set: &Vec<NodeIndex>| match set.as_slice() {
        [node] => graph.contains_edge(*node, *node),
        set => !set.is_empty(),
    };
    kosaraju_scc(graph).into_iter().filter(is_circle).collect()
}

/// The same, without those of which one is known already.
fn new_sets(graph: &Graph, known: &HashSet<usize>) -> Vec<Vec<NodeIndex>> {
    let is_new = |set: &Vec<NodeIndex>| !set.iter().any(|node| known.contains(&node.index()));
    sets(graph).into_iter().filter(is_new).collect()
}

/// Whether nothing leads out of it.
fn is_closed(graph: &Graph, set: &[NodeIndex]) -> bool {
    let own: HashSet<NodeIndex> = set.iter().copied().collect();
    set.iter().all(|node| graph.neighbors(*node).all(|to| own.contains(&to)))
}

/// A shortest circle of nodes that all lead to each other, from the smallest one on, without meeting points.
fn circle(graph: &Graph, ranks: usize, set: &[NodeIndex]) -> Option<Vec<usize>> {
    let first = set.iter().min().copied()?;
    let circle: Vec<usize> = shortest(graph, first).into_iter().filter(|&node| node < ranks).collect();
    (!circle.is_empty()).then_some(circle)
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

    fn circles(ranks: usize, firm: &[(usize, usize)], any: &[(usize, usize)]) -> Vec<Vec<usize>> {
        let (circles, knots) = Edges { firm: firm.into(), any: any.into(), unsure: Vec::new() }.circles(ranks);
        assert!(knots.is_empty());
        circles
    }

    fn with_unsure(ranks: usize, firm: &[(usize, usize)], unsure: &[(usize, usize)]) -> [Vec<Vec<usize>>; 2] {
        Edges { firm: firm.into(), any: Vec::new(), unsure: unsure.into() }.circles(ranks).into()
    }

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
    fn where_it_is_not_known_which_circle_there_is_all_are_told_that_may_be_in_it() {
        let none = Vec::<Vec<usize>>::new;
        // 0 waits for 1 or 2, which wait for it.
        let unsure = [(0, 1), (0, 2)];
        assert_eq!(with_unsure(3, &[(1, 0), (2, 0)], &unsure), [none(), vec![vec![0, 1, 2]]]);
        // 2 waits for 3, which does not go on either, and for nobody: it may be this one that 0 waits for.
        assert_eq!(with_unsure(4, &[(1, 0), (2, 3)], &unsure), [none(), none()]);
        // 2 and 3 wait for each other: that is certain, and whether 0 and 1 do is not.
        assert_eq!(with_unsure(4, &[(1, 0), (2, 3), (3, 2)], &unsure), [vec![vec![2, 3]], none()]);
        // One of two is no question.
        assert_eq!(with_unsure(2, &[(1, 0)], &[(0, 1)]), [vec![vec![0, 1]], none()]);
        // All meet at 3: each waits for one of them that it is not itself.
        let all = [(0, 3), (1, 3), (2, 3), (3, 0), (3, 1), (3, 2)];
        assert_eq!(with_unsure(3, &[], &all), [none(), vec![vec![0, 1, 2]]]);
        assert_eq!(with_unsure(1, &[], &[(0, 1), (1, 0)]), [none(), none()]);
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
