//! The table as a whole: names, versions, groups.
#![expect(clippy::panic, reason = "a helper that cannot go on fails its test")]

use std::collections::BTreeSet;

use mpiprobe_functions::{
    COUNT, FUNCTIONS, Function, FunctionId, Group, Operation, Standard, by_name, by_name_ignoring_case, is_fortran_only,
};

fn function(name: &str) -> &'static Function {
    by_name(name).unwrap_or_else(|| panic!("{name} is not in the table")).function()
}

/// How many functions a standard has: ordinary and MPI_T, and large-count variants.
fn counts(standard: Standard) -> (usize, usize, usize) {
    let of = |wanted: fn(&Function) -> bool| {
        FUNCTIONS.iter().filter(|function| function.is_in(standard) && wanted(function)).count()
    };
    (
        of(|function| !function.is_large_count()),
        of(|function| function.name.starts_with("MPI_T_")),
        of(Function::is_large_count),
    )
}

#[test]
fn names_are_sorted_and_unique_in_any_case() {
    assert!(FUNCTIONS.windows(2).all(|pair| pair[0].name < pair[1].name));
    let lower: BTreeSet<String> = FUNCTIONS.iter().map(|function| function.name.to_lowercase()).collect();
    assert_eq!(lower.len(), COUNT);
}

/// The standards' own numbers. MPI 3.1 has, besides the functions that mpi.h files declare, 48 conversions and the like
/// that may be macros; MPI 2.2 is not told apart except for what MPI 3.0 removed.
#[test]
fn every_standard_has_its_number_of_functions() {
    assert_eq!(counts(Standard::Mpi3_1), (411, 31, 0));
    assert_eq!(counts(Standard::Mpi4_0), (479, 51, 154));
    assert_eq!(counts(Standard::Mpi4_1), (503, 51, 159));
    assert_eq!(counts(Standard::Mpi5_0), (531, 51, 159));
    let removed: Vec<_> = FUNCTIONS.iter().filter(|function| function.removed.is_some()).collect();
    assert_eq!(removed.len(), 10);
    assert!(removed.iter().all(|function| function.removed == Some(Standard::Mpi3_0)));
    assert_eq!(COUNT, 531 + 159 + 10);
}

#[test]
fn functions_know_the_version_that_brought_them() {
    for (name, since) in [
        ("MPI_Send", Standard::Mpi3_1),
        ("MPI_Send_init", Standard::Mpi3_1),
        ("MPI_Aint_add", Standard::Mpi3_1),
        ("MPI_Status_f082c", Standard::Mpi3_1),
        ("MPI_Address", Standard::Mpi2_2),
        ("MPI_Send_c", Standard::Mpi4_0),
        ("MPI_Bcast_init", Standard::Mpi4_0),
        ("MPI_Session_init", Standard::Mpi4_0),
        ("MPI_Session_attach_buffer", Standard::Mpi4_1),
        ("MPI_Session_attach_buffer_c", Standard::Mpi4_1),
        ("MPI_Status_set_elements_c", Standard::Mpi4_1),
        ("MPI_Comm_iflush_buffer", Standard::Mpi4_1),
        ("MPI_Comm_toint", Standard::Mpi5_0),
        ("MPI_Abi_get_version", Standard::Mpi5_0),
    ] {
        assert_eq!(function(name).since, since, "{name}");
    }
    assert!(!function("MPI_Address").is_in(Standard::Mpi3_0));
    assert!(function("MPI_Address").is_in(Standard::Mpi2_2));
    assert_eq!(Standard::Mpi4_1.to_string(), "MPI 4.1");
}

#[test]
fn groups_are_those_of_profilers() {
    for (group, names) in [
        (
            Group::PointToPoint,
            "Send Irsend Recv Mrecv Sendrecv_replace Probe Improbe Start Startall Ssend_init Psend_init Pready_range Parrived Buffer_detach Isendrecv_c",
        ),
        (
            Group::Collective,
            "Bcast Ibcast Allreduce_init Alltoallw Neighbor_allgather Ineighbor_alltoallv Reduce_scatter_block Iexscan Scan_c",
        ),
        (Group::Completion, "Wait Waitall Waitany Waitsome Test Testsome Request_free Request_get_status_any Cancel"),
        (Group::Synchronisation, "Barrier Ibarrier Barrier_init"),
        (
            Group::OneSided,
            "Put Rget_accumulate Fetch_and_op Win_fence Win_lock_all Win_flush_local Win_create Win_free Win_test Win_set_info",
        ),
        (
            Group::Io,
            "File_open File_close File_sync File_set_view File_write_ordered_begin File_iread_at_all File_seek File_delete File_get_size",
        ),
        (Group::InitFinalize, "Init Init_thread Finalize Session_init Session_finalize Abort"),
        (
            Group::Communicator,
            "Comm_dup Comm_idup Comm_split Comm_free Comm_spawn Comm_accept Intercomm_merge Cart_create Group_incl Dist_graph_create_adjacent Open_port",
        ),
        (Group::Datatype, "Type_commit Type_free Type_create_struct Type_struct Pack Unpack_external"),
        (
            Group::Query,
            "Comm_rank Comm_size Wtime Wtick Get_count Comm_group Group_rank Type_size Get_address Comm_get_attr Win_get_name Initialized Comm_c2f Info_get Error_string File_get_position Win_get_group Status_get_tag Test_cancelled Comm_toint Cart_coords",
        ),
        (Group::Tool, "T_init_thread T_pvar_read T_event_copy Pcontrol"),
        (
            Group::Other,
            "Info_set Comm_set_attr Keyval_create Op_create Comm_set_errhandler Alloc_mem Grequest_start Reduce_local Status_set_tag Comm_set_name",
        ),
    ] {
        for name in names.split_whitespace() {
            assert_eq!(function(&format!("MPI_{name}")).group, group, "{name}");
        }
    }
}

