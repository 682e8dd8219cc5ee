//! `mpiprobe hang`: every rank's MPI function and where the program calls it, of jobs that hung before anybody looked.
#![expect(clippy::indexing_slicing, reason = "answers in JSON, where what is missing is null")]

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::profiler::Copy;
use mpiprobe_tests::{Ended, Job, Language, Mpi, Profiler, Program, Requirement, program, requirement};
use serde_json::Value;

use crate::{call_sites::place, trial, trial_with};

/// Whoever owns nothing (`nobody`).
const USER: u32 = 65534;
/// How long a job may take until it hangs. By time and not by answers: without MPI in it yet, one comes at once.
const PATIENCE: Duration = Duration::from_mins(5);

/// What two ranks of the programs that hang are in.
pub(crate) const HUNG_IN: [(u64, &str); 2] = [(0, "MPI_Barrier"), (1, "MPI_Recv")];

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    // What compilers leave of the source, and how they make frames.
    let forms: [(&str, &[&str]); 4] = [
        ("with_lines", &[]),
        ("without_lines", &["-g0"]),
        ("without_names", &["-g0", "-s"]),
        ("with_frame_pointers", &["-fno-omit-frame-pointer", "-O0"]),
    ];
    let in_c = forms.into_iter().map(|(form, options)| {
        let name = format!("hung_ranks_are_found_where_they_are_{form}");
        trial_with(mpi, Language::C, &name, move || in_c(mpi, options))
    });
    let in_fortran = [program::HANG_MPIF, program::HANG_F08].map(|program| {
        let name = format!("hung_ranks_are_found_where_they_are_in_{}", program.name);
        trial_with(mpi, Language::Fortran, &name, move || in_fortran(mpi, program))
    });
    let needs = [Requirement::Root, Requirement::Mpi(mpi)];
    let own = format!("{}::hung_ranks_of_ones_own_are_found_without_rights", mpi.id());
    let others = vec![
        trial(mpi, Language::C, "ranks_that_are_not_in_mpi_are_said_to_do_what_they_do", outside),
        trial(mpi, Language::C, "threads_of_hung_ranks_are_told_apart", in_threads),
        trial(mpi, Language::C, "a_job_that_goes_on_does_not_hang", goes_on),
        requirement::trial(own, &needs, move || without_rights(mpi)),
    ];
    in_c.chain(in_fortran).chain(others).collect()
}

/// The answer, as soon as it is as expected; the last one if it never is.
pub(crate) fn answer(job: &Job, options: &[&str], expected: impl Fn(&Value) -> bool) -> Result<Value, Failed> {
    repeated(job, &[&["--json"], options].concat(), parsed, expected)
}

/// The same in words.
fn text(job: &Job, options: &[&str], expected: impl Fn(&str) -> bool) -> Result<String, Failed> {
    repeated(job, options, |ended| Ok(ended.stdout.join("\n")), |text: &String| expected(text))
}

fn repeated<T: Default>(
    job: &Job,
    options: &[&str],
    read: impl Fn(&Ended) -> Result<T, Failed>,
    expected: impl Fn(&T) -> bool,
) -> Result<T, Failed> {
    let mut last = T::default();
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let arguments = [&["hang", "--pid-of", job.called()], options].concat();
        let ended = Profiler::start(arguments)?.wait()?;
        // It may not have loaded MPI yet.
        if ended.status.code() == Some(1) {
            continue;
        }
        last = read(&ended)?;
        if expected(&last) {
            break;
        }
    }
    Ok(last)
}

fn parsed(ended: &Ended) -> Result<Value, Failed> {
    assert_eq!(ended.status.code(), Some(0), "{}", ended.printed());
    let mut answer: Value = serde_json::from_str(&ended.stdout.join("\n"))?;
    let jobs = answer.get_mut("jobs").and_then(Value::as_array_mut).ok_or("no jobs")?;
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    Ok(jobs.remove(0))
}

/// Whether nobody goes on, in these functions. In others before: ranks also wait for each other while MPI is initialised.
pub(crate) fn is_hung_in(answer: &Value, expected: &[(u64, &str)]) -> bool {
    answer["verdict"] == "nobody_goes_on" && functions(&calls(answer)) == expected
}

