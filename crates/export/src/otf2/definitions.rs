//! Global and local definitions.

use std::collections::HashMap;

use mpiprobe_functions::{Communication, Function, FunctionId, Group, Pattern};
use mpiprobe_replay::Correction;
use mpiprobe_trace::{CommunicatorId, CommunicatorKind, LocationId};

use super::{
    bytes::{UNDEFINED, put, put_id, record},
    used::Used,
};
use crate::names::Names;

/// Record ids.
mod id {
    pub(super) const CLOCK_PROPERTIES: u8 = 5;
    pub(super) const PARADIGM: u8 = 6;
    pub(super) const STRING: u8 = 10;
    pub(super) const SYSTEM_TREE_NODE: u8 = 12;
    pub(super) const LOCATION_GROUP: u8 = 13;
    pub(super) const LOCATION: u8 = 14;
    pub(super) const REGION: u8 = 15;
    pub(super) const GROUP: u8 = 18;
    pub(super) const COMM: u8 = 22;
    pub(super) const RMA_WIN: u8 = 24;
    /// Of a local file.
    pub(super) const CLOCK_OFFSET: u8 = 6;
}

mod paradigm {
    pub(super) const USER: u8 = 1;
    pub(super) const MPI: u8 = 4;
    pub(super) const CLASS_PROCESS: u8 = 1;
}

mod role {
    pub(super) const FUNCTION: u8 = 1;
    pub(super) const BARRIER: u8 = 15;
    pub(super) const ONE_TO_ALL: u8 = 23;
    pub(super) const ALL_TO_ONE: u8 = 24;
    pub(super) const ALL_TO_ALL: u8 = 25;
    pub(super) const OTHER_COLLECTIVE: u8 = 26;
    pub(super) const FILE_IO: u8 = 27;
    pub(super) const POINT_TO_POINT: u8 = 28;
}

/// Types of groups, and what they were called in earlier versions.
mod group {
    pub(super) const LOCATIONS: (u8, u8) = (4, 6);
    pub(super) const MEMBERS: (u8, u8) = (5, 4);
    pub(super) const OWN: (u8, u8) = (6, 5);
}

/// A string longer than that is cut off.
const LONGEST_STRING: usize = 4096;

/// What is told of the whole.
#[derive(Debug)]
pub(super) struct About<'a> {
    /// The first and last time on the clock of the first node, ns.
    pub(super) from_ns: u64,
    pub(super) until_ns: u64,
    /// The first on the clock of the world, if that is known.
    pub(super) realtime_ns: Option<u64>,
    pub(super) program: &'a str,
}

/// Number of a thread in the archive, as Score-P gives them.
pub(super) fn location_number(names: &Names<'_>, location: LocationId) -> u64 {
    let process = names.definitions.location(location).map(|location| location.process);
    let place = process.and_then(|process| names.place(process)).unwrap_or(0);
    u64::from(names.thread(location)) << 32 | u64::from(place)
}

/// Records as they are written, with strings before them.
#[derive(Debug, Default)]
struct Writer {
    records: Vec<Vec<u8>>,
    strings: HashMap<String, u32>,
}

impl Writer {
    fn push(&mut self, id: u8, write: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        record(&mut bytes, id, write);
        self.records.push(bytes);
    }

    fn string(&mut self, text: &str) -> u32 {
        let mut text: String = text.chars().filter(|&c| c != '\0').collect();
        text.truncate(text.floor_char_boundary(LONGEST_STRING));
        if let Some(&known) = self.strings.get(&text) {
            return known;
        }
        let number = u32::try_from(self.strings.len()).unwrap_or(UNDEFINED);
        self.push(id::STRING, |to| {
            put_id(to, number);
            to.extend_from_slice(text.as_bytes());
            to.push(0);
        });
        self.strings.insert(text, number);
        number
    }

    fn region(&mut self, number: u32, name: &str, file: &str, line: u32, (role, paradigm): (u8, u8)) {
        let (name, description, file) = (self.string(name), self.string(""), self.string(file));
        self.push(id::REGION, |to| {
            put_id(to, number);
            put_id(to, name);
            put_id(to, description);
            // The type of an earlier version, which says nothing.
            to.push(0);
            put_id(to, file);
            put(to, line.into());
            put(to, line.into());
            // The canonical name.
            put_id(to, name);
            to.extend_from_slice(&[role, paradigm]);
            put_id(to, 0);
        });
    }

