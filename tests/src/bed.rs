//! Test beds: systems and networks of their own in namespaces, which the scripts in `tests/beds/` make. Whatever ends the test, nothing is
//! left of them.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::proc::{children, has_environment};
use crate::{Profiler, ProfilerError, debian};

/// The longest that a bed may take to be ready.
const PATIENCE: Duration = Duration::from_mins(2);
/// Between two questions whether it is.
const PAUSE: Duration = Duration::from_millis(20);

/// Ended when dropped.
#[derive(Debug)]
pub struct Bed {
    script: Option<Profiler>,
    /// It ends when this is closed.
    input: Option<ChildStdin>,
    first: u32,
}

impl Bed {
    /// Makes the bed of this script, which says `bed: ready` when it is made (needs root).
    pub fn make<A: AsRef<OsStr>>(script: &str, arguments: impl IntoIterator<Item = A>) -> Result<Self, ProfilerError> {
        let folder = sources().join("tests/beds");
        let mut command = Command::new("bash");
        command.arg(folder.join("bed.sh")).arg(folder.join(script)).args(arguments);
        let (mut script, input) = Profiler::spawn_with_input(command)?;
        script.wait_for("bed: ready")?;
        let own = script.pid();
        let mut bed = Self { script: Some(script), input: Some(input), first: 0 };
        bed.first = first(own).ok_or_else(|| not_there("the first process of a bed"))?;
        Ok(bed)
    }

    /// Its first process, by the number that it has here.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// The first process of one of its nodes, which are namespaces in it.
    pub fn node(&self, name: &str) -> Result<u32, ProfilerError> {
        let variable = format!("NODE={name}");
        let is_its = |pid: &u32| has_environment(*pid, &variable);
        let found = children(self.first).into_iter().filter(is_its).find_map(|pid| children(pid).first().copied());
        found.ok_or_else(|| not_there("a node of the bed"))
    }

    /// Ends everything on a node at once, as the kernel does with a namespace whose first process is gone.
    pub fn kill(&self, node: &str) -> Result<(), ProfilerError> {
        let first = Pid::from_raw(self.node(node)?.cast_signed()).ok_or(rustix::io::Errno::SRCH);
        first
            .and_then(|first| kill_process(first, Signal::KILL))
            .map_err(|error| ProfilerError::system("killing a node")(error.into()))
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.input.take();
        // It has cgroups to remove; if it does not end, nothing else can be done.
        let _ = self.script.take().map(Profiler::wait);
    }
}

/// Asks again and again until it is so; `what` is waited for.
pub(crate) fn wait_until(
    what: &str,
    mut is_so: impl FnMut() -> Result<bool, ProfilerError>,
) -> Result<(), ProfilerError> {
    let begun = Instant::now();
    while !is_so()? {
        if begun.elapsed() > PATIENCE {
            let output = String::new();
            return Err(ProfilerError::Timeout { what: what.into(), waited: PATIENCE, output });
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// What executes what follows in all namespaces of a process.
pub fn entering(pid: u32) -> Vec<String> {
    let namespaces = ["--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup"];
    let target = pid.to_string();
    ["nsenter", "--target", &target].into_iter().chain(namespaces).map(str::to_owned).collect()
}

/// The same as an ordinary user with this number, who has no rights.
pub fn entering_as(pid: u32, user: u32) -> Vec<String> {
    let user = user.to_string();
    let words = ["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups", "env", "HOME=/nonexistent"];
    entering(pid).into_iter().chain(words.map(str::to_owned)).collect()
}

/// [`entering`] or [`entering_as`] as a command, which needs more arguments.
pub fn command(words: &[String]) -> Command {
    let (program, arguments) = words.split_first().map_or(("nsenter", words), |(first, rest)| (first.as_str(), rest));
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/");
    command
}

/// `mpiprobe ARGUMENTS` there: each node has it.
pub fn client<A: AsRef<OsStr>>(words: &[String], arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = command(words);
    command.arg("/usr/bin/mpiprobe").args(arguments);
    command
}

/// What such a [`command`] has become there: its own process waits outside.
pub fn entered(command: &Profiler) -> Result<Pid, ProfilerError> {
    let inside = children(command.pid()).first().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    inside.ok_or_else(|| not_there("a process in a bed"))
}

/// The root of the packages that beds have besides the machine's, of which this one is wanted.
pub(crate) fn unpacked(what: &'static str) -> Result<PathBuf, ProfilerError> {
    let root = debian::root().ok_or(std::io::ErrorKind::NotFound);
    root.map_err(|kind| ProfilerError::system(what)(kind.into()))
}

/// The top folder of the clone.
pub fn sources() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::canonicalize(&folder).unwrap_or(folder)
}

/// The only child of `unshare`, which is one of the script's.
fn first(script: u32) -> Option<u32> {
    let is_unshare =
        |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "unshare");
    let unshare = children(script).into_iter().find(is_unshare)?;
    children(unshare).first().copied()
}

fn not_there(what: &str) -> ProfilerError {
    ProfilerError::system(what)(std::io::ErrorKind::NotFound.into())
}
