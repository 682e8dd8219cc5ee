//! The calls of a trace, a lane for each thread or several ranks.

use std::{collections::HashMap, ops::RangeInclusive};

use mpiprobe_functions::Group;
use mpiprobe_replay::{
    Clocks,
    timeline::{Cell, Frame, Lane, Matching, Message, Messages, Painter, Picture, lanes},
};
use mpiprobe_trace::{LocationId, ReadError, Span, Trace};
use plotters::{
    prelude::{BLACK, ChartBuilder, Color as _, IntoFont as _, PathElement, Polygon, RGBColor, Rectangle, Text, WHITE},
    style::text_anchor::{HPos, Pos, VPos},
};

use super::{
    PlotError, PlotOptions,
    canvas::{FONT, GRID, LABEL, draw, failed, kind, title_size},
};
use crate::present::units;

/// A picture with more cells is slow in readers of papers.
const MOST_CELLS: usize = 20_000;
/// More arrows make nothing clearer.
const MOST_ARROWS: usize = 400;
/// The least height of a lane, pixels.
const LEAST_HEIGHT: usize = 5;
/// Height of the legend, pixels.
const KEY: u32 = 30;
/// Around the lanes, pixels: names of lanes, the edge on the right.
const LEFT: u32 = 72;
const RIGHT: u32 = 24;
/// Of a letter in a lane, pixels.
const LETTER: u32 = 11;
/// Groups that have a colour of their own, and one for the rest.
const OWN_COLOURS: usize = 7;

/// Why a trace cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum CallsError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Plot(#[from] PlotError),
}

/// Calls of a span of time, on the common clock, of the ranks that were chosen; and whether all of it could be read.
pub fn calls(
    trace: &dyn Trace,
    clocks: &Clocks,
    span: Span,
    options: &PlotOptions,
) -> Result<(String, bool), CallsError> {
    let whole = clocks.span(trace);
    let span = Span { from_ns: span.from_ns.max(whole.from_ns), until_ns: span.until_ns.min(whole.until_ns) };
    let chosen = chosen(trace, options.ranks.as_ref());
    if chosen.is_empty() || span.from_ns >= span.until_ns {
        return Err(PlotError::NothingThere.into());
    }
    let height = (options.height as usize).saturating_sub(140).max(LEAST_HEIGHT);
    let fold = chosen.len().div_ceil(height / LEAST_HEIGHT).max(1).next_power_of_two();
    let groups: Vec<&[Lane]> = chosen.chunks(fold).collect();
    let pixels = (options.width as usize).saturating_sub((LEFT + RIGHT) as usize).max(1);
    let frame = Frame {
        span,
        columns: pixels.min((MOST_CELLS / groups.len()).max(64)),
        lanes: groups.iter().map(|lane| lane.iter().map(|thread| thread.location).collect()).collect(),
    };
    let mut painter = Painter::new(trace, clocks, &frame);
    while painter.step()? {}
    let picture = painter.picture();
    if picture.longest.is_empty() {
        return Err(PlotError::NothingThere.into());
    }
    let messages = messages(trace, clocks, span)?;
    let names: Vec<String> = groups.iter().map(|lane| name(lane)).collect();
    let svg = drawn(picture, messages.as_ref(), &names, (whole.from_ns, fold), options)?;
    Ok((svg, picture.damaged == 0))
}

fn chosen(trace: &dyn Trace, ranks: Option<&RangeInclusive<u32>>) -> Vec<Lane> {
    let definitions = trace.definitions();
    let rank = |location: LocationId| {
        let process = definitions.location(location).and_then(|location| definitions.process(location.process));
        process.and_then(|process| process.rank)
    };
    let is_chosen =
        |lane: &Lane| ranks.is_none_or(|ranks| rank(lane.location).is_some_and(|rank| ranks.contains(&rank)));
    lanes(definitions).into_iter().filter(is_chosen).collect()
}

fn name(lane: &[Lane]) -> String {
    match lane {
        [] => String::new(),
        [one] => one.name.clone(),
        [first, .., last] => format!("{}–{}", first.name, last.name),
    }
}

