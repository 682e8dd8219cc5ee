//! The whole test run, summed up in one line.

mod failures;
mod programs;
mod stage;
mod summary;
mod times;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;

use crate::command::{is_root, target_dir};
use crate::setup::{self, Later, Mode, Purpose};
use failures::Failures;
use programs::run_all;
use stage::Stage;
use summary::Summary;
use times::Times;

/// What cargo says of each program it has built is JSON, on standard output.
const BUILD: [&str; 4] = ["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"];

/// Runs every stage, whatever became of the ones before; the last line on stdout is `N passed, N failed, N skipped`.
pub(crate) fn run(arguments: &[String], mode: Mode) -> Result<ExitCode> {
    let later = setup::ensure_for_now(&[Purpose::Build, Purpose::Demo, Purpose::Test], mode)?;

    let mut results = Results::default();
    Stage::check("formatting", &["fmt", "--all", "--check"]).run(&mut results)?;
    if is_root() && arguments.is_empty() {
        all_tests(&mut results, later)?;
    } else {
        Stage::check("lints", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).run(&mut results)?;
        // The tests run the binary that users would run.
        Stage::check("build", &["build", "-p", "mpiprobe"]).run(&mut results)?;
        later.wait()?;
        for mut tests in some_tests(arguments) {
            tests.run(&mut results)?;
        }
    }
    Ok(results.told())
}

/// Builds them all at once: built alone, mpiprobe has not all features of its libraries that their tests need, and all of them would be
/// compiled once more.
fn all_tests(results: &mut Results, later: Later) -> Result<()> {
    // What is compiled is looked through by clippy in passing: of itself, it would have all libraries checked first.
    let mut programs = Stage::check("build and lints", &BUILD).linted().build(results)?;
    let is_linted = programs.is_some();
    if !is_linted {
        programs = Stage::check("build", &BUILD).build(results)?;
    }
    later.wait()?;
    if let Some(programs) = programs {
        let began = Instant::now();
        results.merge(run_all(&programs, &target_dir().join("debug/mpiprobe"))?);
        eprintln!("tests: {} s", began.elapsed().as_secs());
    }
    let documented = Stage::tests("tests in documentation", &["--workspace", "--doc"]);
    if is_linted { documented.linted() } else { documented }.run(results)?;
    Ok(())
}

/// Tests attach probes, which needs root: for others, cargo builds as the user and starts the tests by sudo.
fn some_tests(arguments: &[String]) -> Vec<Stage> {
    if is_root() {
        return vec![Stage::tests("tests", &[&["--workspace"], &strs(arguments)[..]].concat())];
    }
    if arguments.is_empty() {
        eprintln!("tests: those of mpiprobe-tests attach probes, which needs root, so they are run by sudo");
        return vec![
            Stage::tests("tests", &["--workspace", "--exclude", "mpiprobe-tests"]),
            Stage::tests("tests of mpiprobe-tests", &["-p", "mpiprobe-tests"]).by_root(),
        ];
    }
    eprintln!("tests: some attach probes, which needs root, so those asked for are run by sudo");
    vec![Stage::tests("tests", &strs(arguments)).by_root()]
}

/// What has become of stages and test programs.
#[derive(Debug, Default)]
struct Results {
    summary: Summary,
    times: Times,
    failures: Failures,
    failed: Vec<String>,
}

impl Results {
    /// Takes a line of what tests print.
    fn add(&mut self, line: &str) {
        self.summary.add(line);
        self.times.add(line);
        self.failures.add(line);
    }

    /// Takes note of something that was not well. `failed_before`: tests that had failed before it.
    fn note_failure(&mut self, name: &str, failed_before: u64) {
        self.failed.push(name.to_owned());
        if self.summary.failed == failed_before {
            // What failed was no test: the check, the build, or a test program that died before it could report.
            self.summary.failed += 1;
        }
    }

    fn merge(&mut self, other: Self) {
        self.summary.merge(other.summary);
        self.times.merge(other.times);
        self.failures.merge(other.failures);
        self.failed.extend(other.failed);
    }

    /// Says it.
    fn told(self) -> ExitCode {
        let Self { summary, times, failures, failed } = self;
        print!("{times}{failures}");
        if !failed.is_empty() {
            eprintln!("failed: {}", failed.join(", "));
        }
        println!("{summary}");
        if failed.is_empty() && summary.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn strs(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}
