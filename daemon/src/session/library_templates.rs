//! What is known of the layouts of libraries before their processes are looked at: told to the programs, so that a process is understood
//! from the return of `MPI_Init` on.

use std::collections::{HashMap, hash_map::Entry};

use mpiprobe_attach::{Tables, forget_library, tell_library};
use mpiprobe_common::{LIBRARIES, layout::Template};
use mpiprobe_discover::mappings::FileId;

/// Libraries by file.
#[derive(Debug, Default)]
pub(super) struct LibraryTemplates {
    libraries: HashMap<FileId, Library>,
    /// Whose template each cookie leads to; `None`: it is in two files that differ.
    owners: HashMap<u64, Option<FileId>>,
    next: u32,
}

#[derive(Debug, Default)]
struct Library {
    template: Option<Template>,
    /// FoundLayout in a process, not by the file alone.
    is_learned: bool,
    /// Of the probes in it.
    cookies: Vec<u64>,
}

impl LibraryTemplates {
    /// Whether a process is to be learned from.
    pub(super) fn is_to_be_learned(&self, id: FileId) -> bool {
        self.libraries.get(&id).is_none_or(|library| !library.is_learned)
    }

    /// Whether it is known which probes are in a file.
    pub(super) fn has_probes(&self, id: FileId) -> bool {
        self.libraries.get(&id).is_some_and(|library| !library.cookies.is_empty())
    }

    /// A file has been probed.
    pub(super) fn add_probes(
        &mut self,
        tables: &mut Tables,
        id: FileId,
        cookies: Vec<u64>,
        template: Option<&Template>,
    ) {
        let library = self.libraries.entry(id).or_default();
        library.cookies = cookies;
        if !library.is_learned {
            library.template = template.copied();
        }
        self.tell(tables, id);
    }

    /// A process that has mapped a file was looked at.
    pub(super) fn learn(&mut self, tables: &mut Tables, id: FileId, template: &Template) {
        let library = self.libraries.entry(id).or_default();
        library.template = Some(*template);
        library.is_learned = true;
        self.tell(tables, id);
    }

    fn tell(&mut self, tables: &mut Tables, id: FileId) {
        let Some(library) = self.libraries.get(&id) else { return };
        let Some(template) = library.template.filter(|_| self.next < LIBRARIES) else { return };
        let (mut own, mut shared) = (Vec::new(), Vec::new());
        for &cookie in &library.cookies {
            match self.owners.entry(cookie) {
                Entry::Vacant(entry) => {
                    entry.insert(Some(id));
                    own.push(cookie);
                }
                Entry::Occupied(mut entry) => {
                    let other = entry.get().and_then(|other| self.libraries.get(&other));
                    // The same file seen through two mounts, for instance.
                    if *entry.get() == Some(id) || other.is_some_and(|other| other.template == Some(template)) {
                        own.push(cookie);
                    } else {
                        entry.insert(None);
                        shared.push(cookie);
                    }
                }
            }
        }
        let told = tell_library(tables, self.next, &template, &own).and_then(|()| forget_library(tables, &shared));
        self.next += 1;
        if let Err(error) = told {
            tracing::warn!("processes are understood only when they have been looked at: {error}");
        }
    }
}
