//! Who is shown the profiles.

use std::{future::pending, sync::Arc};

use super::{Options, Outcome, SessionError, signals::StopSignals};
use crate::{
    analyse::{Change, Look, unmatched_rows},
    diagnose::warnings,
    filter::Filter,
    model::{EndReason, Profile},
    present::{self, Output, filtered},
    recording::Recorder,
    view::{Asked, LiveView},
};

/// Standard output as tables or as JSON, or a full-screen view; and whoever looks at a recording later.
#[derive(Debug)]
pub(super) struct Display {
    form: Form,
    /// Rows that are shown.
    filter: Option<Filter>,
    recorder: Option<Recorder>,
    /// Where the present interval began; `None`: at the beginning of observation.
    last: Option<Look>,
}

#[derive(Debug)]
enum Form {
    Tables,
    /// One table, at the end.
    Once,
    Json,
    View(LiveView),
}

impl Display {
    pub(super) fn open(options: &Options) -> Result<Self, SessionError> {
        let recorder = options.record.as_ref().map(Recorder::begin).transpose()?;
        let form = match &options.view {
            Some((view, start)) => Form::View(LiveView::open(*view, start.clone())?),
            None if options.json => Form::Json,
            None if options.once => Form::Once,
            None => Form::Tables,
        };
        Ok(Self { form, filter: options.filter.clone(), recorder, last: None })
    }

    /// A look at the observation that goes on: the end of an interval.
    pub(super) fn look(&mut self, profile: Profile) -> Result<(), SessionError> {
        let (profile, change) = self.end_interval(profile);
        self.show(profile, &change)
    }

    /// Adds to a profile what has happened since the one before, and what follows from all of it.
    pub(super) fn end_interval(&mut self, mut profile: Profile) -> (Arc<Profile>, Change) {
        let change = Change::since(self.last.as_ref(), &profile);
        profile.interval = Some(change.window());
        profile.unmatched = unmatched_rows(&profile);
        self.last = Some(Look::of(&profile));
        (Arc::new(profile), change)
    }

    pub(super) fn show(&mut self, profile: Arc<Profile>, change: &Change) -> Result<(), SessionError> {
        if let Some(recorder) = &mut self.recorder {
            recorder.add(&profile);
        }
        match &mut self.form {
            Form::Json => Output.json_line(&*filtered(&profile, self.filter.as_ref()))?,
            Form::Tables => Output.text(&present::interval(&profile, change, self.filter.as_ref()))?,
            Form::Once => {}
            Form::View(view) => view.show(profile),
        }
        Ok(())
    }

    /// Waits until the user has asked for something, which is possible in a view only.
    pub(super) async fn asked(&mut self) -> Asked {
        match &mut self.form {
            Form::View(view) => view.asked().await,
            Form::Tables | Form::Once | Form::Json => pending().await,
        }
    }

    /// Waits until the user has asked for the end.
    async fn ended(&mut self) {
        match &mut self.form {
            Form::View(view) => view.ended().await,
            Form::Tables | Form::Once | Form::Json => pending().await,
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
    pub(super) fn close(self, profile: &Arc<Profile>) -> Result<Outcome, SessionError> {
        let (is_json, is_once) = (matches!(self.form, Form::Json), matches!(self.form, Form::Once));
        let filter = self.filter.as_ref();
        let mut recorder = self.recorder;
        if let Some(recorder) = &mut recorder {
            recorder.add(profile);
        }
        let closed = if let Form::View(view) = self.form { view.close() } else { Ok(()) };
        // Whatever has become of the view, this is what the observation was for.
        let printed = if is_json {
            Output.json_line(&*filtered(profile, filter))
        } else if is_once {
            Output.text(&present::interval(profile, &Change::since(None, profile), filter))
        } else {
            Output.text(&present::profile(profile, &warnings(profile), filter))
        };
        // Also if nobody wants to read it: it may be why somebody records.
        let is_recorded = recorder.is_none_or(Recorder::end);
        printed?;
        closed?;
        Ok(if profile.complete && is_recorded { Outcome::Complete } else { Outcome::Incomplete })
    }

    /// Gives the terminal back: there is no profile.
    pub(super) fn abandon(self) {
        if let Form::View(view) = self.form
            && let Err(error) = view.close()
        {
            present::say(error);
        }
        // Moments that were looked at stay.
        self.recorder.map(Recorder::end);
    }
}
