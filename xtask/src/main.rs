//! `cargo xtask`: from a fresh machine to a tested mpiprobe.

mod campaign;
mod clean_room;
mod command;
mod demo;
mod derive_table;
mod dist;
mod docs;
mod job;
mod mpi;
mod setup;
mod test;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use campaign::Campaign;
use setup::{Mode, Purpose};

/// Set-up, demo, tests and benchmarks.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    /// Print what the set-up would install, with the command for it, and stop.
    #[arg(long, global = true)]
    no_install: bool,
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Install what is missing on this machine (Debian 12; apt-get, by sudo if not root).
    Setup {
        /// What it shall be good for.
        #[arg(default_values = ["build", "demo", "test"])]
        purposes: Vec<Purpose>,
    },
    /// Set up, build, start a small MPI job and profile it.
    Demo,
    /// Set up, then check formatting, lint and run all tests.
    Test {
        /// Arguments for `cargo test`, such as `-p CRATE` or the name of a test.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Set up, then measure.
    Bench {
        #[arg(value_parser = campaign::names())]
        name: String,
        /// Arguments for the benchmark.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Set up, then run the long campaigns that the tests run in short form; `soak odd`: odd programs under every engine; `soak processes`: what
    /// is left of processes that come and go; `soak compare`: what `mpiprobe compare` finds in five runs a side of real jobs; `soak
    /// kernels`: whether older kernels take the programs and count exactly.
    Soak {
        /// Arguments for the campaign: CYCLES, KILLS, VISITORS; or `odd` and names of programs; or `processes` and their number.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Write the generated pages of the documentation anew.
    Docs {
        /// Take the pictures of HTML pages anew as well, in Chromium.
        #[arg(long)]
        screenshots: bool,
    },
    /// Derive crates/functions/mpi.tbl anew from the MPI Forum's list of procedures.
    DeriveTable {
        /// The Forum's `apis.json`.
        forum_json: PathBuf,
        #[arg(default_value = "crates/functions/mpi.tbl")]
        table: PathBuf,
    },
    /// Build the packages into target/dist: .deb, .rpm and a static tarball.
    Dist,
    /// Install, use and remove the packages of target/dist in clean root file systems (as root).
    TryDist {
        /// Where these are, or are made if nothing is there.
        #[arg(long, default_value = "/var/tmp/mpiprobe-dist")]
        root: PathBuf,
        /// The Debian mirror.
        #[arg(long, default_value = clean_room::MIRROR)]
        mirror: String,
    },
    /// Run a command on a fresh clone of HEAD in a clean Debian 12 with nothing but stable Rust (as root; needs debootstrap).
    CleanRoom {
        /// Where the root file system is, or is made if nothing is there.
        #[arg(long, default_value = "/var/tmp/mpiprobe-clean-room")]
        root: PathBuf,
        /// The Debian mirror.
        #[arg(long, default_value = clean_room::MIRROR)]
        mirror: String,
        #[arg(last = true, default_values = ["cargo", "xtask", "setup"])]
        command: Vec<String>,
    },
}

fn main() -> ExitCode {
    let Arguments { no_install, task } = Arguments::parse();
    let mode = if no_install { Mode::Tell } else { Mode::Install };
    let done = match task {
        Task::Setup { purposes } => setup::ensure(&purposes, mode).map(|()| ExitCode::SUCCESS),
        Task::Demo => demo::run(mode).map(|()| ExitCode::SUCCESS),
        Task::Test { arguments } => test::run(&arguments, mode),
        Task::Bench { name, arguments } => Campaign::bench(&name).and_then(|bench| bench.run(&arguments, mode)),
        Task::Soak { arguments } => Campaign::SOAK.run(&arguments, mode),
        Task::Docs { screenshots } => docs::generate(screenshots, mode).map(|()| ExitCode::SUCCESS),
        Task::DeriveTable { forum_json, table } => {
            derive_table::derive(&forum_json, &table).map(|()| ExitCode::SUCCESS)
        }
        Task::Dist => dist::run(mode).map(|()| ExitCode::SUCCESS),
        Task::TryDist { root, mirror } => dist::try_out(&root, &mirror, mode).map(|()| ExitCode::SUCCESS),
        Task::CleanRoom { root, mirror, command } => clean_room::run(&root, &mirror, &command),
    };
    done.unwrap_or_else(|error| {
        eprintln!("cargo xtask: {error:#}");
        ExitCode::FAILURE
    })
}
