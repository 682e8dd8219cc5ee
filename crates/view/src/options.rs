//! What the terminal can show, and what the user wants of it.

use std::env::VarError;

/// Colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Scheme {
    /// `dark` where the terminal has 256 colours, `ansi` where it has 16, `none` if NO_COLOR is set.
    #[default]
    Auto,
    /// For a dark background, 256 colours.
    Dark,
    /// For a light background, 256 colours.
    Light,
    /// The terminal's own 16 colours.
    Ansi,
    /// None: bold, dim and reverse instead.
    None,
}

/// How the view looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct ViewOptions {
    pub scheme: Scheme,
    /// No characters beyond ASCII.
    pub ascii: bool,
    /// Clicks and the wheel are for the view; selecting text with the mouse then needs Shift.
    pub mouse: bool,
}

/// Reads a variable of the environment.
pub(super) type Variable<'a> = &'a dyn Fn(&str) -> Result<String, VarError>;

impl ViewOptions {
    /// What was left open is decided by the environment.
    #[must_use]
    pub fn resolved(self, variable: Variable<'_>) -> Self {
        let scheme = if self.scheme == Scheme::Auto { automatic(variable) } else { self.scheme };
        Self { scheme, ascii: self.ascii || !is_utf8(variable), ..self }
    }
}

fn set(variable: Variable<'_>, name: &str) -> Option<String> {
    variable(name).ok().filter(|value| !value.is_empty())
}

/// See no-color.org.
fn automatic(variable: Variable<'_>) -> Scheme {
    let terminal = set(variable, "TERM").unwrap_or_default();
    if set(variable, "NO_COLOR").is_some() || terminal == "dumb" || terminal.starts_with("vt") {
        return Scheme::None;
    }
    let is_rich = terminal.contains("256color") || set(variable, "COLORTERM").is_some();
    if !is_rich {
        return Scheme::Ansi;
    }
    // "foreground;background" as numbers of the 16 colours: 7 and 15 are light.
    let background = set(variable, "COLORFGBG").and_then(|colours| colours.rsplit(';').next()?.parse().ok());
    if matches!(background, Some(7u8 | 15)) { Scheme::Light } else { Scheme::Dark }
}

/// By the first of the variables that is set, as the C library decides.
fn is_utf8(variable: Variable<'_>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| set(variable, name)).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(variables: &[(&str, &str)]) -> (Scheme, bool) {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned()).ok_or(VarError::NotPresent)
        };
        let options = ViewOptions::default().resolved(&variable);
        (options.scheme, options.ascii)
    }

    #[test]
    fn the_environment_decides_what_is_left_open() {
        let utf8 = ("LANG", "de_DE.UTF-8");
        assert_eq!(resolved(&[("TERM", "xterm-256color"), utf8]), (Scheme::Dark, false));
        assert_eq!(resolved(&[("TERM", "xterm-256color"), utf8, ("COLORFGBG", "0;15")]), (Scheme::Light, false));
        assert_eq!(resolved(&[("TERM", "xterm"), utf8]), (Scheme::Ansi, false));
        assert_eq!(resolved(&[("TERM", "xterm"), utf8, ("NO_COLOR", "1")]), (Scheme::None, false));
        assert_eq!(resolved(&[("TERM", "xterm"), utf8, ("NO_COLOR", "")]), (Scheme::Ansi, false));
        assert_eq!(resolved(&[("TERM", "xterm"), ("LC_ALL", "C"), utf8]), (Scheme::Ansi, true));
        assert_eq!(resolved(&[("TERM", "vt100")]), (Scheme::None, true));
    }
}
