//! Which group a function is in, and how it operates.
//!
//! Groups are those of the established MPI profilers: what a call is for, not the chapter of the standard. Purely local
//! functions are queries wherever they are described, so that nobody pays for probing `MPI_File_get_view`.

use anyhow::{Context as _, ensure};

/// Group and patterns (`*` matches anything); the first match wins, so the special stands before the general.
const RULES: &[(&str, &[&str])] = &[
    ("tool", &["T_*", "Pcontrol"]),
    // Conversions, names, attributes, error handlers asked for.
    ("query", &["*_c2f", "*_f2c", "*_c2f08", "*_f082c", "*_f082f", "*_f2f08", "*_toint", "*_fromint"]),
    ("query", &["*_get_attr", "Attr_get", "*_get_name", "*_get_errhandler", "Errhandler_get", "*_get_info"]),
    // The environment and the library.
    ("query", &["Abi_get_*", "Initialized", "Finalized", "Is_thread_main", "Query_thread", "Wtick", "Wtime"]),
    ("query", &["Get_version", "Get_library_version", "Get_processor_name", "Get_hw_resource_info", "Error_*"]),
    ("query", &["Address", "Get_address", "Aint_*", "Op_commutative", "Info_get*", "Session_get_*"]),
    // Communicators, groups, topologies.
    ("query", &["Comm_compare", "Comm_get_parent", "Comm_group", "Comm_rank", "Comm_remote_*", "Comm_size"]),
    ("query", &["Comm_test_inter", "Group_compare", "Group_rank", "Group_size", "Group_translate_ranks"]),
    ("query", &["Cart_coords", "Cart_get", "Cart_map", "Cart_rank", "Cart_shift", "Cartdim_get", "Dims_create"]),
    ("query", &["Dist_graph_neighbors*", "Graph_get", "Graph_map", "Graph_neighbors*", "Graphdims_get", "Topo_test"]),
    // Datatypes and statuses.
    ("query", &["Get_count", "Get_elements*", "Pack_size", "Pack_external_size", "Status_get_*", "Test_cancelled"]),
    ("query", &["Type_extent", "Type_get_*", "Type_lb", "Type_match_size", "Type_size*", "Type_ub"]),
    // Windows and files. The shared file pointer and the size of a file are kept elsewhere: asking for them is I/O.
    ("query", &["Win_get_*", "Win_shared_query", "File_get_amode", "File_get_atomicity", "File_get_byte_offset"]),
    ("query", &["File_get_group", "File_get_position", "File_get_type_extent", "File_get_view"]),
    // Local, but not questions.
    ("other", &["Abi_set_*", "Add_error_*", "Remove_error_*", "Alloc_mem", "Free_mem", "Status_set_*"]),
    ("other", &["Attr_*", "*_keyval", "Keyval_*", "*_set_attr", "*_delete_attr", "*_set_name", "Info_*"]),
    ("other", &["*_call_errhandler", "*_create_errhandler", "*_set_errhandler", "Errhandler_*"]),
    ("other", &["Grequest_*", "Op_create", "Op_free", "Reduce_local", "Register_datarep"]),
    ("init", &["Init", "Init_thread", "Finalize", "Session_init", "Session_finalize", "Abort"]),
    ("sync", &["Barrier", "Barrier_init", "Ibarrier"]),
    ("completion", &["Wait*", "Test*", "Request_free", "Request_get_status*", "Cancel"]),
    ("p2p", &["Send", "Bsend", "Rsend", "Ssend", "Isend", "Ibsend", "Irsend", "Issend", "Recv", "Irecv"]),
    ("p2p", &["Send_init", "Bsend_init", "Rsend_init", "Ssend_init", "Recv_init", "Start", "Startall"]),
    ("p2p", &["Sendrecv*", "Isendrecv*", "Probe", "Iprobe", "Mprobe", "Improbe", "Mrecv", "Imrecv"]),
    ("p2p", &["Psend_init", "Precv_init", "Pready*", "Parrived"]),
    ("p2p", &["Buffer_*", "*_attach_buffer", "*_detach_buffer", "*_flush_buffer", "*_iflush_buffer"]),
    ("coll", &["Allgather*", "Allreduce*", "Alltoall*", "Bcast*", "Exscan*", "Gather*", "Reduce*", "Scan*"]),
    ("coll", &["Scatter*", "Iallgather*", "Iallreduce", "Ialltoall*", "Ibcast", "Iexscan", "Igather*", "Ireduce*"]),
    ("coll", &["Iscan", "Iscatter*", "Neighbor_*", "Ineighbor_*"]),
    ("rma", &["Put", "Get", "Accumulate", "Get_accumulate", "Fetch_and_op", "Compare_and_swap", "Rput", "Rget"]),
    ("rma", &["Raccumulate", "Rget_accumulate", "Win_*"]),
    ("io", &["File_*"]),
    ("comm", &["Comm_*", "Intercomm_*", "Group_*", "Cart_create", "Cart_sub", "Graph_create", "Dist_graph_create*"]),
    ("comm", &["Open_port", "Close_port", "Lookup_name", "Publish_name", "Unpublish_name"]),
    ("type", &["Type_*", "Pack", "Pack_external", "Unpack", "Unpack_external"]),
];

const POLLING: &[&str] =
    &["Improbe", "Iprobe", "Parrived", "Request_get_status*", "Test", "Testall", "Testany", "Testsome", "Win_test"];

pub(super) fn group(name: &str) -> anyhow::Result<&'static str> {
    let (group, _) = RULES
        .iter()
        .find(|(_, patterns)| patterns.iter().any(|pattern| matches(pattern, name)))
        .with_context(|| format!("no rule puts {name} into a group"))?;
    Ok(group)
}

/// Fails on a pattern that decides about no function: misspelt, or behind one that takes everything from it.
pub(super) fn check_rules(names: &[&str]) -> anyhow::Result<()> {
    let patterns = || RULES.iter().flat_map(|(_, patterns)| patterns.iter());
    for (i, pattern) in patterns().enumerate() {
        let decides = |name: &str| patterns().position(|p| matches(p, name)) == Some(i);
        ensure!(names.iter().copied().any(decides), "the rule {pattern} decides about no function");
    }
    Ok(())
}

/// The table's flags; `arguments` are in the table's notation.
pub(super) fn flags(name: &str, group: &str, arguments: &[String]) -> String {
    let returns_request = arguments.iter().any(|argument| argument.starts_with('>') && argument.contains(":request"));
    let operation = match (returns_request, name.ends_with("_init")) {
        // A generalized request operates outside MPI; a conversion makes no operation.
        (true, _) if ["other", "query"].contains(&group) => None,
        (true, true) => Some("persistent"),
        (true, false) => Some("nonblocking"),
        (false, _) => None,
    };
    let polling = POLLING.iter().any(|pattern| matches(pattern, name)).then_some("polling");
    let flags: Vec<&str> = polling.into_iter().chain(operation).collect();
    if flags.is_empty() { "-".to_owned() } else { flags.join(",") }
}

/// Whether `pattern`, with at most one `*`, matches the name after `MPI_`.
fn matches(pattern: &str, name: &str) -> bool {
    let name = name.trim_start_matches("MPI_");
    match pattern.split_once('*') {
        None => name == pattern,
        Some((start, end)) => name.len() >= pattern.len() - 1 && name.starts_with(start) && name.ends_with(end),
    }
}
