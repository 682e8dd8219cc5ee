//! What is around every screen: header, tabs, notices, footer.

use mpiprobe_model::{Profile, RankState, SaturatingSum as _};
use mpiprobe_report::present::units::{count, ns, percent};
use ratatui::{Frame, layout::Rect};

use crate::paint::{
    Theme,
    line::{Line, fit, line_of, width},
};
use crate::{
    content::{Location, Screen, Tone},
    source::{Position, Running},
    state::State,
};

/// Who is observed, how it goes, what it costs.
pub(super) fn header(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let buffer = frame.buffer_mut();
    buffer.set_style(area, theme.palette.header());
    let right = match state.profile() {
        Some(profile) => health(profile, theme),
        None => Line::new(theme),
    };
    let is_playing = state.position().is_some_and(|position| position.is_playing);
    let (now, tone) = match (state.is_frozen(), state.running()) {
        (true, _) => ("FROZEN", Tone::Alarm),
        (false, Running::Live) => ("LIVE", Tone::Good),
        (false, Running::Ended) => ("ENDED", Tone::Warning),
        (false, Running::Replay) if is_playing => ("REPLAY", Tone::Good),
        (false, Running::Replay) => ("PAUSED", Tone::Warning),
    };
    let age = match (state.position(), state.profile()) {
        (Some(Position { when, index, count, .. }), _) => format!(" {when} {}/{count} ", index + 1),
        (None, Some(profile)) => format!(" {} ", ns(profile.observed_ns)),
        (None, None) => String::new(),
    };
    let right = right.add(tone, now).add(Tone::Plain, &age);
    let left = Rect { width: area.width.saturating_sub(right.width() + 1), ..area };
    right.put_right(buffer, area);
    let mut line = Line::new(theme).add(Tone::Title, "mpiprobe ");
    if let Some(profile) = state.profile() {
        line = line.add(Tone::Plain, &identity(profile));
    }
    line.put(buffer, left);
}

/// "ring  4/4 ranks  ompi:123  Open MPI 4.1.4  node1": what tells most comes first, as a narrow terminal shows the beginning only.
fn identity(profile: &Profile) -> String {
    let program = profile.ranks.first().map(|rank| base_name(&rank.executable).to_owned());
    let observed = |state| profile.ranks.iter().filter(|rank| rank.state == state).count();
    let (ranks, jobs) = match profile.jobs.as_slice() {
        [job] => {
            let size = job.size.map_or_else(|| "?".into(), |size| size.to_string());
            (format!("{}/{size} ranks", job.ranks), job.id.clone())
        }
        jobs => (format!("{} ranks", profile.ranks.len()), format!("{} jobs", jobs.len())),
    };
    let gone = observed(RankState::Ended);
    let gone = if gone > 0 { format!(", {gone} ended") } else { String::new() };
    let library = profile.engine.libraries.first().map(|library| library.implementation.clone());
    let parts = [program, Some(ranks + &gone), Some(jobs), library, Some(profile.host.clone())];
    parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
}

/// mpiprobe's own cost, and what is missing.
fn health(profile: &Profile, theme: Theme) -> Line {
    let cost = profile.own_cost.percent_of_wall;
    let tone = if cost >= 5.0 { Tone::Warning } else { Tone::Dim };
    let line = Line::new(theme).add(tone, &format!("cost {} % ", percent(cost)));
    if profile.complete {
        line.add(Tone::Dim, "lost 0 ")
    } else {
        let lost: u64 = profile.losses.lost().into_iter().map(|(number, _)| number).saturating_sum();
        let shown = if lost > 0 { format!("LOST {} ", count(lost)) } else { "INCOMPLETE ".into() };
        line.add(Tone::Alarm, &shown)
    }
}

/// So that all of them fit into 120 columns.
fn tab(screen: Screen) -> &'static str {
    match screen {
        Screen::Recent => "Recent",
        Screen::Communicators => "Comms",
        _ => screen.title(),
    }
}

