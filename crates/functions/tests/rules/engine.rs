//! An engine whose tables are lists.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use mpiprobe_common::{
    Amount, Layout, Loss, Request, RequestKey,
    flow::{Flow, Sought},
    request::{certainty, state},
    rules::{
        recording,
        tables::{Counts, Operations, What},
    },
    trace::ChangeRecord,
};

use crate::setting::{Process, Shared};

/// What was counted of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) at_most: u64,
    pub(crate) unknown: u64,
}

/// The call whose changes are written down.
const CALL: (u32, u32) = (11, 3);

#[derive(Debug, Default)]
pub(crate) struct Engine {
    pub(crate) layout: Layout,
    /// By function id.
    pub(crate) functions: BTreeMap<u16, Counted>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) operations: Vec<(RequestKey, Request)>,
    pub(crate) losses: Vec<Loss>,
    /// Numbers and handles of communicators that are alive.
    pub(crate) alive: Vec<(u32, u64)>,
    pub(crate) memory: Rc<RefCell<Process>>,
    /// What has become of requests.
    pub(crate) changes: Vec<ChangeRecord>,
}

impl Engine {
    /// The flow of a function with a partner, started by a function.
    pub(crate) fn flow(&self, function: u16, started_by: Option<u16>, partner: i32) -> Flow {
        let started_by_plus_1 = started_by.map_or(0, |function| function + 1);
        let is_it = |flow: &&Flow| {
            (flow.key.function, flow.key.started_by_plus_1, flow.key.peer) == (function, started_by_plus_1, partner)
        };
        self.flows.iter().find(is_it).copied().unwrap_or_default()
    }

    fn flow_mut(&mut self, flow_plus_1: u32) -> Option<&mut Flow> {
        self.flows.get_mut((flow_plus_1 as usize).checked_sub(1)?)
    }

    fn position(&self, key: &RequestKey, wanted: u64) -> Option<usize> {
        self.operations.iter().position(|(known, request)| known == key && request.state & wanted != 0)
    }
}

impl Counts for Engine {
    type Statistics = u16;

    fn statistics(&mut self, function: u16) -> u16 {
        function
    }

    fn find_flow(&mut self, sought: &Sought) -> u32 {
        let key = sought.key(1, sought.partner);
        let known = self.flows.iter().position(|flow| flow.key == key);
        let index = known.unwrap_or_else(|| {
            self.flows.push(Flow { key, ..Flow::default() });
            self.flows.len() - 1
        });
        index as u32 + 1
    }

    fn add_sent(&mut self, function: u16, flow_plus_1: u32, amount: Amount) {
        assert!(amount.is_some());
        self.functions.entry(function).or_default().sent += amount.bytes;
        if let Some(flow) = self.flow_mut(flow_plus_1) {
            flow.sent += amount.bytes;
        }
    }

    fn add_received(&mut self, function: u16, flow_plus_1: u32, amount: Amount) {
        assert!(amount.is_some());
        let at_most = if amount.certainty == certainty::AT_MOST { amount.bytes } else { 0 };
        let counted = self.functions.entry(function).or_default();
        counted.received += amount.bytes;
        counted.at_most += at_most;
        if let Some(flow) = self.flow_mut(flow_plus_1) {
            flow.received += amount.bytes;
            flow.received_at_most += at_most;
        }
    }

    fn add_unknown(&mut self, function: u16, flow_plus_1: u32) {
        self.functions.entry(function).or_default().unknown += 1;
        if let Some(flow) = self.flow_mut(flow_plus_1) {
            flow.unknown += 1;
        }
    }

    fn add_calls(&mut self, flow_plus_1: u32, calls: u64, ns: u64) {
        if let Some(flow) = self.flow_mut(flow_plus_1) {
            flow.calls = flow.calls.wrapping_add(calls);
            flow.time_ns = flow.time_ns.wrapping_add(ns);
        }
    }

    fn add_completed(&mut self, flow_plus_1: u32, pending_ns: u64, waited_ns: u64) {
        if let Some(flow) = self.flow_mut(flow_plus_1) {
            flow.completed += 1;
            flow.pending_ns += pending_ns;
            flow.waited_ns += waited_ns;
        }
    }

    fn count_loss(&mut self, loss: Loss) {
        self.losses.push(loss);
    }
}

impl Operations for Engine {
    fn keep(&mut self, key: &RequestKey, request: &Request) {
        self.operations.retain(|(known, request)| known != key || request.state & state::ACTIVE != 0);
        self.operations.push((*key, *request));
    }

    fn keep_message(&mut self, key: &RequestKey, message: &Request) {
        self.operations.push((*key, *message));
    }

    fn take(&mut self, key: &RequestKey, _started_ns: u64, request: &mut Request) -> bool {
        let Some(index) = self.position(key, state::ACTIVE) else { return false };
        *request = self.operations[index].1;
        if request.state & state::PERSISTENT == 0 {
            self.operations.remove(index);
        } else {
            self.operations[index].1.state &= !state::ACTIVE;
        }
        true
    }

    fn find_persistent(&mut self, key: &RequestKey, request: &mut Request) -> bool {
        let Some(index) = self.position(key, state::PERSISTENT) else { return false };
        *request = self.operations[index].1;
        true
    }

    fn keep_started(&mut self, key: &RequestKey, request: &Request) {
        let index = self.position(key, state::PERSISTENT).unwrap();
        self.operations[index].1 = *request;
    }

    fn forget_persistent(&mut self, key: &RequestKey, _started_ns: u64) {
        self.operations.retain(|(known, request)| known != key || request.state & state::PERSISTENT == 0);
    }

    fn writes_changes(&self) -> bool {
        true
    }

    fn changed(&mut self, key: &RequestKey, request: &Request, what: What) {
        let memory = Shared(&self.memory);
        self.changes.push(recording::changed(&self.layout, &memory, CALL, key.handle, request, what));
    }

    fn is_alive(&self, communicator: u32, handle: u64) -> bool {
        self.alive.contains(&(communicator, handle))
    }
}
