//! Before MPI_Init there is little to be found, and it must not be made up.

use std::{fs, os::unix::fs::FileExt as _};

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
    if mpi == Mpi::OpenMpi {
        tests.push(trial(mpi, "without_messages_nothing_is_whole", not_without_messages));
    }
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

/// Open MPI makes messages ready last of all that is looked for: before, not knowing the message of nobody (`MPI_MESSAGE_NO_PROC`) is not
/// knowing enough.
fn not_without_messages(mpi: Mpi) -> Result<(), Failed> {
    let mut job = job(mpi).spawn()?;
    job.wait_for_gate("start")?;
    job.open_gate("start")?;
    job.wait_for_gate("1")?;
    let pid = job.ranks()?[&0];
    let known = look(pid).search.found().layout;
    let (null, no_proc) = (known.constants.message_null, known.constants.message_no_proc);
    assert!(null != 0 && no_proc != 0 && known.knows(capability::COMMUNICATORS), "{known:?}");
    let messages = pointers(pid, [null, no_proc])?;
    let write = |value: u64| -> Result<(), Failed> {
        // As long as the process waits at its gate, it does not look itself.
        let memory = fs::OpenOptions::new().write(true).open(format!("/proc/{pid}/mem"))?;
        Ok(messages.iter().try_for_each(|place| memory.write_all_at(&value.to_ne_bytes(), place + 8))?)
    };
    write(0)?;
    let looked = look(pid);
    write(no_proc)?;
    let Search::NotYet(found) = &looked.search else { panic!("{:?}", looked.search) };
    assert!(!found.layout.knows(capability::COMMUNICATORS), "{found:?}");
    assert!(matches!(look(pid).search, Search::Done(_)));
    job.open_gate("1")?;
    job.wait()?.success()?;
    Ok(())
}

/// Where two pointers stand one behind the other in a process's own memory.
fn pointers(pid: u32, wanted: [u64; 2]) -> Result<Vec<u64>, Failed> {
    let memory = fs::File::open(format!("/proc/{pid}/mem"))?;
    let mut found = Vec::new();
    for line in fs::read_to_string(format!("/proc/{pid}/maps"))?.lines().filter(|line| line.ends_with("[heap]")) {
        let bounds = line.split(' ').next().and_then(|range| range.split_once('-')).ok_or("no range")?;
        let (from, until) = (u64::from_str_radix(bounds.0, 16)?, u64::from_str_radix(bounds.1, 16)?);
        let mut bytes = vec![0; usize::try_from(until - from)?];
        memory.read_exact_at(&mut bytes, from)?;
        let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        let places = (from..).step_by(8).zip(words.windows(2)).filter(|(_, two)| *two == wanted);
        found.extend(places.map(|(place, _)| place));
    }
    assert!(!found.is_empty(), "no table of messages");
    Ok(found)
}
