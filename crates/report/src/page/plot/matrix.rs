//! Who sends how much to whom.

use std::collections::BTreeMap;

use crate::present::units;
use mpiprobe_model::Profile;
use plotters::prelude::{ChartBuilder, Color as _, Rectangle};

use super::{
    PlotError, PlotOptions,
    canvas::{FONT, GRID, LABEL, amount, draw, failed, title_size, whole},
};
use crate::page::matrix::Matrix;

/// A picture with more squares is slow in readers of papers.
const MOST_CELLS: usize = 20_000;
/// Width of the scale of colours with its labels, pixels.
const KEY: i32 = 124;
/// Steps of that scale.
const STEPS: u32 = 64;

/// What the squares stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// Bytes sent.
    #[default]
    Bytes,
    /// Calls with the partner.
    Calls,
    /// Time in those.
    Time,
}

impl Measure {
    fn title(self) -> &'static str {
        match self {
            Self::Bytes => "Bytes sent",
            Self::Calls => "Calls",
            Self::Time => "Time in calls",
        }
    }

    fn shown(self, value: u64) -> String {
        match self {
            Self::Bytes => units::bytes(value),
            Self::Calls => units::count(value),
            Self::Time => units::ns(value),
        }
    }
}

/// The communication matrix of a profile.
pub fn matrix(profile: &Profile, measure: Measure, options: &PlotOptions) -> Result<String, PlotError> {
    if profile.traffic.is_none() {
        return Err(PlotError::NoTraffic);
    }
    let is_chosen = |rank, peer, name: &str| {
        options.has_rank(rank)
            && options.has_rank(peer)
            && options.communicator.as_ref().is_none_or(|communicator| communicator == name)
    };
    let matrix = Matrix::of(profile, MOST_CELLS, &is_chosen);
    let cells = cells(&matrix, measure);
    let values = || cells.values().copied();
    let (Some(least), Some(most)) = (values().min(), values().max()) else { return Err(PlotError::NothingSent) };
    let (first, end) = match &options.ranks {
        Some(ranks) => (u64::from(*ranks.start()), (u64::from(*ranks.end()) + 1).min(matrix.ranks.max(1))),
        None => (0, matrix.ranks),
    };
    let blocks = if matrix.block > 1 { format!(", blocks of {0} × {0} ranks", matrix.block) } else { String::new() };
    let title = format!("{} between ranks{}{blocks}", measure.title(), options.chosen());
    let share = |value: u64| if options.log { log_share(value, least, most) } else { value as f64 / most as f64 };

    draw(options, &title, |area| {
        let right = i32::try_from(options.width).unwrap_or(i32::MAX).saturating_sub(KEY).max(1);
        let (picture, key) = area.split_horizontally(right);
        // The number of a rank is in the middle of its squares.
        let (low, high) = (first as f64 - 0.5, end.max(first + 1) as f64 - 0.5);
        let mut chart = ChartBuilder::on(&picture)
            .caption(&title, (FONT, title_size(&title, options)))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(60)
            .build_cartesian_2d(low..high, high..low)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .axis_style(GRID)
            .label_style((FONT, LABEL))
            .x_desc("receiving rank")
            .y_desc("sending rank")
            .x_label_formatter(&|rank| whole(*rank, |rank| format!("{rank:.0}")))
            .y_label_formatter(&|rank| whole(*rank, |rank| format!("{rank:.0}")))
            .draw()
            .map_err(failed)?;
        let side = matrix.block as f64;
        let squares = cells.iter().map(|(&(rank, peer), &value)| {
            let (left, top) = (peer as f64 * side - 0.5, rank as f64 * side - 0.5);
            Rectangle::new(
                [(left, top), ((left + side).min(high), (top + side).min(high))],
                amount(share(value)).filled(),
            )
        });
        chart.draw_series(squares).map_err(failed)?;

        let mut scale = ChartBuilder::on(&key)
            .margin(12)
            .margin_top(44)
            .margin_bottom(56)
            .y_label_area_size(78)
            .build_cartesian_2d(0.0..1.0, 0.0..1.0)
            .map_err(failed)?;
        let steps = (0..STEPS).map(|step| {
            let at = |step: u32| f64::from(step) / f64::from(STEPS);
            Rectangle::new([(0.0, at(step)), (1.0, at(step + 1))], amount(at(step)).filled())
        });
        scale.draw_series(steps).map_err(failed)?;
        let shown = |share: &f64| {
            let low = if options.log { least.max(1) as f64 } else { 0.0 };
            let value = if options.log { low * (most as f64 / low).powf(*share) } else { most as f64 * share };
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and a u64")]
            measure.shown(value.round() as u64)
        };
        scale
            .configure_mesh()
            .disable_mesh()
            .disable_x_axis()
            .axis_style(GRID)
            .label_style((FONT, LABEL))
            .y_labels(5)
            .y_label_formatter(&shown)
            .draw()
            .map_err(failed)
    })
}

/// Sums by rank and partner, those that are 0 left out.
fn cells(matrix: &Matrix, measure: Measure) -> BTreeMap<(u64, u64), u64> {
    let values = match measure {
        Measure::Bytes => &matrix.sent_bytes,
        Measure::Calls => &matrix.calls,
        Measure::Time => &matrix.time_ns,
    };
    let mut cells = BTreeMap::new();
    for ((&rank, &peer), &value) in matrix.rank.iter().zip(&matrix.peer).zip(values).filter(|(_, value)| **value > 0) {
        let cell: &mut u64 = cells.entry((rank, peer)).or_default();
        *cell = cell.saturating_add(value);
    }
    cells
}

/// Where a value is between the least and the most.
fn log_share(value: u64, least: u64, most: u64) -> f64 {
    let [value, least, most] = [value, least, most].map(|amount| (amount.max(1) as f64).ln());
    if most > least { (value - least) / (most - least) } else { 1.0 }
}
