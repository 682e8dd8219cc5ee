//! What a process runs in by the word of whoever manages the node: a batch system's job, a container, a systemd scope.
//!
//! It is in the path of the process's cgroup (`/proc/PID/cgroup`), which the manager has made and the process cannot choose. The
//! environment says it too and is the user's to change: what only it says is a hint. Forms of paths: Slurm 22.05 to 26.05
//! (src/plugins/cgroup), `OpenPBS`'s hook `pbs_cgroups`, LSF's `lsb_linux_cgroup`, Kubernetes' kubelet with both cgroup drivers,
//! docker, containerd, CRI-O and podman.

use std::{collections::BTreeSet, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{environment::Environment, text::plain};

/// Bytes of `/proc/PID/cgroup` that are read: 14 hierarchies with the longest names of usual managers take a fifth of it.
pub(crate) const LIMIT: usize = 16 << 10;
/// Hierarchies and components of a path that are looked at; there are at most 14 of the former, and whoever nests deeper hides only
/// the own job from the own eyes.
const MOST_LINES: usize = 32;
const MOST_COMPONENTS: usize = 32;
/// Digits of a container's id, of which people type the first twelve.
const CONTAINER_DIGITS: usize = 64;
const TYPED_DIGITS: usize = 12;

/// Who gives processes a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Manager {
    Slurm,
    Pbs,
    Lsf,
    /// A pod.
    Kubernetes,
    /// Of docker, containerd, CRI-O or podman.
    Container,
    /// A scope or a service that somebody has started for one command.
    Systemd,
}

/// How it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KnownBy {
    /// By a cgroup that the manager has made.
    Cgroup,
    /// By the environment, or by a cgroup that the user may have named: it may be wrong.
    Hint,
}

/// Where a process runs. All strings are printable ASCII.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Allocation {
    pub manager: Manager,
    /// The job's number or name, the pod's or the container's id, or the unit's name.
    pub id: String,
    /// Slurm's step, or the container of a pod.
    pub part: Option<String>,
    pub known_by: KnownBy,
}

impl Manager {
    const fn name(self) -> &'static str {
        match self {
            Self::Slurm => "slurm",
            Self::Pbs => "pbs",
            Self::Lsf => "lsf",
            Self::Kubernetes => "kubernetes",
            Self::Container => "container",
            Self::Systemd => "systemd",
        }
    }
}

/// `slurm:4711.0`, of ids of containers the first digits; a hint with a question mark.
impl fmt::Display for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |id: &str| if is_container_id(id) { id.get(..TYPED_DIGITS).map(str::to_owned) } else { None };
        write!(f, "{}:{}", self.manager.name(), short(&self.id).as_deref().unwrap_or(&self.id))?;
        if let Some(part) = &self.part {
            write!(f, ".{}", short(part).as_deref().unwrap_or(part))?;
        }
        if self.known_by == KnownBy::Hint { f.write_str("?") } else { Ok(()) }
    }
}

impl Allocation {
    fn new(manager: Manager, id: &str, part: Option<&str>, known_by: KnownBy) -> Option<Self> {
        let id = plain(id.as_bytes())?.to_owned();
        let part = part.and_then(|part| plain(part.as_bytes())).map(ToOwned::to_owned);
        Some(Self { manager, id, part, known_by })
    }

    /// All that is known of a process by what `/proc/PID/cgroup` says, and its environment. What is known by a cgroup comes first.
    pub fn of_process(cgroups: &[u8], environment: &Environment) -> Vec<Self> {
        let known = Self::of_cgroups(cgroups);
        let mut all: Vec<_> = known.iter().cloned().collect();
        for hint in Self::of_environment(environment) {
            // A hint that contradicts the cgroup is worth nothing. Slurm's cgroups may have names of its own instead of numbers,
            // which the environment ties together.
            let same = known.as_ref().filter(|known| known.manager == hint.manager);
            let is_new = same.is_none_or(|known| {
                known.known_by == KnownBy::Cgroup
                    && hint.manager == Manager::Slurm
                    && environment.get("SLURM_JOB_SLUID") == Some(known.id.as_bytes())
            });
            if is_new {
                all.push(hint);
            }
        }
        all
    }

