//! The crates know whom ARCHITECTURE.md says that they know.

use std::collections::{BTreeMap, BTreeSet};

use crate::workspace::{files_in, read};

type Dependencies = BTreeMap<String, BTreeSet<String>>;

/// By the `[dependencies]` of each crate.
fn declared() -> Dependencies {
    let crates = files_in("crates").into_iter();
    let known = crates.map(|path| {
        let manifest = read(&format!("{path}/Cargo.toml"));
        let dependencies = manifest.split("\n[dependencies]").nth(1).unwrap_or_default().split("\n[").next();
        let names = dependencies.unwrap_or_default().lines().filter_map(|line| line.strip_prefix("mpiprobe-"));
        let names = names.filter_map(|line| line.split(['.', ' ', '=']).next()).map(ToOwned::to_owned);
        (path.trim_start_matches("crates/").to_owned(), names.collect())
    });
    known.collect()
}

/// By the table whose head is `| crate | what it does | knows |`.
fn written() -> Dependencies {
    let text = read("ARCHITECTURE.md");
    let table = text.split("| crate | what it does | knows |").nth(1).unwrap_or_default();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let known = rows.filter_map(|row| {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let name = cells.next()?.trim_matches('`').to_owned();
        let known = cells.next_back()?.split(", ").filter(|name| !name.is_empty());
        Some((name, known.map(ToOwned::to_owned).collect()))
    });
    known.collect()
}

#[test]
fn crates_know_whom_the_map_says() {
    assert_eq!(declared(), written());
}
