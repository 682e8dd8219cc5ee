//! Everything that can be done before a command runs, so that none of its calls is missed.

use mpiprobe_attach::AttachError;
use mpiprobe_discover::{Caller, JobChoice, ProcRoot, ReturnRisk, Scanner, Target};
use mpiprobe_plan::ImplementationRecogniser;
use mpiprobe_report::present::say;
use thiserror::Error;

use super::{
    elsewhere::elsewhere,
    needed::{Needs, needed, perhaps_needed},
    options::RunOptions,
};
use crate::session::{
    error::SessionError,
    loaded::Loaded,
    observation::Observation,
    options::{Options, Returns},
};

/// Why a command is not counted by the kernel.
#[derive(Debug, Error)]
pub enum Unready {
    #[error(
        "--output keeps the tables of the wrapper, which the kernel has not: leave one of --engine ebpf and --output out"
    )]
    Tables,
    #[error("others may start the ranks than this command ({0})")]
    Elsewhere(&'static str),
    #[error("{0}, and a call that is left by that while a return probe is there ends the program")]
    Risk(ReturnRisk),
    #[error("which MPI library the command uses cannot be told before it runs")]
    Library,
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl Unready {
    /// On one line.
    pub(super) fn in_short(&self) -> String {
        match self {
            Self::Tables => "--output keeps its tables".to_owned(),
            Self::Elsewhere(_) => format!("{self}, and eBPF would not know them"),
            Self::Risk(risk) => format!("{risk}, which return probes of eBPF may be the end of"),
            Self::Library => format!("{self}, and eBPF might miss its first calls"),
            Self::Session(error) => {
                let text = error.to_string();
                format!("eBPF is not possible here: {}", text.lines().next().unwrap_or_default())
            }
        }
    }
}

/// An observation of a job that does not run yet.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) observation: Box<Observation>,
    /// Paths of MPI libraries that are under probes already.
    known: Vec<String>,
}

impl Ready {
    pub(super) fn new(options: &RunOptions) -> Result<Self, Unready> {
        if options.tables.is_some() {
            return Err(Unready::Tables);
        }
        let mut scanner = scanner()?;
        let needs = perhaps_needed(&options.command, &mut scanner);
        Self::with(options, scanner, needs)
    }

    /// Only if no call can be missed.
    pub(super) fn for_certain(options: &RunOptions) -> Result<Self, Unready> {
        if options.tables.is_some() {
            return Err(Unready::Tables);
        }
        if let Some(whom) = elsewhere(&options.command, &|name| std::env::var_os(name).is_some()) {
            return Err(Unready::Elsewhere(whom));
        }
        let mut scanner = scanner()?;
        let needs = needed(&options.command, &mut scanner);
        match needs.risk {
            _ if needs.libraries.is_empty() => Err(Unready::Library),
            Some(risk) if options.returns == Returns::Auto => Err(Unready::Risk(risk)),
            _ => Self::with(options, scanner, needs),
        }
    }

    fn with(options: &RunOptions, scanner: Scanner<ImplementationRecogniser>, needs: Needs) -> Result<Self, Unready> {
        // Tried on mpiprobe itself, before anything is there that would have to be undone.
        Loaded::new(std::process::id()).map_err(|source| SessionError::from(AttachError::CodeEvents { source }))?;
        let mut observation = Box::new(Observation::of_job(&observed(options), scanner)?);
        if let Some(risk) = needs.risk {
            observation.weigh(&risk);
        }
        observation.spare_bystanders(&needs.libraries.iter().map(|library| library.id).collect::<Vec<_>>())?;
        let mut known = Vec::new();
        for library in &needs.libraries {
            match observation.cover_file(&library.path, &library.file, library.id) {
                Ok(_) => known.push(library.path.display().to_string()),
                // The command may do without it.
                Err(error) => say(error),
            }
        }
        Ok(Self { observation, known })
    }

    /// The libraries that are known.
    pub(super) fn known(&self) -> String {
        self.known.join(", ")
    }
}

fn scanner() -> Result<Scanner<ImplementationRecogniser>, SessionError> {
    Ok(Scanner::new(ProcRoot::system()?, Caller::current()?, ImplementationRecogniser::default()))
}

/// What of a job is observed: all that the wrapper would count.
fn observed(options: &RunOptions) -> Options {
    Options {
        wait: true,
        returns: options.returns,
        ignore_pcontrol: options.ignore_pcontrol,
        max_overhead: options.max_overhead.limit(),
        interval: options.interval,
        json: options.json,
        trace: options.trace.clone(),
        trace_bpf: options.trace_bpf,
        ..Options::by_kernel(Target::Any, JobChoice::All, options.functions)
    }
}
