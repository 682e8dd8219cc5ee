//! What open calls were given that only the process's memory tells: the requests that they wait for, and windows. Read while the
//! calls last, which keeps these alive.

use std::sync::Arc;

use mpiprobe_common::{
    Layout,
    descriptor::NONE,
    layout::{Memory as _, handle_kind},
};
use mpiprobe_functions::{Direction, Function, FunctionId, Group, Operation, Role};
use mpiprobe_layout::{Registry, TargetMemory, communicators, group as group_members, request, window};
use mpiprobe_observe::{
    ArgumentWords, AwaitedRequest, AwaitedRequests, GroupSnapshot, ProcessSnapshot, WindowSnapshot,
};

/// Calls that last shorter are nobody's trouble, ns.
const SHORTEST_NS: u64 = 100_000_000;
/// Of calls that wait for more requests, nothing is known of them.
const MOST_REQUESTS: u64 = 4096;

/// A call with what it was given, where that is known.
#[derive(Debug)]
pub(crate) struct OpenCall {
    pub(crate) tid: u32,
    pub(crate) function: &'static Function,
    pub(crate) words: Vec<Option<u64>>,
}

/// Calls of a process that have been open for a while and have such operands.
pub(crate) fn of_tables(tables: &ProcessSnapshot, now_ns: u64) -> Vec<OpenCall> {
    let mut calls = Vec::new();
    for thread in tables.threads.iter().filter(|thread| tables.open_ns(thread.tid, now_ns) >= SHORTEST_NS) {
        let Some(function) = thread.state.open_function().and_then(function_of) else { continue };
        let words = match tables.open_before(thread.tid) {
            Some(before) => before.words.clone(),
            None => ArgumentWords::of(&thread.state).known().iter().copied().map(Some).collect(),
        };
        calls.push(OpenCall { tid: thread.tid, function, words });
    }
    calls.retain(OpenCall::has_operands);
    calls
}

fn function_of(id: u32) -> Option<&'static Function> {
    FunctionId::from_index(u16::try_from(id).ok()?).map(FunctionId::function)
}

/// Reads them, and adds what they are.
pub(crate) fn add(
    tables: &mut ProcessSnapshot,
    calls: &[OpenCall],
    (layout, registry): (&Layout, Registry),
    memory: &TargetMemory,
) {
    let mut known = None;
    for call in calls {
        if let Some(handles) = call.requests(layout, memory) {
            let known = known.get_or_insert_with(|| communicators::communicators(layout, registry, memory));
            let read = |handle| AwaitedRequest { handle, found: request(layout, handle, known, memory) };
            let requests = handles.into_iter().map(read).collect();
            tables.awaited.push(AwaitedRequests { tid: call.tid, requests });
        }
        let group = call.group(layout).filter(|handle| tables.groups.iter().all(|known| known.handle != *handle));
        if let Some(handle) = group
            && let Some(members) = group_members(layout, handle, memory)
        {
            tables.groups.push(GroupSnapshot { handle, members: Arc::new(members) });
        }
        let handle = call.window(layout).filter(|handle| tables.windows.iter().all(|known| known.handle != *handle));
        if let Some(handle) = handle
            && let Some(found) = window(layout, registry, handle, memory)
        {
            let (name, context, members) = (found.name, found.context, Arc::new(found.members));
            tables.windows.push(WindowSnapshot { handle, name, context, members });
        }
    }
}

impl OpenCall {
    fn has_operands(&self) -> bool {
        self.awaits() || self.function.descriptor().window != NONE || self.has_group()
    }

    /// Whether it is given a group of those who have to make the call, or at the other end of a window.
    fn has_group(&self) -> bool {
        matches!(self.function.group, Group::OneSided | Group::Communicator)
            && self.function.operation == Operation::Blocking
            && self.function.position(Role::Group).is_some()
    }

    /// Whether it waits for requests.
    fn awaits(&self) -> bool {
        self.function.group == Group::Completion && self.function.descriptor().request != NONE
    }

    fn word(&self, index: u8) -> Option<u64> {
        self.words.get(usize::from(index)).copied().flatten()
    }

    /// Handles of the requests that it waits for, without null ones; `None`: not known.
    fn requests(&self, layout: &Layout, memory: &TargetMemory) -> Option<Vec<u64>> {
        if !self.awaits() {
            return None;
        }
        let at = self.function.descriptor();
        let is_given_itself =
            self.function.arguments.get(usize::from(at.request)).is_some_and(|argument| !argument.is_pointer());
        if is_given_itself {
            return Some(vec![layout.handle(self.word(at.request)?)]);
        }
        let number = if at.request_count == NONE { 1 } else { self.word(at.request_count)? & 0xffff_ffff };
        let start = self.word(at.request).filter(|_| number <= MOST_REQUESTS)?;
        let width = layout.handle_width();
        let null = layout.handle(layout.constants.request_null);
        let place = |index: u64| start.checked_add(index * u64::from(width));
        let handle = |index| memory.integer(place(index)?, width).map(|word| layout.handle(word));
        let handles: Option<Vec<u64>> = (0..number).map(handle).collect();
        Some(handles?.into_iter().filter(|handle| *handle != null).collect())
    }

    /// Of those at the other end of a window, or who make a communicator.
    fn group(&self, layout: &Layout) -> Option<u64> {
        let place = self.function.position(Role::Group).filter(|_| self.has_group())?;
        let is_given = self.function.arguments.get(place).is_some_and(|argument| argument.direction == Direction::In);
        is_given.then(|| self.words.get(place).copied().flatten().map(|word| layout.handle(word))).flatten()
    }

    fn window(&self, layout: &Layout) -> Option<u64> {
        let handle = layout.handle(self.word(self.function.descriptor().window)?);
        (layout.handles != handle_kind::UNKNOWN && handle != layout.constants.win_null).then_some(handle)
    }
}
