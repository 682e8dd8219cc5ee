//! Every handle, every rank.

use std::collections::BTreeMap;

use libtest_mimic::{Failed, Trial};
use mpiprobe_common::{
    Layout,
    layout::{
        CommFacts, Side, Size, builtin_size, capability, comm, datatype_size, is_complete_request, request_status,
        status_bytes, status_cancelled, status_source, status_tag, world_rank,
    },
};
use mpiprobe_layout::{
    Search, communicators,
    names::{comm_name, datatype_name},
};
use mpiprobe_tests::{Job, JobBuilder, Mpi, program};

use crate::{
    facts::{Comm, Facts, Status, read},
    target::{Look, look},
    trial,
};

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    // Invariant LAYOUT-CHECKED.
    let mut tests = vec![trial(mpi, "every_handle_means_the_same_inside_and_outside", |mpi| every_handle(job(mpi)))];
    if mpi == Mpi::Mpich {
        let linked_in = |mpi| every_handle(job(mpi).linked_in());
        tests.push(trial(mpi, "it_does_not_matter_that_the_library_is_linked_in", linked_in));
    }
    tests
}

fn job(mpi: Mpi) -> JobBuilder {
    Job::builder(mpi, program::LAYOUTS).ranks(4).gates(&["2"])
}

const ALL: u32 = capability::CONSTANTS
    | capability::DATATYPES
    | capability::COMMUNICATORS
    | capability::MEMBERS
    | capability::REQUESTS;

fn every_handle(job: JobBuilder) -> Result<(), Failed> {
    let mut job = job.spawn()?;
    job.wait_for_gate("2")?;
    let mut contexts: BTreeMap<Vec<u32>, Vec<(usize, u64)>> = BTreeMap::new();
    for (rank, pid) in job.ranks()? {
        let facts = read(job.directory(), rank);
        let Look { search, memory, .. } = look(pid);
        let Search::Done(found) = &search else { panic!("rank {rank}: not yet") };
        assert_eq!(found.missing, [], "rank {rank}");
        let layout = &found.layout;
        assert!(layout.knows(ALL), "rank {rank}: {:b}", layout.known);

        assert_eq!(constants(layout), facts.constants, "rank {rank}");
        for (handle, size, name) in &facts.types {
            let message = format!("rank {rank}: {handle:#x} {name}");
            assert_eq!(datatype_size(layout, *handle, &memory), Size::Known(*size), "{message}");
            // Predefined types have their names in the standard.
            if builtin_size(layout, *handle) == Size::Unknown {
                assert_eq!(datatype_name(layout, *handle, &memory).unwrap_or_default(), *name, "{message}");
            }
        }
        for (position, expected) in facts.comms.iter().enumerate() {
            let context = check_comm(layout, expected, &memory, rank);
            let mut members = [&expected.members[..], &expected.others].concat();
            members.sort_unstable();
            contexts.entry(members).or_default().push((position, context));
        }
        check_list(&found.layout, found.registry, &facts, &memory, rank);
        for handle in &facts.freed {
            let now = facts.comms.iter().any(|comm| comm.handle == *handle);
            assert!(now || comm(layout, *handle, &memory).is_none(), "rank {rank}: {handle:#x} was freed");
        }
        for status in &facts.statuses {
            check_status(layout, status.place, status, &memory, rank);
            assert_eq!(status_cancelled(layout, status.place, &memory), Some(false), "rank {rank}");
        }
        for address in &facts.cancelled {
            assert_eq!(status_cancelled(layout, *address, &memory), Some(true), "rank {rank}");
        }
        for request in &facts.requests {
            let address = request_status(layout, request.place, &memory).expect("a request that can be read");
            check_status(layout, address, request, &memory, rank);
        }
        assert_eq!(facts.complete.len(), 1, "rank {rank}: all implementations share such requests");
        for handle in &facts.complete {
            assert_eq!(request_status(layout, *handle, &memory), None, "rank {rank}: {handle:#x}");
            assert!(is_complete_request(layout, *handle), "rank {rank}: {handle:#x}");
        }
    }
    // The n-th communicator of a set of members is the same for all of them, and none is the same as another.
    for (members, found) in contexts {
        let mut by_context: BTreeMap<u64, usize> = BTreeMap::new();
        for (_, context) in &found {
            *by_context.entry(*context).or_default() += 1;
        }
        assert!(by_context.values().all(|count| *count == members.len()), "{members:?}: {by_context:?}");
    }
    job.open_gate("2")?;
    job.wait()?.success()?;
    Ok(())
}

