//! The replay: slice by slice forwards, and backwards over the waits since the last moment that all threads have in common.

use std::{collections::BTreeMap, mem, sync::Arc};

use mpiprobe_model::{ClockQuality, PendingEnds, WaitKind, WaitStates};
use mpiprobe_trace::{Definitions, LocationId, NodeId, ReadError, Shape, Span, Trace};

use super::{
    cells::{Cell, Cells, NO_CALL, OPEN, Place, SWITCHED_OFF},
    common::CommonPoints,
    delays::{self, Activities, Delay, Scratch, Search, WaitAt, spans},
    found::{Found, Point, Remembered, Rules, senders, stay},
    log::{Log, TimeByCell},
    path::{PathTime, Paths},
    result::{Outcome, ranks, result},
    rules::Stay,
    totals::{Counts, Node, RowKey, Totals},
};
use crate::{
    clock::Clocks,
    matching::{Instance, InstanceKind, Matched, Matcher, Pending},
    parallel,
    slices::{LocationSlice, Slice, Slices},
};

/// What is kept at most, so that memory is bounded.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Spans of activity, of all threads.
    pub spells: usize,
    /// Waits whose indirect causes can still be found.
    pub waits: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { spells: 1 << 22, waits: 1 << 20 }
    }
}

/// Wait states of all that it is given, slice by slice.
#[derive(Debug)]
pub struct Analysis {
    threads: usize,
    limits: Limits,
    definitions: Definitions,
    clocks: Clocks,
    /// By location.
    nodes_of: Vec<NodeId>,
    /// By process: its only thread, if it has one.
    only_threads: Vec<Option<LocationId>>,
    senders: Vec<bool>,
    matcher: Matcher,
    cells: Cells,
    /// Copies of what [`Cells`] has, and the cell of each place.
    cell_list: Vec<Cell>,
    call_cells: Vec<u32>,
    /// By place: its rank among them, whoever has come to which first.
    place_order: Vec<u32>,
    /// By location.
    logs: Vec<Log>,
    places: Vec<Places>,
    /// By process.
    remembered: Vec<Remembered>,
    common: CommonPoints,
    paths: Paths,
    waits_of: Vec<Vec<WaitAt>>,
    nodes: Vec<Node>,
    delays: Vec<Delay>,
    totals: Totals,
    counts: Counts,
    /// The last entry of `MPI_Finalize`.
    end: Option<(u32, u64)>,
    /// What was found and counted, in the order of time, until nothing can be found any more that comes before: causes are looked for in that
    /// order.
    held: BTreeMap<Order, Held>,
    held_waits: usize,
    found: u64,
    /// When each thread has begun, of those that have, in the order of time.
    begun: Vec<u64>,
    scratch: TimeByCell,
}

/// Where something belongs: its time, the location and the entry of who has waited (moments come last), and how many have been found before.
type Order = (u64, u32, u64, u64);

/// What happens in the order of time.
#[derive(Debug)]
enum Held {
    Point(Point),
    /// All who had begun by then may have been in it: a moment that they have in common.
    Moment(Arc<Instance>),
}

/// A moment that all threads have in common, and the calls in which they were.
struct Moment {
    at_ns: u64,
    calls: Vec<(u32, Stay)>,
}

/// Places of a location's shapes.
#[derive(Debug, Default)]
struct Places {
    shapes: Option<Arc<[Shape]>>,
    places: Vec<u32>,
}

/// Wait states of a trace, in a span on the common clock. `progress` is told of events that were dealt with.
pub fn analyse(
    trace: &dyn Trace,
    clocks: &Clocks,
    span: Span,
    threads: usize,
    mut progress: impl FnMut(u64),
) -> Result<WaitStates, ReadError> {
    let definitions = trace.definitions();
    let locations = definitions.location_ids();
    let slices = Slices::new(trace, clocks, locations, span, threads);
    let analysis = Analysis::new(definitions, clocks, span.from_ns > 0, threads, Limits::default());
    analysis.take_all(slices, &mut progress)
}

