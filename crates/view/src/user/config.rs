//! The configuration file.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::SavedView;

/// What it says of the view. Defaults of options stand there too, which are not the view's business.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Config {
    /// By name.
    pub views: BTreeMap<String, SavedView>,
}

impl Config {
    /// What is wrong with it is told with line and column.
    pub fn of_text(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let column = before.chars().rev().take_while(|&letter| letter != '\n').count() + 1;
            format!("line {line}, column {column}: {}", error.message().trim().replace('\n', "; "))
        })
    }
}
