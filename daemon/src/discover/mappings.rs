//! `/proc/PID/maps`: which files a process has mapped, and where (kernel: fs/proc/task_mmu.c, show_map_vma).

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::process::Process;
use super::process_error::ProcessError;
use super::regions::Region;
use super::text::printable;

/// A file as the kernel prints it in maps: device and inode, the same for every name of the file.
///
/// On btrfs and overlayfs this differs from what stat(2) says of the file; opened files are compared by what maps says of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileId {
    pub major: u32,
    pub minor: u32,
    pub inode: u64,
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}:{:02x} inode {}", self.major, self.minor, self.inode)
    }
}

/// One executable address range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TextRange {
    pub start: u64,
    pub end: u64,
    /// Where in the file the range starts, in bytes.
    pub offset: u64,
    /// Writable as well: whoever can write to it can have changed what the file says.
    pub writable: bool,
}

impl TextRange {
    /// The range's name in `/proc/PID/map_files`.
    pub fn link_name(&self) -> String {
        format!("{:x}-{:x}", self.start, self.end)
    }
}

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
    /// At most this much of maps is read, in bytes; 65,530 mappings (the kernel's default limit) take about 6 MiB.
    pub const LIMIT: usize = 32 << 20;

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

    /// The file that one line of maps names, executable or not; `None` for memory of no file.
    pub(crate) fn file_of_line(line: &[u8]) -> Option<FileId> {
        Line::parse(line).map(|line| line.id).filter(|id| id.inode != 0)
    }

    /// The range of one line of maps, if it may be read.
    pub(crate) fn readable_of_line(line: &[u8]) -> Option<Region> {
        let line = Line::parse(line).filter(|line| line.readable)?;
        let file = Some(line.id).filter(|id| id.inode != 0);
        Some(Region { start: line.range.start, end: line.range.end, writable: line.range.writable, file })
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

/// One line: `start-end perms offset major:minor inode  path`.
struct Line<'a> {
    range: TextRange,
    readable: bool,
    executable: bool,
    id: FileId,
    path: &'a [u8],
}

impl<'a> Line<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut rest = line;
        let mut field = || {
            let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
            let (field, tail) = rest.split_at_checked(end)?;
            rest = tail.strip_prefix(b" ").unwrap_or(tail);
            std::str::from_utf8(field).ok()
        };
        let (start, end) = field()?.split_once('-')?;
        let permissions = field()?.as_bytes();
        let offset = field()?;
        let (major, minor) = field()?.split_once(':')?;
        let inode = field()?.parse().ok()?;
        let hexadecimal = |digits| u64::from_str_radix(digits, 16).ok();
        let id =
            FileId { major: u32::from_str_radix(major, 16).ok()?, minor: u32::from_str_radix(minor, 16).ok()?, inode };
        let &[read, write, execute, _] = permissions else { return None };
        let range = TextRange {
            start: hexadecimal(start)?,
            end: hexadecimal(end)?,
            offset: hexadecimal(offset)?,
            writable: write == b'w',
        };
        // Padding to a fixed column; a path itself starts with a slash or a bracket.
        let path = rest.trim_ascii_start();
        (range.start < range.end).then_some(Self {
            range,
            readable: read == b'r',
            executable: execute == b'x',
            id,
            path,
        })
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