    fn group(&mut self, number: u32, name: &str, types: (u8, u8), members: &[u64]) {
        let name = self.string(name);
        self.push(id::GROUP, |to| {
            put_id(to, number);
            put_id(to, name);
            // The earlier type, then the members, then what it is now.
            to.push(types.1);
            put(to, members.len() as u64);
            for &member in members {
                put(to, member);
            }
            to.extend_from_slice(&[types.0, paradigm::MPI]);
            put_id(to, 0);
        });
    }
}

/// All global definitions, one by one. `events`: of each location, how many there are.
pub(super) fn global(
    names: &Names<'_>,
    used: &Used,
    about: &About<'_>,
    events: &HashMap<LocationId, u64>,
) -> Vec<Vec<u8>> {
    let mut to = Writer::default();
    to.push(id::CLOCK_PROPERTIES, |to| {
        put(to, 1_000_000_000);
        put(to, about.from_ns);
        put(to, about.until_ns.saturating_sub(about.from_ns));
        match about.realtime_ns {
            Some(ns) => put(to, ns),
            None => to.push(0xff),
        }
    });
    let mpi = to.string("MPI");
    to.push(id::PARADIGM, |to| {
        to.push(paradigm::MPI);
        put_id(to, mpi);
        to.push(paradigm::CLASS_PROCESS);
    });
    system_tree(&mut to, names, events);
    regions(&mut to, names, used, about.program);
    communicators(&mut to, names, used);
    to.records
}

/// Types of location groups and locations.
const PROCESS: u8 = 1;
const CPU_THREAD: u8 = 1;

fn system_tree(to: &mut Writer, names: &Names<'_>, events: &HashMap<LocationId, u64>) {
    let definitions = names.definitions;
    let node = |to: &mut Writer, number: u32, name: &str, class: &str, parent: u32| {
        let (name, class) = (to.string(name), to.string(class));
        to.push(id::SYSTEM_TREE_NODE, |to| {
            put_id(to, number);
            put_id(to, name);
            put_id(to, class);
            put_id(to, parent);
        });
    };
    node(to, 0, "machine", "machine", UNDEFINED);
    for (number, known) in (1..).zip(&definitions.nodes) {
        node(to, number, &known.host, "node", 0);
    }
    for (place, &id) in (0..).zip(&names.processes) {
        let parent = definitions.process(id).map_or(0, |process| process.node.0 + 1);
        let name = to.string(&names.process(id));
        to.push(id::LOCATION_GROUP, |to| {
            put_id(to, place);
            put_id(to, name);
            to.push(PROCESS);
            put_id(to, parent);
            put_id(to, UNDEFINED);
        });
    }
    // In the order of their numbers.
    let threads = names.processes.iter().flat_map(|&id| definitions.threads(id));
    let mut threads: Vec<_> = threads.map(|location| (location_number(names, location), location)).collect();
    threads.sort_unstable();
    for (number, location) in threads {
        let Some(known) = definitions.location(location) else { continue };
        let place = names.place(known.process).unwrap_or(0);
        let name = match names.thread(location) {
            0 => to.string("master thread"),
            _ => to.string(&format!("thread {}", known.tid)),
        };
        let count = events.get(&location).copied().unwrap_or(0);
        to.push(id::LOCATION, |to| {
            put(to, number);
            put_id(to, name);
            to.push(CPU_THREAD);
            put(to, count);
            put_id(to, place);
        });
    }
}

fn regions(to: &mut Writer, names: &Names<'_>, used: &Used, program: &str) {
    to.region(super::used::PROGRAM, program, "", 0, (role::FUNCTION, paradigm::USER));
    for site in used.sites() {
        let (Some(number), Some(known)) = (used.site(site), names.definitions.call_site(site)) else { continue };
        let file = known.at.file.as_deref().unwrap_or(&known.path);
        to.region(number, &known.text, file, known.at.line.unwrap_or(0), (role::FUNCTION, paradigm::USER));
    }
    for function in used.functions() {
        // Scalasca takes those for MPI's whose source file is called so.
        let known = function.function();
        to.region(used.function(function), known.name, "MPI", 0, (role_of(known), paradigm::MPI));
    }
    for phase in used.phases() {
        if let Some(number) = used.phase(phase) {
            to.region(number, &format!("phase {phase}"), "", 0, (role::FUNCTION, paradigm::USER));
        }
    }
}

