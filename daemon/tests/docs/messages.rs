//! Messages that `docs/troubleshooting.md` explains are ones that mpiprobe prints.

use std::fs;

use crate::{
    markdown::{code_spans, lines},
    workspace::{files_in, read, root},
};

#[test]
fn messages_exist() {
    let sources = ["crates", "daemon/src", "wrapper/src"].map(sources).concat();
    let text = read("docs/troubleshooting.md");
    let mut tried = 0;
    let mut unknown = Vec::new();
    for line in lines(&text).into_iter().filter(|line| line.text.starts_with("**`")) {
        let heading = line.text.rsplit_once("**").map_or(line.text, |(heading, _)| heading);
        for message in code_spans(heading) {
            for part in fixed_parts(message) {
                tried += 1;
                if !sources.contains(part) {
                    unknown.push(format!("line {}: {part}", line.number));
                }
            }
        }
    }
    assert!(unknown.is_empty(), "docs/troubleshooting.md explains what is nowhere printed:\n{}", unknown.join("\n"));
    assert!(tried >= 30, "only {tried} messages were found: how they are looked for is broken");
}

/// What stands between the words in capitals, which stand for names and numbers.
fn fixed_parts(message: &str) -> impl Iterator<Item = &str> {
    const NAMES: [&str; 13] =
        ["NAME", "PID", "ID", "N", "M", "A", "B", "WHAT", "PATH", "WAY", "OUTSIDE", "ARCHITECTURE", "FUNCTION"];
    let is_name = |word: &str| NAMES.contains(&word.trim_matches(|c: char| !c.is_ascii_alphanumeric())) || word == "…";
    let mut rest = message;
    let mut parts = Vec::new();
    while let Some(name) = rest.split(' ').find(|word| is_name(word)) {
        let (before, after) = rest.split_once(name).unwrap_or((rest, ""));
        parts.push(before);
        rest = after;
    }
    parts.push(rest);
    parts.into_iter().map(|part| part.trim_matches([' ', '"', '(', ')', ':'])).filter(|part| part.len() > 3)
}

/// All code in a folder, with the strings that go over several lines joined.
fn sources(folder: &str) -> String {
    let mut all = String::new();
    for path in files_in(folder) {
        if root().join(&path).is_dir() {
            all.push_str(&sources(&path));
        } else if let Ok(code) = fs::read_to_string(root().join(&path)) {
            let mut pieces = code.split("\\\n");
            all.push_str(pieces.next().unwrap_or_default());
            pieces.for_each(|piece| all.push_str(piece.trim_start()));
        }
    }
    all
}

#[test]
fn names_are_left_out() {
    let parts = |message| fixed_parts(message).collect::<Vec<_>>();
    assert_eq!(parts("no process is called \"NAME\""), ["no process is called"]);
    assert_eq!(parts("NAME (pid PID) does not use MPI"), ["does not use MPI"]);
    assert_eq!(parts("PATH … has been deleted since"), ["has been deleted since"]);
}
