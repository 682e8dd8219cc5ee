//! What the courses of all observations have in common.

use std::{sync::Arc, time::Duration};

use tokio::time::{Interval, MissedTickBehavior, interval};

use super::{Outcome, SessionError, display::Display, signals::StopSignals};
use crate::{
    model::{EndReason, Profile},
    view::Asked,
};

/// Waits for a key of the view or a signal.
pub(super) async fn asked(display: &mut Display, signals: &mut StopSignals) -> Asked {
    tokio::select! {
        asked = display.asked() => asked,
        () = signals.next() => Asked::End,
    }
}

/// What it means that the user, or the system, has asked for the end.
pub(super) fn interrupted(is_waiting: bool) -> Result<EndReason, SessionError> {
    if is_waiting { Err(SessionError::InterruptedWaiting) } else { Ok(EndReason::Interrupted) }
}

/// Ticks at once, then after each period; what takes longer puts them off.
pub(super) fn regular(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Shows and prints the last profile, or gives the terminal back without one. `let_go` is what has to be undone.
pub(super) async fn conclude(
    mut display: Display,
    ended: Result<(EndReason, Profile), SessionError>,
    signals: &mut StopSignals,
    let_go: impl AsyncFnOnce(&mut StopSignals),
) -> Result<Outcome, SessionError> {
    let ended = ended.map(|(end, profile)| (end, display.end_interval(profile)));
    match ended {
        Ok((end, (profile, change))) if display.stays(end) => {
            let stays = display.show(Arc::clone(&profile), &change);
            // Others may use the same library while this one is looked at.
            let_go(signals).await;
            if stays.is_ok() {
                display.stay(signals).await;
            }
            display.close(&profile)
        }
        Ok((_, (profile, _))) => {
            let outcome = display.close(&profile);
            let_go(signals).await;
            outcome
        }
        Err(error) => {
            display.abandon();
            let_go(signals).await;
            Err(error)
        }
    }
}
