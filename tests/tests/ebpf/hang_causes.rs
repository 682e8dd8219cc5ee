//! `mpiprobe hang` says why, of jobs that hung before anybody looked: in its own words, and of the same program that goes on, nothing.
//!
//! Invariants NO-ARGUMENT-GUESSED, NO-WRONG-CAUSE.
#![expect(clippy::indexing_slicing, reason = "answers in JSON, where what is missing is null")]

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, Language, Mpi, Program, program};
use serde_json::Value;

use crate::{
    hang::{answer, doing},
    trial, trial_with,
};

/// A way to hang, and all that is said of why, line by line; `@name` stands for a place in the function of that name.
type Case = (&'static str, &'static [&'static str]);

const CASES: [Case; 20] = [
    (
        "ring",
        &[
            "Deadlock: 0 → 2 → 1 → 0",
            "Rank 0 in MPI_Recv from 2 tag 7 4 B @ring waits for 2",
            "Rank 2 in MPI_Recv from 1 tag 7 4 B @ring waits for 1",
            "Rank 1 in MPI_Recv from 0 tag 7 4 B @ring waits for 0",
        ],
    ),
    (
        "sends",
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Send to 1 tag 3 1.05 MB @sends waits for 1",
            "Rank 1 in MPI_Send to 0 tag 3 1.05 MB @sends waits for 0",
            "Rank 2 waits for them",
        ],
    ),
    (
        "other-tag",
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Recv from 1 tag 5 4 B @other_tag waits for 1 (tag differs: 6)",
            "Rank 1 in MPI_Ssend to 0 tag 6 4 B @other_tag waits for 0 (tag differs: 5)",
            "Rank 2 waits for them",
        ],
    ),
    (
        "other-communicator",
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Recv from 1 tag 5 4 B on twin @other_communicator waits for 1 (communicator differs: world)",
            "Rank 1 in MPI_Ssend to 0 tag 5 4 B @other_communicator waits for 0 (communicator differs: twin)",
            "Rank 2 waits for them",
        ],
    ),
    (
        "other-partner",
        &[
            "Deadlock: 0 → 1 → 2 → 0",
            "Rank 0 in MPI_Recv from 1 tag 5 4 B @other_partner waits for 1",
            "Rank 1 in MPI_Ssend to 2 tag 5 4 B @other_partner waits for 2",
            "Rank 2 in MPI_Barrier @other_partner waits for 0, 1 to call MPI_Barrier",
        ],
    ),
    (
        "different-collectives",
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Barrier @different_collectives waits for 1, 2 to call MPI_Barrier",
            "Rank 1 in MPI_Allreduce 4 B @different_collectives waits for 0 to call MPI_Allreduce",
            "Rank 2 waits for them",
        ],
    ),
    (
        "different-roots",
        &["Ranks 0-2 are in MPI_Bcast with different roots: Rank 0 means 0, Rank 1 means 1, Rank 2 means 2"],
    ),
    (
        "different-order",
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Barrier on twin @different_order waits for 1, 2 to call MPI_Barrier",
            "Rank 1 in MPI_Barrier @different_order waits for 0 to call MPI_Barrier",
            "Rank 2 waits for them",
        ],
    ),
    (
        "half",
        &[
            "Deadlock: 0 → 2 → 1 → 0",
            "Rank 0 in MPI_Barrier on half @half_of_them waits for 2 to call MPI_Barrier",
            "Rank 2 in MPI_Recv from 1 tag 8 4 B @half_of_them waits for 1",
            "Rank 1 in MPI_Allreduce 4 B @half_of_them waits for 0, 2 to call MPI_Allreduce",
        ],
    ),
    (
        "missing-root",
        &[
            "Deadlock: 0 → 2 → 0",
            "Rank 0 in MPI_Recv from 2 tag 9 4 B @missing_root waits for 2",
            "Rank 2 in MPI_Bcast root 0 4 B @missing_root waits for 0 to call MPI_Bcast",
            "Rank 1 waits for them",
        ],
    ),
    (
        "missing-sender",
        &[
            "Deadlock: 0 → 2 → 0",
            "Rank 0 in MPI_Reduce root 0 4 B @missing_sender waits for one of 1, 2 to call MPI_Reduce",
            "Rank 2 in MPI_Recv from 0 tag 9 4 B @missing_sender waits for 0",
            "Rank 1 waits for them",
        ],
    ),
    (
        "finalize",
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Recv from 1 tag 2 4 B @finalize waits for 1",
            "Rank 1 in MPI_Finalize @main waits for 0 to call MPI_Finalize",
            "Rank 2 waits for them",
        ],
    ),
    (
        "finalize-barrier",
        &[
            "Deadlock: 0 → 2 → 0",
            "Rank 0 in MPI_Finalize @main waits for 2 to call MPI_Finalize",
            "Rank 2 in MPI_Barrier @finalize_barrier waits for 0, 1 to call MPI_Barrier",
            "Rank 1 waits for them",
        ],
    ),
    (
        "split",
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Comm_split @split waits for 1 to call MPI_Comm_split",
            "Rank 1 in MPI_Recv from 0 tag 1 4 B @split waits for 0",
            "Rank 2 waits for them",
        ],
    ),
    (
        "window",
        &[
            "Deadlock: 0 → 2 → 0",
            "Rank 0 in MPI_Win_create @window waits for 2 to call MPI_Win_create",
            "Rank 2 in MPI_Recv from 0 tag 1 4 B @window waits for 0",
            "Rank 1 waits for them",
        ],
    ),
    ("stopped", &["Ranks 0,2 wait for rank 1, which is stopped by a signal"]),
    ("requests", &["Ranks 1,2 wait for rank 0, which is in MPI_Waitall for 2 requests @requests"]),
    (
        "never-started",
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Recv from 1 tag 1 4 B @never_started waits for 1",
            "Rank 1 in MPI_Barrier @never_started waits for 0 to call MPI_Barrier",
            "Rank 2 waits for them",
        ],
    ),
    (
        "probe",
        &[
            "Deadlock: 0 → 1 → 0",
            "Rank 0 in MPI_Probe from 1 tag 2 @probe waits for 1",
            "Rank 1 in MPI_Probe from 0 tag 2 @probe waits for 0",
            "Rank 2 waits for them",
        ],
    ),
    // Somebody may yet send to them: that is not certain.
    ("anybody", &[]),
];

