//! The course of an observation.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
    time::Duration,
};

use tokio::{
    io::unix::AsyncFd,
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};

use super::{
    EngineChoice, Options, Outcome, SessionError,
    course::{asked, conclude, interrupted, regular},
    display::Display,
    observation::Observation,
    readable::readable,
    run_wrapped::observe_wrapped,
    signals::StopSignals,
    wrapped::WrappedJob,
};
use crate::{
    model::{EndReason, Profile},
    present::{OutputError, say, say_in_passing},
    view::{Asked, give_back},
};

/// How often a process that may yet load MPI is looked at: first, and when it takes longer.
pub(super) const CANDIDATE_INTERVAL: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));
/// How often a process that has not initialised MPI is looked at.
pub(super) const LAYOUT_INTERVAL: Duration = Duration::from_millis(1);
/// When it takes longer.
pub(super) const CANDIDATE_PATIENCE: Duration = Duration::from_secs(2);
/// How often the node is looked over for targets that do not tell of themselves by exec: as long as there are none, and for some
/// time after the first, since the ranks of a job start together.
const SEARCH_INTERVAL: Duration = Duration::from_millis(100);
/// That time.
const SEARCH_PATIENCE: Duration = Duration::from_secs(2);
/// Least time between two profiles that programs ask for: all ranks ask at once.
const FLUSH_INTERVAL: Duration = Duration::from_millis(10);
/// How often recent calls are taken out of their rings.
const GATHER_INTERVAL: Duration = Duration::from_millis(100);
/// Detaching that takes longer than this is reported as it goes on.
const SILENT_DETACH: Duration = Duration::from_millis(500);

/// Observes as asked for and prints the profile. Everything is detached when this returns.
pub async fn run(options: &Options) -> Result<Outcome, SessionError> {
    if let Some(record) = &options.record {
        record.check()?;
    }
    let mut signals = StopSignals::new().map_err(SessionError::Watch)?;
    let wrapped = match options.engine {
        EngineChoice::Ebpf => None,
        EngineChoice::Auto => WrappedJob::begin(options, false)?,
        EngineChoice::Wrapper => WrappedJob::begin(options, true)?,
    };
    let outcome = match wrapped {
        Some(job) => observe_wrapped(job, options, &mut signals).await,
        None => observe_by_kernel(options, &mut signals).await,
    };
    let outcome = match outcome {
        // Others may come that need no kernel's help.
        Err(SessionError::NoEngine { .. }) if options.wait => match WrappedJob::begin(options, true)? {
            Some(job) => {
                say("eBPF is not possible here: only jobs that count themselves (mpiprobe run) are waited for");
                observe_wrapped(job, options, &mut signals).await
            }
            None => outcome,
        },
        outcome => outcome,
    };
    match outcome {
        Err(SessionError::Output(OutputError::Closed)) => Ok(Outcome::OutputClosed),
        outcome => outcome,
    }
}

async fn observe_by_kernel(options: &Options, signals: &mut StopSignals) -> Result<Outcome, SessionError> {
    let mut observation = match Observation::begin(options) {
        Err(SessionError::Attach(attach)) if options.engine == EngineChoice::Auto => {
            return Err(SessionError::NoEngine { attach });
        }
        observation => observation?,
    };
    // Not before: what cannot be observed is told on the ordinary screen.
    let mut display = match Display::open(options) {
        Ok(display) => display,
        Err(error) => {
            let_go(observation, signals).await;
            return Err(error);
        }
    };
    let ended = match observe(&mut observation, &mut display, options, signals).await {
        Ok(end) => last_profile(&mut observation, end).map(|profile| (end, profile)),
        Err(error) => Err(error),
    };
    conclude(display, ended, signals, async |signals| let_go(observation, signals).await).await
}

