//! The calls of a job that runs, on the timeline of the view, and written to a file by a key: the end of what the truth library has logged.
//!
//! Invariant WINDOW-TAIL.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::service::NodeService;
use mpiprobe_tests::terminal::{FAST, Terminal};
use mpiprobe_tests::traced::{Extent, Order, agreement_of};
use mpiprobe_tests::{Job, Mpi, program};
use mpiprobe_trace::store::TraceFiles;
use mpiprobe_trace::{Event, Span, Trace};

use crate::view::{by, trial};

const END: &str = "\u{1b}[F";
/// What was called so shortly before a file's last calls, ns, is not expected in it of all ranks: their rings are read one after the other.
const AT_ONCE_NS: u64 = 1_000_000;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, "the_view_follows_calls_and_writes_them_by_a_key", |mpi| follows_and_writes(mpi, &[])),
        trial(mpi, "the_view_by_the_service_follows_calls_and_writes_them_by_a_key", |mpi| {
            let service = NodeService::start("")?;
            follows_and_writes(mpi, &by(&service).each_ref().map(String::as_str))
        }),
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
fn known_until_ns(file: &Path) -> Result<u64, Failed> {
    let trace = TraceFiles::open(&[file])?;
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

/// `by`: options that say who observes.
fn follows_and_writes(mpi: Mpi, by: &[&str]) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let builder =
        Job::builder(mpi, program::RING).ranks(2).args(["--forever", "--pause-us", "2000"]).gates(&["1"]).log();
    let mut job = builder.own_name().spawn()?;
    job.wait_for_gate("1")?;
    let options = ["--traffic", "--waits", "--functions", "all", "--pid-of", job.called()];
    let mut terminal = Terminal::start_in(directory.path(), (120, 40), [FAST, by, &options].concat())?;
    terminal.wait_for(&["mpiprobe ", "2/2 ranks", "LIVE"])?;
    job.open_gate("1")?;
    terminal.press("T")?;
    terminal.wait_for(&[" calls of the last ", "FOLLOWING", " lane 0"])?;
    // Closer, until calls have their names in them, as far as they are long enough: how long they are is the machine's affair.
    terminal.press("++++++")?;
    terminal.wait_until("names in the lanes", |shown| shown.contains("FOLLOWING") && has_names(shown))?;
    job.wait_for_calls("MPI_Allreduce", 200)?;
    // To a call, which stands still.
    terminal.press("c")?;
    terminal.wait_for(&["STANDS STILL", ": MPI_", "entered +"])?;
    terminal.press(END)?;
    terminal.wait_for(&["FOLLOWING"])?;
    terminal.press("W")?;
    terminal.wait_for(&["written to mpiprobe-", ".trace: ", " calls of the last "])?;
    // What is frozen is written as it is seen, to another file.
    terminal.press(" ")?;
    terminal.wait_for(&["FROZEN", "STANDS STILL"])?;
    terminal.press("W")?;
    terminal.wait_until("a second file", |_| traces(directory.path()).is_ok_and(|found| found.len() == 2))?;
    terminal.wait_for(&["written to mpiprobe-"])?;
    terminal.press("1")?;
    terminal.wait_for(&["FROZEN", "load balance"])?;
    terminal.press("q")?;
    let left = terminal.left()?;
    assert_eq!(left.not_restored, Vec::<String>::new(), "{}", left.printed);
    job.stop()?;
    job.wait()?.success()?;
    for file in traces(directory.path())? {
        assert_eq!(fs::metadata(&file)?.mode() & 0o7777, 0o600);
        let until_ns = known_until_ns(&file)?;
        let compared = agreement_of(mpi, &file, &job, Order::TruthOutside, Extent::Tail { until_ns })?;
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
