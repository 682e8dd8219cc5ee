//! Before MPI_Init there is little to be found, and it must not be made up.

use libtest_mimic::{Failed, Trial};
use mpiprobe::layout::Search;
use mpiprobe_common::layout::{capability, comm};
use mpiprobe_tests::{Job, Mpi, program};

use crate::target::look;
use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![trial(mpi, "objects_are_found_as_soon_as_mpi_is_initialised_and_not_before", not_yet)]
}

fn not_yet(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::LAYOUTS).ranks(4).gates(&["start", "1"]).spawn()?;
    job.wait_for_gate("start")?;
    for (rank, pid) in job.ranks()? {
        let looked = look(pid);
        let Search::NotYet(found) = &looked.search else { panic!("rank {rank}: {:?}", looked.search) };
        assert_eq!(found.missing, [], "rank {rank}");
        assert!(found.layout.knows(capability::CONSTANTS), "rank {rank}");
        assert!(!found.layout.knows(capability::COMMUNICATORS), "rank {rank}");
        assert_eq!(comm(&found.layout, found.layout.constants.comm_world, &looked.memory), None, "rank {rank}");
    }
    job.open_gate("start")?;
    job.wait_for_gate("1")?;
    for (rank, pid) in job.ranks()? {
        let looked = look(pid);
        let Search::Done(found) = &looked.search else { panic!("rank {rank}: not yet") };
        assert_eq!(found.missing, [], "rank {rank}");
        let world = comm(&found.layout, found.layout.constants.comm_world, &looked.memory).expect("MPI_COMM_WORLD");
        assert_eq!((world.rank, world.size), (rank, 4));
    }
    job.open_gate("1")?;
    job.wait()?.success()?;
    Ok(())
}
