//! What is read on a terminal: no wider than that, and, if it is long, through a pager.

use std::{
    env,
    io::{self, IsTerminal, Write as _},
    os::fd::AsFd,
    process::{Child, Command, Stdio},
    sync::{Arc, atomic::AtomicBool},
};

use mpiprobe_report::present::{Output, OutputError};
use rustix::termios::tcgetwinsize;
use signal_hook::{consts::SIGINT, flag};

/// What is tried if the user has not chosen.
const PAGER: &str = "less";
/// Ends at once if all fits on the screen, and leaves it there.
const LESS: (&str, &str) = ("LESS", "FRX");

/// Characters in a line of standard output; `None`: it is no terminal, or one that does not tell.
pub(super) fn width() -> Option<usize> {
    width_of(&io::stdout())
}

pub(super) fn width_of(terminal: &(impl IsTerminal + AsFd)) -> Option<usize> {
    let columns = terminal.is_terminal().then(|| tcgetwinsize(terminal).ok())??.ws_col;
    Some(usize::from(columns)).filter(|columns| *columns > 0)
}

/// Shows text: on a terminal by the user's pager (`PAGER`), if one is wanted, and else as it is.
pub(super) fn show(text: &str, pager_wanted: bool) -> Result<(), OutputError> {
    let is_wanted = pager_wanted && io::stdout().is_terminal();
    match is_wanted.then(|| start(env::var("PAGER").ok().as_deref())).flatten() {
        Some(pager) => page(pager, text),
        None => Output.text(text),
    }
}

/// `None`: there is none, or the user wants none.
fn start(chosen: Option<&str>) -> Option<Child> {
    let mut command = match chosen.map(str::trim) {
        Some("" | "cat") => return None,
        // It may have arguments, as a shell takes them.
        Some(chosen) => {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", chosen]);
            shell
        }
        None => Command::new(PAGER),
    };
    let (name, value) = LESS;
    if env::var_os(name).is_none() {
        command.env(name, value);
    }
    command.stdin(Stdio::piped()).spawn().ok()
}

fn page(mut pager: Child, text: &str) -> Result<(), OutputError> {
    // Ctrl-C is for the pager.
    let _ = flag::register(SIGINT, Arc::new(AtomicBool::new(false)));
    let written = pager.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(text.as_bytes()));
    let ended = pager.wait();
    match (written, ended) {
        // Whoever has ended it early has seen enough.
        (Err(error), _) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        (Err(error), _) | (Ok(()), Err(error)) => Err(error.into()),
        // A shell that has not found it.
        (Ok(()), Ok(status)) if status.code() == Some(127) => Output.text(text),
        (Ok(()), Ok(_)) => Ok(()),
    }
}
