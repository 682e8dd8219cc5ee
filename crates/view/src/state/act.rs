//! What keys do to the state.

use super::{Purpose, State};
use crate::{
    content::{Location, RowId, Screen, Span},
    keys::{Action, BINDINGS},
    layout,
    screens::communicators_with_pairs,
    source::{Running, Wish},
};

/// What the state cannot do itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Quit,
    Copy,
    CopyText(String),
    WriteText,
    WriteJson,
    /// The calls that are kept.
    WriteTrace,
    Suspend,
    Redraw,
    /// A filter for the history.
    Remember(String),
    /// What is shown, under this name.
    SaveView(String),
    /// To be asked of the source.
    Wish(Wish),
}

impl State {
    pub fn act(&mut self, action: Action) -> Option<Effect> {
        self.notice = None;
        if self.is_help_open && self.act_on_help(action) {
            return None;
        }
        if let Some(chosen) = self.saved.chosen
            && self.act_on_saved(chosen, action)
        {
            return None;
        }
        match action {
            Action::Quit => return Some(Effect::Quit),
            Action::Copy => return Some(Effect::Copy),
            Action::WriteText => return Some(Effect::WriteText),
            Action::WriteJson => return Some(Effect::WriteJson),
            Action::Suspend => return Some(Effect::Suspend),
            Action::Redraw => return Some(Effect::Redraw),
            Action::Help => (self.is_help_open, self.help_top) = (true, 0),
            Action::NextScreen => self.show(self.screen().step(1)),
            Action::PreviousScreen => self.show(self.screen().step(Screen::ALL.len() - 1)),
            Action::Screen(screen) => {
                if screen == Screen::Recent {
                    self.choose_recent();
                }
                self.show(screen);
            }
            Action::Open | Action::Right if self.is_stacks() => self.fold(),
            Action::Open => self.open(),
            Action::Moment(moments) => return self.step(moments),
            Action::Right if self.is_scrubbed() => return self.step(1),
            Action::Left if self.is_scrubbed() => return self.step(-1),
            Action::Right if self.is_recent() => self.step_recent(1),
            Action::Left if self.is_recent() => self.step_recent(-1),
            Action::Right | Action::Left | Action::Measure => self.act_on_matrix(action),
            Action::Communicator => self.show_matrix_of_communicator(),
            Action::Back => self.back(),
            Action::Freeze if self.running == Running::Replay => return Some(Effect::Wish(Wish::Play)),
            Action::Freeze => self.freeze(),
            Action::Span => {
                self.span = if self.span == Span::Recent { Span::Start } else { Span::Recent };
                self.refresh();
            }
            Action::NextColumn => self.sort(1),
            Action::PreviousColumn => self.sort(self.grid.columns.len().saturating_sub(1)),
            Action::Invert => {
                let mut cursor = self.cursor();
                cursor.invert(&self.grid);
                self.put(cursor);
                self.refresh();
            }
            Action::Down => self.move_by(1),
            Action::Up => self.move_by(-1),
            Action::PageDown => self.move_by(self.page()),
            Action::PageUp => self.move_by(-self.page()),
            Action::First => self.go(0),
            Action::Last => self.go(usize::MAX),
            Action::NextMarked => self.go_to_marked(true),
            Action::PreviousMarked => self.go_to_marked(false),
            Action::Filter => self.open_editor(Purpose::Filter, false),
            Action::Editor => self.open_editor(Purpose::Filter, true),
            Action::Views => self.list_saved(),
            Action::SaveView => self.open_editor(Purpose::Name, false),
            Action::Edit(_) => {}
        }
        None
    }

    /// What moves sideways in a matrix leads in and out elsewhere.
    fn act_on_matrix(&mut self, action: Action) {
        let (row, column) = self.matrix_at;
        match (action, self.is_matrix()) {
            (Action::Right, true) => self.go_in_matrix((row, column + 1)),
            (Action::Left, true) => self.go_in_matrix((row, column.saturating_sub(1))),
            (Action::Measure, true) => self.measure = self.measure.next(),
            (Action::Right, false) => self.open(),
            (Action::Left, false) => self.back(),
            _ => self.notice = Some("here is no matrix: 5 leads to it".into()),
        }
    }

    /// Of the communicator that is looked at; in a matrix, of the next one, and after the last one of all together.
    fn show_matrix_of_communicator(&mut self) {
        let row = self.grid.rows.get(self.cursor().index).map(|row| row.id);
        self.matrix_of = match (self.place(), row) {
            _ if self.is_matrix() => {
                let with_pairs = self.profile().map(communicators_with_pairs).unwrap_or_default();
                if with_pairs.is_empty() {
                    self.notice = Some("no communicator with messages is told apart".into());
                }
                with_pairs.into_iter().find(|id| self.matrix_of.is_none_or(|of| *id > of))
            }
            (Location::Communicator(id), _) | (_, Some(RowId::Communicator(id))) => Some(id),
            _ => {
                self.notice = Some("here is neither a matrix nor a communicator: 5 and 6 lead to them".into());
                return;
            }
        };
        self.matrix_at = (0, 0);
        self.show(Screen::Matrix);
    }

