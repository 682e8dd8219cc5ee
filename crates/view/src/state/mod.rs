//! All that the view knows: what the source has told, and where the user is. Drawing only reads it.

mod act;
mod click;
mod cursor;
mod data;
mod edit;
mod editor;
mod figures;
mod filtering;
mod glance;
mod recent;
mod saved;
mod series;
mod stacks;
mod timeline;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

pub use act::Effect;
pub(super) use cursor::Cursor;
pub(super) use data::{Data, MOST_LOOKS, RECENT_NS};
pub(super) use editor::{Editor, List, Purpose};
use figures::Figures;
pub(super) use glance::Glance;
pub(super) use saved::Saved;
pub(super) use series::{MOST as HISTORY, Point};
use timeline::CallsNow;

use super::{
    content::{Grid, Location, LocationKind, Matrix, Measure, Screen, Span},
    layout::{self, GlanceRoom, Size},
    screens::{self, TableData},
    source::{Moment, Position, Running, Stacks},
    user::{History, SavedView},
};
use mpiprobe_model::Profile;
use mpiprobe_model::analyse::RankId;
use mpiprobe_model::filter::Filter;
use mpiprobe_report::present::FindingText;

/// The view's state.
#[derive(Debug)]
pub struct State {
    data: Data,
    /// What is shown instead of the latest, if the display is frozen.
    frozen: Option<Data>,
    running: Running,
    /// Of a recording.
    position: Option<Position>,
    pub span: Span,
    /// From a screen to what is shown.
    places: Vec<Location>,
    cursors: HashMap<LocationKind, Cursor>,
    grid: Grid,
    matrix: Matrix,
    glance: Glance,
    /// Row and column of the matrix that the cursor is on.
    matrix_at: (usize, usize),
    pub measure: Measure,
    figures: Figures,
    /// Which rows are shown.
    filter: Option<Filter>,
    /// Rows that there would be without it, of a table or of pairs of ranks.
    unfiltered: Option<usize>,
    editor: Option<Editor>,
    pub history: History,
    saved: Saved,
    /// To be shown as soon as there is anything.
    pending: Option<SavedView>,
    /// The communicator whose matrix is shown, by its id; `None`: all of them together.
    matrix_of: Option<u32>,
    /// The rank whose last calls are shown; `None`: the first one.
    recent_of: Option<RankId>,
    /// Those seen last.
    stacks: Option<Arc<Stacks>>,
    /// Functions on them of which it is not shown what they have called.
    folded: HashSet<u64>,
    calls: CallsNow,
    pub is_help_open: bool,
    help_top: usize,
    /// What the last key did, or what has just happened.
    pub notice: Option<String>,
    size: Size,
}

impl State {
    pub fn new(running: Running) -> Self {
        Self {
            data: Data::default(),
            frozen: None,
            running,
            position: None,
            span: Span::default(),
            places: vec![Location::Screen(Screen::default())],
            cursors: HashMap::new(),
            grid: Grid::default(),
            matrix: Matrix::default(),
            glance: Glance::default(),
            matrix_at: (0, 0),
            measure: Measure::default(),
            figures: Figures::default(),
            filter: None,
            unfiltered: None,
            editor: None,
            history: History::default(),
            saved: Saved::default(),
            pending: None,
            matrix_of: None,
            recent_of: None,
            stacks: None,
            folded: HashSet::new(),
            calls: CallsNow::default(),
            is_help_open: false,
            help_top: 0,
            notice: None,
            size: Size::default(),
        }
    }

    /// Takes in a further profile.
    pub fn add(&mut self, profile: Arc<Profile>) {
        if profile.end.is_some() && self.running == Running::Live {
            self.running = Running::Ended;
        }
        self.data.add(profile);
        if self.frozen.is_none() {
            self.refresh();
        }
        if let Some(view) = self.pending.take() {
            self.show_view(&view);
        }
    }

    /// Shows a moment of a recording.
    pub fn go_to_moment(&mut self, moment: Moment) {
        self.data.go(&moment);
        self.position = Some(moment.position);
        self.refresh();
    }

    pub fn set_position(&mut self, position: Position) {
        self.position = Some(position);
    }

    /// Where in a recording one is.
    pub fn position(&self) -> Option<&Position> {
        self.position.as_ref()
    }

