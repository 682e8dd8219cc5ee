//! What running a command is, whoever counts in it.

use std::{
    ffi::OsString,
    io::{self, Write as _},
    os::unix::process::ExitStatusExt as _,
    process::{Child, ExitStatus},
    sync::Arc,
    time::Duration,
};

use mpiprobe_discover::{files::NewFile, printable};
use mpiprobe_model::Profile;
use mpiprobe_report::page::html::{HtmlError, has_page};
use mpiprobe_report::present::OutputError;
use mpiprobe_report::{Format, ReportOptions, Source as Run, Span, write};

use super::{error::LaunchError, options::RunOptions};
use crate::session::{
    event_loop::{Goal, follow},
    profile_file::{Form, WriteError, create_file, text, write_file},
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

/// Why a command has failed, in words; `None`: it has not.
pub(super) fn failure(status: ExitStatus) -> Option<String> {
    let end = match (status.code(), status.signal()) {
        (Some(0), _) => return None,
        (Some(code), _) => format!("status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".to_owned(),
    };
    Some(format!("the command has ended with {end}"))
}

/// What the last profile is written to: made before there is anything to write, so that what cannot be made is known then.
#[derive(Debug)]
pub(super) struct Files {
    profile: Option<NewFile>,
    report: Option<(NewFile, Format)>,
}

impl Files {
    pub(super) fn make(options: &RunOptions) -> Result<Self, LaunchError> {
        if matches!(options.report, Some((_, Format::Html))) && !has_page() {
            return Err(LaunchError::NoPage(HtmlError::NotBuilt));
        }
        let report = options.report.as_ref().map(|(to, format)| Ok::<_, LaunchError>((create_file(to)?, *format)));
        Ok(Self { profile: options.profile.as_ref().map(create_file).transpose()?, report: report.transpose()? })
    }
}

/// Gives the last profile to all who are to have it.
pub(super) fn finish(
    mut profile: Profile,
    options: &RunOptions,
    mut sinks: Sinks,
    files: Files,
) -> Result<(), LaunchError> {
    sinks.add_standstills(&mut profile);
    let profile = Arc::new(profile);
    sinks.close(&profile)?;
    let text = text(&profile, Form { json: options.json, filter: None, text: options.text })?;
    match files.profile {
        Some(file) => write_file(&text, file)?,
        // Standard output is the job's.
        None => io::stderr().lock().write_all(text.as_bytes()).map_err(OutputError::from)?,
    }
    if let Some((file, format)) = files.report {
        let (path, source) = (file.path().to_owned(), kept(&profile, options));
        let written = file.write_with(|to| write(&source, format, &ReportOptions::default(), to));
        written.map_err(|error| WriteError::new(&path, error))?;
    }
    Ok(())
}

/// The run with all its moments if these were recorded, else with the last one only.
fn kept(profile: &Profile, options: &RunOptions) -> Run {
    let recorded = options.record.as_ref().map(|record| Run::open(std::slice::from_ref(&record.path), Span::default()));
    match recorded {
        Some(Ok(source)) => source,
        _ => Run::of_profile(shown(&options.command), profile.clone()),
    }
}

/// A command as people know it.
fn shown(command: &[OsString]) -> String {
    command.iter().map(|word| printable(word.as_encoded_bytes())).collect::<Vec<_>>().join(" ")
}

/// What a shell makes of it: of a command that was killed, 128 and the signal's number.
pub(super) fn shell_status(status: ExitStatus) -> u8 {
    let number = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(number).unwrap_or(u8::MAX)
}
