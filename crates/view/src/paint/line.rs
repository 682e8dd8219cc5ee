//! Text that is cut where the room ends.

use ratatui::{buffer::Buffer, layout::Rect, style::Style};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::Theme;
use crate::content::Tone;

/// Text of one tone.
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) style: Style,
}

/// One line, made from left to right.
pub(crate) struct Line {
    theme: Theme,
    pieces: Vec<Piece>,
}

impl Line {
    pub(crate) fn new(theme: Theme) -> Self {
        Self { theme, pieces: Vec::new() }
    }

    #[must_use]
    pub(crate) fn add(self, tone: Tone, text: &str) -> Self {
        let style = self.theme.palette.of(tone);
        self.styled(style, text)
    }

    #[must_use]
    pub(crate) fn styled(mut self, style: Style, text: &str) -> Self {
        self.pieces.push(Piece { text: self.theme.symbols.text(text), style });
        self
    }

    pub(crate) fn width(&self) -> u16 {
        self.pieces.iter().map(|piece| width(&piece.text)).fold(0, u16::saturating_add)
    }

    /// Puts it into the first line of `area`; gives the column behind it.
    pub(crate) fn put(&self, buffer: &mut Buffer, area: Rect) -> u16 {
        let mut x = area.x;
        for piece in &self.pieces {
            let room = area.right().saturating_sub(x);
            if room == 0 || area.height == 0 {
                break;
            }
            let text = fit(&piece.text, room, self.theme.symbols.cut());
            (x, _) = buffer.set_stringn(x, area.y, text, room.into(), piece.style);
        }
        x
    }

    /// The same at the right end.
    pub(crate) fn put_right(&self, buffer: &mut Buffer, area: Rect) {
        let left = area.width.saturating_sub(self.width());
        self.put(buffer, Rect { x: area.x + left, width: area.width - left, ..area });
    }
}

/// Columns that a text takes.
pub(crate) fn width(text: &str) -> u16 {
    u16::try_from(text.width()).unwrap_or(u16::MAX)
}

/// Cut where the room ends, which is shown.
pub(crate) fn fit(text: &str, room: u16, cut: char) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut taken = 0;
    let mut fitted = String::new();
    for letter in text.chars() {
        taken += u16::try_from(letter.width().unwrap_or(0)).unwrap_or(0);
        if taken > room.saturating_sub(1) {
            break;
        }
        fitted.push(letter);
    }
    fitted.push(cut);
    fitted
}

/// Line `number` of an area; empty if it has fewer.
pub(crate) fn line_of(area: Rect, number: u16) -> Rect {
    Rect { y: area.y.saturating_add(number), height: u16::from(number < area.height), ..area }
}

/// Lines with a title, or none.
pub(crate) type Section = Vec<Line>;

pub(crate) fn title(text: &str, theme: Theme) -> Line {
    Line::new(theme).add(Tone::Title, &format!(" {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_by_columns_not_by_letters() {
        assert_eq!(fit("abc", 3, '…'), "abc");
        assert_eq!(fit("abcd", 3, '…'), "ab…");
        assert_eq!(fit("計算する", 5, '…'), "計算…");
        assert_eq!(fit("abc", 0, '…'), "…");
    }
}
