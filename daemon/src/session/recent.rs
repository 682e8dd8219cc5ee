//! The last calls of each rank, while the view shows them.

use std::collections::HashMap;

use mpiprobe_attach::Observer;
use mpiprobe_common::{Layout, RecentCall, layout::handle_kind};
use mpiprobe_discover::Process;
use mpiprobe_functions::{Argument, FunctionId, Role};
use mpiprobe_layout::{TargetMemory, names::NamePlaces};
use mpiprobe_observe::{RecentLog, RecentSnapshot, Snapshot};

use super::process_table::ProcessTable;

/// Of processes that the kernel observes.
#[derive(Debug, Default)]
pub(super) struct RecentCalls {
    /// There is one as long as somebody looks.
    log: Option<RecentLog>,
    names: HandleNames,
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

    /// Whether somebody looks.
    pub(super) fn are_shown(&self) -> bool {
        self.log.is_some()
    }

    /// Takes out what is new before it is overwritten.
    pub(super) fn gather(&mut self, observer: &Observer) {
        let Some(log) = &mut self.log else { return };
        for (process, numbered) in observer.numbered_calls() {
            log.take(process, numbered, |number| observer.recent_call(process, number));
        }
    }

    /// Adds them to what the tables say.
    pub(super) fn complete(&mut self, observer: &Observer, process_table: &ProcessTable, snapshot: &mut Snapshot) {
        let Some(log) = &mut self.log else { return };
        for tables in &mut snapshot.processes {
            let process = tables.process;
            log.take(process, tables.counters.recent_calls, |number| observer.recent_call(process, number));
            let calls = log.calls(process);
            let names = self.names.of(&calls, process, &tables.layout, process_table.process(process));
            tables.recent = Some(RecentSnapshot { calls, layout: tables.layout, names, why_not: None });
        }
    }
}

/// Names of predefined datatypes and operations whose handles are addresses, by process slot and handle; `None`: it is none.
#[derive(Debug, Default)]
pub(super) struct HandleNames(HashMap<(u32, u64), Option<&'static str>>);

/// Most that are remembered.
const MOST_NAMES: usize = 1 << 16;

impl HandleNames {
    /// Those that calls were given.
    pub(super) fn of(
        &mut self,
        calls: &[RecentCall],
        process: u32,
        layout: &Layout,
        living: Option<&Process>,
    ) -> HashMap<u64, &'static str> {
        if layout.handles != handle_kind::POINTER {
            return HashMap::new();
        }
        let mut looked: Option<Option<(TargetMemory, NamePlaces)>> = None;
        let mut name = |role, handle| {
            if let Some(known) = self.0.get(&(process, handle)) {
                return *known;
            }
            let look = || {
                let memory = TargetMemory::open(living?).ok()?;
                let places = NamePlaces::of(layout, &memory);
                Some((memory, places))
            };
            let (memory, places) = looked.get_or_insert_with(look).as_ref()?;
            let name = if role == Role::Op { places.op(handle, memory) } else { places.datatype(handle, memory) };
            if self.0.len() < MOST_NAMES {
                self.0.insert((process, handle), name);
            }
            name
        };
        let named = calls.iter().flat_map(handles).filter_map(|(role, handle)| Some((handle, name(role, handle)?)));
        named.collect()
    }
}

/// Handles of datatypes and operations among the arguments of a call.
fn handles(call: &RecentCall) -> impl Iterator<Item = (Role, u64)> {
    let function = u16::try_from(call.function).ok().and_then(FunctionId::from_index).map(FunctionId::function);
    let arguments = function.map_or(&[][..], |function| function.arguments);
    let has_name = |argument: &Argument| matches!(argument.role, Role::Datatype | Role::Op) && !argument.is_pointer();
    let words = arguments.iter().zip(call.arguments()).filter(move |(argument, _)| has_name(argument));
    words.map(|(argument, word)| (argument.role, *word))
}
