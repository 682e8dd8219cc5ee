//! A command whose MPI processes the kernel counts.

use std::process::Command;

use mpiprobe_attach::AttachError;
use mpiprobe_model::EndReason;
use mpiprobe_report::present::say;

use super::{
    command::{Files, failure, finish, follow_to_end, shell_status, split},
    error::LaunchError,
    held::Held,
    options::RunOptions,
    ready::Ready,
    relay::Relay,
};
use crate::session::{
    error::SessionError, kernel_source::KernelSource, loaded::Loaded, sinks::Sinks, source::Source as _,
};

/// The command, from when it is let go to when it is put down in a profile.
pub(super) async fn launch(options: &RunOptions, ready: Ready) -> Result<u8, LaunchError> {
    let Ready { mut observation, .. } = ready;
    let files = Files::make(options)?;
    let mut sinks = Sinks::of_command(options.record.as_ref())?;
    // Before there is anybody to hand signals on to.
    let relay = Relay::new().map_err(LaunchError::Watch)?;
    let (program, arguments) = split(&options.command);
    let failed = |source| LaunchError::Start { program: program.display().to_string(), source };
    let mut command = Command::new(&program);
    command.args(arguments);
    let held = Held::new(command).map_err(failed)?;
    observation.begin_job(held.pid())?;
    let loaded = Loaded::new(held.pid()).map_err(|source| SessionError::from(AttachError::CodeEvents { source }))?;
    let pidfd = observation.ends().add_command(held.pid()).map_err(LaunchError::Watch)?;
    let mut source = KernelSource::of_command(observation, loaded)?;
    let mut job = held.run().map_err(failed)?;
    relay.to(pidfd.try_clone().map_err(LaunchError::Watch)?);

    let status = follow_to_end(&mut source, &mut job, &mut sinks, options.interval).await?;
    if let Some(why) = failure(status) {
        source.fail(why);
    }
    let profile = source.profile(Some(EndReason::TargetsEnded))?;
    if profile.ranks.is_empty() {
        say(
            "no process that the command has started has called MPI; those that others start for it (srun, ssh) only the \
             wrapper counts",
        );
    }
    let finished = finish(profile, options, sinks, files);
    // The job's end is not put off by it any more.
    source.end().await;
    finished?;
    Ok(shell_status(status))
}
