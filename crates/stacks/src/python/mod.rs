//! Functions of Python programs: an interpreter's frames, read from outside.
//!
//! They are read after the thread was looked at, and are what they were then only if the thread has not gone on, as one that waits has
//! not, or that is in an MPI call. Of one that runs in the program they are read twice, and what is the same both times counts.

mod layout;
mod lines;
mod reader;

use std::{fs::File, sync::Arc};

use crate::callsites::{AddressMap, Module};
use mpiprobe_discover::printable;
use mpiprobe_model::{CallSite, SourceFrame};

use self::{
    layout::{Frames, Layout, Lines, OWNED_BY_C},
    reader::Reader,
};
use crate::copy::ThreadCopy;

/// Frames of one thread, and threads and interpreters of a process.
const MAX_FRAMES: usize = 256;
const MAX_THREADS: usize = 4 << 10;
const MAX_INTERPRETERS: usize = 16;

/// What every interpreter exports: the state of all of it, and since 3.11 its version.
const RUNTIME: &str = "_PyRuntime";
const VERSION: &str = "Py_Version";

/// The interpreter of a process.
#[derive(Debug, Clone)]
pub(crate) struct Interpreter {
    module: Arc<Module>,
    /// Where the runtime's state is in the process.
    runtime: u64,
    version: Version,
}

#[derive(Debug, Clone, Copy)]
enum Version {
    /// Where it says so in the process.
    At(u64),
    /// By the name of its file.
    Named(u8, u8),
}

impl Interpreter {
    /// `None`: there is none, or none that is known.
    pub(crate) fn of(map: &AddressMap) -> Option<Self> {
        let module = map.modules().find(|module| is_python(module.path()) && module.exported(RUNTIME).is_some())?;
        let bias = map.bias_of(module)?;
        let at = |symbol| module.exported(symbol).map(|address| bias.wrapping_add(address));
        let version = match at(VERSION) {
            Some(address) => Version::At(address),
            None => named_version(module.path()).map(|(major, minor)| Version::Named(major, minor))?,
        };
        Some(Self { module: Arc::clone(module), runtime: at(RUNTIME)?, version })
    }

    /// The functions that a thread is in which does not go on, innermost first; empty where that is not known.
    pub(crate) fn frames(&self, copy: &ThreadCopy, memory: &File) -> Vec<Arc<CallSite>> {
        sites(self.read(copy, &mut Reader::new(memory)).unwrap_or_default())
    }

    /// The functions that a thread has been in from one reading to the next while it ran, innermost first, with the lines of the
    /// first; without those that it has left, or come to, in between.
    pub(crate) fn frames_of_running(&self, copy: &ThreadCopy, memory: &File) -> Vec<Arc<CallSite>> {
        let read = || self.read(copy, &mut Reader::new(memory)).unwrap_or_default();
        let (before, after) = (read(), read());
        sites(in_both(before, &after))
    }

    fn read(&self, copy: &ThreadCopy, reader: &mut Reader<'_>) -> Option<Vec<Frame>> {
        let version = match self.version {
            Version::Named(major, minor) => (major, minor),
            Version::At(address) => {
                let [_, _, minor, major, ..] = reader.word(address)?.to_le_bytes();
                (major, minor)
            }
        };
        let layout = Layout::of(version, self.runtime, reader)?;
        let thread = thread(&layout, self.runtime, copy, reader)?;
        let mut frame = reader.word(thread.checked_add(layout.frame)?)?;
        if let Frames::BehindC(current) = layout.frames {
            frame = reader.word(frame.checked_add(current)?)?;
        }
        let mut found = Vec::new();
        while frame != 0 {
            if found.len() >= MAX_FRAMES {
                return None;
            }
            let owner = if layout.owner == 0 { 0 } else { reader.byte(frame.checked_add(layout.owner)?)? };
            if owner != OWNED_BY_C {
                let (code, at) = source(&layout, frame, reader)?;
                found.push(Frame { address: frame, code, site: Arc::new(self.site(at)) });
            }
            frame = reader.word(frame.checked_add(layout.previous)?)?;
        }
        Some(found)
    }

    fn site(&self, at: SourceFrame) -> CallSite {
        let path = at.file.clone().unwrap_or_else(|| self.module.path().to_owned());
        CallSite {
            module: format!("python:{path}"),
            path,
            deleted: false,
            offset: 0,
            at,
            inlined: Vec::new(),
            function_offset: None,
            text: String::new(),
        }
        .with_text()
    }
}

/// A function that runs.
#[derive(Debug, Clone)]
struct Frame {
    /// Of the interpreter's record of it, and of the function's code.
    address: u64,
    code: u64,
    site: Arc<CallSite>,
}

fn sites(frames: Vec<Frame>) -> Vec<Arc<CallSite>> {
    frames.into_iter().map(|frame| frame.site).collect()
}