/// `None`: there are too many events.
fn messages(trace: &dyn Trace, clocks: &Clocks, span: Span) -> Result<Option<Messages>, ReadError> {
    let Some(mut matching) = Matching::new(trace, clocks, span) else { return Ok(None) };
    loop {
        if let Some(found) = matching.step()? {
            return Ok(Some(found));
        }
    }
}

/// Of the axis: how many ns a unit has, and its name.
fn unit(span: Span) -> (f64, &'static str) {
    match span.until_ns - span.from_ns {
        0..2_000 => (1.0, "ns"),
        2_000..2_000_000 => (1e3, "µs"),
        2_000_000..2_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    }
}

fn colour(group: usize) -> RGBColor {
    kind(group.min(OWN_COLOURS))
}

fn drawn(
    picture: &Picture,
    messages: Option<&Messages>,
    names: &[String],
    (begin_ns, fold): (u64, usize),
    options: &PlotOptions,
) -> Result<String, PlotError> {
    let frame = &picture.frame;
    let (scale, unit) = unit(frame.span);
    let x = |ns: u64| ns.saturating_sub(begin_ns) as f64 / scale;
    let arrows = arrows(messages, frame);
    let among = if fold > 1 { format!(", {fold} threads in a lane") } else { String::new() };
    let length = units::ns(frame.span.until_ns - frame.span.from_ns);
    let title = format!("Calls of MPI in {length}{}{among}", options.chosen());
    let axis =
        format!("time since the beginning of the trace [{unit}]{}", arrows.as_ref().err().map_or("", String::as_str));
    draw(options, &title, |area| {
        let (chart_area, key) = area.split_vertically(options.height.saturating_sub(KEY));
        let lanes = frame.lanes.len();
        let mut chart = ChartBuilder::on(&chart_area)
            .caption(&title, (FONT, title_size(&title, options)))
            .margin(8)
            .margin_right(RIGHT)
            .x_label_area_size(44)
            .y_label_area_size(LEFT)
            .build_cartesian_2d(x(frame.span.from_ns)..x(frame.span.until_ns), lanes as f64..0.0)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .axis_style(GRID)
            .label_style((FONT, LABEL))
            .x_desc(axis)
            .y_desc("rank")
            .y_labels(0)
            .x_label_formatter(&|time| number(*time, x(frame.span.until_ns) - x(frame.span.from_ns)))
            .draw()
            .map_err(failed)?;
        let boxes = boxes(picture);
        let rectangles = boxes.iter().map(|one| {
            let (left, right) = (x(frame.edge(one.first)), x(frame.edge(one.last + 1)));
            let high = |share: f64| one.lane as f64 + 0.92 - 0.84 * share;
            Rectangle::new([(left, high(one.until)), (right, high(one.from))], colour(one.group).filled())
        });
        chart.draw_series(rectangles).map_err(failed)?;
        let calls = picture.wide.iter().map(|call| {
            let (begin, end) = (call.begin_ns.max(frame.span.from_ns), call.end_ns.min(frame.span.until_ns));
            let (top, ground) = (call.lane as f64 + 0.08, call.lane as f64 + 0.92);
            let group = usize::from(call.function.function().group.index());
            Rectangle::new([(x(begin), top), (x(end), ground)], colour(group).filled())
        });
        chart.draw_series(calls).map_err(failed)?;
        let ground = (0..lanes).map(|lane| {
            let y = lane as f64 + 0.92;
            PathElement::new([(x(frame.span.from_ns), y), (x(frame.span.until_ns), y)], GRID)
        });
        chart.draw_series(ground).map_err(failed)?;
        let lane_pixels = options.height.saturating_sub(140) as usize / lanes.max(1);
        let pixel = (x(frame.span.until_ns) - x(frame.span.from_ns))
            / f64::from(options.width.saturating_sub(LEFT + RIGHT).max(1));
        let middle = Pos::new(HPos::Center, VPos::Center);
        let font = (FONT, LETTER + 2).into_font().color(&WHITE).pos(middle);
        let texts = picture.wide.iter().filter_map(|call| {
            let (left, right) = (call.begin_ns.max(frame.span.from_ns), call.end_ns.min(frame.span.until_ns));
            let name = call.function.function().short_name();
            let needed = f64::from(LETTER) * 0.75 * name.len() as f64 * pixel;
            let has_room = x(right) - x(left) > needed && lane_pixels > LETTER as usize + 4;
            has_room.then(|| Text::new(name, (x(left).midpoint(x(right)), call.lane as f64 + 0.5), font.clone()))
        });
        chart.draw_series(texts).map_err(failed)?;
        let at = |message: &Message, from: usize, to: usize| {
            let (low, high) = if from < to { (0.85, 0.15) } else { (0.15, 0.85) };
            [(x(message.send.entry_ns), from as f64 + low), (x(message.done.return_ns), to as f64 + high)]
        };
        let ends: Vec<[(f64, f64); 2]> =
            arrows.unwrap_or_default().iter().map(|(message, from, to)| at(message, *from, *to)).collect();
        let inside = |end: (f64, f64)| (end.0.clamp(x(frame.span.from_ns), x(frame.span.until_ns)), end.1);
        chart
            .draw_series(ends.iter().map(|ends| PathElement::new(ends.map(inside), BLACK.mix(0.75))))
            .map_err(failed)?;
        let per_lane = lanes as f64 / f64::from(options.height.saturating_sub(140).max(1));
        let heads = ends.iter().filter(|[_, end]| end.0 <= x(frame.span.until_ns)).map(|[start, end]| {
            // Of the arrow in pixels, and back.
            let (dx, dy) = ((end.0 - start.0) / pixel, (end.1 - start.1) / per_lane);
            let length = dx.hypot(dy).max(1e-9);
            let (dx, dy) = (dx / length * 7.0, dy / length * 7.0);
            let side = |turn: f64| (end.0 - (dx - dy * turn) * pixel, end.1 - (dy + dx * turn) * per_lane);
            Polygon::new(vec![*end, side(0.4), side(-0.4)], BLACK.filled())
        });
        chart.draw_series(heads).map_err(failed)?;
        let every = (18 / lane_pixels.max(1)).max(1);
        let right = Pos::new(HPos::Right, VPos::Center);
        let label = (FONT, LABEL - 2).into_font().color(&BLACK).pos(right);
        for (lane, name) in names.iter().enumerate().step_by(every) {
            let (left, y) = chart.backend_coord(&(x(frame.span.from_ns), lane as f64 + 0.5));
            area.draw(&Text::new(name.as_str(), (left - 6, y), label.clone())).map_err(failed)?;
        }
        legend(&key, picture)
    })
}

