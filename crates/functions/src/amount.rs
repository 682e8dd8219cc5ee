//! How much data a call moves, by the standard's definition of each function.

use mpiprobe_common::descriptor::amount::{
    ALL, BUFFER, EACH, IN_PLACE_OTHER, IN_PLACE_SAME, LOCAL, NOT_FIRST, NOT_ROOT, NOTHING, OWN, ROOT, STATUS, SUM,
    TYPED_SUM, UNKNOWN,
};

use crate::{Function, Group, Operation};

/// Base name (see [`base_name`]), what leaves, what arrives.
const AMOUNTS: &[(&str, u8, u8)] = &[
    ("Send", BUFFER, NOTHING),
    ("Bsend", BUFFER, NOTHING),
    ("Ssend", BUFFER, NOTHING),
    ("Rsend", BUFFER, NOTHING),
    ("Psend", BUFFER, NOTHING),
    ("Precv", NOTHING, STATUS),
    ("Recv", NOTHING, STATUS),
    ("Mrecv", NOTHING, STATUS),
    ("Sendrecv", BUFFER, STATUS),
    ("Sendrecv_replace", BUFFER, STATUS),
    ("Bcast", BUFFER | ROOT, BUFFER | NOT_ROOT),
    ("Gather", BUFFER | ALL, EACH | ROOT),
    ("Gatherv", BUFFER | ALL, SUM | ROOT),
    ("Scatter", EACH | ROOT, BUFFER | ALL),
    ("Scatterv", SUM | ROOT, BUFFER | ALL),
    ("Allgather", BUFFER, EACH),
    ("Allgatherv", BUFFER, SUM),
    ("Alltoall", EACH | IN_PLACE_OTHER, EACH),
    ("Alltoallv", SUM | IN_PLACE_OTHER, SUM),
    ("Alltoallw", TYPED_SUM | IN_PLACE_OTHER, TYPED_SUM),
    ("Reduce", BUFFER | ALL | IN_PLACE_SAME, BUFFER | ROOT),
    ("Allreduce", BUFFER | IN_PLACE_SAME, BUFFER),
    ("Scan", BUFFER | IN_PLACE_SAME, BUFFER),
    ("Exscan", BUFFER | IN_PLACE_SAME, BUFFER | NOT_FIRST),
    ("Reduce_scatter", SUM | IN_PLACE_SAME | LOCAL, OWN),
    ("Reduce_scatter_block", EACH | IN_PLACE_SAME | LOCAL, BUFFER),
    ("Neighbor_allgather", BUFFER, EACH),
    ("Neighbor_allgatherv", BUFFER, SUM),
    ("Neighbor_alltoall", EACH, EACH),
    ("Neighbor_alltoallv", SUM, SUM),
    ("Neighbor_alltoallw", TYPED_SUM, TYPED_SUM),
    ("Put", BUFFER, NOTHING),
    ("Rput", BUFFER, NOTHING),
    ("Accumulate", BUFFER, NOTHING),
    ("Raccumulate", BUFFER, NOTHING),
    ("Get", NOTHING, BUFFER),
    ("Rget", NOTHING, BUFFER),
    ("Get_accumulate", BUFFER, BUFFER),
    ("Rget_accumulate", BUFFER, BUFFER),
    ("Fetch_and_op", BUFFER, BUFFER),
    ("Compare_and_swap", BUFFER, BUFFER),
];

impl Function {
    /// What leaves and what arrives, as [`amount`](mpiprobe_common::descriptor::amount) says it; of a persistent operation, each time
    /// that it is started.
    pub(crate) fn amounts(&self) -> (u8, u8) {
        let moves = matches!(self.group, Group::PointToPoint | Group::Collective | Group::OneSided | Group::Io);
        if !moves || self.position(crate::Role::Buffer).is_none() {
            return (NOTHING, NOTHING);
        }
        if let Some(access) = self.short_name().strip_prefix("File_") {
            return file_amounts(access.strip_suffix("_c").unwrap_or(access));
        }
        match AMOUNTS.iter().find(|(name, ..)| *name == self.base_name()) {
            Some(&(_, sends, receives)) => (sends, receives),
            None => (UNKNOWN, UNKNOWN),
        }
    }

    /// Without `MPI_`, the `I` of nonblocking, the `_init` of persistent and the `_c` of large-count functions, as of the
    /// blocking function.
    pub(crate) fn base_name(&self) -> &'static str {
        let name = self.short_name();
        let name = name.strip_suffix("_c").unwrap_or(name);
        let name = name.strip_suffix("_init").unwrap_or(name);
        let blocking = name.strip_prefix('I').filter(|_| self.operation == Operation::Nonblocking);
        let Some(lower) = blocking else { return name };
        let same = |(base, ..): &&(&'static str, u8, u8)| base.eq_ignore_ascii_case(lower);
        AMOUNTS.iter().find(same).map_or(name, |&(base, ..)| base)
    }
}

/// `read_at_all`, `iwrite_shared` …
fn file_amounts(access: &str) -> (u8, u8) {
    if access.ends_with("_end") {
        return (NOTHING, NOTHING);
    }
    let access = access.strip_prefix('i').unwrap_or(access);
    if access.starts_with("write") { (BUFFER, NOTHING) } else { (NOTHING, STATUS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(name: &str) -> (u8, u8) {
        crate::by_name(name).unwrap().function().amounts()
    }

    #[test]
    fn variants_move_what_the_blocking_function_moves() {
        for name in ["MPI_Alltoallv", "MPI_Alltoallv_c", "MPI_Ialltoallv", "MPI_Ialltoallv_c"] {
            assert_eq!(amounts(name), (SUM | IN_PLACE_OTHER, SUM), "{name}");
        }
        assert_eq!(amounts("MPI_Isendrecv_replace"), (BUFFER, STATUS));
        assert_eq!(amounts("MPI_Imrecv"), (NOTHING, STATUS));
        assert_eq!(amounts("MPI_Ireduce_scatter_block"), (EACH | IN_PLACE_SAME | LOCAL, BUFFER));
    }

    #[test]
    fn what_moves_nothing_says_so() {
        for name in ["MPI_Barrier", "MPI_Wait", "MPI_Start", "MPI_Pack", "MPI_Iprobe", "MPI_File_read_all_end"] {
            assert_eq!(amounts(name), (NOTHING, NOTHING), "{name}");
        }
    }

    #[test]
    fn what_is_not_in_the_arguments_is_unknown() {
        assert_eq!(amounts("MPI_Pready"), (NOTHING, NOTHING));
    }
}
