//! `mpiprobe hang`: every rank's MPI function and where the program calls it, of jobs that hung before anybody looked.
#![expect(clippy::indexing_slicing, reason = "answers in JSON, where what is missing is null")]

use std::{collections::BTreeSet, time::Instant};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{
    Job, Language, Mpi, Profiler, Requirement,
    hang::{PATIENCE, answer, doing, parsed, text},
    profiler::Copy,
    program, requirement,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{call_sites::place, nodes::parent, trial, trial_with};

/// Whoever owns nothing (`nobody`).
const USER: u32 = 65534;
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
    let needs = [Requirement::Root, Requirement::Mpi(mpi)];
    let own = format!("{}::hung_ranks_of_ones_own_are_found_without_rights", mpi.id());
    let mut others = vec![
        trial(mpi, Language::C, "ranks_that_are_not_in_mpi_are_said_to_do_what_they_do", outside),
        trial(mpi, Language::C, "a_job_that_goes_on_does_not_hang", goes_on),
        trial(mpi, Language::C, "hung_ranks_that_are_observed_are_found_where_they_are", while_observed),
        requirement::trial(own, &needs, move || without_rights(mpi)),
    ];
    if mpi == Mpi::Mpich {
        // Ranks of Open MPI wait for who has started them for some seconds, and then end without.
        others.push(trial(mpi, Language::C, "where_no_call_is_missing_that_is_said", nobody_is_missing));
    }
    in_c.chain(others).collect()
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

/// Return probes have put an address of their own in the place of those that lead to the program.
fn while_observed(mpi: Mpi) -> Result<(), Failed> {
    let job = Job::builder(mpi, program::HANG).ranks(4).own_name().run_by("ebpf", [] as [&str; 0])?.spawn()?;
    let expected = [(0, "MPI_Barrier"), (1, "MPI_Recv"), (2, "MPI_Barrier"), (3, "MPI_Barrier")];
    let answer = answer(&job, &[], |answer| is_hung_in(answer, &expected))?;
    assert!(is_hung_in(&answer, &expected), "{answer}");
    let calls = calls(&answer);
    assert!(calls.iter().all(|(_, function, site)| *site == place(function)), "{calls:?}");
    Ok(())
}

/// The fields of this answer are those that `docs/json.md` tells of.
pub(crate) fn expect_documented(answer: &Value) {
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

fn outside(mpi: Mpi) -> Result<(), Failed> {
    let job = Job::builder(mpi, program::OUTSIDE).ranks(5).own_name().spawn()?;
    let doing_all = [(0, "mpi"), (1, "computes"), (2, "system_call"), (3, "stopped"), (4, "mpi")];
    // While they are on their way there, ranks have gone on since the first look; and of one that polls and was hardly given a
    // processor meanwhile, that is not known.
    let has_hung = |answer: &Value, rank: u32| {
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
    let place = |rank: u32| doing(&answer, rank)["place"]["text"].as_str().unwrap_or_default().to_owned();
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

/// Who has started them is stopped, and has a part in the end of MPI.
fn nobody_is_missing(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::RING).ranks(2).args(["3"]).gates(&["3"]).own_name().spawn()?;
    job.wait_for_gate("3")?;
    let pid = |pid: u32| Pid::from_raw(pid.cast_signed()).ok_or("no such process");
    let starter = parent(pid(job.ranks()?[&0])?)?;
    kill_process(starter, Signal::STOP)?;
    job.open_gate("3")?;
    let is_told = |answer: &Value| answer["causes"][0]["kind"] == "all_are_there";
    let answer = answer(&job, &[], is_told)?;
    assert!(is_told(&answer), "{answer}");
    assert_eq!(answer["causes"][0]["ranks"], serde_json::json!([{ "rank": 0 }, { "rank": 1 }]), "{answer}");
    let text = text(&job, &[], |_| true)?;
    let said = "All 2 ranks are in MPI_Finalize, and none has returned: nobody is missing there.";
    assert!(text.starts_with(said), "{text}");
    kill_process(starter, Signal::CONT)?;
    job.wait()?.success()?;
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
