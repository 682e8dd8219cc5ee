//! Efficiencies of runs of different numbers of ranks, as the POP Centre of Excellence defines them (co-design.pop-coe.eu).

use plotters::prelude::{
    BLACK, ChartBuilder, Circle, Color as _, IntoLogRange as _, PathElement, SeriesLabelPosition, WHITE,
};

use super::{
    PlotError, PlotOptions,
    canvas::{FONT, GRID, LABEL, draw, failed, kind, title_size},
};
use crate::{Scaling, ScalingRow};

/// A line of the picture: its name, and what it is at each run.
type Line = (&'static str, Vec<(f64, f64)>);

/// What a line is of; `None`: not known of these runs.
type Measure = fn(&ScalingRow) -> Option<f64>;

/// Efficiencies over numbers of ranks. Of the runs with fewest ranks computation scaling is 100 %.
pub fn scaling(scaling: &Scaling, options: &PlotOptions) -> Result<String, PlotError> {
    let (fewest, most) = match scaling.rows.as_slice() {
        [first, .., last] => (first.ranks, last.ranks),
        [only] => return Err(PlotError::OneSize(only.ranks)),
        [] => return Err(PlotError::OneSize(0)),
    };
    let lines = lines(scaling);
    let known = lines.iter().flat_map(|(_, line)| line.iter().map(|(_, percent)| *percent));
    let high = known.fold(100.0, f64::max) * 1.08;
    let kind_of = if scaling.is_weak { "weak" } else { "strong" };
    let title = format!("Efficiency from {fewest} to {most} ranks ({kind_of} scaling)");
    draw(options, &title, |area| {
        let (low, end) = (fewest.max(1) as f64, most as f64);
        let mut chart = ChartBuilder::on(area)
            .caption(&title, (FONT, title_size(&title, options)))
            .margin(12)
            .margin_right(24)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d((low..end).log_scale().base(2.0), 0.0..high)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(GRID)
            .axis_style(GRID)
            .label_style((FONT, LABEL))
            .x_desc("ranks (logarithmic)")
            .y_desc("efficiency [%]")
            .x_label_formatter(&|ranks| format!("{ranks:.0}"))
            .y_label_formatter(&|percent| format!("{percent:.0}"))
            .draw()
            .map_err(failed)?;
        for (number, (name, line)) in lines.iter().enumerate() {
            let colour = kind(number);
            let width = if number == 0 { 3 } else { 2 };
            chart
                .draw_series([PathElement::new(line.clone(), colour.stroke_width(width))])
                .map_err(failed)?
                .label(*name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], colour.stroke_width(width)));
            chart.draw_series(line.iter().map(|at| Circle::new(*at, 4, colour.filled()))).map_err(failed)?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerLeft)
            .label_font((FONT, LABEL))
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.2))
            .draw()
            .map_err(failed)
    })
}

/// Per cent.
fn lines(scaling: &Scaling) -> Vec<Line> {
    let measures: [(&'static str, Measure); 5] = [
        ("global efficiency", |row| row.global),
        ("parallel efficiency", |row| row.parallel),
        ("load balance", |row| row.load_balance),
        ("communication efficiency", |row| row.communication),
        ("computation scaling", |row| row.computation),
    ];
    let line =
        |of: Measure| scaling.rows.iter().filter_map(|row| Some((row.ranks.max(1) as f64, 100.0 * of(row)?))).collect();
    measures.into_iter().map(|(name, of)| (name, line(of))).collect()
}
