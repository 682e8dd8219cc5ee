//! The last calls of each rank, while the view shows them.

use std::collections::HashMap;

use mpiprobe_common::{
    Layout, RecentCall,
    layout::{capability, handle_kind},
};
use mpiprobe_functions::{FunctionId, Role};

use super::roster::Roster;
use crate::{
    discover::Process,
    layout::{TargetMemory, names::datatype_name, predefined_name},
    observe::{Observer, RecentLog, RecentSnapshot, Snapshot},
};

/// Of processes that the kernel observes.
#[derive(Debug, Default)]
pub(super) struct RecentCalls {
    /// There is one as long as somebody looks.
    log: Option<RecentLog>,
    names: DatatypeNames,
}

impl RecentCalls {
    /// Begins to have calls written down, or ends it.
    pub(super) fn show(&mut self, observer: &Observer, wanted: bool) {
        if wanted && self.log.is_none() {
            let mut log = RecentLog::default();
            for (process, numbered) in observer.numbered_calls() {
                log.begin(process, numbered);
            }
            self.log = Some(log);
        } else if !wanted {
            self.log = None;
        }
        observer.note_calls(wanted);
    }

    /// Adds them to what the tables say.
    pub(super) fn complete(&mut self, observer: &Observer, roster: &Roster, snapshot: &mut Snapshot) {
        let Some(log) = &mut self.log else { return };
        for tables in &mut snapshot.processes {
            let process = tables.process;
            log.take(process, tables.counters.recent_calls, |number| observer.recent_call(process, number));
            let calls = log.calls(process);
            let names = self.names.of(&calls, process, &tables.layout, roster.process(process));
            tables.recent = Some(RecentSnapshot { calls, layout: tables.layout, names, why_not: None });
        }
    }
}

/// Names of predefined datatypes whose handles are addresses, by process slot and handle; `None`: it is no such datatype.
#[derive(Debug, Default)]
pub(super) struct DatatypeNames(HashMap<(u32, u64), Option<&'static str>>);

/// Most that are remembered of those that are none.
const MOST_NAMES: usize = 1 << 16;

impl DatatypeNames {
    /// Those that calls were given.
    pub(super) fn of(
        &mut self,
        calls: &[RecentCall],
        process: u32,
        layout: &Layout,
        living: Option<&Process>,
    ) -> HashMap<u64, &'static str> {
        let mut names = HashMap::new();
        if layout.handles != handle_kind::POINTER || !layout.knows(capability::DATATYPES) {
            return names;
        }
        let mut memory = None;
        for handle in calls.iter().flat_map(datatypes) {
            let known = self.0.get(&(process, handle)).copied().or_else(|| {
                if memory.is_none() {
                    memory = living.and_then(|process| TargetMemory::open(process).ok());
                }
                let name = datatype_name(layout, handle, memory.as_ref()?).and_then(|name| predefined_name(&name));
                if self.0.len() < MOST_NAMES {
                    self.0.insert((process, handle), name);
                }
                Some(name)
            });
            if let Some(name) = known.flatten() {
                names.insert(handle, name);
            }
        }
        names
    }
}

/// Handles of datatypes among the arguments of a call.
fn datatypes(call: &RecentCall) -> impl Iterator<Item = u64> {
    let function = u16::try_from(call.function).ok().and_then(FunctionId::from_index).map(FunctionId::function);
    let arguments = function.map_or(&[][..], |function| function.arguments);
    let is_datatype =
        |argument: &mpiprobe_functions::Argument| argument.role == Role::Datatype && !argument.is_pointer();
    let words = arguments.iter().zip(call.arguments()).filter(move |(argument, _)| is_datatype(argument));
    words.map(|(_, word)| *word)
}
