//! What events refer to, found in the first pass, so that only that is defined and has the same number in each export.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use mpiprobe_functions::FunctionId;
use mpiprobe_trace::{CommunicatorId, Object, Operation, Part, Shape, SiteId, WindowId};

/// Regions, communicators and windows with their numbers in the archive.
#[derive(Debug, Default)]
pub(super) struct Used {
    functions: BTreeMap<FunctionId, u32>,
    sites: BTreeMap<SiteId, u32>,
    phases: BTreeMap<String, u32>,
    communicators: BTreeMap<CommunicatorId, u32>,
    windows: BTreeMap<WindowId, u32>,
    seen: Vec<Arc<[Shape]>>,
}

/// The region that a thread is in when it does nothing else.
pub(super) const PROGRAM: u32 = 0;

impl Used {
    pub(super) fn look(&mut self, part: &Part) {
        // Parts of one chunk have the same shapes, and come one after the other.
        if self.seen.iter().rev().any(|seen| Arc::ptr_eq(seen, &part.shapes)) {
            return;
        }
        if self.seen.len() >= 4096 {
            self.seen.clear();
        }
        self.seen.push(Arc::clone(&part.shapes));
        for shape in part.shapes.iter() {
            match shape {
                Shape::Call { call, .. } => {
                    self.functions.insert(call.function(), 0);
                    if let Some(site) = call.call_site {
                        self.sites.insert(site, 0);
                    }
                    self.operation(&call.operation);
                }
                Shape::Change(change) => self.operation(&change.operation),
                Shape::Phase(change) => {
                    if let Some(phase) = &change.phase {
                        self.phases.insert(phase.clone(), 0);
                    }
                }
            }
        }
    }

    fn operation(&mut self, operation: &Operation) {
        if let Some(communicator) = operation.communicator {
            self.communicators.insert(communicator, 0);
        }
        if let Some(Object::Window(window)) = operation.object {
            self.windows.insert(window, 0);
        }
    }

    pub(super) fn add_function(&mut self, function: FunctionId) {
        self.functions.insert(function, 0);
    }

    pub(super) fn add_communicator(&mut self, communicator: CommunicatorId) {
        self.communicators.insert(communicator, 0);
    }

    /// Gives numbers, in the order in which things are defined.
    pub(super) fn number(&mut self) {
        self.seen.clear();
        let sites = self.sites.values_mut();
        let regions = sites.chain(self.functions.values_mut()).chain(self.phases.values_mut());
        (PROGRAM + 1..).zip(regions).for_each(|(number, place)| *place = number);
        (0..).zip(self.communicators.values_mut()).for_each(|(number, place)| *place = number);
        (0..).zip(self.windows.values_mut()).for_each(|(number, place)| *place = number);
    }

    /// How many regions there are besides [`PROGRAM`], and the highest of their numbers.
    pub(super) fn regions(&self) -> u32 {
        u32::try_from(self.sites.len() + self.functions.len() + self.phases.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn function(&self, function: FunctionId) -> u32 {
        self.functions.get(&function).copied().unwrap_or(PROGRAM)
    }

    pub(super) fn site(&self, site: SiteId) -> Option<u32> {
        self.sites.get(&site).copied()
    }

    pub(super) fn phase(&self, phase: &str) -> Option<u32> {
        self.phases.get(phase).copied()
    }

    pub(super) fn communicator(&self, communicator: CommunicatorId) -> Option<u32> {
        self.communicators.get(&communicator).copied()
    }

    pub(super) fn window(&self, window: WindowId) -> Option<u32> {
        self.windows.get(&window).copied()
    }

    pub(super) fn functions(&self) -> BTreeSet<FunctionId> {
        self.functions.keys().copied().collect()
    }

    pub(super) fn sites(&self) -> impl Iterator<Item = SiteId> + '_ {
        self.sites.keys().copied()
    }

    pub(super) fn phases(&self) -> impl Iterator<Item = &str> {
        self.phases.keys().map(String::as_str)
    }

    pub(super) fn communicators(&self) -> impl Iterator<Item = CommunicatorId> + '_ {
        self.communicators.keys().copied()
    }

    pub(super) fn windows(&self) -> impl Iterator<Item = WindowId> + '_ {
        self.windows.keys().copied()
    }
}
