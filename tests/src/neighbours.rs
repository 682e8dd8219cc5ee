//! Who the neighbours of each process are, as a trace tells it, in the topologies of `semantics/neighbourhoods.c`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::time::Duration;

use libtest_mimic::Failed;
use mpiprobe_trace::{Trace as _, store::TraceFiles};
use serde_json::Value;

use crate::waits::count;
use crate::{Job, Mpi, Profiler, program};

const DEADLINE: Duration = Duration::from_mins(5);

/// By rank in the communicator, those that data comes from and those that it goes to.
type Lists = BTreeMap<u32, (Vec<u32>, Vec<u32>)>;

/// The job is recorded by an engine; whoever asks for its wait states knows whom each process needs.
pub fn are_known(mpi: Mpi, engine: &str) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("job.trace");
    let options: [OsString; 4] = ["--functions".into(), "all".into(), "--trace".into(), path.clone().into()];
    let job = Job::builder(mpi, program::SEMANTICS).args(["neighbourhoods"]).deadline(DEADLINE);
    job.run_by(engine, options)?.spawn()?.wait()?.success()?;
    let files = TraceFiles::open(&[&path])?;
    let communicators = files.definitions().communicators.iter();
    let told = communicators.map(|one| -> Lists {
        let lists = one.neighbours.iter();
        lists.map(|(&rank, lists)| (rank, (lists.sources.clone(), lists.destinations.clone()))).collect()
    });
    let told: BTreeSet<Lists> = told.filter(|lists| !lists.is_empty()).collect();
    let expected = expected();
    if told != expected {
        return Err(format!("{told:#?} in place of {expected:#?}").into());
    }
    let ended = Profiler::start([OsString::from("waits"), "--json".into(), path.into()])?.wait()?;
    let states: Value = serde_json::from_str(&ended.stdout.join("\n"))?;
    match count(&states, "unknown_neighbours") {
        Some(0) => Ok(()),
        _ => Err(format!("not known: {}", states.get("unmatched").unwrap_or(&Value::Null)).into()),
    }
}

/// By hand. Communicators with the same neighbours are one.
fn expected() -> BTreeSet<Lists> {
    let both_ways = |lists: &[&[u32]]| -> Lists {
        let lists = lists.iter().map(|list| (list.to_vec(), list.to_vec()));
        (0..).zip(lists).collect()
    };
    let line = both_ways(&[&[1], &[0, 2], &[1, 3], &[2]]);
    // Each is twice its own neighbour in the direction of one process that comes back to it.
    let plane = both_ways(&[&[2, 0, 0, 1], &[3, 1, 1, 0], &[0, 2, 2, 3], &[1, 3, 3, 2]]);
    let row = both_ways(&[&[0, 0, 1], &[1, 1, 0]]);
    let star = both_ways(&[&[1, 2, 3], &[0], &[0], &[0]]);
    let tree = (0..4).map(|rank| (rank, ((0..rank).collect(), (rank + 1..4).collect()))).collect();
    let alone = both_ways(&[&[0, 0]]);
    [line, plane, row, star, tree, alone].into()
}
