//! `/proc/PID/maps`: which files a process has mapped, and where (kernel: fs/proc/task_mmu.c, show_map_vma).

use std::collections::HashMap;

pub use super::maps_line::{FileId, TextRange};
use super::{
    maps_line::{self, Line},
    process::Process,
    process_error::ProcessError,
    text::printable,
};

/// A file of which at least one part is mapped: executable, unless it was looked for by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedFile {
    pub id: FileId,
    /// The name as printed in maps, in the process's mount namespace: newlines are escaped, backslashes are not.
    raw_path: Vec<u8>,
    /// Those ranges in ascending order.
    pub ranges: Vec<TextRange>,
}

const DELETED: &[u8] = b" (deleted)";

impl MappedFile {
    /// Whether the mapped file no longer has its name: deleted, or replaced by a new version.
    pub fn is_deleted(&self) -> bool {
        self.raw_path.ends_with(DELETED)
    }

    /// Where a byte of the file (by its offset) is in the process, if it is in an executable range.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        self.ranges.iter().find_map(|range| {
            let within = offset.checked_sub(range.offset)?;
            let address = range.start.checked_add(within)?;
            (address < range.end).then_some(address)
        })
    }

    /// The path for people.
    pub fn display_path(&self) -> String {
        printable(self.raw_path.strip_suffix(DELETED).unwrap_or(&self.raw_path))
    }

    /// What the path may be: maps cannot tell a newline from the four characters `\012`, nor a deleted `x` from a file
    /// called `x (deleted)`. Most likely first; whoever opens one must check what it got.
    pub fn candidate_paths(&self) -> Vec<Vec<u8>> {
        let mut candidates = Vec::new();
        for path in [self.raw_path.strip_suffix(DELETED), Some(self.raw_path.as_slice())].into_iter().flatten() {
            for candidate in [path.to_vec(), unescape_newlines(path)] {
                if candidate.starts_with(b"/") && !candidates.contains(&candidate) {
                    candidates.push(candidate);
                }
            }
        }
        candidates
    }
}

/// An executable range of memory that belongs to no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryText {
    pub range: TextRange,
    /// What the kernel calls it: `[vdso]`, `[heap]`, or empty for memory without a name.
    name: Vec<u8>,
}

impl MemoryText {
    /// The name for people; `[anonymous]` if there is none.
    pub fn display_name(&self) -> String {
        if self.name.is_empty() { "[anonymous]".to_owned() } else { printable(&self.name) }
    }
}

/// The executable mappings of a process at some moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mappings {
    /// Files in order of their first executable range.
    pub files: Vec<MappedFile>,
    /// Executable memory of no file, in ascending order.
    pub memory: Vec<MemoryText>,
    /// Its size in bytes, `[vdso]` and its like apart: generated code, or a program's text copied
    /// into huge pages, where file probes never fire.
    pub anonymous_text: u64,
    /// Whether the list was longer than [`Self::LIMIT`] or had lines that could not be understood.
    pub incomplete: bool,
}

impl Mappings {
    /// At most this much of maps is read, in bytes.
    pub const LIMIT: usize = maps_line::LIMIT;

    /// Reads the mappings of a process.
    pub fn of(process: &Process) -> Result<Self, ProcessError> {
        let content = process.read("maps", Self::LIMIT)?;
        Ok(Self::parse(&content.bytes, content.truncated))
    }

    /// Parses the file's content; `truncated` says that it went on.
    pub fn parse(content: &[u8], truncated: bool) -> Self {
        let mut mappings = Self { incomplete: truncated, ..Self::default() };
        let mut places: HashMap<FileId, usize> = HashMap::new();
        for line in content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match Line::parse(line) {
                Some(line) if line.executable => mappings.add(&line, &mut places),
                Some(_) => {}
                None => mappings.incomplete = true,
            }
        }
        mappings
    }

    /// The files that a process has mapped, executable or not, whose names end so.
    pub fn with_suffix(process: &Process, suffix: &str) -> Result<Vec<MappedFile>, ProcessError> {
        let content = process.read("maps", Self::LIMIT)?;
        let lines = content.bytes.split(|byte| *byte == b'\n').filter_map(Line::parse);
        let is_meant = |path: &[u8]| path.strip_suffix(DELETED).unwrap_or(path).ends_with(suffix.as_bytes());
        let (mut mappings, mut places) = (Self::default(), HashMap::new());
        for line in lines.filter(|line| line.id.inode != 0 && is_meant(line.path)) {
            mappings.add(&line, &mut places);
        }
        Ok(mappings.files)
    }

    fn add(&mut self, line: &Line<'_>, places: &mut HashMap<FileId, usize>) {
        if line.id.inode == 0 {
            self.memory.push(MemoryText { range: line.range, name: line.path.to_vec() });
            if !line.path.starts_with(b"[v") {
                let length = line.range.end.saturating_sub(line.range.start);
                self.anonymous_text = self.anonymous_text.saturating_add(length);
            }
            return;
        }
        let place = *places.entry(line.id).or_insert(self.files.len());
        if let Some(file) = self.files.get_mut(place) {
            file.ranges.push(line.range);
        } else {
            self.files.push(MappedFile { id: line.id, raw_path: line.path.to_vec(), ranges: vec![line.range] });
        }
    }
}

/// One readable address range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    pub start: u64,
    pub end: u64,
    pub writable: bool,
    /// The file that is mapped there; `None` for memory of no file.
    pub file: Option<FileId>,
}

impl Region {
    /// The range of one line of maps, if it may be read.
    fn of_line(line: &[u8]) -> Option<Self> {
        let line = Line::parse(line).filter(|line| line.readable)?;
        let file = Some(line.id).filter(|id| id.inode != 0);
        Some(Self { start: line.range.start, end: line.range.end, writable: line.range.writable, file })
    }
}

/// The readable memory of a process at some moment, in ascending order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Regions(Vec<Region>);

impl Regions {
    pub fn of(process: &Process) -> Result<Self, ProcessError> {
        Ok(Self::parse(&process.read("maps", Mappings::LIMIT)?.bytes))
    }

    /// Parses the content of maps; what cannot be understood is not readable.
    pub fn parse(content: &[u8]) -> Self {
        let lines = content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let mut regions: Vec<Region> = lines.filter_map(Region::of_line).collect();
        regions.sort_unstable_by_key(|region| region.start);
        Self(regions)
    }

    /// Whether every byte of `[address, address + length)` is readable.
    pub fn contain(&self, address: u64, length: u64) -> bool {
        let Some(end) = address.checked_add(length) else { return false };
        let mut from = address;
        let first = self.0.partition_point(|region| region.end <= address);
        for region in self.0.iter().skip(first) {
            if region.start > from {
                return false;
            }
            from = region.end;
            if from >= end {
                return true;
            }
        }
        false
    }

    pub fn iter(&self) -> impl Iterator<Item = &Region> {
        self.0.iter()
    }
}

/// The kernel writes a newline in a path as `\012`.
fn unescape_newlines(path: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some(place) = memchr::memmem::find(rest, b"\\012") {
        bytes.extend_from_slice(rest.get(..place).unwrap_or_default());
        bytes.push(b'\n');
        rest = rest.get(place + 4..).unwrap_or_default();
    }
    bytes.extend_from_slice(rest);
    bytes
}

#[cfg(test)]
#[path = "mappings_tests.rs"]
mod tests;
