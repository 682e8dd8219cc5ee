//! Descriptors against positions written down by hand.
#![expect(clippy::panic, reason = "a helper that cannot go on fails its test")]

use std::collections::BTreeMap;

use mpiprobe_common::descriptor::{Descriptor, NONE, flags, root_only};
use mpiprobe_functions::{COUNT, Function, FunctionId, Group, by_name};

const POSITIONS: &str = include_str!("data/positions.txt");

fn function(name: &str) -> &'static Function {
    by_name(&format!("MPI_{name}")).unwrap_or_else(|| panic!("{name} is not in the table")).function()
}

fn positions(descriptor: &Descriptor) -> BTreeMap<&'static str, u8> {
    let all = [
        ("sbuf", descriptor.send_buffer),
        ("scount", descriptor.send_count),
        ("stype", descriptor.send_datatype),
        ("to", descriptor.destination),
        ("stag", descriptor.send_tag),
        ("rbuf", descriptor.receive_buffer),
        ("rcount", descriptor.receive_count),
        ("rtype", descriptor.receive_datatype),
        ("from", descriptor.source),
        ("rtag", descriptor.receive_tag),
        ("root", descriptor.root),
        ("comm", descriptor.communicator),
        ("win", descriptor.window),
        ("file", descriptor.file),
        ("request", descriptor.request),
        ("requests", descriptor.request_count),
        ("status", descriptor.status),
    ];
    all.into_iter().filter(|&(_, position)| position != NONE).collect()
}

#[test]
fn descriptors_have_the_positions_of_the_prototypes() {
    let mut rows = 0;
    for row in POSITIONS.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = row.split_whitespace();
        let name = fields.next().unwrap();
        let arguments: u8 = fields.next().unwrap().parse().unwrap();
        let expected: BTreeMap<&str, u8> =
            fields.map(|field| field.split_once('=').unwrap()).map(|(key, at)| (key, at.parse().unwrap())).collect();
        let descriptor = function(name).descriptor();
        assert_eq!(descriptor.arguments, arguments, "{name}");
        assert_eq!(positions(&descriptor), expected, "{name}");
        rows += 1;
    }
    assert_eq!(rows, 99);
}

/// Large counts change widths, not places. The two functions that ask for a datatype's contents have arguments more.
#[test]
fn large_count_variants_have_the_same_positions() {
    let mut variants = 0;
    for large in FunctionId::all().map(FunctionId::function) {
        let Some(ordinary) = large.large_count_of().map(FunctionId::function) else { continue };
        variants += 1;
        if ["MPI_Type_get_contents", "MPI_Type_get_envelope"].contains(&ordinary.name) {
            assert!(large.arguments.len() > ordinary.arguments.len());
            continue;
        }
        assert_eq!(positions(&large.descriptor()), positions(&ordinary.descriptor()), "{}", large.name);
        assert_eq!(large.descriptor().flags & !flags::LARGE_COUNT, ordinary.descriptor().flags, "{}", large.name);
    }
    assert_eq!(variants, 159);
}

