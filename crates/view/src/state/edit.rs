//! What keys do to a text that is being typed.

use crossterm::event::KeyEvent;
use mpiprobe_model::filter::{Filter, Values, complete};

use super::{Editor, Effect, Purpose, State};
use crate::keys::{self, Action, Edit};

const TOO_LONG: &str = "no room for more than 4,096 characters";

impl State {
    /// What a key does. As long as something is typed, that is what keys are for.
    pub fn key(&mut self, event: &KeyEvent) -> Option<Effect> {
        if self.editor.is_none() {
            if self.is_timeline() && self.saved.chosen.is_none() && !self.is_help_open {
                return self.key_of_timeline(event);
            }
            return self.act(keys::action(event)?);
        }
        match (keys::editing(event), keys::action(event)) {
            (Some(edit), _) => self.edit(edit),
            (None, Some(action @ (Action::Suspend | Action::Redraw))) => self.act(action),
            (None, _) => {
                self.notice = None;
                self.try_to(|editor| editor.input(*event), TOO_LONG);
                None
            }
        }
    }

    /// Text from the clipboard is typed text; where nothing is typed, it is no keys either.
    pub fn paste(&mut self, text: &str) {
        if self.paste_to_timeline(text) {
            return;
        }
        self.notice = None;
        self.try_to(|editor| editor.paste(text), TOO_LONG);
    }

    /// The text that is being typed.
    pub(crate) fn editor(&self) -> Option<&Editor> {
        self.editor.as_ref()
    }

    pub(super) fn open_editor(&mut self, purpose: Purpose, is_large: bool) {
        let text = match purpose {
            Purpose::Filter => self.filter.as_ref().map(Filter::text).unwrap_or_default(),
            Purpose::Name => "",
        };
        // Several lines stay what they are.
        self.editor = Some(Editor::new(purpose, is_large || text.contains('\n'), text));
    }

    fn edit(&mut self, edit: Edit) -> Option<Effect> {
        self.notice = None;
        let is_large = self.editor.as_ref().is_some_and(|editor| editor.is_large);
        match edit {
            Edit::Enter if self.change(|editor| editor.close_list(true)) => {}
            Edit::Enter if is_large => self.try_to(Editor::new_line, TOO_LONG),
            Edit::Enter | Edit::Apply => return self.finish(),
            Edit::Cancel if self.change(|editor| editor.close_list(false)) => {}
            Edit::Cancel => self.editor = None,
            Edit::Next | Edit::Down if self.change(|editor| editor.choose(true)) => {}
            Edit::Previous | Edit::Up if self.change(|editor| editor.choose(false)) => {}
            Edit::Next | Edit::Previous => self.complete(),
            Edit::Up | Edit::Down if is_large => {
                self.change(|editor| {
                    editor.step(edit == Edit::Up);
                    true
                });
            }
            Edit::Up => self.recall(true),
            Edit::Down => self.recall(false),
            Edit::Clear => {
                self.change(|editor| {
                    editor.clear();
                    true
                });
            }
        }
        None
    }

    /// Whether it did something.
    fn change(&mut self, change: impl FnOnce(&mut Editor) -> bool) -> bool {
        self.editor.as_mut().is_some_and(change)
    }

    /// Says so if it does nothing.
    fn try_to(&mut self, change: impl FnOnce(&mut Editor) -> bool, otherwise: &str) {
        if self.editor.is_some() && !self.change(change) {
            self.notice = Some(otherwise.into());
        }
    }

    fn complete(&mut self) {
        if self.editor.as_ref().is_none_or(|editor| editor.purpose != Purpose::Filter) {
            return;
        }
        let values = self.profile().map(Values::of).unwrap_or_default();
        self.try_to(
            |editor| editor.complete(|text, cursor| complete(text, cursor, &values)),
            "nothing is known that would fit here",
        );
    }

    fn recall(&mut self, earlier: bool) {
        let Some(editor) = self.editor.as_mut().filter(|editor| editor.purpose == Purpose::Filter) else { return };
        if !editor.recall(&self.history, earlier) {
            self.notice = Some(if earlier { "no earlier filter" } else { "no later filter" }.into());
        }
    }

    /// What was typed takes effect, unless something is wrong with it.
    fn finish(&mut self) -> Option<Effect> {
        let editor = self.editor.as_ref()?;
        let text = editor.text();
        match editor.purpose {
            Purpose::Name => {
                self.editor = None;
                let name = text.trim();
                (!name.is_empty()).then(|| Effect::SaveView(name.to_owned()))
            }
            Purpose::Filter => {
                let filter = if Filter::is_blank(&text) { None } else { Some(text.parse().ok()?) };
                self.editor = None;
                self.filter_by(filter)
            }
        }
    }
}
