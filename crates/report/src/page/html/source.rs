//! Lines of the source around call sites, from directories that the user names.
//!
//! A profile knows the name of a source file and not where it is, so that nobody can have a report show other files by writing a
//! profile: only what is below the named directories is read, with the rights of the caller, and no link is followed.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs, io,
    path::{Path, PathBuf},
};

use mpiprobe_discover::{files::with_callers_rights, is_harmless, open_regular, read_from};
use mpiprobe_model::Profile;
use serde::Serialize;

/// Lines before and after the call.
const AROUND: usize = 6;
/// Characters of a line that are shown.
const LONGEST_LINE: usize = 240;
/// Bytes of a source file that is read.
const LARGEST_FILE: usize = 4 << 20;
/// Entries of directories that are looked at.
const MOST_ENTRIES: usize = 200_000;
/// Directories within directories.
const DEEPEST: usize = 32;
/// Excerpts in one report.
const MOST_EXCERPTS: usize = 2_000;

/// Some lines of a file.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Excerpt {
    /// From the directory that was named.
    file: String,
    line: usize,
    /// Number of the first of the lines.
    first: usize,
    lines: Vec<String>,
}

/// Excerpts by call site.
#[derive(Debug, Default)]
pub struct Sources {
    excerpts: HashMap<String, Excerpt>,
    /// What could not be shown, and why.
    notes: Vec<String>,
}

impl Sources {
    /// Looks below these directories for the files of a profile's call sites.
    pub fn find(profile: &Profile, directories: &[PathBuf]) -> io::Result<Self> {
        let mut sources = Self::default();
        if directories.is_empty() {
            return Ok(sources);
        }
        let flows = profile.ranks.iter().filter_map(|rank| rank.traffic.as_ref()).flat_map(|traffic| &traffic.flows);
        let sites: BTreeSet<&str> = flows.filter_map(|flow| flow.site.as_deref()).collect();
        let places: BTreeMap<&str, (&str, usize)> =
            sites.into_iter().filter_map(|site| Some((site, place(site)?))).collect();
        let wanted: BTreeSet<&str> = places.values().map(|(file, _)| *file).collect();
        with_callers_rights(|| {
            let mut files = Files { wanted: &wanted, found: BTreeMap::new(), entries: 0 };
            for directory in directories {
                files.look(directory, directory, 0)?;
            }
            sources.take(&places, &files);
            if files.entries > MOST_ENTRIES {
                sources
                    .notes
                    .push(format!("only {MOST_ENTRIES} files below the directories of --source were looked at"));
            }
            io::Result::Ok(())
        })?;
        Ok(sources)
    }

    /// What could not be shown, and why.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Of a call site, as the profile names it.
    pub(super) fn of(&self, site: &str) -> Option<&Excerpt> {
        self.excerpts.get(site)
    }

    fn take(&mut self, places: &BTreeMap<&str, (&str, usize)>, files: &Files<'_>) {
        let mut texts: HashMap<&str, Option<String>> = HashMap::new();
        let mut ambiguous = BTreeSet::new();
        for (site, (file, line)) in places.iter().take(MOST_EXCERPTS) {
            let (shown, path) = match files.found.get(*file).map(Vec::as_slice) {
                Some([only]) => only,
                Some([_, _, ..]) => {
                    ambiguous.insert(*file);
                    continue;
                }
                _ => continue,
            };
            let text = texts.entry(file).or_insert_with(|| read(path).ok());
            let excerpt = text.as_deref().and_then(|text| excerpt(shown, text, *line));
            self.excerpts.extend(excerpt.map(|excerpt| ((*site).to_owned(), excerpt)));
        }
        self.notes.extend(ambiguous.into_iter().map(|file| {
            format!("source of {file} is not shown: several files below the directories of --source have that name")
        }));
    }
}

/// File and line of "halo.c:91 in step".
fn place(site: &str) -> Option<(&str, usize)> {
    let (place, _) = site.split_once(" in ")?;
    let (file, line) = place.rsplit_once(':')?;
    let line = line.parse().ok().filter(|&line| line > 0)?;
    (!file.is_empty() && !file.contains('/')).then_some((file, line))
}

/// Files that are wanted, as they are found.
struct Files<'a> {
    wanted: &'a BTreeSet<&'a str>,
    /// As they are shown, and where they are, by their name.
    found: BTreeMap<&'a str, Vec<(String, PathBuf)>>,
    entries: usize,
}