/// The outer frames that are the same in both.
fn in_both(mut before: Vec<Frame>, after: &[Frame]) -> Vec<Frame> {
    let pairs = before.iter().rev().zip(after.iter().rev());
    let same = pairs.take_while(|(one, other)| (one.address, one.code) == (other.address, other.code)).count();
    before.split_off(before.len() - same)
}

/// The interpreter's state of a thread.
fn thread(layout: &Layout, runtime: u64, copy: &ThreadCopy, reader: &mut Reader<'_>) -> Option<u64> {
    let is_it = |thread: u64, reader: &mut Reader<'_>| {
        if layout.tid == 0 {
            let pthread = reader.word(thread.checked_add(layout.pthread)?)?;
            return Some(pthread == copy.thread_pointer && copy.thread_pointer != 0);
        }
        Some(reader.word(thread.checked_add(layout.tid)?)? == u64::from(copy.tid))
    };
    let mut interpreter = reader.pointer(runtime, layout.interpreters);
    for _ in 0..MAX_INTERPRETERS {
        let Some(this) = interpreter else { break };
        let mut thread = reader.pointer(this, layout.threads);
        for _ in 0..MAX_THREADS {
            let Some(this) = thread else { break };
            if is_it(this, reader)? {
                return Some(this);
            }
            thread = reader.pointer(this, layout.next_thread);
        }
        interpreter = reader.pointer(this, layout.next_interpreter);
    }
    None
}

/// The code of a frame, and its function, file and line.
fn source(layout: &Layout, frame: u64, reader: &mut Reader<'_>) -> Option<(u64, SourceFrame)> {
    let code = reader.pointer(frame, layout.code)?;
    let name = reader.pointer(code, layout.name)?;
    let name = reader.text(name, (layout.ascii, layout.compact))?;
    let file = reader.pointer(code, layout.file)?;
    let file = reader.text(file, (layout.ascii, layout.compact))?;
    let first = i64::from(reader.half(code.checked_add(layout.first_line)?)?.cast_signed());
    let at = frame.checked_add(layout.instruction)?;
    let address = match layout.frames {
        Frames::Objects => {
            let number = u64::try_from(reader.half(at)?.cast_signed()).unwrap_or(0);
            if layout.lines == Lines::Ranges { number * 2 } else { number }
        }
        Frames::BehindC(_) | Frames::Direct => reader.word(at)?.saturating_sub(code.checked_add(layout.instructions)?),
    };
    let table = reader.pointer(code, layout.line_table)?;
    let table = reader.bytes(table)?;
    let at = SourceFrame {
        function: Some(printable(name.as_bytes())),
        file: Some(printable(file.as_bytes())),
        line: lines::line(layout.lines, &table, first, address),
    };
    Some((code, at))
}

fn is_python(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.starts_with("python3") || name.starts_with("libpython3")
}

/// `python3.9`, `libpython3.10.so.1.0`.
fn named_version(path: &str) -> Option<(u8, u8)> {
    let name = path.rsplit('/').next()?;
    let minor = name.strip_prefix("lib").unwrap_or(name).strip_prefix("python3.")?;
    let digits = minor.find(|c: char| !c.is_ascii_digit()).map_or(minor, |end| minor.get(..end).unwrap_or_default());
    Some((3, digits.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_names_where_there_is_nothing_better() {
        assert_eq!(named_version("/usr/bin/python3.9"), Some((3, 9)));
        assert_eq!(named_version("/opt/lib/libpython3.10.so.1.0"), Some((3, 10)));
        assert_eq!(named_version("/opt/lib/libpython3.so"), None);
        assert!(is_python("/usr/bin/python3.11") && !is_python("/usr/bin/pythonic"));
    }

    /// Of frames at these addresses, of functions with these codes; innermost first.
    fn frames(all: &[(u64, u64)]) -> Vec<Frame> {
        let site = Arc::new(CallSite {
            module: String::new(),
            path: String::new(),
            deleted: false,
            offset: 0,
            at: SourceFrame { function: None, file: None, line: None },
            inlined: Vec::new(),
            function_offset: None,
            text: String::new(),
        });
        all.iter().map(|&(address, code)| Frame { address, code, site: Arc::clone(&site) }).collect()
    }

    #[test]
    fn of_a_thread_that_runs_the_outer_functions_count_that_it_has_not_left() {
        let common = |before: &[(u64, u64)], after: &[(u64, u64)]| {
            let common = in_both(frames(before), &frames(after));
            common.iter().map(|frame| frame.address).collect::<Vec<_>>()
        };
        assert_eq!(common(&[(30, 3), (20, 2), (10, 1)], &[(30, 3), (20, 2), (10, 1)]), [30, 20, 10]);
        // It has returned from one function, and another one is in its place.
        assert_eq!(common(&[(30, 3), (20, 2), (10, 1)], &[(30, 4), (20, 2), (10, 1)]), [20, 10]);
        assert_eq!(common(&[(20, 2), (10, 1)], &[(30, 3), (20, 2), (10, 1)]), [20, 10]);
        assert!(common(&[(20, 2)], &[]).is_empty() && common(&[], &[(20, 2)]).is_empty());
    }
}
