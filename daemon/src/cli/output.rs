//! What every command that writes has in common: whose the files are, and which rows are shown.

use clap::Args;
use mpiprobe_model::filter::{Filter, FilterError};

/// Who may read what is written.
#[derive(Args, Clone, Copy, Debug)]
pub struct FileMode {
    /// Mode of files that are made, such as 644 for everybody to read them; they are yours alone unless you say so.
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = file_mode, help_heading = "Output")]
    pub file_mode: u32,
}

pub(super) fn filter(text: &str) -> Result<Filter, String> {
    text.parse().map_err(|error: FilterError| error.to_string())
}

fn file_mode(text: &str) -> Result<u32, String> {
    const READ_AND_WRITE: u32 = 0o666;
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| mode & !READ_AND_WRITE == 0);
    mode.ok_or_else(|| "three octal digits that let read and write, such as 600, 640 or 644".into())
}
