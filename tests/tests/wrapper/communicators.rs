//! Communicators of ranks that count themselves: names, origins, and that one communicator of all ranks is one row. Handles are used
//! again, and the library's own number of a communicator is not known to the wrapper.

use std::collections::BTreeSet;

use libtest_mimic::{Failed, Trial};
use mpiprobe_functions::FunctionId;
use mpiprobe_tests::{Job, Language, Mpi, origins, program};
use object::{Object as _, ObjectSymbol as _};

use crate::check::complete;
use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "communicators_have_names_that_say_where_they_come_from", move || named(mpi)),
        trial(mpi, Language::C, "communicators_that_are_freed_are_one_over_all_ranks", move || freed(mpi)),
        trial(mpi, Language::C, "functions_of_the_library_are_counted", move || functions(mpi)),
    ]
}

fn named(mpi: Mpi) -> Result<(), Failed> {
    let job = Job::builder(mpi, program::SEMANTICS).args(["communicators"]);
    let mut job = job.profiled([] as [&str; 0])?.spawn()?;
    job.wait()?.success()?;
    origins::are_told(&complete(&job)?, false)
}

/// Even turns make two halves by one call, odd turns one of all ranks.
/// Invariant ONE-COMMUNICATOR.
fn freed(mpi: Mpi) -> Result<(), Failed> {
    const TURNS: usize = 40;
    let job = Job::builder(mpi, program::MANY_COMMUNICATORS).args([TURNS.to_string()]);
    let mut job = job.profiled([] as [&str; 0])?.spawn()?;
    job.wait()?.success()?;
    let traffic = complete(&job)?.traffic.ok_or("no traffic")?;
    let splits = || traffic.communicators.iter().filter(|row| row.made_by.as_deref() == Some("MPI_Comm_split"));
    let of_size = |size| splits().filter(|row| row.size == Some(size)).count();
    assert_eq!((of_size(2), of_size(4)), (TURNS, TURNS / 2), "{:?}", traffic.communicators);
    for row in splits() {
        assert!(row.freed && Some(row.ranks) == row.size, "{row:?}");
        // Each rank calls once.
        let calls: u64 = row.functions.iter().map(|row| row.amounts.calls).sum();
        assert!(calls >= u64::from(row.ranks), "{row:?}");
    }
    Ok(())
}

/// Those of the table that its file defines, under either name.
fn functions(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::RING).ranks(2).args(["10"]).profiled([] as [&str; 0])?.spawn()?;
    job.wait()?.success()?;
    let profile = complete(&job)?;
    let library = profile.engine.libraries.first().ok_or("no library")?;
    let bytes = std::fs::read(&library.path)?;
    let file = object::File::parse(&*bytes)?;
    let defined: BTreeSet<&str> = file
        .dynamic_symbols()
        .filter(object::ObjectSymbol::is_definition)
        .filter_map(|symbol| symbol.name().ok())
        .collect();
    let is_there = |name: &str| defined.contains(name) || defined.contains(format!("P{name}").as_str());
    let there = FunctionId::all().filter(|id| is_there(id.function().name)).count();
    assert_eq!(library.functions, u64::try_from(there)?, "{}", library.path);
    Ok(())
}
