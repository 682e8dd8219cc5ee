//! The test bed: real MPI jobs under a test's control, and a count of their MPI calls that is independent of mpiprobe.
//!
//! ```no_run
//! use mpiprobe_tests::{Job, Mpi, program};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut job = Job::builder(Mpi::OpenMpi, program::RING).ranks(4).args(["100"]).gates(&["1"]).truth(true).spawn()?;
//! job.wait_for_gate("1")?; // every rank stands after MPI_Init
//! job.open_gate("1")?;
//! job.wait()?.success()?;
//! assert_eq!(job.snapshot()?.rank(0)?.calls("MPI_Send").completed, 100);
//! # Ok(())
//! # }
//! ```
//!
//! * [`Mpi`], [`program`], [`mod@compile`]: which MPI, which program, and its compiled form (cached under `target/`).
//! * [`truth`]: the preloaded library that counts (C and assembly in `tests/truth/`), generated from the symbol tables of the
//!   installed MPI, and the reader of its files.
//! * [`job`]: one running job: start, gates, ranks, kill, output. Dropping it leaves nothing behind.
//! * [`profiler`]: the `mpiprobe` binary under test: start, what it prints, its profile, what it leaves behind.
//! * [`check`]: its profile against the count.
//! * [`threads`]: what it says of threads.
//! * [`endings`]: what it says of ranks that end by themselves.
//! * [`call_sites`]: what it says of the lines that calls are made from.
//! * [`origins`]: what it says of where communicators come from.
//! * [`hang`]: jobs that hang, and what is said of why.
//! * [`bed`]: systems and networks of their own, in namespaces; [`slurm`]: a cluster of Slurm's, [`ssh`]: nodes without one, [`systemd`]: a machine with it.
//! * [`campaign`]: long runs.
//! * [`bench`]: what a probed call costs, for `cargo xtask bench calls`; what the view costs, for `cargo xtask bench view`.
//! * [`synthetic`]: jobs that never ran, for pictures and measurements of the view.
//! * [`terminal`]: `mpiprobe` on a pseudo-terminal, with keys and a screen.
//! * [`recent_calls`]: what the view shows of the last calls of a rank.
//! * [`nodes`]: a trace as several nodes would have written it.
//! * [`prometheus`]: a server of Prometheus's.
//! * [`picture`]: the full-screen view of those as text and as images.
//! * [`second_user`]: somebody else on the same machine.
//! * [`service`]: a node service, and clients of several users.
//! * [`silent`]: a program whose file does not answer.
//! * [`requirement`]: what a test needs of the machine, and how a test that lacks it is reported.
//! * [`run`]: which tests run beside each other, and how long each takes.

pub mod bed;
pub mod bench;
pub mod browser;
pub mod call_sites;
pub mod campaign;
pub mod check;
pub mod compile;
pub mod debian;
pub mod endings;
mod executable;
pub mod hang;
pub mod job;
mod mpi;
pub mod neighbours;
pub mod nodes;
pub mod open_calls;
pub mod openmetrics;
pub mod origins;
pub mod phases;
pub mod picture;
mod proc;
pub mod profiler;
pub mod program;
pub mod prometheus;
mod python;
pub mod recent_calls;
pub mod reports;
pub mod requirement;
mod schedule;
pub mod second_user;
pub mod service;
pub mod silent;
pub mod slurm;
pub mod ssh;
pub mod synthetic;
pub mod systemd;
pub mod terminal;
pub mod threads;
pub mod tool;
pub mod traced;
pub mod traffic;
pub mod truth;
pub mod waits;
pub mod wheel;

pub use executable::copy_executable;
pub use job::{Finished, Job, JobBuilder, JobError};
pub use mpi::Mpi;
pub use profiler::{Ended, KernelObjects, Profile, Profiler, ProfilerError, Rank, changed_bytes, wait_until_changed};
pub use program::{Language, Program};
pub use python::PythonError;
pub use requirement::Requirement;
pub use schedule::run;
