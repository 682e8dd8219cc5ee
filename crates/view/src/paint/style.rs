//! Colours by meaning.

use ratatui::style::{Color, Modifier, Style};

use crate::{content::Tone, options::Scheme};

/// Styles of everything that is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    scheme: Scheme,
}

impl Palette {
    pub(crate) fn new(scheme: Scheme) -> Self {
        Self { scheme }
    }

    pub(crate) fn of(self, tone: Tone) -> Style {
        let style = Style::new();
        if self.scheme == Scheme::None {
            return match tone {
                Tone::Plain | Tone::Good | Tone::Group(_) => style,
                Tone::Dim => style.add_modifier(Modifier::DIM),
                Tone::Title | Tone::Warning => style.add_modifier(Modifier::BOLD),
                Tone::Alarm => style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
                Tone::Key => style.add_modifier(Modifier::REVERSED),
            };
        }
        match tone {
            Tone::Plain => style,
            // Grey by number would vanish on some backgrounds.
            Tone::Dim if self.scheme == Scheme::Ansi => style.add_modifier(Modifier::DIM),
            Tone::Title | Tone::Alarm => style.fg(self.colour(tone)).add_modifier(Modifier::BOLD),
            Tone::Key => style.fg(self.colour(tone)).add_modifier(Modifier::REVERSED),
            Tone::Dim | Tone::Good | Tone::Warning | Tone::Group(_) => style.fg(self.colour(tone)),
        }
    }

    /// The row that the cursor is on.
    pub(crate) fn selected() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The bar at the top.
    pub(crate) fn header(self) -> Style {
        match self.scheme {
            Scheme::Dark => Style::new().bg(Color::Indexed(236)),
            Scheme::Light => Style::new().bg(Color::Indexed(254)),
            Scheme::Ansi | Scheme::Auto | Scheme::None => Style::new(),
        }
    }

    fn colour(self, tone: Tone) -> Color {
        let (ansi, dark, light) = match tone {
            Tone::Plain => (Color::Reset, 7, 0),
            Tone::Dim => (Color::Reset, 245, 242),
            Tone::Title | Tone::Key => (Color::Cyan, 80, 24),
            Tone::Good => (Color::Green, 114, 28),
            Tone::Warning => (Color::Yellow, 221, 130),
            Tone::Alarm => (Color::Red, 203, 160),
            Tone::Group(number) => group(number),
        };
        match self.scheme {
            Scheme::Dark => Color::Indexed(dark),
            Scheme::Light => Color::Indexed(light),
            Scheme::Ansi | Scheme::Auto | Scheme::None => ansi,
        }
    }
}

/// Of the groups of functions, in their order; those after the sixth are rare and share one.
fn group(number: u8) -> (Color, u8, u8) {
    match number {
        0 => (Color::Blue, 75, 26),
        1 => (Color::Magenta, 176, 91),
        2 => (Color::Yellow, 215, 166),
        3 => (Color::Red, 210, 124),
        4 => (Color::Cyan, 116, 30),
        5 => (Color::Green, 150, 64),
        _ => (Color::White, 250, 240),
    }
}
