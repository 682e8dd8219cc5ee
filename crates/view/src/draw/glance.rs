//! Ranks, call sites and matrix of the job, as far as there is room beside its sums.

use mpiprobe_report::present::units::percent;

use crate::paint::{
    Theme,
    line::{Line, Section, fit, title, width},
};
use crate::{
    content::{Cell, Content, Grid, Matrix, Measure, Row, Tone},
    screens::TableData,
    state::Glance,
};

/// Columns that a share and its bar take.
const BAR: u16 = 10;
/// Of a rank's number, and of how long it has been doing what it does.
const RANK: usize = 6;
const SINCE: u16 = 8;
/// Names of rows of the matrix.
const LABELS: usize = 11;

/// What each rank does, and its share of time in MPI.
pub(super) fn ranks(glance: &Glance, data: &TableData<'_>, wide: u16, theme: Theme) -> Section {
    let (shown, all) = (glance.ranks.rows.len(), glance.all_ranks);
    if shown == 0 {
        return Vec::new();
    }
    let some = if shown < all { format!(": {shown} of {all}, stuck or least in MPI") } else { String::new() };
    let mut lines = vec![title(&format!("Ranks ({}){some}", data.span()), theme)];
    if !glance.shares.is_empty() {
        let name = "  MPI % of each  ";
        let room = wide.saturating_sub(width(name) + 1);
        let history = theme.symbols.sparkline(means(&glance.shares, room.into()).into_iter(), room);
        lines.push(Line::new(theme).add(Tone::Dim, name).add(Tone::Title, history.trim_start()));
    }
    lines.extend(glance.ranks.rows.iter().map(|row| rank(&glance.ranks, row, wide, theme)));
    lines
}

fn rank(grid: &Grid, row: &Row, wide: u16, theme: Theme) -> Line {
    let cell = |title: &str| cell(grid, row, title);
    let text = |title: &str| cell(title).map(Cell::plain).unwrap_or_default();
    let (share, shown) = match cell("MPI %").map(|cell| &cell.content) {
        Some(Content::Bar(share, text)) => (*share, text.clone()),
        // It is not known.
        _ => (0.0, text("MPI %")),
    };
    let tone = cell("now").map_or(Tone::Plain, |cell| cell.tone);
    let taken = u16::try_from(RANK).unwrap_or(0) + 2 + 8 + BAR + 1 + SINCE + 2;
    let room = wide.saturating_sub(taken);
    let now = fit(&text("now"), room, theme.symbols.cut());
    let blanks = " ".repeat(room.saturating_sub(width(&now)).into());
    Line::new(theme)
        .add(if row.marked { Tone::Alarm } else { Tone::Plain }, if row.marked { "!" } else { " " })
        .add(Tone::Plain, &format!("{:>RANK$} ", text("rank")))
        .add(Tone::Plain, &format!("{shown:>5} % "))
        .add(Tone::Title, &theme.symbols.bar(share, BAR))
        .add(tone, &format!(" {now}{blanks}"))
        .add(Tone::Dim, &format!(" {:>1$}", text("for"), usize::from(SINCE)))
}

/// At most so many values, each the mean of those known of some that follow one another; nothing is drawn where none is.
fn means(values: &[Option<f64>], most: usize) -> Vec<f64> {
    let each = values.len().div_ceil(most.max(1)).max(1);
    let mean = |part: &[Option<f64>]| {
        let data = || part.iter().flatten();
        data().sum::<f64>() / data().count().max(1) as f64
    };
    values.chunks(each).map(mean).collect()
}

/// Where most time goes.
pub(super) fn sites(glance: &Glance, wide: u16, theme: Theme) -> Section {
    let grid = &glance.sites;
    if grid.rows.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![title("Call sites (since the beginning)", theme)];
    lines.extend(grid.rows.iter().map(|row| {
        let text = |title: &str| cell(grid, row, title).map(Cell::plain).unwrap_or_default();
        let (share, shown) = match cell(grid, row, "wall %").map(|cell| &cell.content) {
            Some(Content::Bar(share, _)) => (*share, percent(100.0 * share)),
            _ => (0.0, String::new()),
        };
        let room = usize::from(wide).saturating_sub(2 + 24 + 8 + usize::from(BAR) + 1);
        let site = fit(&text("call site"), u16::try_from(room).unwrap_or(u16::MAX), theme.symbols.cut());
        Line::new(theme)
            .add(Tone::Plain, &format!("  {:<24}", text("function")))
            .add(Tone::Plain, &format!("{shown:>5} % "))
            .add(Tone::Title, &theme.symbols.bar(share, BAR))
            .add(Tone::Dim, &format!(" {site}"))
    }));
    lines
}

/// Who sends how much to whom, in shades.
pub(super) fn matrix(matrix: &Matrix, measure: Measure, theme: Theme) -> Section {
    if matrix.cells == 0 {
        return Vec::new();
    }
    let of = matrix.job.as_ref().map(|job| format!(" of {job}")).unwrap_or_default();
    let mut lines = vec![title(&format!("Matrix{of}: {} from row to column", measure.title()), theme)];
    let highest = matrix.highest(measure);
    lines.extend((0..matrix.cells).map(|row| {
        let (first, last) = matrix.ranks(matrix.part.from, row);
        let label = if first == last { first.to_string() } else { format!("{first}-{last}") };
        let cells: String = (0..matrix.cells)
            .map(|column| theme.symbols.shade(matrix.value((row, column), measure), highest).to_string().repeat(2))
            .collect();
        Line::new(theme)
            .add(Tone::Dim, &format!("{label:>LABELS$} "))
            .styled(theme.palette.of(Tone::Good), cells.trim_end())
    }));
    lines
}

fn cell<'a>(grid: &Grid, row: &'a Row, title: &str) -> Option<&'a Cell> {
    row.cells.get(grid.columns.iter().position(|column| column.title == title)?)
}
