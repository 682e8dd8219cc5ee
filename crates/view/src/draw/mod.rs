//! Draws the state. Nothing here changes it or waits for anything.

mod editor;
mod frame;
mod glance;
mod grid;
mod list;
mod matrix;
mod overview;

use ratatui::Frame;

use super::{
    content::{Location, Screen},
    keys::{BINDINGS, Section},
    layout::{Areas, SMALLEST, Size},
    paint::{Theme, footer, help, popup, too_small},
    state::State,
};

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, state: &State, theme: Theme) {
    let area = frame.area();
    let size = Size { width: area.width, height: area.height };
    if size.width < SMALLEST.width || size.height < SMALLEST.height {
        too_small(frame, area);
        return;
    }
    let areas = Areas::of(size);
    frame::header(frame, areas.header, state, theme);
    frame::tabs(frame, areas.tabs, state, theme);
    match state.place() {
        _ if state.profile().is_none() => frame::waiting(frame, areas.body, theme),
        Location::Screen(Screen::Overview) => overview::draw(frame, areas.body, state, theme),
        Location::Screen(Screen::Timeline) => match state.timeline() {
            Ok(_) => {}
            Err(why) => frame::sentence(frame, areas.body, why, theme),
        },
        Location::Screen(Screen::Matrix) | Location::Block(_) => matrix::draw(frame, areas.body, state, theme),
        _ => grid::draw(frame, areas.body, state, theme),
    }
    match state.timeline() {
        Ok(timeline) if state.is_timeline() && state.profile().is_some() => {
            crate::timeline::draw(frame, timeline, theme);
            if state.notice.is_some() {
                popup::clear(frame, areas.notice);
                frame::notice(frame, areas.notice, state, theme);
            }
        }
        _ => {
            frame::notice(frame, areas.notice, state, theme);
            footer(frame, areas.footer, BINDINGS, state.editor().is_some(), theme);
        }
    }
    list::saved(frame, size, state, theme);
    editor::draw(frame, size, state, theme);
    if state.is_help_open {
        help::draw(frame, size, &help::lines(&Section::ALL, BINDINGS, theme), state.help_top(), theme);
    }
}
