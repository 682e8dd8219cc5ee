//! `mpiprobe hang` says why, of jobs that hung before anybody looked: in its own words, and of the same programs that go on, nothing.
#![expect(clippy::indexing_slicing, reason = "answers in JSON, where what is missing is null")]

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{
    Job, Language, Mpi, Program,
    hang::{CASES, Case, Judgement, THAT_GO_ON, answer, causes, is_there, judge, lines, misplaced},
};
use serde_json::Value;

use crate::trial_with;

/// What compilers leave of the source; a program is compiled in one of these ways for one MPI, and in the other for the next.
const FORMS: [&[&str]; 2] = [&["-fno-optimize-sibling-calls"], &["-O0", "-g0"]];
/// Of these, one library says less.
const OF_OPEN_MPI: [&str; 4] = ["other-window", "large-send", "no-posts", "create-group"];
/// The ones that PyPI's libraries are tried with: by what the caller has, by requests and by windows, and from Python. `cargo xtask
/// soak hang` has all.
const OF_WHEELS: [&str; 4] = ["other-tag", "halo", "fence", "collectives"];

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let of_mpi = Mpi::ALL.iter().position(|one| *one == mpi);
    let is_its = |(number, case): &(usize, &Case)| match of_mpi {
        Some(_) if OF_OPEN_MPI.contains(&case.name) => mpi == Mpi::OpenMpi,
        Some(place) => number % Mpi::ALL.len() == place || case.language() == Language::Python,
        None => OF_WHEELS.contains(&case.name),
    };
    let cases = CASES.iter().enumerate().filter(is_its).map(|(number, case)| {
        let is_as_it_is = case.language() == Language::Python || case.told.is_empty();
        let form = FORMS[number / Mpi::ALL.len() % FORMS.len()];
        let program = if is_as_it_is { case.program } else { case.program.compiled(form) };
        let name = format!("why_ranks_hang_is_told_{}", case.title());
        trial_with(mpi, case.language(), &name, move || told(mpi, program, case))
    });
    let going = THAT_GO_ON.iter().enumerate().filter(|(number, _)| of_mpi == Some(number % Mpi::ALL.len()));
    let going = going.map(|(_, (program, argument, ranks))| {
        let name = format!("of_a_job_that_goes_on_no_cause_is_told_{}_{}", program.name, argument.replace('-', "_"));
        trial_with(mpi, Language::C, &name, move || none(mpi, *program, argument, *ranks))
    });
    cases.chain(going).collect()
}

fn told(mpi: Mpi, program: Program, case: &'static Case) -> Result<(), Failed> {
    let arguments = Some(case.name).filter(|name| !name.is_empty());
    let job = Job::builder(mpi, program).ranks(case.ranks()).args(arguments).own_name().spawn()?;
    let is_told = |answer: &Value| match case.told {
        [] => judge(case, &causes(answer)) == Judgement::Told,
        told => lines(case, answer).is_ok_and(|lines| lines == told),
    };
    let is_right =
        |answer: &Value| is_there(case, answer) && is_told(answer) && misplaced(case, program, answer).is_empty();
    let answer = answer(&job, &[], is_right)?;
    assert_eq!(misplaced(case, program, &answer), Vec::<String>::new(), "{answer}");
    if !case.told.is_empty() {
        assert_eq!(lines(case, &answer)?, case.told, "{answer}");
    }
    assert_eq!(judge(case, &causes(&answer)), Judgement::Told, "{answer}");
    assert!(is_there(case, &answer), "{answer}");
    Ok(())
}

/// At once when it goes on, and then time and again.
fn none(mpi: Mpi, program: Program, argument: &str, ranks: u32) -> Result<(), Failed> {
    const TIMES: u32 = 4;
    let job = Job::builder(mpi, program).ranks(ranks).args([argument]).own_name().spawn()?;
    let first = answer(&job, &[], |answer| answer["verdict"] == "goes_on")?;
    assert_eq!(first["verdict"], "goes_on", "{first}");
    for _ in 0..TIMES {
        let next = answer(&job, &[], |_| true)?;
        assert_eq!(next["causes"], Value::Array(Vec::new()), "{next}");
    }
    Ok(())
}