impl Analysis {
    /// `from_middle`: what it will be given begins in the middle of a trace.
    pub fn new(definitions: &Definitions, clocks: &Clocks, from_middle: bool, threads: usize, limits: Limits) -> Self {
        let mut analysis = Self {
            threads: threads.max(1),
            limits,
            definitions: Definitions::default(),
            clocks: Clocks::same(),
            nodes_of: Vec::new(),
            only_threads: Vec::new(),
            senders: senders(),
            matcher: Matcher::new(definitions, clocks, from_middle, threads),
            cells: Cells::default(),
            cell_list: Vec::new(),
            call_cells: Vec::new(),
            place_order: Vec::new(),
            logs: Vec::new(),
            places: Vec::new(),
            remembered: Vec::new(),
            common: CommonPoints::default(),
            paths: Paths::default(),
            waits_of: Vec::new(),
            nodes: Vec::new(),
            delays: Vec::new(),
            totals: Totals::default(),
            counts: Counts::default(),
            end: None,
            held: BTreeMap::new(),
            held_waits: 0,
            found: 0,
            begun: Vec::new(),
            scratch: TimeByCell::default(),
        };
        analysis.grow(definitions, clocks);
        analysis
    }

    pub(super) fn take_all(
        mut self,
        mut slices: Slices<'_>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<WaitStates, ReadError> {
        while let Some(slice) = slices.next_slice()? {
            self.take(&slice);
            progress(slice.rows());
        }
        Ok(self.finish())
    }

    /// More is known.
    pub fn define(&mut self, definitions: &Definitions, clocks: &Clocks) {
        self.matcher.define(definitions, clocks);
        self.grow(definitions, clocks);
    }

    fn grow(&mut self, definitions: &Definitions, clocks: &Clocks) {
        let locations = definitions.locations.len();
        self.logs.resize_with(locations, Log::default);
        self.places.resize_with(locations, Places::default);
        self.waits_of.resize_with(locations, Vec::new);
        self.remembered.resize_with(definitions.processes.len(), Remembered::default);
        self.common.grow(locations);
        self.paths.grow(locations);
        let node = |id| definitions.process(id).map_or(NodeId(0), |process| process.node);
        self.nodes_of = definitions.locations.iter().map(|location| node(location.process)).collect();
        let mut threads: Vec<Vec<LocationId>> = vec![Vec::new(); definitions.processes.len()];
        for (id, location) in definitions.location_ids().zip(&definitions.locations) {
            if let Some(threads) = threads.get_mut(location.process.index()) {
                threads.push(id);
            }
        }
        let only = |threads: Vec<LocationId>| if let [only] = threads.as_slice() { Some(*only) } else { None };
        self.only_threads = threads.into_iter().map(only).collect();
        self.clocks = clocks.clone();
        self.definitions = definitions.clone();
        self.places.iter_mut().for_each(|places| places.shapes = None);
    }

    /// Takes in what begins in a slice.
    pub fn take(&mut self, slice: &Slice) {
        self.log(slice);
        let mut matcher = mem::replace(&mut self.matcher, Matcher::empty());
        let points = self.find(&matcher.take(slice));
        self.matcher = matcher;
        self.count(points);
        // Somebody who is behind, or whose call is not dealt with, may have waited since.
        let known_ns = self.matcher.unsettled_ns().map_or(slice.until_ns, |ns| ns.min(slice.until_ns));
        if let Some(Moment { at_ns, calls }) = self.settle_until(known_ns) {
            self.cut(at_ns, &calls);
        }
        self.keep_limits(slice.latest_ns());
    }

