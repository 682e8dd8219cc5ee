//! What everything is drawn with, whatever it shows.

pub(crate) mod help;
pub(crate) mod line;
pub(crate) mod popup;
mod style;
mod symbols;

pub(crate) use style::Palette;

use ratatui::{Frame, layout::Rect};

use self::{line::Line, symbols::Symbols};
use super::{content::Tone, keys::Binding, layout::SMALLEST, options::ViewOptions};

/// How things look on this terminal.
#[derive(Clone, Copy, Debug)]
pub struct Theme {
    pub(crate) palette: Palette,
    pub(crate) symbols: Symbols,
}

impl Theme {
    /// `options` must have been resolved.
    pub fn new(options: ViewOptions) -> Self {
        Self { palette: Palette::new(options.scheme), symbols: Symbols::new(options.ascii) }
    }
}

/// The keys that fit, most wanted first.
pub(crate) fn footer<A>(frame: &mut Frame<'_>, area: Rect, bindings: &[Binding<A>], is_typing: bool, theme: Theme) {
    let mut line = Line::new(theme);
    for binding in bindings.iter().filter(|binding| binding.is_typing() == is_typing) {
        let Some(short) = binding.short else { continue };
        let key = binding.shown.split(' ').next().unwrap_or_default();
        let longer = Line::new(theme).add(Tone::Key, &format!(" {key} ")).add(Tone::Plain, &format!(" {short} "));
        if line.width() + longer.width() > area.width {
            break;
        }
        line = line.add(Tone::Key, &format!(" {key} ")).add(Tone::Plain, &format!(" {short} "));
    }
    line.put(frame.buffer_mut(), area);
}

/// The first letter of a group of functions.
pub(crate) fn part_letter(tone: Tone) -> char {
    match tone {
        Tone::Group(0) => 'p',
        Tone::Group(1) => 'c',
        Tone::Group(2) => 'w',
        Tone::Group(3) => 's',
        Tone::Group(4) => 'r',
        Tone::Group(5) => 'f',
        _ => 'o',
    }
}

pub(crate) fn too_small(frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let text = format!("{}x{} or larger, please", SMALLEST.width, SMALLEST.height);
    frame.buffer_mut().set_stringn(area.x, area.y, text, area.width.into(), ratatui::style::Style::new());
}
