//! The critical path: which activities, one after the other over all threads, have determined how long the job took.
//!
//! It is followed from the end back to the beginning: where a thread has waited, it goes over to the one that was waited for. While a trace
//! is replayed, nobody knows the end yet: so the paths that lead to each thread's present are kept, which have nearly all of their past in
//! common, as a tree whose trunk is written off.

use hashbrown::HashMap;

use super::log::{Log, TimeByCell};

/// Time by location and cell.
pub(super) type PathTime = HashMap<(u32, u32), u64>;

/// A part of a thread's time on a path.
#[derive(Clone, Copy, Debug)]
struct Piece {
    location: u32,
    from_ns: u64,
    until_ns: u64,
}

#[derive(Debug)]
struct Node {
    parent: Option<u32>,
    /// Not looked up yet.
    piece: Option<Piece>,
    /// Looked up: what the thread has done.
    time: Vec<((u32, u32), u64)>,
}

/// Where the path to a thread's present begins to be in that thread.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    node: Option<u32>,
    since_ns: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Paths {
    nodes: Vec<Node>,
    heads: Vec<Head>,
    trunk: PathTime,
}

impl Paths {
    pub(super) fn grow(&mut self, locations: usize) {
        self.heads.resize_with(locations.max(self.heads.len()), Head::default);
    }

    /// A thread has waited for another one until then. Must be told in the order of time.
    pub(super) fn waited(&mut self, location: u32, cause: u32, at_ns: u64) {
        let Some(&of_cause) = self.heads.get(cause as usize) else { return };
        let node = if of_cause.node.is_some() && of_cause.since_ns == at_ns {
            of_cause.node
        } else {
            let piece = Piece { location: cause, from_ns: of_cause.since_ns, until_ns: at_ns };
            self.nodes.push(Node { parent: of_cause.node, piece: Some(piece), time: Vec::new() });
            u32::try_from(self.nodes.len() - 1).ok()
        };
        for location in [location, cause] {
            if let Some(head) = self.heads.get_mut(location as usize) {
                *head = Head { node, since_ns: at_ns };
            }
        }
    }

    /// What a thread has done before is about to be forgotten: it is a part of its own of the path to its present.
    pub(super) fn cut(&mut self, location: u32, until_ns: u64) {
        let Some(head) = self.heads.get_mut(location as usize).filter(|head| head.since_ns < until_ns) else { return };
        let piece = Piece { location, from_ns: head.since_ns, until_ns };
        self.nodes.push(Node { parent: head.node, piece: Some(piece), time: Vec::new() });
        *head = Head { node: u32::try_from(self.nodes.len() - 1).ok(), since_ns: until_ns };
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Looks up what threads have done on the paths that are left, for logs are about to forget it.
    pub(super) fn settle(&mut self, logs: &[Log], scratch: &mut TimeByCell) {
        let mut is_needed = vec![false; self.nodes.len()];
        let mut children = vec![0u32; self.nodes.len()];
        for head in &self.heads {
            let mut node = head.node;
            while let Some(index) = node {
                match is_needed.get_mut(index as usize) {
                    Some(needed) if !*needed => *needed = true,
                    _ => break,
                }
                node = self.nodes.get(index as usize).and_then(|node| node.parent);
                if let Some(children) = node.and_then(|parent| children.get_mut(parent as usize)) {
                    *children += 1;
                }
            }
        }
        let mut is_head = vec![false; self.nodes.len()];
        for index in self.heads.iter().filter_map(|head| head.node) {
            if let Some(is_head) = is_head.get_mut(index as usize) {
                *is_head = true;
            }
        }
        let mut numbers: Vec<Option<u32>> = vec![None; self.nodes.len()];
        let mut left: Vec<Node> = Vec::new();
        for (index, mut node) in std::mem::take(&mut self.nodes).into_iter().enumerate() {
            if is_needed.get(index) != Some(&true) {
                continue;
            }
            if let Some(Piece { location, from_ns, until_ns }) = node.piece.take()
                && let Some(log) = logs.get(location as usize)
            {
                log.add_span(from_ns, until_ns, scratch);
                scratch.drain(|cell, ns| node.time.push(((location, cell), ns)));
            }
            let parent = node.parent.and_then(|parent| numbers.get(parent as usize).copied().flatten());
            let is_link = node.parent.is_some_and(|parent| {
                children.get(parent as usize) == Some(&1) && is_head.get(parent as usize) == Some(&false)
            });
            node.parent = parent;
            // A node that leads nowhere else is one with the next.
            let before = parent.filter(|_| is_link).and_then(|parent| left.get_mut(parent as usize));
            let number = if let Some(before) = before {
                before.time.append(&mut node.time);
                parent
            } else {
                left.push(node);
                u32::try_from(left.len() - 1).ok()
            };
            if let Some(place) = numbers.get_mut(index) {
                *place = number;
            }
        }
        for head in &mut self.heads {
            head.node = head.node.and_then(|node| numbers.get(node as usize).copied().flatten());
        }
        self.nodes = left;
        self.write_off();
        for node in &mut self.nodes {
            compact(&mut node.time);
        }
    }

    /// What all paths have in common: the root, if every path begins there.
    fn write_off(&mut self) {
        let roots = self.nodes.iter().filter(|node| node.parent.is_none()).count();
        let all_have_one = self.heads.iter().all(|head| head.node.is_some());
        if roots != 1 || !all_have_one {
            return;
        }
        if let Some(root) = self.nodes.first_mut() {
            for (key, ns) in root.time.drain(..) {
                *self.trunk.entry(key).or_insert(0) += ns;
            }
        }
    }

    /// The path to a thread at a time, and how long it is.
    pub(super) fn to(&mut self, location: u32, at_ns: u64, logs: &[Log], scratch: &mut TimeByCell) -> PathTime {
        self.settle(logs, scratch);
        let mut path = std::mem::take(&mut self.trunk);
        let Some(head) = self.heads.get(location as usize).copied() else { return path };
        if let Some(log) = logs.get(location as usize) {
            log.add_span(head.since_ns, at_ns, scratch);
            scratch.drain(|cell, ns| *path.entry((location, cell)).or_insert(0) += ns);
        }
        let mut node = head.node;
        while let Some(on_path) = node.and_then(|node| self.nodes.get(node as usize)) {
            for &(key, ns) in &on_path.time {
                *path.entry(key).or_insert(0) += ns;
            }
            node = on_path.parent;
        }
        path
    }
}

fn compact(time: &mut Vec<((u32, u32), u64)>) {
    if time.len() < 64 {
        return;
    }
    time.sort_unstable_by_key(|(key, _)| *key);
    time.dedup_by(|later, earlier| {
        let is_same = later.0 == earlier.0;
        if is_same {
            earlier.1 += later.1;
        }
        is_same
    });
}
