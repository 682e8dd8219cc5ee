//! Time in MPI over the moments of a recording.

use mpiprobe_model::Profile;
use plotters::prelude::{BLACK, ChartBuilder, Color as _, Polygon, Rectangle, SeriesLabelPosition, WHITE};

use super::{
    PlotError, PlotOptions,
    canvas::{FONT, GRID, LABEL, draw, failed, kind, title_size},
};
use crate::page::html::Series;

/// Shares of wall time by group of functions, over all ranks, stacked.
pub fn timeline(profile: &Profile, series: &Series, options: &PlotOptions) -> Result<String, PlotError> {
    let shares = series.shares(profile);
    if shares.times_ns.len() < 3 {
        return Err(PlotError::OneMoment);
    }
    let seconds: Vec<f64> = shares.times_ns.iter().map(|ns| *ns as f64 / 1e9).collect();
    let (first, last) = (seconds.first().copied().unwrap_or(0.0), seconds.last().copied().unwrap_or(1.0));
    // Of each group the lower and the upper edge, in each interval.
    let intervals = seconds.len() - 1;
    let mut floor = vec![0.0; intervals];
    let mut layers = Vec::new();
    for (name, percents) in &shares.groups {
        let top: Vec<f64> = floor.iter().zip(percents).map(|(floor, percent)| floor + percent.max(0.0)).collect();
        layers.push((*name, std::mem::replace(&mut floor, top.clone()), top));
    }
    let most = floor.iter().copied().fold(1.0, f64::max);
    let high = (most * 1.1).min(100.0);
    let title = format!("Time in MPI of {} ranks", profile.ranks.len());
    draw(options, &title, |area| {
        let mut chart = ChartBuilder::on(area)
            .caption(&title, (FONT, title_size(&title, options)))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(first..last, 0.0..high)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(GRID)
            .axis_style(GRID)
            .label_style((FONT, LABEL))
            .x_desc("time since the beginning of observation [s]")
            .y_desc("share of the ranks' wall time [%]")
            .x_label_formatter(&|second| if last < 10.0 { format!("{second:.1}") } else { format!("{second:.0}") })
            .y_label_formatter(&|percent| format!("{percent:.0}"))
            .draw()
            .map_err(failed)?;
        for (number, (name, low, top)) in layers.iter().enumerate() {
            let edge = |heights: &[f64]| -> Vec<(f64, f64)> {
                let ends = seconds.windows(2).zip(heights);
                ends.flat_map(|(ends, height)| ends.iter().map(|end| (*end, *height)).collect::<Vec<_>>()).collect()
            };
            let mut outline = edge(top);
            outline.extend(edge(low).into_iter().rev());
            let colour = kind(number);
            chart
                .draw_series([Polygon::new(outline, colour.filled())])
                .map_err(failed)?
                .label(*name)
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled()));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .label_font((FONT, LABEL))
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.2))
            .draw()
            .map_err(failed)
    })
}