    /// What the threads do.
    fn log(&mut self, slice: &Slice) {
        let mut by_location: Vec<Option<&LocationSlice>> = vec![None; self.logs.len()];
        for one in &slice.locations {
            if let Some(place) = by_location.get_mut(one.location.index()) {
                *place = Some(one);
            }
        }
        for part in slice.locations.iter().flat_map(|one| &one.parts) {
            let rows = || part.rows.iter();
            if let Some(first) = rows().map(|row| row.begin_ns).min() {
                self.counts.from_ns = Some(self.counts.from_ns.map_or(first, |known| known.min(first)));
            }
            self.counts.until_ns = rows().map(|row| row.end_ns).fold(self.counts.until_ns, u64::max);
        }
        let cells = &self.cells;
        let mut tracks: Vec<_> =
            self.logs.iter_mut().zip(&mut self.places).zip(by_location).map(|track| (track, 0, 0)).collect();
        parallel::for_each(self.threads, &mut tracks, |_, (((log, places), slice), calls, open)| {
            for part in slice.iter().flat_map(|slice| &slice.parts) {
                places.learn(&part.shapes, cells);
                for row in &part.rows {
                    match places.places.get(row.shape as usize) {
                        Some(&SWITCHED_OFF) => log.switch_off(),
                        Some(&place) if place != NO_CALL => {
                            log.call(row.number, (row.begin_ns, row.end_ns), place & !OPEN, cells);
                            *calls += 1u64;
                            *open += u64::from(place & OPEN != 0);
                        }
                        _ => {}
                    }
                }
            }
        });
        self.counts.calls += tracks.iter().map(|(_, calls, _)| calls).sum::<u64>();
        self.counts.open_calls += tracks.iter().map(|(.., open)| open).sum::<u64>();
        drop(tracks);
        self.learn_cells();
    }

    /// What all threads have in common with each other by now.
    fn learn_cells(&mut self) {
        self.cell_list = self.cells.cells();
        let places = self.cells.places();
        if places.len() > self.place_order.len() {
            self.place_order = ranks(&places, &self.definitions);
        }
        for place in self.call_cells.len()..places.len() {
            let place = u32::try_from(place).unwrap_or(NO_CALL);
            self.call_cells.push(self.cells.cell(Cell::Calling(place)));
        }
        if self.call_cells.len() > self.cell_list.len() {
            self.cell_list = self.cells.cells();
        }
    }

    /// Wait states in what has come together.
    fn find(&mut self, matched: &Matched<'_>) -> Vec<Point> {
        let fenced = matched.fenced.iter().map(|&(call, ns)| ((call.location.0, call.number), ns)).collect();
        let rules = Rules {
            definitions: &self.definitions,
            cells: &self.cells,
            may_wait_for_receiver: &self.senders,
            clocks: &self.clocks,
            worst_within_ns: self.clocks.worst_within_ns().unwrap_or(0),
            nodes: &self.nodes_of,
            logs: &self.logs,
            cell_list: &self.cell_list,
            only_threads: &self.only_threads,
            fenced: &fenced,
        };
        let remembered = self.remembered.iter_mut();
        let mut processes: Vec<_> = remembered.map(|remembered| (remembered, Found::default())).collect();
        parallel::for_each(self.threads, &mut processes, |index, (remembered, found)| {
            let process = mpiprobe_trace::ProcessId(u32::try_from(index).unwrap_or(u32::MAX));
            rules.messages(matched.done_by(process), matched.told_until_ns(process), remembered, found);
        });
        let mut found: Vec<Found> = processes.into_iter().map(|(_, found)| found).collect();
        let share = matched.instances.len().div_ceil(self.threads).max(1);
        let mut groups: Vec<_> =
            matched.instances.chunks(share).map(|instances| (instances, Found::default())).collect();
        parallel::for_each(self.threads, &mut groups, |_, (instances, found)| {
            instances.iter().for_each(|instance| rules.instance(instance, found));
        });
        found.extend(groups.into_iter().map(|(_, found)| found));
        let mut of_done = Found::default();
        matched.instances_done.iter().for_each(|done| rules.instance_done(done, &mut of_done));
        rules.epochs(matched.epochs, &mut of_done);
        rules.locks(matched.locks, &mut of_done);
        rules.passive(matched.passive, &mut of_done);
        found.push(of_done);
        let mut points = Vec::new();
        for mut one in found {
            points.append(&mut one.points);
            self.counts.violations += one.violations;
            self.counts.worst_violation_ns = self.counts.worst_violation_ns.max(one.worst_violation_ns);
            self.counts.between_clocks += one.between_clocks;
            self.counts.unsure += one.unsure;
            self.counts.unsure_ns += one.unsure_ns;
            self.counts.unknown_neighbours += one.unknown_neighbours;
            for part in one.parts {
                self.totals.part(
                    RowKey { kind: part.kind, location: part.location, place: part.place },
                    part.what,
                    part.ns,
                );
            }
        }
        // Of several jobs, that of the last one: whichever comes together first.
        let ends = matched.instances.iter().filter(|instance| instance.kind == InstanceKind::End);
        for call in ends.flat_map(|end| &end.members).map(|member| member.call) {
            let one = (call.location.0, call.entry_ns);
            if self.end.is_none_or(|end| (one.1, one.0) > (end.1, end.0)) {
                self.end = Some(one);
            }
        }
        for instance in matched.instances.iter().filter(|one| one.within_ns.is_some() && one.synchronises()) {
            let at_ns = instance.overlap().0;
            self.found += 1;
            self.held.insert((at_ns, u32::MAX, u64::MAX, self.found), Held::Moment(Arc::clone(instance)));
        }
        points
    }

