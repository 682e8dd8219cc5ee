//! MPI libraries and readers of traces from PyPI, each in a virtual environment of its own that `cargo xtask setup test` makes.

use std::path::PathBuf;

use crate::compile::cache_directory;

/// What is installed: what an environment has, as requirements of pip's, a line; xtask reads the same files.
const WHEELS: [&str; 2] = [include_str!("../wheels.txt"), include_str!("../readers/wheels.txt")];

/// Written when everything else is there.
const READY: &str = ".ready";

/// The environment of `package`; `None` if it has not been made.
pub fn environment(package: &str) -> Option<PathBuf> {
    let firsts = WHEELS.iter().flat_map(|list| list.lines()).filter_map(|line| line.split(' ').next());
    let requirement = firsts.into_iter().find(|first| first.split("==").next() == Some(package))?;
    let directory = cache_directory().join("wheels").join(requirement);
    directory.join(READY).exists().then_some(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_versions_are_pinned() {
        for line in WHEELS.iter().flat_map(|list| list.split_whitespace()) {
            let (package, version) = line.split_once("==").unwrap();
            assert!(!package.is_empty() && version.starts_with(|c: char| c.is_ascii_digit()), "{line}");
        }
    }
}
