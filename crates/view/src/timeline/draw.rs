//! Draws the screen of a trace. Nothing here changes it or reads anything.

use mpiprobe_discover::printable;
use mpiprobe_functions::Group;
use mpiprobe_replay::timeline::{Cell, Frame, Picture};
use mpiprobe_report::present::units::{count, ns};
use mpiprobe_trace::Span;
use ratatui::{
    Frame as Terminal,
    buffer::Buffer,
    layout::{Position, Rect},
    style::{Modifier, Style},
    widgets::Widget as _,
};

use super::{
    describe::time,
    keys::{TIMELINE_BINDINGS, TIMELINE_SECTIONS},
    messages,
    state::{Lines, Now, Rooms, Timeline},
};
use crate::{
    content::Tone,
    keys::{BINDINGS, Section},
    layout::{self, SMALLEST, Size},
    paint::{
        Theme, footer, help,
        line::{Line, fit, line_of, width},
        part_letter, popup, too_small,
    },
};

/// Columns between two times of the axis.
const TICK: usize = 20;
/// From this share of a cell on it is as good as full.
const FULL: f64 = 0.5;

/// Draws everything.
pub fn draw(frame: &mut Terminal<'_>, state: &Timeline, theme: Theme) {
    let area = frame.area();
    let size = Size { width: area.width, height: area.height };
    if size.width < SMALLEST.width || size.height < SMALLEST.height {
        too_small(frame, area);
        return;
    }
    if size != state.size() {
        // The terminal has another size by now, which the next event says.
        return;
    }
    let (rooms, shown) = (state.rooms(), state.shown_frame());
    let buffer = frame.buffer_mut();
    match state.now {
        Some(now) => header_of_now(buffer, rooms.header, state, now, theme),
        None => header(buffer, rooms.header, state, theme),
    }
    axis(buffer, rooms.axis, state, &shown, theme);
    lanes(buffer, &rooms, state, &shown, theme);
    messages::draw(buffer, state, &shown, &rooms, theme);
    cursor(buffer, &rooms, state, theme);
    details(buffer, rooms.details, state, theme);
    notice(buffer, rooms.notice, state, theme);
    match &state.typing {
        Some(typed) => {
            let label = " Function or call site: ";
            popup::clear(frame, rooms.footer);
            Line::new(theme).add(Tone::Key, label).put(frame.buffer_mut(), rooms.footer);
            let taken = (width(label) + 1).min(rooms.footer.width);
            let rest = Rect { x: taken, width: rooms.footer.width - taken, ..rooms.footer };
            typed.render(rest, frame.buffer_mut());
        }
        None => footer(frame, rooms.footer, TIMELINE_BINDINGS, false, theme),
    }
    if let Some(top) = state.details_top {
        let inside = popup::draw(frame, layout::help(size), " The call — j k move, Esc closes ", theme);
        let lines = state.details();
        for (number, (tone, text)) in (0..inside.height).zip(lines.iter().skip(top)) {
            Line::new(theme).add(*tone, &format!(" {text}")).put(frame.buffer_mut(), line_of(inside, number));
        }
    }
    if state.is_help_open {
        let mut lines = help::lines(TIMELINE_SECTIONS, TIMELINE_BINDINGS, theme);
        if state.now.is_some() {
            lines.push(Line::new(theme));
            lines.extend(help::lines(&[Section::Screens], BINDINGS, theme));
        }
        help::draw(frame, size, &lines, state.help_top, theme);
    }
}

/// The same without what is of use on a screen only.
pub(super) fn lanes_only(frame: &mut Terminal<'_>, state: &Timeline, theme: Theme) {
    let (rooms, shown) = (state.rooms(), state.frame());
    let buffer = frame.buffer_mut();
    header(buffer, rooms.header, state, theme);
    axis(buffer, rooms.axis, state, &shown, theme);
    lanes(buffer, &rooms, state, &shown, theme);
    notice(buffer, rooms.details, state, theme);
}

