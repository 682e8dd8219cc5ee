//! What is taken away from the view: files and copied rows.

use std::io::{self, Write as _};

use mpiprobe_discover::files::{PRIVATE, create_new};
use mpiprobe_model::{Profile, analyse::ProfileOutput};
use mpiprobe_report::present::{TextOptions, findings};

use super::content::{Grid, Row};

/// As many files as are tried for one moment.
const TRIES: u32 = 100;

/// How a profile is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Json,
}

/// Writes the profile into a new file in the working directory, and gives its name. No file is ever overwritten, nor a symbolic
/// link followed: mpiprobe may be root in a directory of somebody else.
pub(super) fn write(profile: &Profile, form: Form) -> io::Result<String> {
    let (text, ending) = match form {
        Form::Text => {
            (mpiprobe_report::present::profile(&TextOptions::default(), profile, &findings(profile), None), "txt")
        }
        Form::Json => (serde_json::to_string(&ProfileOutput::new(profile, profile))? + "\n", "json"),
    };
    let (name, mut file) = new_file(&file_name(profile), ending, |name| create_new(name.as_ref(), PRIVATE))?;
    file.write_all(text.as_bytes()).map(|()| name)
}

/// How names of files of that moment begin.
pub(super) fn file_name(profile: &Profile) -> String {
    let moment: String = profile.began.chars().filter(char::is_ascii_alphanumeric).take(15).collect();
    format!("mpiprobe-{moment}-{}s", profile.observed_ns / 1_000_000_000)
}

/// A new file, with a number in its name if there is one of that name; with that name.
pub(super) fn new_file<T>(name: &str, ending: &str, create: impl Fn(&str) -> io::Result<T>) -> io::Result<(String, T)> {
    for attempt in 0..TRIES {
        let number = if attempt == 0 { String::new() } else { format!("-{attempt}") };
        let name = format!("{name}{number}.{ending}");
        match create(&name) {
            Ok(file) => return Ok((name, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// A row as text: titles and cells by tabs.
pub(super) fn row(grid: &Grid, row: &Row) -> String {
    let cells = grid.columns.iter().zip(&row.cells).map(|(column, cell)| (column.title, cell.plain()));
    let filled = cells.filter(|(_, text)| !text.trim().is_empty());
    filled.map(|(title, text)| format!("{title}: {}", text.trim())).collect::<Vec<_>>().join("\t")
}
