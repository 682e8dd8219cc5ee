//! What messages and collectives say of clocks: a time on one node that was before a time on another one.

use hashbrown::HashMap;
use mpiprobe_functions::{Communication, FunctionId, Pattern, SendMode};
use mpiprobe_trace::LocationId;

use super::band::{Below, Point};
use crate::communication::communication;
use crate::matching::{End, Instance, InstanceDone, InstanceKind, Matched, Member};

/// Machines in one collective that are compared each with each; of more, each is compared with the next one and with the first.
const EACH_WITH_EACH: usize = 16;

/// Two machines, the one of the lower number first. Points are by the clock of the second one, which the first is ahead of.
#[derive(Clone, Debug, Default)]
pub(super) struct Pair {
    /// The first one is ahead so far at least.
    pub(super) least: Below,
    /// At most, with the sign turned.
    pub(super) most: Below,
}

impl Pair {
    /// What the line has to be above and below.
    pub(super) fn hulls(&self) -> (Vec<Point>, Vec<Point>) {
        let turned = |point: &Point| Point { ahead_ns: -point.ahead_ns, ..*point };
        (self.least.hull(), self.most.hull().iter().map(turned).collect())
    }

    pub(super) fn count(&self) -> u64 {
        self.least.count + self.most.count
    }
}

fn is_synchronous(function: FunctionId) -> bool {
    communication(function) == Communication::Send(SendMode::Synchronous)
}

/// Of all machines.
#[derive(Debug)]
pub(super) struct Evidence {
    /// By location.
    machines: Vec<u32>,
    /// By machine: what has been added to its times.
    shifts: Vec<i64>,
    pub(super) pairs: HashMap<(u32, u32), Pair>,
}

/// The last entry and the first return on a machine, on its own clock.
#[derive(Clone, Copy, Debug)]
struct OnMachine {
    machine: u32,
    last_entry_ns: u64,
    first_return_ns: u64,
}

impl Evidence {
    pub(super) fn new(machines: Vec<u32>, shifts: Vec<i64>) -> Self {
        Self { machines, shifts, pairs: HashMap::new() }
    }

    pub(super) fn take(&mut self, matched: &Matched<'_>) {
        for done in matched.done() {
            match done.end {
                End::Received { send, .. } | End::Found { send } => {
                    self.before((send.location, send.entry_ns), (done.call.location, done.call.return_ns));
                }
                // It is not complete before somebody has begun to receive (MPI-4.0, section 3.4).
                End::Sent { posted, receive: Some(receive) } if is_synchronous(posted.function) => {
                    self.before((receive.location, receive.entry_ns), (done.call.location, done.call.return_ns));
                }
                End::Sent { .. } => {}
            }
        }
        matched.instances.iter().for_each(|instance| self.instance(instance));
        matched.instances_done.iter().for_each(|done| self.instance_done(done));
    }

    fn machine(&self, location: LocationId) -> u32 {
        self.machines.get(location.index()).copied().unwrap_or(0)
    }

    /// On the machine's own clock.
    fn own(&self, machine: u32, ns: u64) -> u64 {
        ns.saturating_sub_signed(self.shifts.get(machine as usize).copied().unwrap_or(0))
    }

    fn before(&mut self, (one, one_ns): (LocationId, u64), (other, other_ns): (LocationId, u64)) {
        let (one, other) = (self.machine(one), self.machine(other));
        if one != other {
            self.was_before((one, self.own(one, one_ns)), (other, self.own(other, other_ns)));
        }
    }

    /// By the machines' own clocks.
    fn was_before(&mut self, (one, one_ns): (u32, u64), (other, other_ns): (u32, u64)) {
        let pair = self.pairs.entry((one.min(other), one.max(other))).or_default();
        if one < other {
            if let Some(point) = Point::new(other_ns, one_ns) {
                pair.least.add(point);
            }
        } else if let Some(Point { at_ns, ahead_ns }) = Point::new(one_ns, other_ns) {
            pair.most.add(Point { at_ns, ahead_ns: -ahead_ns });
        }
    }

