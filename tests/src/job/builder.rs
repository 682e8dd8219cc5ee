//! How a job is described and started.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::{Job, JobError, file_error, files};
use crate::compile;
use crate::mpi::Mpi;
use crate::profiler::{self, ProfilerError};
use crate::program::{Language, Program};
use crate::python;
use crate::truth;

/// Names the job's directory; inherited by all its processes, which are found by it.
pub(super) const DIRECTORY_VARIABLE: &str = "MPIPROBE_TRUTH_DIR";
const SEMANTICS_VARIABLE: &str = "MPIPROBE_TRUTH_MEANING";
const GATES_VARIABLE: &str = "MPIPROBE_TRUTH_GATES";

/// How the program is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Ordinarily,
    WithMpichInIt,
    WithMusl,
}

/// What the preloaded library does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truth {
    Off,
    Counts,
    Meaning,
}

/// Which file of the MPI library is mapped.
#[derive(Clone, Debug)]
enum Library {
    Installed,
    Own,
    At(PathBuf),
}

#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own, made by a method of its name")]
pub struct JobBuilder {
    mpi: Mpi,
    program: Program,
    ranks: u32,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    gates: Vec<String>,
    truth: Truth,
    deadline: Duration,
    called: Option<String>,
    library: Library,
    made: Made,
    gates_are_linked_in: bool,
    user: Option<u32>,
    under: Vec<OsString>,
    preload: Option<PathBuf>,
    through_a_shell: bool,
    hides_program: bool,
    as_it_is: bool,
    within: Vec<OsString>,
    around: Vec<OsString>,
    srun: Vec<OsString>,
    hosts: Option<String>,
    alone: bool,
    spawns: bool,
    set_user: Option<u32>,
    launched_by: Option<Mpi>,
}

impl JobBuilder {
    pub(super) fn new(mpi: Mpi, program: Program) -> Self {
        Self {
            mpi,
            program,
            ranks: 4,
            arguments: Vec::new(),
            environment: Vec::new(),
            gates: Vec::new(),
            truth: Truth::Off,
            deadline: Duration::from_mins(5),
            called: None,
            library: Library::Installed,
            made: Made::Ordinarily,
            gates_are_linked_in: false,
            user: None,
            under: Vec::new(),
            preload: None,
            through_a_shell: false,
            hides_program: false,
            as_it_is: false,
            within: Vec::new(),
            around: Vec::new(),
            srun: Vec::new(),
            hosts: None,
            alone: false,
            spawns: false,
            set_user: None,
            launched_by: None,
        }
    }

    /// Default 4.
    #[must_use]
    pub fn ranks(mut self, ranks: u32) -> Self {
        self.ranks = ranks;
        self
    }

    /// Arguments of the program.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable for the launcher, hence for the ranks.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Gates that hold the ranks until [`Job::open_gate`]: `"start"` (before main, of each new program image) or the numbers in
    /// the program's source; with [`truth`](Self::truth), also a function's C name, for the moment after a call of it. All others
    /// stand open. Gates before main and in the source work without [`truth`](Self::truth), too.
    #[must_use]
    pub fn gates(mut self, gates: &[&str]) -> Self {
        self.gates = gates.iter().map(ToString::to_string).collect();
        self
    }

    /// Preload the library that counts calls. Default: off.
    #[must_use]
    pub fn truth(mut self, on: bool) -> Self {
        self.truth = if on { Truth::Counts } else { Truth::Off };
        self
    }

    /// Preload the library that counts calls, and let it record what they mean: bytes, peers, communicators. It asks MPI, by calls
    /// that an observer sees as the program's ([`asked`](crate::truth::Calls::asked) says how many): local queries, which are
    /// not observed by default.
    #[must_use]
    pub fn semantics(mut self) -> Self {
        self.truth = Truth::Meaning;
        self
    }

    /// Like [`semantics`](Self::semantics), but blocking receives and reads whose status the program ignores are passed on as they are. An
    /// observer of the library sees `MPI_STATUS_IGNORE` then, where it otherwise sees a status of the truth library's; in turn the
    /// truth library counts what was posted as received, from [`Peer::Any`](crate::truth::Peer::Any) if the source is a wildcard.
    #[must_use]
    pub fn semantics_with_ignored_statuses(self) -> Self {
        self.semantics().env("MPIPROBE_TRUTH_KEEPS_IGNORED", "1")
    }