/// Which trace, which part of it, and what is missing.
fn header(buffer: &mut Buffer, area: Rect, state: &Timeline, theme: Theme) {
    buffer.set_style(area, theme.palette.header());
    let definitions = state.definitions();
    let lost = definitions.missing_calls();
    let left_out = definitions.locations.iter().fold(0u64, |sum, one| sum.saturating_add(one.losses.left_out.calls()));
    let mut right = Line::new(theme);
    if left_out > 0 {
        right = right.add(Tone::Warning, &format!("{} calls left out ", count(left_out)));
    }
    right = if lost > 0 {
        right.add(Tone::Alarm, &format!("LOST {} ", count(lost)))
    } else {
        right.add(Tone::Dim, "lost 0 ")
    };
    let span = state.span();
    let length = |span: Span| ns(span.until_ns.saturating_sub(span.from_ns));
    right = right.add(Tone::Plain, &format!("{} of {} ", length(span), length(state.whole)));
    right.put_right(buffer, area);
    let left = Rect { width: area.width.saturating_sub(right.width() + 1), ..area };
    let program = definitions.processes.first().map_or("", |process| process.executable.as_str());
    let program = printable(program.rsplit('/').next().unwrap_or(program).as_bytes());
    let (ranks, threads) = (definitions.processes.len(), definitions.locations.len());
    let threads = if threads == ranks { String::new() } else { format!(", {} threads", count(threads as u64)) };
    let (ranks, events) = (count(ranks as u64), count(state.events()));
    let text = format!("{program}  {ranks} ranks{threads}  {events} events  {}", state.name);
    Line::new(theme).add(Tone::Title, "mpiprobe ").add(Tone::Plain, &text).put(buffer, left);
}

/// How far back what is kept reaches, and whether the display goes on with the job.
fn header_of_now(buffer: &mut Buffer, area: Rect, state: &Timeline, now: Now, theme: Theme) {
    let length = |span: Span| ns(span.until_ns.saturating_sub(span.from_ns));
    let (kept, shown) = (length(state.whole), length(state.span()));
    let right = Line::new(theme).add(Tone::Plain, &format!("{shown} of {kept} "));
    let right = if now.follows {
        right.add(Tone::Good, "FOLLOWING ")
    } else {
        right.add(Tone::Warning, "STANDS STILL: End follows ")
    };
    right.put_right(buffer, area);
    let left = Rect { width: area.width.saturating_sub(right.width() + 1), ..area };
    let lost = state.definitions().missing_calls();
    let line = Line::new(theme).add(Tone::Title, &format!(" {} calls of the last {kept}", count(state.events())));
    let line = if lost > 0 { line.add(Tone::Alarm, &format!(", LOST {}", count(lost))) } else { line };
    let before = if now.is_short { "; what was before is gone" } else { ", all so far" };
    line.add(Tone::Dim, before).put(buffer, left);
}

/// Times, and where the cursor is.
fn axis(buffer: &mut Buffer, area: Rect, state: &Timeline, frame: &Frame, theme: Theme) {
    let apart = (frame.edge(TICK).saturating_sub(frame.edge(0))).max(1);
    for column in (0..frame.columns).step_by(TICK) {
        let x = u16::try_from(column).unwrap_or(u16::MAX).min(area.width);
        let text = time(frame.edge(column).saturating_sub(state.begin_ns), apart / 4);
        let room = Rect { x: area.x + x, width: (area.width - x).min(19), ..area };
        if room.width >= 19 || frame.columns - column >= width(&text).into() {
            Line::new(theme).add(Tone::Dim, "|").add(Tone::Dim, &text).put(buffer, room);
        }
    }
    let column = u16::try_from(state.at_column()).unwrap_or(0);
    if let Some(cell) = buffer.cell_mut(Position::new(area.x + column, area.y)) {
        cell.set_char(theme.symbols.glyph('▼')).set_style(theme.palette.of(Tone::Alarm));
    }
}

fn lanes(buffer: &mut Buffer, rooms: &Rooms, state: &Timeline, frame: &Frame, theme: Theme) {
    if state.threads.is_empty() {
        let text = " The trace has no threads: no call has ended in it, or it was cut off before.";
        Line::new(theme).add(Tone::Dim, text).put(buffer, Rect { x: 0, ..rooms.lanes });
        return;
    }
    let (now, last) = (state.picture(frame), state.last_picture());
    for (place, _) in frame.lanes.iter().enumerate() {
        let lane = state.top + place;
        let Some(row) = u16::try_from(place * rooms.pitch).ok().filter(|row| *row < rooms.lanes.height) else { break };
        let y = rooms.lanes.y + row;
        let label = format!("{:>1$} ", state.lane_name(lane), usize::from(rooms.labels.saturating_sub(1)));
        let tone = if lane == state.at_lane() { Tone::Key } else { Tone::Dim };
        Line::new(theme).add(tone, &label).put(buffer, Rect { x: 0, y, width: rooms.labels, height: 1 });
        for column in 0..frame.columns {
            let Some(x) = u16::try_from(column).ok().filter(|x| *x < rooms.lanes.width) else { break };
            let (glyph, style) = match now {
                Some(picture) if picture.is_read(column) => known(picture, place, column, state, theme),
                Some(picture) if picture.cell(place, column).is_some_and(|cell| cell.calls > 0) => {
                    known(picture, place, column, state, theme)
                }
                _ => before(last, frame, (place, column), state, theme),
            };
            if let Some(cell) = buffer.cell_mut(Position::new(rooms.lanes.x + x, y)) {
                cell.set_char(glyph).set_style(style);
            }
        }
        if let Some(picture) = now {
            names(buffer, Rect { y, height: 1, ..rooms.lanes }, picture, place, theme);
        }
    }
}