/// What threads are in, by rank.
fn functions(calls: &BTreeSet<(u64, String, String)>) -> Vec<(u64, &str)> {
    calls.iter().map(|(rank, function, _)| (*rank, function.as_str())).collect()
}

/// Function and place of each thread that is told of, by rank.
fn calls(answer: &Value) -> BTreeSet<(u64, String, String)> {
    let threads = answer["threads"].as_array().into_iter().flatten();
    let call = |thread: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let rank = thread["member"]["rank"].as_u64().unwrap_or(u64::MAX);
        (rank, text(&thread["function"]), text(&thread["site"]["text"]))
    };
    threads.map(call).collect()
}

fn in_c(mpi: Mpi, options: &'static [&'static str]) -> Result<(), Failed> {
    let program = program::HANG.compiled(options);
    let job = Job::builder(mpi, program).ranks(4).own_name().spawn()?;
    let expected = [(0, "MPI_Barrier"), (1, "MPI_Recv"), (2, "MPI_Barrier"), (3, "MPI_Barrier")];
    let answer = answer(&job, &[], |answer| is_hung_in(answer, &expected))?;
    let calls = calls(&answer);
    assert!(is_hung_in(&answer, &expected), "{answer}");
    let sites: BTreeSet<_> = calls.iter().map(|(_, _, site)| site.as_str()).collect();
    assert_eq!(sites.len(), 2, "{sites:?}");
    for (_, function, site) in &calls {
        let is_right = match options {
            ["-g0"] => site.starts_with("main+0x") && site.ends_with(job.called()),
            ["-g0", "-s"] => site.starts_with(&format!("{}+0x", job.called())),
            _ => *site == place(function),
        };
        assert!(is_right, "{function}: {site}");
    }
    assert_eq!(answer["stopped"], false);
    expect_documented(&answer);
    Ok(())
}

/// The fields of this answer are those that `docs/json.md` tells of.
fn expect_documented(answer: &Value) {
    const DOCS: &str = include_str!("../../../docs/json.md");
    let section = DOCS.split("## mpiprobe.hang/1").nth(1).unwrap_or_default();
    let named: BTreeSet<&str> = section.split('`').skip(1).step_by(2).map(|span| span.trim_end_matches("[]")).collect();
    let unknown: Vec<String> = keys(answer).into_iter().filter(|key| !named.contains(key.as_str())).collect();
    assert!(unknown.is_empty(), "docs/json.md does not explain {unknown:?}");
}

/// The names of all fields, wherever they are; not of those that say whose something is.
fn keys(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Object(fields) => {
            let own = fields.iter().filter(|(key, _)| !matches!(key.as_str(), "rank" | "pid"));
            own.flat_map(|(key, value)| keys(value).into_iter().chain([key.clone()])).collect()
        }
        Value::Array(items) => items.iter().flat_map(keys).collect(),
        _ => BTreeSet::new(),
    }
}

fn in_fortran(mpi: Mpi, program: Program) -> Result<(), Failed> {
    let job = Job::builder(mpi, program).ranks(2).own_name().spawn()?;
    let answer = answer(&job, &[], |answer| is_hung_in(answer, &HUNG_IN))?;
    let source = program.source()?;
    let expected = |rank: u64, function: &str| {
        let call = format!("call {function}(");
        let line = source.lines().position(|line| line.to_lowercase().contains(&call.to_lowercase()));
        let line = line.map_or(0, |line| line + 1);
        (rank, function.to_owned(), format!("{}.f90:{line} in {}, inlined into main", program.name, program.name))
    };
    assert_eq!(calls(&answer), [expected(0, "MPI_Barrier"), expected(1, "MPI_Recv")].into(), "{answer}");
    Ok(())
}

/// What a rank does, by its number.
pub(crate) fn doing(answer: &Value, rank: u64) -> Value {
    let mut threads = answer["threads"].as_array().into_iter().flatten();
    threads.find(|thread| thread["member"]["rank"] == rank).cloned().unwrap_or_default()
}

