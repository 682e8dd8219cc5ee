//! The full-screen view on a terminal, of a job that runs.
//!
//! Invariant TERMINAL-BACK.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::service::NodeService;
use mpiprobe_tests::terminal::{FAST, Left, STARTER, Terminal};
use mpiprobe_tests::{Job, Language, Mpi, Requirement, program, requirement};
use rustix::process::Signal;

use crate::Test;

const RANKS: u32 = 4;
const ESCAPE: &str = "\u{1b}";

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, "the_view_shows_all_screens_at_any_size_and_gives_the_terminal_back", all_screens),
        trial(mpi, "the_view_by_the_service_has_stacks_and_the_last_calls", by_the_service),
        trial(mpi, "a_terminated_view_gives_the_terminal_back", terminated),
        trial(mpi, "the_view_stays_when_the_job_ends", job_ends),
        trial(mpi, "a_view_that_is_terminated_while_probes_are_removed_gives_the_terminal_back", detaching),
        trial(mpi, "the_view_shows_the_circle_of_a_deadlock", deadlock),
        trial(mpi, "the_view_shows_the_threads_of_a_rank", threads),
    ]
}

/// Of a view on a terminal.
pub(crate) fn trial(mpi: Mpi, name: &str, test: Test) -> Trial {
    let needs = [
        Requirement::Bpf,
        Requirement::Mpi(mpi),
        Requirement::Language(mpi, Language::C),
        Requirement::Command(STARTER),
    ];
    requirement::trial(format!("{}::{name}", mpi.id()), &needs, move || test(mpi))
}

/// Options that have a service observe.
pub(crate) fn by(service: &NodeService) -> [String; 4] {
    ["--engine".into(), "service".into(), "--socket".into(), service.socket().display().to_string()]
}

/// A job that runs until it is stopped, and a view of it that has seen all of its ranks.
fn viewed(mpi: Mpi, size: (u16, u16)) -> Result<(Job, Terminal), Failed> {
    viewed_by(mpi, size, &[])
}

/// The same by whom these options say.
fn viewed_by(mpi: Mpi, size: (u16, u16), by: &[&str]) -> Result<(Job, Terminal), Failed> {
    let mut job = Job::builder(mpi, program::RING).ranks(RANKS).args(["--forever"]).gates(&["1"]).own_name().spawn()?;
    job.wait_for_gate("1")?;
    let terminal = Terminal::start(size, [FAST, by, &["--traffic", "--pid-of", job.called()]].concat())?;
    terminal.wait_for(&["mpiprobe ", "4/4 ranks", "LIVE"])?;
    job.open_gate("1")?;
    terminal.wait_for(&["Functions (", "  MPI_"])?;
    Ok((job, terminal))
}

fn stop(mut job: Job) -> Result<(), Failed> {
    job.stop()?;
    job.wait()?.success()?;
    Ok(())
}

/// The terminal is as it was, and the profile stands on it.
fn expect_restored(left: &Left, code: i32) {
    assert_eq!(left.not_restored, Vec::<String>::new(), "{}", left.printed);
    assert_eq!(left.status.code(), Some(code), "{}", left.printed);
    for text in ["MPI_Allreduce", "MPI_Sendrecv", "Ranks\r\n"] {
        assert!(left.printed.contains(text), "no {text}: {}", left.printed);
    }
}

/// What is looked at on demand is looked at by the service, as long as somebody does.
fn by_the_service(mpi: Mpi) -> Result<(), Failed> {
    let service = NodeService::start("")?;
    let (job, mut terminal) = viewed_by(mpi, (120, 40), &by(&service).each_ref().map(String::as_str))?;
    for (key, texts) in [
        ("0", ["Stacks of ", " threads of 4 ranks; a look takes ", " main ", " MPI_"].as_slice()),
        ("8", &["Last ", " calls of rank ", "MPI_Sendrecv(sendcount=1024, sendtype=MPI_INT, "]),
        ("T", &["Single calls are kept with --waits only"]),
        ("1", &["Now (", "load balance"]),
        ("0", &["Stacks of ", " main "]),
    ] {
        terminal.press(key)?;
        terminal.wait_for(texts)?;
    }
    terminal.press("q")?;
    expect_restored(&terminal.left()?, 0);
    stop(job)
}

