//! What all pictures have in common.

use plotters::{
    coord::Shift,
    prelude::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea as _, RGBColor, SVGBackend, WHITE},
};

use super::{PlotError, PlotOptions};

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub(super) const FONT: &str = "Helvetica, Arial, sans-serif";
/// Sizes of letters, pixels.
const TITLE: u32 = 20;
pub(super) const LABEL: u32 = 16;
/// Lines of the grid.
pub(super) const GRID: RGBColor = RGBColor(0xe3, 0xe6, 0xea);

/// Okabe and Ito's.
const KINDS: [RGBColor; 8] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0xb8, 0xa9, 0x00),
    RGBColor(0x7f, 0x7f, 0x7f),
];

/// Viridis in nine steps, the lightest first: darker is more, on paper as well.
const AMOUNTS: [RGBColor; 9] = [
    RGBColor(0xfd, 0xe7, 0x25),
    RGBColor(0xaa, 0xdc, 0x32),
    RGBColor(0x5d, 0xc8, 0x63),
    RGBColor(0x27, 0xad, 0x81),
    RGBColor(0x21, 0x91, 0x8c),
    RGBColor(0x2c, 0x72, 0x8e),
    RGBColor(0x3b, 0x52, 0x8b),
    RGBColor(0x47, 0x2d, 0x7b),
    RGBColor(0x44, 0x01, 0x54),
];

/// The colour of the nth kind of something.
pub(super) fn kind(number: usize) -> RGBColor {
    KINDS.get(number % KINDS.len()).copied().unwrap_or(RGBColor(0, 0, 0))
}

/// From nothing (0) to most (1).
pub(super) fn amount(share: f64) -> RGBColor {
    let place = share.clamp(0.0, 1.0) * (AMOUNTS.len() - 1) as f64;
    let step = AMOUNTS.iter().zip(AMOUNTS.iter().skip(1)).zip(0_u32..).find(|(_, at)| place <= f64::from(at + 1));
    let Some(((from, to), at)) = step else { return AMOUNTS.last().copied().unwrap_or(RGBColor(0, 0, 0)) };
    let part = place - f64::from(at);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two bytes")]
    let mixed = |from: u8, to: u8| (f64::from(from) + part * (f64::from(to) - f64::from(from))).round() as u8;
    RGBColor(mixed(from.0, to.0), mixed(from.1, to.1), mixed(from.2, to.2))
}

/// Size of the letters of a title, so that it fits into the picture.
pub(super) fn title_size(title: &str, options: &PlotOptions) -> u32 {
    let letters = u32::try_from(title.chars().count().max(1)).unwrap_or(u32::MAX);
    TITLE.min(options.width.saturating_mul(2) / letters).max(8)
}

/// Of a tick on an axis of whole numbers; what is between two of them has no label.
pub(super) fn whole(tick: f64, label: impl FnOnce(f64) -> String) -> String {
    if (tick - tick.round()).abs() < 1e-6 { label(tick.round()) } else { String::new() }
}

/// Draws on a light ground; gives the picture as text.
pub(super) fn draw(
    options: &PlotOptions,
    title: &str,
    what: impl FnOnce(&Area<'_>) -> Result<(), PlotError>,
) -> Result<String, PlotError> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (options.width, options.height)).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        what(&area)?;
        area.present().map_err(failed)?;
    }
    Ok(with_title(&svg, title))
}

/// Readers of the screen and of bookmarks see what it is.
fn with_title(svg: &str, title: &str) -> String {
    let safe = title.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    match svg.split_once("\">\n") {
        Some((head, rest)) => format!("{head}\" role=\"img\">\n<title>{safe}</title>\n{rest}"),
        None => svg.to_owned(),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn failed<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> PlotError {
    PlotError::Drawing(error.to_string())
}
