//! How the MPI library of each process lays out its objects: found as soon as MPI is initialised, and told to the programs.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use mpiprobe_attach::{Observer, Tables};
use mpiprobe_common::{
    Layout,
    layout::{capability, comm},
};
use mpiprobe_discover::{
    MpiProcess, Process,
    mappings::{FileId, MappedFile},
};
use mpiprobe_functions::FunctionId;
use mpiprobe_layout::{Blueprint, Expected, Search, TargetMemory};
use mpiprobe_observe::Snapshot;

use super::{
    communicators::Communicators, datatypes, library_templates::LibraryTemplates, process_table::ProcessTable,
};
use crate::{blueprints::blueprint, operands};

/// How long objects are looked at again that look wrong, or like those of a session, without anybody being in `MPI_Init`.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often, those of a session.
const SESSION_INTERVAL: Duration = Duration::from_millis(100);
/// How soon a process that has not initialised MPI is looked at again, at least and at most: what it calls in between is understood by what
/// is known of its library, or not at all.
const INTERVAL: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));
/// In between: this part of the time that it has taken already.
const PART: u32 = 64;

/// Layouts that are known, and processes that have not initialised MPI yet.
#[derive(Debug, Default)]
pub(super) struct Layouts {
    blueprints: HashMap<FileId, Option<Blueprint>>,
    pending: Vec<Pending>,
    communicators: Communicators,
    library_templates: LibraryTemplates,
    /// Processes whose first calls were understood by a layout that is not theirs.
    mistaken: Vec<u32>,
}

#[derive(Debug)]
struct Pending {
    slot: u32,
    process: Process,
    file: MappedFile,
    expected: Expected,
    since: Instant,
    next: Instant,
    /// Since when what is found is there and not what it should be, each time that it was looked at.
    doubtful_since: Option<Instant>,
}

/// What is to be done after a look.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// What is found holds.
    Settled,
    /// The library is not initialised yet.
    NotYet,
    /// What is found is wrong, or not whole, or like a session's, which never has the predefined objects. While `MPI_Init` is at work, so may
    /// be objects that are only not ready, and the library's own.
    Doubtful,
}

impl Verdict {
    /// `before`: what the programs know.
    fn of(search: &Search, before: &Layout) -> Self {
        let layout = &search.found().layout;
        let knows_communicators = layout.knows(capability::COMMUNICATORS | capability::MEMBERS);
        let knows_datatypes = layout.knows(capability::DATATYPES);
        match search {
            Search::Done(_) if knows_communicators && (knows_datatypes || !before.knows(capability::DATATYPES)) => {
                Self::Settled
            }
            Search::NotYet(_) if !(knows_communicators && knows_datatypes) => Self::NotYet,
            Search::Done(_) | Search::NotYet(_) => Self::Doubtful,
        }
    }
}

impl Layouts {
    /// Tells the programs what is known of a file that has been probed, by its cookies; `read`: what the file tells.
    pub(super) fn foresee(
        &mut self,
        tables: &mut Tables,
        id: FileId,
        cookies: impl FnOnce() -> Vec<u64>,
        read: impl FnOnce() -> Option<Blueprint>,
    ) {
        if !self.library_templates.has_probes(id) {
            let blueprint = self.blueprints.entry(id).or_insert_with(read);
            let template = blueprint.as_ref().and_then(Blueprint::template);
            self.library_templates.add_probes(tables, id, cookies(), template.as_ref());
        }
    }