fn outside(mpi: Mpi) -> Result<(), Failed> {
    let job = Job::builder(mpi, program::OUTSIDE).ranks(5).own_name().spawn()?;
    let doing_all = [(0, "mpi"), (1, "computes"), (2, "system_call"), (3, "stopped"), (4, "mpi")];
    // While they are on their way there, ranks have gone on since the first look; and of one that polls and was hardly given a
    // processor meanwhile, that is not known.
    let has_hung = |answer: &Value, rank: u64| {
        let thread = doing(answer, rank);
        thread["function"] == "MPI_Allreduce" && thread["gone_on"] == false
    };
    let expected = |answer: &Value| {
        doing_all.into_iter().all(|(rank, what)| doing(answer, rank)["doing"] == what)
            && doing(answer, 2)["name"] == "read"
            && [0, 4].into_iter().all(|rank| has_hung(answer, rank))
            && answer["verdict"] == "some_are_outside"
    };
    let answer = answer(&job, &[], expected)?;
    assert!(expected(&answer), "{answer}");
    expect_documented(&answer);
    let place = |rank: u64| doing(&answer, rank)["place"]["text"].as_str().unwrap_or_default().to_owned();
    assert!(place(1).ends_with("in update") && place(2).ends_with("in load_mesh"), "{answer}");
    let file = doing(&answer, 2)["file"].clone();
    assert!(file.as_str().is_some_and(|file| file.starts_with("pipe:[")), "{answer}");
    // The same in words, which are others of a rank that has run whenever it was looked at.
    let expected = [
        "Ranks 0,4 in MPI_Allreduce 4 B at outside.c:",
        "Rank 1 not in MPI: computes",
        "Rank 2 not in MPI: read, fd ",
        "Rank 3 stopped",
    ];
    let is_told = |text: &str| expected.iter().all(|part| text.contains(part));
    let text = text(&job, &[], is_told)?;
    assert!(is_told(&text), "{text}");
    Ok(())
}

fn in_threads(mpi: Mpi) -> Result<(), Failed> {
    let job = Job::builder(mpi, program::IN_THREADS).ranks(2).own_name().spawn()?;
    let expected = [(0, "MPI_Probe"), (0, "MPI_Recv"), (1, "MPI_Barrier")];
    let answer = answer(&job, &[], |answer| is_hung_in(answer, &expected))?;
    assert!(is_hung_in(&answer, &expected), "{answer}");
    let within = ["probes", "receives", "main"];
    for ((_, _, site), function) in calls(&answer).iter().zip(within) {
        assert!(site.starts_with("in_threads.c:") && site.ends_with(&format!(" in {function}")), "{site}");
    }
    Ok(())
}

fn goes_on(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::RING).ranks(4).args(["--forever"]).truth(true).own_name().spawn()?;
    job.wait_for_calls("MPI_Send", 100)?;
    // A rank that gets no processor between two looks has not gone on.
    let answer = answer(&job, &[], |answer| answer["verdict"] == "goes_on")?;
    assert_eq!(answer["verdict"], "goes_on", "{answer}");
    job.stop()?;
    job.wait()?.success()?;
    Ok(())
}

/// By ptrace, where the system lets users trace their own.
fn without_rights(mpi: Mpi) -> Result<(), Failed> {
    let copy = Copy::new()?;
    let job = Job::builder(mpi, program::HANG).ranks(2).own_name().user(USER).spawn()?;
    let mut last = Value::Null;
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let ended = Profiler::spawn(copy.command(USER, ["hang", "--json", "--pid-of", job.called()]))?.wait()?;
        // It may not have loaded MPI yet.
        if ended.status.code() == Some(1) {
            continue;
        }
        // Where it may not, that is said.
        if std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").is_ok_and(|scope| scope.trim() != "0") {
            assert!(ended.printed().contains("ptrace_scope"), "{}", ended.printed());
            return Ok(());
        }
        assert!(ended.stderr.join("\n").contains("each thread is stopped for a moment"), "{}", ended.printed());
        last = parsed(&ended)?;
        if is_hung_in(&last, &HUNG_IN) {
            break;
        }
    }
    assert!(is_hung_in(&last, &HUNG_IN), "{last}");
    assert_eq!(last["stopped"], true, "{last}");
    Ok(())
}
