//! What all threads are in, merged: one row for each function, with who is in it.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use mpiprobe_report::present::units::{count, duration};
use mpiprobe_stacks::{Member, Node, Stacked, Tree};

use super::TableData;
use crate::{
    content::{Cell, Column, Grid, Row, RowId},
    source::{Running, Stacks},
};

const COLUMNS: &[Column] = &[
    Column::left("ranks", 14, 0),
    Column::right("threads", 8, 1),
    Column::text("function", 30, 0),
    Column::text("place", 24, 2),
];
/// What a thread is in that has called nothing further.
const FUNCTION: usize = 2;
/// Deeper functions are not moved further to the right.
const DEEPEST: usize = 24;

const NOT_YET: &str = "Stacks are looked at from now on; the first come in a second.";
const NOT_OPEN: &str = "The job has ended. Stacks are looked at only while this screen is open.";
const NOT_KEPT: &str = "Stacks are looked at only while a job is observed with this screen open; recordings have none.";
const REFUSED: &str = "Stacks are not looked at.";
const NOBODY: &str = "No thread is left.";

pub(super) fn grid(data: &TableData<'_>) -> Grid {
    let empty = |title: String, empty| Grid { title, columns: COLUMNS, empty, ..Grid::default() };
    let Some(shown) = data.stacks else {
        return empty(
            "Stacks".into(),
            match data.recent.running {
                Running::Live => NOT_YET,
                Running::Ended => NOT_OPEN,
                Running::Replay => NOT_KEPT,
            },
        );
    };
    let (stacks, took) = match shown.stacks {
        Stacks::Seen { stacks, took } => (stacks, took),
        Stacks::Refused(why) => return empty(format!("Stacks: {why}"), REFUSED),
    };
    let tree = tree(data, stacks);
    let (ranks, threads) = sums(&tree);
    let took = duration(took.as_nanos() as f64);
    let title = format!("Stacks of {} threads of {} ranks; a look takes {took}", count(threads), count(ranks));
    let mut rows = Rows { folded: shown.folded, rows: Vec::new() };
    for root in tree.roots() {
        rows.add(root, 0, 0);
    }
    Grid { title, columns: COLUMNS, rows: rows.rows, empty: NOBODY, natural: (FUNCTION, false) }
}

/// Of the ranks that the filter keeps.
fn tree(data: &TableData<'_>, stacks: &[Stacked]) -> Tree {
    let kept: Option<HashSet<Member>> = data.filter.map(|_| {
        let member = |(rank, pid): (Option<u32>, u32)| rank.map_or(Member::Pid(pid), Member::Rank);
        data.profile.ranks.iter().map(|rank| member((rank.rank, rank.pid))).collect()
    });
    let mut tree = Tree::default();
    for stack in stacks {
        for member in &stack.members {
            if kept.as_ref().is_none_or(|kept| kept.contains(member)) {
                tree.add(*member, stack.frames.iter().cloned(), None);
            }
        }
    }
    tree.sort();
    tree
}

fn sums(tree: &Tree) -> (u64, u64) {
    let ranks: HashSet<Member> = tree.roots().iter().flat_map(|root| root.ranks.iter()).collect();
    let threads: usize = tree.roots().iter().map(|root| root.threads).sum();
    (ranks.len() as u64, threads as u64)
}

struct Rows<'a> {
    folded: &'a HashSet<u64>,
    rows: Vec<Row>,
}

impl Rows<'_> {
    /// `above`: what stands for the functions that lead here; `depth`: how often threads have parted on the way.
    fn add(&mut self, node: &Node, above: u64, depth: usize) {
        let mut hasher = DefaultHasher::new();
        (above, &node.label).hash(&mut hasher);
        let id = hasher.finish();
        let is_folded = self.folded.contains(&id) && !node.callees.is_empty();
        let mark = if is_folded { "+ " } else { "" };
        let name = format!("{}{mark}{}", "  ".repeat(depth.min(DEEPEST)), node.label.function);
        let order = Cell::number(self.rows.len() as f64, name);
        self.rows.push(Row {
            id: RowId::Frame(id),
            cells: vec![
                Cell::text(node.ranks.to_string()),
                Cell::number(node.threads as f64, count(node.threads as u64)),
                order,
                node.label.place.as_deref().map_or_else(|| Cell::unknown(""), Cell::text),
            ],
            marked: false,
            opens: None,
        });
        if is_folded {
            return;
        }
        let parts = node.callees.len() > 1 || node.here > 0;
        for callee in &node.callees {
            self.add(callee, id, depth + usize::from(parts));
        }
    }
}