fn check_comm(layout: &Layout, expected: &Comm, memory: &mpiprobe_layout::TargetMemory, rank: u32) -> u64 {
    let message = format!("rank {rank}: {expected:?}");
    let found = comm(layout, expected.handle, memory).expect(&message);
    let Comm { rank: own, size, remote_size, is_inter, .. } = *expected;
    assert_eq!(found, CommFacts { context: found.context, rank: own, size, remote_size, is_inter }, "{message}");
    let members = |side| {
        let all = communicators::members(layout, expected.handle, side, memory).expect(&message);
        all.into_iter().map(|member| member.expect(&message)).collect::<Vec<_>>()
    };
    assert_eq!(members(Side::Local), expected.members, "{message}");
    let named = if is_inter { &expected.others } else { &expected.members };
    assert_eq!(members(Side::Remote), *named, "{message}");
    for (rank, world) in (0..).zip(named) {
        assert_eq!(world_rank(layout, expected.handle, rank, memory), Some(*world), "{message}");
    }
    assert_eq!(world_rank(layout, expected.handle, named.len().try_into().unwrap(), memory), None, "{message}");
    let name = comm_name(layout, expected.handle, memory).unwrap_or_default();
    // Unnamed communicators have a name of Open MPI's, which it does not tell.
    if !expected.name.is_empty() {
        assert_eq!(name, expected.name, "{message}");
    }
    found.context
}

/// All communicators are found without knowing their handles, and no others.
fn check_list(
    layout: &Layout,
    registry: mpiprobe_layout::Registry,
    facts: &Facts,
    memory: &mpiprobe_layout::TargetMemory,
    rank: u32,
) {
    let found = communicators::communicators(layout, registry, memory);
    let mut found: Vec<u64> = found.iter().map(|comm| comm.handle).collect();
    let mut expected: Vec<u64> = facts.comms.iter().map(|comm| comm.handle).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "rank {rank}: all communicators");
}

fn check_status(layout: &Layout, address: u64, expected: &Status, memory: &mpiprobe_layout::TargetMemory, rank: u32) {
    let found = Status {
        place: expected.place,
        source: status_source(layout, address, memory).unwrap(),
        tag: status_tag(layout, address, memory).unwrap(),
        bytes: status_bytes(layout, address, memory).unwrap(),
    };
    assert_eq!(found, *expected, "rank {rank}");
}

fn constants(layout: &Layout) -> BTreeMap<String, u64> {
    let known = &layout.constants;
    let numbers = [
        ("any_source", known.any_source),
        ("any_tag", known.any_tag),
        ("proc_null", known.proc_null),
        ("root", known.root),
        ("undefined", known.undefined),
        ("thread_multiple", known.thread_multiple),
        ("thread_serialized", known.thread_serialized),
        ("thread_funneled", known.thread_funneled),
        ("lock_exclusive", known.lock_exclusive),
        ("lock_shared", known.lock_shared),
    ];
    let words = [
        ("comm_world", known.comm_world),
        ("comm_self", known.comm_self),
        ("comm_null", known.comm_null),
        ("datatype_null", known.datatype_null),
        ("request_null", known.request_null),
        ("message_null", known.message_null),
        ("message_no_proc", known.message_no_proc),
        ("win_null", known.win_null),
        ("file_null", known.file_null),
        ("in_place", known.in_place),
        ("bottom", known.bottom),
        ("status_ignore", known.status_ignore),
        ("statuses_ignore", known.statuses_ignore),
        ("unweighted", known.unweighted),
        ("weights_empty", known.weights_empty),
        ("size_of_status", layout.status.size.into()),
    ];
    let numbers = numbers.into_iter().map(|(name, number)| (name, i64::from(number).cast_unsigned()));
    numbers.chain(words).map(|(name, value)| (name.to_owned(), value)).collect()
}