fn role_of(function: &Function) -> u8 {
    match function.communication() {
        Communication::Collective(pattern) => match pattern {
            Pattern::Barrier => role::BARRIER,
            Pattern::OneToAll => role::ONE_TO_ALL,
            Pattern::AllToOne => role::ALL_TO_ONE,
            Pattern::AllToAll | Pattern::AllToAllVarying => role::ALL_TO_ALL,
            Pattern::Prefix | Pattern::Neighbours | Pattern::Common => role::OTHER_COLLECTIVE,
        },
        _ if matches!(function.group, Group::PointToPoint | Group::Completion) => role::POINT_TO_POINT,
        _ if function.group == Group::Io => role::FILE_IO,
        _ => role::FUNCTION,
    }
}

fn communicators(to: &mut Writer, names: &Names<'_>, used: &Used) {
    let definitions = names.definitions;
    // Where each rank of the archive's world is: its first thread.
    let first = |id: &_| definitions.threads(*id).next().map_or(0, |location| location_number(names, location));
    let world: Vec<u64> = names.processes.iter().map(first).collect();
    to.group(0, "", group::LOCATIONS, &world);
    let mut own = None;
    let mut next = 1;
    let mut groups = Vec::new();
    for id in used.communicators() {
        let Some(known) = definitions.communicator(id) else { continue };
        let number = if known.kind == CommunicatorKind::Own {
            *own.get_or_insert_with(|| {
                to.group(next, "", group::OWN, &[]);
                next += 1;
                next - 1
            })
        } else {
            // Of those whose members are not known, no messages are written; a group is there all the same.
            let members = names.members(id).into_iter().flat_map(|members| &members.processes);
            let members = members.filter_map(|&process| names.place(process).map(u64::from));
            to.group(next, "", group::MEMBERS, &members.collect::<Vec<_>>());
            next += 1;
            next - 1
        };
        groups.push((id, number));
    }
    for (id, group) in groups {
        communicator(to, names, used, id, group);
    }
    for id in used.windows() {
        let over = definitions.windows.get(id.index()).and_then(|window| window.communicator);
        if let (Some(number), Some(over)) = (used.window(id), over.and_then(|over| used.communicator(over))) {
            let name = to.string(&format!("window {number}"));
            to.push(id::RMA_WIN, |to| {
                put_id(to, number);
                put_id(to, name);
                put_id(to, over);
                put_id(to, 0);
            });
        }
    }
}

fn communicator(to: &mut Writer, names: &Names<'_>, used: &Used, id: CommunicatorId, group: u32) {
    let Some((number, known)) = used.communicator(id).zip(names.definitions.communicator(id)) else { return };
    let name = match known.kind {
        CommunicatorKind::World => to.string("MPI_COMM_WORLD"),
        CommunicatorKind::Own => to.string("MPI_COMM_SELF"),
        CommunicatorKind::Made if known.is_inter() => to.string(&format!("{} (both groups)", known.name)),
        CommunicatorKind::Made => to.string(&known.name),
    };
    let parent = known.parent.and_then(|parent| used.communicator(parent)).filter(|&parent| parent < number);
    to.push(id::COMM, |to| {
        put_id(to, number);
        put_id(to, name);
        put_id(to, group);
        put_id(to, parent.unwrap_or(UNDEFINED));
        put_id(to, 0);
    });
}

/// Definitions of one location: what is added to its times.
pub(super) fn local(correction: Correction, from_ns: u64, until_ns: u64) -> Vec<Vec<u8>> {
    if correction.is_none() {
        return Vec::new();
    }
    let at = |ns: u64| {
        let mut bytes = Vec::new();
        record(&mut bytes, id::CLOCK_OFFSET, |to| {
            put(to, ns);
            put_signed(to, correction.offset_at(ns));
            to.extend_from_slice(&0f64.to_le_bytes());
        });
        bytes
    };
    vec![at(from_ns), at(until_ns.max(from_ns + 1))]
}

fn put_signed(to: &mut Vec<u8>, value: i64) {
    put(to, value.cast_unsigned());
}

/// Collectives in the order of their numbers.
const NAMES: [&str; 17] = [
    "barrier",
    "bcast",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "allreduce",
    "reduce",
    "reduce_scatter",
    "scan",
    "exscan",
    "reduce_scatter_block",
];

/// The function that has an OTF2 number among collectives; `None`: it has none.
pub(super) fn collective_number(function: FunctionId) -> Option<u8> {
    let function = function.function();
    let name = function.large_count_of().map_or(function.name, |ordinary| ordinary.function().name);
    let name = name.strip_prefix("MPI_").unwrap_or(name);
    let name = name.strip_suffix("_init").unwrap_or(name);
    let of = |name: &str| NAMES.iter().position(|known| known.eq_ignore_ascii_case(name));
    let found = of(name).or_else(|| of(name.strip_prefix('I')?));
    found.and_then(|number| u8::try_from(number).ok())
}
