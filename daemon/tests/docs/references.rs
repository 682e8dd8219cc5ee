//! Links, files and tests that the documents name are there.

use std::path::Path;

use crate::{
    markdown::{anchors, code_spans, lines, links},
    workspace::{documents, files_in, read, root},
};

#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    for document in documents() {
        let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
        let text = read(&document);
        for line in lines(&text).into_iter().filter(|line| !line.is_code) {
            for link in links(line.text).filter(|link| !link.starts_with("https://")) {
                let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
                let target = if file.is_empty() { document.clone() } else { format!("{folder}/{file}") };
                let target = target.trim_start_matches('/');
                let is_there = root().join(target).exists();
                let is_anchor_there = || anchor.is_empty() || anchors(&read(target)).iter().any(|name| name == anchor);
                if !is_there || !is_anchor_there() {
                    broken.push(format!("{document}:{}: {link}", line.number));
                }
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

/// Endings by which a code span is recognised as a file.
const ENDINGS: [&str; 9] = ["/", ".rs", ".c", ".h", ".S", ".tbl", ".txt", ".toml", ".md"];

/// In the code map, names are relative to the folder in the heading above.
#[test]
fn files_in_architecture_exist() {
    let text = read("ARCHITECTURE.md");
    let mut folder = String::new();
    let mut missing = Vec::new();
    for line in lines(&text).into_iter().filter(|line| !line.is_code) {
        let mut spans = code_spans(line.text);
        if line.text.starts_with('#') {
            folder = spans.next().unwrap_or_default().to_owned();
        }
        for span in code_spans(line.text) {
            // `file::test` names a test in a file.
            let (path, item) = span.split_once("::").unwrap_or((span, ""));
            let is_path = path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
            if !is_path || !ENDINGS.iter().any(|ending| path.ends_with(ending)) {
                continue;
            }
            let found =
                [path.to_owned(), format!("{folder}{path}")].into_iter().find(|path| root().join(path).exists());
            let Some(found) = found else {
                missing.push(format!("line {}: {path}", line.number));
                continue;
            };
            if !item.is_empty() && !read(&found).contains(item) {
                missing.push(format!("line {}: {item} in {found}", line.number));
            }
        }
    }
    assert!(missing.is_empty(), "ARCHITECTURE.md names what is not there:\n{}", missing.join("\n"));
}

/// Nothing as large as a folder of the program is left out of the code map; of crates, `crates_know_whom_the_map_says` sees to it.
#[test]
fn every_part_is_in_the_code_map() {
    let text = read("ARCHITECTURE.md");
    let parts = ["probe-ebpf", "wrapper", "tests", "xtask"].map(str::to_owned);
    let modules = files_in("daemon/src").into_iter().filter(|path| root().join(path).is_dir());
    let missing: Vec<String> = parts
        .into_iter()
        .chain(modules)
        .map(|part| part + "/")
        .filter(|part| !text.contains(&format!("`{part}")))
        .collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md does not mention {missing:?}");
}

/// Whoever adds unsafe code says so where a reader looks for it.
/// Invariant KERNEL-SEAM.
#[test]
fn every_file_with_unsafe_code_is_listed() {
    let text = read("ARCHITECTURE.md");
    let mut folders = vec!["crates".to_owned(), "daemon/src".to_owned()];
    let mut missing = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in files_in(&folder) {
            if root().join(&path).is_dir() {
                folders.push(path);
            } else if Path::new(&path).extension().is_some_and(|it| it == "rs")
                && read(&path).contains("expect(unsafe_code")
                && !text.contains(&format!("`{path}`"))
            {
                missing.push(path);
            }
        }
    }
    assert!(missing.is_empty(), "ARCHITECTURE.md does not list the unsafe code of {missing:?}");
}

#[test]
fn readme_has_the_two_commands() {
    let text = read("README.md");
    let commands: Vec<&str> = lines(&text).into_iter().filter(|line| line.is_code).map(|line| line.text).collect();
    for wanted in ["cargo xtask demo", "cargo xtask test"] {
        assert!(commands.iter().any(|line| line.starts_with(wanted)), "README.md does not tell to run `{wanted}`");
    }
}
