//! What rows of tables are ordered by.

use mpiprobe_model::{Amounts, FunctionRow, RankProfile};

/// The measure of which those with most come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// Time in MPI.
    Time,
    /// Calls.
    Calls,
    /// Bytes sent and received.
    Bytes,
}

impl By {
    pub(crate) fn of_amounts(self, amounts: &Amounts) -> u64 {
        match self {
            Self::Time => amounts.time_ns,
            Self::Calls => amounts.calls,
            Self::Bytes => amounts.sent_bytes.saturating_add(amounts.received_bytes),
        }
    }

    pub(crate) fn of_function(self, row: &FunctionRow) -> u64 {
        match self {
            Self::Time => row.spent_ns(),
            Self::Calls => row.calls,
            Self::Bytes => {
                row.traffic.as_ref().map_or(0, |traffic| traffic.sent.bytes.saturating_add(traffic.received.bytes))
            }
        }
    }

    pub(crate) fn of_rank(self, rank: &RankProfile) -> u64 {
        match self {
            Self::Time => rank.mpi_ns,
            Self::Calls => rank.calls,
            Self::Bytes => rank.moved_bytes().map_or(0, |(sent, received)| sent.saturating_add(received)),
        }
    }
}
