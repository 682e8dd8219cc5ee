//! The job at a glance.

use mpiprobe_model::{Level, Profile};
use mpiprobe_report::present::{
    UNKNOWN, UNSEEN, UNTIMED,
    units::{bytes, duration, maybe_percent, ns, percent, rate},
};
use ratatui::{Frame, layout::Rect};

use super::glance;
use crate::paint::{
    Theme,
    line::{Line, Section, line_of, title},
};
use crate::{
    content::Tone,
    layout::GlanceRoom,
    screens::{TableData, functions_by_time},
    state::{Point, State},
};

/// Columns of the names of figures.
const NAMES: usize = 16;

/// On fewer lines sections stand without gaps, and the last one in one line.
const LOW: u16 = 24;

/// Findings of a narrow screen.
const FEW: usize = 3;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    // Of everything, whatever the filter.
    let Some(data) = state.data().map(|data| data.unfiltered()) else { return };
    let profile = data.profile;
    let is_wide = area.width >= GlanceRoom::WIDE;
    let left = Rect { width: if is_wide { area.width / 2 } else { area.width }, ..area };
    let above = [now(state, &data, left.width, theme), efficiency(&data, left.width, theme)];
    if is_wide {
        let ranks = glance::ranks(state.glance(), &data, left.width, theme);
        let matrix = glance::matrix(&state.glance().matrix, state.measure, theme);
        put(frame, left, &joined(above.into_iter().chain([ranks, matrix]), true, theme));
        let right = Rect { x: left.right() + 1, width: area.width - left.width - 1, ..area };
        let below = [
            glance::sites(state.glance(), right.width, theme),
            communicators(profile, usize::from(area.height / 6), theme),
            findings(state, usize::from(area.height / 4), usize::from(area.height / 4), theme),
            remarks(profile, true, theme),
        ];
        // What stands below is never cut off for more functions.
        let taken: usize = below.iter().filter(|section| !section.is_empty()).map(|section| section.len() + 1).sum();
        let room = usize::from(area.height).saturating_sub(taken + 1).min(usize::from(area.height / 3)).max(4);
        let functions = functions(&data, room, theme);
        put(frame, right, &joined([functions].into_iter().chain(below), true, theme));
        return;
    }
    let is_low = area.height < LOW;
    let last = if is_low { vec![remark(profile, theme)] } else { remarks(profile, false, theme) };
    let below = [findings(state, FEW, if is_low { 0 } else { FEW }, theme), last];
    let taken = above.iter().chain(&below).filter(|section| !section.is_empty());
    let taken: usize = taken.map(|section| section.len() + usize::from(!is_low)).sum();
    // With its title.
    let functions = functions(&data, usize::from(area.height).saturating_sub(taken + 1), theme);
    put(frame, left, &joined(above.into_iter().chain([functions]).chain(below), !is_low, theme));
}

/// One section after the other, with gaps or without.
fn joined(sections: impl IntoIterator<Item = Section>, has_gaps: bool, theme: Theme) -> Vec<Line> {
    let mut lines = Vec::new();
    for section in sections.into_iter().filter(|section| !section.is_empty()) {
        lines.extend((has_gaps && !lines.is_empty()).then(|| Line::new(theme)));
        lines.extend(section);
    }
    lines
}

fn put(frame: &mut Frame<'_>, area: Rect, lines: &[Line]) {
    for (number, line) in (0..area.height).zip(lines) {
        line.put(frame.buffer_mut(), line_of(area, number));
    }
}

