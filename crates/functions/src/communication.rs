//! Who has to do with whom by a call.

use crate::{Function, Group, Operation};

/// What a function's operation does between processes, whether it blocks, is nonblocking or persistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Communication {
    /// None, or none that is known.
    Nothing,
    Send(SendMode),
    Receive,
    /// Sends one message and receives another.
    Exchange,
    /// Looks for a message: `MPI_Probe`.
    Probe,
    /// Finds a message, for one receive that is given its handle: `MPI_Mprobe`.
    MatchedProbe,
    /// That one: `MPI_Mrecv`.
    MatchedReceive,
    /// Messages in parts, matched when they are made, not when they are started (MPI-4.0, section 4.2).
    PartitionedSend,
    PartitionedReceive,
    Collective(Pattern),
}

/// When a send is complete (MPI-4.0, section 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SendMode {
    Standard,
    Buffered,
    Synchronous,
    Ready,
}

/// Who needs something of whom by a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// Nobody leaves before everybody has come.
    Barrier,
    /// Everybody needs something of everybody.
    AllToAll,
    /// The same, but how much of whom stands in arrays: perhaps of a few only.
    AllToAllVarying,
    /// Everybody needs something of the root.
    OneToAll,
    /// The root needs something of everybody.
    AllToOne,
    /// Everybody needs something of those with lower ranks.
    Prefix,
    /// Everybody needs something of its neighbours.
    Neighbours,
    /// All call it, and the library decides whether anybody waits for anybody: what makes and frees communicators and windows, fences,
    /// collective access to files.
    Common,
}

const POINT_TO_POINT: &[(&str, Communication)] = &[
    ("Send", Communication::Send(SendMode::Standard)),
    ("Bsend", Communication::Send(SendMode::Buffered)),
    ("Ssend", Communication::Send(SendMode::Synchronous)),
    ("Rsend", Communication::Send(SendMode::Ready)),
    ("Recv", Communication::Receive),
    ("Sendrecv", Communication::Exchange),
    ("Sendrecv_replace", Communication::Exchange),
    ("Mrecv", Communication::MatchedReceive),
    ("Psend", Communication::PartitionedSend),
    ("Precv", Communication::PartitionedReceive),
];

/// Those whose nonblocking variant has no place among the [amounts](crate::amount).
const PROBES: &[(&str, Communication)] = &[
    ("MPI_Probe", Communication::Probe),
    ("MPI_Iprobe", Communication::Probe),
    ("MPI_Mprobe", Communication::MatchedProbe),
    ("MPI_Improbe", Communication::MatchedProbe),
];

const COLLECTIVE: &[(&str, Pattern)] = &[
    ("Barrier", Pattern::Barrier),
    ("Ibarrier", Pattern::Barrier),
    ("Bcast", Pattern::OneToAll),
    ("Scatter", Pattern::OneToAll),
    ("Scatterv", Pattern::OneToAll),
    ("Gather", Pattern::AllToOne),
    ("Gatherv", Pattern::AllToOne),
    ("Reduce", Pattern::AllToOne),
    ("Allgather", Pattern::AllToAll),
    ("Allgatherv", Pattern::AllToAll),
    ("Alltoall", Pattern::AllToAll),
    ("Allreduce", Pattern::AllToAll),
    ("Reduce_scatter", Pattern::AllToAll),
    ("Reduce_scatter_block", Pattern::AllToAll),
    ("Alltoallv", Pattern::AllToAllVarying),
    ("Alltoallw", Pattern::AllToAllVarying),
    ("Scan", Pattern::Prefix),
    ("Exscan", Pattern::Prefix),
    ("Neighbor_allgather", Pattern::Neighbours),
    ("Neighbor_allgatherv", Pattern::Neighbours),
    ("Neighbor_alltoall", Pattern::Neighbours),
    ("Neighbor_alltoallv", Pattern::Neighbours),
    ("Neighbor_alltoallw", Pattern::Neighbours),
];

/// Collective functions of other groups (MPI-4.0, sections 7.4, 8.5, 12.2, 12.5 and 14).
const COMMON: &[&str] = &[
    "MPI_Cart_create",
    "MPI_Cart_sub",
    "MPI_Comm_create",
    "MPI_Comm_dup",
    "MPI_Comm_dup_with_info",
    "MPI_Comm_split",
    "MPI_Comm_split_type",
    "MPI_Dist_graph_create",
    "MPI_Dist_graph_create_adjacent",
    "MPI_File_close",
    "MPI_File_open",
    "MPI_File_preallocate",
    "MPI_File_set_size",
    "MPI_File_set_view",
    "MPI_File_sync",
    "MPI_Graph_create",
    "MPI_Intercomm_merge",
    "MPI_Win_allocate",
    "MPI_Win_allocate_shared",
    "MPI_Win_create",
    "MPI_Win_create_dynamic",
    "MPI_Win_fence",
    "MPI_Win_free",
];