/// Which groups have which colours.
fn legend(key: &super::canvas::Area<'_>, picture: &Picture) -> Result<(), PlotError> {
    let mut left = i32::try_from(LEFT).unwrap_or(0);
    let middle = Pos::new(HPos::Left, VPos::Center);
    let font = (FONT, LABEL - 2).into_font().color(&BLACK).pos(middle);
    let is_there = |group: usize| {
        let lanes = 0..picture.frame.lanes.len();
        lanes.into_iter().any(|lane| {
            (0..picture.frame.columns).filter_map(|column| picture.cell(lane, column)).any(|cell| {
                let own = if group < OWN_COLOURS { group..group + 1 } else { group..cell.busy_ns.len() };
                cell.busy_ns.get(own).is_some_and(|times| times.iter().any(|ns| *ns > 0))
            })
        })
    };
    for group in (0..=OWN_COLOURS).filter(|group| is_there(*group)) {
        let name = if group < OWN_COLOURS { Group::ALL.get(group).map_or("", |group| group.title()) } else { "other" };
        key.draw(&Rectangle::new([(left, 8), (left + 12, 20)], colour(group).filled())).map_err(failed)?;
        key.draw(&Text::new(name, (left + 17, 15), font.clone())).map_err(failed)?;
        left += 30 + i32::try_from(name.len()).unwrap_or(0) * 8;
    }
    Ok(())
}

