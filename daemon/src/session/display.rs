//! Who is shown the profiles.

use std::{future::pending, sync::Arc};

use super::{Options, Outcome, SessionError, signals::StopSignals};
use crate::{
    model::{EndReason, Profile},
    present::{self, Output},
    view::LiveView,
};

/// Standard output as tables or as JSON, or a full-screen view.
#[derive(Debug)]
pub(super) enum Display {
    Tables {
        last: Option<Box<Profile>>,
    },
    /// One table, at the end.
    Once,
    Json,
    View(LiveView),
}

impl Display {
    pub(super) fn open(options: &Options) -> Result<Self, SessionError> {
        Ok(match options.view {
            Some(view) => Self::View(LiveView::open(view)?),
            None if options.json => Self::Json,
            None if options.once => Self::Once,
            None => Self::Tables { last: None },
        })
    }

    /// A look at the observation that goes on.
    pub(super) fn look(&mut self, profile: Profile) -> Result<(), SessionError> {
        match self {
            Self::Json => Output.json_line(&profile)?,
            Self::Tables { last } => {
                Output.text(&present::interval(&profile, last.as_deref()))?;
                *last = Some(Box::new(profile));
            }
            Self::Once => {}
            Self::View(view) => view.show(Arc::new(profile)),
        }
        Ok(())
    }

    /// Waits until the user has asked for the end, which is possible in a view only.
    pub(super) async fn ended(&mut self) {
        match self {
            Self::View(view) => view.ended().await,
            Self::Tables { .. } | Self::Once | Self::Json => pending().await,
        }
    }

    /// Whether the last profile stays on the screen until the user has seen enough.
    pub(super) fn stays(&self, end: EndReason) -> bool {
        matches!(self, Self::View(_)) && end == EndReason::TargetsEnded
    }

    /// Leaves the last profile on the screen until the user, or a signal, ends that.
    pub(super) async fn stay(&mut self, signals: &mut StopSignals) {
        tokio::select! {
            () = self.ended() => {}
            () = signals.next() => {}
        }
    }

    /// Gives the terminal back, and prints the final profile.
    pub(super) fn close(self, profile: &Profile) -> Result<Outcome, SessionError> {
        let (is_json, is_once) = (matches!(self, Self::Json), matches!(self, Self::Once));
        let closed = if let Self::View(view) = self { view.close() } else { Ok(()) };
        // Whatever has become of the view, this is what the observation was for.
        if is_json {
            Output.json_line(profile)?;
        } else if is_once {
            Output.text(&present::interval(profile, None))?;
        } else {
            Output.text(&present::profile(profile))?;
        }
        closed?;
        Ok(if profile.complete { Outcome::Complete } else { Outcome::Incomplete })
    }

    /// Gives the terminal back: there is no profile.
    pub(super) fn abandon(self) {
        if let Self::View(view) = self
            && let Err(error) = view.close()
        {
            present::say(error);
        }
    }
}
