//! `--traffic` of every MPI, in the languages that it has. What PyPI's have besides is in `cargo xtask soak wheels`.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::campaign::Lacks;
use mpiprobe_tests::campaign::traffic::{Attached, C, CXX, Case, F08, HPCC, MPI4PY, SCOPES, SESSION, THREADS, agrees};
use mpiprobe_tests::check::expect_all_completed;
use mpiprobe_tests::traffic::{
    graph_out_of_a_grid, messages_over_freed_communicators, requests_of_chosen_functions, started_by_another_launcher,
};
use mpiprobe_tests::{Job, Language, Mpi, Program, Requirement, program, requirement};

use crate::trial_with;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    use Attached::{AtStart, Both};
    let mut cases = vec![(C, Both)];
    if Mpi::ALL.contains(&mpi) {
        cases.extend([THREADS, SESSION, SCOPES].map(|case| (case, AtStart)));
        cases.extend([F08, CXX, MPI4PY].map(|case| (case, Both)));
    }
    if mpi == Mpi::OpenMpi {
        cases.push((HPCC, Both));
    }
    let trial = |(case, when): (Case, Attached)| {
        let suffix = match when {
            AtStart => "at_start",
            Attached::Late => "late",
            Both => "at_start_and_late",
        };
        let name = format!("traffic_of_{}_attached_{suffix}", case.name);
        // Invariants TRAFFIC-EXACT, ERRORS-JUDGED, HANDLES-RELEASED, SAME-IS-SAME.
        let test = move || agrees(mpi, case, when);
        match case.program.language {
            Language::Installed => installed_trial(mpi, case.program, &name, test),
            language => trial_with(mpi, language, &name, test),
        }
    };
    let mut tests: Vec<Trial> = cases.into_iter().map(trial).collect();
    tests.push(trial_with(mpi, Language::C, "requests_of_chosen_functions", move || {
        requests_of_chosen_functions(mpi, "ebpf")
    }));
    tests.push(trial_with(mpi, Language::C, "a_graph_out_of_a_grid", move || graph_out_of_a_grid(mpi, "ebpf")));
    if Mpi::ALL.contains(&mpi) {
        tests.push(trial_with(mpi, Language::C, "started_by_another_launcher", move || {
            started_by_another_launcher(mpi, "ebpf")
        }));
    }
    tests.push(trial_with(mpi, Language::C, "messages_over_freed_communicators", move || {
        messages_over_freed_communicators(mpi, "ebpf")
    }));
    tests.push(trial_with(mpi, Language::C, "run_understands_short_jobs", move || short_jobs(mpi)));
    tests.push(trial_with(mpi, Language::C, "run_sees_completions_of_requests_that_are_complete_at_once", move || {
        let mut job = Job::builder(mpi, program::AT_ONCE)
            .ranks(2)
            .args(["10", "100"])
            .run_by("ebpf", [] as [&str; 0])?
            .spawn()?;
        job.wait()?.success()?;
        let profile = job.profile()?;
        if profile.complete || Mpi::ALL.contains(&mpi) {
            assert!(profile.complete, "{:?}", profile.incomplete_because);
            return expect_all_completed(&profile, 10, 100);
        }
        // Intel MPI gives a handle to the next operation while that before is under way: what cannot be told apart is said.
        assert_eq!(profile.lost().into_keys().collect::<Vec<_>>(), ["requests_not_followed"]);
        Ok(())
    }));
    tests
}

/// Each is over at once, and all of it is known.
/// Invariant UNDERSTOOD-AT-ONCE.
fn short_jobs(mpi: Mpi) -> Result<(), Failed> {
    for _ in 0..3 {
        let mut job = Job::builder(mpi, program::WINDOW).ranks(2).run_by("ebpf", [] as [&str; 0])?.spawn()?;
        let said = job.wait()?.success()?.stderr;
        let profile = job.profile()?;
        let lacks = Lacks::of(&profile);
        let rows: Vec<_> = profile.ranks.iter().map(|row| (row.rank, row.pid, &row.state)).collect();
        let why = &profile.incomplete_because;
        assert!(profile.complete && lacks.is_nothing(), "{why:?}\n{lacks}{rows:?}\n{said}");
    }
    Ok(())
}

fn installed_trial(
    mpi: Mpi,
    program: Program,
    name: &str,
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let needs = [Requirement::Bpf, Requirement::Mpi(mpi), Requirement::Command(program.name)];
    requirement::trial(format!("{}::{name}", mpi.id()), &needs, test)
}
