//! What is read of communicators from the memory of processes, because BPF programs do not: names that were given before, and who
//! is in them.

use std::{collections::HashMap, ops::Range, sync::Arc};

use mpiprobe_common::{
    Communicator, Layout,
    layout::{Side, comm},
};
use mpiprobe_layout::{Registry, TargetMemory, communicators, names::made_up};
use mpiprobe_observe::{CommunicatorSnapshot, Members, Snapshot, monotonic_ns};

use super::process_table::ProcessTable;

/// Of larger communicators the members are not listed.
const MOST_MEMBERS: u32 = 4096;
/// Members of all communicators together that are kept.
const MOST_KEPT: usize = 1 << 22;

/// What is known of the communicators of all processes.
#[derive(Debug, Default)]
pub(super) struct Communicators {
    processes: HashMap<u32, ProcessLayout>,
    kept: usize,
}

#[derive(Debug)]
struct ProcessLayout {
    layout: Layout,
    registry: Registry,
    /// Names by handle, of those that were there before they were observed.
    named: HashMap<u64, String>,
    /// When these were read, ns.
    read_ns: Range<u64>,
    /// By number: read once, since members do not change. `None`: in vain.
    members: HashMap<u32, Option<Arc<Members>>>,
}

impl ProcessLayout {
    /// The name that a communicator had when names were read, if it was there.
    fn name(&self, facts: &Communicator) -> Option<&String> {
        // One that was made before is not another one with the same handle.
        let was_made_before = facts.made_by_plus_1 == 0 || facts.first_ns < self.read_ns.start;
        let was_there = was_made_before && (facts.freed_ns == 0 || facts.freed_ns > self.read_ns.end);
        self.named.get(&facts.key.handle).filter(|_| was_there)
    }
}

/// What members of one communicator have in common while it lives: no two have all of it.
type Identity = (u64, [u32; 3], [i32; 3]);

fn identity(facts: &Communicator) -> Identity {
    (facts.context, [facts.size, facts.remote_size, facts.is_inter], [facts.first, facts.middle, facts.last])
}

impl Communicators {
    /// Notes what communicators a process has when its objects can be read for the first time. From a moment on when the programs
    /// that observe it can read them, too: what is named later they see.
    pub(super) fn begin(&mut self, slot: u32, layout: &Layout, registry: Registry, memory: &TargetMemory) {
        let began = monotonic_ns();
        let listed = communicators::communicators(layout, registry, memory).into_iter();
        let named = listed.filter_map(|known| Some((layout.handle(known.handle), known.name?))).collect();
        let read_ns = began..monotonic_ns();
        self.processes
            .insert(slot, ProcessLayout { layout: *layout, registry, named, read_ns, members: HashMap::new() });
    }

    /// How a process lays out its objects, if that has been settled.
    pub(super) fn layout(&self, slot: u32) -> Option<&Layout> {
        self.processes.get(&slot).map(|known| &known.layout)
    }

    /// The same, and where its objects are listed.
    pub(super) fn place(&self, slot: u32) -> Option<(&Layout, Registry)> {
        self.processes.get(&slot).map(|known| (&known.layout, known.registry))
    }

    /// Adds to what the tables say.
    pub(super) fn complete(&mut self, snapshot: &mut Snapshot, process_table: &ProcessTable) {
        let mut common: HashMap<Identity, Arc<Members>> = HashMap::new();
        for process in &mut snapshot.processes {
            let Some(known) = self.processes.get_mut(&process.process) else { continue };
            let mut memory = None;
            for communicator in &mut process.communicators {
                let facts = &communicator.facts;
                if let Some(name) = known.name(facts) {
                    let made = made_up(name);
                    if communicator.name.is_empty() && made.is_none() {
                        communicator.name.clone_from(name);
                    }
                    if facts.made_by_plus_1 == 0 {
                        communicator.made = made;
                    }
                }
                let is_alive = facts.freed_ns == 0;
                if is_alive && !known.members.contains_key(&communicator.number) && facts.size > 0 {
                    let found = common.get(&identity(facts)).cloned().or_else(|| {
                        let process = process_table.process(process.process)?;
                        let memory = memory.get_or_insert_with(|| TargetMemory::open(process).ok()).as_ref()?;
                        if self.kept > MOST_KEPT { None } else { read(&known.layout, communicator, memory) }
                    });
                    self.kept += found.as_ref().map_or(1, |members| members.own.len() + members.remote.len());
                    known.members.insert(communicator.number, found);
                }
                communicator.members = known.members.get(&communicator.number).cloned().flatten();
                if is_alive && let Some(members) = &communicator.members {
                    common.insert(identity(facts), Arc::clone(members));
                }
            }
        }
    }
}

/// `None` if the handle stands for another communicator meanwhile, or for none.
fn read(layout: &Layout, known: &CommunicatorSnapshot, memory: &TargetMemory) -> Option<Arc<Members>> {
    let (facts, handle) = (&known.facts, known.facts.key.handle);
    if facts.size > MOST_MEMBERS || facts.remote_size > MOST_MEMBERS {
        return None;
    }
    let now = comm(layout, handle, memory)?;
    if (now.context, now.rank, now.size, now.remote_size) != (facts.context, facts.rank, facts.size, facts.remote_size)
    {
        return None;
    }
    let own = communicators::members(layout, handle, Side::Local, memory)?;
    let remote = if now.is_inter { communicators::members(layout, handle, Side::Remote, memory)? } else { Vec::new() };
    Some(Arc::new(Members { own, remote }))
}
