//! One rank.

use std::sync::Arc;

use mpiprobe_functions::Group;
use mpiprobe_observe::{After, ArgumentWords, CallBefore, ProcessSnapshot};

use super::{
    EndedCall, Observed, Session,
    aggregate::{Base, ByFunction, Calls, groups},
    beginning::may_be_inside,
    flows, names,
    open_call::{Reader, arguments_of_call},
    pending, phases,
    recent::recent_calls,
    threads::Threads,
    tools::Layers,
    traffic::Traffic,
};
use crate::{BeganBeforeRow, CallArguments, FunctionRow, Losses, OpenCallInfo, RankProfile, SaturatingSum as _, Spent};

/// One rank's numbers, on the way to its profile.
#[derive(Debug)]
pub(super) struct Rank<'a> {
    observed: &'a Observed,
    tables: &'a ProcessSnapshot,
    now_ns: u64,
    /// Whether it was asked what calls have moved.
    traffic: bool,
    pub(super) functions: ByFunction,
    pub(super) phases: Vec<phases::OfRank>,
    pub(super) layers: Layers<'a>,
    /// Without the time in which the program had counting off.
    pub(super) wall_ns: u64,
    off_ns: u64,
    /// Without mpiprobe's own cost, and that, as far as it is known.
    pub(super) mpi_ns: u64,
    pub(super) self_cost_ns: u64,
    threads: Threads,
    pub(super) threads_in_mpi: u64,
}

impl<'a> Rank<'a> {
    pub(super) fn new(session: &'a Session, observed: &'a Observed, tables: &'a ProcessSnapshot, now_ns: u64) -> Self {
        let until_ns = observed.until_ns.unwrap_or(now_ns);
        let off_ns = tables.off_ns(until_ns);
        let functions = by_function(observed, tables, now_ns);
        let self_cost_ns = functions.values().map(Calls::self_cost_ns).fold(0, u64::saturating_add);
        let threads = Threads::of(tables, self_cost_ns, now_ns);
        let phase = |phase| phases::OfRank::of(phase, until_ns, observed.self_cost);
        Self {
            observed,
            tables,
            now_ns,
            traffic: session.traffic,
            functions,
            phases: tables.phases.iter().map(phase).collect(),
            layers: Layers::of(&tables.tools, &session.engine.tools),
            wall_ns: until_ns.saturating_sub(observed.since_ns).saturating_sub(off_ns),
            off_ns,
            mpi_ns: threads.mpi_ns(),
            self_cost_ns,
            threads,
            threads_in_mpi: tables.counters.ended_threads.saturating_add(tables.threads.len() as u64),
        }
    }

    /// Completed calls.
    pub(super) fn calls(&self) -> u64 {
        self.functions.values().map(|calls| calls.stats.calls).saturating_sum()
    }

    /// Calls of which it is not known how long they took.
    pub(super) fn untimed_calls(&self) -> u64 {
        self.functions.values().map(|calls| calls.stats.untimed).saturating_sum()
    }

    pub(super) fn inner_calls(&self) -> u64 {
        let live = self.tables.threads.iter().map(|thread| thread.state.inner_calls);
        self.tables.counters.inner_calls.saturating_add(live.saturating_sum())
    }

    pub(super) fn losses(&self) -> Losses {
        Losses::of(&self.tables.counters.losses)
    }

    pub(super) fn base(&self) -> Base {
        // Of one thread: the rank's wall time. Of several: their lives since their first calls, so that short ones do not count
        // as if they had been there all the time.
        let span_ns =
            self.tables.thread_span_ns(self.now_ns).saturating_sub(self.off_ns.saturating_mul(self.threads_in_mpi));
        let thread_wall_ns = self.wall_ns.max(span_ns);
        Base { thread_wall_ns, mpi_ns: self.mpi_ns, traffic: self.traffic }
    }

    /// What its time was spent on.
    pub(super) fn spent(&self) -> Spent {
        let starts_or_ends = |function: u32| names::group(function) == Group::InitFinalize;
        let startup = self.functions.iter().filter(|(function, _)| starts_or_ends(**function));
        Spent {
            wall_ns: self.wall_ns,
            thread_wall_ns: self.base().thread_wall_ns,
            mpi_ns: self.mpi_ns,
            startup_ns: startup.map(|(_, calls)| calls.time_ns()).fold(0, u64::saturating_add),
            unseen_ns: self.unseen_ns(),
            untimed_calls: self.untimed_calls(),
        }
    }

