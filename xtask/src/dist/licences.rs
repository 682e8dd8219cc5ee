//! Licences of all that is linked into the program: crates, the page's libraries, and the C library.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::said;
use crate::command::{self, workspace};

/// What names of files with a licence begin with, in any case.
const BEGINNINGS: [&str; 6] = ["licen", "copying", "copyright", "notice", "unlicense", "authors"];

/// `cargo metadata`, as far as it is used.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    license_file: Option<PathBuf>,
    manifest_path: PathBuf,
    /// `None`: it is one of mpiprobe's own.
    source: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// `None`: it is linked; else it is for building or tests.
    kind: Option<String>,
}

/// npm's lock file, as far as it is used.
#[derive(Deserialize)]
struct Lock {
    packages: BTreeMap<String, Module>,
}

#[derive(Deserialize)]
struct Module {
    version: Option<String>,
    license: Option<String>,
    /// It is for building or tests.
    #[serde(default)]
    dev: bool,
}

/// Who has what licence: a list, and below it every text once, under the names of those who have it.
#[derive(Default)]
struct Licences {
    /// By name and version, the licence as SPDX has it.
    list: BTreeMap<String, String>,
    /// By text, names.
    texts: BTreeMap<String, Vec<String>>,
}

/// As one text.
pub(super) fn collect(target: &str) -> Result<String> {
    let mut licences = Licences::default();
    let bpf = ["--manifest-path", "probe-ebpf/Cargo.toml"];
    for (arguments, roots) in [
        (["--filter-platform", target], ["mpiprobe", "mpiprobe-wrapper"].as_slice()),
        // Without a platform: it may be one of another compiler.
        (bpf, &[]),
    ] {
        let mut cargo = command::cargo();
        let text = said(cargo.args(["metadata", "--locked", "--format-version", "1"]).args(arguments))?;
        let metadata: Metadata = serde_json::from_str(&text).context("cargo metadata prints something else")?;
        licences.add_crates(&metadata, roots)?;
    }
    licences.add_modules(&workspace().join("crates/report/web"))?;
    // Its texts are those of mpiprobe's own licences.
    licences.list.insert("Rust standard library".into(), "MIT OR Apache-2.0".into());
    licences.add("GNU C Library (linked statically)", "LGPL-2.1-or-later", Path::new("/usr/share/doc/libc6"))?;
    Ok(licences.text())
}

impl Licences {
    /// All that is linked into the roots, or into any package of mpiprobe's if none is named.
    fn add_crates(&mut self, metadata: &Metadata, roots: &[&str]) -> Result<()> {
        let by_id: HashMap<&str, &Package> =
            metadata.packages.iter().map(|package| (package.id.as_str(), package)).collect();
        let nodes: HashMap<&str, &Node> = metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
        let is_root = |package: &&Package| {
            package.source.is_none() && (roots.is_empty() || roots.contains(&package.name.as_str()))
        };
        let mut open: Vec<&str> = metadata.packages.iter().filter(is_root).map(|package| package.id.as_str()).collect();
        let mut seen: HashSet<&str> = HashSet::new();
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            let linked = |dependency: &&Dependency| dependency.dep_kinds.iter().any(|kind| kind.kind.is_none());
            let node = nodes.get(id).with_context(|| format!("cargo metadata does not resolve {id}"))?;
            open.extend(node.deps.iter().filter(linked).map(|dependency| dependency.pkg.as_str()));
            let package = by_id.get(id).with_context(|| format!("cargo metadata does not describe {id}"))?;
            if package.source.is_none() {
                continue;
            }
            let expression = match (&package.license, &package.license_file) {
                (Some(expression), _) => expression.clone(),
                (None, Some(file)) => file.display().to_string(),
                (None, None) => bail!("{} {} says nothing of its licence", package.name, package.version),
            };
            let folder = package.manifest_path.parent().context("a manifest lies in a folder")?;
            self.add(&format!("{} {}", package.name, package.version), &expression, folder)?;
        }
        Ok(())
    }

    fn add_modules(&mut self, page: &Path) -> Result<()> {
        let path = page.join("package-lock.json");
        let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        let lock: Lock = serde_json::from_str(&text).with_context(|| format!("{} is no lock file", path.display()))?;
        for (place, module) in lock.packages.iter().filter(|(place, module)| !place.is_empty() && !module.dev) {
            let name = place.trim_start_matches("node_modules/");
            let version = module.version.as_deref().unwrap_or_default();
            let Some(expression) = &module.license else { bail!("{name} says nothing of its licence") };
            self.add(&format!("{name} {version}"), expression, &page.join(place))?;
        }
        Ok(())
    }

    fn add(&mut self, name: &str, expression: &str, folder: &Path) -> Result<()> {
        self.list.insert(name.to_owned(), expression.to_owned());
        for path in texts(folder)? {
            // Who has written something else than text there has meant no licence.
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let text = text.replace("\r\n", "\n").trim().to_owned();
            let names = self.texts.entry(text).or_default();
            if names.last().is_none_or(|last| last != name) {
                names.push(name.to_owned());
            }
        }
        Ok(())
    }

    fn text(&self) -> String {
        let mut text = String::from("Part of mpiprobe is, under its own licence each:\n\n");
        for (name, expression) in &self.list {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name}: {expression}");
        }
        for (licence, names) in &self.texts {
            let _ = write!(text, "\n{}\n{}\n\n{licence}\n", "=".repeat(80), names.join(", "));
        }
        text
    }
}

/// Files that tell a licence: in a folder of a package, and in folders in it, which may be somebody else's library.
fn texts(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut texts, inner) = look(folder)?;
    for folder in inner {
        texts.extend(look(&folder)?.0);
    }
    texts.sort();
    Ok(texts)
}

/// Files in a folder that are called as licences are, and folders in it.
fn look(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        if path.is_dir() {
            folders.push(path);
        } else if BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)) {
            files.push(path);
        }
    }
    Ok((files, folders))
}

#[cfg(test)]
mod tests {
    use super::Licences;

    #[test]
    fn every_text_is_there_once_under_all_names() {
        let mut licences = Licences::default();
        licences.list.insert("a 1".into(), "MIT".into());
        licences.list.insert("b 2".into(), "MIT OR Apache-2.0".into());
        licences.texts.insert("Permission is granted".into(), vec!["a 1".into(), "b 2".into()]);
        let text = licences.text();
        assert!(text.contains("a 1: MIT\nb 2: MIT OR Apache-2.0\n"), "{text}");
        assert!(text.ends_with("a 1, b 2\n\nPermission is granted\n"), "{text}");
    }
}