    /// What a collective says whose members were in it, machine by machine.
    fn on_machines<'a>(&self, members: impl Iterator<Item = &'a Member>) -> Vec<OnMachine> {
        let mut all: HashMap<u32, OnMachine> = HashMap::new();
        for Member { call, .. } in members {
            let machine = self.machine(call.location);
            let (entry_ns, return_ns) = (self.own(machine, call.entry_ns), self.own(machine, call.return_ns));
            let new = OnMachine { machine, last_entry_ns: entry_ns, first_return_ns: return_ns };
            let known = all.entry(machine).or_insert(new);
            known.last_entry_ns = known.last_entry_ns.max(entry_ns);
            known.first_return_ns = known.first_return_ns.min(return_ns);
        }
        let mut all: Vec<OnMachine> = all.into_values().collect();
        all.sort_unstable_by_key(|one| one.machine);
        all
    }

    fn instance(&mut self, instance: &Instance) {
        if !instance.is_blocking || instance.kind != InstanceKind::Ordinary {
            return;
        }
        let members = || instance.members.iter();
        match instance.pattern {
            Pattern::Barrier => self.synchronised(instance),
            Pattern::AllToAll if members().all(|member| member.sends && member.receives) => self.synchronised(instance),
            Pattern::OneToAll => {
                let Some(root) = members().find(|member| member.is_root && member.sends) else { return };
                let others = self.on_machines(members().filter(|member| !member.is_root && member.receives));
                let machine = self.machine(root.call.location);
                let root = (machine, self.own(machine, root.call.entry_ns));
                for other in others.iter().filter(|other| other.machine != root.0) {
                    self.was_before(root, (other.machine, other.first_return_ns));
                }
            }
            Pattern::AllToOne => {
                let Some(root) = members().find(|member| member.is_root && member.receives) else { return };
                let others = self.on_machines(members().filter(|member| !member.is_root && member.sends));
                let machine = self.machine(root.call.location);
                let root = (machine, self.own(machine, root.call.return_ns));
                for other in others.iter().filter(|other| other.machine != root.0) {
                    self.was_before((other.machine, other.last_entry_ns), root);
                }
            }
            _ => {}
        }
    }

    /// Nobody has left before everybody had come: of an inter-communicator, everybody of the other group.
    fn synchronised(&mut self, instance: &Instance) {
        if !instance.is_between_groups() {
            return self.all_with_all(&self.on_machines(instance.members.iter()));
        }
        let (one, other) = instance.groups();
        let (ones, others) = (self.on_machines(one.iter()), self.on_machines(other.iter()));
        let count = ones.len().max(others.len());
        for (of_one, one) in ones.iter().enumerate() {
            for (of_other, other) in others.iter().enumerate().filter(|(_, other)| other.machine != one.machine) {
                if count <= EACH_WITH_EACH || of_one == 0 || of_other == 0 || of_one == of_other {
                    self.met(one, other);
                }
            }
        }
    }

    /// Nobody has left before everybody had come.
    fn all_with_all(&mut self, all: &[OnMachine]) {
        let count = all.len();
        for (place, one) in all.iter().enumerate() {
            for (of_other, other) in all.iter().enumerate().skip(place + 1) {
                if count <= EACH_WITH_EACH || place == 0 || of_other == place + 1 {
                    self.met(one, other);
                }
            }
        }
    }

    /// Nobody on either machine has left before all on the other one had come.
    fn met(&mut self, one: &OnMachine, other: &OnMachine) {
        self.was_before((one.machine, one.last_entry_ns), (other.machine, other.first_return_ns));
        self.was_before((other.machine, other.last_entry_ns), (one.machine, one.first_return_ns));
    }

    /// One that did not block, and is complete for a member.
    fn instance_done(&mut self, done: &InstanceDone) {
        let instance = &done.instance;
        let needs_all = match instance.pattern {
            Pattern::Barrier => true,
            Pattern::AllToAll => instance.members.iter().all(|member| member.sends && member.receives),
            _ => false,
        };
        if !needs_all || instance.kind != InstanceKind::Ordinary {
            return;
        }
        let machine = self.machine(done.call.location);
        let own = (machine, self.own(machine, done.call.return_ns));
        let needed = instance.needed_by(done.member);
        for other in self.on_machines(needed.iter()).iter().filter(|other| other.machine != machine) {
            self.was_before((other.machine, other.last_entry_ns), own);
        }
    }
}
