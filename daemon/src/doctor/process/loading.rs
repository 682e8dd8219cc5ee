//! How a library came into a process: linked to the program, or loaded by it later (dlopen), as Python's mpi4py does.

use std::collections::BTreeSet;

use mpiprobe_discover::{
    ForeignFile, Process,
    mappings::{FileId, Mappings},
    open_mapped,
};
use mpiprobe_elf::{Elf, Linkage, limits::MAX_FILE};
use object::ReadCache;
use serde::Serialize;

/// At most so many mapped files are read: programs have some hundreds at most.
const MOST_FILES: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Loading {
    /// The program or one of its libraries names it as needed.
    Linked,
    /// None of them does: dlopen(3), or LD_PRELOAD.
    AtRunTime,
}

/// `None` if it cannot be told.
pub(super) fn of(process: &Process, mappings: &Mappings, library: FileId) -> Option<Loading> {
    let program = process.executable().ok()?.path;
    let program = mappings.files.iter().find(|file| file.candidate_paths().contains(&program))?.id;
    let linkages = mappings.files.iter().take(MOST_FILES).filter_map(|file| {
        let content = open_mapped(process, file).ok()?;
        Some((file.id, read(&content).unwrap_or_default()))
    });
    decide(&linkages.collect::<Vec<_>>(), program, library)
}

/// Follows the needs from `program` on.
fn decide(linkages: &[(FileId, Linkage)], program: FileId, library: FileId) -> Option<Loading> {
    let linkage_of = |wanted| linkages.iter().find(|(file, _)| *file == wanted).map(|(_, linkage)| linkage);
    let soname = linkage_of(library)?.soname.as_ref()?;
    let mut known: BTreeSet<&[u8]> = BTreeSet::new();
    let mut open = vec![linkage_of(program)?];
    while let Some(linkage) = open.pop() {
        for name in &linkage.needed {
            if known.insert(name) {
                let named = |linkage: &&Linkage| linkage.soname.as_ref() == Some(name);
                open.extend(linkages.iter().map(|(_, linkage)| linkage).filter(named));
            }
        }
    }
    Some(if known.contains(soname.as_slice()) { Loading::Linked } else { Loading::AtRunTime })
}

/// `None` if there is no dynamic section, or the file is damaged or enormous.
fn read(file: &ForeignFile) -> Option<Linkage> {
    if file.state().ok()?.size > MAX_FILE {
        return None;
    }
    let data = &ReadCache::new(file.reader());
    Elf::parse(data).ok()?.linkage(data)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    const fn id(inode: u64) -> FileId {
        FileId { major: 8, minor: 1, inode }
    }

    fn linkage(inode: u64, soname: Option<&str>, needed: &[&str]) -> (FileId, Linkage) {
        let bytes = |name: &&str| name.as_bytes().to_vec();
        (
            id(inode),
            Linkage {
                soname: soname.as_ref().map(bytes),
                needed: needed.iter().map(bytes).collect(),
                ..Linkage::default()
            },
        )
    }

    #[test]
    fn needs_are_followed_through_other_libraries() {
        let mpi = linkage(3, Some("libmpi.so.40"), &["libc.so.6", "libmpi.so.40"]);
        let fortran = linkage(2, Some("libmpifh.so"), &["libmpi.so.40"]);
        let decide = |program| decide(&[program, fortran.clone(), mpi.clone()], id(1), id(3));
        assert_eq!(decide(linkage(1, None, &["libmpi.so.40"])), Some(Loading::Linked));
        assert_eq!(decide(linkage(1, None, &["libm.so.6", "libmpifh.so"])), Some(Loading::Linked));
        // The library between is there, but nobody asked for it at the start.
        assert_eq!(decide(linkage(1, None, &["libm.so.6"])), Some(Loading::AtRunTime));
        assert_eq!(decide(linkage(9, None, &["libmpi.so.40"])), None);
    }

    #[test]
    fn this_program_needs_the_c_library() {
        let own = read(&File::open("/proc/self/exe").unwrap().into()).unwrap();
        assert!(own.needed.contains(&b"libc.so.6".to_vec()), "{own:?}");
        assert_eq!(own.soname, None);
    }

    #[test]
    fn what_is_not_elf_has_no_linkage() {
        assert_eq!(read(&File::open("/etc/passwd").unwrap().into()), None);
    }
}