#[test]
fn default_follows_the_group_and_polling_is_what_loops_call() {
    for function in FUNCTIONS {
        assert_eq!(function.default, function.group.is_default(), "{}", function.name);
    }
    let polling: Vec<_> = FUNCTIONS.iter().filter(|function| function.polling).map(Function::short_name).collect();
    let expected = "Improbe Iprobe Parrived Request_get_status Request_get_status_all Request_get_status_any \
                    Request_get_status_some Test Testall Testany Testsome Win_test";
    assert_eq!(polling.join(" "), expected);
}

#[test]
fn operations_are_told_apart() {
    for (name, operation) in [
        ("MPI_Send", Operation::Blocking),
        ("MPI_Isend", Operation::Nonblocking),
        ("MPI_Raccumulate", Operation::Nonblocking),
        ("MPI_Comm_iflush_buffer", Operation::Nonblocking),
        ("MPI_Rsend_init", Operation::Persistent),
        ("MPI_Barrier_init", Operation::Persistent),
        ("MPI_Start", Operation::Blocking),
        ("MPI_Session_init", Operation::Blocking),
        ("MPI_Iprobe", Operation::Blocking),
    ] {
        assert_eq!(function(name).operation, operation, "{name}");
    }
}

#[test]
fn groups_are_indexed_and_named_without_doubt() {
    for (index, group) in Group::ALL.into_iter().enumerate() {
        assert_eq!(usize::from(group.index()), index);
        assert_eq!(Group::from_key(group.key()), Some(group));
    }
    let words: BTreeSet<&str> = Group::ALL.iter().flat_map(|group| [group.key(), group.title()]).collect();
    // `completion`, `tool` and `other` are key and title.
    assert_eq!(words.len(), 2 * Group::ALL.len() - 3);
}

#[test]
fn names_lead_to_ids_and_back() {
    for id in FunctionId::all() {
        let function = id.function();
        assert_eq!(by_name(function.name), Some(id));
        assert_eq!(by_name(&format!("P{}", function.name)), Some(id));
        assert_eq!(by_name_ignoring_case(&function.name.to_uppercase()), Some(id));
        assert_eq!(by_name_ignoring_case(&function.short_name().to_lowercase()), Some(id));
        assert_eq!(FunctionId::from_index(u16::try_from(id.index()).unwrap()), Some(id));
        assert_eq!(function.id(), Some(id));
    }
    assert_eq!(FunctionId::from_index(u16::try_from(COUNT).unwrap()), None);
    assert_eq!(FunctionId::from_index(u16::MAX), None);
}

#[test]
fn other_names_lead_nowhere() {
    for name in
        ["", "P", "MPI_", "MPI_send", "mpi_send_", "Send", "PPMPI_Send", "MPI_Send_f", "MPIX_Query_cuda_support"]
    {
        assert_eq!(by_name(name), None, "{name}");
    }
    for name in ["", "mpi_", "mpi_mpi_send", "send_", "MPI_Sen\u{e9}"] {
        assert_eq!(by_name_ignoring_case(name), None, "{name}");
    }
    assert_eq!(by_name("MPI_DUP_FN"), None);
    assert!(is_fortran_only("MPI_DUP_FN"));
    assert!(!is_fortran_only("MPI_Send"));
}

#[test]
fn large_count_variants_are_paired() {
    for id in FunctionId::all() {
        let function = id.function();
        if let Some(variant) = function.large_count_variant() {
            assert_eq!(variant.function().name, format!("{}_c", function.name));
            assert_eq!(variant.function().large_count_of(), Some(id));
            assert!(!function.is_large_count() && variant.function().is_large_count());
        }
    }
    assert_eq!(function("MPI_Barrier").large_count_variant(), None);
    assert!(!function("MPI_Comm_f2c").is_large_count());
}
