//! Lists to choose from: completions, saved views.

use ratatui::{Frame, layout::Rect};

use crate::paint::{
    Palette, Theme,
    line::{Line, line_of, width},
    popup,
};
use crate::{
    content::Tone,
    layout::{self, Size},
    state::{List, State},
    user::SavedView,
};

/// Rows of completions that are shown at once.
const ROWS: u16 = 8;
/// Columns of the widest.
const WIDEST: u16 = 70;

/// A name, and what it means.
type Entry<'a> = (&'a str, String);

/// What fits at a place on the screen: above it, or below if there is more room.
pub(super) fn completion(frame: &mut Frame<'_>, size: Size, found: &List, (x, y): (u16, u16), theme: Theme) {
    let entries: Vec<Entry<'_>> =
        found.candidates.iter().map(|candidate| (candidate.text.trim(), candidate.what.clone())).collect();
    let more = if found.more > 0 { format!(", {} more", found.more) } else { String::new() };
    let title = format!(" {} of {}{more} ", found.chosen + 1, entries.len());
    let names = entries.iter().map(|(name, _)| width(name)).max().unwrap_or(0).min(WIDEST / 2);
    let widest = entries.iter().map(|(_, what)| names + 2 + width(what)).max().unwrap_or(0).max(width(&title));
    let wide = (widest + 4).min(WIDEST).min(size.width);
    let high = (u16::try_from(entries.len()).unwrap_or(u16::MAX).min(ROWS) + 2).min(size.height);
    let top = if y >= high { y - high } else { (y + 1).min(size.height - high) };
    let area = Rect::new(x.min(size.width - wide), top, wide, high);
    let inside = popup::draw(frame, area, &title, theme);
    rows(frame, inside, &entries, (names, found.chosen), theme);
}

/// The saved views.
pub(super) fn saved(frame: &mut Frame<'_>, size: Size, state: &State, theme: Theme) {
    let Some(chosen) = state.saved().chosen else { return };
    let entries: Vec<Entry<'_>> = state.saved().iter().map(|(name, view)| (name.as_str(), description(view))).collect();
    let names = entries.iter().map(|(name, _)| width(name)).max().unwrap_or(0).min(size.width / 3);
    let inside =
        popup::draw(frame, layout::list(size, entries.len()), " Saved views — Enter shows one, Esc closes ", theme);
    rows(frame, inside, &entries, (names, chosen), theme);
}

/// "ranks by time, rank in 0..15"
fn description(view: &SavedView) -> String {
    let screen = view.screen.map(|screen| screen.title().to_owned());
    let sort = view.sort.as_ref().map(|sort| format!("by {sort}"));
    let filter = view.filter.as_ref().map(|filter| filter.line().to_owned());
    let place = [screen, sort].into_iter().flatten().collect::<Vec<_>>().join(" ");
    [Some(place), filter].into_iter().flatten().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ")
}

fn rows(frame: &mut Frame<'_>, area: Rect, entries: &[Entry<'_>], (names, chosen): (u16, usize), theme: Theme) {
    let height = usize::from(area.height.max(1));
    let top = (chosen + 1).saturating_sub(height);
    for (number, (index, (name, what))) in (0..area.height).zip(entries.iter().enumerate().skip(top)) {
        let place = line_of(area, number);
        let room = Rect { width: place.width.min(names + 1), ..place };
        Line::new(theme).add(Tone::Plain, &format!(" {name}")).put(frame.buffer_mut(), room);
        let rest = Rect { x: place.x + room.width, width: place.width - room.width, ..place };
        Line::new(theme).add(Tone::Dim, &format!("  {what}")).put(frame.buffer_mut(), rest);
        if index == chosen {
            frame.buffer_mut().set_style(place, Palette::selected());
        }
    }
}
