//! All invariants of ARCHITECTURE.md are tested: a test says by `Invariant NAME.` in a comment which one it would notice the end of.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use crate::workspace::{files_in, read, root};

/// Where comments are looked for, and how a line of one begins.
const FOLDERS: [&str; 4] = ["crates", "daemon", "tests", "wrapper"];
const COMMENTS: [&str; 5] = ["/// Invariant", "//! Invariant", "// Invariant", "/* Invariant", "# Invariant"];

/// By the table whose head is `| name | what always holds | kept by |`.
fn named() -> BTreeSet<String> {
    let text = read("ARCHITECTURE.md");
    let table = text.split("| name | what always holds | kept by |").nth(1).unwrap_or_default();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.filter_map(|row| row.trim_matches('|').split('|').next()).map(|name| name.trim().to_owned()).collect()
}

/// Names by the files in which comments have them.
fn tested() -> BTreeMap<String, Vec<String>> {
    let mut tested: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut folders: Vec<String> = FOLDERS.map(ToOwned::to_owned).into();
    while let Some(folder) = folders.pop() {
        for path in files_in(&folder) {
            let is_source = |path: &Path| {
                path.extension().is_some_and(|it| ["rs", "c", "mjs", "py"].iter().any(|known| it == *known))
            };
            if root().join(&path).is_dir() {
                if !path.ends_with("node_modules") {
                    folders.push(path);
                }
            } else if is_source(Path::new(&path)) {
                for line in read(&path).lines() {
                    let Some(names) = COMMENTS.iter().find_map(|begin| line.trim_start().strip_prefix(begin)) else {
                        continue;
                    };
                    let names = names.trim_start_matches('s').trim_end_matches("*/").trim().trim_end_matches('.');
                    for name in names.split(", ") {
                        tested.entry(name.to_owned()).or_default().push(path.clone());
                    }
                }
            }
        }
    }
    tested
}

#[test]
fn every_invariant_is_tested() {
    let (named, tested) = (named(), tested());
    let untested: Vec<_> = named.iter().filter(|name| !tested.contains_key(*name)).collect();
    assert!(untested.is_empty(), "no test has a comment `Invariant NAME.` for {untested:?}");
    let unknown: Vec<_> = tested.iter().filter(|(name, _)| !named.contains(*name)).collect();
    assert!(unknown.is_empty(), "ARCHITECTURE.md does not name {unknown:?}");
}
