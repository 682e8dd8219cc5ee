//! Which rule of `tests/truth/semantics/` says what a function moves. By name, as the standard defines the functions one by one;
//! what the profiler makes of its table is no source here.

use mpiprobe_functions::{Function, Operation};

/// Base name, without `MPI_`, the `I` of nonblocking, the `_init` of persistent and the `_c` of large-count functions.
const RULES: &[(&str, &[&str])] = &[
    ("SEND", &["Send", "Bsend", "Ssend", "Rsend", "Psend"]),
    ("RECEIVE", &["Recv", "Precv"]),
    ("SENDRECV", &["Sendrecv", "Sendrecv_replace"]),
    ("PROBE", &["Probe", "Iprobe"]),
    ("MATCHED_PROBE", &["Mprobe", "Improbe"]),
    ("MATCHED_RECEIVE", &["Mrecv"]),
    ("BARRIER", &["Barrier"]),
    ("BCAST", &["Bcast"]),
    ("GATHER", &["Gather", "Gatherv"]),
    ("SCATTER", &["Scatter", "Scatterv"]),
    ("ALLGATHER", &["Allgather", "Allgatherv"]),
    ("ALLTOALL", &["Alltoall", "Alltoallv", "Alltoallw"]),
    ("REDUCE", &["Reduce"]),
    ("ALLREDUCE", &["Allreduce", "Scan"]),
    ("EXSCAN", &["Exscan"]),
    ("REDUCE_SCATTER", &["Reduce_scatter"]),
    ("REDUCE_SCATTER_BLOCK", &["Reduce_scatter_block"]),
    ("NEIGHBOR_ALLGATHER", &["Neighbor_allgather", "Neighbor_allgatherv"]),
    ("NEIGHBOR_ALLTOALL", &["Neighbor_alltoall", "Neighbor_alltoallv", "Neighbor_alltoallw"]),
    ("ACCESS", &["Put", "Get", "Accumulate", "Get_accumulate", "Fetch_and_op", "Compare_and_swap"]),
    ("ACCESS", &["Rput", "Rget", "Raccumulate", "Rget_accumulate"]),
    ("START", &["Start", "Startall"]),
    ("COMPLETE_ONE", &["Wait", "Test"]),
    ("COMPLETE_ALL", &["Waitall", "Testall"]),
    ("COMPLETE_ANY", &["Waitany", "Testany"]),
    ("COMPLETE_SOME", &["Waitsome", "Testsome"]),
    ("FREE_REQUEST", &["Request_free"]),
    ("MAKE_WINDOW", &["Win_create", "Win_allocate", "Win_allocate_shared", "Win_create_dynamic"]),
    ("NAME", &["Comm_set_name", "Win_set_name"]),
    ("OPEN_FILE", &["File_open"]),
    ("CLOSE_FILE", &["File_close"]),
    ("OPEN_SESSION", &["Session"]),
    ("CLOSE_SESSION", &["Session_finalize"]),
    ("TARGET", &["Win_lock", "Win_unlock", "Win_flush", "Win_flush_local"]),
];

/// The rule's name in C, without `RULE_`; `None` for a function that has nothing to do with data.
pub(super) fn rule(function: &Function) -> Option<&'static str> {
    let base = function.short_name();
    let base = base.strip_suffix("_c").unwrap_or(base);
    let base = base.strip_suffix("_init").unwrap_or(base);
    if let Some(access) = base.strip_prefix("File_") {
        return file_rule(access).or_else(|| named(base));
    }
    let blocking = base.strip_prefix('I').map(capitalised).filter(|_| function.operation == Operation::Nonblocking);
    named(blocking.as_deref().unwrap_or(base))
}

fn named(base: &str) -> Option<&'static str> {
    RULES.iter().find(|(_, names)| names.contains(&base)).map(|(rule, _)| *rule)
}

/// `read_at_all_begin`, `iwrite_shared` …
fn file_rule(access: &str) -> Option<&'static str> {
    let access = access.strip_prefix('i').unwrap_or(access);
    let reads = access.starts_with("read");
    if !reads && !access.starts_with("write") {
        return None;
    }
    Some(match (access.rsplit('_').next(), reads) {
        (Some("end"), _) => "SPLIT_END",
        (Some("begin"), true) => "SPLIT_READ",
        (Some("begin"), false) => "SPLIT_WRITE",
        (_, true) => "READ",
        (_, false) => "WRITE",
    })
}

fn capitalised(name: &str) -> String {
    let mut characters = name.chars();
    characters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(characters).collect()
}

#[cfg(test)]
mod tests {
    use mpiprobe_functions::{FunctionId, Group, Role};

    use super::*;

    fn rule_of(name: &str) -> Option<&'static str> {
        rule(mpiprobe_functions::by_name(name).expect(name).function())
    }

    /// Whether a function without a rule would be a gap.
    fn needs_rule(function: &Function) -> bool {
        let moving = [Group::PointToPoint, Group::Collective, Group::OneSided, Group::Io];
        moving.contains(&function.group) && function.position(Role::Buffer).is_some()
    }

    #[test]
    fn every_function_that_moves_data_has_a_rule() {
        let gaps: Vec<&str> = FunctionId::all()
            .map(FunctionId::function)
            .filter(|function| needs_rule(function) && rule(function).is_none())
            .map(|function| function.name)
            .collect();
        assert_eq!(gaps, Vec::<&str>::new());
    }

    #[test]
    fn variants_share_a_rule() {
        for name in ["MPI_Neighbor_alltoallw", "MPI_Ineighbor_alltoallw_c", "MPI_Neighbor_alltoall_init"] {
            assert_eq!(rule_of(name), Some("NEIGHBOR_ALLTOALL"), "{name}");
        }
        assert_eq!(rule_of("MPI_Isendrecv_replace_c"), Some("SENDRECV"));
        assert_eq!(rule_of("MPI_Ibarrier"), Some("BARRIER"));
        assert_eq!(rule_of("MPI_Iprobe"), Some("PROBE"));
        assert_eq!(rule_of("MPI_File_iread_at_all_c"), Some("READ"));
        assert_eq!(rule_of("MPI_File_write_ordered_begin"), Some("SPLIT_WRITE"));
        assert_eq!(rule_of("MPI_File_get_size"), None);
        assert_eq!(rule_of("MPI_Session_init"), Some("OPEN_SESSION"));
    }
}
