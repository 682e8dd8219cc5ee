//! Names that are read back from a recording. What mpiprobe knows is found in its own tables; what it does not, such as a function
//! of a later version, is kept, within limits, since nobody can be trusted to have written the file.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

use mpiprobe_functions::Group;
use serde::{Deserialize, Deserializer, de::Error};

use super::SCHEMA;

/// Of a function, a group, an engine or a version. As an alias it is not taken for text borrowed from what is read.
pub(super) type Name = &'static str;

/// So many names are kept that are not in the tables, as long as the program runs.
const MOST_NAMES: usize = 1024;
/// So many texts are remembered to be shared.
const MOST_SHARED: usize = 1 << 16;
/// Bytes of a name; the longest of MPI have half as many.
const LONGEST_NAME: usize = 64;

/// What profiles say besides functions and groups.
const OWN: [&str; 4] = ["ebpf", "wrapper", env!("CARGO_PKG_VERSION"), "unknown function"];

/// A function, a group, an engine or a version.
pub(super) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static str, D::Error> {
    kept(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// The same of what may be missing.
pub(super) fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'static str>, D::Error> {
    Option::<String>::deserialize(deserializer)?.map(|name| kept(&name).map_err(D::Error::custom)).transpose()
}

/// A text that many rows have in common, or none: those that are equal take memory once.
pub(super) fn shared_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<str>>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(|text| shared(&text)))
}

pub(super) fn shared(text: &str) -> Arc<str> {
    thread_local! {
        static KNOWN: RefCell<HashSet<Arc<str>>> = RefCell::new(HashSet::new());
    }
    KNOWN.with_borrow_mut(|known| {
        if let Some(known) = known.get(text) {
            return Arc::clone(known);
        }
        if known.len() >= MOST_SHARED {
            known.clear();
        }
        let text: Arc<str> = text.into();
        known.insert(Arc::clone(&text));
        text
    })
}

/// Another schema has other fields, or the same with another meaning.
pub(super) fn schema<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static str, D::Error> {
    let schema = String::deserialize(deserializer)?;
    if schema == SCHEMA {
        return Ok(SCHEMA);
    }
    Err(D::Error::custom(format_args!("it has the schema {schema:.40}, this version of mpiprobe reads {SCHEMA}")))
}

fn kept(name: &str) -> Result<&'static str, String> {
    static FOREIGN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    known(name).map_or_else(|| intern(&mut FOREIGN.lock().unwrap_or_else(PoisonError::into_inner), name), Ok)
}

fn known(name: &str) -> Option<&'static str> {
    if let Some(id) = mpiprobe_functions::by_name(name) {
        return Some(id.function().name);
    }
    let groups = Group::ALL.iter().map(|group| group.title());
    groups.chain(OWN).find(|known| *known == name)
}

fn intern(foreign: &mut BTreeSet<&'static str>, name: &str) -> Result<&'static str, String> {
    let is_printable = |letter: char| letter == ' ' || letter.is_ascii_graphic();
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_printable) {
        return Err(format!("{name:.40?} is no name of a function"));
    }
    if let Some(known) = foreign.get(name) {
        return Ok(known);
    }
    if foreign.len() >= MOST_NAMES {
        return Err(format!("{name:?} is one of more than {MOST_NAMES} names of functions that do not exist"));
    }
    let name: &'static str = Box::leak(name.into());
    foreign.insert(name);
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_those_of_the_tables() {
        let send = mpiprobe_functions::by_name("MPI_Send").unwrap().function().name;
        assert!(std::ptr::eq(kept("MPI_Send").unwrap(), send));
        assert_eq!(kept("point-to-point"), Ok("point-to-point"));
        assert_eq!(kept("ebpf"), Ok("ebpf"));
    }

    #[test]
    fn foreign_names_are_kept_once_and_not_without_end() {
        let mut foreign = BTreeSet::new();
        let one = intern(&mut foreign, "MPI_From_the_future").unwrap();
        assert!(std::ptr::eq(one, intern(&mut foreign, "MPI_From_the_future").unwrap()));
        for wrong in ["", "MPI\u{1b}[2J", &"M".repeat(65)] {
            assert!(intern(&mut foreign, wrong).is_err(), "{wrong:?}");
        }
        let refused = (0..=MOST_NAMES).find_map(|number| intern(&mut foreign, &format!("MPI_X{number}")).err());
        assert!(refused.unwrap().contains("1024 names"));
        assert_eq!(intern(&mut foreign, "MPI_From_the_future"), Ok(one), "what is known stays known");
    }
}