#[test]
fn flags_follow_the_arguments() {
    let both = flags::SEND_COUNTS_ARE_ARRAY | flags::RECEIVE_COUNTS_ARE_ARRAY;
    for (name, expected) in [
        ("Send", 0),
        ("Send_c", flags::LARGE_COUNT),
        ("Isend", flags::NONBLOCKING),
        ("Isend_c", flags::NONBLOCKING | flags::LARGE_COUNT),
        ("Send_init", flags::PERSISTENT),
        // Partitioned communication came with MPI_Count from the beginning.
        ("Psend_init", flags::PERSISTENT | flags::LARGE_COUNT),
        ("Precv_init", flags::PERSISTENT | flags::LARGE_COUNT),
        ("Bcast_init", flags::PERSISTENT),
        ("Start", 0),
        ("Test", flags::POLLING),
        ("Iprobe", flags::POLLING),
        ("Win_test", flags::POLLING),
        ("Wait", 0),
        ("Parrived", flags::POLLING | flags::REQUEST_BY_VALUE),
        ("Request_get_status", flags::POLLING | flags::REQUEST_BY_VALUE),
        ("Request_get_status_all", flags::POLLING),
        ("Pready", flags::REQUEST_BY_VALUE),
        ("Cancel", 0),
        ("Gather", 0),
        ("Gatherv", flags::RECEIVE_COUNTS_ARE_ARRAY),
        ("Scatterv", flags::SEND_COUNTS_ARE_ARRAY),
        ("Iscatterv", flags::SEND_COUNTS_ARE_ARRAY | flags::NONBLOCKING),
        ("Allgatherv", flags::RECEIVE_COUNTS_ARE_ARRAY),
        ("Alltoallv", both),
        ("Alltoallw", both | flags::DATATYPES_ARE_ARRAY),
        ("Neighbor_alltoallw_init_c", both | flags::DATATYPES_ARE_ARRAY | flags::PERSISTENT | flags::LARGE_COUNT),
        ("Reduce_scatter", both),
        ("Reduce_scatter_block", 0),
        ("Ibarrier", flags::NONBLOCKING),
        ("Rget", flags::NONBLOCKING),
        ("File_iwrite_at", flags::NONBLOCKING),
        ("Comm_idup", flags::NONBLOCKING),
        ("Grequest_start", 0),
        ("Request_f2c", 0),
    ] {
        assert_eq!(function(name).descriptor().flags, expected, "{name}");
    }
}

#[test]
fn rooted_collectives_have_a_side_at_the_root_only() {
    for (name, expected) in [
        ("Gather", root_only::RECEIVE),
        ("Igatherv", root_only::RECEIVE),
        ("Gather_init", root_only::RECEIVE),
        ("Reduce", root_only::RECEIVE),
        ("Scatter", root_only::SEND),
        ("Scatterv", root_only::SEND),
        ("Scatterv_init", root_only::SEND),
        ("Bcast", 0),
        ("Allgather", 0),
        ("Send", 0),
    ] {
        assert_eq!(function(name).descriptor().root_only, expected, "{name}");
    }
}

/// What holds of every descriptor, whoever reads it.
#[test]
fn descriptors_are_consistent() {
    for function in FunctionId::all().map(FunctionId::function) {
        let (descriptor, name) = (function.descriptor(), function.name);
        assert_eq!(usize::from(descriptor.arguments), function.arguments.len(), "{name}");
        assert_eq!(Group::ALL[usize::from(descriptor.group)], function.group, "{name}");
        for (key, position) in positions(&descriptor) {
            assert!(position < descriptor.arguments, "{name}: {key}");
        }
        assert!(descriptor.send_count == NONE || descriptor.send_datatype != NONE, "{name}");
        assert!(descriptor.receive_count == NONE || descriptor.receive_datatype != NONE, "{name}");
        assert!(descriptor.request_count == NONE || descriptor.request != NONE, "{name}");
    }
    assert_eq!(FunctionId::all().len(), COUNT);
}

/// Every call that moves data in the default groups has a side that says how much.
#[test]
fn data_has_a_count_and_a_datatype() {
    let counted = |name: &str| {
        let descriptor = function(name).descriptor();
        (descriptor.send_count != NONE, descriptor.receive_count != NONE)
    };
    for id in FunctionId::all() {
        let function = id.function();
        let descriptor = function.descriptor();
        let has_data = descriptor.send_buffer != NONE || descriptor.receive_buffer != NONE;
        // The end of a split collective names the buffer again; atomics on one element have no count.
        let uncounted =
            function.name.ends_with("_end") || ["MPI_Fetch_and_op", "MPI_Compare_and_swap"].contains(&function.name);
        let has_count = descriptor.send_count != NONE || descriptor.receive_count != NONE;
        assert_eq!(has_count, has_data && !uncounted, "{}", function.name);
    }
    assert_eq!(counted("File_write"), (true, false));
    assert_eq!(counted("File_iread_shared"), (false, true));
    assert_eq!(counted("Rget"), (false, true));
    assert_eq!(counted("Psend_init"), (true, false));
    assert_eq!(counted("Precv_init"), (false, true));
    assert_eq!(counted("Win_create"), (false, false));
    assert_eq!(counted("Buffer_attach"), (false, false));
    assert_eq!(counted("Reduce_local"), (false, false));
    assert_eq!(counted("Pack"), (false, false));
}
