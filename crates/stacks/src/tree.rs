//! Stacks of many threads as one tree: what they have in common once, with who is there.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ranks::{Member, RankSet};

/// What a frame is called in the tree: frames that are equal are one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Label {
    /// `solve`, `MPI_Recv`, `libucp.so.0+0x1234`.
    pub function: String,
    /// `solve.c:88`, or `solve+0x1f in solver`; `None` where the function's name says all that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

impl Label {
    pub fn new(function: impl Into<String>, place: Option<String>) -> Self {
        Self { function: function.into(), place }
    }

    fn text(&self) -> String {
        match &self.place {
            Some(place) => format!("{} ({place})", self.function),
            None => self.function.clone(),
        }
    }
}

/// A function that threads are in, and what it has called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    #[serde(flatten)]
    pub label: Label,
    pub ranks: RankSet,
    /// Threads that are in it, of all these ranks.
    pub threads: usize,
    /// Of those, the ones that have called nothing further.
    pub here: usize,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub callees: Vec<Node>,
}

/// The stacks of many threads.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Tree {
    roots: Vec<Node>,
}

/// What is put for frames that were left out.
const MORE: &str = "…";

impl Tree {
    /// Adds a thread; its frames from the outside in. Of more than `depth` frames the innermost are left out, which is shown.
    pub fn add(&mut self, member: Member, frames: impl IntoIterator<Item = Label>, depth: Option<usize>) {
        let mut level = &mut self.roots;
        let mut frames = frames.into_iter().enumerate().peekable();
        while let Some((place, label)) = frames.next() {
            let is_cut = depth.is_some_and(|depth| place >= depth);
            let label = if is_cut { Label::new(MORE, None) } else { label };
            let found = level.iter().position(|node| node.label == label);
            let found = found.unwrap_or_else(|| {
                level.push(Node { label, ranks: RankSet::default(), threads: 0, here: 0, callees: Vec::new() });
                level.len() - 1
            });
            let Some(node) = level.get_mut(found) else { return };
            node.ranks.insert(member);
            node.threads += 1;
            if is_cut || frames.peek().is_none() {
                node.here += 1;
                return;
            }
            level = &mut node.callees;
        }
    }

    /// Where most are first, then by name: the same stacks always make the same tree.
    pub fn sort(&mut self) {
        fn sort(nodes: &mut [Node]) {
            nodes.sort_by(|one, other| other.threads.cmp(&one.threads).then_with(|| one.label.cmp(&other.label)));
            for node in nodes {
                sort(&mut node.callees);
            }
        }
        sort(&mut self.roots);
    }

    pub fn roots(&self) -> &[Node] {
        &self.roots
    }

    /// For people: a line for each frame, with ranks and threads where they part.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let several = self.roots.len() > 1;
        for (place, root) in self.roots.iter().enumerate() {
            let is_last = place + 1 == self.roots.len();
            let (branch, indent) = match (several, is_last) {
                (false, _) => ("", ""),
                (true, false) => ("├─ ", "│  "),
                (true, true) => ("└─ ", "   "),
            };
            write_text(root, branch, indent, None, &mut text);
        }
        text
    }

    /// A line for each place where threads are: frames from the outside in, the ranks as the last one, and how many threads.
    pub fn folded(&self) -> String {
        fn write(node: &Node, path: &str, text: &mut String) {
            // The semicolon parts frames.
            let path = format!("{path}{}", node.label.text().replace([';', '\n'], ":"));
            let below: usize = node.callees.iter().map(|callee| callee.threads).sum();
            if node.here > 0 {
                let inner: RankSet = if below == 0 { node.ranks.clone() } else { only_here(node) };
                let ranks = if inner.is_empty() { &node.ranks } else { &inner };
                let _ = writeln!(text, "{path};ranks {ranks} {}", node.here);
            }
            for callee in &node.callees {
                write(callee, &format!("{path};"), text);
            }
        }
        let mut text = String::new();
        self.roots.iter().for_each(|root| write(root, "", &mut text));
        text
    }

    /// For Graphviz, as STAT writes it: on each edge `count:[ranks]`.
    pub fn dot(&self) -> String {
        fn write(node: &Node, parent: usize, next: &mut usize, text: &mut String) {
            let own = *next;
            *next += 1;
            let _ = writeln!(text, "  {own} [label=\"{}\"];", quoted(&node.label.text()));
            let edge = format!("{}:[{}]", node.threads, node.ranks);
            let _ = writeln!(text, "  {parent} -> {own} [label=\"{}\"];", quoted(&edge));
            node.callees.iter().for_each(|callee| write(callee, own, next, text));
        }
        let mut text = String::from("digraph stacks {\n  node [shape=box];\n  0 [label=\"/\"];\n");
        let mut next = 1;
        self.roots.iter().for_each(|root| write(root, 0, &mut next, &mut text));
        text.push_str("}\n");
        text
    }
}