/// How a cell looks: a letter by the group that most of the time in MPI goes to, a capital one if MPI has most of the cell.
fn known(picture: &Picture, place: usize, column: usize, state: &Timeline, theme: Theme) -> (char, Style) {
    let Some(cell) = picture.cell(place, column) else { return (' ', Style::new()) };
    if cell.calls > 0 {
        let span = picture.frame.span_of(column);
        let threads = picture.frame.lanes.get(place).map_or(1, Vec::len).max(1);
        let all_ns = (span.until_ns - span.from_ns + 1) as f64 * threads as f64;
        return drawn(cell, cell.total_ns() as f64 / all_ns, theme);
    }
    let span = picture.frame.span_of(column);
    match life(state, state.top + place, span) {
        Life::Unknown => unknown(theme),
        Life::Outside => quiet(theme),
        Life::None => (' ', Style::new()),
    }
}

/// What has not been read, or was not recorded.
fn unknown(theme: Theme) -> (char, Style) {
    (theme.symbols.glyph('░'), theme.palette.of(Tone::Dim))
}

fn drawn(cell: &Cell, share: f64, theme: Theme) -> (char, Style) {
    let tone = Tone::Group(cell.most().map_or(u8::MAX, Group::index));
    let (letter, style) = (part_letter(tone), theme.palette.of(tone));
    if share >= FULL { (letter.to_ascii_uppercase(), style.add_modifier(Modifier::REVERSED)) } else { (letter, style) }
}

/// Outside MPI.
fn quiet(theme: Theme) -> (char, Style) {
    (theme.symbols.glyph('·'), theme.palette.of(Tone::Dim))
}

/// What threads do in a time without calls.
enum Life {
    /// They have not begun, or have ended.
    None,
    Outside,
    /// Of one of them at least nobody has seen what it did.
    Unknown,
}

fn life(state: &Timeline, lane: usize, span: Span) -> Life {
    let definitions = state.definitions();
    let threads = state.lane(lane).iter().filter_map(|thread| definitions.location(thread.location));
    // Of a job that runs, all is known up to then.
    if state.now.is_some() && span.from_ns > state.whole.until_ns {
        return Life::Unknown;
    }
    let mut life = Life::None;
    for thread in threads {
        let process = definitions.process(thread.process);
        if process.is_some_and(|process| process.began_before && span.from_ns < process.recorded_from_ns) {
            return Life::Unknown;
        }
        if thread.began_ns <= span.until_ns && thread.ended_ns.is_none_or(|ended| ended >= span.from_ns) {
            life = Life::Outside;
        }
    }
    life
}

/// What has not been read looks as it did where it was seen before.
fn before(
    last: Option<&Picture>,
    frame: &Frame,
    (place, column): (usize, usize),
    state: &Timeline,
    theme: Theme,
) -> (char, Style) {
    let unknown = unknown(theme);
    let Some(last) = last.filter(|last| last.frame.lanes == frame.lanes) else { return unknown };
    let at_ns = frame.span_of(column).from_ns;
    if at_ns < last.frame.span.from_ns || at_ns > last.frame.span.until_ns {
        return unknown;
    }
    let column = last.frame.column(at_ns);
    if last.is_read(column) { known(last, place, column, state, theme) } else { unknown }
}

/// Names of calls that are wide enough.
fn names(buffer: &mut Buffer, area: Rect, picture: &Picture, place: usize, theme: Theme) {
    let frame = &picture.frame;
    for call in picture.wide.iter().filter(|call| call.lane == place) {
        let function = call.function.function();
        let (first, last) = (frame.column(call.begin_ns), frame.column(call.end_ns));
        // The first and the last column may be shared with others.
        let (Ok(x), Ok(room)) = (u16::try_from(first + 1), u16::try_from(last.saturating_sub(first + 1))) else {
            continue;
        };
        let name = function.short_name();
        if room < 3 || x >= area.width {
            continue;
        }
        let tone = Tone::Group(function.group.index());
        let style = theme.palette.of(tone).add_modifier(Modifier::REVERSED);
        let text = fit(name, room.min(area.width - x), theme.symbols.cut());
        buffer.set_stringn(area.x + x, area.y, text, room.into(), style);
    }
}

