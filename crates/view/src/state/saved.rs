//! Saved views: what is shown and how, under a name.

use std::collections::BTreeMap;

use super::State;
use crate::{content::Location, keys::Action, user::SavedView};

#[derive(Debug, Default)]
pub(crate) struct Saved {
    views: BTreeMap<String, SavedView>,
    /// Which one the cursor is on, if they are listed.
    pub chosen: Option<usize>,
}

impl Saved {
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&String, &SavedView)> {
        self.views.iter()
    }
}

impl State {
    pub(crate) fn saved(&self) -> &Saved {
        &self.saved
    }

    /// Those of the configuration.
    pub fn set_saved(&mut self, views: BTreeMap<String, SavedView>) {
        self.saved = Saved { views, chosen: None };
    }

    pub fn add_saved(&mut self, name: String, view: SavedView) {
        self.saved.views.insert(name, view);
    }

    /// What is shown now, so that it can be shown again.
    pub fn as_view(&self) -> SavedView {
        let asked = self.cursor().asked();
        let column = asked.and_then(|(column, _)| self.grid.columns.get(column));
        SavedView {
            filter: self.filter.clone(),
            screen: Some(self.screen()),
            sort: column.filter(|_| self.depth() == 0).map(|column| column.title.to_owned()),
            descending: asked.filter(|_| column.is_some() && self.depth() == 0).map(|(_, descending)| descending),
            span: Some(self.span),
            measure: self.is_matrix().then_some(self.measure),
        }
    }

    /// Shows what was saved; what it says nothing of stays as it is, but for the filter.
    pub fn show_view(&mut self, view: &SavedView) {
        (self.span, self.measure) = (view.span.unwrap_or(self.span), view.measure.unwrap_or(self.measure));
        self.filter.clone_from(&view.filter);
        if let Some(screen) = view.screen {
            self.places = vec![Location::Screen(screen)];
        }
        self.refresh();
        let Some(title) = &view.sort else { return };
        match self.grid.columns.iter().position(|column| column.title == title) {
            Some(column) => {
                let mut cursor = self.cursor();
                cursor.ask(&self.grid, column, view.descending);
                self.put(cursor);
                self.refresh();
            }
            // Before the first profile there is no table yet.
            None if self.profile().is_none() => self.pending = Some(view.clone()),
            None => self.notice = Some(format!("here is no column {title:?} to sort by")),
        }
    }

    pub(super) fn list_saved(&mut self) {
        if self.saved.views.is_empty() {
            self.notice = Some("no view has been saved yet: V saves this one".into());
        } else {
            self.saved.chosen = Some(0);
        }
    }

    /// The list takes all keys but those that are for the program.
    pub(super) fn act_on_saved(&mut self, chosen: usize, action: Action) -> bool {
        let last = self.saved.views.len().saturating_sub(1);
        self.saved.chosen = Some(match action {
            Action::Quit | Action::Suspend | Action::Redraw => return false,
            Action::Down | Action::NextScreen => chosen + 1,
            Action::Up | Action::PreviousScreen => chosen.saturating_sub(1),
            Action::PageDown | Action::Last => last,
            Action::PageUp | Action::First => 0,
            Action::Open | Action::Right => {
                self.saved.chosen = None;
                let view = self.saved.views.iter().nth(chosen).map(|(_, view)| view.clone());
                if let Some(view) = view {
                    self.show_view(&view);
                }
                return true;
            }
            _ => {
                self.saved.chosen = None;
                return true;
            }
        });
        self.saved.chosen = self.saved.chosen.map(|chosen| chosen.min(last));
        true
    }
}
