//! A trace of which everything is known, as a file.

use std::{
    fs::File,
    io::BufWriter,
    path::{Path, PathBuf},
};

use libtest_mimic::Failed;
use mpiprobe_tests::{Ended, Profiler};
use mpiprobe_trace::{HandMade, Span, Trace as _, store};

pub(crate) const RANKS: u64 = 4;
pub(crate) const STEPS: u64 = 40;
/// Six receives, six sends, a wait, a reduction.
pub(crate) const CALLS_OF_STEP: u64 = 14;
pub(crate) const MESSAGES_OF_STEP: u64 = 6;

/// What a message is long, by its tag.
pub(crate) fn bytes(tag: i64) -> u64 {
    8192 << (tag % 3)
}

/// Whom a rank sends messages of a tag to: those of even tags down, those of odd ones up.
pub(crate) fn destination(from: u64, tag: u64) -> u64 {
    let distance = tag / 2 + 1;
    if tag.is_multiple_of(2) { (from + RANKS * 4 - distance) % RANKS } else { (from + distance) % RANKS }
}

/// The step of a call of its number.
pub(crate) fn step_of(number: u64) -> u64 {
    number / CALLS_OF_STEP
}

pub(crate) struct Made {
    folder: tempfile::TempDir,
    pub(crate) begin_ns: u64,
}

impl Made {
    /// Ranks that exchange with their neighbours.
    pub(crate) fn halo() -> Result<Self, Failed> {
        let made = HandMade::halo(u32::try_from(RANKS)?, STEPS);
        let folder = tempfile::tempdir()?;
        let file = BufWriter::new(File::create_new(folder.path().join("halo.trace"))?);
        store::copy(&made, Span::ALL, file)?.into_inner().map_err(|error| error.to_string())?;
        Ok(Self { folder, begin_ns: made.span().from_ns })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn trace(&self) -> String {
        self.path("halo.trace").display().to_string()
    }

    /// `mpiprobe export --to FORMAT NAME`, which must succeed.
    pub(crate) fn export(&self, to: &[&str; 2], options: &[&str]) -> Result<Ended, Failed> {
        let [format, name] = *to;
        let out = if name == "-" { Path::new(name).to_owned() } else { self.path(name) };
        let out = out.display().to_string();
        let arguments = ["export", &self.trace(), "--to", format, &out].map(str::to_owned);
        let ended = Profiler::start(arguments.into_iter().chain(options.iter().map(|&one| one.to_owned())))?.wait()?;
        if ended.status.success() { Ok(ended) } else { Err(ended.printed().into()) }
    }
}