    /// The ids of processes whose first calls were understood by a layout that is not theirs, since the last time.
    pub(super) fn take_mistaken(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.mistaken)
    }

    /// Finds the layout of a process, now or as soon as it is there. Gives what cannot be known of it, for the user.
    pub(super) fn add(
        &mut self,
        tables: &mut Tables,
        observer: &Observer,
        slot: u32,
        process: &MpiProcess,
    ) -> Vec<String> {
        let Some(library) = process.library() else { return Vec::new() };
        let file = &library.file;
        self.blueprints.entry(file.id).or_insert_with(|| blueprint(&process.process, file));
        let Ok(own) = process.process.try_clone() else { return Vec::new() };
        let now = Instant::now();
        let expected = Expected::from(&process.rank);
        let pending =
            Pending { slot, process: own, file: file.clone(), expected, since: now, next: now, doubtful_since: None };
        self.look(tables, observer, pending)
    }

    /// Adds to what the tables say of communicators and datatypes.
    pub(super) fn complete(&mut self, observer: &Observer, snapshot: &mut Snapshot, process_table: &ProcessTable) {
        for process in &snapshot.processes {
            // A program that was at work on it has had the last word.
            if !process.layout.knows(capability::SETTLED)
                && let Some(settled) = self.communicators.layout(process.process)
            {
                observer.set_layout(process.process, settled);
            }
        }
        datatypes::complete(snapshot, process_table);
        self.communicators.complete(snapshot, process_table);
    }

    /// The same for what open calls wait for, also for those that had begun before.
    pub(super) fn complete_operands(&self, snapshot: &mut Snapshot, process_table: &ProcessTable) {
        let now_ns = snapshot.taken_ns;
        for tables in &mut snapshot.processes {
            let calls = operands::of_tables(tables, now_ns);
            if !calls.is_empty()
                && let Some(process) = process_table.process(tables.process)
                && let Some((layout, registry)) = self.communicators.place(tables.process)
                && let Ok(memory) = TargetMemory::open(process)
            {
                operands::add(tables, &calls, (layout, registry), &memory);
            }
        }
    }

    /// Lets go of the files of a process that has ended.
    pub(super) fn forget(&mut self, slot: u32) {
        self.pending.retain(|pending| pending.slot != slot);
    }

    /// When somebody is to be looked at who has not initialised MPI yet.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.pending.iter().map(|pending| pending.next).min()
    }

    /// Looks at those again.
    pub(super) fn retry(&mut self, tables: &mut Tables, observer: &Observer) -> Vec<String> {
        let now = Instant::now();
        let due: Vec<Pending> = self.pending.extract_if(.., |pending| pending.next <= now).collect();
        due.into_iter().flat_map(|pending| self.look(tables, observer, pending)).collect()
    }

    fn look(&mut self, tables: &mut Tables, observer: &Observer, mut pending: Pending) -> Vec<String> {
        let Some(Some(blueprint)) = self.blueprints.get(&pending.file.id) else { return Vec::new() };
        // Gone: there is nobody to learn from, and nothing more to count.
        let Ok(memory) = TargetMemory::open(&pending.process) else { return Vec::new() };
        let Some(search) = blueprint.find(&pending.file, &memory, pending.expected) else { return Vec::new() };
        let mut layout = search.found().layout;
        let before = observer.layout(pending.slot);
        let now = Instant::now();
        pending.next = now + (pending.since.elapsed() / PART).clamp(INTERVAL.0, INTERVAL.1);
        let is_settled = match Verdict::of(&search, &before) {
            Verdict::Settled => true,
            Verdict::Doubtful if !observer.open_functions_of(pending.slot).any(is_beginning) => {
                pending.doubtful_since.get_or_insert(now).elapsed() > PATIENCE
            }
            Verdict::NotYet | Verdict::Doubtful => {
                pending.doubtful_since = None;
                false
            }
        };
        let is_whole = layout.knows(capability::COMMUNICATORS | capability::MEMBERS | capability::DATATYPES);
        if !is_settled && is_whole {
            pending.next = now + SESSION_INTERVAL;
        }
        // Communicators without members or datatypes would end the programs' own search, which finds all of them, and the launcher's
        // word, which says who the members are.
        if !is_settled && !is_whole {
            layout.known &= !capability::COMMUNICATORS;
        }
        // The launcher's word counts until it can be compared, and only as long as nothing contradicts it.
        let is_open = !is_settled || layout.knows(capability::COMMUNICATORS);
        if let Expected { rank: Some(rank), size: Some(size) } = pending.expected
            && is_open
        {
            let world = comm(&layout, layout.constants.comm_world, &memory);
            (layout.told_rank, layout.told_size) = world.map_or((rank, size), |facts| (facts.rank, facts.size));
        }
        if is_settled {
            if layout.knows(capability::COMMUNICATORS)
                && self.library_templates.is_to_be_learned(pending.file.id)
                && let Some(template) = blueprint.learn(&pending.file, &layout)
            {
                self.library_templates.learn(tables, pending.file.id, &template);
            }
            layout.known |= capability::SETTLED;
            if before.knows(capability::PROVISIONAL) && !is_same(&before, &layout) {
                self.mistaken.push(pending.process.pid());
            }
        }
        // Programs may have found before what was looked for a moment ago in vain.
        if is_settled || !before.knows(capability::COMMUNICATORS) || is_whole {
            observer.set_layout(pending.slot, &layout);
        }
        if is_settled {
            self.communicators.begin(pending.slot, &layout, search.found().registry, &memory);
        }
        match search {
            _ if !is_settled => {
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

/// Whether a function, by its number, is one by which a process begins to use MPI.
fn is_beginning(function: u32) -> bool {
    u16::try_from(function).ok().and_then(FunctionId::from_index).is_some_and(FunctionId::is_beginning)
}

/// Whether calls mean the same by both.
fn is_same(before: &Layout, now: &Layout) -> bool {
    let facts = |layout: &Layout| {
        let (communicators, constants) = (&layout.communicators, &layout.constants);
        let objects = (communicators.world, communicators.own, constants.comm_world, constants.request_null);
        (objects, communicators.rank, communicators.size, layout.members)
    };
    now.knows(capability::COMMUNICATORS)
        && facts(before) == facts(now)
        && (!before.knows(capability::DATATYPES) || before.datatypes.size == now.datatypes.size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpiprobe_layout::{FoundLayout, Registry};

    const OBJECTS: u32 = capability::COMMUNICATORS | capability::MEMBERS;
    const ALL: u32 = OBJECTS | capability::DATATYPES;

    fn layout(known: u32) -> Layout {
        Layout { known, ..Layout::default() }
    }

    fn done(known: u32, before: u32) -> Verdict {
        let found = FoundLayout { layout: layout(known), registry: Registry::None, missing: Vec::new() };
        Verdict::of(&Search::Done(found), &layout(before))
    }

    fn not_yet(known: u32) -> Verdict {
        let found = FoundLayout { layout: layout(known), registry: Registry::None, missing: Vec::new() };
        Verdict::of(&Search::NotYet(found), &layout(0))
    }

    #[test]
    fn only_what_is_whole_is_settled_at_once() {
        assert_eq!(done(ALL, ALL), Verdict::Settled);
        assert_eq!(done(OBJECTS, 0), Verdict::Settled, "a library whose datatypes cannot be read");
        assert_eq!(done(OBJECTS, ALL), Verdict::Doubtful, "it may be that they are not ready");
        assert_eq!(done(capability::DATATYPES, 0), Verdict::Doubtful);
        assert_eq!(not_yet(capability::DATATYPES), Verdict::NotYet);
        assert_eq!(not_yet(ALL), Verdict::Doubtful, "objects of a session, or the library's own");
    }
}
