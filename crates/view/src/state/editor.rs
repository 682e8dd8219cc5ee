//! A text that is being typed: a filter, or the name of a view.

use crossterm::event::KeyEvent;
use mpiprobe_model::filter::{Candidate, Completion, Filter, FilterError};
use ratatui::style::Style;
use tui_textarea::{CursorMove, TextArea};

use crate::user::History;

/// Characters of the longest text.
const LONGEST: usize = 4096;
/// Changes that can be undone.
const UNDONE: usize = 50;

/// What the text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Filter,
    /// Under which the present view is saved.
    Name,
}

#[derive(Debug)]
pub(crate) struct Editor {
    pub purpose: Purpose,
    /// Has several lines.
    pub is_large: bool,
    pub area: TextArea<'static>,
    /// The first one in a filter.
    pub mistake: Option<FilterError>,
    pub list: Option<List>,
    /// How far back in the history one is.
    back: usize,
    /// What was typed before one went there.
    draft: String,
}

/// What the text can be completed by. The chosen one is in the text already.
#[derive(Debug)]
pub(crate) struct List {
    pub candidates: Vec<Candidate>,
    /// Candidates beyond those.
    pub more: usize,
    pub chosen: usize,
    /// Characters before it.
    pub from: usize,
    /// The text around it, and what was typed of it.
    before: String,
    typed: String,
    after: String,
}

impl Editor {
    pub(super) fn new(purpose: Purpose, is_large: bool, text: &str) -> Self {
        let mut editor = Self {
            purpose,
            is_large,
            area: TextArea::default(),
            mistake: None,
            list: None,
            back: 0,
            draft: String::new(),
        };
        editor.set(text, usize::MAX);
        editor
    }

    pub(crate) fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    /// Characters before the cursor.
    fn cursor(&self) -> usize {
        let (row, column) = (self.area.cursor().0, self.area.cursor().1);
        let before: usize = self.area.lines().iter().take(row).map(|line| line.chars().count() + 1).sum();
        before + column
    }

    /// A whole new text, and where in it the cursor is.
    fn set(&mut self, text: &str, cursor: usize) {
        self.area = TextArea::new(text.split('\n').map(str::to_owned).collect());
        self.area.set_cursor_line_style(Style::new());
        self.area.set_max_histories(UNDONE);
        let before: String = text.chars().take(cursor).collect();
        let row = before.matches('\n').count();
        let column = before.chars().rev().take_while(|&letter| letter != '\n').count();
        // Both are less than the longest text.
        let small = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        self.area.move_cursor(CursorMove::Jump(small(row), small(column)));
        self.check();
    }

    /// What is not a key of the editor's own. `false`: there is no room for more.
    pub(super) fn input(&mut self, event: KeyEvent) -> bool {
        let before = self.text();
        self.list = None;
        if self.area.input(event) {
            self.back = 0;
        }
        self.settle(&before)
    }

    /// `false`: it does not fit.
    pub(super) fn paste(&mut self, text: &str) -> bool {
        let before = self.text();
        self.list = None;
        let is_kept = |letter: char| letter == '\n' || !letter.is_control();
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        // Much more is not even tried.
        let text: String = text.chars().take(LONGEST + 1).map(|it| if is_kept(it) { it } else { ' ' }).collect();
        self.area.insert_str(text);
        self.settle(&before)
    }

    pub(super) fn new_line(&mut self) -> bool {
        self.paste("\n")
    }

    /// After a change: on one line if there is only one, and no longer than allowed.
    fn settle(&mut self, before: &str) -> bool {
        let text = self.text();
        if text.chars().count() > LONGEST {
            let cursor = self.cursor().min(before.chars().count());
            self.set(before, cursor);
            return false;
        }
        if !self.is_large && self.area.lines().len() > 1 {
            let cursor = self.cursor();
            self.set(&text.replace('\n', " "), cursor);
        }
        self.check();
        true
    }

    /// Deletes what is before the cursor on its line.
    pub(super) fn clear(&mut self) {
        self.list = None;
        self.area.delete_line_by_head();
        self.check();
    }

    fn check(&mut self) {
        let text = self.text();
        let is_checked = self.purpose == Purpose::Filter && !Filter::is_blank(&text);
        self.mistake = if is_checked { text.parse::<Filter>().err() } else { None };
    }

    /// The next (or the previous) one of the list, round in circles; `false`: there is none.
    pub(super) fn choose(&mut self, forward: bool) -> bool {
        let Some(list) = &mut self.list else { return false };
        let number = list.candidates.len().max(1);
        list.chosen = (list.chosen + if forward { 1 } else { number - 1 }) % number;
        self.put_chosen();
        true
    }

    /// What the text at the cursor can be completed by; `false`: nothing.
    pub(super) fn complete(&mut self, find: impl Fn(&str, usize) -> Completion) -> bool {
        let (text, cursor) = (self.text(), self.cursor());
        let Completion { from, candidates, more } = find(&text, cursor);
        if candidates.is_empty() {
            return false;
        }
        let part = |from: usize, to: usize| text.chars().skip(from).take(to.saturating_sub(from)).collect::<String>();
        let is_only = candidates.len() == 1;
        let (before, typed, after) = (part(0, from), part(from, cursor), part(cursor, usize::MAX));
        self.list = Some(List { candidates, more, chosen: 0, from, before, typed, after });
        self.put_chosen();
        if is_only {
            self.list = None;
        }
        true
    }

    fn put_chosen(&mut self) {
        let Some(list) = &self.list else { return };
        let chosen = list.candidates.get(list.chosen).map_or("", |candidate| &candidate.text);
        let text = format!("{}{chosen}{}", list.before, list.after);
        let cursor = list.from + chosen.chars().count();
        self.set(&text, cursor);
    }

    /// Closes the list; `false`: none was open. `keep`: the chosen one stays, else what was typed comes back.
    pub(super) fn close_list(&mut self, keep: bool) -> bool {
        let Some(list) = self.list.take() else { return false };
        if !keep {
            let text = format!("{}{}{}", list.before, list.typed, list.after);
            self.set(&text, list.from + list.typed.chars().count());
        }
        true
    }

    /// An earlier filter, or a later one, after the last of which comes what was typed; `false`: there is none.
    pub(super) fn recall(&mut self, history: &History, earlier: bool) -> bool {
        if self.back == 0 {
            self.draft = self.text();
        }
        let Some(back) = (if earlier { self.back.checked_add(1) } else { self.back.checked_sub(1) }) else {
            return false;
        };
        let text = if back == 0 { Some(self.draft.clone()) } else { history.back(back).map(str::to_owned) };
        let Some(text) = text else { return false };
        self.back = back;
        self.set(&text, usize::MAX);
        true
    }

    /// A line up or down.
    pub(super) fn step(&mut self, up: bool) {
        self.area.move_cursor(if up { CursorMove::Up } else { CursorMove::Down });
    }
}
