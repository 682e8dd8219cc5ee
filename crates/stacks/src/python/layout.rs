//! Where CPython keeps its frames, by version: 3.9 to 3.13, as released for 64-bit machines, with a global interpreter lock.
//!
//! Up to 3.12 these are the offsets of fields in the interpreter's own headers, which no release of a minor version has changed.
//! Since 3.13 the interpreter publishes them itself, for readers from outside.

use super::reader::Reader;

/// Offsets of fields, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) frames: Frames,
    pub(super) lines: Lines,
    /// Of the runtime's state: the first interpreter.
    pub(super) interpreters: u64,
    /// Of an interpreter: the next one, and its first thread.
    pub(super) next_interpreter: u64,
    pub(super) threads: u64,
    /// Of a thread: the next one, what leads to its frame, its pthread, and its number in the kernel; 0: it is not there.
    pub(super) next_thread: u64,
    pub(super) frame: u64,
    pub(super) pthread: u64,
    pub(super) tid: u64,
    /// Of a frame: its code, who has called it, and where it is.
    pub(super) code: u64,
    pub(super) previous: u64,
    pub(super) instruction: u64,
    /// What owns a frame, a byte; [`OWNED_BY_C`]: none of the program's. 0: it is not there.
    pub(super) owner: u64,
    /// Of a code object.
    pub(super) file: u64,
    pub(super) name: u64,
    pub(super) line_table: u64,
    pub(super) first_line: u64,
    /// Where its instructions begin.
    pub(super) instructions: u64,
    /// Sizes of the objects that the characters of texts follow: of ASCII ones, and of others.
    pub(super) ascii: u64,
    pub(super) compact: u64,
}

/// How a thread leads to its innermost frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frames {
    /// Straight, and frames are objects that know the number of their instruction.
    Objects,
    /// By a structure on the C stack, in which it is at that offset.
    BehindC(u64),
    /// Straight.
    Direct,
}

/// How lines are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// Steps of addresses and lines (PEP 3).
    Steps,
    /// Ranges (PEP 626), with instructions counted in twos.
    Ranges,
    /// Ranges with columns (PEP 657).
    Locations,
}

/// `FRAME_OWNED_BY_CSTACK`.
pub(super) const OWNED_BY_C: u8 = 3;

const V3_9: Layout = Layout {
    frames: Frames::Objects,
    lines: Lines::Steps,
    interpreters: 32,
    next_interpreter: 0,
    threads: 8,
    next_thread: 8,
    frame: 24,
    pthread: 176,
    tid: 0,
    code: 32,
    previous: 24,
    instruction: 104,
    owner: 0,
    file: 104,
    name: 112,
    line_table: 120,
    first_line: 40,
    instructions: 0,
    ascii: 48,
    compact: 72,
};
const V3_10: Layout = Layout { lines: Lines::Ranges, instruction: 96, ..V3_9 };
const V3_11: Layout = Layout {
    frames: Frames::BehindC(8),
    lines: Lines::Locations,
    interpreters: 40,
    threads: 16,
    frame: 56,
    pthread: 152,
    tid: 160,
    code: 32,
    previous: 48,
    instruction: 56,
    owner: 69,
    file: 112,
    name: 128,
    line_table: 136,
    first_line: 72,
    instructions: 184,
    ..V3_9
};
const V3_12: Layout = Layout {
    frames: Frames::BehindC(0),
    threads: 72,
    pthread: 136,
    tid: 144,
    code: 0,
    previous: 8,
    owner: 70,
    first_line: 68,
    instructions: 192,
    ascii: 40,
    compact: 56,
    ..V3_11
};

/// What the interpreter publishes begins with this, and its version.
const COOKIE: u64 = u64::from_le_bytes(*b"xdebugpy");
/// Larger structures than this it has none with fields that matter.
const MAX_OFFSET: u64 = 1 << 20;

impl Layout {
    /// Of the interpreter whose runtime's state is there. `version`: major and minor.
    pub(super) fn of(version: (u8, u8), runtime: u64, reader: &mut Reader<'_>) -> Option<Self> {
        match version {
            (3, 9) => Some(V3_9),
            (3, 10) => Some(V3_10),
            (3, 11) => Some(V3_11),
            (3, 12) => Some(V3_12),
            (3, 13) => Self::published(runtime, reader),
            _ => None,
        }
    }

    /// As 3.13 publishes it.
    fn published(runtime: u64, reader: &mut Reader<'_>) -> Option<Self> {
        let mut at = |offset: u64| reader.word(runtime.checked_add(offset)?);
        let is_known = at(0)? == COOKIE && at(8)? >> 16 == 0x030d && at(16)? == 0;
        if !is_known {
            return None;
        }
        let mut field = |offset: u64| at(offset).filter(|&offset| offset < MAX_OFFSET);
        let ascii = field(560)?;
        Some(Self {
            frames: Frames::Direct,
            lines: Lines::Locations,
            interpreters: field(40)?,
            next_interpreter: field(64)?,
            threads: field(72)?,
            next_thread: field(168)?,
            frame: field(184)?,
            pthread: field(192)?,
            tid: field(200)?,
            code: field(240)?,
            previous: field(232)?,
            instruction: field(248)?,
            owner: field(264)?,
            file: field(280)?,
            name: field(296)?,
            line_table: field(304)?,
            first_line: field(312)?,
            instructions: field(344)?,
            ascii,
            compact: ascii + 16,
        })
    }
}
