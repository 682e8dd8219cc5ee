//! How much of a trace is kept where its last part is.

/// Events of a chunk: more make it no smaller.
pub(super) const CHUNK: u32 = 8192;
/// Into how many chunks of a location the span is divided: so much more than it is kept.
pub(super) const CHUNKS_OF_SPAN: u64 = 8;
/// Events of a chunk at least: fewer are mostly head.
const SMALLEST: u64 = 64;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlightSpan {
    /// So long, ns.
    Time(u64),
    /// So many calls of each process.
    Calls(u64),
}

impl FlightSpan {
    /// How many events a chunk has at most, of which the oldest are dropped whole.
    pub(super) fn events_of_chunk(self) -> u32 {
        match self {
            Self::Time(_) => CHUNK,
            Self::Calls(calls) => u32::try_from((calls / CHUNKS_OF_SPAN).max(SMALLEST)).unwrap_or(CHUNK).min(CHUNK),
        }
    }
}
