//! What the source has told so far.

use std::{collections::VecDeque, sync::Arc};

use mpiprobe_model::{
    Profile,
    analyse::{Change, Look},
};

use super::series::Series;
use crate::{content::Span, source::Moment};

/// How far back "now" reaches, ns: long enough for a figure to be read, short enough to follow.
pub(crate) const RECENT_NS: u64 = 10_000_000_000;
/// Never more looks than this are kept, however short the interval is.
pub(crate) const MOST_LOOKS: usize = 64;

/// The latest profile, and of earlier ones what is needed to say what has changed.
#[derive(Clone, Debug, Default)]
pub struct Data {
    profile: Option<Arc<Profile>>,
    /// Oldest first; the last is that of the profile.
    looks: VecDeque<Arc<Look>>,
    series: Series,
}

impl Data {
    /// Takes in a further profile of the same observation. One that is earlier than the last begins anew: somebody went back in
    /// a recording.
    pub fn add(&mut self, profile: Arc<Profile>) {
        if self.looks.back().is_some_and(|last| profile.observed_ns < last.at_ns) {
            *self = Self::default();
        }
        let since_last = Change::since(self.looks.back().map(Arc::as_ref), &profile);
        self.series.add(profile.observed_ns, &since_last);
        self.look(profile);
    }

    /// Goes to a moment of a recording: unless it follows the last one, its recent past is that of the moments before it.
    pub fn go(&mut self, moment: &Moment) {
        let mut all = moment.before.iter().chain([&moment.profile]);
        if !moment.follows {
            self.looks.clear();
            if moment.from_start {
                self.series = Series::default();
            } else if let Some(oldest) = all.next() {
                // Nothing is known of the time right before the oldest one, unless it is in the history already.
                self.series.keep_until(oldest.observed_ns);
                self.look(Arc::clone(oldest));
            }
        }
        all.for_each(|profile| self.add(Arc::clone(profile)));
    }

    /// Looks at a profile, later than all others.
    fn look(&mut self, profile: Arc<Profile>) {
        self.looks.push_back(Arc::new(Look::of(&profile)));
        // One that is old enough stays, as the beginning of the recent past.
        let is_old = |look: &Arc<Look>| profile.observed_ns.saturating_sub(look.at_ns) >= RECENT_NS;
        while self.looks.len() > MOST_LOOKS || self.looks.get(1).is_some_and(is_old) {
            self.looks.pop_front();
        }
        self.profile = Some(profile);
    }

    pub fn profile(&self) -> Option<&Arc<Profile>> {
        self.profile.as_ref()
    }

    pub fn series(&self) -> &Series {
        &self.series
    }

    /// The look that the span begins with; `None`: the beginning of observation.
    pub fn since(&self, span: Span) -> Option<&Arc<Look>> {
        match span {
            // Until there is something to compare with, it is the same.
            Span::Recent if self.looks.len() > 1 => self.looks.front(),
            Span::Recent | Span::Start => None,
        }
    }
}
