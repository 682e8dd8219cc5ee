//! Where the documents are.
#![expect(clippy::panic, reason = "a helper that cannot go on fails its test")]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The top folder of the project.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// A file of the project, by its path from the top folder.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every document for people, by its path from the top folder.
pub(crate) fn documents() -> Vec<String> {
    let mut documents = vec!["ARCHITECTURE.md".to_owned(), "README.md".to_owned()];
    documents.extend(files_in("docs").into_iter().filter(|path| path.ends_with(".md")));
    documents
}

/// The files and folders directly in a folder, sorted; paths from the top folder.
pub(crate) fn files_in(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let paths = entries.map(|entry| entry.unwrap_or_else(|error| panic!("{folder}: {error}")).path());
    let mut paths: Vec<String> = paths.map(|path: PathBuf| shown(&path)).collect();
    paths.sort();
    paths
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).to_string_lossy().into_owned()
}
