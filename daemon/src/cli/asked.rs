//! What the options mean: what is observed, and what is looked at.

use mpiprobe_discover::{JobChoice, Target};
use mpiprobe_report::present::TextOptions;
use mpiprobe_tracer::Selection;

use super::arguments::{Hang, Observe, Targets, Trace};
use crate::{
    hang::{self, Form},
    session::{
        EngineChoice, Options,
        trace::{LatestCalls, TraceOptions, TraceTo, When},
    },
};

/// What is observed. Where results go is not said.
pub(super) fn options(asked: &Observe, trace_bpf: bool) -> Options {
    let (target, jobs) = chosen(&asked.targets);
    Options {
        target,
        jobs,
        engine: asked.engine,
        wait: asked.wait,
        functions: asked.functions,
        nested: asked.nested,
        returns: asked.returns,
        ignore_pcontrol: asked.ignore_pcontrol,
        duration: asked.duration.or(asked.once.then_some(asked.interval)),
        once: asked.once,
        filter: asked.filter.clone(),
        interval: asked.interval,
        json: asked.json,
        view: None,
        is_viewed: false,
        record: None,
        trace: (asked.waits || asked.single_calls).then(|| nothing_written(asked)),
        max_overhead: asked.max_overhead.limit(),
        method: asked.attach,
        max_processes: asked.max_processes,
        max_threads: asked.max_threads,
        traffic: asked.traffic || asked.waits || asked.single_calls,
        communicators: asked.comm.clone(),
        max_flows: asked.max_flows,
        max_communicators: asked.max_communicators,
        max_requests: asked.max_requests,
        max_stats: asked.max_stats,
        text: TextOptions::default(),
        trace_bpf,
        is_thrifty: false,
        service: None,
        nodes: None,
    }
}

/// Nothing but what is found out while calls are recorded, by whoever looks at them.
fn nothing_written(asked: &Observe) -> TraceOptions {
    TraceOptions {
        to: TraceTo::Nobody,
        selection: Selection { functions: asked.functions, ..Selection::default() },
        ranks: None,
        when: When::Always,
        waits: asked.waits,
        latest: LatestCalls::Kept,
    }
}

/// What is recorded.
pub(super) fn traced(asked: &Trace, trace_bpf: bool) -> Options {
    let (target, jobs) = chosen(&asked.targets);
    let trace = TraceOptions {
        to: TraceTo::File { path: asked.output.clone(), mode: asked.files.file_mode },
        selection: asked.traced.selection(asked.functions),
        ranks: asked.traced.ranks.clone(),
        when: asked.flight.when(true).or(asked.window).unwrap_or_default(),
        waits: asked.waits,
        latest: if asked.single_calls { LatestCalls::Kept } else { LatestCalls::None },
    };
    Options {
        engine: EngineChoice::Auto,
        wait: asked.wait,
        ignore_pcontrol: asked.ignore_pcontrol,
        duration: asked.duration,
        json: asked.json,
        trace: Some(trace),
        method: asked.attach,
        trace_bpf,
        ..Options::by_kernel(target, jobs, asked.functions)
    }
}

/// What the options for targets mean.
pub(super) fn chosen(targets: &Targets) -> (Target, JobChoice) {
    let Targets { pid_of, pid: pids, job, all_jobs } = targets;
    let target = match (pid_of, pids.as_slice()) {
        // A path means the program at its end: processes are known by their base names.
        (Some(name), _) => Target::Name(name.rsplit('/').next().unwrap_or(name).to_owned()),
        (None, []) => Target::Any,
        (None, pids) => Target::Pids(pids.to_vec()),
    };
    let jobs = match job {
        Some(job) => JobChoice::Named(job.clone()),
        // Whoever names pids one by one has chosen.
        None if *all_jobs || !pids.is_empty() => JobChoice::All,
        None => JobChoice::Only,
    };
    (target, jobs)
}

/// What is looked at.
pub(super) fn asked_hang(asked: &Hang) -> hang::Asked {
    let (target, jobs) = chosen(&asked.targets);
    let depth = asked.depth.and_then(|depth| usize::try_from(depth).ok());
    let form = match () {
        () if asked.json => Form::Json,
        () if asked.dot => Form::Dot,
        () if asked.folded => Form::Folded,
        () => Form::Text,
    };
    hang::Asked { target, jobs, all_threads: asked.all_threads, depth, form }
}
