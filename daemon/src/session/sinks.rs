//! Who is given the profiles: standard output, the full-screen view, a recording.

use std::{fmt, future::pending, sync::Arc};

use mpiprobe_discover::Caller;
use mpiprobe_model::{
    EndReason, Profile,
    analyse::{Change, Look, ProfileOutput, unmatched_rows},
    filter::Filter,
};
use mpiprobe_report::present::{
    Output, OutputError, TextOptions, filtered, findings,
    recording::{RecordTo, Recorder, RecordingError},
};
use mpiprobe_view::{Asked, Calls, LiveView, Stacks};
use tokio::sync::mpsc;

use super::{
    error::SessionError,
    options::{Options, Outcome},
    signals::StopSignals,
    source::StacksBy,
    stacks::{StackLooks, living},
    standstill::Standstills,
    trace::{HandedOn, Listener, hand_on},
};
use crate::viewed::Shown;

/// All of them; each may be missing.
#[derive(Debug, Default)]
pub(super) struct Sinks {
    recorder: Option<Recorder>,
    view: Option<LiveView>,
    printer: Option<Printer>,
    served: Option<Served>,
    /// Somebody looks at a view, here or elsewhere.
    are_viewed: bool,
    /// As long as somebody looks at them in the view; of a view elsewhere, once somebody has.
    stacks: Option<StackLooks>,
    /// Somebody does now.
    are_stacks_shown: bool,
    /// Single calls on their way to a view elsewhere, once it has asked for them.
    told_calls: Option<Vec<HandedOn>>,
    /// Processes that may be looked at for that.
    living: Vec<u32>,
    /// Who may see them, if not who has started this program.
    caller: Option<Caller>,
    /// Where the present interval began; `None`: at the beginning of observation.
    last: Option<Look>,
    /// Why jobs do not go on, where this program may look.
    standstills: Option<Box<Standstills>>,
}

/// Somebody for whom an observation is made, elsewhere.
pub trait Audience: Send {
    /// Whether tables may take so much room, bytes.
    fn permit(&mut self, bytes: u64) -> Result<(), String>;

    /// It is observed from now on, or waited for.
    fn begun(&mut self);

    /// Whether stacks are looked at to find out why a job does not go on.
    fn wants_causes(&self) -> bool {
        true
    }

    /// The end of an interval, or of the observation.
    fn look(&mut self, profile: &Arc<Profile>);

    /// Who is told what else was asked for; `None`: nobody asks.
    fn viewer(&self) -> Option<Viewer> {
        None
    }
}

/// Somebody elsewhere who has a view, and what it shows besides profiles. Tells whether it was taken, and more would be.
pub type Viewer = Arc<dyn Fn(Shown<'_>) -> bool + Send + Sync>;

/// Somebody elsewhere, and what they ask for.
pub struct Served {
    pub audience: Box<dyn Audience>,
    pub asked: mpsc::UnboundedReceiver<Asked>,
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").finish_non_exhaustive()
    }
}

/// Standard output.
#[derive(Debug)]
struct Printer {
    form: Form,
    /// Rows that are shown.
    filter: Option<Filter>,
    text: TextOptions,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    /// A table at each interval, and the profile at the end.
    Tables,
    /// One table, at the end.
    Once,
    /// A line for each profile.
    Json,
    /// The profile, at the end.
    Last,
    /// The same, as JSON.
    LastJson,
}

impl Printer {
    /// An interval is over.
    fn moment(&self, profile: &Profile, change: &Change) -> Result<(), OutputError> {
        let filter = self.filter.as_ref();
        match self.form {
            Form::Json => Output.json_line(&ProfileOutput::new(&filtered(profile, filter), profile)),
            Form::Tables => Output.text(&mpiprobe_report::present::interval(&self.text, profile, change, filter)),
            Form::Once | Form::Last | Form::LastJson => Ok(()),
        }
    }

    /// The observation is over.
    fn last(&self, profile: &Profile) -> Result<(), OutputError> {
        let filter = self.filter.as_ref();
        match self.form {
            Form::Json | Form::LastJson => Output.json_line(&ProfileOutput::new(&filtered(profile, filter), profile)),
            Form::Once => {
                let change = Change::since(None, profile);
                Output.text(&mpiprobe_report::present::interval(&self.text, profile, &change, filter))
            }
            Form::Tables | Form::Last => {
                Output.text(&mpiprobe_report::present::profile(&self.text, profile, &findings(profile), filter))
            }
        }
    }
}

