//! What a process's MPI library says of the objects that a call was given: read once, from memory, when nobody goes on.

use std::{collections::HashMap, sync::Arc};

use mpiprobe_common::{
    Communicator, Layout,
    flow::{CommunicatorKey, Degrees, communicator_kind, handle_of, peer},
    layout::{Side, Size, datatype_size, is_predefined},
};
use mpiprobe_discover::{MpiProcess, mappings::FileId};
use mpiprobe_layout::{Blueprint, Expected, Registry, TargetMemory, communicators, datatype_name, names::made_up};
use mpiprobe_model::{
    CallArguments,
    analyse::{arguments_of_call, datatype_of_call, other_requests},
};
use mpiprobe_observe::{CommunicatorSnapshot, DatatypeSnapshot, Members, ProcessSnapshot};
use mpiprobe_stacks::{MpiCall, values};

use crate::{
    blueprints::blueprint,
    operands::{self, OpenCall},
};

/// Of larger communicators the members are not read.
const MOST_MEMBERS: u32 = 4096;

/// What is known of libraries' files.
#[derive(Debug, Default)]
pub(super) struct Libraries {
    blueprints: HashMap<FileId, Option<Blueprint>>,
}

/// The library of one process, and its objects.
#[derive(Debug)]
pub(super) struct Library {
    /// In the form in which observations have it.
    pub(super) tables: ProcessSnapshot,
    registry: Registry,
    memory: TargetMemory,
}

impl Libraries {
    /// `slot`: a number for the process. `None` if its library is none that is known.
    pub(super) fn look(&mut self, slot: u32, process: &MpiProcess) -> Option<Library> {
        let file = &process.library()?.file;
        let blueprint = self.blueprints.entry(file.id).or_insert_with(|| blueprint(&process.process, file));
        let memory = TargetMemory::open(&process.process).ok()?;
        let search = blueprint.as_ref()?.find(file, &memory, Expected::from(&process.rank))?;
        let (layout, registry) = (search.found().layout, search.found().registry);
        let known = communicators::communicators(&layout, registry, &memory);
        let communicators = (1..).zip(&known).map(|(number, known)| communicator(number, known, &layout, &memory));
        let communicators = communicators.collect();
        let tables = ProcessSnapshot { layout, communicators, ..ProcessSnapshot::empty(slot) };
        Some(Library { tables, registry, memory })
    }
}

impl Library {
    /// Bytes of one element of a predefined datatype.
    pub(super) fn element(&self, handle: u64) -> Option<u64> {
        let layout = &self.tables.layout;
        let handle = layout.handle(handle);
        match datatype_size(layout, handle, &self.memory) {
            Size::Known(size) if is_predefined(layout, handle) => Some(size),
            _ => None,
        }
    }

    /// What the words mean that a call was given, which thread `tid` is in.
    pub(super) fn meaning(&mut self, tid: u32, call: &MpiCall) -> Option<CallArguments> {
        let function = call.function.function();
        let layout = self.tables.layout;
        let words = || values(function, &call.words, layout.handle_width());
        if let Some(handle) = datatype_of_call(function, words(), &self.tables) {
            let size = match datatype_size(&self.tables.layout, handle, &self.memory) {
                Size::Known(size) => Some(size),
                Size::Unknown => None,
            };
            let name = datatype_name(&self.tables.layout, handle, &self.memory);
            self.tables.datatypes.push(DatatypeSnapshot { handle, name, size });
        }
        let open = OpenCall { tid, function, words: words() };
        operands::add(&mut self.tables, &[open], (&layout, self.registry), &self.memory);
        let mut arguments = arguments_of_call(function, words(), &self.tables)?;
        if arguments.requests.is_some() {
            arguments.other_requests = other_requests(&self.tables, tid);
        }
        Some(arguments)
    }
}

fn communicator(
    number: u32,
    known: &communicators::Communicator,
    layout: &Layout,
    memory: &TargetMemory,
) -> CommunicatorSnapshot {
    let (facts, handle) = (&known.facts, layout.handle(known.handle));
    let is_listed = facts.size <= MOST_MEMBERS && facts.remote_size <= MOST_MEMBERS;
    let of = |side| if is_listed { communicators::members(layout, handle, side, memory) } else { None };
    let own = of(Side::Local);
    let remote = if facts.is_inter { of(Side::Remote) } else { Some(Vec::new()) };
    let number_of = |members: &Option<Vec<Option<u32>>>, place: usize| {
        let member = members.as_ref().and_then(|members| members.get(place).copied().flatten());
        member.and_then(|member| i32::try_from(member).ok()).unwrap_or(peer::UNKNOWN)
    };
    let size = usize::try_from(facts.size).unwrap_or(usize::MAX);
    let last = if facts.is_inter { number_of(&remote, 0) } else { number_of(&own, size.saturating_sub(1)) };
    let kind = if handle == layout.constants.comm_world {
        communicator_kind::WORLD
    } else if handle == layout.constants.comm_self {
        communicator_kind::OWN
    } else {
        communicator_kind::MADE
    };
    let made = known.name.as_deref().and_then(made_up);
    CommunicatorSnapshot {
        number,
        facts: Communicator {
            key: CommunicatorKey { process: 0, kind: handle_of::COMMUNICATOR, handle },
            context: facts.context,
            rank: facts.rank,
            size: facts.size,
            remote_size: facts.remote_size,
            is_inter: u32::from(facts.is_inter),
            kind,
            first: number_of(&own, 0),
            middle: number_of(&own, size / 2),
            last,
            degrees: Degrees::UNKNOWN,
            ..Communicator::default()
        },
        name: known.name.clone().filter(|_| made.is_none()).unwrap_or_default(),
        made,
        members: own.zip(remote).map(|(own, remote)| Arc::new(Members { own, remote })),
    }
}