impl Function {
    pub fn communication(&self) -> Communication {
        let base = self.base_name();
        match self.group {
            Group::PointToPoint => {
                let probe = PROBES.iter().find(|(name, _)| *name == self.name);
                let known = || POINT_TO_POINT.iter().find(|(name, _)| *name == base);
                probe.or_else(known).map_or(Communication::Nothing, |&(_, found)| found)
            }
            Group::Collective | Group::Synchronisation => {
                let known = COLLECTIVE.iter().find(|(name, _)| *name == base);
                known.map_or(Communication::Nothing, |&(_, pattern)| Communication::Collective(pattern))
            }
            Group::Communicator | Group::OneSided | Group::Io => {
                let name = self.name.strip_suffix("_c").unwrap_or(self.name);
                let access = name.strip_suffix("_all").or_else(|| name.strip_suffix("_ordered"));
                let is_access = access.is_some() && self.group == Group::Io && self.operation == Operation::Blocking;
                let is_common = is_access || COMMON.binary_search(&name).is_ok();
                if is_common { Communication::Collective(Pattern::Common) } else { Communication::Nothing }
            }
            _ => Communication::Nothing,
        }
    }

    /// Of a collective operation, whose data goes where.
    pub fn pattern(&self) -> Option<Pattern> {
        match self.communication() {
            Communication::Collective(pattern) => Some(pattern),
            _ => None,
        }
    }

    /// Whether it returns only when requests that it is given are complete.
    pub fn waits_for_requests(&self) -> bool {
        self.group == Group::Completion && self.short_name().starts_with("Wait")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FUNCTIONS;

    fn of(name: &str) -> Communication {
        crate::by_name(name).unwrap().function().communication()
    }

    #[test]
    fn variants_do_what_the_blocking_function_does() {
        for name in ["MPI_Send", "MPI_Isend", "MPI_Send_init", "MPI_Isend_c", "MPI_Send_init_c"] {
            assert_eq!(of(name), Communication::Send(SendMode::Standard), "{name}");
        }
        assert_eq!(of("MPI_Ibsend"), Communication::Send(SendMode::Buffered));
        assert_eq!(of("MPI_Isendrecv_replace"), Communication::Exchange);
        assert_eq!(of("MPI_Imrecv"), Communication::MatchedReceive);
        assert_eq!(of("MPI_Psend_init"), Communication::PartitionedSend);
        for name in ["MPI_Barrier", "MPI_Ibarrier", "MPI_Barrier_init"] {
            assert_eq!(of(name), Communication::Collective(Pattern::Barrier), "{name}");
        }
        assert_eq!(of("MPI_Ineighbor_alltoallw"), Communication::Collective(Pattern::Neighbours));
        assert_eq!(of("MPI_Start"), Communication::Nothing);
    }

    #[test]
    fn every_collective_has_a_pattern() {
        for function in FUNCTIONS {
            let is_collective = matches!(function.group, Group::Collective | Group::Synchronisation);
            let has_pattern = function.pattern().is_some_and(|pattern| pattern != Pattern::Common);
            assert_eq!(has_pattern, is_collective, "{}", function.name);
        }
        for name in ["MPI_File_write_at_all_c", "MPI_File_read_ordered", "MPI_Win_create_c", "MPI_Comm_split"] {
            assert_eq!(of(name), Communication::Collective(Pattern::Common), "{name}");
        }
        for name in ["MPI_File_iwrite_all", "MPI_File_write", "MPI_Win_lock_all", "MPI_Comm_free", "MPI_Win_flush_all"]
        {
            assert_eq!(of(name), Communication::Nothing, "{name}");
        }
        assert!(COMMON.is_sorted());
    }

    #[test]
    fn every_point_to_point_function_that_moves_data_is_known() {
        for function in FUNCTIONS {
            let moves = function.group == Group::PointToPoint && function.position(crate::Role::Buffer).is_some();
            assert!(!moves || function.communication() != Communication::Nothing, "{}", function.name);
        }
    }

    #[test]
    fn who_waits_for_requests_is_known() {
        let waits = FUNCTIONS.iter().filter(|function| function.waits_for_requests()).map(|function| function.name);
        assert!(waits.eq(["MPI_Wait", "MPI_Waitall", "MPI_Waitany", "MPI_Waitsome"]));
    }
}
