//! The records of [`super::code_events`] (include/uapi/linux/perf_event.h).

/// `PERF_RECORD_LOST`, `PERF_RECORD_COMM`, `PERF_RECORD_MMAP2`.
const LOST: u32 = 2;
const NAMED: u32 = 3;
const MAPPED: u32 = 10;
/// Among the flags of a record: the new name is that of a new program (`PERF_RECORD_MISC_COMM_EXEC`).
const BY_EXEC: u16 = 1 << 13;
/// Before a path, and the time behind it.
const FIXED: usize = 72;
const TIME: usize = 8;

/// What one record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    Mapped(CodeMapped),
    /// A process has a new program, which maps its own file first. By the monotonic clock, ns.
    Executed {
        pid: u32,
        time_ns: u64,
    },
    /// So many found no room in the ring.
    Lost(u64),
}

impl Record {
    /// When it happened, by the monotonic clock, ns; 0 where that is not told.
    pub fn time_ns(&self) -> u64 {
        match self {
            Self::Mapped(mapped) => mapped.time_ns,
            Self::Executed { time_ns, .. } => *time_ns,
            Self::Lost(_) => 0,
        }
    }
}

/// A file has been mapped as code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeMapped {
    pub pid: u32,
    /// By the monotonic clock, ns.
    pub time_ns: u64,
    /// Where in the process, and from where on in the file, bytes.
    pub start: u64,
    pub end: u64,
    pub offset: u64,
    /// As in `/proc/PID/maps`.
    pub major: u32,
    pub minor: u32,
    pub inode: u64,
    /// As the process that mapped it sees it.
    pub path: Vec<u8>,
}

/// Whether records of a kind say anything that is asked for.
pub(crate) fn is_told(kind: u64) -> bool {
    [LOST, NAMED, MAPPED].into_iter().any(|known| u64::from(known) == kind)
}

/// `None`: of another kind, or damaged.
pub(crate) fn record(bytes: &[u8]) -> Option<Record> {
    let half = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let word = |at: usize| Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    match half(0)? {
        LOST => Some(Record::Lost(word(16)?)),
        NAMED if u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?) & BY_EXEC != 0 => {
            Some(Record::Executed { pid: half(8)?, time_ns: word(bytes.len().checked_sub(TIME)?)? })
        }
        MAPPED => {
            let end = bytes.len().checked_sub(TIME)?;
            let path = bytes.get(FIXED..end)?.split(|&byte| byte == 0).next().unwrap_or_default();
            Some(Record::Mapped(CodeMapped {
                pid: half(8)?,
                time_ns: word(end)?,
                start: word(16)?,
                end: word(16)?.checked_add(word(24)?)?,
                offset: word(32)?,
                major: half(40)?,
                minor: half(44)?,
                inode: word(48)?,
                path: path.to_owned(),
            }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped() -> Vec<u8> {
        let mut bytes = Vec::new();
        for half in [MAPPED, 96 << 16, 4711, 4712] {
            bytes.extend(u32::to_ne_bytes(half));
        }
        for word in [0x1000_u64, 0x2000, 0x4000] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend([8_u32, 1].into_iter().flat_map(u32::to_ne_bytes));
        bytes.extend([99_u64, 0].into_iter().flat_map(u64::to_ne_bytes));
        bytes.extend([5_u32, 2].into_iter().flat_map(u32::to_ne_bytes));
        bytes.extend(b"/lib/libmpi.so\0\0");
        bytes.extend(77_u64.to_ne_bytes());
        bytes
    }

    #[test]
    fn mappings_are_read() {
        let path = b"/lib/libmpi.so".to_vec();
        let place = CodeMapped { start: 0x1000, end: 0x3000, offset: 0x4000, ..CodeMapped::default() };
        let wanted = CodeMapped { pid: 4711, time_ns: 77, major: 8, minor: 1, inode: 99, path, ..place };
        assert_eq!(record(&mapped()), Some(Record::Mapped(wanted)));
    }

    #[test]
    fn names_are_of_new_programs_only_if_that_is_said() {
        let named = |flags: u16| {
            let mut bytes = Vec::new();
            bytes.extend(NAMED.to_ne_bytes());
            bytes.extend([flags, 32].into_iter().flat_map(u16::to_ne_bytes));
            bytes.extend([4711, 4712].into_iter().flat_map(u32::to_ne_bytes));
            bytes.extend(b"ring\0\0\0\0");
            bytes.extend(77_u64.to_ne_bytes());
            record(&bytes)
        };
        assert_eq!(named(BY_EXEC), Some(Record::Executed { pid: 4711, time_ns: 77 }));
        assert_eq!(named(0), None);
    }

    #[test]
    fn whatever_is_cut_off_is_no_record() {
        let whole = mapped();
        for length in 0..FIXED + TIME {
            assert_eq!(record(&whole[..length]), None, "{length}");
        }
    }
}
