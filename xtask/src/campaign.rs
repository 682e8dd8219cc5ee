//! Measurements and long runs: each is a program of the crate `mpiprobe-tests`, run optimised, and as root if they attach probes.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::command;
use crate::setup::{self, Mode, Purpose};

/// A program of `mpiprobe-tests`.
#[derive(Debug)]
pub(crate) struct Campaign {
    name: &'static str,
    binary: &'static str,
    purposes: &'static [Purpose],
    as_root: bool,
}

const BENCHES: [Campaign; 12] = [
    // Per cent by which whole programs are slowed, held to a limit.
    Campaign {
        name: "apps",
        binary: "bench-apps",
        purposes: &[Purpose::Build, Purpose::Demo, Purpose::Test],
        as_root: true,
    },
    // ns per MPI call: bare, with an empty probe, with mpiprobe, with the same in bpftrace.
    Campaign {
        name: "calls",
        binary: "bench-calls",
        purposes: &[Purpose::Build, Purpose::Demo, Purpose::Test, Purpose::Bench],
        as_root: true,
    },
    // Processor time and memory of the full-screen view.
    Campaign { name: "view", binary: "bench-view", purposes: &[Purpose::Build], as_root: false },
    // Time and memory of reports in every format.
    Campaign { name: "report", binary: "bench-report", purposes: &[Purpose::Build], as_root: false },
    // Time and memory of wait states and exports of traces in files.
    Campaign { name: "files", binary: "bench-files", purposes: &[Purpose::Build], as_root: false },
    // ms of a look at all threads of many processes.
    Campaign { name: "hang", binary: "bench-hang", purposes: &[Purpose::Build], as_root: true },
    // Time and memory of an observation of many nodes.
    Campaign {
        name: "nodes",
        binary: "bench-nodes",
        purposes: &[Purpose::Build, Purpose::Demo, Purpose::Test],
        as_root: true,
    },
    // Processor time and memory of a node service.
    Campaign {
        name: "service",
        binary: "bench-service",
        purposes: &[Purpose::Build, Purpose::Demo, Purpose::Test],
        as_root: true,
    },
    // ms until a command runs that is counted.
    Campaign {
        name: "start",
        binary: "bench-start",
        purposes: &[Purpose::Build, Purpose::Demo, Purpose::Test],
        as_root: true,
    },
    // Time in MPI against the truth library's clock.
    Campaign {
        name: "times",
        binary: "bench-times",
        purposes: &[Purpose::Build, Purpose::Demo, Purpose::Test],
        as_root: true,
    },
    // ns per MPI call: counted, and recorded besides, by either engine.
    Campaign {
        name: "trace",
        binary: "bench-trace",
        purposes: &[Purpose::Build, Purpose::Demo, Purpose::Test],
        as_root: true,
    },
    // ns per MPI call: bare, with the wrapper, with the wrapper switched off.
    Campaign {
        name: "wrapper",
        binary: "bench-wrapper",
        purposes: &[Purpose::Build, Purpose::Demo, Purpose::Test],
        as_root: true,
    },
];

impl Campaign {
    pub(crate) const SOAK: Self =
        Self { name: "soak", binary: "soak", purposes: &[Purpose::Build, Purpose::Demo, Purpose::Test], as_root: true };

    pub(crate) fn bench(name: &str) -> Result<Self> {
        BENCHES.into_iter().find(|bench| bench.name == name).with_context(|| format!("no benchmark is called {name}"))
    }

    pub(crate) fn run(&self, arguments: &[String], mode: Mode) -> Result<ExitCode> {
        setup::ensure(self.purposes, mode)?;
        // What is measured is the program that users get.
        command::run(command::cargo().args(["build", "--release", "-p", "mpiprobe"]))?;
        let mut cargo = command::cargo();
        cargo.args(["run", "--release", "-p", "mpiprobe-tests", "--bin", self.binary]);
        if self.as_root {
            command::run_as_root(&mut cargo);
        }
        let status = command::status(cargo.arg("--").args(arguments))?;
        Ok(command::exit_code(status))
    }
}

/// What can be measured.
pub(crate) fn names() -> Vec<&'static str> {
    BENCHES.iter().map(|bench| bench.name).collect()
}
