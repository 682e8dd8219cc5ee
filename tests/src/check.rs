//! What mpiprobe says, against what the truth library counted, whatever the engine.
#![expect(clippy::missing_panics_doc, reason = "these are assertions")]

use std::collections::BTreeMap;

use libtest_mimic::Failed;
use mpiprobe_functions::FunctionSet;

use crate::profiler::{Ended, Profile, Rank};
use crate::threads::expect_sums_of_threads;
use crate::truth::{Image, Snapshot};

/// A profile with nothing missing, and the exit status that says so.
/// Invariant LOSS-COUNTED.
pub fn complete(ended: &Ended) -> Result<Profile, Failed> {
    let profile = ended.profile()?;
    assert!(profile.complete && profile.incomplete_because.is_empty(), "{}", ended.printed());
    assert_eq!(profile.lost(), BTreeMap::new(), "{}", ended.printed());
    assert_eq!(ended.status.code(), Some(0), "{}", ended.printed());
    assert_eq!(profile.schema, "mpiprobe.profile/1");
    let not_probed: Vec<_> = profile.engine.libraries.iter().flat_map(|library| &library.not_probed).collect();
    assert!(not_probed.is_empty(), "{not_probed:?}");
    Ok(profile)
}

/// The functions that are counted with `--functions`.
pub fn functions(selection: &str) -> Result<FunctionSet, Failed> {
    let mut functions = mpiprobe_functions::select(selection).map_err(|error| error.to_string())?;
    // What the program says by it is always heard.
    functions.insert(mpiprobe_functions::by_name("MPI_Pcontrol").ok_or("the table has no MPI_Pcontrol")?);
    Ok(functions)
}

/// Calls by function that `image` completed since `before`, of the wanted functions.
pub fn completed(image: &Image, before: Option<&Image>, wanted: &FunctionSet) -> BTreeMap<String, u64> {
    let since = |name: &str, calls: u64| calls - before.map_or(0, |before| before.calls(name).completed);
    let counts = image.completed().into_iter().map(|(name, calls)| (name, since(name, calls)));
    // A function that mpiprobe's table lacks must not vanish from both sides.
    let is_wanted = |name: &str| mpiprobe_functions::by_name(name).is_none_or(|id| wanted.contains(id));
    counts.filter(|(name, calls)| *calls > 0 && is_wanted(name)).map(|(name, calls)| (name.to_owned(), calls)).collect()
}

/// Each rank has exactly the calls that the truth library counted since `before`, and no other; and there are no other ranks.
pub fn expect_counts(
    profile: &Profile,
    truth: &Snapshot,
    before: Option<&Snapshot>,
    wanted: &FunctionSet,
) -> Result<(), Failed> {
    expect_rows(profile, truth, before, wanted)?;
    assert_eq!(profile.ranks.len(), truth.ranks.len(), "{:?}", profile.ranks);
    Ok(())
}

/// The same where there may be other processes besides.
pub fn expect_rows(
    profile: &Profile,
    truth: &Snapshot,
    before: Option<&Snapshot>,
    wanted: &FunctionSet,
) -> Result<(), Failed> {
    for (rank, image) in &truth.ranks {
        let before = before.and_then(|before| before.ranks.get(rank));
        // Nodes that are namespaces have each its own process of a number.
        let is_it = |row: &&Rank| row.pid == image.pid && row.rank.is_none_or(|own| Some(own) == image.rank);
        let rows: Vec<_> = profile.ranks.iter().filter(is_it).collect();
        let [row] = rows.as_slice() else { return Err(format!("rank {rank}: rows {rows:?}").into()) };
        expect_row(row, image, before, wanted);
    }
    Ok(())
}

/// One process image.
pub fn expect_row(row: &Rank, image: &Image, before: Option<&Image>, wanted: &FunctionSet) {
    let expected = completed(image, before, wanted);
    let counted: BTreeMap<String, u64> =
        row.completed().into_iter().map(|(name, calls)| (name.to_owned(), calls)).collect();
    assert_eq!(counted, expected, "rank {:?}, process {}", image.rank, image.pid);
    assert_eq!((row.rank, row.pid, row.calls), (image.rank, image.pid, expected.values().sum()));
    expect_sums_of_threads(row);
}

/// Of [`AT_ONCE`](crate::program::AT_ONCE) with so many rounds, and so many sends at once: each operation has been completed, and none
/// is pending.
pub fn expect_all_completed(profile: &Profile, rounds: u64, many: u64) -> Result<(), Failed> {
    let received = 2 * many + many / 2 + 2;
    for (rank, function, in_a_round) in
        [(0, "MPI_Isend", 2 * many + 2), (0, "MPI_Issend", many), (1, "MPI_Irecv", received)]
    {
        let traffic = profile.rank(rank).and_then(|row| row.traffic.as_ref()).ok_or("no traffic")?;
        let flows = traffic.flows.iter().filter(|flow| flow.function == function);
        let (calls, completed) =
            flows.fold((0, 0), |(calls, completed), flow| (calls + flow.calls, completed + flow.completed));
        // Those that were given up may have been complete by then.
        let given_up = if function == "MPI_Isend" { 2 * rounds } else { 0 };
        assert_eq!(calls, in_a_round * rounds, "{function}: {traffic:?}");
        assert!((calls - given_up..=calls).contains(&completed), "{function}: {completed} completed: {traffic:?}");
        assert_eq!(traffic.pending, [], "rank {rank}");
    }
    Ok(())
}
