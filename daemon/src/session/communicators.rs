//! What is read of communicators from the memory of processes, because BPF programs do not: names that were given before, and who
//! is in them.

use std::{collections::HashMap, sync::Arc};

use mpiprobe_common::{
    Communicator, Layout,
    layout::{Side, comm},
};

use super::roster::Roster;
use crate::{
    layout::{Registry, TargetMemory, communicators, names::made_up},
    observe::{CommunicatorSnapshot, Members, Snapshot},
};

/// Of larger communicators the members are not listed.
const MOST_MEMBERS: u32 = 4096;
/// Members of all communicators together that are kept.
const MOST_KEPT: usize = 1 << 22;

/// What is known of the communicators of all processes.
#[derive(Debug, Default)]
pub(super) struct Communicators {
    processes: HashMap<u32, Known>,
    kept: usize,
}

#[derive(Debug)]
struct Known {
    layout: Layout,
    /// Names by handle, of those that were there before they were observed.
    named: HashMap<u64, String>,
    /// By number: read once, since members do not change. `None`: in vain.
    members: HashMap<u32, Option<Arc<Members>>>,
}

/// What members of one communicator have in common while it lives: no two have all of it.
type Identity = (u64, [u32; 3], [i32; 3]);

fn identity(facts: &Communicator) -> Identity {
    (facts.context, [facts.size, facts.remote_size, facts.is_inter], [facts.first, facts.middle, facts.last])
}

impl Communicators {
    /// Notes what communicators a process has when its objects can be read for the first time.
    pub(super) fn begin(&mut self, slot: u32, layout: &Layout, registry: Registry, memory: &TargetMemory) {
        let listed = communicators::communicators(layout, registry, memory).into_iter();
        let named = listed.filter_map(|known| Some((layout.handle(known.handle), known.name?))).collect();
        self.processes.insert(slot, Known { layout: *layout, named, members: HashMap::new() });
    }

    /// Adds to what the tables say.
    pub(super) fn complete(&mut self, snapshot: &mut Snapshot, roster: &Roster) {
        let mut common: HashMap<Identity, Arc<Members>> = HashMap::new();
        for process in &mut snapshot.processes {
            let Some(known) = self.processes.get_mut(&process.process) else { continue };
            let mut memory = None;
            for communicator in &mut process.communicators {
                let facts = &communicator.facts;
                if facts.made_by_plus_1 == 0
                    && let Some(name) = known.named.get(&facts.key.handle)
                {
                    communicator.made = made_up(name);
                    if communicator.name.is_empty() && communicator.made.is_none() {
                        communicator.name.clone_from(name);
                    }
                }
                let is_alive = facts.freed_ns == 0;
                if is_alive && !known.members.contains_key(&communicator.number) && facts.size > 0 {
                    let found = common.get(&identity(facts)).cloned().or_else(|| {
                        let process = roster.process(process.process)?;
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
