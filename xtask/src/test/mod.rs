//! The whole test run, summed up in one line.

mod stage;
mod summary;
mod times;

use std::process::ExitCode;

use anyhow::Result;

use crate::command::{is_root, target_dir};
use crate::setup::{self, Mode, Purpose};
use stage::Stage;
use summary::Summary;
use times::Times;

/// Runs every stage, whatever became of the ones before; the last line on stdout is `N passed, N failed, N skipped`.
pub(crate) fn run(arguments: &[String], mode: Mode) -> Result<ExitCode> {
    setup::ensure(&[Purpose::Build, Purpose::Demo, Purpose::Test], mode)?;

    let (mut summary, mut times) = (Summary::default(), Times::default());
    let mut failed = Vec::new();
    for mut stage in stages(arguments) {
        if !stage.run(&mut summary, &mut times)? {
            failed.push(stage.name);
        }
    }

    print!("{times}");
    if !failed.is_empty() {
        eprintln!("failed: {}", failed.join(", "));
    }
    println!("{summary}");
    Ok(if failed.is_empty() && summary.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Tests attach probes, which needs root: for others, cargo builds as the user and starts the tests by sudo.
fn stages(arguments: &[String]) -> Vec<Stage> {
    let mut stages = vec![
        Stage::check("formatting", &["fmt", "--all", "--check"]),
        Stage::check("lints", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    ];
    if is_root() && arguments.is_empty() {
        // Built alone, mpiprobe has not all features of its libraries that their tests need, and all of them would be compiled once more.
        let binary = target_dir().join("debug/mpiprobe");
        stages.push(Stage::tests("tests", &["--workspace"]).with("MPIPROBE_BIN", &binary));
        return stages;
    }
    // The tests run the binary that users would run.
    stages.push(Stage::check("build", &["build", "-p", "mpiprobe"]));
    if is_root() {
        stages.push(Stage::tests("tests", &[&["--workspace"], &strs(arguments)[..]].concat()));
    } else if arguments.is_empty() {
        eprintln!("tests: those of mpiprobe-tests attach probes, which needs root, so they are run by sudo");
        stages.push(Stage::tests("tests", &["--workspace", "--exclude", "mpiprobe-tests"]));
        stages.push(Stage::tests("tests of mpiprobe-tests", &["-p", "mpiprobe-tests"]).by_root());
    } else {
        eprintln!("tests: some attach probes, which needs root, so those asked for are run by sudo");
        stages.push(Stage::tests("tests", &strs(arguments)).by_root());
    }
    stages
}

fn strs(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}
