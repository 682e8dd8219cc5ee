//! The programs in the kernel and their tables, as an observation has them loaded.

use mpiprobe_attach::{AttachError, EarlierCalls, Engine, Observer, PidNamespace, choose_method, possible_processors};
use mpiprobe_common::{Config, Descriptor, config::COMM_LENGTH, tables};
use mpiprobe_discover::{Caller, Target};
use mpiprobe_functions::FunctionId;

use super::{
    error::SessionError,
    functions::{counted, has_queries, leaves_outer, probed},
    options::{Options, Returns},
    sizes::Sizes,
};

/// About how much room the tables of an observation take, bytes.
pub(super) fn room(options: &Options, sizes: Sizes, caller: &Caller) -> u64 {
    tables::bytes(&config(options, sizes, caller, false))
}

/// What attaches, and what reads.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) engine: Engine,
    pub(super) observer: Observer,
}

impl Kernel {
    /// Loads everything and attaches nothing. `is_job`: it is for a job that mpiprobe is going to start.
    pub(super) fn load(options: &Options, sizes: Sizes, caller: &Caller, is_job: bool) -> Result<Self, SessionError> {
        let mut engine = choose_method(&config(options, sizes, caller, is_job), options.method)?;
        let only_own = reaches_own_only(&engine, caller);
        // A job's libraries are probed before there is a process, and so for everybody.
        let is_refused = if is_job { only_own || !caller.may_trace_all } else { only_own && !engine.can_scope() };
        if is_refused {
            return Err(AttachError::OthersProcesses { method: engine.method, is_job }.into());
        }
        let counted = counted(options.functions, options.ignore_pcontrol);
        let descriptors = FunctionId::all().map(|id| {
            let unchosen = u8::from(!counted.contains(id));
            (u32::from(id.number()), Descriptor { unchosen, ..id.function().descriptor() })
        });
        engine.tables.describe(descriptors)?;
        let observer = Observer::new(&mut engine)?;
        if options.returns == Returns::Off {
            engine.leave_returns_out();
            observer.count_entries_only_of_all();
        }
        engine.watch_processes()?;
        Ok(Self { engine, observer })
    }

    /// What is watched of calls that had begun before.
    pub(super) fn earlier_calls(&mut self) -> EarlierCalls<'_> {
        EarlierCalls::of(&mut self.engine.tables)
    }
}

/// Whether probes may be on libraries for targets only: return probes would be armed in others, who are no business of the caller's, or
/// cannot even be seen. Where the kernel asks for each call, ours are armed in nobody else, as long as the probes are for everybody:
/// [`Engine::can_scope`].
pub(super) fn reaches_own_only(engine: &Engine, caller: &Caller) -> bool {
    let sees_all = caller.may_trace_all && PidNamespace::own() == PidNamespace::Initial;
    !engine.is_asked_for_returns() && !sees_all
}

fn config(options: &Options, sizes: Sizes, caller: &Caller, is_job: bool) -> Config {
    let mut exec_name = [0; COMM_LENGTH];
    if let Target::Name(name) = &options.target {
        // The kernel keeps a final NUL.
        for (to, from) in exec_name.iter_mut().take(COMM_LENGTH - 1).zip(name.bytes()) {
            *to = from;
        }
    }
    let (rings, ring_lines) = if options.trace.is_some() { rings() } else { (0, 0) };
    let fitting = sizes.put_into(Config::DEFAULT);
    Config {
        exec_name,
        exec_uid: if caller.may_trace_all { u32::MAX } else { caller.user },
        // Whether others have to be looked at is known when it is known which way of attaching works.
        has_unchosen: (probed(options.functions, options.traffic, options.ignore_pcontrol, true)
            != counted(options.functions, options.ignore_pcontrol))
        .into(),
        nested: options.nested.into(),
        job: is_job.into(),
        traffic: options.traffic.into(),
        read_stack: (options.traffic || options.once || options.is_viewed).into(),
        pcontrol_plus_1: if options.ignore_pcontrol { 0 } else { pcontrol_plus_1() },
        flow_slots: if options.traffic { options.max_flows } else { 1 },
        communicator_slots: if options.traffic { options.max_communicators } else { 2 },
        request_slots: if options.traffic { fitting.request_slots } else { 1 },
        handle_stores: if options.traffic { fitting.handle_stores } else { 1 },
        many_handle_stores: if options.traffic { fitting.many_handle_stores } else { 1 },
        call_cache_slots: if options.traffic { fitting.call_cache_slots } else { 1 },
        recent: options.is_viewed.into(),
        trace: options.trace_bpf.into(),
        rings,
        ring_lines,
        unseen_outer: leaves_outer(options.functions).into(),
        budget: options.overhead_limit().is_some().into(),
        layers: (options.traffic || has_queries(options.functions)).into(),
        ..fitting
    }
}

/// How many rings there are for calls that are recorded, and how many lines each has: one ring for each processor, of 2 to 8 MiB,
/// and 128 MiB of all of them at most. The kernel keeps that memory as long as programs are loaded.
fn rings() -> (u32, u32) {
    const MOST_RINGS: u32 = 64;
    const LINES: u32 = 1 << 21;
    const LINES_EACH: u32 = 1 << 17;
    let processors = possible_processors();
    let rings = processors.next_power_of_two().min(MOST_RINGS);
    (rings, (LINES / rings).min(LINES_EACH))
}

/// Id of `MPI_Pcontrol`, plus one.
fn pcontrol_plus_1() -> u32 {
    mpiprobe_functions::by_name("MPI_Pcontrol").map_or(0, |id| u32::from(id.number()) + 1)
}
