//! From addresses in modules to call sites with names, each looked up once.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use mpiprobe_model::{CallSite, SourceFrame};

use super::{
    caught::caught,
    module::{Module, ModuleAddress, ModuleId},
    names::{Names, ResolvedAddress},
};

/// Finds names, and remembers them.
///
/// Reading a large program's debug information takes a second or so: to be called when somebody wants to see names, not for
/// each call.
#[derive(Default)]
pub struct Symboliser {
    answers: HashMap<(ModuleId, u64), Arc<CallSite>>,
    /// The least recently used first.
    parsed: Vec<(ModuleId, Names)>,
    /// By user: bytes of files that may yet be read only to compare them with a checksum.
    checked: HashMap<u32, u64>,
}

impl Symboliser {
    /// Answers that are remembered; then all are forgotten.
    pub const MAX_ANSWERS: usize = 64 << 10;
    /// Files whose names are in memory at once.
    pub const MAX_PARSED: usize = 16;
    /// What sections and symbols of those take together, in bytes, unless the last one alone takes more. Indices made of them
    /// take about as much again.
    pub const MAX_PARSED_BYTES: u64 = 512 << 20;

    /// Of files of debug information that a user's programs name without a build id, bytes: all of such a file is read to see whether it
    /// is the right one.
    pub const MAX_CHECKED: u64 = 1 << 30;

    /// The place in the source that a call returns to.
    pub fn resolve(&mut self, at: &ModuleAddress) -> Arc<CallSite> {
        let key = (at.module.id.clone(), at.offset);
        if let Some(answer) = self.answers.get(&key) {
            return Arc::clone(answer);
        }
        let answer = Arc::new(call_site(at, self.look_up(at)));
        if self.answers.len() >= Self::MAX_ANSWERS {
            self.answers.clear();
        }
        self.answers.insert(key, Arc::clone(&answer));
        answer
    }

    /// Forgets what was read of files, not what was found: to be called when no new places are to be expected.
    pub fn release(&mut self) {
        self.parsed.clear();
    }

    /// Of each file with debug information in memory: reads that remain, and how many were granted.
    #[cfg(test)]
    pub(super) fn budgets(&self) -> Vec<(u64, u64)> {
        self.parsed.iter().filter_map(|(_, names)| names.budget()).collect()
    }

    fn look_up(&mut self, at: &ModuleAddress) -> ResolvedAddress {
        // The address is the one after the call, which may be on another line or even in another function.
        let Some(call) = at.offset.checked_sub(1).filter(|_| at.module.image.is_some()) else {
            return ResolvedAddress::default();
        };
        let id = at.module.id();
        let names = if let Some(place) = self.parsed.iter().position(|(parsed, _)| parsed == id) {
            self.parsed.remove(place).1
        } else {
            let left = self.checked.entry(at.module.user).or_insert(Self::MAX_CHECKED);
            guarded(&at.module, || Names::read(&at.module, left))
        };
        let found = caught(|| names.find(call));
        let names = if found.is_some() { names } else { Names::default() };
        self.parsed.push((id.clone(), names));
        self.forget_excess();
        found.unwrap_or_default()
    }

    fn forget_excess(&mut self) {
        let over = |parsed: &[(ModuleId, Names)]| {
            parsed.len() > Self::MAX_PARSED
                || parsed.iter().map(|(_, names)| names.bytes()).sum::<u64>() > Self::MAX_PARSED_BYTES
        };
        while self.parsed.len() > 1 && over(&self.parsed) {
            self.parsed.remove(0);
        }
    }
}

impl fmt::Debug for Symboliser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symboliser")
            .field("answers", &self.answers.len())
            .field("parsed", &self.parsed.len())
            .finish_non_exhaustive()
    }
}

/// The parsers are other people's and the files are hostile: a panic costs the file its names.
fn guarded(module: &Module, read: impl FnOnce() -> Names) -> Names {
    caught(read).unwrap_or_else(|| {
        tracing::warn!("the names in {} cannot be read", module.path());
        Names::default()
    })
}

/// The place by file and offset.
pub(super) fn unnamed(at: &ModuleAddress) -> CallSite {
    call_site(at, ResolvedAddress::default())
}

fn call_site(at: &ModuleAddress, found: ResolvedAddress) -> CallSite {
    let mut frames = without_mpi_headers(found.frames);
    let start = found.symbol.as_ref().map(|(_, start)| *start);
    if let (Some(outermost), Some((name, _))) = (frames.last_mut(), &found.symbol)
        && outermost.function.is_none()
    {
        outermost.function = Some(name.clone());
    }
    let mut frames = frames.into_iter();
    let innermost = frames.next();
    let by_symbol = || SourceFrame { function: found.symbol.map(|(name, _)| name), file: None, line: None };
    let site = CallSite {
        module: at.module.id.to_string(),
        path: at.module.path.clone(),
        deleted: at.module.deleted,
        offset: at.offset,
        at: innermost.unwrap_or_else(by_symbol),
        inlined: frames.collect(),
        function_offset: start.map(|start| at.offset.wrapping_sub(start)),
        text: String::new(),
    };
    site.with_text()
}

/// The C++ bindings are inline functions of a header: the user's function is the one that they were inlined into.
fn without_mpi_headers(frames: Vec<SourceFrame>) -> Vec<SourceFrame> {
    let is_binding =
        |frame: &SourceFrame| frame.function.as_ref().is_some_and(|function| function.starts_with("MPI::"));
    let bindings = frames.iter().take_while(|frame| is_binding(frame)).count();
    if bindings < frames.len() { frames.into_iter().skip(bindings).collect() } else { frames }
}
