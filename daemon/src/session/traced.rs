//! Processes whose calls the kernel writes down one by one.

use std::{collections::BTreeMap, io, sync::Arc};

use mpiprobe_attach::{AttachError, Engine, KernelRings, ReferredTables};
use mpiprobe_common::tables::LINES;
use mpiprobe_model::{
    RankState, WaitStates,
    analyse::{Beginning, EndedCall},
};
use mpiprobe_observe::{CallBefore, monotonic_ns};
use mpiprobe_trace::store::Window;
use mpiprobe_tracer::UnfinishedCall;

use super::{
    error::SessionError,
    process_table::ProcessTable,
    sites::Sites,
    trace::{End, Finished, KernelLines, Lines, TraceOptions, Tracing, traced_process},
};

/// Those of an observation.
#[derive(Debug)]
pub(super) struct TracedProcesses {
    tracing: Tracing,
    tables: Arc<ReferredTables>,
    /// By slot.
    known: BTreeMap<u32, Life>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Running,
    Ended,
    /// Its calls are not recorded.
    Refused,
}

impl TracedProcesses {
    /// Calls are recorded from now on, of whoever makes any.
    pub(super) fn begin(options: &TraceOptions, engine: &Engine) -> Result<Self, SessionError> {
        let rings = KernelRings::of(engine)?;
        let tables = Arc::new(ReferredTables::of(engine)?);
        let rings = rings.ok_or(AttachError::Missing { what: "table", name: LINES.name })?;
        let tracing = Tracing::begin(options)?;
        let failed = |source: io::Error| AttachError::Table { table: LINES.name, source };
        tracing.read(Box::new(KernelLines::begin(rings).map_err(failed)?));
        Ok(Self { tracing, tables, known: BTreeMap::new() })
    }

    /// Takes in processes that are new, and notes who has ended.
    /// `library`: what the MPI library calls itself. `earlier`: what has become known of calls that threads were in when the observation of
    /// their process began, by slot.
    pub(super) fn look(
        &mut self,
        process_table: &ProcessTable,
        library: impl Fn() -> String,
        mut earlier: BTreeMap<u32, Vec<CallBefore>>,
    ) {
        let Self { tracing, tables, known } = self;
        process_table.each_observed(|observed| {
            let slot = observed.process;
            let life = *known.entry(slot).or_insert_with(|| {
                if !tracing.wants(observed.identity.rank) {
                    tracing.refuse(slot);
                    return Life::Refused;
                }
                // Who was only looked at after it had called MPI is known by its first call.
                let began_before = observed.beginning != Beginning::FirstCall;
                let may_begin = observed.beginning == Beginning::Awaited;
                let process = traced_process(&observed.identity, library(), observed.since_ns, began_before);
                let lines = Lines::Known { earlier: earlier.remove(&slot).unwrap_or_default() };
                tracing.add(slot, process, may_begin, Box::new(tables.process(slot)), lines);
                Life::Running
            });
            if life == Life::Running
                && let Some(calls) = earlier.remove(&slot)
            {
                tracing.note_earlier(slot, calls);
            }
            if life == Life::Running && observed.state != RankState::Running {
                let ended_ns = tables.last_end_ns(slot).or(observed.until_ns).unwrap_or_else(monotonic_ns);
                let has_execed = observed.state == RankState::Execed;
                let cut_short = observed.ended_in.iter().map(cut_short).collect();
                tracing.end_process(slot, End { at_ns: ended_ns, has_execed, failure: observed.failure, cut_short });
                known.insert(slot, Life::Ended);
            }
        });
    }

    /// Everybody was looked at who had called MPI by then.
    pub(super) fn know_until(&self, ns: u64) {
        self.tracing.know_until(ns);
    }

    /// A process is none of those that are observed.
    pub(super) fn refuse(&mut self, slot: u32) {
        self.tracing.refuse(slot);
        self.known.insert(slot, Life::Refused);
    }

    /// Says of call sites where they are. `is_last`: names are waited for.
    pub(super) fn name_sites(&mut self, process_table: &ProcessTable, sites: &mut Sites, is_last: bool) {
        self.tracing.name_sites(|slot, address| sites.call_site(slot, address, process_table.process(slot), is_last));
    }

    /// If somebody wants to know where open calls were made, has it looked up.
    pub(super) fn locate_open_calls(&self, look_up: impl FnOnce()) {
        self.tracing.locate_open_calls(look_up);
    }

    /// The job has not ended as it should.
    pub(super) fn fail(&self, why: String) {
        self.tracing.fail(why);
    }

    /// Nothing more is recorded.
    pub(super) fn stop(&self) {
        self.tracing.stop();
    }

    /// Who waits for whom, as far as it is known by now, if that was asked for.
    pub(super) fn wait_states(&self) -> Option<WaitStates> {
        self.tracing.wait_states()
    }

    /// The latest calls, if they are kept.
    pub(super) fn window(&self) -> Option<Arc<Window>> {
        self.tracing.window()
    }

    /// Whether somebody waits for call sites to be named.
    pub(super) fn is_looked_at(&self) -> bool {
        self.tracing.is_looked_at()
    }

    /// What is kept in memory is to be written down by whoever keeps it elsewhere.
    pub(super) fn dump(&self) {
        self.tracing.dump();
    }

    /// Ends the recording, with all that is known by now.
    pub(super) fn finish(mut self, process_table: &ProcessTable, sites: &mut Sites) -> Finished {
        self.tracing.stop();
        self.name_sites(process_table, sites, true);
        self.tracing.finish()
    }
}

/// A call that its thread did not survive, as it is recorded.
fn cut_short(call: &EndedCall) -> UnfinishedCall {
    let EndedCall { tid, function, ended_ns, open_ns, call_site, arguments } = *call;
    let started_ns = ended_ns.saturating_sub(open_ns);
    UnfinishedCall { tid, function, started_ns, ended_ns: Some(ended_ns), call_site, arguments }
}