    /// The moment of a collective, if all threads were in it that had begun by then.
    fn common_moment(&self, instance: &Instance) -> Option<Moment> {
        let at_ns = instance.overlap().0;
        let begun = self.begun.partition_point(|&ns| ns <= at_ns);
        if instance.members.len() != begun {
            return None;
        }
        let mut members: Vec<_> =
            instance.members.iter().map(|member| (member.call.location.0, stay(&member.call))).collect();
        members.sort_unstable_by_key(|(location, _)| *location);
        members.dedup_by_key(|(location, _)| *location);
        if members.len() != begun {
            return None;
        }
        // Those who begin later have done nothing before.
        let mut of_members = members.into_iter().peekable();
        let nothing = Stay { entry_ns: at_ns, return_ns: at_ns };
        let all = (0u32..)
            .zip(&self.logs)
            .map(|(location, _)| of_members.next_if(|(member, _)| *member == location).unwrap_or((location, nothing)));
        Some(Moment { at_ns, calls: all.collect() })
    }

    /// Counts waits, whose causes are looked for later.
    fn count(&mut self, points: Vec<Point>) {
        for point in points {
            for wait in point.waits.iter().filter(|wait| wait.ns > 0) {
                let key = RowKey { kind: wait.kind, location: wait.location, place: wait.place };
                self.totals.wait(key, wait.stay.entry_ns, wait.ns);
            }
            let first = point.waits.first().map_or((u32::MAX, 0), |wait| (wait.location, wait.stay.entry_ns));
            self.found += 1;
            self.held_waits += point.waits.len();
            self.held.insert((point.at_ns, first.0, first.1, self.found), Held::Point(point));
        }
    }

