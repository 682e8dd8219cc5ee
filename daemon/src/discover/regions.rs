//! All readable memory of a process, from `/proc/PID/maps`.

use super::mappings::{FileId, Mappings};
use super::process::Process;
use super::process_error::ProcessError;

/// One readable address range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    pub start: u64,
    pub end: u64,
    pub writable: bool,
    /// The file that is mapped there; `None` for memory of no file.
    pub file: Option<FileId>,
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
        let mut regions: Vec<Region> = lines.filter_map(Mappings::readable_of_line).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &[u8] = b"1000-2000 r--p 00000000 00:01 7   /lib/a\n2000-3000 rw-p 00001000 00:01 7   /lib/a\n\
        3000-4000 ---p 00000000 00:00 0 \n4000-5000 rw-p 00000000 00:00 0   [heap]\n";

    #[test]
    fn what_spans_adjacent_ranges_is_readable_and_gaps_are_not() {
        let regions = Regions::parse(MAPS);
        for (address, length, readable) in [
            (0x1000, 0x2000, true),
            (0x1ff8, 16, true),
            (0x2ff8, 8, true),
            (0x2ff9, 8, false),
            (0x3000, 1, false),
            (0x4000, 0x1000, true),
            (0x4000, 0x1001, false),
            (0xff8, 16, false),
            (u64::MAX, 8, false),
        ] {
            assert_eq!(regions.contain(address, length), readable, "{address:#x}+{length:#x}");
        }
        assert_eq!(regions.iter().filter(|region| region.file.is_some()).count(), 2);
    }
}
