//! A command whose MPI processes count themselves.

use std::{
    ffi::{OsStr, OsString},
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    process::Command,
};

use mpiprobe_discover::{Caller, ProcRoot, Scanner, put_down_files_rights};
use mpiprobe_model::EndReason;
use mpiprobe_observe::monotonic_ns;
use mpiprobe_plan::ImplementationRecogniser;
use mpiprobe_report::present::say;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{
    command::{Files, failure, finish, follow_to_end, shell_status, split},
    error::LaunchError,
    held::Held,
    needed::{find_program, needed},
    options::RunOptions,
    relay::Relay,
};
use crate::{
    preload::{Preload, RunDirectory, exporting, library},
    session::{
        sinks::Sinks,
        source::Source as _,
        trace::Tracing,
        watch::EndWatch,
        wrapped::{command_tables::CommandTables, images::Keeping, stale::remove_stale, uncounted::Uncounted},
    },
};

/// Runs the command to its end; gives its exit status as a shell has it. Whatever counting lacks, the command runs.
pub(super) async fn launch(options: &RunOptions) -> Result<u8, LaunchError> {
    put_down_files_rights().map_err(LaunchError::Rights)?;
    let files = Files::make(options)?;
    let mut sinks = Sinks::of_command(options.record.as_ref())?;
    let tracing = options.trace.as_ref().map(Tracing::begin).transpose()?;
    let started_ns = monotonic_ns();
    let prepared = match prepare(options) {
        Ok(prepared) => Some(prepared),
        Err(error) => {
            say(format_args!("nothing of the command is counted: {error}"));
            None
        }
    };
    let ends = EndWatch::new().map_err(LaunchError::Watch)?;
    let relay = Relay::new().map_err(LaunchError::Watch)?;

    let (program, command) = command(&options.command, prepared.as_ref().map(|(_, preload)| preload));
    let failed = |source| LaunchError::Start { program: program.display().to_string(), source };
    let held = Held::new(command).map_err(failed)?;
    let pidfd = ends.add_command(held.pid()).map_err(LaunchError::Watch)?;
    let uncounted = match (ProcRoot::system(), Caller::current()) {
        (Ok(root), Ok(caller)) => Some(Uncounted::new(held.pid(), root, caller, has_mpi_and_other_rights)),
        _ => None,
    };
    let mut job = held.run().map_err(failed)?;
    relay.to(pidfd.try_clone().map_err(LaunchError::Watch)?);

    let Some((directory, _)) = prepared else {
        ends.ended().await.map_err(LaunchError::Watch)?;
        return Ok(shell_status(job.wait().map_err(LaunchError::Watch)?));
    };
    // Not before the job has been started, which is to have the limits of whoever started mpiprobe.
    raise_descriptor_limit();
    let keeping = if options.tables.is_some() { Keeping::Small } else { Keeping::Nothing };
    let mut source = CommandTables::new(directory, ProcRoot::system()?, ends, started_ns, keeping, tracing, uncounted);
    let status = follow_to_end(&mut source, &mut job, &mut sinks, options.interval).await?;
    source.settle();
    let mut profile = source.profile(Some(EndReason::TargetsEnded))?;
    if let Some(tracing) = source.take_trace() {
        if let Some(why) = failure(status) {
            tracing.fail(why);
        }
        tracing.finish().add_to(&mut profile);
    }
    if source.is_empty() {
        tell_why_nobody(&options.command);
    } else if source.has_uncounted() {
        say("the eBPF engine (--engine ebpf) can observe processes that do not count themselves");
    }
    finish(profile, options, sinks, files)?;
    source.end().await;
    Ok(shell_status(status))
}

/// The library, the directory, and the variables that tell the job of them.
fn prepare(options: &RunOptions) -> Result<(RunDirectory, Preload), LaunchError> {
    let library = library()?;
    remove_stale(&ProcRoot::system()?);
    let directory = options.tables.as_deref().map_or_else(RunDirectory::temporary, RunDirectory::chosen)?;
    let mut preload = Preload::new(&library, directory.path(), &options.functions, options.ignore_pcontrol);
    if options.trace.is_some() {
        preload.record_calls();
    }
    Ok((directory, preload))
}

/// What is to be executed, and its program.
fn command(command: &[OsString], preload: Option<&Preload>) -> (OsString, Command) {
    let command = preload.map_or_else(|| command.to_vec(), |preload| exporting(command, preload));
    let (program, arguments) = split(&command);
    let mut made = Command::new(&program);
    made.args(arguments).envs(preload.into_iter().flat_map(|preload| preload.variables.iter().cloned()));
    (program, made)
}

/// As many files as this user may have open: some of each process that runs.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| limit.maximum.is_none_or(|maximum| current < maximum))
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
    {
        tracing::debug!("the limit of open files stays as it is: {error}");
    }
}

/// Why no process may have been counted.
fn tell_why_nobody(command: &[OsString]) {
    if let Some(program) = command.iter().find_map(with_other_rights) {
        say(format_args!(
            "{} has set-user-ID or set-group-ID rights: the system does not preload anything into such programs, so nothing of it \
             was counted; the eBPF engine can observe it",
            program.display()
        ));
    } else {
        say(
            "no process of the command has called MPI through the wrapper: it does not use MPI, or MPI is linked statically \
             or found by the program itself (dlsym, or a module with a path of its own to MPI, as mpi4py of conda), or the \
             program has set-user-ID rights: such programs only the eBPF engine can observe",
        );
    }
}

/// Whether a program that is called by this name gets other rights than whoever executes it, and has MPI.
fn has_mpi_and_other_rights(name: &OsStr, scanner: &mut Scanner<ImplementationRecogniser>) -> bool {
    let name = name.to_owned();
    with_other_rights(&name).is_some() && !needed(&[name], scanner).libraries.is_empty()
}

/// The program that an argument names, if the dynamic linker does not trust the environment of who runs it.
fn with_other_rights(argument: &OsString) -> Option<PathBuf> {
    let program = find_program(argument)?;
    let found = program.metadata().ok()?;
    let changes_user = found.mode() & 0o4000 != 0 && found.uid() != rustix::process::getuid().as_raw();
    let changes_group = found.mode() & 0o2000 != 0 && found.gid() != rustix::process::getgid().as_raw();
    (changes_user || changes_group).then_some(program)
}
