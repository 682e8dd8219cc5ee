//! What `docs/hang.md` shows of programs that hang is what is said of them, but for numbers of threads.

use super::{CASES, Case, compared};

const DOCS: &str = include_str!("../../../docs/hang.md");
/// Behind a case's name: the same job, on nodes of these names.
const OVER_NODES: &str = " over nodes";
const NODES: [&str; 2] = [" (n1)", " (n2)"];
/// What the causes end at.
const NEXT: &str = "No rank has gone on";

/// Blocks of output, each with the line before it.
fn blocks() -> Vec<(&'static str, Vec<&'static str>)> {
    let lines: Vec<&str> = DOCS.lines().collect();
    let begins = lines.iter().enumerate().filter(|(_, line)| **line == "```text");
    let block = |(place, _): (usize, &&'static str)| {
        let named = place.checked_sub(1).map_or("", |before| lines[before]);
        (named, lines[place + 1..].iter().copied().take_while(|line| *line != "```").collect())
    };
    begins.map(block).collect()
}

/// The case that a comment names by its program and its argument.
fn case(comment: &str) -> Option<&'static Case> {
    let named = comment.strip_prefix("<!-- ")?.strip_suffix(" -->")?.trim_end_matches(OVER_NODES);
    CASES.iter().find(|case| format!("{} {}", case.program.name, case.name).trim_end() == named)
}

fn without_nodes(line: &str, comment: &str) -> String {
    let nodes = NODES.iter().filter(|_| comment.contains(OVER_NODES));
    nodes.fold(line.to_owned(), |line, node| line.replace(node, ""))
}

#[test]
fn the_page_shows_what_the_trials_expect() {
    let mut shown = 0;
    for (comment, lines) in blocks() {
        let causes = || lines.iter().copied().take_while(|line| !line.starts_with(NEXT));
        if let Some(case) = case(comment) {
            let told: Vec<String> = causes().map(|line| without_nodes(line, comment)).collect();
            assert_eq!(compared(case, told.iter().map(String::as_str)).unwrap(), case.told, "{comment}");
            shown += 1;
        } else {
            let is_of_case = causes().any(|line| line.starts_with("Deadlock") || line.contains("with different roots"));
            assert!(!is_of_case, "no program is named before {lines:?}");
        }
    }
    assert!(shown > 9, "only {shown} cases are shown");
}
