//! A table: columns, rows, and the order of the rows. How it is drawn is none of its business.

use std::cmp::Ordering;

use mpiprobe_model::analyse::RankId;

use super::Location;

/// What something means for the user, from which its colour follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    Dim,
    Title,
    Key,
    Good,
    Warning,
    Alarm,
    /// A group of functions, by its index.
    Group(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub title: &'static str,
    /// Characters; the least, if it takes what others leave.
    pub width: u16,
    pub fills: bool,
    pub align: Align,
    /// Where there is not enough room, columns with higher numbers go first. Those with 0 stay.
    pub dispensable: u8,
}

impl Column {
    /// A number or a few letters.
    pub const fn right(title: &'static str, width: u16, dispensable: u8) -> Self {
        Self { title, width, fills: false, align: Align::Right, dispensable }
    }

    pub const fn left(title: &'static str, width: u16, dispensable: u8) -> Self {
        Self { title, width, fills: false, align: Align::Left, dispensable }
    }

    /// Text of any length.
    pub const fn text(title: &'static str, width: u16, dispensable: u8) -> Self {
        Self { title, width, fills: true, align: Align::Left, dispensable }
    }
}

/// What a row is about, whichever place it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowId {
    Rank(RankId),
    /// By its id; `None`: threads that are not told apart.
    Thread(RankId, Option<u32>),
    Function(&'static str),
    /// What stands between program and library, by its place; `None`: all of that.
    Layer(Option<u32>),
    Site(u64),
    /// Waits of one kind in one thread at one place, by a number made of that.
    Waits(u64),
    Communicator(u32),
    /// By its place among those of the rank.
    Request(RankId, u32),
    /// A call that is open, by its place among all of those.
    OpenCall(RankId, u32),
    /// A call that has returned, by its number.
    RecentCall(RankId, u64),
    /// Calls that were not seen, before the one of that number.
    RecentGap(RankId, u64),
    /// A function on stacks, by a number made of it and of those that lead there.
    Frame(u64),
    /// A line of a histogram: of which quantity, which line.
    Bucket(u8, u32),
}

impl RowId {
    /// The rank that it is about.
    pub fn rank(self) -> Option<RankId> {
        match self {
            Self::Rank(id)
            | Self::Thread(id, _)
            | Self::Request(id, _)
            | Self::OpenCall(id, _)
            | Self::RecentCall(id, _)
            | Self::RecentGap(id, _) => Some(id),
            Self::Function(_)
            | Self::Layer(_)
            | Self::Site(_)
            | Self::Waits(_)
            | Self::Communicator(_)
            | Self::Frame(_)
            | Self::Bucket(..) => None,
        }
    }
}

/// What cells are sorted by. Unknown ones come last.
#[derive(Clone, Debug, PartialEq)]
pub enum SortKey {
    Number(f64),
    Text(String),
    Unknown,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Text(String),
    /// A bar that is filled to this share (0 to 1), and what stands behind it.
    Bar(f64, String),
    /// A bar of several parts, shares of 1 together at most.
    Parts(Vec<(Tone, f64)>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub content: Content,
    pub key: SortKey,
    pub tone: Tone,
}

impl Cell {
    /// A number as it is shown.
    pub fn number(value: f64, shown: String) -> Self {
        Self { content: Content::Text(shown), key: SortKey::Number(value), tone: Tone::Plain }
    }

    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { key: SortKey::Text(text.clone()), content: Content::Text(text), tone: Tone::Plain }
    }

    /// What is not known, or does not apply: shown as given.
    pub fn unknown(shown: &str) -> Self {
        Self { content: Content::Text(shown.into()), key: SortKey::Unknown, tone: Tone::Dim }
    }

    #[must_use]
    pub fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// What it is sorted by, if that is a number.
    pub fn number_or(&self, other: f64) -> f64 {
        if let SortKey::Number(number) = self.key { number } else { other }
    }

    /// What it says, for the clipboard.
    pub fn plain(&self) -> String {
        match &self.content {
            Content::Text(text) | Content::Bar(_, text) => text.clone(),
            Content::Parts(_) => String::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub id: RowId,
    pub cells: Vec<Cell>,
    /// It stands out: something may be wrong there.
    pub marked: bool,
    /// Where a look into it leads.
    pub opens: Option<Location>,
}

/// The table of a place.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    /// What the rows are, and of which time.
    pub title: String,
    pub columns: &'static [Column],
    pub rows: Vec<Row>,
    /// Said if there are no rows.
    pub empty: &'static str,
    /// By which column rows are sorted as long as nobody asks for another, and whether the largest comes first.
    pub natural: (usize, bool),
}

impl Grid {
    /// Puts rows into order by a column; equal ones stay as they are. `descending`: the largest first.
    pub(crate) fn sort(&mut self, column: usize, descending: bool) {
        let key = |row: &Row| row.cells.get(column).map_or(SortKey::Unknown, |cell| cell.key.clone());
        let mut keyed: Vec<(SortKey, Row)> =
            std::mem::take(&mut self.rows).into_iter().map(|row| (key(&row), row)).collect();
        keyed.sort_by(|(a, _), (b, _)| compare(a, b, descending));
        self.rows = keyed.into_iter().map(|(_, row)| row).collect();
    }
}

/// Whatever the order, what is unknown comes last.
fn compare(a: &SortKey, b: &SortKey, descending: bool) -> Ordering {
    let known = match (a, b) {
        (SortKey::Unknown, SortKey::Unknown) => return Ordering::Equal,
        (SortKey::Unknown, _) => return Ordering::Greater,
        (_, SortKey::Unknown) => return Ordering::Less,
        (SortKey::Number(a), SortKey::Number(b)) => a.total_cmp(b),
        (SortKey::Text(a), SortKey::Text(b)) => a.cmp(b),
        (SortKey::Number(_), SortKey::Text(_)) => Ordering::Less,
        (SortKey::Text(_), SortKey::Number(_)) => Ordering::Greater,
    };
    if descending { known.reverse() } else { known }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_comes_last_in_either_order() {
        let keys = [SortKey::Unknown, SortKey::Number(2.0), SortKey::Number(7.0)];
        let sorted = |descending| {
            let mut sorted = keys.to_vec();
            sorted.sort_by(|a, b| compare(a, b, descending));
            sorted
        };
        assert_eq!(sorted(false), [SortKey::Number(2.0), SortKey::Number(7.0), SortKey::Unknown]);
        assert_eq!(sorted(true), [SortKey::Number(7.0), SortKey::Number(2.0), SortKey::Unknown]);
    }
}