fn cursor(buffer: &mut Buffer, rooms: &Rooms, state: &Timeline, theme: Theme) {
    let Some(place) = state.at_lane().checked_sub(state.top) else { return };
    let (Ok(column), Ok(row)) = (u16::try_from(state.at_column()), u16::try_from(place * rooms.pitch)) else {
        return;
    };
    if row >= rooms.lanes.height || column >= rooms.lanes.width {
        return;
    }
    if let Some(cell) = buffer.cell_mut(Position::new(rooms.lanes.x + column, rooms.lanes.y + row)) {
        cell.set_style(theme.palette.of(Tone::Alarm).add_modifier(Modifier::REVERSED | Modifier::UNDERLINED));
    }
}

/// What is under the cursor.
fn details(buffer: &mut Buffer, area: Rect, state: &Timeline, theme: Theme) {
    let lane = state.lane(state.at_lane());
    let here = match state.seen() {
        None => " reading…".to_owned(),
        Some(seen) if seen.calls == 0 => " no call of MPI here".to_owned(),
        Some(seen) if seen.calls == 1 => String::new(),
        Some(seen) => format!(" {} calls here, of which this takes most", count(seen.calls)),
    };
    let who = match lane {
        [] => return,
        [_] => String::new(),
        several => format!(", {} threads", several.len()),
    };
    let lines = state.details();
    let rows = usize::from(area.height.saturating_sub(1));
    let more = lines.len().saturating_sub(rows);
    let more = if more > 0 { format!("  {more} more lines: d") } else { String::new() };
    let title = format!(" {}  lane {}{who} {here}{more}", state.at_text(), state.lane_name(state.at_lane()));
    Line::new(theme).add(Tone::Dim, &title).put(buffer, line_of(area, 0));
    for (number, (tone, text)) in (1..area.height).zip(&lines) {
        Line::new(theme).add(*tone, &format!(" {text}")).put(buffer, line_of(area, number));
    }
}

/// What has just happened, else what the letters mean.
fn notice(buffer: &mut Buffer, area: Rect, state: &Timeline, theme: Theme) {
    let mut right = Line::new(theme);
    let percent = |done: f64| format!("{:.0} %", done.clamp(0.0, 1.0) * 100.0);
    if state.is_searching() {
        right = right.add(Tone::Warning, "looking for it… ");
    }
    if state.done < 1.0 {
        right = right.add(Tone::Warning, &format!("read {} ", percent(state.done)));
    }
    right = match state.matching {
        Some(done) => right.add(Tone::Warning, &format!("messages {} ", percent(done))),
        None if state.lines == Lines::None => right,
        None if state.has_too_many() => right.add(Tone::Dim, "zoom in for messages "),
        None => right,
    };
    if let Some(messages) = state.messages()
        && state.matching.is_none()
    {
        if messages.more > 0 {
            right = right.add(Tone::Dim, &format!("{} more messages ", count(messages.more)));
        }
        if messages.between_clocks > 0 {
            let number = count(messages.between_clocks);
            right = right.add(Tone::Warning, &format!("{number} messages between clocks that nothing compares "));
        }
        if messages.from_middle {
            right = right.add(Tone::Dim, "messages from the first common collective on ");
        }
    }
    if let Some(picture) = state.last_picture()
        && picture.damaged > 0
    {
        right = right.add(Tone::Alarm, &format!("{} damaged parts ", count(picture.damaged)));
    }
    let left = Rect { width: area.width.saturating_sub(right.width()), ..area };
    right.put_right(buffer, area);
    if let Some(notice) = &state.notice {
        Line::new(theme).add(Tone::Warning, &format!(" {notice}")).put(buffer, left);
        return;
    }
    let mut line = Line::new(theme);
    for group in Group::ALL.iter().take(6) {
        let tone = Tone::Group(group.index());
        line = line.add(tone, &format!(" {}", part_letter(tone))).add(Tone::Dim, &format!(" {}", group.title()));
    }
    let tone = Tone::Group(6);
    line.add(tone, " o").add(Tone::Dim, " other").put(buffer, left);
}
