//! The course of a command whose MPI processes the kernel counts.

use std::{process::Command, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{held::Held, loaded::Loaded, ready::Ready};
use crate::{
    attach::AttachError,
    model::EndReason,
    present::say,
    recording::Recorder,
    session::{
        SessionError,
        course::regular,
        observation::Observation,
        run::{CANDIDATE_INTERVAL, CANDIDATE_PATIENCE, LAYOUT_INTERVAL, detach, notices_fd},
        watch::COMMAND,
        wrapped::{LaunchError, Relay, RunOptions, finish, made, shell_status, split},
    },
};

/// How long ranks may take to end after their launcher.
const PATIENCE: Duration = Duration::from_secs(2);

/// The command, from when it is let go to when it is put down in a profile.
pub(super) async fn launch(options: &RunOptions, ready: Ready) -> Result<u8, LaunchError> {
    let Ready { mut observation, .. } = ready;
    let file = made(options.profile.as_ref())?;
    let mut recorder = options.record.as_ref().map(Recorder::begin).transpose()?;
    // Before there is anybody to hand signals on to.
    let relay = Relay::new().map_err(LaunchError::Watch)?;
    let (program, arguments) = split(&options.command);
    let failed = |source| LaunchError::Start { program: program.display().to_string(), source };
    let mut command = Command::new(&program);
    command.args(arguments);
    let held = Held::new(command).map_err(failed)?;
    observation.begin_job(held.pid())?;
    let mut loaded =
        Loaded::new(held.pid()).map_err(|source| SessionError::from(AttachError::CodeEvents { source }))?;
    let pidfd = observation.ends.add_command(held.pid()).map_err(LaunchError::Watch)?;
    let mut job = held.run().map_err(failed)?;
    relay.to(pidfd.try_clone().map_err(LaunchError::Watch)?);

    follow(&mut observation, &mut loaded, recorder.as_mut(), options.interval).await?;
    let status = job.wait().map_err(LaunchError::Watch)?;
    wait_for_ranks(&mut observation, &mut loaded).await?;
    observation.handle_notices();
    loaded.conclude(&mut observation);
    let profile = Arc::new(observation.profile(Some(EndReason::TargetsEnded))?);
    if profile.ranks.is_empty() {
        say(
            "no process that the command has started has called MPI; those that others start for it (srun, ssh) only the \
             wrapper counts",
        );
    }
    let finished = finish(&profile, options, recorder, file);
    // The job's end is not put off by it any more.
    let _ = detach(observation).await;
    finished?;
    Ok(shell_status(status))
}

/// Until the command has ended.
async fn follow(
    observation: &mut Observation,
    loaded: &mut Loaded,
    mut recorder: Option<&mut Recorder>,
    every: Duration,
) -> Result<(), LaunchError> {
    let notices = notices_fd(observation).map_err(LaunchError::Watch)?;
    let mut ticks = regular(every);
    ticks.tick().await;
    let (mut last_news, mut last_look) = (Instant::now(), Instant::now());
    loop {
        let pace = if last_news.elapsed() < CANDIDATE_PATIENCE { CANDIDATE_INTERVAL.0 } else { CANDIDATE_INTERVAL.1 };
        tokio::select! {
            ended = observation.ends.ended() => {
                let ended = ended.map_err(LaunchError::Watch)?;
                // What they did last is told before their end.
                observation.handle_notices();
                observation.handle_ends(&ended);
                if ended.contains(&COMMAND) {
                    return Ok(());
                }
            }
            ready = notices.readable() => {
                ready.map_err(LaunchError::Watch)?.clear_ready();
                observation.handle_notices();
                last_news = Instant::now();
                if observation.take_flush() && let Some(recorder) = recorder.as_mut() {
                    recorder.add(&Arc::new(observation.profile(None)?));
                }
            }
            () = sleep_until(last_look + pace) => {
                // Who has just come is looked at as long as he is there.
                observation.handle_notices();
                loaded.look(observation);
                observation.look_at_candidates()?;
                last_look = Instant::now();
            }
            () = sleep(LAYOUT_INTERVAL), if observation.has_pending_layouts() => observation.retry_layouts(),
            _ = ticks.tick() => {
                observation.flush_log();
                if let Some(recorder) = recorder.as_mut().filter(|_| observation.was_anybody_there()) {
                    recorder.add(&Arc::new(observation.profile(None)?));
                }
            }
        }
    }
}

/// Launchers end after their ranks, unless they are killed.
async fn wait_for_ranks(observation: &mut Observation, loaded: &mut Loaded) -> Result<(), LaunchError> {
    let deadline = Instant::now() + PATIENCE;
    loaded.look(observation);
    observation.look_at_candidates()?;
    while observation.is_rank_left() {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(ended) = timeout(left, observation.ends.ended()).await else { return Ok(()) };
        observation.handle_notices();
        observation.handle_ends(&ended.map_err(LaunchError::Watch)?);
    }
    Ok(())
}
