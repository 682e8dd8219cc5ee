//! What is known of a process from other sources than its memory.

use mpiprobe_discover::RankInfo;

/// The process's place in `MPI_COMM_WORLD`, as its launcher told it; `None` where that is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expected {
    pub rank: Option<u32>,
    pub size: Option<u32>,
}

impl From<&RankInfo> for Expected {
    fn from(info: &RankInfo) -> Self {
        Self { rank: info.rank, size: info.size }
    }
}