    /// Looks for causes of waits that were over before, from the first to the last; gives the last moment that all threads have in common.
    fn settle_until(&mut self, ns: u64) -> Option<Moment> {
        let later = if ns == u64::MAX { BTreeMap::new() } else { self.held.split_off(&(ns, 0, 0, 0)) };
        let held = mem::replace(&mut self.held, later);
        if held.is_empty() {
            return None;
        }
        if self.begun.len() < self.logs.len() {
            self.begun = self.logs.iter().filter_map(Log::began_ns).collect();
            self.begun.sort_unstable();
        }
        self.learn_cells();
        let mut searches: Vec<(Search, Delay)> = Vec::new();
        let mut last = None;
        for one in held.into_values() {
            let point = match one {
                Held::Point(point) => point,
                Held::Moment(instance) => {
                    if let Some(moment) = self.common_moment(&instance) {
                        self.common.all(&moment.calls);
                        last = Some(moment);
                    }
                    continue;
                }
            };
            self.held_waits = self.held_waits.saturating_sub(point.waits.len());
            for wait in &point.waits {
                let key = RowKey { kind: wait.kind, location: wait.location, place: wait.place };
                if !wait.kind.is_waiting() {
                    continue;
                }
                let end_ns = wait.stay.entry_ns + wait.ns;
                match (wait.path, wait.cause) {
                    (Some((last, at_ns)), _) => self.paths.waited(wait.location, last, at_ns),
                    (None, Some(cause)) => self.paths.waited(wait.location, cause.location, end_ns),
                    (None, None) => {}
                }
                if wait.ns == 0 {
                    continue;
                }
                let index = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
                let cause = wait.cause.map_or(u32::MAX, |cause| cause.location);
                self.nodes.push(Node { key, cause, ns: wait.ns, end_ns: point.at_ns, inherited: 0.0 });
                let cell = self.call_cells.get(wait.place as usize).copied().unwrap_or(u32::MAX);
                if let Some(waits) = self.waits_of.get_mut(wait.location as usize) {
                    waits.push(WaitAt { from_ns: wait.stay.entry_ns, until_ns: end_ns, wait: index, cell });
                }
                if let Some(log) = self.logs.get_mut(wait.location as usize) {
                    log.has_waited(wait.place, wait.ns, &self.cells);
                }
                if let Some(cause) = wait.cause {
                    let common = self.common.last(wait.location, cause.location);
                    let (waiter_span, cause_span) = spans(common, wait.stay.entry_ns, cause.stay.entry_ns);
                    let search =
                        Search { wait: index, waiter: wait.location, cause: cause.location, waiter_span, cause_span };
                    searches.push((search, Delay::default()));
                }
            }
            if !point.common.is_empty() {
                self.common.group(point.group, point.common);
            } else if let [wait] = point.waits.as_slice()
                && let Some(cause) = wait.cause
                && matches!(wait.kind, WaitKind::LateSender | WaitKind::LateReceiver)
            {
                self.common.pair((wait.location, wait.stay), (cause.location, cause.stay));
            }
        }
        let (logs, waits) = (&self.logs, self.waits_of.as_slice());
        let activities = Activities { cells: &self.cell_list, order: &self.place_order };
        let share = searches.len().div_ceil(self.threads).max(1);
        let mut shares: Vec<_> = searches.chunks_mut(share).collect();
        parallel::for_each(self.threads, &mut shares, |_, searches| {
            let mut room = Scratch::default();
            for (search, delay) in searches.iter_mut() {
                *delay = delays::search(search, logs, waits, activities, &mut room);
            }
        });
        self.delays.extend(searches.into_iter().map(|(_, delay)| delay));
        last
    }

    fn keep_limits(&mut self, until_ns: u64) {
        let spells: usize = self.logs.iter().map(Log::spells).sum();
        if self.paths.len() > self.limits.waits {
            self.paths.settle(&self.logs, &mut self.scratch);
        }
        if spells <= self.limits.spells && self.nodes.len() + self.held_waits <= self.limits.waits {
            return;
        }
        self.settle_until(u64::MAX);
        let oldest_ns = self.logs.iter().filter(|log| log.spells() > 0).map(Log::first_ns).min().unwrap_or(until_ns);
        let at_ns = oldest_ns + until_ns.saturating_sub(oldest_ns) / 2;
        let moment = Stay { entry_ns: at_ns, return_ns: at_ns };
        let locations = u32::try_from(self.logs.len()).unwrap_or(u32::MAX);
        let before = self.nodes.len();
        let base: Vec<_> = (0..locations).map(|location| (location, moment)).collect();
        self.cut(at_ns, &base);
        self.counts.cut_off += (before - self.nodes.len()) as u64;
    }