/// The screens and the keys that lead to them; where it is narrow, the name of the present one only.
pub(super) fn tabs(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let all = |is_short: bool| {
        Screen::ALL.into_iter().fold(Line::new(theme), |line, screen| {
            let is_here = screen == state.screen();
            let name = format!(" {} {} ", screen.key(), tab(screen));
            let number = format!(" {} ", screen.key());
            match (is_here, is_short) {
                (true, _) => line.add(Tone::Key, &name),
                (false, true) => line.add(Tone::Dim, &number),
                (false, false) => line.add(Tone::Dim, &name),
            }
        })
    };
    let mut line = all(false);
    if line.width() > area.width {
        line = all(true);
    }
    let below = match state.place() {
        Location::Screen(_) => String::new(),
        Location::Rank(id) => format!(" ▸ pid {}", id.pid),
        Location::Threads(id) => format!(" ▸ threads of pid {}", id.pid),
        Location::Layers(name) => format!(" ▸ {name}, layers"),
        Location::Function(name) => format!(" ▸ {name}"),
        Location::Histogram(name, None) => format!(" ▸ {name}, all ranks"),
        Location::Histogram(name, Some(id)) => format!(" ▸ {name}, pid {}", id.pid),
        Location::Site(_) => " ▸ call site".into(),
        Location::Communicator(id) => format!(" ▸ #{id}"),
        Location::Block(_) => " ▸ part".into(),
    };
    let line = line.add(Tone::Title, &below);
    line.put(frame.buffer_mut(), area);
    let rest =
        Rect { x: area.x + line.width().min(area.width), width: area.width.saturating_sub(line.width()), ..area };
    filter(frame, rest, state, theme);
}

/// The filter in force, and how much it keeps.
fn filter(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let Some(filter) = state.filter() else { return };
    let number = |number: usize| count(u64::try_from(number).unwrap_or(u64::MAX));
    let what = if state.is_matrix() { "pairs" } else { "rows" };
    let kept = state.kept_rows().map(|(kept, all)| format!("  {} of {} {what}", number(kept), number(all)));
    let kept = format!("{} ", kept.unwrap_or_default());
    let room = area.width.saturating_sub(width(&kept) + 2);
    let text = fit(&format!("/ {}", filter.line()), room, theme.symbols.cut());
    let line = Line::new(theme).add(Tone::Plain, "  ").add(Tone::Warning, &text);
    line.add(Tone::Plain, &kept).put_right(frame.buffer_mut(), area);
}

/// Before there is anything to show.
pub(super) fn waiting(frame: &mut Frame<'_>, area: Rect, theme: Theme) {
    Line::new(theme)
        .add(Tone::Dim, " Waiting for an MPI process, or for the first look at it …")
        .put(frame.buffer_mut(), line_of(area, 1));
}

/// Why there is nothing, over as many lines as it takes.
pub(super) fn sentence(frame: &mut Frame<'_>, area: Rect, why: &str, theme: Theme) {
    let room = usize::from(area.width.saturating_sub(2)).max(1);
    let (mut line, mut number) = (String::new(), 1);
    let mut put = |line: &str, number: u16| {
        Line::new(theme).add(Tone::Dim, &format!(" {line}")).put(frame.buffer_mut(), line_of(area, number));
    };
    for word in why.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
            put(&line, number);
            (line, number) = (String::new(), number + 1);
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    put(&line, number);
}

pub(super) fn notice(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let buffer = frame.buffer_mut();
    if let Some(notice) = &state.notice {
        Line::new(theme).add(Tone::Warning, &format!(" {notice}")).put(buffer, area);
    } else if state.is_frozen() {
        Line::new(theme).add(Tone::Alarm, " The display is frozen; counting goes on. Space: go on").put(buffer, area);
    } else if state.running() == Running::Replay {
        let hint = theme.symbols.text(" A recording. ← → one moment, { } ten, Space: play or pause");
        Line::new(theme).add(Tone::Dim, &hint).put(buffer, area);
    } else if state.running() == Running::Ended {
        Line::new(theme).add(Tone::Warning, " The job has ended. q: print the profile").put(buffer, area);
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
