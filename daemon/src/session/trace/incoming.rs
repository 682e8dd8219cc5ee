//! A trace that is made elsewhere, as it comes from there.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use mpiprobe_report::present::say;

use super::{TraceError, file::Sink, options::TraceTo};

/// One that is kept, or passed on.
#[derive(Debug)]
pub(in crate::session) struct IncomingTrace {
    path: Option<PathBuf>,
    sink: Sink,
    /// Why nothing more is kept: what comes afterwards may need what is missing.
    trouble: Option<String>,
}

impl IncomingTrace {
    /// `None`: nobody wants it.
    pub(in crate::session) fn begin(to: &TraceTo) -> Result<Option<Self>, TraceError> {
        let path = to.path().map(Path::to_owned);
        Ok(Sink::of(to)?.map(|sink| Self { path, sink, trouble: None }))
    }

    pub(in crate::session) fn take(&mut self, chunk: &[u8]) {
        if self.trouble.is_none()
            && let Err(error) = self.sink.write_all(chunk)
        {
            let trouble = format!("{}the trace ends early: {error}", self.name());
            say(&trouble);
            self.trouble = Some(trouble);
        }
    }

    /// Why it is not whole.
    pub(in crate::session) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Nothing more comes.
    pub(in crate::session) fn finish(self) {
        let name = self.name();
        // Whoever it is passed on to knows if that has failed, or is not there.
        if let (Ok(bytes), true) = (self.sink.finish(), !name.is_empty()) {
            say(format_args!("{name}{bytes} bytes"));
        }
    }

    fn name(&self) -> String {
        self.path.as_ref().map_or_else(String::new, |path| format!("{}: ", path.display()))
    }
}
