//! What a large screen shows of the job at a glance, besides sums: its ranks, call sites and matrix. Worked out once, as tables are.

use crate::{
    content::{Grid, Location, Matrix, Row, Screen},
    layout::GlanceRoom,
    screens::{self, TableData},
};

/// Column of the ranks' table with their share of time in MPI.
const MPI_SHARE: &str = "MPI %";

#[derive(Debug, Default)]
pub(crate) struct Glance {
    /// In their order; of many, those that stand out.
    pub ranks: Grid,
    /// How many ranks there are.
    pub all_ranks: usize,
    /// Share of time in MPI, per cent, of every rank in the order of ranks, `None` where it is not known; empty if all are among
    /// those above.
    pub shares: Vec<Option<f64>>,
    /// Most time first.
    pub sites: Grid,
    /// Without cells if nothing is to be shown.
    pub matrix: Matrix,
}

impl Glance {
    pub(super) fn of(data: &TableData<'_>, room: GlanceRoom) -> Self {
        // Of everything, whatever the filter.
        let data = data.unfiltered();
        let mut matrix = screens::matrix(&data, None, None, (room.matrix, room.matrix));
        let least = usize::try_from(matrix.number).unwrap_or(usize::MAX).min(GlanceRoom::LEAST_MATRIX);
        if !matrix.empty.is_empty() || room.matrix < least || matrix.cells < 2 {
            matrix = Matrix::default();
        }
        // What the matrix does not take is for ranks.
        let lines = room.left.saturating_sub(if matrix.cells > 0 { matrix.cells + GlanceRoom::AROUND } else { 0 });
        let mut sites = screens::grid(Location::Screen(Screen::CallSites), &data);
        let (column, descending) = sites.natural;
        sites.sort(column, descending);
        sites.rows.truncate(room.sites);
        let mut glance = Self { sites, matrix, ..Self::default() };
        glance.take_ranks(&data, lines.saturating_sub(GlanceRoom::AROUND));
        glance
    }

    fn take_ranks(&mut self, data: &TableData<'_>, most: usize) {
        let mut grid = screens::grid(Location::Screen(Screen::Ranks), data);
        let (column, descending) = grid.natural;
        grid.sort(column, descending);
        self.all_ranks = grid.rows.len();
        if grid.rows.len() > most {
            self.shares = data.change.ranks.iter().map(|(change, _)| change.mpi_percent()).collect();
            // One line is theirs.
            choose(&mut grid, most.saturating_sub(1));
        }
        self.ranks = grid;
    }
}

/// Keeps those that stand out: half of the room for those that are marked, the rest for those that others wait for.
fn choose(grid: &mut Grid, most: usize) {
    let Some(share) = grid.columns.iter().position(|column| column.title == MPI_SHARE) else { return };
    let rows = std::mem::take(&mut grid.rows);
    let number = rows.len();
    let mut by_place: Vec<(usize, Row)> = rows.into_iter().enumerate().collect();
    let marked = by_place.iter().filter(|(_, row)| row.marked).count();
    let marked = marked.min(most.div_ceil(2));
    // Marked ones first, the others by their share; of equal ones the first.
    let share = |row: &Row| row.cells.get(share).map_or(f64::MAX, |cell| cell.number_or(f64::MAX));
    by_place.sort_by_key(|(place, row)| (!row.marked, *place));
    let mut rest = by_place.split_off(marked.min(number));
    rest.sort_by(|(a, one), (b, other)| share(one).total_cmp(&share(other)).then(a.cmp(b)));
    by_place.extend(rest.into_iter().take(most - marked));
    by_place.sort_by_key(|(place, _)| *place);
    grid.rows = by_place.into_iter().map(|(_, row)| row).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{Cell, Column, RowId, SortKey};

    const COLUMNS: &[Column] = &[Column::right("rank", 6, 0), Column::left(MPI_SHARE, 14, 0)];

    fn chosen(ranks: &[(f64, bool)], most: usize) -> Vec<String> {
        let row = |(index, (share, marked)): (usize, &(f64, bool))| Row {
            id: RowId::Site(index as u64),
            cells: vec![Cell::text(index.to_string()), Cell { key: SortKey::Number(*share), ..Cell::text("") }],
            marked: *marked,
            opens: None,
        };
        let mut grid = Grid { columns: COLUMNS, rows: ranks.iter().enumerate().map(row).collect(), ..Grid::default() };
        choose(&mut grid, most);
        grid.rows.iter().map(|row| row.cells[0].plain()).collect()
    }

    #[test]
    fn ranks_that_stand_out_are_chosen_and_stay_in_their_order() {
        let ranks = [(90.0, false), (10.0, false), (90.0, true), (50.0, false), (90.0, true), (90.0, true)];
        assert_eq!(chosen(&ranks, 4), ["1", "2", "3", "4"]);
        assert_eq!(chosen(&ranks, 0), Vec::<String>::new());
        assert_eq!(chosen(&[(5.0, false), (5.0, false), (1.0, false)], 2), ["0", "2"]);
    }
}
