//! The test programs that cargo has built, and running them: the long one beside all others.
//!
//! cargo runs one after the other, but trials of [`LONG`] leave processors idle while they wait.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use serde::Deserialize;

use super::Results;
use super::stage::pass_on;

/// Takes longer than all others together, and shows how far it is.
const LONG: &str = "ebpf";

/// A test program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// As cargo names its target.
    name: String,
    executable: PathBuf,
    /// The folder of its package, where it is run.
    package: PathBuf,
}

/// What of cargo's messages (`--message-format=json`) matters.
#[derive(Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

impl Program {
    /// From one line of cargo's; `None`: it is about something else.
    pub(super) fn of_message(line: &str) -> Option<Self> {
        let message: Message = serde_json::from_str(line).ok()?;
        let is_test = message.reason == "compiler-artifact" && message.profile.is_some_and(|profile| profile.test);
        let package = message.manifest_path?.parent()?.to_owned();
        is_test.then_some(Self { name: message.target?.name, executable: message.executable?, package })
    }

    fn command(&self, binary: &Path) -> Command {
        let mut command = Command::new(&self.executable);
        // What cargo would set, as far as anybody asks for it.
        command.current_dir(&self.package).env("CARGO_MANIFEST_DIR", &self.package).env("MPIPROBE_BIN", binary);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }
}

/// Runs all of them.
pub(super) fn run_all(programs: &[Program], binary: &Path) -> Result<Results> {
    let (long, others): (Vec<_>, Vec<_>) = programs.iter().partition(|program| program.name == LONG);
    let each = |programs: Vec<&Program>, run: fn(&Program, &Path, &mut Results) -> Result<bool>| {
        let mut results = Results::default();
        for program in programs {
            let before = results.summary.failed;
            let is_well = run(program, binary, &mut results);
            if !is_well.with_context(|| format!("running {}", program.executable.display()))? {
                results.note_failure(&program.name, before);
            }
        }
        Ok::<_, anyhow::Error>(results)
    };
    let (beside, long) = thread::scope(|scope| {
        let beside = scope.spawn(move || each(others, run_quietly));
        let long = each(long, run_in_the_open);
        (beside.join(), long)
    });
    let mut results = long?;
    results.merge(beside.map_err(|_| anyhow!("the test programs could not be run"))??);
    Ok(results)
}

/// What it prints is seen as it comes; whether it has succeeded.
fn run_in_the_open(program: &Program, binary: &Path, results: &mut Results) -> Result<bool> {
    eprintln!("     Running {}", program.executable.display());
    let mut child = program.command(binary).spawn()?;
    pass_on(child.stdout.take().context("no output")?, &mut io::stdout(), |line| results.add(line))?;
    Ok(child.wait()?.success())
}

/// What it prints is seen at its end, together.
fn run_quietly(program: &Program, binary: &Path, results: &mut Results) -> Result<bool> {
    let began = Instant::now();
    let output = program.command(binary).stderr(Stdio::piped()).output()?;
    String::from_utf8_lossy(&output.stdout).lines().for_each(|line| results.add(line));
    eprintln!("     Running {} ({:.1} s)", program.executable.display(), began.elapsed().as_secs_f64());
    io::stdout().lock().write_all(&output.stdout).context("the output cannot be passed on")?;
    io::stderr().lock().write_all(&output.stderr).context("the output cannot be passed on")?;
    Ok(output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_told_from_all_else() {
        let of = |line: &str| Program::of_message(line);
        let message = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"x","manifest_path":"/w/tests/Cargo.toml",
                    "target":{{"kind":["test"],"name":"ebpf"}},"profile":{{"opt_level":"1","test":{test}}},
                    "filenames":[],"executable":{executable},"fresh":true}}"#
            )
        };
        let program = Program {
            name: "ebpf".into(),
            executable: "/w/target/debug/deps/ebpf-1".into(),
            package: "/w/tests".into(),
        };
        assert_eq!(of(&message(true, r#""/w/target/debug/deps/ebpf-1""#)), Some(program));
        for other in [
            message(false, r#""/w/target/debug/mpiprobe""#),
            message(true, "null"),
            r#"{"reason":"build-finished","success":true}"#.into(),
            "warning: nothing".into(),
        ] {
            assert_eq!(of(&other), None, "{other}");
        }
    }

    #[test]
    fn a_program_that_dies_before_it_could_report_has_failed() {
        let program = |name: &str, executable: &str| Program {
            name: name.into(),
            executable: executable.into(),
            package: "/".into(),
        };
        let results =
            run_all(&[program("well", "/bin/true"), program("dies", "/bin/false")], Path::new("none")).unwrap();
        assert_eq!((results.failed, results.summary.failed), (vec!["dies".to_owned()], 1));
    }
}
