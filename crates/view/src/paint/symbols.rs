//! Characters that draw: blocks and lines, or what comes next to them in ASCII.

/// The characters that the terminal can show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbols {
    ascii: bool,
}

const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_STEPS: [char; 8] = ['.', ':', '-', '=', '+', '*', '#', '@'];
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

impl Symbols {
    pub(crate) fn new(ascii: bool) -> Self {
        Self { ascii }
    }

    pub(crate) fn is_ascii(self) -> bool {
        self.ascii
    }

    /// Text as it can be shown.
    pub(crate) fn text(self, text: &str) -> String {
        if !self.ascii || text.is_ascii() {
            return text.to_owned();
        }
        let shown = text.chars().map(|letter| match letter {
            'µ' => 'u',
            '×' => 'x',
            '→' | '▸' => '>',
            '←' => '<',
            '↑' | '▲' => '^',
            '↓' | '▼' => 'v',
            '·' | '—' | '–' => '-',
            '…' => '~',
            letter if letter.is_ascii() => letter,
            _ => '?',
        });
        shown.collect()
    }

    /// A character of a drawing.
    pub(crate) fn glyph(self, glyph: char) -> char {
        match glyph {
            glyph if !self.ascii => glyph,
            '│' => '|',
            '─' => '-',
            '┌' | '┐' | '└' | '┘' => '+',
            '▼' => 'v',
            '▲' => '^',
            '→' => '>',
            '·' => '.',
            '░' => ':',
            glyph if glyph.is_ascii() => glyph,
            _ => '?',
        }
    }

    /// What stands for text that does not fit.
    pub(crate) fn cut(self) -> char {
        if self.ascii { '~' } else { '…' }
    }

    /// Shades, and above how many per cent of the highest value each begins; darkest first.
    pub(crate) fn shades(self) -> [(char, u8); 4] {
        let [full, dark, medium, light] = if self.ascii { ['#', '+', ':', '.'] } else { ['█', '▓', '▒', '░'] };
        [(full, 50), (dark, 10), (medium, 1), (light, 0)]
    }

    /// How a value looks, next to the highest one.
    pub(crate) fn shade(self, value: u64, highest: u64) -> char {
        let shares = self.shades();
        let share = if highest == 0 { 0.0 } else { 100.0 * value as f64 / highest as f64 };
        shares.into_iter().find(|(_, above)| share > f64::from(*above)).map_or(' ', |(shade, _)| shade)
    }

    /// A bar of `width` characters, of which `share` (0 to 1) is filled.
    pub(crate) fn bar(self, share: f64, width: u16) -> String {
        let eighths = round(share.clamp(0.0, 1.0) * f64::from(width) * 8.0);
        let (full, rest) = (eighths / 8, eighths % 8);
        let mut bar = String::new();
        bar.extend(std::iter::repeat_n(if self.ascii { '#' } else { '█' }, full));
        if self.ascii {
            bar.extend((rest >= 4).then_some('='));
        } else {
            bar.extend(rest.checked_sub(1).and_then(|index| EIGHTHS.get(index)));
        }
        let filled = full + usize::from(bar.chars().count() > full);
        bar.extend(std::iter::repeat_n(' ', usize::from(width).saturating_sub(filled)));
        bar
    }

    /// The last `width` values as a line of bars, the highest of them full.
    pub(crate) fn sparkline(self, values: impl DoubleEndedIterator<Item = f64>, width: u16) -> String {
        let mut last: Vec<f64> = values.rev().take(width.into()).collect();
        last.reverse();
        let highest = last.iter().copied().fold(0.0, f64::max);
        let steps = if self.ascii { ASCII_STEPS } else { STEPS };
        let step = |value: f64| {
            let index = if highest > 0.0 { round(value / highest * 7.0) } else { 0 };
            if value > 0.0 { steps.get(index).copied().unwrap_or(' ') } else { ' ' }
        };
        let blanks = usize::from(width).saturating_sub(last.len());
        std::iter::repeat_n(' ', blanks).chain(last.into_iter().map(step)).collect()
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and not negative")]
fn round(value: f64) -> usize {
    value.max(0.0).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_their_width() {
        let symbols = [Symbols::new(false), Symbols::new(true)];
        for share in [-1.0, 0.0, 0.01, 0.33, 0.5, 0.999, 1.0, 2.0] {
            for bar in symbols.map(|symbols| symbols.bar(share, 10)) {
                assert_eq!(bar.chars().count(), 10, "{share}: {bar:?}");
            }
        }
        assert_eq!(symbols.map(|symbols| symbols.bar(0.5, 4)), ["██  ", "##  "]);
        assert_eq!(Symbols::new(false).bar(0.4, 4), "█▋  ");
    }

    #[test]
    fn a_sparkline_ends_with_the_latest() {
        let line = |values: &[f64], width| Symbols::new(false).sparkline(values.iter().copied(), width);
        assert_eq!(line(&[0.0, 1.0, 4.0, 8.0], 6), "   ▂▅█");
        assert_eq!(line(&[8.0, 1.0, 1.0], 2), "██");
        assert_eq!(line(&[], 3), "   ");
    }

    #[test]
    fn ascii_is_ascii() {
        let symbols = Symbols::new(true);
        assert!(symbols.text("1.2 µs → 3 …").is_ascii());
        assert!(symbols.sparkline([1.0, 2.0].into_iter(), 4).is_ascii());
    }
}