    /// Whether what moves sideways goes through a recording: it does where there is nothing else to go through.
    fn is_scrubbed(&self) -> bool {
        self.running == Running::Replay && !self.is_matrix()
    }

    /// To another moment of a recording.
    fn step(&mut self, moments: isize) -> Option<Effect> {
        if self.running == Running::Replay {
            return Some(Effect::Wish(Wish::Step(moments)));
        }
        self.notice = Some("only a recording can be gone through: --record FILE, then mpiprobe view FILE".into());
        None
    }

    fn back(&mut self) {
        if self.places.len() > 1 {
            self.places.pop();
            self.refresh();
        }
    }

    /// The help takes the keys that move and close it; whether it has taken this one.
    fn act_on_help(&mut self, action: Action) -> bool {
        let last = (BINDINGS.len() + layout::HELP_EXTRA).saturating_sub(layout::help_rows(self.size));
        let page = layout::help_rows(self.size);
        self.help_top = match action {
            Action::Help | Action::Back | Action::Open | Action::Right | Action::Left => {
                self.is_help_open = false;
                0
            }
            Action::Down => self.help_top + 1,
            Action::Up => self.help_top.saturating_sub(1),
            Action::PageDown => self.help_top + page,
            Action::PageUp => self.help_top.saturating_sub(page),
            Action::First => 0,
            Action::Last => last,
            Action::Quit | Action::Suspend | Action::Redraw => return false,
            _ => {
                self.is_help_open = false;
                return false;
            }
        }
        .min(last);
        true
    }

    /// Goes to a screen.
    pub fn show(&mut self, screen: Screen) {
        self.places = vec![Location::Screen(screen)];
        self.refresh();
    }

    fn open(&mut self) {
        if self.is_matrix() {
            match self.matrix.block(self.matrix_at) {
                Some(block) => {
                    self.places.push(Location::Block(block));
                    self.matrix_at = (0, 0);
                    self.refresh();
                }
                None => self.notice = Some("each square is one pair of ranks already".into()),
            }
            return;
        }
        let row = self.grid.rows.get(self.cursor().index);
        match row.and_then(|row| row.opens) {
            // Round in circles (a rank's function's rank) goes back instead of ever deeper.
            Some(place) => {
                if let Some(data) = self.places.iter().position(|data| *data == place) {
                    self.places.truncate(data + 1);
                } else {
                    self.places.push(place);
                }
                self.cursors.remove(&place.kind());
                self.refresh();
            }
            None if row.is_some() => self.notice = Some("nothing more is known of this row".into()),
            None => {}
        }
    }

    pub(super) fn freeze(&mut self) {
        self.frozen = if self.frozen.is_some() { None } else { Some(self.data.clone()) };
        if self.running == Running::Ended {
            self.frozen = None;
            self.notice = Some("it has ended: nothing changes any more".into());
        }
        self.refresh();
    }

    /// By the column so many further.
    fn sort(&mut self, steps: usize) {
        let mut cursor = self.cursor();
        cursor.sort_by(&self.grid, steps);
        self.put(cursor);
        self.refresh();
    }

    /// Rows on a page.
    fn page(&self) -> isize {
        isize::try_from(layout::grid_rows(self.size).saturating_sub(1).max(1)).unwrap_or(1)
    }

    fn move_by(&mut self, rows: isize) {
        if self.is_matrix() {
            let (row, column) = self.matrix_at;
            self.go_in_matrix((row.saturating_add_signed(rows), column));
            return;
        }
        self.go(self.cursor().index.saturating_add_signed(rows));
    }

    /// To a row, or the last one.
    pub fn go(&mut self, index: usize) {
        if self.is_matrix() {
            self.go_in_matrix((index, self.matrix_at.1));
            return;
        }
        let mut cursor = self.cursor();
        cursor.go(&self.grid, index);
        self.put(cursor);
    }

    /// To the next row that stands out, from the last one on to the first.
    fn go_to_marked(&mut self, forward: bool) {
        let (rows, at) = (&self.grid.rows, self.cursor().index);
        let marked: Vec<usize> =
            (0..rows.len()).filter(|&index| rows.get(index).is_some_and(|row| row.marked)).collect();
        let next = if forward {
            marked.iter().find(|&&index| index > at).or(marked.first())
        } else {
            marked.iter().rev().find(|&&index| index < at).or(marked.last())
        };
        match next {
            Some(&index) => self.go(index),
            None => self.notice = Some("no row stands out".into()),
        }
    }
}
