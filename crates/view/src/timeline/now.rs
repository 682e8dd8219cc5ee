//! What happens now: moments of a job that runs, of which there is what is in memory, and files of them.

use std::{fmt, io, sync::Arc};

use mpiprobe_discover::files::{NewFile, PRIVATE};
use mpiprobe_report::present::units::{count, ns};
use mpiprobe_trace::{
    Trace,
    store::{TraceFiles, WindowMoment},
};

use crate::export;

/// What there was of a job at one moment.
#[derive(Clone)]
pub struct Moment {
    pub(super) trace: Arc<dyn Trace + Send + Sync>,
    /// What had happened by then is known, ns; 0: as much as there is.
    pub(super) known_until_ns: u64,
    /// What was before is gone.
    pub(super) is_short: bool,
    pub(super) version: u64,
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Moment").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Moment {
    /// Of what was kept, which is shared.
    pub fn of(kept: &WindowMoment) -> Self {
        Self {
            trace: Arc::new(TraceFiles::of_dump(&kept.dump, "what is kept")),
            known_until_ns: kept.known_until_ns,
            is_short: kept.is_short,
            version: kept.version,
        }
    }
}

/// Writes a trace to a new file in the working directory, as profiles are written; tells what has come of it.
pub(super) fn write(kept: &WindowMoment, name: &str) -> Result<String, String> {
    let dump = &kept.dump;
    if dump.event_count() == 0 {
        return Err("no call has been recorded yet".into());
    }
    let create = |name: &str| NewFile::create(name.as_ref(), PRIVATE);
    let (name, file) = export::new_file(name, "trace", create).map_err(|error| format!("{error}"))?;
    let written = file.write_with(|to| dump.write(to).map(drop).map_err(io::Error::other));
    written.map_err(|error| format!("{name}: {error}"))?;
    let calls = count(dump.call_count());
    Ok(format!("written to {name}: {calls} calls of the last {}", ns(dump.span_ns().unwrap_or(0))))
}
