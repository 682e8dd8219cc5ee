//! A trace of which everything is known, as a file.

use std::{
    fs::File,
    io::BufWriter,
    path::{Path, PathBuf},
};

use libtest_mimic::Failed;
use mpiprobe_tests::{Ended, Profiler, nodes::write_node};
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
    files: Vec<&'static str>,
    pub(crate) begin_ns: u64,
    /// How much later that may be found to be.
    pub(crate) within_ns: u64,
}

impl Made {
    /// Ranks that exchange with their neighbours.
    pub(crate) fn halo() -> Result<Self, Failed> {
        let made = HandMade::halo(u32::try_from(RANKS)?, STEPS);
        let folder = tempfile::tempdir()?;
        let file = BufWriter::new(File::create_new(folder.path().join("halo.trace"))?);
        store::copy(&made, Span::ALL, file)?.into_inner().map_err(|error| error.to_string())?;
        Ok(Self { folder, files: vec!["halo.trace"], begin_ns: made.span().from_ns, within_ns: 0 })
    }

    /// Ranks that send each other work, and receive it from anybody; all of it is in the file, or only what was recorded from some time on.
    pub(crate) fn irregular(is_whole: bool) -> Result<Self, Failed> {
        let made = HandMade::irregular(u32::try_from(RANKS)?, STEPS);
        let Span { from_ns, until_ns } = made.span();
        let mut part = HandMade::of_ranks(u32::try_from(RANKS)?);
        part.definitions.clone_from(&made.definitions);
        for process in &mut part.definitions.processes {
            process.began_before = !is_whole;
        }
        let begin_ns = if is_whole { from_ns } else { from_ns + (until_ns - from_ns) / 3 };
        for location in made.definitions.location_ids() {
            for event in made.events(location, Span::ALL) {
                let event = event?;
                if event.time_ns() >= begin_ns {
                    part.push(location.0, event);
                }
            }
        }
        let folder = tempfile::tempdir()?;
        let file = BufWriter::new(File::create_new(folder.path().join("irregular.trace"))?);
        store::copy(&part, Span::ALL, file)?.into_inner().map_err(|error| error.to_string())?;
        Ok(Self { folder, files: vec!["irregular.trace"], begin_ns, within_ns: 0 })
    }

    /// The same job over two nodes, the second of which was started five days before the first, and whose clock is 30 ppm too fast.
    pub(crate) fn over_nodes() -> Result<Self, Failed> {
        let made = HandMade::halo(u32::try_from(RANKS)?, STEPS);
        let folder = tempfile::tempdir()?;
        let (is_first, is_second) = (|rank: u32| rank < 2, |rank: u32| rank >= 2);
        write_node(&made, is_first, "n1", &|ns| ns, &folder.path().join("n1.trace"))?;
        let other = |ns: u64| ns + ns * 3 / 100_000 + 5 * 86_400_000_000_000;
        write_node(&made, is_second, "n2", &other, &folder.path().join("n2.trace"))?;
        Ok(Self { folder, files: vec!["n1.trace", "n2.trace"], begin_ns: made.span().from_ns, within_ns: 20_000 })
    }

    /// Of one node, and of two.
    pub(crate) fn both() -> Result<[Self; 2], Failed> {
        Ok([Self::halo()?, Self::over_nodes()?])
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn traces(&self) -> Vec<String> {
        self.files.iter().map(|name| self.path(name).display().to_string()).collect()
    }

    pub(crate) fn trace(&self) -> String {
        self.path("halo.trace").display().to_string()
    }

    /// `mpiprobe export --to FORMAT NAME`, which must succeed.
    pub(crate) fn export(&self, to: &[&str; 2], options: &[&str]) -> Result<Ended, Failed> {
        let ended = self.export_some(to, options)?;
        if ended.status.success() { Ok(ended) } else { Err(ended.printed().into()) }
    }

    /// The same, which may be incomplete.
    pub(crate) fn export_some(&self, to: &[&str; 2], options: &[&str]) -> Result<Ended, Failed> {
        let [format, name] = *to;
        let out = if name == "-" { Path::new(name).to_owned() } else { self.path(name) };
        let out = out.display().to_string();
        let mut arguments = vec!["export".to_owned()];
        arguments.extend(self.traces());
        arguments.extend(["--to", format, &out].map(str::to_owned));
        let ended = Profiler::start(arguments.into_iter().chain(options.iter().map(|&one| one.to_owned())))?.wait()?;
        if matches!(ended.status.code(), Some(0 | 3)) { Ok(ended) } else { Err(ended.printed().into()) }
    }
}
