//! What a terminal shows as an SVG image. Every run of characters says how wide it is, and blocks are drawn as such, so that columns
//! stand below each other whichever font there is.

use std::fmt::Write as _;

use ratatui::buffer::Buffer;

use super::colours::{BACKGROUND, Look};

/// Of a character, in pixels.
const WIDTH: usize = 8;
const HEIGHT: usize = 17;
/// From the top of a line to where letters stand.
const BASELINE: usize = 13;
/// Around everything.
const MARGIN: usize = 10;

/// Characters of one line that look alike.
struct Run {
    column: usize,
    text: String,
    look: Look,
}

/// The image. The same buffer gives the same text.
pub fn svg(buffer: &Buffer, title: &str) -> String {
    let (columns, rows) = (usize::from(buffer.area.width), usize::from(buffer.area.height));
    let (width, height) = (columns * WIDTH + 2 * MARGIN, rows * HEIGHT + 2 * MARGIN);
    let mut image = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"13\">\n\
         <title>{}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"{BACKGROUND}\"/>\n",
        escaped(title)
    );
    for (row, y) in (0..buffer.area.height).zip((MARGIN..).step_by(HEIGHT)) {
        for run in runs(buffer, row) {
            line(&mut image, &run, y);
        }
    }
    image.push_str("</svg>\n");
    image
}

fn runs(buffer: &Buffer, row: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let cells = (0..buffer.area.width).filter_map(|column| buffer.cell((column, row)));
    for (column, cell) in cells.enumerate() {
        let look = Look::of(cell.style());
        match runs.last_mut() {
            Some(run) if run.look == look => run.text.push_str(cell.symbol()),
            _ => runs.push(Run { column, text: cell.symbol().to_owned(), look }),
        }
    }
    runs
}

fn line(image: &mut String, run: &Run, y: usize) {
    let x = |column: usize| MARGIN + (run.column + column) * WIDTH;
    let letters: Vec<char> = run.text.chars().collect();
    if let Some(background) = &run.look.background {
        rectangle(image, (x(0), y), (letters.len() * WIDTH, HEIGHT), background, None);
    }
    let mut column = 0;
    while let Some(&letter) = letters.get(column) {
        let rest = letters.get(column..).unwrap_or_default();
        let end = if letter == ' ' {
            1
        } else if let Some(block) = Block::of(letter) {
            let alike = rest.iter().take_while(|&&next| next == letter).count();
            // Only those that fill their width can be drawn as one.
            let end = if block.across == 8 { alike } else { 1 };
            block.draw(image, (x(column), y), end, &run.look);
            end
        } else {
            let end = words(rest);
            let text: String = rest.iter().take(end).collect();
            write(image, &text, (x(column), y + BASELINE), end * WIDTH, &run.look);
            end
        };
        column += end;
    }
}

/// Letters up to the next block, or to more than one blank: those are no part of a text.
fn words(letters: &[char]) -> usize {
    let is_end = |place: usize| {
        let [this, next] = [place, place + 1].map(|place| letters.get(place).copied());
        this.is_some_and(|letter| Block::of(letter).is_some()) || this == Some(' ') && matches!(next, None | Some(' '))
    };
    (0..letters.len()).find(|&place| is_end(place)).unwrap_or(letters.len())
}

fn write(image: &mut String, text: &str, (x, y): (usize, usize), width: usize, look: &Look) {
    let Look { foreground, bold, dim, underlined, .. } = look;
    let bold = if *bold { " font-weight=\"bold\"" } else { "" };
    let dim = if *dim { " opacity=\"0.6\"" } else { "" };
    let underlined = if *underlined { " text-decoration=\"underline\"" } else { "" };
    let text = escaped(text);
    let _ = writeln!(
        image,
        "<text x=\"{x}\" y=\"{y}\" textLength=\"{width}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{foreground}\"{bold}{dim}{underlined}>\
         {text}</text>"
    );
}

fn rectangle(
    image: &mut String,
    (x, y): (usize, usize),
    (width, height): (usize, usize),
    fill: &str,
    opacity: Option<u8>,
) {
    let opacity = opacity.map(|quarters| format!(" opacity=\"{}\"", f32::from(quarters) / 4.0)).unwrap_or_default();
    let _ =
        writeln!(image, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"{opacity}/>");
}

/// A character that fills a part of its place.
#[derive(Clone, Copy)]
struct Block {
    /// Eighths from the left.
    across: usize,
    /// Eighths from the bottom.
    up: usize,
    /// Quarters of the colour.
    shade: Option<u8>,
}

impl Block {
    fn of(letter: char) -> Option<Self> {
        const ACROSS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
        const UP: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const SHADES: [char; 3] = ['░', '▒', '▓'];
        let eighths = |letters: &[char]| letters.iter().position(|&known| known == letter).map(|place| place + 1);
        if let Some(across) = eighths(&ACROSS) {
            return Some(Self { across, up: 8, shade: None });
        }
        if let Some(up) = eighths(&UP) {
            return Some(Self { across: 8, up, shade: None });
        }
        let shade = eighths(&SHADES).and_then(|quarters| u8::try_from(quarters).ok())?;
        Some(Self { across: 8, up: 8, shade: Some(shade) })
    }

    /// So many of them, one beside the other.
    fn draw(self, image: &mut String, (x, y): (usize, usize), number: usize, look: &Look) {
        let (width, height) = (number * WIDTH * self.across / 8, HEIGHT * self.up / 8);
        rectangle(image, (x, y + HEIGHT - height), (width, height), &look.foreground, self.shade);
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use ratatui::{
        buffer::Buffer,
        style::{Color, Style},
    };

    use super::svg;

    #[test]
    fn letters_and_blocks_are_where_they_are_on_the_terminal() {
        let mut buffer = Buffer::with_lines(["a <b  c", " ██▌░"]);
        buffer.set_style(ratatui::layout::Rect::new(6, 0, 1, 1), Style::new().bg(Color::Red));
        let image = svg(&buffer, "a & b");
        let elements: Vec<&str> =
            image.lines().skip(1).map(|line| line.split(" fill").next().unwrap_or(line)).collect();
        assert_eq!(
            elements,
            [
                "<title>a &amp; b</title>",
                "<rect width=\"76\" height=\"54\" rx=\"6\"",
                "<text x=\"10\" y=\"23\" textLength=\"32\" lengthAdjust=\"spacingAndGlyphs\"",
                "<rect x=\"58\" y=\"10\" width=\"8\" height=\"17\"",
                "<text x=\"58\" y=\"23\" textLength=\"8\" lengthAdjust=\"spacingAndGlyphs\"",
                "<rect x=\"18\" y=\"27\" width=\"16\" height=\"17\"",
                "<rect x=\"34\" y=\"27\" width=\"4\" height=\"17\"",
                "<rect x=\"42\" y=\"27\" width=\"8\" height=\"17\"",
                "</svg>",
            ]
        );
        assert!(image.contains(">a &lt;b</text>") && image.contains("opacity=\"0.25\""), "{image}");
    }
}
