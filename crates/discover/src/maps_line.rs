//! One line of `/proc/PID/maps` (kernel: fs/proc/task_mmu.c, show_map_vma).

use std::fmt;

use serde::{Deserialize, Serialize};

/// At most this much of maps is read, in bytes; 65,530 mappings (the kernel's default limit) take about 6 MiB.
pub(super) const LIMIT: usize = 32 << 20;

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

/// One line: `start-end perms offset major:minor inode  path`.
pub(super) struct Line<'a> {
    pub(super) range: TextRange,
    pub(super) readable: bool,
    pub(super) executable: bool,
    pub(super) id: FileId,
    pub(super) path: &'a [u8],
}

impl<'a> Line<'a> {
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
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

/// The file that one line of maps names, executable or not; `None` for memory of no file.
pub(super) fn file_of_line(line: &[u8]) -> Option<FileId> {
    Line::parse(line).map(|line| line.id).filter(|id| id.inode != 0)
}