/// Of programs in other languages: the circle, and of each rank its call and the function that makes it.
type InLanguage = (Language, Program, &'static [u64], [(&'static str, &'static str); 3]);

const IN_OTHER_LANGUAGES: [InLanguage; 4] = [
    (
        Language::Cxx,
        program::CAUSES_CXX,
        &[0, 2, 1],
        [
            ("MPI_Recv from 2 tag 7 32 B", "halo::Exchange<double>::from_left"),
            ("MPI_Recv from 0 tag 7 32 B", "halo::Exchange<double>::from_left"),
            ("MPI_Recv from 1 tag 7 32 B", "halo::Exchange<double>::from_left"),
        ],
    ),
    (
        Language::Fortran,
        program::CAUSES_F77,
        &[0, 1],
        [("MPI_Ssend to 1 tag 3 4 B", "step"), ("MPI_Recv from 0 tag 4 4 B", "step"), ("MPI_Barrier", "step")],
    ),
    (
        Language::Fortran,
        program::CAUSES_F08,
        &[0, 1],
        [
            ("MPI_Barrier", "solver::advance"),
            ("MPI_Allreduce 4 B", "solver::advance"),
            ("MPI_Barrier", "solver::advance"),
        ],
    ),
    (
        Language::Python,
        program::CAUSES_MPI4PY,
        &[0, 1],
        [("MPI_Barrier", "advance"), ("MPI_Recv from 0 tag 99 32 B", "Halo.receive"), ("MPI_Barrier", "advance")],
    ),
];

/// What compilers leave of the source; a case is compiled in one of these ways for one MPI, and in the other for the next.
const FORMS: [&[&str]; 2] = [&["-fno-optimize-sibling-calls"], &["-O0", "-g0"]];

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let of_mpi = usize::from(mpi == Mpi::Mpich);
    let cases = CASES.iter().enumerate().map(|(number, (case, expected))| {
        let form = FORMS[(number + of_mpi) % FORMS.len()];
        let name = format!("why_ranks_hang_is_told_{}", case.replace('-', "_"));
        trial_with(mpi, Language::C, &name, move || told(mpi, program::CAUSES.compiled(form), case, expected))
    });
    let languages = IN_OTHER_LANGUAGES.map(|(language, program, circle, calls)| {
        let name = format!("hung_ranks_are_found_and_nothing_wrong_is_told_in_{}", program.name);
        trial_with(mpi, language, &name, move || found(mpi, program, circle, &calls))
    });
    let others = vec![trial(mpi, Language::C, "of_a_job_that_goes_on_no_cause_is_told", none)];
    cases.chain(languages).chain(others).collect()
}

