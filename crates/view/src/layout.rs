//! Where on the terminal everything is. Pure geometry, so that scrolling and drawing agree.

use ratatui::layout::Rect;

/// Columns and rows of the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    pub width: u16,
    pub height: u16,
}

/// Less than this cannot be drawn in.
pub(super) const SMALLEST: Size = Size { width: 60, height: 15 };
/// Lines of the help that are no keys: titles of its sections, and blanks between them.
pub(super) const HELP_EXTRA: usize = super::keys::Section::ALL.len() * 2 - 1;

/// The parts of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Areas {
    pub(super) header: Rect,
    pub(super) tabs: Rect,
    pub(super) body: Rect,
    pub(super) notice: Rect,
    pub(super) footer: Rect,
}

impl Areas {
    pub(super) fn of(size: Size) -> Self {
        let line = |y| Rect::new(0, y, size.width, 1);
        let body = Rect::new(0, 2, size.width, size.height.saturating_sub(4));
        Self {
            header: line(0),
            tabs: line(1),
            body,
            notice: line(size.height.saturating_sub(2)),
            footer: line(size.height.saturating_sub(1)),
        }
    }
}

/// Rows of a table that there is room for: below its title and the titles of its columns.
pub(super) fn grid_rows(size: Size) -> usize {
    usize::from(Areas::of(size).body.height.saturating_sub(2))
}

/// What the overview has room for besides sums; in lines, and rows and columns of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GlanceRoom {
    pub(super) left: usize,
    pub(super) sites: usize,
    pub(super) matrix: usize,
}

impl GlanceRoom {
    /// Columns from which on the overview stands in two.
    pub(super) const WIDE: u16 = 100;
    /// Lines from which on there is more on it than sums.
    const HIGH: u16 = 30;
    /// Those of the sums on the left, with the gaps between them.
    const SUMS: u16 = 10;
    /// The title of a section, and the gap before it.
    pub(super) const AROUND: usize = 2;
    /// A matrix with fewer rows says nothing, unless there are no more ranks.
    pub(super) const LEAST_MATRIX: usize = 6;
    /// With more it is no small one.
    const MOST_MATRIX: usize = 32;

    /// `None` on a screen that is too small for anything else than sums.
    pub(super) fn of(size: Size) -> Option<Self> {
        let body = Areas::of(size).body;
        let left = usize::from(body.height.saturating_sub(Self::SUMS));
        let columns = usize::from((body.width / 2).saturating_sub(MATRIX_LABELS + 1) / 2);
        (body.width >= Self::WIDE && body.height >= Self::HIGH).then(|| Self {
            left,
            sites: usize::from(body.height / 6),
            matrix: (left / 2).saturating_sub(Self::AROUND).min(columns).min(Self::MOST_MATRIX),
        })
    }
}

/// Columns of the names of rows of the matrix.
pub(super) const MATRIX_LABELS: u16 = 12;

/// Rows and columns of the matrix that there is room for, between its title, the names of columns, the legend and the line that says
/// what the cursor is on. A column takes two characters.
pub(super) fn matrix_room(size: Size) -> (usize, usize) {
    let body = Areas::of(size).body;
    (body.height.saturating_sub(4).into(), (body.width.saturating_sub(MATRIX_LABELS) / 2).into())
}

/// Lines of the help that there is room for inside its frame.
pub(super) fn help_rows(size: Size) -> usize {
    usize::from(help(size).height.saturating_sub(2))
}

/// The frame of the help.
pub(super) fn help(size: Size) -> Rect {
    let width = size.width.min(96);
    Rect::new((size.width - width) / 2, 1, width, size.height.saturating_sub(2))
}

/// The frame of the editor of several lines.
pub(super) fn editor(size: Size) -> Rect {
    let (width, height) = (size.width.saturating_sub(4).min(100), size.height.saturating_sub(6).min(12));
    Rect::new((size.width - width) / 2, 3.min(size.height - height), width, height)
}

/// The frame of a list of so many rows.
pub(super) fn list(size: Size, rows: usize) -> Rect {
    let width = size.width.saturating_sub(4).min(90);
    let height = u16::try_from(rows + 2).unwrap_or(u16::MAX).min(size.height.saturating_sub(4));
    Rect::new((size.width - width) / 2, 2.min(size.height - height), width, height)
}