    /// By the paths of a process's cgroups: of several managers the first one of [`Manager`]'s order.
    fn of_cgroups(content: &[u8]) -> Option<Self> {
        let paths = content.split(|byte| *byte == b'\n').take(MOST_LINES).filter_map(|line| {
            // `ID:CONTROLLERS:PATH` (cgroups(7)); neither of the first two has a colon.
            let mut parts = line.splitn(3, |byte| *byte == b':');
            parts.nth(2)
        });
        let found: BTreeSet<(Manager, KnownBy, usize, Self)> = paths
            .enumerate()
            .filter_map(|(place, path)| {
                let allocation = Self::of_path(std::str::from_utf8(path).ok()?)?;
                // What the manager has made itself counts before what anybody may have named, and a step before none.
                let lacks = usize::from(allocation.part.is_none()) * MOST_LINES + place;
                Some((allocation.manager, allocation.known_by, lacks, allocation))
            })
            .collect();
        let is_sure = |(_, by, ..): &&(Manager, KnownBy, usize, Self)| *by == KnownBy::Cgroup;
        found.iter().find(is_sure).or(found.first()).map(|(.., allocation)| allocation.clone())
    }

    /// By one path. The outermost name counts: what is inside a container, or below what is left to a user, anybody may have made.
    fn of_path(path: &str) -> Option<Self> {
        let components: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).take(MOST_COMPONENTS).collect();
        let mut known_by = KnownBy::Cgroup;
        for (place, name) in components.iter().enumerate() {
            let inner = components.get(place + 1..).unwrap_or_default();
            if let Some((manager, id, part)) = named(name, inner) {
                return Self::new(manager, id, part, known_by);
            }
            if is_users_own(name) {
                known_by = KnownBy::Hint;
            }
        }
        None
    }

    /// By what batch systems put into the environment of their jobs.
    fn of_environment(environment: &Environment) -> impl Iterator<Item = Self> {
        let value = |name| environment.get(name).and_then(plain);
        let step = value("SLURM_STEP_ID").map(slurm_step);
        let said = [
            (Manager::Slurm, value("SLURM_JOB_ID"), step),
            (Manager::Pbs, value("PBS_JOBID"), None),
            (Manager::Lsf, value("LSB_JOBID"), None),
        ];
        said.into_iter().filter_map(|(manager, id, part)| Self::new(manager, id?, part, KnownBy::Hint))
    }

    /// Whether it is known by the number that people call it by. Slurm has names for jobs as well, and both may be known of one.
    pub(crate) fn has_number(&self) -> bool {
        self.id.bytes().all(|byte| byte.is_ascii_digit())
    }

    /// Whether somebody who types `text` may mean this: the id, with or without manager and part.
    pub fn is_meant_by(&self, text: &str) -> bool {
        let text = match text.split_once(':') {
            Some((manager, rest)) if manager == self.manager.name() => rest,
            _ => text,
        };
        let id = text.strip_prefix(self.id.as_str());
        let has_rest = |rest: &str| {
            rest.is_empty() || rest.strip_prefix('.').is_some_and(|part| self.part.as_deref() == Some(part))
        };
        let is_short = |id: &str| is_container_id(id) && text.len() >= TYPED_DIGITS && id.starts_with(text);
        id.is_some_and(has_rest)
            // Of a PBS job `123.server` the number is enough: most sites have one server.
            || (self.manager == Manager::Pbs && self.id.split('.').next() == Some(text))
            || is_short(&self.id)
            || self.part.as_deref().is_some_and(is_short)
    }
}

/// What the name of a cgroup says, with those inside it.
fn named<'a>(name: &'a str, inner: &[&'a str]) -> Option<(Manager, &'a str, Option<&'a str>)> {
    slurm(name, inner)
        .or_else(|| pbs(name, inner))
        .or_else(|| lsf(name, inner))
        .or_else(|| kubernetes(name, inner))
        .or_else(|| container(name, inner).map(|id| (Manager::Container, id, None)))
        .or_else(|| unit(name).map(|unit| (Manager::Systemd, unit, None)))
}

/// `slurm[_NODE]/uid_U/job_J/step_S` (cgroup v1), `[NODE_]slurmstepd.scope/(job_J|SLUID)/step_S` (v2).
fn slurm<'a>(name: &str, inner: &[&'a str]) -> Option<(Manager, &'a str, Option<&'a str>)> {
    let inner = if name == "slurm" || name.starts_with("slurm_") {
        inner.strip_prefix(inner.first().filter(|name| name.starts_with("uid_")).map(std::slice::from_ref)?)?
    } else if name == "slurmstepd.scope" || name.ends_with("_slurmstepd.scope") {
        inner
    } else {
        return None;
    };
    let (job, steps) = inner.split_first()?;
    let id = match job.strip_prefix("job_") {
        Some(number) => Some(number).filter(|number| is_number(number)),
        None => Some(*job).filter(|job| is_sluid(job)),
    }?;
    let part = steps.first().and_then(|step| step.strip_prefix("step_")).map(slurm_step);
    Some((Manager::Slurm, id, part))
}