    /// Like [`semantics`](Self::semantics), and every call is logged with what it was given and has done:
    /// [`Image::log`](crate::truth::Image::log).
    #[must_use]
    pub fn log(self) -> Self {
        self.semantics().env("MPIPROBE_TRUTH_LOG", "1")
    }

    /// How long each wait of the job may take. Default five minutes, which is far more than anything takes on a machine that has much else to do.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Its ranks start others (`MPI_Comm_spawn`).
    #[must_use]
    pub fn spawns(mut self) -> Self {
        self.spawns = true;
        self
    }

    /// Run the program under a name that no other process has: [`Job::called`].
    #[must_use]
    pub fn own_name(self) -> Self {
        let name = files::unique_name(self.program.name);
        self.called(name)
    }

    /// Run the program under this name.
    #[must_use]
    pub fn called(mut self, name: impl Into<String>) -> Self {
        self.called = Some(name.into());
        self
    }

    /// Have another program start the launcher: it is given the launcher's command line after these arguments, of which the first is
    /// the program.
    #[must_use]
    pub fn under<A: Into<OsString>>(mut self, command: impl IntoIterator<Item = A>) -> Self {
        self.under = command.into_iter().map(Into::into).collect();
        self
    }

    /// Run `mpiprobe run ARGUMENTS` with the wrapper engine over the launcher: [`Job::profile`].
    pub fn profiled<A: Into<OsString>>(self, arguments: impl IntoIterator<Item = A>) -> Result<Self, ProfilerError> {
        self.run_by("wrapper", arguments)
    }

