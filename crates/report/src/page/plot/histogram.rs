//! How long calls of a function take.

use crate::present::units;
use mpiprobe_model::{FunctionProfile, Profile};
use plotters::prelude::{ChartBuilder, Color as _, Rectangle, WHITE};

use super::{
    PlotError, PlotOptions,
    canvas::{FONT, GRID, LABEL, draw, failed, kind, title_size, whole},
};

/// Below one call, so that one is seen where bars are as long as logarithms.
const LEAST: f64 = 0.5;

/// Calls by duration, of a function, or of the one with most time.
pub fn histogram(profile: &Profile, function: Option<&str>, options: &PlotOptions) -> Result<String, PlotError> {
    let found = match function {
        Some(name) => {
            let named = profile.functions.iter().find(|function| function.all.name == name);
            named.ok_or_else(|| PlotError::NoFunction(name.to_owned()))?
        }
        None => profile.functions.iter().max_by_key(|function| function.all.time_ns).ok_or(PlotError::NoCalls)?,
    };
    let row = &found.all;
    let Some(first) = row.durations.iter().position(|&calls| calls > 0) else { return Err(PlotError::NoCalls) };
    let bars: Vec<(f64, u64)> =
        (0_u32..).zip(&row.durations).skip(first).map(|(bucket, calls)| (f64::from(bucket), *calls)).collect();
    let most = bars.iter().map(|(_, calls)| *calls).max().unwrap_or(1) as f64;
    let height = |calls: u64| match calls {
        0 => 0.0,
        calls if options.log => (calls as f64 / LEAST).log10(),
        calls => calls as f64,
    };
    let high = if options.log { (most / LEAST).log10() * 1.05 } else { most * 1.05 };
    let (left, right) = (first as f64, row.durations.len() as f64);
    let title = title(found, profile.ranks.len());
    draw(options, &title, |area| {
        let mut chart = ChartBuilder::on(area)
            .caption(&title, (FONT, title_size(&title, options)))
            .margin(12)
            .margin_right(28)
            .x_label_area_size(44)
            .y_label_area_size(84)
            .build_cartesian_2d(left..right, 0.0..high)
            .map_err(failed)?;
        let shown = |height: &f64| {
            let calls = if options.log { LEAST * 10_f64.powf(*height) } else { *height };
            if options.log && calls < 9.95 {
                return format!("{calls:.1}");
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of calls")]
            units::count(calls.round() as u64)
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(WHITE)
            .bold_line_style(GRID)
            .axis_style(GRID)
            .label_style((FONT, LABEL))
            .x_desc("duration of a call")
            .y_desc(if options.log { "calls (logarithmic)" } else { "calls" })
            .x_label_formatter(&|bucket| whole(*bucket, |bucket| units::duration(beginning(bucket))))
            .y_label_formatter(&shown)
            .draw()
            .map_err(failed)?;
        let rectangle = |(bucket, calls): &(f64, u64)| {
            Rectangle::new([(bucket + 0.04, 0.0), (bucket + 0.96, height(*calls))], kind(0).filled())
        };
        chart.draw_series(bars.iter().map(rectangle)).map_err(failed).map(drop)
    })
}

/// Where a bucket begins, ns: `[0]` is of 0 ns, `[n]` of 2ⁿ⁻¹ and more.
fn beginning(bucket: f64) -> f64 {
    if bucket < 1.0 { 0.0 } else { (bucket - 1.0).exp2() }
}

fn title(function: &FunctionProfile, ranks: usize) -> String {
    let row = &function.all;
    let [median, p99] = [row.p50_ns, row.p99_ns].map(units::ns);
    format!("{}: {} calls of {ranks} ranks, median {median}, 99 % below {p99}", row.name, units::count(row.calls))
}