    /// When nobody knows whether it was inside a call that began before: where nobody has looked, until its first call was seen.
    fn unseen_ns(&self) -> u64 {
        if let Some(found) = &self.tables.began_before {
            return union_ns(&found.unknown).min(self.wall_ns);
        }
        if !may_be_inside(self.observed, self.tables) {
            return 0;
        }
        let living = self.tables.threads.iter().map(|thread| thread.state.first_entry_ns);
        let ended = self.tables.ended_threads.iter().map(|thread| thread.first_entry_ns);
        let unseen_ns = match living.chain(ended).filter(|&ns| ns > 0).min() {
            Some(first) => first.saturating_sub(self.observed.since_ns),
            // It has called, and nothing more is known.
            None if self.threads_in_mpi > 0 => 0,
            None => self.wall_ns,
        };
        unseen_ns.min(self.wall_ns)
    }

    pub(super) fn process(&self) -> (&'a Observed, &'a ProcessSnapshot) {
        (self.observed, self.tables)
    }

    pub(super) fn profile(
        &self,
        traffic: Option<&Traffic<'_>>,
        name_site: &mut dyn FnMut(u32, u64) -> Option<String>,
    ) -> RankProfile {
        let mut name = |address| name_site(self.observed.process, address);
        let identity = &self.observed.identity;
        let base = self.base();
        let groups = groups(&self.functions).into_iter();
        RankProfile {
            rank: identity.rank,
            size: identity.size,
            job: identity.job.clone(),
            host: identity.host.clone(),
            pid: identity.pid,
            executable: identity.executable.clone(),
            state: self.observed.state,
            stopped: self.observed.stopped,
            ended_ago_ns: self.observed.until_ns.map(|until_ns| self.now_ns.saturating_sub(until_ns)),
            failure: self.observed.failure,
            wall_ns: self.wall_ns,
            mpi_ns: self.mpi_ns,
            self_cost_ns: self.self_cost_ns,
            thread_wall_ns: base.thread_wall_ns,
            mpi_percent: self.spent().mpi_percent(),
            unseen_ns: self.unseen_ns(),
            calls: self.calls(),
            untimed_calls: self.untimed_calls(),
            threads_in_mpi: self.threads_in_mpi,
            inner_calls: self.inner_calls(),
            inner_calls_of_unseen: self.tables.counters.inner_calls_of_unseen,
            before_first_call_ns: self.before_first_call_ns(),
            functions: rows_by_time(&self.functions, base, self.wall_ns).into(),
            groups: groups.map(|(group, calls)| calls.row(group, base, calls.rates(self.wall_ns))).collect(),
            traffic: traffic
                .map(|traffic| flows::of_rank(self.tables, self.now_ns, self.observed.self_cost, traffic, &mut name)),
            open_calls: self.open_calls(&mut name),
            asks: None,
            began_before: self.began_before(&mut name),
            threads: self.threads.rows.clone(),
            other_threads: self.threads.others,
            phases: self.phases.iter().map(|phase| phase.profile(self.traffic)).collect(),
            layers: self.layers.profile(),
            calls_while_off: self.tables.counters.calls_off,
            off_ns: self.off_ns,
            losses: self.losses(),
            recent: self
                .tables
                .recent
                .as_ref()
                .map(|recent| Arc::new(recent_calls(self.tables, recent, self.now_ns, &mut name))),
        }
    }

    /// `None` where no call was seen, and where the thread that made the first one has ended, taking the knowledge with it.
    fn before_first_call_ns(&self) -> Option<u64> {
        let first = self.tables.threads.iter().map(|thread| thread.state.first_entry_ns).filter(|&ns| ns > 0).min()?;
        Some(first.saturating_sub(self.observed.since_ns))
    }