fn told(mpi: Mpi, program: Program, case: &'static str, expected: &[&str]) -> Result<(), Failed> {
    let job = Job::builder(mpi, program).ranks(3).args([case]).own_name().spawn()?;
    let source = program.source()?;
    let lines = |answer: &Value| -> Vec<String> {
        let causes = answer["causes"].as_array().into_iter().flatten();
        let lines = causes.flat_map(|cause| cause["text"].as_str().unwrap_or_default().lines());
        lines.map(|line| by_function(line.trim(), &source)).collect()
    };
    let is_as_expected = |answer: &Value| {
        let hangs = answer["verdict"] == "nobody_goes_on";
        hangs && lines(answer) == expected && (0..3).all(|rank| doing(answer, rank)["doing"] != Value::Null)
    };
    let answer = answer(&job, &[], is_as_expected)?;
    assert_eq!(lines(&answer), expected, "{answer}");
    assert_eq!(answer["verdict"], "nobody_goes_on", "{answer}");
    Ok(())
}

/// Each rank's call and place; and what the call was given, and why nobody goes on, are right as far as they are told.
fn found(mpi: Mpi, program: Program, circle: &[u64], calls: &[(&str, &str)]) -> Result<(), Failed> {
    let job = Job::builder(mpi, program).ranks(3).own_name().spawn()?;
    let plain = |function: &str| function.trim_end_matches("_c").to_owned();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let is_there = |answer: &Value| {
        let functions = (0..).zip(calls).all(|(rank, (call, _))| {
            let function = plain(&text(&doing(answer, rank)["function"]));
            call.split(' ').next() == Some(function.as_str())
        });
        functions && answer["verdict"] == "nobody_goes_on"
    };
    let answer = answer(&job, &[], is_there)?;
    assert!(is_there(&answer), "{answer}");
    for (rank, (call, function)) in (0..).zip(calls) {
        let thread = doing(&answer, rank);
        let site = text(&thread["site"]["text"]);
        let place = site.split(", inlined into ").next().unwrap_or_default();
        assert!(place.ends_with(&format!(" in {function}")), "{site}: {answer}");
        let told: Vec<String> = text(&thread["called"]).split(' ').map(plain).collect();
        assert!(told.iter().all(|word| call.split(' ').any(|known| known == word)), "{told:?}: {answer}");
    }
    for cause in answer["causes"].as_array().into_iter().flatten() {
        let ranks: Vec<u64> =
            cause["ranks"].as_array().into_iter().flatten().filter_map(|one| one["rank"].as_u64()).collect();
        match cause["kind"].as_str() {
            Some("circle") => assert_eq!(ranks, circle, "{answer}"),
            _ => assert!(ranks.iter().all(|rank| circle.contains(rank)), "{answer}"),
        }
    }
    Ok(())
}

/// The same with `@name` in place of `at causes.c:17 in name` or of `at name+0x1f in causes`; the line has to have the call in it.
fn by_function(line: &str, source: &str) -> String {
    let Some((before, after)) = line.split_once(" at ") else { return line.to_owned() };
    let (place, after) = match after.find(" waits for ") {
        Some(end) => after.split_at(end),
        None => (after, ""),
    };
    let function = if let Some((name, _)) = place.split_once("+0x") {
        name
    } else {
        let number = place.split([':', ' ']).nth(1).and_then(|number| number.parse::<usize>().ok());
        let code = number.and_then(|number| source.lines().nth(number.checked_sub(1)?)).unwrap_or_default();
        let called = before.split_whitespace().find(|word| word.starts_with("MPI_")).unwrap_or("no call");
        if !code.contains(&format!("{called}(")) {
            return line.to_owned();
        }
        place.rsplit(' ').next().unwrap_or_default()
    };
    format!("{before} @{function}{after}")
}

fn none(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::CAUSES).ranks(3).args(["none"]).truth(true).own_name().spawn()?;
    job.wait_for_calls("MPI_Bcast", 20)?;
    let answer = answer(&job, &[], |answer| answer["verdict"] == "goes_on")?;
    assert_eq!((&answer["verdict"], &answer["causes"]), (&"goes_on".into(), &Value::Array(Vec::new())), "{answer}");
    Ok(())
}