impl Sinks {
    /// Of an observation that was asked for.
    pub(super) fn open(options: &Options) -> Result<Self, SessionError> {
        let recorder = options.record.as_ref().map(Recorder::begin).transpose()?;
        let (view, form) = match &options.view {
            Some((view, start)) => (Some(LiveView::open(*view, start.clone())?), Form::Last),
            None if options.json && options.writes_trace() => (None, Form::LastJson),
            None if options.writes_trace() => (None, Form::Last),
            None if options.json => (None, Form::Json),
            None if options.once => (None, Form::Once),
            None => (None, Form::Tables),
        };
        let printer = Some(Printer { form, filter: options.filter.clone(), text: options.text });
        Ok(Self { recorder, view, printer, are_viewed: options.is_viewed, ..Self::default() })
    }

    /// Of somebody elsewhere. `caller`: who may see what, if not who has started this program.
    pub(super) fn of_served(served: Served, caller: Option<Caller>, options: &Options) -> Self {
        Self { served: Some(served), caller, are_viewed: options.is_viewed, ..Self::default() }
    }

    /// Whether somebody looks at a view, here or elsewhere.
    pub(super) fn are_viewed(&self) -> bool {
        self.are_viewed
    }

    /// Of a command that mpiprobe runs, whose standard output is the command's.
    pub(super) fn of_command(record: Option<&RecordTo>) -> Result<Self, RecordingError> {
        let mut sinks = Self { recorder: record.map(Recorder::begin).transpose()?, ..Self::default() };
        sinks.watch_standstills();
        Ok(sinks)
    }

    /// Looks why jobs do not go on, from now on.
    pub(super) fn watch_standstills(&mut self) {
        self.standstills = Some(Box::new(Standstills::new(self.caller)));
    }

    /// Whether it is time to, if nobody is to be given profiles.
    pub(super) fn are_standstills_due(&self) -> bool {
        self.standstills.as_ref().is_some_and(|standstills| standstills.are_due())
    }

    /// Adds to a profile why its jobs do not go on.
    pub(super) fn add_standstills(&mut self, profile: &mut Profile) {
        if let Some(standstills) = &mut self.standstills {
            standstills.watch(profile);
        }
    }

    /// Whether somebody is to be given profiles before the last one.
    pub(super) fn want_moments(&self) -> bool {
        let is_shown = self.view.is_some()
            || self.printer.as_ref().is_some_and(|printer| !matches!(printer.form, Form::Last | Form::LastJson));
        self.recorder.is_some() || self.served.is_some() || is_shown
    }

    /// Whether somebody is told what has happened in each interval.
    pub(super) fn show_intervals(&self) -> bool {
        self.printer.is_some()
    }

    /// A look at the observation that goes on: the end of an interval.
    pub(super) fn look(&mut self, mut profile: Profile) -> Result<(), SessionError> {
        if self.show_intervals() {
            let (profile, change) = self.end_interval(profile);
            self.show(&profile, &change)
        } else {
            self.add_standstills(&mut profile);
            self.record(&Arc::new(profile));
            Ok(())
        }
    }

    /// Adds to a profile what has happened since the one before, and what follows from all of it.
    pub(super) fn end_interval(&mut self, mut profile: Profile) -> (Arc<Profile>, Change) {
        let change = Change::since(self.last.as_ref(), &profile);
        profile.interval = Some(change.window());
        profile.unmatched = unmatched_rows(&profile);
        self.add_standstills(&mut profile);
        self.last = Some(Look::of(&profile));
        (Arc::new(profile), change)
    }

    pub(super) fn show(&mut self, profile: &Arc<Profile>, change: &Change) -> Result<(), SessionError> {
        self.record(profile);
        if let Some(view) = &self.view {
            view.show(Arc::clone(profile));
            self.note_living(profile);
        }
        Ok(self.printer.as_ref().map_or(Ok(()), |printer| printer.moment(profile, change))?)
    }

