//! Who is shown the profiles.

use std::{future::pending, sync::Arc};

use super::{Options, Outcome, SessionError, signals::StopSignals};
use crate::{
    diagnose::warnings,
    filter::Filter,
    model::{EndReason, Profile},
    present::{self, Output, filtered},
    view::LiveView,
};

/// Standard output as tables or as JSON, or a full-screen view.
#[derive(Debug)]
pub(super) struct Display {
    form: Form,
    /// Rows that are shown.
    filter: Option<Filter>,
}

#[derive(Debug)]
enum Form {
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
        let form = match &options.view {
            Some((view, start)) => Form::View(LiveView::open(*view, start.clone())?),
            None if options.json => Form::Json,
            None if options.once => Form::Once,
            None => Form::Tables { last: None },
        };
        Ok(Self { form, filter: options.filter.clone() })
    }

    /// A look at the observation that goes on.
    pub(super) fn look(&mut self, profile: Profile) -> Result<(), SessionError> {
        match &mut self.form {
            Form::Json => Output.json_line(&*filtered(&profile, self.filter.as_ref()))?,
            Form::Tables { last } => {
                Output.text(&present::interval(&profile, last.as_deref(), self.filter.as_ref()))?;
                *last = Some(Box::new(profile));
            }
            Form::Once => {}
            Form::View(view) => view.show(Arc::new(profile)),
        }
        Ok(())
    }

    /// Waits until the user has asked for the end, which is possible in a view only.
    pub(super) async fn ended(&mut self) {
        match &mut self.form {
            Form::View(view) => view.ended().await,
            Form::Tables { .. } | Form::Once | Form::Json => pending().await,
        }
    }

    /// Whether the last profile stays on the screen until the user has seen enough.
    pub(super) fn stays(&self, end: EndReason) -> bool {
        matches!(self.form, Form::View(_)) && end == EndReason::TargetsEnded
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
        let (is_json, is_once) = (matches!(self.form, Form::Json), matches!(self.form, Form::Once));
        let filter = self.filter;
        let closed = if let Form::View(view) = self.form { view.close() } else { Ok(()) };
        // Whatever has become of the view, this is what the observation was for.
        if is_json {
            Output.json_line(&*filtered(profile, filter.as_ref()))?;
        } else if is_once {
            Output.text(&present::interval(profile, None, filter.as_ref()))?;
        } else {
            Output.text(&present::profile(profile, &warnings(profile), filter.as_ref()))?;
        }
        closed?;
        Ok(if profile.complete { Outcome::Complete } else { Outcome::Incomplete })
    }

    /// Gives the terminal back: there is no profile.
    pub(super) fn abandon(self) {
        if let Form::View(view) = self.form
            && let Err(error) = view.close()
        {
            present::say(error);
        }
    }
}
