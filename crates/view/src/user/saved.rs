//! A view as it is saved.

use mpiprobe_model::filter::Filter;
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::content::{Measure, Screen, Span};

/// What is shown, and how; what is left out stays as it is, but for the filter.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SavedView {
    /// Without one, all rows.
    #[serde(deserialize_with = "filter")]
    pub filter: Option<Filter>,
    #[serde(deserialize_with = "screen")]
    pub screen: Option<Screen>,
    /// Title of a column.
    pub sort: Option<String>,
    pub descending: Option<bool>,
    #[serde(deserialize_with = "span")]
    pub span: Option<Span>,
    #[serde(deserialize_with = "measure")]
    pub measure: Option<Measure>,
}

fn filter<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Filter>, D::Error> {
    let text = String::deserialize(from)?;
    let wrong = |error: mpiprobe_model::filter::FilterError| {
        let (line, column) = error.place();
        D::Error::custom(format!("line {}, column {} of the filter: {}", line + 1, column + 1, error.message))
    };
    if Filter::is_blank(&text) { Ok(None) } else { text.parse().map(Some).map_err(wrong) }
}

fn screen<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Screen>, D::Error> {
    one_of(from, &Screen::ALL, Screen::name)
}

fn span<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Span>, D::Error> {
    one_of(from, &Span::ALL, |span| span.name().to_owned())
}

fn measure<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Measure>, D::Error> {
    one_of(from, &Measure::ALL, |measure| measure.name().to_owned())
}

fn one_of<'de, D: Deserializer<'de>, T: Copy>(
    from: D,
    all: &[T],
    name: impl Fn(T) -> String,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(from)?;
    let found = all.iter().copied().find(|one| name(*one) == text);
    let names = || all.iter().map(|one| name(*one)).collect::<Vec<_>>().join(", ");
    found.map(Some).ok_or_else(|| D::Error::custom(format!("{text:?} is none of {}", names())))
}