/// Ranks that are in none of the callees.
fn only_here(node: &Node) -> RankSet {
    let is_below = |member: &Member| node.callees.iter().any(|callee| callee.ranks.contains(*member));
    node.ranks.iter().filter(|member| !is_below(member)).collect()
}

fn write_text(node: &Node, branch: &str, indent: &str, above: Option<&Node>, text: &mut String) {
    // Who is here stands where it is not the same as above.
    let is_same = above.is_some_and(|above| above.threads == node.threads && above.ranks == node.ranks);
    let who = if is_same { String::new() } else { format!("{}  ", who(&node.ranks, node.threads)) };
    let _ = writeln!(text, "{branch}{who}{}", node.label.text());
    match node.callees.as_slice() {
        [only] if node.here == 0 => write_text(only, indent, indent, Some(node), text),
        callees => {
            for (place, callee) in callees.iter().enumerate() {
                let is_last = place + 1 == callees.len();
                let (branch, deeper) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
                write_text(callee, &format!("{indent}{branch}"), &format!("{indent}{deeper}"), Some(node), text);
            }
        }
    }
}

/// `0-3`, and how many threads where that is another number.
fn who(ranks: &RankSet, threads: usize) -> String {
    if ranks.len() == threads { format!("[{ranks}]") } else { format!("[{ranks}: {threads} threads]") }
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(depth: Option<usize>) -> Tree {
        let mut tree = Tree::default();
        for rank in 0..5 {
            let call = if rank == 1 { ("MPI_Recv", "hang.c:16") } else { ("MPI_Barrier", "hang.c:18") };
            let frames =
                [Label::new("_start", None), Label::new("main", Some(call.1.into())), Label::new(call.0, None)];
            tree.add(Member::Rank(rank), frames, depth);
        }
        tree.add(Member::Rank(1), [Label::new("clone", None), Label::new("a\"b;c", None)], depth);
        tree.sort();
        tree
    }

    #[test]
    fn what_is_common_is_said_once() {
        let expected = "\
├─ [0-4]  _start
│  ├─ [0,2-4]  main (hang.c:18)
│  │  MPI_Barrier
│  └─ [1]  main (hang.c:16)
│     MPI_Recv
└─ [1]  clone
   a\"b;c
";
        assert_eq!(tree(None).text(), expected);
    }

    #[test]
    fn a_thread_may_stop_where_others_go_on() {
        let mut tree = Tree::default();
        tree.add(Member::Rank(0), [Label::new("main", None)], None);
        tree.add(Member::Rank(1), [Label::new("main", None), Label::new("step", None)], None);
        tree.add(Member::Rank(1), [Label::new("main", None), Label::new("step", None)], None);
        assert_eq!(tree.text(), "[0,1: 3 threads]  main\n└─ [1: 2 threads]  step\n");
        assert_eq!(tree.folded(), "main;ranks 0 1\nmain;step;ranks 1 2\n");
    }

    #[test]
    fn deeper_frames_are_left_out_and_that_is_shown() {
        let text = tree(Some(1)).text();
        assert_eq!(text, "├─ [0-4]  _start\n│  …\n└─ [1]  clone\n   …\n");
        assert_eq!(tree(Some(1)).roots().iter().map(|root| root.threads).sum::<usize>(), 6);
    }

    #[test]
    fn other_programs_read_it() {
        let folded = tree(None).folded();
        assert!(folded.starts_with("_start;main (hang.c:18);MPI_Barrier;ranks 0,2-4 4\n"), "{folded}");
        assert!(folded.ends_with("clone;a\"b:c;ranks 1 1\n"), "{folded}");
        let dot = tree(None).dot();
        assert!(dot.contains("0 -> 1 [label=\"5:[0-4]\"];") && dot.contains("label=\"a\\\"b;c\""), "{dot}");
        let json = serde_json::to_string(&tree(None)).unwrap();
        assert_eq!(serde_json::from_str::<Tree>(&json).unwrap(), tree(None));
    }
}
