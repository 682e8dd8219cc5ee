//! The course of an observation of jobs that count themselves: look, report; there is nothing to attach.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::{
    Options, Outcome, SessionError,
    course::{asked, conclude, interrupted, regular},
    display::Display,
    signals::StopSignals,
    wrapped::WrappedJob,
};
use crate::{model::EndReason, view::Asked};

/// How often new processes are looked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

pub(super) async fn observe_wrapped(
    mut job: WrappedJob,
    options: &Options,
    signals: &mut StopSignals,
) -> Result<Outcome, SessionError> {
    let mut display = Display::open(options)?;
    let ended = observe(&mut job, &mut display, options, signals).await.map(|end| (end, job.profile(Some(end))));
    conclude(display, ended, signals, async |_: &mut StopSignals| ()).await
}

/// Until it is over, for whatever reason.
async fn observe(
    job: &mut WrappedJob,
    display: &mut Display,
    options: &Options,
    signals: &mut StopSignals,
) -> Result<EndReason, SessionError> {
    let (mut ticks, mut looks) = (regular(options.interval), regular(LOOK_INTERVAL));
    ticks.tick().await;
    let deadline = options.duration.and_then(|duration| Instant::now().checked_add(duration));
    loop {
        let is_waiting = options.wait && !job.was_anybody_there();
        if !job.is_anybody_left() && !is_waiting && !job.look() {
            return Ok(EndReason::TargetsEnded);
        }
        tokio::select! {
            asked = asked(display, signals) => match asked {
                Asked::End => return interrupted(is_waiting),
                Asked::RecentCalls(wanted) => job.show_recent_calls(wanted),
            },
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => return Ok(EndReason::Duration),
            ended = job.ends.ended() => job.handle_ends(&ended.map_err(SessionError::Watch)?),
            _ = looks.tick() => {
                if !job.look() && is_waiting {
                    job.search();
                }
                if job.take_flush() {
                    display.look(job.profile(None))?;
                    // It was the end of an interval.
                    ticks.reset();
                }
            }
            _ = ticks.tick() => {
                if job.was_anybody_there() {
                    display.look(job.profile(None))?;
                }
            }
        }
    }
}
