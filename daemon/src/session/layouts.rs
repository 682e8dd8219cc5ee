//! How the MPI library of each process lays out its objects: found as soon as MPI is initialised, and told to the programs.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use mpiprobe_common::layout::capability;

use super::{communicators::Communicators, datatypes, roster::Roster};
use crate::{
    discover::{
        MpiProcess, Process,
        mappings::{FileId, MappedFile},
        open_mapped,
    },
    layout::{Blueprint, Expected, Search, TargetMemory},
    observe::{Observer, Snapshot},
    plan::{Library, read_elf_file},
};

/// How long objects that look wrong, or like those of a session, are looked at again.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often, those of a session.
const SESSION_INTERVAL: Duration = Duration::from_millis(100);

/// Layouts that are known, and processes that have not initialised MPI yet.
#[derive(Debug, Default)]
pub(super) struct Layouts {
    blueprints: HashMap<FileId, Option<Blueprint>>,
    pending: Vec<Pending>,
    communicators: Communicators,
}

#[derive(Debug)]
struct Pending {
    slot: u32,
    process: Process,
    file: MappedFile,
    expected: Expected,
    since: Instant,
    /// Communicators were found first, and are to be looked at next.
    session: Option<(Instant, Instant)>,
}

impl Layouts {
    /// Finds the layout of a process, now or as soon as it is there. Gives what cannot be known of it, for the user.
    pub(super) fn add(&mut self, observer: &Observer, slot: u32, process: &MpiProcess) -> Vec<String> {
        let Some(library) = process.library() else { return Vec::new() };
        let file = &library.file;
        self.blueprints.entry(file.id).or_insert_with(|| blueprint(&process.process, file));
        let Ok(own) = process.process.try_clone() else { return Vec::new() };
        let pending = Pending {
            slot,
            process: own,
            file: file.clone(),
            expected: Expected::from(&process.rank),
            since: Instant::now(),
            session: None,
        };
        self.look(observer, pending)
    }

    /// Adds to what the tables say of communicators and datatypes.
    pub(super) fn complete(&mut self, snapshot: &mut Snapshot, roster: &Roster) {
        datatypes::complete(snapshot, roster);
        self.communicators.complete(snapshot, roster);
    }

    /// Lets go of the files of a process that has ended.
    pub(super) fn forget(&mut self, slot: u32) {
        self.pending.retain(|pending| pending.slot != slot);
    }

    /// Whether somebody has not initialised MPI yet.
    pub(super) fn are_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Looks at those again.
    pub(super) fn retry(&mut self, observer: &Observer) -> Vec<String> {
        let now = Instant::now();
        let is_due = |pending: &mut Pending| pending.session.is_none_or(|(_, next)| next <= now);
        let due: Vec<Pending> = self.pending.extract_if(.., is_due).collect();
        due.into_iter().flat_map(|pending| self.look(observer, pending)).collect()
    }

    fn look(&mut self, observer: &Observer, mut pending: Pending) -> Vec<String> {
        let Some(Some(blueprint)) = self.blueprints.get(&pending.file.id) else { return Vec::new() };
        // Gone: there is nobody to learn from, and nothing more to count.
        let Ok(memory) = TargetMemory::open(&pending.process) else { return Vec::new() };
        let search = blueprint.find(&pending.file, &memory, pending.expected);
        let mut layout = search.found().layout;
        let knows_communicators = layout.knows(capability::COMMUNICATORS | capability::MEMBERS);
        // While MPI_Init is at work, objects may look wrong that are only not ready, and the library's like those of a session.
        let is_settled = match &search {
            Search::Done(_) => knows_communicators || pending.since.elapsed() > PATIENCE,
            Search::NotYet(_) if knows_communicators => {
                let (since, _) = pending.session.unwrap_or_else(|| (Instant::now(), Instant::now()));
                pending.session = Some((since, Instant::now() + SESSION_INTERVAL));
                since.elapsed() > PATIENCE
            }
            Search::NotYet(_) => false,
        };
        // The launcher's word counts until it can be compared, and only as long as nothing contradicts it.
        let is_open = !is_settled || layout.knows(capability::COMMUNICATORS);
        if let Expected { rank: Some(rank), size: Some(size) } = pending.expected
            && is_open
        {
            (layout.told_rank, layout.told_size) = (rank, size);
        }
        observer.set_layout(pending.slot, &layout);
        if is_settled {
            self.communicators.begin(pending.slot, &layout, search.found().registry, &memory);
        }
        match search {
            Search::Done(_) | Search::NotYet(_) if !is_settled => {
                self.pending.push(pending);
                Vec::new()
            }
            Search::Done(found) | Search::NotYet(found) => {
                tracing::info!("process {} has initialised MPI", pending.process.pid());
                found.missing.iter().map(ToString::to_string).collect()
            }
        }
    }
}

/// `None` if the file cannot be read; that it has no probes then is told elsewhere.
pub(super) fn blueprint(process: &Process, file: &MappedFile) -> Option<Blueprint> {
    let opened = open_mapped(process, file).ok()?;
    let bytes = read_elf_file(&opened).ok()?;
    Some(Blueprint::of(&Library::parse(&bytes).ok()?))
}