    fn record(&mut self, profile: &Arc<Profile>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.add(profile);
        }
        if let Some(served) = &mut self.served {
            served.audience.look(profile);
            self.note_living(profile);
        }
    }

    fn note_living(&mut self, profile: &Profile) {
        self.living = living(profile);
        if let Some(looks) = self.stacks.as_ref().filter(|_| self.are_stacks_shown) {
            looks.of(self.living.clone());
        }
    }

    /// Begins to look at stacks for a view, or ends it, as far as it is not somebody else who looks.
    pub(super) fn show_stacks(&mut self, wanted: bool, by: StacksBy) {
        self.are_stacks_shown = wanted;
        if self.served.is_none() {
            self.stacks = None;
        } else if let Some(looks) = &self.stacks {
            looks.pause();
        }
        if !wanted {
            return;
        }
        match by {
            StacksBy::Source => {}
            StacksBy::Viewer => {
                let pids = self.living.clone();
                if self.stacks.as_ref().is_some_and(|looks| looks.of(pids.clone())) {
                    return;
                }
                if let Some(view) = &self.view {
                    let to = view.stacks();
                    self.stacks = Some(StackLooks::begin(move |stacks| to.show(stacks), None, pids));
                } else if let Some(viewer) = self.viewer() {
                    // Who does not take it misses a look.
                    let show = move |stacks| _ = viewer(Shown::Stacks(&stacks));
                    self.stacks = Some(StackLooks::begin(show, self.caller, pids));
                }
            }
        }
    }

    /// A view elsewhere.
    fn viewer(&self) -> Option<Viewer> {
        self.served.as_ref()?.audience.viewer()
    }

    /// Has a view show what was looked at.
    pub(super) fn give_stacks(&self, stacks: Stacks) {
        if let Some(view) = &self.view {
            view.stacks().show(stacks);
        } else if let Some(viewer) = self.viewer() {
            viewer(Shown::Stacks(&stacks));
        }
    }

    /// Tells a view where the calls of all ranks are, or why there are none.
    pub(super) fn show_calls(&mut self, calls: Calls) {
        if let Some(view) = &self.view {
            return view.show_calls(calls);
        }
        // However often they are asked for.
        let Some(viewer) = self.viewer().filter(|_| self.told_calls.is_none()) else { return };
        let given = match calls {
            Calls::Kept(kept) => {
                let told = self.told_calls.get_or_insert_default();
                // Of several nodes each tells its own, and nobody tells them on.
                kept.iter().try_for_each(|one| {
                    let to = Arc::clone(&viewer);
                    let listener = Listener::new(move |message| to(Shown::Calls(message)));
                    hand_on(&one.window, listener).map(|calls| told.push(calls)).map_err(|error| error.to_string())
                })
            }
            Calls::Refused(why) => Err(why),
        };
        if let Err(why) = given {
            viewer(Shown::NoCalls(&why));
        }
    }

    /// Waits until the user has asked for something, which is possible in a view only.
    pub(super) async fn asked(&mut self) -> Asked {
        match (&mut self.view, &mut self.served) {
            (Some(view), _) => view.asked().await,
            // Who has gone away wants nothing more.
            (None, Some(served)) => served.asked.recv().await.unwrap_or(Asked::End),
            (None, None) => pending().await,
        }
    }

    /// Whether the last profile stays on the screen until the user has seen enough.
    pub(super) fn stays(&self, end: EndReason) -> bool {
        self.view.is_some() && end == EndReason::TargetsEnded
    }

    /// Leaves the last profile on the screen until the user, or a signal, ends that.
    pub(super) async fn stay(&mut self, signals: &mut StopSignals) {
        let Some(view) = &mut self.view else { return };
        tokio::select! {
            () = view.ended() => {}
            () = signals.next() => {}
        }
    }

    /// Gives the terminal back, and the final profile to everybody.
    pub(super) fn close(mut self, profile: &Arc<Profile>) -> Result<Outcome, SessionError> {
        // After the last profile nobody looks for any more of them.
        self.told_calls.take().into_iter().flatten().for_each(HandedOn::finish);
        self.record(profile);
        let closed = self.view.map_or(Ok(()), LiveView::close);
        // Whatever has become of the view, this is what the observation was for.
        let printed = self.printer.map_or(Ok(()), |printer| printer.last(profile));
        // Also if nobody wants to read it: it may be why somebody records.
        let is_recorded = self.recorder.is_none_or(Recorder::end);
        printed?;
        closed?;
        Ok(if profile.complete && is_recorded { Outcome::Complete } else { Outcome::Incomplete })
    }

    /// Gives the terminal back: there is no profile.
    pub(super) fn abandon(self) {
        if let Some(Err(error)) = self.view.map(LiveView::close) {
            mpiprobe_report::present::say(error);
        }
        // Moments that were looked at stay.
        self.recorder.map(Recorder::end);
    }
}
