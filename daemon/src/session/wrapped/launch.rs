//! Runs a command whose MPI processes count themselves, and makes a profile of it.

use std::{
    ffi::OsString,
    io::{self, Write as _},
    os::unix::{fs::MetadataExt as _, process::ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    sync::Arc,
    time::Duration,
};

use mpiprobe_functions::FunctionSet;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thiserror::Error;
use tokio::time::{Instant, sleep};

use super::{
    images::{Images, Keeping},
    profile::{Course, Form, ProfileTo, WriteError, made, profile, text, write_file},
    relay::Relay,
    stale::remove_stale,
};
use crate::{
    analyse::Expected,
    discover::{ProcRoot, ProcRootError, put_down_files_rights},
    files::{NewFile, with_callers_rights},
    model::{EndReason, Profile},
    observe::monotonic_ns,
    preload::{DirectoryError, LibraryError, Preload, RunDirectory, exporting, library},
    present::{OutputError, say},
    recording::{RecordTo, Recorder, RecordingError},
    session::{
        Returns, SessionError,
        course::regular,
        launched::{Unready, find_program},
        sites::Sites,
        watch::{COMMAND, EndWatch},
    },
};

/// How often new processes are looked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// How long ranks may take to end after their launcher.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often they are looked at then.
const END_INTERVAL: Duration = Duration::from_millis(5);

/// One run.
#[derive(Debug)]
pub struct RunOptions {
    /// Program and arguments.
    pub command: Vec<OsString>,
    pub functions: FunctionSet,
    /// Count all the time and without phases, whatever the job asks for by `MPI_Pcontrol`.
    pub ignore_pcontrol: bool,
    /// Whether the kernel, where it counts, sees when calls return.
    pub returns: Returns,
    /// Where the profile goes; `None`: standard error.
    pub profile: Option<ProfileTo>,
    /// Where the tables go, to stay there; `None`: nowhere in particular.
    pub tables: Option<PathBuf>,
    pub json: bool,
    /// Where what happens meanwhile is recorded.
    pub record: Option<RecordTo>,
    /// Time between two moments of that.
    pub interval: Duration,
}

/// Why a command was not run, or its profile not made.
#[derive(Debug, Error)]
pub enum LaunchError {
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error(transparent)]
    Proc(#[from] ProcRootError),
    #[error("cannot run {program}: {source}")]
    Start { program: String, source: io::Error },
    #[error("cannot watch the job: {0}")]
    Watch(#[source] io::Error),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error("nothing was run: cannot do without the rights of mpiprobe's file: {0}")]
    Rights(#[source] io::Error),
    #[error("nothing was run: {0}")]
    NoEbpf(#[source] Unready),
}

impl LaunchError {
    /// The exit status that shells give to commands that cannot be run.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Start { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Self::Start { .. } => 126,
            _ => 1,
        }
    }
}

/// The processes of the run.
#[derive(Debug)]
struct Account {
    images: Images,
    sites: Sites,
    /// Of the command, ns.
    started_ns: u64,
    /// Why the directory could not be looked through the last time.
    unseen: Option<String>,
}

impl Account {
    fn new(root: ProcRoot, started_ns: u64) -> Self {
        Self { images: Images::new(root), sites: Sites::default(), started_ns, unseen: None }
    }

    /// Takes in what is new in the directory; gives the slots. Whatever hinders that now may not do so the next time, and the job goes on.
    fn look(&mut self, directory: &Path) -> Vec<u32> {
        let taken = self.images.take_all(directory);
        self.unseen = taken.as_ref().err().map(ToString::to_string);
        taken.unwrap_or_default()
    }

    /// Everything up to now.
    fn profile(&mut self, end: Option<EndReason>) -> Profile {
        let missing = self.unseen.iter().cloned().collect();
        let (started_ns, is_last) = (Some(self.started_ns), end.is_some());
        let expected = if is_last { Expected::AllRanks } else { Expected::Some };
        let course = Course { started_ns, end, expected, names_sites: true, is_last, missing, ..Course::default() };
        profile(&mut self.images, &mut self.sites, course)
    }
}

/// Runs the command to its end; gives its exit status as a shell has it. Whatever counting lacks, the command runs.
pub async fn launch(options: &RunOptions) -> Result<u8, LaunchError> {
    put_down_files_rights().map_err(LaunchError::Rights)?;
    let file = made(options.profile.as_ref())?;
    let mut recorder = options.record.as_ref().map(Recorder::begin).transpose()?;
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

    let mut job = start(&options.command, prepared.as_ref().map(|(_, preload)| preload))?;
    let pidfd = ends.add_command(job.id()).map_err(LaunchError::Watch)?;
    relay.to(pidfd.try_clone().map_err(LaunchError::Watch)?);

    let Some((directory, _)) = prepared else {
        ends.ended().await.map_err(LaunchError::Watch)?;
        return Ok(shell_status(job.wait().map_err(LaunchError::Watch)?));
    };
    // Not before the job has been started, which is to have the limits of whoever started mpiprobe.
    raise_descriptor_limit();
    let mut account = Account::new(ProcRoot::system()?, started_ns);
    account.images.keep(if options.tables.is_some() { Keeping::Small } else { Keeping::Nothing });
    follow(&mut account, directory.path(), &ends, recorder.as_mut(), options.interval).await?;
    let status = job.wait().map_err(LaunchError::Watch)?;
    wait_for_ranks(&mut account, directory.path()).await;
    report(&mut account, options, recorder, file)?;
    Ok(shell_status(status))
}

/// The library, the directory, and the variables that tell the job of them.
fn prepare(options: &RunOptions) -> Result<(RunDirectory, Preload), LaunchError> {
    let library = library()?;
    remove_stale(&ProcRoot::system()?);
    let directory = options.tables.as_deref().map_or_else(RunDirectory::temporary, RunDirectory::chosen)?;
    let preload = Preload::new(&library, directory.path(), &options.functions, options.ignore_pcontrol);
    Ok((directory, preload))
}

fn start(command: &[OsString], preload: Option<&Preload>) -> Result<Child, LaunchError> {
    let command = preload.map_or_else(|| command.to_vec(), |preload| exporting(command, preload));
    let (program, arguments) = split(&command);
    let mut started = Command::new(&program);
    started.args(arguments).envs(preload.into_iter().flat_map(|preload| preload.variables.iter().cloned()));
    let spawned = with_callers_rights(|| started.spawn());
    spawned.map_err(|source| LaunchError::Start { program: program.display().to_string(), source })
}

/// A command's program, and its arguments.
pub(in crate::session) fn split(command: &[OsString]) -> (OsString, &[OsString]) {
    command.split_first().map_or((OsString::new(), &[][..]), |(program, rest)| (program.clone(), rest))
}

/// Takes in processes as they come, until the command has ended.
async fn follow(
    account: &mut Account,
    directory: &Path,
    ends: &EndWatch,
    mut recorder: Option<&mut Recorder>,
    every: Duration,
) -> Result<(), LaunchError> {
    // Each goes on whatever the other's pace is.
    let (mut ticks, mut looks) = (regular(every), regular(LOOK_INTERVAL));
    ticks.tick().await;
    loop {
        tokio::select! {
            ended = ends.ended() => {
                let ended = ended.map_err(LaunchError::Watch)?;
                account.images.note_ends(&ended);
                if ended.contains(&COMMAND) {
                    return Ok(());
                }
            }
            _ = looks.tick() => {
                for slot in account.look(directory) {
                    let Some(process) = account.images.process(slot) else { continue };
                    account.sites.add(slot, process);
                    if let Some(Err(error)) = process.pidfd().map(|pidfd| ends.add(pidfd, slot.into())) {
                        tracing::warn!("cannot watch for the end of a process: {error}");
                    }
                }
                if account.images.take_flush() && let Some(recorder) = recorder.as_mut() {
                    recorder.add(&Arc::new(account.profile(None)));
                }
            }
            _ = ticks.tick(), if recorder.is_some() => {
                if let Some(recorder) = recorder.as_mut().filter(|_| !account.images.is_empty()) {
                    recorder.add(&Arc::new(account.profile(None)));
                }
            }
        }
    }
}

/// Launchers end after their ranks, unless they are killed.
async fn wait_for_ranks(account: &mut Account, directory: &Path) {
    let start = Instant::now();
    account.look(directory);
    while account.images.is_anybody_left() && start.elapsed() < PATIENCE {
        sleep(END_INTERVAL).await;
        account.look(directory);
    }
    account.images.note_silent_ends();
    // What had to wait until files of others were closed.
    account.look(directory);
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

fn report(
    account: &mut Account,
    options: &RunOptions,
    recorder: Option<Recorder>,
    file: Option<NewFile>,
) -> Result<(), LaunchError> {
    if account.images.is_empty()
        && let Some(program) = options.command.iter().find_map(with_other_rights)
    {
        say(format_args!(
            "{} has set-user-ID or set-group-ID rights: the system does not preload anything into such programs, so nothing of it \
             was counted; the eBPF engine can observe it",
            program.display()
        ));
    } else if account.images.is_empty() {
        say(
            "no process of the command has called MPI through the wrapper: it does not use MPI, or MPI is linked statically \
             or found by the program itself (dlsym, or a module with a path of its own to MPI, as mpi4py of conda), or the \
             program has set-user-ID rights: such programs only the eBPF engine can observe",
        );
    }
    finish(&Arc::new(account.profile(Some(EndReason::TargetsEnded))), options, recorder, file)
}

/// The program that an argument names, if the dynamic linker does not trust the environment of who runs it.
fn with_other_rights(argument: &OsString) -> Option<PathBuf> {
    let program = find_program(argument)?;
    let found = program.metadata().ok()?;
    let changes_user = found.mode() & 0o4000 != 0 && found.uid() != rustix::process::getuid().as_raw();
    let changes_group = found.mode() & 0o2000 != 0 && found.gid() != rustix::process::getgid().as_raw();
    (changes_user || changes_group).then_some(program)
}

/// Gives the last profile to all who are to have it.
pub(in crate::session) fn finish(
    profile: &Arc<Profile>,
    options: &RunOptions,
    recorder: Option<Recorder>,
    file: Option<NewFile>,
) -> Result<(), LaunchError> {
    if let Some(mut recorder) = recorder {
        recorder.add(profile);
        recorder.end();
    }
    let text = text(profile, Form { json: options.json, filter: None })?;
    match file {
        Some(file) => write_file(&text, file)?,
        // Standard output is the job's.
        None => io::stderr().lock().write_all(text.as_bytes()).map_err(OutputError::from)?,
    }
    Ok(())
}

/// What a shell makes of it: of a command that was killed, 128 and the signal's number.
pub(in crate::session) fn shell_status(status: ExitStatus) -> u8 {
    let number = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(number).unwrap_or(u8::MAX)
}
