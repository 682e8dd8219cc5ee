//! A process whose program is a file that does not answer: nobody who looks at it waits for ever, and it is said.
//!
//! Invariant NOBODY-WAITS.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::silent::SilentProgram;
use mpiprobe_tests::{Profiler, Requirement, requirement};
use rustix::process::Signal;

pub(crate) fn tests() -> Vec<Trial> {
    let trial = |name: &str, test: fn() -> Result<(), Failed>| {
        requirement::trial(name, &[Requirement::Root, Requirement::Bpf, Requirement::Fuse], test)
    };
    vec![trial("a_file_that_does_not_answer_keeps_nobody_waiting", looked_at)]
}

/// Without the ends of lines.
fn words(lines: &[String]) -> String {
    lines.iter().flat_map(|line| line.split_whitespace()).collect::<Vec<_>>().join(" ")
}

fn looked_at() -> Result<(), Failed> {
    let silent = SilentProgram::start()?;
    let told = format!("of user root could not be looked at: /{} does not answer", silent.name());

    let listed = Profiler::start(["ps"])?.wait()?;
    assert!(listed.status.success() && listed.stdout.join("\n").contains(&told), "{}", listed.printed());

    let examined = Profiler::start(["doctor"])?.wait()?;
    assert!(words(&examined.stdout).contains(&told), "{}", examined.printed());
    let examined = Profiler::start(["doctor", &silent.pid().to_string()])?.wait()?;
    assert!(words(&examined.stdout).contains("was not looked at"), "{}", examined.printed());

    let refused = Profiler::start(["--pid-of", silent.name()])?.wait()?;
    assert_eq!(refused.status.code(), Some(1), "{}", refused.printed());
    assert!(
        refused.stderr.join("\n").contains("was not looked at: its file system has not answered before"),
        "{}",
        refused.printed()
    );

    for signal in [Signal::INT, Signal::TERM] {
        let waiting = Profiler::waiting(["--pid-of", silent.name()])?;
        waiting.signal(signal)?;
        let ended = waiting.wait()?;
        assert_eq!(ended.status.code(), Some(1), "{}", ended.printed());
    }
    Ok(())
}
