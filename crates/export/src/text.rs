//! What calls do, as words and numbers, for formats that are text.

use mpiprobe_trace::{Bytes, Partner, Root};

/// The other end: a rank, or why there is none.
pub(crate) fn partner(partner: Partner) -> Option<i64> {
    match partner {
        Partner::Rank(rank) => Some(rank.into()),
        Partner::Group | Partner::Null | Partner::Any | Partner::Unknown => None,
    }
}

pub(crate) fn root(root: Option<Root>) -> Option<i64> {
    match root {
        Some(Root::Rank(rank)) => Some(rank.into()),
        _ => None,
    }
}

/// Bytes, if they are known exactly.
pub(crate) fn exact(bytes: Bytes) -> Option<u64> {
    match bytes {
        Bytes::Known(bytes) => Some(bytes),
        Bytes::AtMost(_) | Bytes::Unknown => None,
    }
}