    fn open_calls(&self, name: &mut dyn FnMut(u64) -> Option<String>) -> Vec<OpenCallInfo> {
        let live = self.tables.threads.iter().filter_map(|thread| {
            let function = thread.state.open_function()?;
            let before = self.tables.open_before(thread.tid);
            Some(OpenCallInfo {
                function: names::name(function),
                tid: thread.tid,
                open_ns: thread.open_ns(self.now_ns),
                call_site: thread.state.call_site(),
                site: None,
                arguments: match before {
                    Some(call) => self.arguments_before(call),
                    None => self.arguments(function, &ArgumentWords::of(&thread.state)),
                },
                ended_inside: false,
                began_before: before.is_some(),
                polls: false,
                exchanges: false,
            })
        });
        let ended = self.observed.ended_in.iter().map(|call| OpenCallInfo {
            function: names::name(call.function),
            tid: call.tid,
            open_ns: call.open_ns,
            call_site: call.call_site,
            site: None,
            arguments: self.arguments(call.function, &call.arguments),
            ended_inside: true,
            began_before: false,
            polls: false,
            exchanges: false,
        });
        let named = live.chain(ended).map(|call| OpenCallInfo { site: call.call_site.and_then(&mut *name), ..call });
        named.map(|call| self.with_requests(call)).collect()
    }

    /// With how many of its requests are not known.
    fn with_requests(&self, mut call: OpenCallInfo) -> OpenCallInfo {
        if let Some(arguments) = call.arguments.as_mut().filter(|arguments| arguments.requests.is_some()) {
            arguments.other_requests = pending::others(self.tables, call.tid);
        }
        call
    }

    fn arguments_before(&self, call: &CallBefore) -> Option<CallArguments> {
        arguments_of_call(names::function(call.function)?, call.words.clone(), self.tables)
    }

    /// Most time first.
    fn began_before(&self, name: &mut dyn FnMut(u64) -> Option<String>) -> Vec<BeganBeforeRow> {
        let calls = self.tables.began_before.iter().flat_map(|found| &found.calls);
        let row = |call: &CallBefore| BeganBeforeRow {
            function: names::name(call.function),
            tid: call.tid,
            time_ns: call.time_ns(self.now_ns),
            is_open: call.now == After::Open,
            call_site: call.call_site,
            site: call.call_site.and_then(&mut *name),
        };
        let mut rows: Vec<BeganBeforeRow> = calls.map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.time_ns));
        rows
    }

    fn arguments(&self, function: u32, words: &ArgumentWords) -> Option<CallArguments> {
        Reader::new(function, words, self.tables).map(|reader| reader.read())
    }
}

/// Completed and open calls by function.
fn by_function(observed: &Observed, tables: &ProcessSnapshot, now_ns: u64) -> ByFunction {
    let mut functions = ByFunction::new();
    for (function, stats) in &tables.functions {
        functions.insert(*function, Calls::completed(Arc::clone(stats), observed.self_cost));
    }
    let mut open = |function: u32, ns: u64| {
        let calls = functions.entry(function).or_default();
        calls.open += 1;
        calls.open_ns = calls.open_ns.saturating_add(ns);
    };
    for thread in &tables.threads {
        if let Some(function) = thread.state.open_function() {
            open(function, thread.open_ns(now_ns));
        }
    }
    for EndedCall { function, open_ns, .. } in &observed.ended_in {
        open(*function, *open_ns);
    }
    for call in tables.began_before.iter().flat_map(|found| &found.calls) {
        let calls = functions.entry(call.function).or_default();
        calls.began_before += 1;
        if call.now != After::Open {
            calls.began_before_ns = calls.began_before_ns.saturating_add(call.time_ns(now_ns));
        }
    }
    functions
}

/// How long all of these are together, ns, of which some may be at the same time.
fn union_ns(intervals: &[(u64, u64)]) -> u64 {
    let mut sorted = intervals.to_vec();
    sorted.sort_unstable();
    let (mut sum, mut end) = (0_u64, 0);
    for (from, until) in sorted {
        sum = sum.saturating_add(until.saturating_sub(from.max(end)));
        end = end.max(until);
    }
    sum
}

/// Most time first.
fn rows_by_time(functions: &ByFunction, base: Base, wall_ns: u64) -> Vec<FunctionRow> {
    let row = |(&function, calls): (&u32, &Calls)| calls.row(function, base, calls.rates(wall_ns));
    let mut rows: Vec<FunctionRow> = functions.iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.spent_ns(), row.calls)));
    rows
}