/// Rates with their history.
fn now(state: &State, data: &TableData<'_>, width: u16, theme: Theme) -> Section {
    let now = Point::of(data.change);
    let room = width.saturating_sub(u16::try_from(NAMES).unwrap_or(0) + 13);
    let figure = |name: &str, value: String, history: &dyn Fn(&Point) -> f64| {
        let history = theme.symbols.sparkline(state.shown().series().points().map(history), room);
        Line::new(theme)
            .add(Tone::Dim, &format!("  {name:<NAMES$}"))
            .add(Tone::Plain, &format!("{value:>9} "))
            .add(Tone::Good, &history)
    };
    let mut lines = vec![
        title(&format!("Now ({})", data.span()), theme),
        figure("in MPI", format!("{} %", maybe_percent(now.mpi_percent)), &|point| point.mpi_percent.unwrap_or(0.0)),
        figure("calls/s", rate(now.calls_per_second), &|point| point.calls_per_second),
    ];
    if let (Some(messages), Some(moved)) = (now.messages_per_second, now.bytes_per_second) {
        lines.push(figure("messages/s", rate(messages), &|point| point.messages_per_second.unwrap_or(0.0)));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "shown with three digits")]
        let sent = bytes(moved as u64);
        lines.push(figure("sent/s", sent, &|point| point.bytes_per_second.unwrap_or(0.0)));
    } else {
        lines.push(Line::new(theme).add(Tone::Dim, "  bytes           with --traffic"));
    }
    lines
}

/// How well processors are used.
fn efficiency(data: &TableData<'_>, width: u16, theme: Theme) -> Section {
    let mut lines = vec![title(&format!("Efficiency ({})", data.span()), theme)];
    let Some(found) = data.change.efficiency() else {
        let is_unknown = data.change.mpi_percent().is_none()
            || data.change.ranks.iter().any(|(rank, _)| rank.mpi_percent().is_none());
        let is_untimed = data.all.profile.ranks.iter().any(|rank| rank.untimed_calls > 0);
        let why = if is_untimed {
            format!("unknown: {UNTIMED}")
        } else if is_unknown {
            format!("unknown: {UNSEEN}")
        } else {
            "nobody was seen to do anything but MPI".into()
        };
        lines.push(Line::new(theme).add(Tone::Dim, &format!("  {why}")));
        return lines;
    };
    let room = width.saturating_sub(u16::try_from(NAMES).unwrap_or(0) + 13).min(40);
    let figure = |name: &str, value: f64| {
        let tone = match value {
            value if value >= 0.8 => Tone::Good,
            value if value >= 0.6 => Tone::Warning,
            _ => Tone::Alarm,
        };
        Line::new(theme)
            .add(Tone::Dim, &format!("  {name:<NAMES$}"))
            .add(Tone::Plain, &format!("{:>7} % ", percent(100.0 * value)))
            .add(tone, &theme.symbols.bar(value, room))
    };
    lines.push(figure("parallel", found.parallel));
    lines.push(figure("load balance", found.load_balance));
    lines.push(figure("communication", found.communication));
    lines
}

/// Where the time goes.
fn functions(data: &TableData<'_>, room: usize, theme: Theme) -> Section {
    let mut lines = vec![title(&format!("Functions ({})", data.span()), theme)];
    let by_time = functions_by_time(data);
    let called = by_time.iter().filter(|function| function.change.time_ns > 0 || function.change.calls > 0);
    for function in called.take(room.max(1)) {
        let is_timed = function.profile.all.untimed_calls == 0;
        let known = |text: String| if is_timed { text } else { UNKNOWN.to_owned() };
        let share = format!("{:>5} % ", known(percent(function.wall_percent)));
        let calls = format!(" {:>7}/s", rate(data.change.per_second(function.change.calls)));
        let mean = function.change.time_ns as f64 / function.change.calls.max(1) as f64;
        lines.push(
            Line::new(theme)
                .add(Tone::Plain, &format!("  {:<24}", function.profile.all.name))
                .add(Tone::Plain, &share)
                .add(Tone::Title, &theme.symbols.bar(function.wall_percent / 100.0, 10))
                .add(Tone::Plain, &calls)
                .add(Tone::Dim, &format!("  mean {}", known(duration(mean)))),
        );
    }
    if lines.len() == 1 {
        lines.push(Line::new(theme).add(Tone::Dim, "  no call in this time"));
    }
    lines
}

