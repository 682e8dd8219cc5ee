//! Lines of messages, between the lanes.

use std::collections::{HashMap, HashSet};

use mpiprobe_replay::timeline::{Frame, Message};
use mpiprobe_trace::LocationId;
use ratatui::{buffer::Buffer, layout::Position};

use super::{
    describe::is_of,
    state::{Lines, Rooms, Timeline},
};
use crate::{content::Tone, paint::Theme};

/// More lines than that make nothing clearer.
const MOST_LINES: usize = 400;

/// Draws those that are asked for.
pub(super) fn draw(buffer: &mut Buffer, state: &Timeline, frame: &Frame, rooms: &Rooms, theme: Theme) {
    let Some(messages) = state.messages() else { return };
    let own: Vec<LocationId> = state.lane(state.at_lane()).iter().map(|thread| thread.location).collect();
    let found = state.found();
    if state.lines == Lines::OfLane {
        // Without room between lanes, lines would hide what is in them.
        let drawn = messages.of(&own).filter(|_| rooms.pitch > 1);
        lines(buffer, drawn, frame, rooms, Tone::Dim, theme);
    }
    if let Some(found) = found.filter(|_| state.lines != Lines::None) {
        let drawn = messages.messages.iter().filter(|message| is_of(message, found));
        lines(buffer, drawn, frame, rooms, Tone::Alarm, theme);
    }
}

fn lines<'a>(
    buffer: &mut Buffer,
    messages: impl Iterator<Item = &'a Message>,
    frame: &Frame,
    rooms: &Rooms,
    tone: Tone,
    theme: Theme,
) {
    let lanes = frame.lanes.iter().enumerate().flat_map(|(place, lane)| lane.iter().map(move |id| (*id, place)));
    let lanes: HashMap<LocationId, usize> = lanes.collect();
    let mut drawn = HashSet::new();
    for message in messages {
        if drawn.len() >= MOST_LINES {
            return;
        }
        let (from, to) = (lanes.get(&message.send.location), lanes.get(&message.done.location));
        if message.done.return_ns < frame.span.from_ns || message.send.entry_ns > frame.span.until_ns {
            continue;
        }
        let (Some(&from), Some(&to)) = (from, to) else { continue };
        let line = (from, frame.column(message.send.entry_ns), to, frame.column(message.done.return_ns));
        let is_cut = message.done.return_ns > frame.span.until_ns;
        if from != to && drawn.insert(line) {
            Drawing { buffer: &mut *buffer, rooms, tone, theme }.line(line, is_cut);
        }
    }
}

struct Drawing<'a> {
    buffer: &'a mut Buffer,
    rooms: &'a Rooms,
    tone: Tone,
    theme: Theme,
}

impl Drawing<'_> {
    /// From a lane and a column to another one: down the column of the sender, and along the receiver's lane. `is_cut`: it arrives later.
    fn line(&mut self, (from, start, to, end): (usize, usize, usize, usize), is_cut: bool) {
        let y = |lane: usize| lane.saturating_mul(self.rooms.pitch);
        let (from_y, to_y) = (y(from), y(to));
        let is_down = from_y < to_y;
        let arrow = if is_down { '▼' } else { '▲' };
        if self.rooms.pitch == 1 {
            // Over the lanes between.
            for row in from_y.min(to_y) + 1..from_y.max(to_y) {
                self.put(start, row, '│');
            }
            self.put(end, to_y, arrow);
            return;
        }
        let beside = if is_down { to_y - 1 } else { to_y + 1 };
        let (first, last) = if is_down { (from_y + 1, beside) } else { (beside, from_y - 1) };
        for row in first..=last {
            // What is in the lanes between stays to be seen.
            if row % self.rooms.pitch != 0 {
                self.put(start, row, '│');
            }
        }
        if start != end {
            for column in start.min(end)..=start.max(end) {
                self.put(column, beside, '─');
            }
            let corner = match (is_down, start < end) {
                (true, true) => '└',
                (true, false) => '┘',
                (false, true) => '┌',
                (false, false) => '┐',
            };
            self.put(start, beside, corner);
        }
        self.put(end, beside, if is_cut { '→' } else { arrow });
    }

    fn put(&mut self, column: usize, row: usize, glyph: char) {
        let area = self.rooms.lanes;
        let (Ok(column), Ok(row)) = (u16::try_from(column), u16::try_from(row)) else { return };
        if column >= area.width || row >= area.height {
            return;
        }
        if let Some(cell) = self.buffer.cell_mut(Position::new(area.x + column, area.y + row)) {
            cell.set_char(self.theme.symbols.glyph(glyph)).set_style(self.theme.palette.of(self.tone));
        }
    }
}
