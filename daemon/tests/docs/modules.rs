//! No module uses one that uses it back: within each crate, as cargo sees to it between them.
//!
//! What a module uses is read from its `use` declarations and paths that begin with `crate`, `self` or `super`; names that a
//! module passes on by `pub use` count as the module's that they come from. Code for tests is left out.

use std::collections::{BTreeMap, BTreeSet};

use crate::workspace::{files_in, read, root};

/// A module by its path from the crate's root.
type Path = Vec<String>;

struct Crate {
    /// Modules with what they use, as written.
    modules: BTreeMap<Path, Vec<Path>>,
    /// What a module passes on: a name to the path that it comes from.
    passed_on: BTreeMap<(Path, String), Path>,
}

impl Crate {
    fn read(sources: &str) -> Self {
        let mut found = Self { modules: BTreeMap::new(), passed_on: BTreeMap::new() };
        found.read_folder(sources, sources);
        found
    }

    fn read_folder(&mut self, sources: &str, folder: &str) {
        for path in files_in(folder) {
            let relative = path.strip_prefix(&format!("{sources}/")).unwrap_or(&path);
            if relative.split('/').any(is_for_tests) {
                continue;
            }
            if root().join(&path).is_dir() {
                self.read_folder(sources, &path);
            } else if let Some(module) = relative.strip_suffix(".rs").filter(|module| *module != "main") {
                let mut module: Path = module.split('/').map(ToOwned::to_owned).collect();
                module.pop_if(|last| ["lib", "mod"].contains(&last.as_str()));
                self.add(module, &without_comments(&read(&path)));
            }
        }
    }

    fn add(&mut self, module: Path, code: &str) {
        let code = without_tests(code);
        let mut used = Vec::new();
        let mut rest = String::new();
        for (number, part) in code.split(';').enumerate() {
            let Some((before, declaration)) = part.rsplit_once("use ").filter(|(before, _)| is_declaration(before))
            else {
                rest.push_str(part);
                continue;
            };
            let is_passed_on = before.trim_end().ends_with(['b', ')']);
            rest.push_str(if number == 0 { "" } else { before });
            for path in flat(declaration) {
                if let Some(name) = path.last().filter(|_| is_passed_on) {
                    self.passed_on.insert((module.clone(), name.clone()), path.clone());
                }
                used.push(path);
            }
        }
        used.extend(paths_in(&rest));
        used.retain(|path| ["crate", "self", "super"].contains(&path.first().map_or("", String::as_str)));
        self.modules.insert(module, used);
    }

    /// The innermost module that a path, used in `module`, leads to.
    fn resolve(&self, module: &Path, path: &[String], depth: usize) -> Path {
        let mut at = module.clone();
        for part in path {
            match part.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => drop(at.pop()),
                name => {
                    at.push(name.to_owned());
                    if !self.modules.contains_key(&at) {
                        at.pop();
                        let from = self.passed_on.get(&(at.clone(), name.to_owned()));
                        return match from {
                            Some(from) if depth < 5 => self.resolve(&at, from, depth + 1),
                            _ => at,
                        };
                    }
                }
            }
        }
        at
    }

    /// Sets of modules of one parent that use each other in a circle.
    fn circles(&self) -> Vec<String> {
        let mut uses: BTreeMap<Path, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (module, used) in &self.modules {
            for target in used.iter().map(|path| self.resolve(module, path, 0)) {
                let common = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
                if let (Some(user), Some(used)) = (module.get(common), target.get(common)) {
                    let siblings = uses.entry(module.iter().take(common).cloned().collect()).or_default();
                    siblings.entry(user.clone()).or_default().insert(used.clone());
                }
            }
        }
        let in_a_circle = |siblings: &BTreeMap<String, BTreeSet<String>>, module: &String| {
            let mut reached = BTreeSet::new();
            let mut next: Vec<&String> = vec![module];
            while let Some(module) = next.pop() {
                let of_it = siblings.get(module).into_iter().flatten();
                next.extend(of_it.filter(|used| reached.insert(used.as_str())));
            }
            reached.contains(module.as_str())
        };
        let within = uses.iter().filter_map(|(parent, siblings)| {
            let round: Vec<&str> =
                siblings.keys().filter(|module| in_a_circle(siblings, module)).map(String::as_str).collect();
            (!round.is_empty()).then(|| format!("{}: {}", parent.join("::"), round.join(", ")))
        });
        within.collect()
    }
}

fn is_for_tests(part: &str) -> bool {
    part.contains("test") || ["fake.rs", "sample.rs", "mpi_job.rs"].contains(&part)
}

fn is_declaration(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default().trim();
    line.is_empty() || line == "pub" || (line.starts_with("pub(") && line.ends_with(')'))
}

fn without_comments(code: &str) -> String {
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Up to the module with the tests.
fn without_tests(code: &str) -> &str {
    let is_their_module = |after: &str| {
        let line = after.trim_start().lines().next().unwrap_or_default();
        line.contains("mod ") && line.ends_with('{')
    };
    let mut attributes = code.match_indices("#[cfg(test)]");
    let end = attributes.find(|(at, attribute)| is_their_module(&code[at + attribute.len()..])).map(|(at, _)| at);
    &code[..end.unwrap_or(code.len())]
}

/// The paths of a `use` declaration, groups taken apart.
fn flat(declaration: &str) -> Vec<Path> {
    let path = |text: &str| -> Path {
        let name = text.split(" as ").next().unwrap_or_default();
        name.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
    };
    let Some((head, group)) = declaration.split_once('{') else { return vec![path(declaration)] };
    let (mut items, mut depth) = (vec![String::new()], 0);
    for c in group.chars() {
        match c {
            '}' if depth == 0 => break,
            ',' if depth == 0 => items.push(String::new()),
            c => {
                depth += i32::from(c == '{') - i32::from(c == '}');
                if let Some(item) = items.last_mut() {
                    item.push(c);
                }
            }
        }
    }
    let items = items.iter().filter(|item| !item.trim().is_empty());
    let whole = |tail: Path| [path(head), tail].concat();
    items
        .flat_map(|item| flat(item))
        .map(|mut tail| {
            tail.pop_if(|last| last == "self");
            whole(tail)
        })
        .collect()
}

/// Paths in code that begin with `crate` or `super`.
fn paths_in(code: &str) -> Vec<Path> {
    let words = code.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    let paths = words.filter(|word| word.starts_with("crate::") || word.starts_with("super::"));
    paths.map(|path| path.split("::").filter(|part| !part.is_empty()).map(ToOwned::to_owned).collect()).collect()
}

#[test]
fn no_modules_use_each_other_in_a_circle() {
    let crates = files_in("crates").into_iter().map(|path| path + "/src");
    let all = crates.chain(["daemon/src", "xtask/src"].map(str::to_owned));
    let circles: Vec<String> = all
        .flat_map(|sources| Crate::read(&sources).circles().into_iter().map(move |it| format!("{sources}: {it}")))
        .collect();
    assert!(circles.is_empty(), "modules use each other:\n{}", circles.join("\n"));
}

#[test]
fn paths_are_taken_apart() {
    let flat = |text| flat(text).iter().map(|path| path.join("::")).collect::<Vec<_>>();
    assert_eq!(flat("super::{a::{self, B}, c as d, e}"), ["super::a", "super::a::B", "super::c", "super::e"]);
    assert_eq!(flat("crate::x"), ["crate::x"]);
    assert_eq!(paths_in("let a = crate::b::C::new(super::d)"), [vec!["crate", "b", "C", "new"], vec!["super", "d"]]);
}
