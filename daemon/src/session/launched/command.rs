//! What running a command is, whoever counts in it.

use std::{
    ffi::OsString,
    io::{self, Write as _},
    os::unix::process::ExitStatusExt as _,
    process::{Child, ExitStatus},
    sync::Arc,
    time::Duration,
};

use mpiprobe_discover::files::NewFile;
use mpiprobe_model::Profile;
use mpiprobe_present::OutputError;

use super::{error::LaunchError, options::RunOptions};
use crate::session::{
    event_loop::{Goal, follow},
    profile_file::{Form, text, write_file},
    sinks::Sinks,
    source::Source,
};

/// How long ranks may take to end after their launcher, which ends after them unless it is killed.
const PATIENCE: Duration = Duration::from_secs(2);

/// A command's program, and its arguments.
pub(super) fn split(command: &[OsString]) -> (OsString, &[OsString]) {
    command.split_first().map_or((OsString::new(), &[][..]), |(program, rest)| (program.clone(), rest))
}

/// Follows a command that runs to its end, and its ranks to theirs.
pub(super) async fn follow_to_end(
    source: &mut impl Source,
    job: &mut Child,
    sinks: &mut Sinks,
    every: Duration,
) -> Result<ExitStatus, LaunchError> {
    follow(source, sinks, every, Goal::CommandEnded).await?;
    let status = job.wait().map_err(LaunchError::Watch)?;
    source.look()?;
    // The last profile is all that is still to come.
    follow(source, &mut Sinks::default(), every, Goal::RanksEnded { patience: PATIENCE }).await?;
    Ok(status)
}

/// Gives the last profile to all who are to have it.
pub(super) fn finish(
    profile: &Arc<Profile>,
    options: &RunOptions,
    sinks: Sinks,
    file: Option<NewFile>,
) -> Result<(), LaunchError> {
    sinks.close(profile)?;
    let text = text(profile, Form { json: options.json, filter: None })?;
    match file {
        Some(file) => write_file(&text, file)?,
        // Standard output is the job's.
        None => io::stderr().lock().write_all(text.as_bytes()).map_err(OutputError::from)?,
    }
    Ok(())
}

/// What a shell makes of it: of a command that was killed, 128 and the signal's number.
pub(super) fn shell_status(status: ExitStatus) -> u8 {
    let number = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(number).unwrap_or(u8::MAX)
}