    /// The same with another engine.
    pub fn run_by<A: Into<OsString>>(
        self,
        engine: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Self, ProfilerError> {
        let mut command: Vec<OsString> = vec![profiler::binary()?.into(), "run".into(), "--json".into()];
        command.extend(["--engine".into(), engine.into(), "--profile".into(), files::PROFILE.into()]);
        command.extend(arguments.into_iter().map(Into::into));
        command.push("--".into());
        Ok(self.under(command))
    }

    /// The name that the program will run under.
    pub fn name(&self) -> &str {
        self.called.as_deref().unwrap_or(self.program.name)
    }

    /// Preload this library, before that of the truth.
    #[must_use]
    pub fn preload(mut self, library: impl Into<PathBuf>) -> Self {
        self.preload = Some(library.into());
        self
    }

    /// Have another program start each rank: it is given the rank's command line after these arguments, of which the first is the
    /// program.
    #[must_use]
    pub fn within<A: Into<OsString>>(mut self, command: impl IntoIterator<Item = A>) -> Self {
        self.within = command.into_iter().map(Into::into).collect();
        self
    }

    /// Have another program start the launcher, whoever starts that (see [`under`](Self::under)): it is given the launcher's command line
    /// after these arguments.
    #[must_use]
    pub fn around<A: Into<OsString>>(mut self, command: impl IntoIterator<Item = A>) -> Self {
        self.around = command.into_iter().map(Into::into).collect();
        self
    }

    /// Have Slurm's srun start the ranks instead of MPI's launcher: it is given the ranks and the program after these words, of which the
    /// last are srun's.
    #[must_use]
    pub fn by_srun<A: Into<OsString>>(mut self, command: impl IntoIterator<Item = A>) -> Self {
        self.srun = command.into_iter().map(Into::into).collect();
        self
    }

    /// Have the launcher start ranks on several nodes by ssh: `n1:2,n2:1`. Their network is `eth0`. With [`around`](Self::around), which comes to
    /// the first of them.
    #[must_use]
    pub fn over(mut self, hosts: &str) -> Self {
        self.hosts = Some(hosts.to_owned());
        self
    }

    /// Have another MPI's launcher start the ranks, each of which is alone in its world then.
    #[must_use]
    pub fn launched_by(mut self, other: Mpi) -> Self {
        self.launched_by = Some(other);
        self
    }

    /// Without a launcher: one process, which may be started [within](Self::within) another program. Nothing is preloaded into it.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// Let the program's file belong to this user, as whom it is executed then (set-user-ID; needs root). The dynamic linker preloads
    /// nothing into such a program. With [`own_name`](Self::own_name).
    #[must_use]
    pub fn set_user(mut self, user: u32) -> Self {
        self.set_user = Some(user);
        self
    }

    /// Have a script execute the program: the command line does not name it.
    #[must_use]
    pub fn through_a_shell(mut self) -> Self {
        self.through_a_shell = true;
        self
    }

    /// The same, and the script does not name it either.
    #[must_use]
    pub fn through_a_shell_that_hides_it(mut self) -> Self {
        self.hides_program = true;
        self.through_a_shell()
    }

    /// Preload nothing, not even what makes waiting ranks give their core away where MPI does not. Without gates and truth.
    #[must_use]
    pub fn as_it_is(mut self) -> Self {
        self.as_it_is = true;
        self
    }

    /// Use a copy of the MPI library that no other process has mapped: [`Job::library`].
    #[must_use]
    pub fn own_library(mut self) -> Self {
        self.library = Library::Own;
        self
    }

    /// The same, unless the library is in a wheel, where programs find it by its place alone.
    #[must_use]
    pub fn own_library_if_possible(self) -> Self {
        if self.mpi.wheel().is_none() { self.own_library() } else { self }
    }

    /// Use the copy that another job has.
    #[must_use]
    pub fn library_of(mut self, other: &Job) -> Self {
        self.library = other.library().map_or(Library::Own, |copy| Library::At(copy.to_owned()));
        self
    }

    /// Link MPI's library into the program (MPICH only), which the truth library cannot count then.
    #[must_use]
    pub fn linked_in(mut self) -> Self {
        self.made = Made::WithMpichInIt;
        self
    }

    /// Compile [`BRIEF`](crate::program::BRIEF) with musl instead of the C library that MPI has.
    #[must_use]
    pub fn with_musl(mut self) -> Self {
        self.made = Made::WithMusl;
        self
    }

    /// Preload nothing, although there are gates: the program has in it what waits there.
    #[must_use]
    pub fn gates_are_linked_in(mut self) -> Self {
        self.gates_are_linked_in = true;
        self
    }

    /// Run launcher and ranks as this user and group (needs root).
    #[must_use]
    pub fn user(mut self, user: u32) -> Self {
        self.user = Some(user);
        self
    }

    /// Compiles what is needed and starts the launcher; returns at once.
    pub fn spawn(self) -> Result<Job, JobError> {
        let mut preload = match (self.truth != Truth::Off, self.gates.is_empty()) {
            (true, _) => Some(truth::truth_library(self.mpi)?),
            (false, _) if self.gates_are_linked_in => None,
            (false, false) => Some(truth::gate_library(self.mpi)?),
            (false, true) if self.as_it_is => None,
            (false, true) => truth::yielding_library(self.mpi)?,
        };
        let mut executable = match self.made {
            Made::Ordinarily => compile::executable(self.mpi, self.program)?,
            Made::WithMpichInIt => compile::executable_with_mpich(self.program)?,
            Made::WithMusl => compile::executable_with_musl(self.mpi, self.program)?,
        };
        let directory = job_directory(!self.srun.is_empty())?;
        let files = files::directory()?;
        if let Some(name) = &self.called {
            executable = files::copy_program(&executable, files.path(), name)?;
        }
        if let Some(user) = self.set_user {
            files::set_user(&executable, user)?;
        }
        if self.through_a_shell {
            executable = files::script(&executable, files.path(), self.hides_program)?;
        }
        let gates = create_gates(directory.path(), &self.gates)?;

        let is_shared = matches!(self.library, Library::Installed);
        if !is_shared || self.user.is_some() || !self.around.is_empty() || !self.srun.is_empty() {
            // The build directory need not be open to other users. What is preloaded is a tool to mpiprobe, which probes it like the library.
            preload =
                preload.map(|library| files::copy_program(&library, files.path(), "libpreload.so")).transpose()?;
        }

        if let Some(first) = &self.preload {
            let mut libraries = first.as_os_str().to_owned();
            if let Some(next) = preload {
                libraries.push(":");
                libraries.push(next);
            }
            preload = Some(libraries.into());
        }

        let launcher = self.launched_by.unwrap_or(self.mpi).launcher();
        let mut words = self.under.iter().map(|argument| {
            // A profile goes to the job's own directory.
            if argument == files::PROFILE { directory.path().join(argument).into() } else { argument.clone() }
        });
        let by_srun = !self.srun.is_empty();
        let outer = self.around.iter().chain(&self.srun).cloned();
        let outer = outer.chain((!self.alone && !by_srun).then(|| launcher.clone().into()));
        let inner = self.within.iter().filter(|_| self.alone).cloned();
        let mut words = words.by_ref().chain(outer).chain(inner);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        if by_srun {
            let mut exported = OsString::from("--export=ALL");
            if let Some(library) = &preload {
                exported.push(",LD_PRELOAD=");
                exported.push(library);
            }
            command.arg(format!("--ntasks={}", self.ranks)).arg(exported);
        } else if !self.alone {
            command.args(self.launcher_arguments(directory.path(), preload.as_deref()));
            command.args(&self.within);
        }
        if self.program.language == Language::Python {
            let interpreter = python::interpreter(self.mpi)?;
            command.arg(interpreter.command).envs(interpreter.environment);
        }
        command.arg(&executable).args(&self.arguments);
        command.env(DIRECTORY_VARIABLE, directory.path()).env(GATES_VARIABLE, self.gates.join(","));
        if self.truth == Truth::Meaning {
            command.env(SEMANTICS_VARIABLE, "1");
        }
        let library = match &self.library {
            Library::Installed => None,
            Library::Own => Some(files::copy_library(self.mpi, files.path())?),
            Library::At(copy) => Some(copy.clone()),
        };
        if let Some(directory) = library.as_deref().and_then(Path::parent) {
            command.env("LD_LIBRARY_PATH", directory);
        }
        if let Some(user) = self.user {
            command.uid(user).gid(user).current_dir("/").env("HOME", directory.path());
        }
        // A program of somebody's finds its files where the test was started.
        if self.program.files().next().is_some() && self.program.language == Language::Installed {
            files::copy_input(self.program, directory.path())?;
            command.current_dir(directory.path());
        }
        command.envs(self.environment.iter().cloned());
        // Not the file descriptors of the test, and not its terminal's signals.
        command.stdin(Stdio::null()).process_group(0);
        command.stdout(create(&directory.path().join("stdout"))?).stderr(create(&directory.path().join("stderr"))?);

        let child = command.spawn().map_err(|source| JobError::Launch { mpi: self.mpi, launcher, source })?;
        Ok(Job {
            name: format!("{} on {} ranks of {}", self.program.name, self.ranks, self.mpi),
            launcher: child,
            status: None,
            size: self.ranks,
            ranks: BTreeMap::new(),
            gates,
            deadline: self.deadline,
            called: self.name().to_owned(),
            library,
            directory,
            _files: files,
        })
    }

    /// Ranks on several nodes have the job's environment, too.
    fn launcher_arguments(&self, scratch: &Path, preload: Option<&Path>) -> Vec<OsString> {
        let mpi = self.launched_by.unwrap_or(self.mpi);
        let of_worlds = || mpi.launcher_arguments_of_worlds(self.ranks, scratch, preload);
        let of_one_world = || mpi.launcher_arguments(self.ranks, scratch, preload);
        let Some(hosts) = &self.hosts else { return if self.spawns { of_worlds() } else { of_one_world() } };
        let own = [DIRECTORY_VARIABLE, GATES_VARIABLE].into_iter();
        let own = own.chain((self.truth == Truth::Meaning).then_some(SEMANTICS_VARIABLE));
        let all = own.chain(self.environment.iter().filter_map(|(name, _)| name.to_str()));
        self.mpi.arguments_over(hosts, all, (self.ranks, scratch, preload))
    }
}

/// In memory where possible: the counts are a mapped file, and Open MPI keeps its shared memory there. Nodes have memory of their own.
fn job_directory(is_of_nodes: bool) -> Result<TempDir, JobError> {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() && !is_of_nodes { memory.to_owned() } else { std::env::temp_dir() };
    let directory =
        TempDir::with_prefix_in("mpiprobe-job-", &parent).map_err(file_error("creating a directory in", &parent))?;
    // Ranks may run as another user than the test.
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777))
        .map_err(file_error("opening up", directory.path()))?;
    Ok(directory)
}

fn create_gates(directory: &Path, names: &[String]) -> Result<BTreeMap<String, File>, JobError> {
    let mut gates = BTreeMap::new();
    for name in names {
        let path: PathBuf = directory.join(format!("gate-{name}"));
        let gate = create(&path)?;
        gate.lock().map_err(file_error("locking", &path))?;
        gates.insert(name.clone(), gate);
    }
    Ok(gates)
}

fn create(path: &Path) -> Result<File, JobError> {
    File::create_new(path).map_err(file_error("creating", path))
}