fn all_screens(mpi: Mpi) -> Result<(), Failed> {
    let (job, mut terminal) = viewed(mpi, (120, 40))?;
    for (key, texts) in [
        ("1", ["Now (", "messages/s", "load balance"].as_slice()),
        ("2", &["4 ranks, ", "by group", "in MPI_"]),
        ("3", &["Functions, all ranks", "MPI_Sendrecv", "MPI_Waitall", "MPI_Allreduce"]),
        ("4", &["Call sites, all ranks", "main", "MPI_Isend"]),
        ("5", &["bytes sent from row to column", " 0 → 0: "]),
        ("6", &["Communicators, all ranks", "world"]),
        ("7", &["requests that no call has said to be complete"]),
        ("8", &["Last ", " calls of rank ", "MPI_Sendrecv(sendcount=1024, sendtype=MPI_INT, "]),
        ("9", &["ranks have waited for longer than 100 ms"]),
        ("0", &["Stacks of ", " threads of 4 ranks; a look takes ", " main ", " MPI_"]),
        ("?", &["Keys", "Overview"]),
    ] {
        terminal.press(key)?;
        terminal.wait_for(texts)?;
    }
    terminal.press("?2")?;
    let ranks = |shown: &str| {
        let numbers = shown.lines().filter_map(|line| line.split_whitespace().next()?.parse::<u32>().ok());
        (0..RANKS).all(|rank| numbers.clone().any(|number| number == rank))
    };
    terminal.wait_until("all ranks", |shown| shown.contains("4 ranks, ") && ranks(shown))?;
    // A rank, its functions, one of them in all ranks, and how long it takes there.
    terminal.press("\r")?;
    terminal.wait_for(&["Rank 0, ", "MPI_Waitall"])?;
    terminal.press("\r")?;
    terminal.wait_for(&[" by rank, ", "all"])?;
    terminal.press("\r")?;
    terminal.wait_for(&["all ranks, ", "duration p99"])?;
    terminal.press(ESCAPE)?;
    terminal.wait_for(&[" by rank, "])?;

    // A small window, a large one: the keys are at the bottom of either.
    terminal.press("3")?;
    // A key that comes together with a resize may be read with the next one only.
    terminal.wait_for(&["Functions, all ranks"])?;
    for (columns, rows) in [(60, 15), (200, 60)] {
        terminal.resize(columns, rows)?;
        let is_filled = |shown: &str| {
            shown.lines().next().is_some_and(|line| line.starts_with("mpiprobe"))
                && shown.lines().nth(usize::from(rows) - 1).is_some_and(|line| line.contains("quit"))
        };
        terminal.wait_until("a screen of the new size", |shown| is_filled(shown) && shown.contains("Functions"))?;
    }

    terminal.press(" ")?;
    terminal.wait_for(&["FROZEN", "counting goes on"])?;
    terminal.press(" ")?;
    terminal.wait_until("a display that goes on", |shown| shown.contains("LIVE") && !shown.contains("FROZEN"))?;
    terminal.press("q")?;
    expect_restored(&terminal.left()?, 0);
    stop(job)
}

fn terminated(mpi: Mpi) -> Result<(), Failed> {
    let (job, terminal) = viewed(mpi, (80, 24))?;
    terminal.signal(Signal::TERM)?;
    expect_restored(&terminal.left()?, 0);
    stop(job)
}

fn job_ends(mpi: Mpi) -> Result<(), Failed> {
    let (job, mut terminal) = viewed(mpi, (80, 24))?;
    stop(job)?;
    terminal.wait_for(&["ENDED", "The job has ended. q: print the profile", "  MPI_"])?;
    terminal.press("q")?;
    expect_restored(&terminal.left()?, 0);
    Ok(())
}

/// As many as take some seconds to be removed.
const FEW: &str = "MPI_Send,MPI_Recv,MPI_Isend,MPI_Irecv,MPI_Waitall,MPI_Allreduce,MPI_Barrier,MPI_Bcast";

/// One by one, probes take long to be removed; the view stays meanwhile. If all of them have gone by the time of the signal, it is an end like
/// others.
fn detaching(mpi: Mpi) -> Result<(), Failed> {
    let job = Job::builder(mpi, program::RING).ranks(2).args(["--forever"]).gates(&["1"]).own_name();
    let mut job = job.own_library().spawn()?;
    job.wait_for_gate("1")?;
    let arguments = ["--attach", "perf-event", "--functions", FEW, "--pid-of", job.called()];
    let terminal = Terminal::start((80, 24), arguments)?;
    terminal.wait_for(&["mpiprobe ", "2/2 ranks", "LIVE"])?;
    job.open_gate("1")?;
    stop(job)?;
    terminal.wait_for(&["ENDED"])?;
    terminal.signal(Signal::TERM)?;
    let left = terminal.left()?;
    assert_eq!(left.not_restored, Vec::<String>::new(), "{}", left.printed);
    assert!([Some(0), Some(130)].contains(&left.status.code()), "{:?}: {}", left.status, left.printed);
    Ok(())
}

fn deadlock(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::CIRCLE).ranks(RANKS).gates(&["1"]).truth(true).own_name().spawn()?;
    job.wait_for_gate("1")?;
    let mut terminal = Terminal::start((100, 30), [FAST, &["--pid-of", job.called()]].concat())?;
    terminal.wait_for(&["4/4 ranks", "LIVE"])?;
    job.open_gate("1")?;
    terminal.press("9")?;
    terminal.wait_for(&["DEADLOCK: 0 → 1 → 2 → 3 → 0", "circle 1", "in MPI_Recv from 1 tag 7"])?;
    terminal.press("1")?;
    terminal.wait_for(&["Findings", "deadlock: 0 → 1 → 2 → 3 → 0"])?;
    job.kill_ranks()?;
    job.wait()?;
    terminal.wait_for(&["ENDED"])?;
    terminal.press("q")?;
    let left = terminal.left()?;
    assert_eq!(left.not_restored, Vec::<String>::new());
    Ok(())
}

/// Six threads that stand still behind their first message, and the one that has started them.
fn threads(mpi: Mpi) -> Result<(), Failed> {
    let builder = Job::builder(mpi, program::THREADS).ranks(2).args(["6", "5"]).truth(true).own_name();
    let mut job = builder.gates(&["start", "MPI_Send"]).spawn()?;
    job.wait_for_gate("start")?;
    let mut terminal = Terminal::start((100, 30), [FAST, &["--pid-of", job.called()]].concat())?;
    terminal.wait_for(&["2/2 ranks", "LIVE"])?;
    job.open_gate("start")?;
    terminal.press("2")?;
    terminal.wait_for(&["by group"])?;
    terminal.press("\r")?;
    terminal.wait_for(&["Rank 0, ", "7 threads"])?;
    // The first row, which has come while the cursor was on another one.
    terminal.press("g")?;
    terminal.press("\r")?;
    terminal.wait_for(&["Rank 0: 7 threads in MPI", "outside MPI"])?;
    job.open_gate("MPI_Send")?;
    terminal.wait_for(&["ENDED", "ended"])?;
    job.wait()?.success()?;
    terminal.press("q")?;
    assert_eq!(terminal.left()?.not_restored, Vec::<String>::new());
    Ok(())
}
