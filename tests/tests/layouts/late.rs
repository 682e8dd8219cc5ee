//! Before MPI_Init there is little to be found, and it must not be made up.

use libtest_mimic::{Failed, Trial};
use mpiprobe_common::{
    Layout,
    layout::{capability, comm},
};
use mpiprobe_layout::Search;
use mpiprobe_tests::{Job, JobBuilder, Mpi, program};

use crate::{target::look, trial};

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let mut tests = vec![
        // Invariant LAYOUT-CHECKED.
        trial(mpi, "objects_are_found_as_soon_as_mpi_is_initialised_and_not_before", not_yet),
        trial(mpi, "layouts_by_the_file_are_those_found_in_processes", |mpi| by_file(job(mpi))),
    ];
    if mpi == Mpi::Mpich {
        let linked_in = |mpi| by_file(job(mpi).linked_in());
        tests.push(trial(mpi, "layouts_by_a_program_with_mpi_in_it_are_those_found_in_processes", linked_in));
    }
    tests
}

fn job(mpi: Mpi) -> JobBuilder {
    Job::builder(mpi, program::LAYOUTS).ranks(4).gates(&["start", "1"])
}

fn not_yet(mpi: Mpi) -> Result<(), Failed> {
    let mut job = job(mpi).spawn()?;
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

/// What programs read by is the same before a process has been looked at.
/// Invariant UNDERSTOOD-AT-ONCE.
fn by_file(job: JobBuilder) -> Result<(), Failed> {
    let mut job = job.spawn()?;
    job.wait_for_gate("start")?;
    for pid in job.ranks()?.into_values() {
        assert_eq!(look(pid).by_file(), None);
    }
    job.open_gate("start")?;
    job.wait_for_gate("1")?;
    let looked: Vec<_> = job.ranks()?.into_values().map(look).collect();
    for (looked, other) in looked.iter().zip(looked.iter().rev()) {
        let found = looked.search.found().layout;
        let learned = looked.learned(other).expect("a layout by what was found in the other process");
        assert_eq!(essential(&learned), essential(&found));
        let by_file = looked.by_file().expect("a layout by the file alone");
        assert_eq!((by_file.communicators.world, by_file.communicators.own, by_file.members), {
            (found.communicators.world, found.communicators.own, found.members)
        });
        assert_eq!(by_file.constants, found.constants);
        assert_eq!((by_file.status, by_file.handles), (found.status, found.handles));
        assert!(by_file.knows(capability::DATATYPES) && !by_file.knows(capability::PARTIAL), "{:x}", by_file.known);
        assert_eq!(essential(&Layout { requests: found.requests, ..by_file }), essential(&found));
    }
    job.open_gate("1")?;
    job.wait()?.success()?;
    Ok(())
}

/// What the program has copies of is a matter of each program, what the launcher has told of each process.
fn essential(layout: &Layout) -> Layout {
    const ALL: u32 = capability::CONSTANTS
        | capability::BUILTIN_SIZES
        | capability::DATATYPES
        | capability::COMMUNICATORS
        | capability::MEMBERS;
    Layout { known: layout.known & ALL, told_rank: 0, told_size: 0, predefined: Default::default(), ..*layout }
}
