//! The calls of a job that runs, on the timeline of the view, and written to a file by a key: the end of what the truth library has logged.
//!
//! Invariant WINDOW-TAIL.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::service::NodeService;
use mpiprobe_tests::terminal::{FAST, Terminal};
use mpiprobe_tests::traced::{Extent, Order, agreement_of_files};
use mpiprobe_tests::{Job, Mpi, program};
use mpiprobe_trace::store::TraceFiles;
use mpiprobe_trace::{Event, Span, Trace};

use crate::nodes::Nodes;
use crate::view::{by, trial};

const END: &str = "\u{1b}[F";
/// What was called so shortly before a file's last calls, ns, is not expected in it of all ranks: their rings are read one after the other.
const AT_ONCE_NS: u64 = 1_000_000;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, "the_view_follows_calls_and_writes_them_by_a_key", |mpi| {
            follows_and_writes(mpi, 2, |_| Ok(Vec::new()))
        }),
        trial(mpi, "the_view_by_the_service_follows_calls_and_writes_them_by_a_key", |mpi| {
            let service = NodeService::start("")?;
            follows_and_writes(mpi, 2, |_| Ok(by(&service).into()))
        }),
        trial(mpi, "the_view_over_nodes_follows_calls_and_writes_them_by_a_key", over_nodes),
        trial(mpi, "the_view_says_what_calls_on_the_timeline_need", says_what_it_needs),
    ]
}

/// Traces in a directory, in the order of their names.
fn traces(directory: &Path) -> Result<Vec<PathBuf>, Failed> {
    let entries = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
    paths.sort();
    Ok(paths)
}

/// When the last call has returned of the rank of which that is earliest, ns: by then, all is there of all ranks.
fn known_until_ns(files: &[PathBuf]) -> Result<u64, Failed> {
    let trace = TraceFiles::open(files)?;
    let mut last = Vec::new();
    for location in trace.definitions().location_ids() {
        let mut last_ns = 0;
        for event in trace.events(location, Span::ALL) {
            if let Event::Call(call) = event?
                && call.has_returned
            {
                last_ns = call.return_ns.max(last_ns);
            }
        }
        last.push(last_ns);
    }
    Ok(last.into_iter().min().ok_or("no thread")?.saturating_sub(AT_ONCE_NS))
}

/// Whether the beginning of a call's name can be read in the lane of a rank.
fn has_names(shown: &str) -> bool {
    let lanes = shown.lines().filter(|line| line.starts_with("   0 ") || line.starts_with("   1 "));
    let names = ["Sendr", "Recv", "Allre", "Bcast", "Waita", "Irecv", "Isend", "Probe"];
    lanes.flat_map(|lane| names.map(|name| lane.contains(name))).any(|is_there| is_there)
}

/// Two ranks on each of two nodes, in one process table.
fn over_nodes(mpi: Mpi) -> Result<(), Failed> {
    // Until the job has ended.
    let mut nodes = None;
    follows_and_writes(mpi, 4, |job| {
        let launcher = nodes.insert(Nodes::of(job)?).launcher();
        Ok(["--hosts", "n1,n2", "--launcher", &launcher].map(str::to_owned).into())
    })
}

/// `by` gives options that say who observes a job of so many ranks.
fn follows_and_writes(
    mpi: Mpi,
    ranks: u32,
    by: impl FnOnce(&mut Job) -> Result<Vec<String>, Failed>,
) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let builder =
        Job::builder(mpi, program::RING).ranks(ranks).args(["--forever", "--pause-us", "2000"]).gates(&["1"]).log();
    let mut job = builder.own_name().spawn()?;
    job.wait_for_gate("1")?;
    let by = by(&mut job)?;
    let by: Vec<&str> = by.iter().map(String::as_str).collect();
    let options = ["--traffic", "--waits", "--functions", "all", "--pid-of", job.called()];
    let mut terminal = Terminal::start_in(directory.path(), (120, 40), [FAST, &by, &options].concat())?;
    terminal.wait_for(&["mpiprobe ", &format!("{ranks}/{ranks} ranks"), "LIVE"])?;
    job.open_gate("1")?;
    terminal.press("T")?;
    // Which lane it begins at is that of the rank of which something was known first.
    terminal.wait_for(&[" calls of the last ", "FOLLOWING", " lane "])?;
    // Closer, until calls have their names in them, as far as they are long enough: how long they are is the machine's affair.
    terminal.press("++++++")?;
    terminal.wait_until("names in the lanes", |shown| shown.contains("FOLLOWING") && has_names(shown))?;
    job.wait_for_calls("MPI_Allreduce", 200)?;
    terminal.press("9")?;
    terminal.wait_for(&["waits by", "because"])?;
    terminal.press("T")?;
    terminal.wait_for(&["FOLLOWING"])?;
    // To a call, which stands still.
    terminal.press("c")?;
    terminal.wait_for(&["STANDS STILL", ": MPI_", "entered +"])?;
    terminal.press(END)?;
    terminal.wait_for(&["FOLLOWING"])?;
    terminal.press("W")?;
    terminal.wait_for(&["written to mpiprobe-", ".trace: ", " calls of the last "])?;
    let first = traces(directory.path())?;
    // What is frozen is written as it is seen, to another file.
    terminal.press(" ")?;
    terminal.wait_for(&["FROZEN", "STANDS STILL"])?;
    terminal.press("W")?;
    terminal
        .wait_until("a second file", |_| traces(directory.path()).is_ok_and(|found| found.len() == 2 * first.len()))?;
    terminal.wait_for(&["written to mpiprobe-"])?;
    terminal.press("1")?;
    terminal.wait_for(&["FROZEN", "load balance"])?;
    terminal.press("q")?;
    let left = terminal.left()?;
    assert_eq!(left.not_restored, Vec::<String>::new(), "{}", left.printed);
    job.stop()?;
    job.wait()?.success()?;
    let all = traces(directory.path())?;
    let second: Vec<PathBuf> = all.iter().filter(|file| !first.contains(file)).cloned().collect();
    for file in &all {
        assert_eq!(fs::metadata(file)?.mode() & 0o7777, 0o600);
    }
    for files in [first, second] {
        let until_ns = known_until_ns(&files)?;
        let compared = agreement_of_files(mpi, &files, &job, Order::TruthOutside, Extent::Tail { until_ns })?;
        assert!(compared.calls > 100 && compared.before > 0, "{compared:?}");
    }
    Ok(())
}

fn says_what_it_needs(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::RING).ranks(2).args(["--forever"]).gates(&["1"]).own_name().spawn()?;
    job.wait_for_gate("1")?;
    let mut terminal = Terminal::start((120, 30), [FAST, &["--pid-of", job.called()]].concat())?;
    terminal.wait_for(&["mpiprobe ", "2/2 ranks", "LIVE"])?;
    job.open_gate("1")?;
    terminal.press("T")?;
    terminal.wait_for(&["Single calls are kept with --waits only"])?;
    terminal.press("q")?;
    terminal.left()?;
    job.stop()?;
    job.wait()?.success()?;
    Ok(())
}
