//! The calls of all ranks on a timeline: where they are, or why there are none.

use std::fmt;

use crossterm::event::KeyEvent;

use super::{Effect, State};
use crate::{
    content::{Location, Screen},
    keys::{self, Action},
    layout::Size,
    source::Running,
    timeline::{News, Timeline, TimelineAction, TimelineEffect, Wanted},
};

const NOT_YET: &str = "Calls are looked at from now on; the first come in a moment.";
const NOT_KEPT: &str = "Recordings have no single calls: `mpiprobe run --trace FILE`, or `mpiprobe trace`, writes them, \
                        and `mpiprobe view FILE` shows them.";

/// What is known of them.
#[derive(Default)]
pub(super) struct CallsNow {
    timeline: Option<Timeline>,
    refused: Option<String>,
    size: Size,
}

impl fmt::Debug for CallsNow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallsNow").field("refused", &self.refused).finish_non_exhaustive()
    }
}

impl CallsNow {
    pub(super) fn resize(&mut self, size: Size) {
        self.size = size;
        if let Some(timeline) = &mut self.timeline {
            timeline.resize(size);
        }
    }
}

impl State {
    pub(crate) fn is_timeline(&self) -> bool {
        self.place() == Location::Screen(Screen::Timeline)
    }

    /// Whether further moments of the job are to be shown.
    pub fn follows_calls(&self) -> bool {
        self.is_timeline() && !self.is_frozen() && self.calls.timeline.as_ref().is_none_or(Timeline::follows)
    }

    /// There are none.
    pub fn refuse_calls(&mut self, why: String) {
        self.calls.refused = Some(why);
    }

    /// Takes in what has been read of them.
    pub fn take_calls(&mut self, news: News) {
        if matches!(news, News::Written(_)) {
            // It is in the place of what was said before.
            self.notice = None;
        }
        match (&mut self.calls.timeline, news) {
            (Some(timeline), news) => timeline.take(news),
            (place, News::Moment(moment)) => {
                let mut timeline = Timeline::of_now(&moment);
                timeline.resize(self.calls.size);
                *place = Some(timeline);
            }
            (None, News::Failed(what) | News::Written(what)) => self.notice = Some(what),
            (None, _) => {}
        }
    }

    /// What is to be read of them.
    pub fn wanted_calls(&self) -> Option<Wanted> {
        self.calls.timeline.as_ref().filter(|_| self.is_timeline()).map(Timeline::wanted)
    }

    /// The timeline, or why there is none.
    pub(crate) fn timeline(&self) -> Result<&Timeline, &str> {
        match (&self.calls.timeline, &self.calls.refused, self.running) {
            (Some(timeline), ..) => Ok(timeline),
            (None, _, Running::Replay) => Err(NOT_KEPT),
            (None, Some(why), _) => Err(why),
            (None, None, _) => Err(NOT_YET),
        }
    }

    /// What a key does on this screen: those that lead to other screens do so, and the others are the timeline's.
    pub(super) fn key_of_timeline(&mut self, event: &KeyEvent) -> Option<Effect> {
        let action = keys::action(event);
        let Some(timeline) = &mut self.calls.timeline else { return self.act(action?) };
        let leads_away = matches!(action, Some(Action::Screen(_) | Action::NextScreen | Action::PreviousScreen));
        if leads_away && !timeline.is_typing() {
            timeline.is_help_open = false;
            return self.act(action?);
        }
        self.notice = None;
        let effect = timeline.key(event)?;
        self.carry_out(effect)
    }

    fn carry_out(&mut self, effect: TimelineEffect) -> Option<Effect> {
        match effect {
            TimelineEffect::Quit => return Some(Effect::Quit),
            TimelineEffect::Copy(text) => return Some(Effect::CopyText(text)),
            TimelineEffect::Suspend => return Some(Effect::Suspend),
            TimelineEffect::Redraw => return Some(Effect::Redraw),
            TimelineEffect::Write => return Some(Effect::WriteTrace),
            TimelineEffect::Freeze => {
                let follows = self.calls.timeline.as_ref().is_some_and(Timeline::follows);
                // What has ended is not frozen; it can stand still all the same.
                if self.is_frozen() || self.running == Running::Live {
                    self.freeze();
                }
                let goes_on = if self.running == Running::Live { !self.is_frozen() } else { !follows };
                self.set_following(goes_on);
            }
            TimelineEffect::GoOn => {
                if self.is_frozen() {
                    self.freeze();
                }
                self.set_following(true);
            }
        }
        None
    }

    fn set_following(&mut self, follows: bool) {
        if let Some(timeline) = &mut self.calls.timeline {
            timeline.set_following(follows);
        }
    }

    /// Whether the text is for the timeline.
    pub(super) fn paste_to_timeline(&mut self, text: &str) -> bool {
        let is_it = self.is_timeline() && self.editor.is_none();
        let Some(timeline) = self.calls.timeline.as_mut().filter(|_| is_it) else { return false };
        timeline.paste(text);
        true
    }

    /// Whether the click is for the timeline.
    pub(super) fn click_on_timeline(&mut self, column: u16, line: u16) -> bool {
        let is_it = self.is_timeline() && self.editor.is_none() && self.saved.chosen.is_none();
        let Some(timeline) = self.calls.timeline.as_mut().filter(|_| is_it) else { return false };
        timeline.click(column, line);
        true
    }

    /// To the lane below, or above; false: there is no timeline.
    pub(crate) fn scroll_timeline(&mut self, down: bool) -> bool {
        let is_it = self.is_timeline();
        let Some(timeline) = self.calls.timeline.as_mut().filter(|_| is_it) else { return false };
        timeline.act(if down { TimelineAction::Down } else { TimelineAction::Up });
        true
    }
}
