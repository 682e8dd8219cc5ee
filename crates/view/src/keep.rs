//! What the user wants to find again next time: filters, views.

use super::{
    state::{Effect, State},
    user::{FileError, Files},
};

/// Knows where they are kept.
#[derive(Debug)]
pub(super) struct Keeper {
    files: Files,
    /// Whether it was said already that filters are forgotten.
    has_said: bool,
}

impl Keeper {
    /// Finds the filters of earlier times.
    pub(super) fn new(files: Files, state: &mut State) -> Self {
        let mut keeper = Self { files, has_said: false };
        match keeper.files.history() {
            Ok(history) => state.history = history,
            Err(error) => keeper.say_once(&error, state),
        }
        keeper
    }

    /// Gives back what is not for it.
    pub(super) fn keep(&mut self, effect: Effect, state: &mut State) -> Option<Effect> {
        match effect {
            Effect::Remember(line) => {
                if let Err(error) = self.files.remember(&line) {
                    self.say_once(&error, state);
                }
                None
            }
            Effect::SaveView(name) => {
                let view = state.as_view();
                state.notice = Some(match self.files.save_view(&name, &view) {
                    Ok(()) => {
                        let said = format!("saved as {name:?}: v lists it, --view opens with it");
                        state.add_saved(name, view);
                        said
                    }
                    Err(error) => format!("not saved: {error}"),
                });
                None
            }
            effect => Some(effect),
        }
    }

    /// A filter in force is worth more than its place in a list.
    fn say_once(&mut self, error: &FileError, state: &mut State) {
        if !self.has_said && state.notice.is_none() {
            self.has_said = true;
            state.notice = Some(format!("filters are not remembered: {error}"));
        }
    }
}