    pub fn resize(&mut self, size: Size) {
        self.size = size;
        self.calls.resize(size);
        self.scroll();
        self.refresh_matrix();
        self.refresh_glance();
    }

    pub fn size(&self) -> Size {
        self.size
    }

    /// What is shown: the latest, or what was the latest when the display was frozen.
    pub fn shown(&self) -> &Data {
        self.frozen.as_ref().unwrap_or(&self.data)
    }

    pub fn profile(&self) -> Option<&Profile> {
        self.shown().profile().map(Arc::as_ref)
    }

    pub fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    pub fn running(&self) -> Running {
        self.running
    }

    pub fn place(&self) -> Location {
        self.places.last().copied().unwrap_or(Location::Screen(Screen::Overview))
    }

    /// The screen that the place was reached from.
    pub fn screen(&self) -> Screen {
        match self.places.first() {
            Some(Location::Screen(screen)) => *screen,
            _ => Screen::default(),
        }
    }

    /// How deep below the screen one is.
    pub fn depth(&self) -> usize {
        self.places.len().saturating_sub(1)
    }

    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The matrix of the place; empty if that is none.
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    pub fn matrix_at(&self) -> (usize, usize) {
        self.matrix_at
    }

    /// What the overview shows besides sums.
    pub(super) fn glance(&self) -> &Glance {
        &self.glance
    }

    /// Whether the place is a matrix, or a part of one.
    pub(super) fn is_matrix(&self) -> bool {
        matches!(self.place(), Location::Screen(Screen::Matrix) | Location::Block(_))
    }

    pub fn cursor(&self) -> Cursor {
        self.cursors.get(&self.place().kind()).copied().unwrap_or_default()
    }

    /// What tables are made of.
    pub(super) fn data(&self) -> Option<TableData<'_>> {
        let data = self.figures.data(self.span)?;
        Some(TableData { recent: self.recent_of(), stacks: self.shown_stacks(), ..data })
    }

    /// What is probably wrong.
    pub fn findings(&self) -> &[FindingText] {
        &self.figures.findings
    }

    /// First line of the help that is shown.
    pub fn help_top(&self) -> usize {
        self.help_top
    }

    /// Works out anew what the place shows.
    fn refresh(&mut self) {
        let follows_newest = self.follows_newest();
        let data = self.frozen.as_ref().unwrap_or(&self.data);
        self.figures.renew(data, self.span, self.filter.as_ref());
        self.grid = self.data().map(|data| screens::grid(self.place(), &data)).unwrap_or_default();
        self.count_unfiltered();
        self.refresh_matrix();
        self.refresh_glance();
        let mut cursor = self.cursor();
        let (column, descending) = cursor.order(&self.grid);
        self.grid.sort(column, descending);
        cursor.find_again(&self.grid);
        if follows_newest {
            cursor.go(&self.grid, usize::MAX);
        }
        self.put(cursor);
    }

    fn refresh_matrix(&mut self) {
        let part = match self.place() {
            Location::Screen(Screen::Matrix) => None,
            Location::Block(part) => Some(part),
            _ => return,
        };
        let room = layout::matrix_room(self.size);
        let matrix = self.data().map(|data| screens::matrix(&data, self.matrix_of, part, room));
        self.matrix = matrix.unwrap_or_default();
        self.count_unfiltered_pairs();
        self.go_in_matrix(self.matrix_at);
    }

    fn refresh_glance(&mut self) {
        let room = GlanceRoom::of(self.size).filter(|_| self.place() == Location::Screen(Screen::Overview));
        self.glance = room.zip(self.data()).map(|(room, data)| Glance::of(&data, room)).unwrap_or_default();
    }

    /// To a row and a column, or the last ones.
    fn go_in_matrix(&mut self, (row, column): (usize, usize)) {
        let last = self.matrix.cells.saturating_sub(1);
        self.matrix_at = (row.min(last), column.min(last));
    }

    fn put(&mut self, cursor: Cursor) {
        self.cursors.insert(self.place().kind(), cursor);
        self.scroll();
    }

    fn scroll(&mut self) {
        let height = layout::grid_rows(self.size);
        let mut cursor = self.cursor();
        cursor.scroll(&self.grid, height);
        self.cursors.insert(self.place().kind(), cursor);
    }
}
