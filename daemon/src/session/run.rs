//! An observation from beginning to end, by whichever engine can make it.

use std::sync::Arc;

use mpiprobe_report::present::{OutputError, say};
use mpiprobe_view::give_back;

use super::{
    error::SessionError,
    event_loop::{Goal, follow},
    kernel_source::KernelSource,
    nodes_source::NodesSource,
    observation::Observation,
    options::{ByService, EngineChoice, Options, Outcome},
    signals::StopSignals,
    sinks::{Served, Sinks},
    source::Source,
    stream_source::StreamSource,
    wrapped::live::WrappedJob,
};
use crate::{
    asking::{Service, can_attach_itself},
    memory::give_back_memory,
};

/// Observes as asked for and prints the profile. Everything is detached when this returns.
pub async fn run(options: &Options) -> Result<Outcome, SessionError> {
    if let Some(record) = &options.record {
        record.check()?;
    }
    let mut signals = StopSignals::new().map_err(SessionError::Watch)?;
    let outcome = match &options.nodes {
        Some(nodes) => {
            let source = NodesSource::begin(nodes, options, &mut signals).await?;
            observe(source, options, None, &mut signals).await
        }
        None => observe_here(options, None, &mut signals).await,
    };
    match outcome {
        Err(SessionError::Output(OutputError::Closed)) => Ok(Outcome::OutputClosed),
        outcome => outcome,
    }
}

/// Observes for somebody on another node.
pub async fn observe_elsewhere(options: &Options, served: Served) -> Result<Outcome, SessionError> {
    let mut signals = StopSignals::new().map_err(SessionError::Watch)?;
    observe_here(options, Some(served), &mut signals).await
}

/// By whichever engine can do it.
async fn observe_here(
    options: &Options,
    served: Option<Served>,
    signals: &mut StopSignals,
) -> Result<Outcome, SessionError> {
    let wrapped = match options.engine {
        EngineChoice::Ebpf | EngineChoice::Service => None,
        // Those who count themselves tell of each call only if they have been told so before they began.
        EngineChoice::Auto if options.trace.is_some() => None,
        EngineChoice::Auto => WrappedJob::begin(options, false)?,
        EngineChoice::Wrapper => WrappedJob::begin(options, true)?,
    };
    match (wrapped, by_service(options)) {
        (Some(job), _) => observe(job, options, served, signals).await,
        (None, Some(asked)) => {
            let source = StreamSource::begin(Service::at(&asked.socket)?, &asked.query, options.trace.as_ref()).await?;
            observe(source, options, served, signals).await
        }
        (None, None) => match begin_by_kernel(options) {
            Ok(source) => observe(source, options, served, signals).await,
            // Others may come that need no kernel's help, but do not tell of each call.
            Err(error @ SessionError::NoEngine { .. }) if options.wait && options.trace.is_none() => {
                match WrappedJob::begin(options, true)? {
                    Some(job) => {
                        say("eBPF is not possible here: only jobs that count themselves (mpiprobe run) are waited for");
                        observe(job, options, served, signals).await
                    }
                    None => Err(error),
                }
            }
            Err(error) => Err(error),
        },
    }
}

/// The service, if it is to be asked: who may attach by rights of their own needs nobody for it.
fn by_service(options: &Options) -> Option<&ByService> {
    let asked = options.service.as_ref()?;
    let is_asked = match options.engine {
        EngineChoice::Service => true,
        EngineChoice::Auto => asked.is_named || (!can_attach_itself() && Service::is_there(&asked.socket)),
        EngineChoice::Ebpf | EngineChoice::Wrapper => false,
    };
    is_asked.then_some(asked)
}

fn begin_by_kernel(options: &Options) -> Result<KernelSource, SessionError> {
    match Observation::begin(options) {
        Err(SessionError::Attach(attach)) if options.engine == EngineChoice::Auto => {
            Err(SessionError::NoEngine { attach })
        }
        observation => {
            // Whoever waits may do so for days.
            give_back_memory();
            KernelSource::of_found(Box::new(observation?), options.wait)
        }
    }
}

/// Until it is over, for whatever reason; then shows and prints the last profile.
async fn observe(
    mut source: impl Source,
    options: &Options,
    served: Option<Served>,
    signals: &mut StopSignals,
) -> Result<Outcome, SessionError> {
    // Not before there is something to show: what cannot be observed is told on the ordinary screen.
    let sinks = match served {
        Some(mut served) => {
            served.audience.begun();
            Ok(Sinks::of_served(served, None, options))
        }
        None => Sinks::open(options),
    };
    let mut sinks = match sinks {
        Ok(sinks) => sinks,
        Err(error) => {
            end(source, signals).await;
            return Err(error);
        }
    };
    if source.is_here() {
        sinks.watch_standstills();
    }
    let goal = Goal::Detach { signals, duration: options.duration, wait: options.wait };
    let ended = match follow(&mut source, &mut sinks, options.interval, goal).await {
        Ok(reason) => {
            let concluded = conclude(&mut source, signals).await;
            concluded.and_then(|()| source.profile(Some(reason)).map(|profile| (reason, profile)))
        }
        Err(error) => Err(error),
    };
    match ended.map(|(reason, profile)| (reason, sinks.end_interval(profile))) {
        Ok((reason, (profile, change))) if sinks.stays(reason) => {
            let stays = sinks.show(&profile, &change);
            // Others may use the same library while this one is looked at.
            end(source, signals).await;
            if stays.is_ok() {
                sinks.stay(signals).await;
            }
            sinks.close(&profile)
        }
        Ok((_, (profile, _))) => {
            let profile: Arc<_> = profile;
            let outcome = sinks.close(&profile);
            end(source, signals).await;
            outcome
        }
        Err(error) => {
            sinks.abandon();
            end(source, signals).await;
            Err(error)
        }
    }
}

/// Has another process come to an end, if one counts; a further signal ends the wait for it.
async fn conclude(source: &mut impl Source, signals: &mut StopSignals) -> Result<(), SessionError> {
    tokio::select! {
        biased;
        concluded = source.conclude() => concluded,
        () = signals.next() => Ok(()),
    }
}

/// Lets the targets go. A further signal ends mpiprobe at once; the kernel then detaches what is left.
async fn end(source: impl Source, signals: &mut StopSignals) {
    tokio::select! {
        biased;
        () = source.end() => {}
        () = signals.next() => {
            give_back();
            say("interrupted again: leaving the rest of the detaching to the kernel");
            std::process::exit(130);
        }
    }
}
