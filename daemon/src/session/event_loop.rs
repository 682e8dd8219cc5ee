//! The loop of every observation: waits for the source, the user and the clock, until the goal is reached.

use std::{future::pending, time::Duration};

use mpiprobe_model::EndReason;
use mpiprobe_view::Asked;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};

use super::{error::SessionError, signals::StopSignals, sinks::Sinks, source::Source};

/// Least time between two profiles that programs ask for: all ranks ask at once.
const FLUSH_INTERVAL: Duration = Duration::from_millis(10);

/// Whoever sits before a view sees something after so long, however long its intervals are.
const FIRST_LOOK: Duration = Duration::from_millis(200);

/// Longer than any observation.
const NEVER: Duration = Duration::from_hours(365 * 24);

/// When an observation is over.
#[derive(Debug)]
pub(super) enum Goal<'a> {
    /// When the user ends it, its time is up, or nobody is left to be observed.
    Detach {
        signals: &'a mut StopSignals,
        duration: Option<Duration>,
        /// As long as there has been nobody, somebody is waited for.
        wait: bool,
    },
    /// When whoever it is made for ends it, or nobody is left to be observed.
    Served { wait: bool },
    /// When the command has ended that mpiprobe has started. Signals are the command's.
    CommandEnded,
    /// When its MPI processes have ended, or have taken too long for it.
    RanksEnded { patience: Duration },
}

impl Goal<'_> {
    /// What ends the observation now.
    fn reached(&self, source: &mut impl Source) -> Option<EndReason> {
        let is_reached = match self {
            Self::Detach { .. } | Self::Served { .. } => !self.is_waiting(source) && !source.is_anybody_left(),
            Self::CommandEnded => source.has_command_ended(),
            Self::RanksEnded { .. } => !source.is_rank_left(),
        };
        is_reached.then_some(EndReason::TargetsEnded)
    }

    fn is_waiting(&self, source: &impl Source) -> bool {
        matches!(self, Self::Detach { wait: true, .. } | Self::Served { wait: true }) && !source.was_anybody_there()
    }

    fn deadline(&self) -> Option<Instant> {
        let time = match self {
            Self::Detach { duration, .. } => *duration,
            Self::CommandEnded | Self::Served { .. } => None,
            Self::RanksEnded { patience } => Some(*patience),
        };
        time.and_then(|time| Instant::now().checked_add(time))
    }

    /// Waits for a signal to stop, where those are for mpiprobe.
    async fn interrupted(&mut self) {
        match self {
            Self::Detach { signals, .. } => signals.next().await,
            Self::CommandEnded | Self::RanksEnded { .. } | Self::Served { .. } => pending().await,
        }
    }
}

/// Follows a source until the goal is reached, and gives every interval to the sinks.
pub(super) async fn follow(
    source: &mut impl Source,
    sinks: &mut Sinks,
    every: Duration,
    mut goal: Goal<'_>,
) -> Result<EndReason, SessionError> {
    let mut ticks = regular(every);
    ticks.reset_after(match () {
        () if source.paces_itself() => NEVER,
        () if sinks.are_viewed() => every.min(FIRST_LOOK),
        () => every,
    });
    let deadline = goal.deadline();
    let (mut last_flush, mut next_flush): (Option<Instant>, Option<Instant>) = (None, None);
    loop {
        if let Some(end) = goal.reached(source) {
            return Ok(end);
        }
        if next_flush.is_some_and(|moment| moment <= Instant::now()) {
            if sinks.want_moments() {
                sinks.look(source.profile(None)?)?;
            }
            (last_flush, next_flush) = (Some(Instant::now()), None);
            if sinks.show_intervals() {
                // It was the end of one.
                ticks.reset();
            }
        }
        tokio::select! {
            asked = sinks.asked() => match asked {
                Asked::End => return interrupted(&goal, source),
                Asked::RecentCalls(wanted) => source.show_recent_calls(wanted),
                Asked::Stacks(wanted) => sinks.show_stacks(wanted, source.show_stacks(wanted)),
                Asked::Calls => sinks.show_calls(source.calls()),
                Asked::Dump => source.dump(),
            },
            () = goal.interrupted() => return interrupted(&goal, source),
            () = until(deadline) => return Ok(EndReason::Duration),
            event = source.event() => {
                source.handle(event?)?;
                if let Some(stacks) = source.take_stacks() {
                    sinks.give_stacks(stacks);
                }
                if source.take_flush() && next_flush.is_none() {
                    next_flush = Some(last_flush.map_or_else(Instant::now, |last| last + FLUSH_INTERVAL));
                }
            }
            () = until(next_flush) => {}
            _ = ticks.tick() => {
                source.end_interval();
                if sinks.want_moments() && source.was_anybody_there() {
                    sinks.look(source.profile(None)?)?;
                } else if sinks.are_standstills_due() && source.was_anybody_there() {
                    sinks.add_standstills(&mut source.profile(None)?);
                }
            }
        }
    }
}

/// What it means that the user, or the system, has asked for the end.
fn interrupted(goal: &Goal<'_>, source: &impl Source) -> Result<EndReason, SessionError> {
    if goal.is_waiting(source) { Err(SessionError::InterruptedWaiting) } else { Ok(EndReason::Interrupted) }
}

/// Waits for a moment; without one, for ever.
pub(super) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => pending().await,
    }
}

/// Ticks at once, then after each period; what takes longer puts them off.
pub(super) fn regular(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
