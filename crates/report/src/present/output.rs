//! Standard output, which may be a pipe that somebody closes.

use std::io::{self, BufWriter, Write};

use serde::Serialize;
use thiserror::Error;

/// Why something could not be printed.
#[derive(Debug, Error)]
pub enum OutputError {
    /// The reader has seen enough (`| head`): no failure.
    #[error("the reader of the output has closed it")]
    Closed,
    #[error("cannot write the output: {0}")]
    Write(#[source] io::Error),
    #[error("cannot write the output as JSON: {0}")]
    Json(#[source] serde_json::Error),
}

impl From<io::Error> for OutputError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::Closed } else { Self::Write(error) }
    }
}

/// Where results go; messages go to standard error.
#[derive(Clone, Copy, Debug)]
pub struct Output;

impl Output {
    pub fn text(self, text: &str) -> Result<(), OutputError> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()?;
        Ok(())
    }

    /// What comes bit by bit.
    pub fn with(self, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), OutputError> {
        let mut stdout = BufWriter::new(io::stdout().lock());
        content(&mut stdout)?;
        stdout.flush()?;
        Ok(())
    }

    /// One value on one line (JSON Lines).
    pub fn json_line(self, value: &impl Serialize) -> Result<(), OutputError> {
        let mut line = serde_json::to_string(value).map_err(OutputError::Json)?;
        line.push('\n');
        self.text(&line)
    }

    /// One value for people's eyes too.
    pub fn json(self, value: &impl Serialize) -> Result<(), OutputError> {
        let mut text = serde_json::to_string_pretty(value).map_err(OutputError::Json)?;
        text.push('\n');
        self.text(&text)
    }
}
