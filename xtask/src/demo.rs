//! The demo: a small MPI job, profiled from outside while it runs.

use std::fs;
use std::io::IsTerminal;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::command::{self, is_root};
use crate::job::Job;
use crate::mpi::Mpi;
use crate::setup::{self, Mode, Purpose};

const RANKS: u32 = 4;
const DURATION: &str = "5s";
/// Ends by itself after a few minutes, should everything else fail.
const RING: [&str; 5] = ["200000", "--pause-us", "200", "--imbalance", "--announce"];
/// What the program says when all ranks are past MPI_Init.
const BEGUN: &str = "ring: begun";

/// Attaching, profiling and detaching, with a lot to spare for slow machines.
const PATIENCE: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) fn run(mode: Mode) -> Result<()> {
    setup::ensure(&[Purpose::Build, Purpose::Demo], mode)?;
    command::run(command::cargo().args(["build", "--release", "-p", "mpiprobe"]))?;

    let folder = command::target_dir().join("demo");
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let (ring, log) = (folder.join("ring"), folder.join("ring.log"));
    let mpi = Mpi::find()?;
    mpi.compile(&command::workspace().join("tests/programs/ring.c"), &ring)?;

    // From here on a signal must not end us before the job is stopped.
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted)).context("signals cannot be handled")?;
    }

    let (mpirun, mut arguments) = mpi.launcher(RANKS);
    arguments.push(ring.to_string_lossy().into_owned());
    arguments.extend(RING.map(String::from));
    let mut job = Job::start(mpirun, &arguments, &log)?;
    let profiled = job
        .wait_for(&log, BEGUN, Duration::from_mins(1), &interrupted)
        .with_context(|| format!("the MPI job does not run:\n{}", fs::read_to_string(&log).unwrap_or_default()))
        .and_then(|()| profile(&interrupted));
    job.stop();

    let status = profiled?;
    if interrupted.load(Ordering::Relaxed) {
        bail!("interrupted; the MPI job is stopped");
    }
    if !status.success() {
        bail!("mpiprobe ended with {status}; its messages stand above");
    }
    eprintln!("demo: done, the MPI job is stopped");
    Ok(())
}

/// Runs mpiprobe in the foreground: a Ctrl-C reaches it, too, and it ends with the profile so far.
fn profile(interrupted: &AtomicBool) -> Result<ExitStatus> {
    let mut cargo = command::cargo();
    cargo.args(["run", "--quiet", "--release", "-p", "mpiprobe"]);
    if !is_root() {
        eprintln!("demo: attaching needs root, so mpiprobe is run by sudo");
        command::run_as_root(&mut cargo);
    }
    cargo.args(["--", "--pid-of", "ring", "--duration", DURATION]);
    eprintln!("$ {}", command::shown(&cargo));
    let mut mpiprobe = cargo.spawn().context("cargo cannot be started")?;

    let end = Instant::now() + PATIENCE;
    let mut asked = false;
    loop {
        if let Some(status) = mpiprobe.try_wait().context("mpiprobe cannot be waited for")? {
            return Ok(status);
        }
        if Instant::now() > end {
            signal(&mpiprobe, Signal::KILL);
            let _ = mpiprobe.wait();
            bail!("mpiprobe has not ended within {} s, though told to profile for {DURATION}", PATIENCE.as_secs());
        }
        if interrupted.load(Ordering::Relaxed) && !asked {
            asked = true;
            // A terminal has told it already, and it takes a second signal as "at once"; `kill` has told only us.
            if !std::io::stdin().is_terminal() {
                signal(&mpiprobe, Signal::INT);
            }
        }
        thread::sleep(PAUSE);
    }
}

/// cargo has become mpiprobe (or sudo, which passes signals on) by then: on Unix, it replaces itself.
fn signal(child: &Child, signal: Signal) {
    // The child has not been waited for, so its id is still its own.
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}
