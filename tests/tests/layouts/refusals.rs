//! What fails the check is off, and the reason is told.

use libtest_mimic::{Failed, Trial};
use mpiprobe_common::layout::{Size, capability, comm, datatype_size, world_rank};
use mpiprobe_layout::{Capability, Expected, Reason, Search};
use mpiprobe_tests::{Job, Mpi, program};

use crate::{
    facts::read,
    target::{Look, look_expecting},
    trial,
};

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![trial(mpi, "a_contradiction_turns_off_what_depends_on_it_and_nothing_else", contradiction)]
}

/// The launcher says that there are more processes than the library does.
fn contradiction(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::LAYOUTS).ranks(4).gates(&["2"]).spawn()?;
    job.wait_for_gate("2")?;
    for (rank, pid) in job.ranks()? {
        let Look { search, memory, .. } = look_expecting(pid, |told| Expected { size: Some(5), ..told });
        let Search::Done(found) = &search else { panic!("rank {rank}: not yet") };
        let layout = &found.layout;
        let off: Vec<Capability> = found.missing.iter().map(|missing| missing.capability).collect();
        assert_eq!(off, [Capability::Communicators, Capability::Members, Capability::Requests], "{:?}", found.missing);
        let expected = Reason::Mismatch { what: "the size of MPI_COMM_WORLD".to_owned(), expected: 5, found: 4 };
        assert_eq!(found.missing[0].reason, expected, "rank {rank}");
        assert!(found.missing[0].to_string().ends_with("the size of MPI_COMM_WORLD should be 5 and is 4"));

        assert!(!layout.knows(capability::COMMUNICATORS) && !layout.knows(capability::MEMBERS));
        assert_eq!(comm(layout, layout.constants.comm_world, &memory), None);
        assert_eq!(world_rank(layout, layout.constants.comm_world, 0, &memory), None);
        for (handle, size, name) in read(job.directory(), rank).types {
            assert_eq!(datatype_size(layout, handle, &memory), Size::Known(size), "rank {rank}: {name}");
        }
    }
    job.open_gate("2")?;
    job.wait()?.success()?;
    Ok(())
}
