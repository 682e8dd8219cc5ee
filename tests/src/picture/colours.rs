//! Colours of terminals as those of the web.

use ratatui::style::{Color, Modifier, Style};

pub(super) const BACKGROUND: &str = "#16181d";
const FOREGROUND: &str = "#d4d7dc";

/// The first sixteen, as many terminals have them.
const NAMED: [&str; 16] = [
    "#000000", "#cd3131", "#0dbc79", "#e5e510", "#2472c8", "#bc3fbc", "#11a8cd", "#e5e5e5", "#666666", "#f14c4c",
    "#23d18b", "#f5f543", "#3b8eea", "#d670d6", "#29b8db", "#ffffff",
];

/// How a character looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) foreground: String,
    /// `None`: that of the whole picture.
    pub(super) background: Option<String>,
    pub(super) bold: bool,
    pub(super) dim: bool,
    pub(super) underlined: bool,
}

impl Look {
    pub(super) fn of(style: Style) -> Self {
        let has = |modifier| style.add_modifier.contains(modifier);
        let foreground = web(style.fg).unwrap_or_else(|| FOREGROUND.to_owned());
        let background = web(style.bg);
        let (foreground, background) = if has(Modifier::REVERSED) {
            (background.unwrap_or_else(|| BACKGROUND.to_owned()), Some(foreground))
        } else {
            (foreground, background)
        };
        let (bold, dim, underlined) = (has(Modifier::BOLD), has(Modifier::DIM), has(Modifier::UNDERLINED));
        Self { foreground, background, bold, dim, underlined }
    }
}

/// `None`: the terminal's own.
fn web(colour: Option<Color>) -> Option<String> {
    let number = match colour? {
        Color::Reset => return None,
        Color::Rgb(red, green, blue) => return Some(format!("#{red:02x}{green:02x}{blue:02x}")),
        Color::Indexed(number) => number,
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 8,
        Color::LightRed => 9,
        Color::LightGreen => 10,
        Color::LightYellow => 11,
        Color::LightBlue => 12,
        Color::LightMagenta => 13,
        Color::LightCyan => 14,
        Color::White => 15,
    };
    Some(indexed(number))
}

/// Of the 256: sixteen with names, a cube of six steps each way, greys.
fn indexed(number: u8) -> String {
    if let Some(named) = NAMED.get(usize::from(number)) {
        return (*named).to_owned();
    }
    if number >= 232 {
        let grey = 8 + 10 * (number - 232);
        return format!("#{grey:02x}{grey:02x}{grey:02x}");
    }
    let step = |value: u8| if value == 0 { 0 } else { 55 + 40 * value };
    let place = number - 16;
    format!("#{:02x}{:02x}{:02x}", step(place / 36), step(place / 6 % 6), step(place % 6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_256_colours() {
        assert_eq!(
            [1, 16, 80, 231, 236, 255].map(indexed),
            ["#cd3131", "#000000", "#5fd7d7", "#ffffff", "#303030", "#eeeeee"]
        );
    }

    #[test]
    fn reversed_is_the_other_way_round() {
        let look = Look::of(Style::new().fg(Color::Indexed(80)).add_modifier(Modifier::REVERSED));
        assert_eq!((look.foreground.as_str(), look.background.as_deref()), (BACKGROUND, Some("#5fd7d7")));
    }
}
