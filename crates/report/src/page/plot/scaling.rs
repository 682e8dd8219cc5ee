//! Efficiencies of runs of different numbers of ranks, as the POP Centre of Excellence defines them (co-design.pop-coe.eu).

use std::collections::BTreeSet;

use mpiprobe_model::{Efficiency, Profile, Spent};
use plotters::prelude::{
    BLACK, ChartBuilder, Circle, Color as _, IntoLogRange as _, PathElement, SeriesLabelPosition, WHITE,
};

use super::{
    PlotError, PlotOptions,
    canvas::{FONT, GRID, LABEL, draw, failed, kind, title_size},
};

/// One run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalingPoint {
    pub ranks: usize,
    /// `None`: not known.
    pub efficiency: Option<Efficiency>,
    /// Time outside MPI of all ranks, ns; without what starts and ends MPI.
    pub useful_ns: Option<f64>,
}

impl ScalingPoint {
    pub fn of(profile: &Profile) -> Self {
        let useful = profile.ranks.iter().map(|rank| {
            let startup =
                rank.groups.iter().find(|group| group.group == mpiprobe_functions::Group::InitFinalize.title());
            let spent = Spent {
                wall_ns: rank.wall_ns,
                thread_wall_ns: rank.thread_wall_ns,
                mpi_ns: rank.mpi_ns,
                startup_ns: startup.map_or(0, |group| group.time_ns),
                unseen_ns: rank.unseen_ns,
                untimed_calls: rank.untimed_calls,
            };
            spent.useful().map(|(useful_ns, _)| useful_ns)
        });
        Self { ranks: profile.ranks.len(), efficiency: profile.totals.efficiency, useful_ns: useful.sum() }
    }
}

/// A line of the picture: its name, and what it is at each run.
type Line = (&'static str, Vec<(f64, f64)>);

/// What a line is of; `None`: not known of this run.
type Measure<'a> = &'a dyn Fn(&ScalingPoint) -> Option<f64>;

/// Efficiencies over numbers of ranks. Of the run with fewest ranks computation scaling is 100 %: there is the same to do in all runs.
pub fn scaling(points: &[ScalingPoint], options: &PlotOptions) -> Result<String, PlotError> {
    let mut points = points.to_vec();
    points.sort_by_key(|point| point.ranks);
    let sizes: BTreeSet<usize> = points.iter().map(|point| point.ranks).collect();
    let (Some(&fewest), Some(&most)) = (sizes.first(), sizes.last()) else { return Err(PlotError::OneSize(0)) };
    if fewest == most {
        return Err(PlotError::OneSize(most));
    }
    let lines = lines(&points);
    let known = lines.iter().flat_map(|(_, line)| line.iter().map(|(_, percent)| *percent));
    let high = known.fold(100.0, f64::max) * 1.08;
    let title = format!("Efficiency from {fewest} to {most} ranks");
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

/// Per cent; of several runs of one number of ranks the mean. What is not known of one run is left out.
fn lines(points: &[ScalingPoint]) -> Vec<Line> {
    let reference = points.iter().find_map(|point| point.useful_ns.filter(|useful| *useful > 0.0));
    let computation = |point: &ScalingPoint| Some(reference? / point.useful_ns.filter(|useful| *useful > 0.0)?);
    let measures: [(&'static str, Measure<'_>); 5] = [
        ("global efficiency", &|point| Some(point.efficiency?.parallel * computation(point)?)),
        ("parallel efficiency", &|point| Some(point.efficiency?.parallel)),
        ("load balance", &|point| Some(point.efficiency?.load_balance)),
        ("communication efficiency", &|point| Some(point.efficiency?.communication)),
        ("computation scaling", &computation),
    ];
    let line = |measure: Measure<'_>| {
        let of_sizes = points.chunk_by(|one, other| one.ranks == other.ranks).filter_map(|runs| {
            let known: Vec<f64> = runs.iter().filter_map(measure).collect();
            let mean = 100.0 * known.iter().sum::<f64>() / known.len() as f64;
            Some((runs.first()?.ranks.max(1) as f64, mean)).filter(|_| !known.is_empty())
        });
        of_sizes.collect()
    };
    measures.into_iter().map(|(name, measure)| (name, line(measure))).collect()
}