/// A number on the axis, as exact as the length of the axis asks for.
fn number(value: f64, length: f64) -> String {
    match length {
        length if length < 2.0 => format!("{value:.3}"),
        length if length < 20.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Those from lane to lane, or in words how many there are, if they are too many.
fn arrows<'a>(messages: Option<&'a Messages>, frame: &Frame) -> Result<Vec<(&'a Message, usize, usize)>, String> {
    let Some(messages) = messages else { return Err(", messages not drawn: too many events".into()) };
    let lanes = frame.lanes.iter().enumerate().flat_map(|(place, lane)| lane.iter().map(move |id| (*id, place)));
    let lanes: HashMap<LocationId, usize> = lanes.collect();
    let drawn = messages.messages.iter().filter_map(|message| {
        let (&from, &to) = (lanes.get(&message.send.location)?, lanes.get(&message.done.location)?);
        (from != to).then_some((message, from, to))
    });
    let drawn: Vec<_> = drawn.collect();
    let all = (drawn.len() as u64).saturating_add(messages.more);
    if drawn.len() > MOST_ARROWS || messages.more > 0 {
        return Err(format!(", {} messages not drawn", units::count(all)));
    }
    Ok(drawn)
}

/// Part of a lane that looks the same.
struct Look {
    lane: usize,
    first: usize,
    last: usize,
    group: usize,
    /// From where to where in the height of the lane, 0 to 1.
    from: f64,
    until: f64,
}

/// Groups above each other, as high as their shares; neighbours that look the same are one.
fn boxes(picture: &Picture) -> Vec<Look> {
    let frame = &picture.frame;
    let mut all: Vec<Look> = Vec::new();
    for (lane, threads) in frame.lanes.iter().enumerate() {
        let mut cells: Vec<Cell> =
            (0..frame.columns).filter_map(|column| picture.cell(lane, column).copied()).collect();
        // Those are drawn as such, from their entries to their returns.
        for call in picture.wide.iter().filter(|call| call.lane == lane) {
            let group = usize::from(call.function.function().group.index());
            for column in frame.column(call.begin_ns)..=frame.column(call.end_ns) {
                let (from, until) = (frame.edge(column), frame.edge(column + 1));
                let ns = call.end_ns.min(until).saturating_sub(call.begin_ns.max(from));
                if let Some(busy) = cells.get_mut(column).and_then(|cell| cell.busy_ns.get_mut(group)) {
                    *busy = busy.saturating_sub(ns);
                }
            }
        }
        // Of each colour, the last one in this lane.
        let mut open: [Option<usize>; OWN_COLOURS + 1] = [None; OWN_COLOURS + 1];
        for (column, cell) in cells.iter().enumerate() {
            let width_ns = frame.edge(column + 1).saturating_sub(frame.edge(column)).max(1);
            let each = width_ns as f64 * threads.len().max(1) as f64;
            let mut floor = 0.0;
            for (group, open) in open.iter_mut().enumerate() {
                let own = if group < OWN_COLOURS { group..group + 1 } else { group..cell.busy_ns.len() };
                let ns: u64 =
                    cell.busy_ns.get(own).unwrap_or_default().iter().fold(0, |sum, ns| sum.saturating_add(*ns));
                if ns == 0 {
                    continue;
                }
                let (from, until) = (floor, f64::min(floor + ns as f64 / each, 1.0));
                floor = until;
                let alike = |one: f64, other: f64| (one - other).abs() < 0.01;
                let before = open.and_then(|place| all.get_mut(place));
                let alike =
                    |one: &&mut Look| one.last + 1 == column && alike(one.from, from) && alike(one.until, until);
                if let Some(before) = before.filter(alike) {
                    before.last = column;
                } else {
                    *open = Some(all.len());
                    all.push(Look { lane, first: column, last: column, group, from, until });
                }
            }
        }
    }
    all
}