impl Files<'_> {
    /// The directory that is named has to be one that can be read; of those in it, what cannot is left out.
    fn look(&mut self, top: &Path, directory: &Path, depth: usize) -> io::Result<()> {
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if depth == 0 => return Err(error),
            Err(_) => return Ok(()),
        };
        let mut below = Vec::new();
        for entry in entries.flatten() {
            self.entries += 1;
            if self.entries > MOST_ENTRIES {
                return Ok(());
            }
            let name = entry.file_name();
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && depth < DEEPEST && !name.as_encoded_bytes().starts_with(b".") {
                below.push(entry.path());
            } else if kind.is_file()
                && let Some(name) = name.to_str().and_then(|name| self.wanted.get(name))
            {
                let path = entry.path();
                let shown = path.strip_prefix(top).unwrap_or(&path).to_string_lossy().into_owned();
                self.found.entry(name).or_default().push((shown, path));
            }
        }
        below.into_iter().try_for_each(|directory| self.look(top, &directory, depth + 1))
    }
}

fn read(path: &Path) -> io::Result<String> {
    let bounded = read_from(&open_regular(path)?, LARGEST_FILE)?;
    Ok(String::from_utf8_lossy(&bounded.bytes).into_owned())
}

/// `None`: it has no such line.
fn excerpt(file: &str, text: &str, line: usize) -> Option<Excerpt> {
    let first = line.saturating_sub(AROUND).max(1);
    text.lines().nth(line - 1)?;
    let lines = text.lines().skip(first - 1).take(line + AROUND + 1 - first).map(shown).collect();
    Some(Excerpt { file: file.to_owned(), line, first, lines })
}

fn shown(line: &str) -> String {
    let characters = line.chars().take(LONGEST_LINE);
    let safe = |letter| if letter == '\t' || is_harmless(letter) { letter } else { char::REPLACEMENT_CHARACTER };
    characters.map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_names_of_files_and_nothing_else() {
        assert_eq!(place("halo.c:91 in step"), Some(("halo.c", 91)));
        assert_eq!(place("halo.f90:7 in step, inlined into main"), Some(("halo.f90", 7)));
        for other in [
            "../../etc/passwd:1 in step",
            "/etc/passwd:1 in x",
            "step+0x1f in solve",
            "solve+0x12",
            ":3 in x",
            "a.c:0 in x",
        ] {
            assert_eq!(place(other), None, "{other}");
        }
    }

    #[test]
    fn an_excerpt_has_the_line_in_its_middle_as_far_as_the_file_goes() {
        let text = (1..=20).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
        let found = excerpt("a.c", &text, 2).unwrap();
        assert_eq!((found.first, found.lines.len(), found.lines[1].as_str()), (1, 8, "line 2"));
        let found = excerpt("a.c", &text, 19).unwrap();
        assert_eq!((found.first, found.lines.first().map(String::as_str)), (13, Some("line 13")));
        assert_eq!(found.lines.last().map(String::as_str), Some("line 20"));
        assert_eq!(excerpt("a.c", &text, 21), None);
        assert_eq!(shown("a\tb\u{1b}[2J"), "a\tb\u{fffd}[2J");
    }

    #[test]
    fn only_one_file_of_the_name_below_the_directory_is_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir_all(path("src/old")).unwrap();
        fs::write(path("src/halo.c"), "one\ntwo\nthree\n").unwrap();
        fs::write(path("src/step.c"), "here\n").unwrap();
        fs::write(path("src/old/step.c"), "there\n").unwrap();
        fs::write(path("secret.c"), "secret\n").unwrap();
        std::os::unix::fs::symlink(path("secret.c"), path("src/link.c")).unwrap();
        let wanted = BTreeSet::from(["halo.c", "step.c", "link.c", "absent.c"]);
        let mut files = Files { wanted: &wanted, found: BTreeMap::new(), entries: 0 };
        files.look(&path("src"), &path("src"), 0).unwrap();
        let places = ["halo.c:2 in a", "step.c:1 in a", "link.c:1 in a", "absent.c:1 in a", "halo.c:9 in a"];
        let places = places.into_iter().map(|site| (site, place(site).unwrap())).collect();
        let mut sources = Sources::default();
        sources.take(&places, &files);
        assert_eq!(sources.excerpts.keys().collect::<Vec<_>>(), ["halo.c:2 in a"]);
        assert_eq!(sources.of("halo.c:2 in a").unwrap().file, "halo.c");
        assert_eq!(sources.notes.len(), 1);
        assert!(files.look(&path("absent"), &path("absent"), 0).is_err());
    }
}