/// Until it is over, for whatever reason.
async fn observe(
    observation: &mut Observation,
    display: &mut Display,
    options: &Options,
    signals: &mut StopSignals,
) -> Result<EndReason, SessionError> {
    let notices = notices_fd(observation).map_err(SessionError::Watch)?;
    let mut ticks = regular(options.interval);
    ticks.tick().await;
    let deadline = options.duration.and_then(|duration| Instant::now().checked_add(duration));
    let mut last_news = Instant::now();
    let (mut last_flush, mut next_flush): (Option<Instant>, Option<Instant>) = (None, None);
    // Moments, not pauses: whatever else happens meanwhile does not put them off.
    let (mut last_look, mut last_search, mut last_gathered) = (Instant::now(), Instant::now(), Instant::now());
    loop {
        let is_waiting = options.wait && !observation.was_anybody_there();
        if !observation.is_anybody_left() && !is_waiting {
            return Ok(EndReason::TargetsEnded);
        }
        let pace = if last_news.elapsed() < CANDIDATE_PATIENCE { CANDIDATE_INTERVAL.0 } else { CANDIDATE_INTERVAL.1 };
        let is_searching = options.wait && (is_waiting || last_news.elapsed() < SEARCH_PATIENCE);
        tokio::select! {
            asked = asked(display, signals) => match asked {
                Asked::End => return interrupted(is_waiting),
                Asked::RecentCalls(wanted) => observation.show_recent_calls(wanted),
            },
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => return Ok(EndReason::Duration),
            ended = observation.ends.ended() => {
                let ended = ended.map_err(SessionError::Watch)?;
                // What they did last is told before their end.
                observation.handle_notices();
                observation.handle_ends(&ended);
            }
            ready = notices.readable() => {
                ready.map_err(SessionError::Watch)?.clear_ready();
                observation.handle_notices();
                last_news = Instant::now();
                if observation.take_flush() {
                    let earliest = last_flush.map_or(last_news, |last| last + FLUSH_INTERVAL);
                    next_flush = next_flush.or(Some(earliest));
                }
            }
            () = sleep_until(next_flush.unwrap_or_else(Instant::now)), if next_flush.is_some() => {
                display.look(observation.profile(None)?)?;
                (last_flush, next_flush) = (Some(Instant::now()), None);
                // It was the end of an interval.
                ticks.reset();
            }
            () = sleep_until(last_look + pace), if observation.has_candidates() => {
                observation.look_at_candidates()?;
                last_look = Instant::now();
            }
            () = sleep(LAYOUT_INTERVAL), if observation.has_pending_layouts() => observation.retry_layouts(),
            () = sleep_until(last_search + SEARCH_INTERVAL), if is_searching => {
                if observation.search()? {
                    last_news = Instant::now();
                }
                last_search = Instant::now();
            }
            () = sleep_until(last_gathered + GATHER_INTERVAL), if observation.has_recent_calls() => {
                observation.gather_recent_calls();
                last_gathered = Instant::now();
            }
            _ = ticks.tick() => {
                observation.flush_log();
                if observation.was_anybody_there() {
                    display.look(observation.profile(None)?)?;
                }
            }
        }
    }
}

/// A descriptor of its own for the same ring buffer, so that it can be waited for while the observation is used.
pub(super) fn notices_fd(observation: &Observation) -> io::Result<AsyncFd<OwnedFd>> {
    let fd = observation.observer.as_fd().try_clone_to_owned()?;
    readable(fd)
}

fn last_profile(observation: &mut Observation, end: EndReason) -> Result<Profile, SessionError> {
    observation.handle_notices();
    observation.profile(Some(end))
}

/// Detaches. A further signal ends mpiprobe at once; the kernel then detaches what is left.
async fn let_go(observation: Observation, signals: &mut StopSignals) {
    let mut done = detach(observation);
    tokio::select! {
        _ = &mut done => {}
        () = signals.next() => {
            give_back();
            say("interrupted again: leaving the rest of the detaching to the kernel");
            std::process::exit(130);
        }
    }
}

/// Detaches, and tells of it if it takes long.
pub(super) fn detach(observation: Observation) -> JoinHandle<()> {
    let links = observation.probes.links();
    let start = Instant::now();
    tokio::task::spawn_blocking(move || {
        observation.let_go(|left| {
            if start.elapsed() > SILENT_DETACH {
                say_in_passing(format_args!("detaching, {left} of {links} probes left "));
            }
        });
        if start.elapsed() > SILENT_DETACH {
            say_in_passing(format_args!("detached {links} probes in {:.1} s        \n", start.elapsed().as_secs_f64()));
        }
    })
}