/// The name of a step that Slurm has made itself, which has a number too (slurm.h: `SLURM_BATCH_SCRIPT` and its like).
fn slurm_step(step: &str) -> &str {
    match step {
        "4294967291" => "batch",
        "4294967292" => "extern",
        "4294967290" => "interactive",
        other => other,
    }
}

/// `pbs_jobs.service/jobid/ID`, `pbspro.slice/pbspro-ID.slice`, `torque/ID`.
fn pbs<'a>(name: &str, inner: &[&'a str]) -> Option<(Manager, &'a str, Option<&'a str>)> {
    let id = match (name, inner) {
        ("pbs_jobs.service" | "pbs_jobs", ["jobid", id, ..]) | ("torque", [id, ..]) => *id,
        ("pbspro.slice", [slice, ..]) => slice.strip_prefix("pbspro-")?.strip_suffix(".slice")?,
        _ => return None,
    };
    id.starts_with(|first: char| first.is_ascii_digit()).then_some((Manager::Pbs, id, None))
}

/// `lsf/CLUSTER/job.ID.PID.TIME`.
fn lsf<'a>(name: &str, inner: &[&'a str]) -> Option<(Manager, &'a str, Option<&'a str>)> {
    let (true, [_, job, ..]) = (name == "lsf", inner) else { return None };
    let id = job.strip_prefix("job.")?.split('.').next()?;
    id.starts_with(|first: char| first.is_ascii_digit()).then_some((Manager::Lsf, id, None))
}

/// `kubepods/[CLASS/]podUID/CONTAINER`, or the same as slices, whose names have those above them: `kubepods-CLASS-podUID.slice`.
fn kubernetes<'a>(name: &str, inner: &[&'a str]) -> Option<(Manager, &'a str, Option<&'a str>)> {
    if name != "kubepods" && name != "kubepods.slice" {
        return None;
    }
    inner.iter().take(2).enumerate().find_map(|(place, name)| {
        let slice = name.strip_suffix(".slice").and_then(|slice| slice.rsplit('-').next());
        let pod = slice.unwrap_or(name).strip_prefix("pod").filter(|uid| !uid.is_empty())?;
        let part = inner.get(place + 1).and_then(|name| container_id(name));
        Some((Manager::Kubernetes, pod, part))
    })
}

/// `docker-ID.scope` and its like below a slice, `docker/ID`, `libpod_parent/libpod-ID`.
fn container<'a>(name: &'a str, inner: &[&'a str]) -> Option<&'a str> {
    match (name, inner) {
        ("docker" | "containerd" | "crio" | "default", [id, ..]) if is_container_id(id) => Some(id),
        _ => container_id(name).filter(|id| *id != name),
    }
}

/// The id in a name such as `cri-containerd-ID.scope`, `crio-ID`, `libpod-ID`, or alone.
fn container_id(name: &str) -> Option<&str> {
    let name = name.strip_suffix(".scope").unwrap_or(name);
    // containerd with the driver for systemd and names for runc: `SLICE:cri-containerd:ID`.
    let id = name.rsplit(['-', ':']).next()?;
    is_container_id(id).then_some(id)
}

/// `run-NAME.scope` and `run-NAME.service` of systemd-run(1), and other scopes but those of logins and of systemd itself.
fn unit(name: &str) -> Option<&str> {
    let is_unit = match name.rsplit_once('.')? {
        (name, "scope") => name != "init" && !name.starts_with("session-"),
        (name, "service") => name.starts_with("run-"),
        _ => false,
    };
    is_unit.then_some(name)
}

/// Whether whatever is below may be the work of an ordinary user (systemd's delegation).
fn is_users_own(name: &str) -> bool {
    name.starts_with("user@") || name.starts_with("session-")
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 10 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Slurm's id for a job over its whole life: `s4KHM82VCE5700`, Crockford's base 32.
fn is_sluid(text: &str) -> bool {
    text.strip_prefix('s').is_some_and(|rest| {
        (8..=16).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
    })
}

fn is_container_id(text: &str) -> bool {
    text.len() == CONTAINER_DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
#[path = "allocation_tests.rs"]
mod tests;