    /// Nothing is looked for any more before a moment: hands on the costs of waits until then, from the last to the first.
    fn cut(&mut self, at_ns: u64, base: &[(u32, Stay)]) {
        let count = self.nodes.iter().rposition(|node| node.end_ns <= at_ns).map_or(0, |last| last + 1);
        let done = self.delays.partition_point(|delay| (delay.wait as usize) < count);
        for delay in self.delays.iter().take(done).rev() {
            self.totals.charge(delay, &mut self.nodes);
        }
        self.delays.drain(..done);
        self.nodes.drain(..count);
        let gone = u32::try_from(count).unwrap_or(u32::MAX);
        for delay in &mut self.delays {
            delay.wait -= gone;
            delay.waits.retain_mut(|(wait, _)| {
                let is_left = *wait >= gone;
                *wait = wait.saturating_sub(gone);
                is_left
            });
        }
        for waits in &mut self.waits_of {
            waits.retain_mut(|one| {
                let is_left = one.wait >= gone;
                one.wait = one.wait.saturating_sub(gone);
                is_left
            });
        }
        for &(location, stay) in base {
            self.paths.cut(location, stay.entry_ns);
        }
        self.paths.settle(&self.logs, &mut self.scratch);
        for &(location, stay) in base {
            if let Some(log) = self.logs.get_mut(location as usize) {
                log.forget_until(stay.entry_ns);
            }
        }
        self.common.cut(base);
    }

    /// What is known by now, while more may come: waits are counted, and those causes are named that are known. What waits for its other end is
    /// not in it, but for how much that is.
    pub fn so_far(&self) -> WaitStates {
        let mut totals = self.totals.clone();
        let mut nodes = self.nodes.clone();
        for delay in self.delays.iter().rev() {
            totals.charge(delay, &mut nodes);
        }
        let mut states = self.outcome(&totals, None);
        let Pending { sends, receives, collective, calls } = self.matcher.pending();
        states.pending = PendingEnds { sends, receives, collective_calls: collective, calls };
        states
    }

    fn outcome(&self, totals: &Totals, path: Option<&PathTime>) -> WaitStates {
        result(&mut Outcome {
            definitions: &self.definitions,
            places: &self.cells.places(),
            cells: &self.cells.cells(),
            logs: &self.logs,
            totals,
            path,
            counts: Counts {
                between_clocks: self.counts.between_clocks + self.matcher.epochs_between_clocks(),
                ..self.counts
            },
            unmatched: self.matcher.unmatched(),
            clocks: ClockQuality {
                nodes: self.clocks.quality(&self.definitions, self.counts.from_ns.unwrap_or(0)),
                ..ClockQuality::default()
            },
            sites: Vec::new(),
        })
    }

    /// There is no more.
    pub fn finish(mut self) -> WaitStates {
        let mut matcher = mem::replace(&mut self.matcher, Matcher::empty());
        let points = self.find(&matcher.finish());
        self.matcher = matcher;
        self.count(points);
        self.settle_until(u64::MAX);
        for log in &mut self.logs {
            log.leave_until(u64::MAX);
        }
        for delay in self.delays.iter().rev() {
            self.totals.charge(delay, &mut self.nodes);
        }
        let end = self.end.or_else(|| {
            let ends = (0..).zip(&self.logs).map(|(location, log)| (location, log.now_ns()));
            ends.max_by_key(|&(_, end_ns)| end_ns)
        });
        // Between clocks that nothing compares there is no way.
        let end = end.filter(|_| self.clocks.not_compared() == 0);
        let path = end.map(|(location, at_ns)| self.paths.to(location, at_ns, &self.logs, &mut self.scratch));
        self.outcome(&self.totals, path.as_ref())
    }
}

impl Places {
    fn learn(&mut self, shapes: &Arc<[Shape]>, cells: &Cells) {
        if self.shapes.as_ref().is_some_and(|known| Arc::ptr_eq(known, shapes)) {
            return;
        }
        // Many shapes are of the same place as the one before, or of that before it.
        let (mut last, mut before) = (None, None);
        let mut number = |place: Place| {
            if let Some((_, number)) = [last, before].into_iter().flatten().find(|&(known, _)| known == place) {
                return number;
            }
            let number = cells.place(place);
            (last, before) = (Some((place, number)), last);
            number
        };
        self.places.clear();
        self.places.extend(shapes.iter().map(|shape| match shape {
            Shape::Call { call, .. } => {
                let place = number(Place { function: call.function(), site: call.call_site });
                if call.has_returned { place } else { place | OPEN }
            }
            Shape::Phase(phase) if !phase.is_on => SWITCHED_OFF,
            _ => NO_CALL,
        }));
        self.shapes = Some(Arc::clone(shapes));
    }
}