/// Those with most time in calls over them; so many at most.
fn communicators(profile: &Profile, most: usize, theme: Theme) -> Section {
    let mut by_time: Vec<_> = profile.traffic.iter().flat_map(|traffic| &traffic.communicators).collect();
    by_time.retain(|communicator| communicator.amounts.calls > 0);
    by_time.sort_by_key(|communicator| std::cmp::Reverse((communicator.amounts.time_ns, communicator.id)));
    if by_time.is_empty() {
        return Vec::new();
    }
    let wall: f64 = profile.ranks.iter().map(|rank| rank.thread_wall_ns as f64).sum::<f64>().max(1.0);
    let mut lines = vec![title("Communicators (since the beginning)", theme)];
    lines.extend(by_time.into_iter().take(most.max(1)).map(|communicator| {
        let share = communicator.amounts.time_ns as f64 / wall;
        let sent = bytes(communicator.amounts.sent_bytes);
        let most = communicator.functions.first().map_or("", |most| most.function);
        Line::new(theme)
            .add(Tone::Plain, &format!("  {:<24}", communicator.name))
            .add(Tone::Plain, &format!("{:>5} % ", percent(100.0 * share)))
            .add(Tone::Title, &theme.symbols.bar(share, 10))
            .add(Tone::Plain, &format!(" {sent:>9}"))
            .add(Tone::Dim, &format!("  {most}"))
    }));
    lines
}

/// What is probably wrong, so much of it at most; of why the job does not go on, so many more lines.
fn findings(state: &State, most: usize, evidence: usize, theme: Theme) -> Section {
    let findings = state.findings();
    if findings.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![title("Findings", theme)];
    for finding in findings.iter().take(most) {
        let line = Line::new(theme).add(Tone::Warning, &format!("  {}: ", finding.name));
        lines.push(line.add(Tone::Plain, &finding.found));
        let more = finding.evidence.iter().filter(|_| finding.hangs).take(evidence);
        lines.extend(more.map(|line| Line::new(theme).add(Tone::Plain, &format!("    {line}"))));
    }
    if let more @ 1.. = findings.len().saturating_sub(most) {
        lines.push(Line::new(theme).add(Tone::Dim, &format!("  and {more} more: w writes them to a file")));
    }
    lines
}

fn own_cost(profile: &Profile) -> String {
    let own = &profile.own_cost;
    let reduced =
        profile.budget.iter().flat_map(|budget| &budget.levels).filter(|reduced| reduced.level != Level::Full);
    let reduced: Vec<&str> = reduced.map(|reduced| reduced.function).collect();
    let reduced = match reduced.as_slice() {
        [] => String::new(),
        [first, more @ ..] => {
            let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
            format!(", kept so by not counting all of {first}{more}")
        }
    };
    format!("  {} a call, {:.2} % of the job's time{reduced}", duration(own.per_call_ns), own.percent_of_wall)
}

/// What the observation costs, and whether anything is missing: in one line.
fn remark(profile: &Profile, theme: Theme) -> Line {
    let cost = own_cost(profile);
    let line = title("Own cost", theme).add(Tone::Plain, &cost);
    match profile.incomplete_because.first() {
        None => line.add(Tone::Good, "; complete"),
        Some(why) => line.add(Tone::Alarm, &format!("; {why}")),
    }
}

/// The same in several.
fn remarks(profile: &Profile, is_wide: bool, theme: Theme) -> Section {
    let own = &profile.own_cost;
    let cost = own_cost(profile);
    let mut lines = vec![title("Own cost and losses", theme), Line::new(theme).add(Tone::Plain, &cost)];
    if let (true, Some(inside), 1..) = (is_wide, own.inside_ns, own.subtracted_ns) {
        let text = format!("  self cost subtracted: {} per call, {}", duration(inside), ns(own.subtracted_ns));
        lines.push(Line::new(theme).add(Tone::Plain, &text));
    }
    if profile.complete {
        lines.push(Line::new(theme).add(Tone::Good, "  complete: nothing is missing"));
    }
    lines.extend(profile.incomplete_because.iter().map(|why| Line::new(theme).add(Tone::Alarm, &format!("  {why}"))));
    lines
}
