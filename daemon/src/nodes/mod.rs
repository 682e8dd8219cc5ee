//! Jobs over several nodes: an agent on each, which is mpiprobe itself, started as the user by what the site allows.
//!
//! An agent is asked on its standard input and answers on its standard output, line by line, in the words of the node service. No port
//! is opened. Whatever ends the front end or the connection closes the input, and the agent ends.

mod connection;
mod hosts;
mod launcher;
mod tree;
mod words;

pub use hosts::{host, nodes_of_slurm_job};
pub use launcher::{Launcher, Means, launcher};
pub(crate) use tree::{Agents, Below};
pub(crate) use words::{FromNode, Passed, Word};

use std::{cmp::Ordering, io};

use mpiprobe_report::present::say;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::mpsc;

/// Which nodes a job is observed on, and how agents come there.
#[derive(Clone, Debug)]
pub struct Nodes {
    /// At least one, each once.
    pub hosts: Vec<String>,
    pub means: Means,
    pub request: Request,
    /// How many agents one mpiprobe talks to, itself or an agent.
    pub fan_out: usize,
}

impl Nodes {
    /// Starts an agent on each. What they say is sent with the number of the host.
    pub(crate) fn start(&self, to: mpsc::Sender<(usize, FromNode)>) -> Result<Agents, NodesError> {
        let nodes = self.hosts.iter().cloned().enumerate().collect();
        Agents::start(Below { nodes, fan_out: self.fan_out }, self.means.clone(), self.request.clone(), to)
    }
}

/// What an agent is asked for: the first line on its standard input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    pub version: String,
    /// In the words of the command line, as a URL has them.
    pub query: String,
    pub engine: String,
    #[serde(default)]
    pub kind: Kind,
    /// Nodes on which the agent is to ask for the same, besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) below: Option<Below>,
}

impl Request {
    /// Of this version, for the node that is asked alone.
    pub fn new(query: String, engine: String, kind: Kind) -> Self {
        Self { version: env!("CARGO_PKG_VERSION").into(), query, engine, kind, below: None }
    }
}

/// What for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    #[default]
    Observation,
    /// An observation, and each call, which the front end writes down.
    Trace,
    /// A look at stacks.
    Hang,
}

/// Says what a node says, which may be anything: `said` counts its messages, of which so many are shown at `most`.
pub(crate) fn say_of(name: &str, text: &str, said: &mut u32, most: u32) {
    *said = said.saturating_add(1);
    match (*said).cmp(&most) {
        Ordering::Less => say(format_args!("{name}: {text}")),
        Ordering::Equal => say(format_args!("{name}: it says too much; no more of that is shown")),
        Ordering::Greater => {}
    }
}

/// What is to be said of a node whose mpiprobe is of another version.
pub(crate) fn other_version(version: &str) -> Option<String> {
    let own = env!("CARGO_PKG_VERSION");
    (version != own).then(|| {
        format!(
            "mpiprobe is of version {version} there, and this is {own}: what it says may not be understood; \
             --agent names another one"
        )
    })
}

/// Why a job's nodes cannot be observed.
#[derive(Debug, Error)]
pub enum NodesError {
    #[error(
        "{tool} cannot be started: {source}\n  name the job's nodes by --hosts, and how to reach them by --launcher"
    )]
    NoTool { tool: &'static str, source: io::Error },
    #[error("{tool} does not answer; name the job's nodes by --hosts")]
    Silent { tool: &'static str },
    #[error("{tool} does not tell the nodes of job {job}: {said}\n  name them by --hosts")]
    Unknown { tool: &'static str, job: String, said: String },
    #[error("the nodes of the job are not known: name them by --hosts, or the Slurm job by its number (--job 4711)")]
    NoNodes,
    #[error("--launcher srun needs the Slurm job's number: --job 4711")]
    NoSlurmJob,
    #[error("node {0} is named twice")]
    Twice(String),
    #[error("the path of mpiprobe is no text; name it by --agent")]
    Path,
    #[error("no node of {} could be observed:{}", .0.len(), listed(.0))]
    Nobody(Vec<(String, String)>),
    #[error("interrupted before a node was observed")]
    Interrupted,
}

fn listed(nodes: &[(String, String)]) -> String {
    nodes.iter().fold(String::new(), |text, (node, why)| text + "\n  " + node + ": " + &why.replace('\n', "\n    "))
}
