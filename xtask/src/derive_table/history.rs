//! Which version of the standard brought or removed a function.

use super::Row;

/// 4.0 brought these, besides whatever [`since`] recognises by the form of the name.
const ADDED_IN_4_0: &[&str] = &[
    "Comm_create_from_group",
    "Comm_idup_with_info",
    "Group_from_session_pset",
    "Info_create_env",
    "Info_get_string",
    "Intercomm_create_from_groups",
    "Isendrecv",
    "Isendrecv_replace",
    "Parrived",
    "Pready",
    "Pready_list",
    "Pready_range",
    "T_category_get_events",
    "T_category_get_num_events",
];

const ADDED_IN_4_1: &[&str] = &[
    "Buffer_flush",
    "Buffer_iflush",
    "Get_hw_resource_info",
    "Remove_error_class",
    "Remove_error_code",
    "Remove_error_string",
    "Request_get_status_all",
    "Request_get_status_any",
    "Request_get_status_some",
    "Status_get_error",
    "Status_get_source",
    "Status_get_tag",
    "Status_set_error",
    "Status_set_source",
    "Status_set_tag",
    "Type_get_value_index",
];

/// The only `_init` functions before persistent collectives and partitioned communication came with 4.0.
const OLD_PERSISTENT: &[&str] = &["Bsend_init", "Recv_init", "Rsend_init", "Send_init", "Ssend_init"];

/// 3.1 stands for 3.1 or earlier.
pub(super) fn since(name: &str) -> &'static str {
    let name = name.trim_start_matches("MPI_");
    // Attach, detach, flush and iflush of a buffer of one communicator or session.
    let own_buffer = (name.starts_with("Comm_") || name.starts_with("Session_")) && name.ends_with("_buffer");
    if name.starts_with("Abi_") || name.ends_with("_toint") || name.ends_with("_fromint") {
        "5.0"
    } else if ADDED_IN_4_1.contains(&name) || own_buffer {
        "4.1"
    } else if ADDED_IN_4_0.contains(&name)
        || ["Session_", "T_event_", "T_source_"].iter().any(|prefix| name.starts_with(prefix))
        || (name.ends_with("_init") && !OLD_PERSISTENT.contains(&name))
    {
        "4.0"
    } else {
        "3.1"
    }
}

/// When the large-count variant came, of a function that has one.
pub(super) fn large_count_since(name: &str) -> &'static str {
    if name == "MPI_Status_set_elements" { "4.1" } else { since(name).max("4.0") }
}

/// What MPI 3.0 removed; MPI-1.1 and the deprecated names of MPI-2.2 list these, the Forum's data does not.
/// Libraries go on exporting them for old executables.
pub(super) fn removed_functions() -> Vec<Row> {
    const REMOVED: &[(&str, &str)] = &[
        ("MPI_Address", "location:address >address:displacement:64"),
        ("MPI_Errhandler_create", "function:function >errhandler:errhandler"),
        ("MPI_Errhandler_get", "comm:comm >errhandler:errhandler"),
        ("MPI_Errhandler_set", "comm:comm errhandler:errhandler"),
        ("MPI_Type_extent", "datatype:datatype >extent:bytes:64"),
        (
            "MPI_Type_hindexed",
            "count:count array_of_blocklengths[count]:count array_of_displacements[count]:displacement:64 \
             oldtype:datatype >newtype:datatype",
        ),
        ("MPI_Type_hvector", "count:count blocklength:count stride:displacement:64 oldtype:datatype >newtype:datatype"),
        ("MPI_Type_lb", "datatype:datatype >displacement:displacement:64"),
        (
            "MPI_Type_struct",
            "count:count array_of_blocklengths[count]:count array_of_displacements[count]:displacement:64 \
             array_of_types[count]:datatype >newtype:datatype",
        ),
        ("MPI_Type_ub", "datatype:datatype >displacement:displacement:64"),
    ];
    let row = |&(name, arguments): &(&str, &str)| Row {
        name: name.to_owned(),
        since: "2.2-3.0",
        large: "-",
        fortran: "f90",
        arguments: arguments.split_whitespace().map(str::to_owned).collect(),
    };
    REMOVED.iter().map(row).collect()
}

/// The predefined callbacks by their Fortran names, and the names Open MPI gives what its `use mpi` needs in C.
pub(super) const FORTRAN_ONLY: &[&str] = &[
    "MPI_AINT_ADD_F90",
    "MPI_AINT_DIFF_F90",
    "MPI_COMM_DUP_FN",
    "MPI_COMM_NULL_COPY_FN",
    "MPI_COMM_NULL_DELETE_FN",
    "MPI_CONVERSION_FN_NULL",
    "MPI_DUP_FN",
    "MPI_NULL_COPY_FN",
    "MPI_NULL_DELETE_FN",
    "MPI_TYPE_DUP_FN",
    "MPI_TYPE_NULL_COPY_FN",
    "MPI_TYPE_NULL_DELETE_FN",
    "MPI_WIN_DUP_FN",
    "MPI_WIN_NULL_COPY_FN",
    "MPI_WIN_NULL_DELETE_FN",
    "MPI_WTICK_F90",
    "MPI_WTIME_F90",
];
