//! Which process it is, and whether it may be looked into.

use mpiprobe_discover::{MpiProcess, Process, ProcessError, printable, users::Users};
use mpiprobe_elf::Architecture;
use mpiprobe_model::Check;
use serde_json::json;

use crate::doctor::text::counted;

/// That it may be traced by the rules of [`mpiprobe_discover::access`] is known already; here the kernel is asked.
pub(super) fn examine(process: &Process) -> Vec<Check> {
    let access = match process.memory() {
        Ok(_) => Check::ok("access", "you may trace it"),
        Err(error) => Check::failed_by("access", &error),
    };
    vec![program(process).unwrap_or_else(|error| Check::failed_by("process", &error)), access]
}

fn program(process: &Process) -> Result<Check, ProcessError> {
    let (executable, status, threads) = (process.executable()?, process.status()?, process.threads()?.len());
    let user = Users::read().user(status.users.real);
    let path = printable(&executable.path);
    let replaced = if executable.deleted { " (deleted or replaced since)" } else { "" };
    Ok(Check::ok("process", format!("{path}{replaced}, user {}, {}", user.name, counted(threads, "thread", "threads")))
        .with(json!({
            "executable": path,
            "deleted": executable.deleted,
            "user": user,
            "threads": threads,
        })))
}

pub(super) fn rank(process: &MpiProcess) -> Check {
    let info = &process.rank;
    let rank = match (info.rank, info.size) {
        (Some(rank), Some(size)) => format!("rank {rank} of {size}"),
        (Some(rank), None) => format!("rank {rank}"),
        (None, _) => "rank unknown".to_owned(),
    };
    let check = Check::info("rank", format!("{rank}, job {}", process.job));
    let check = if info.rank.is_none() { check.because("its environment does not tell") } else { check };
    check.with(json!({ "rank": info.rank, "size": info.size, "job": process.job }))
}

/// `inner` is its pid in its own namespace.
pub(super) fn container(inner: u32) -> Check {
    Check::info("container", format!("it runs in a pid namespace of its own, as process {inner}"))
        .because("this makes no difference")
        .with(json!({ "pid": inner }))
}

pub(super) fn foreign(architecture: Architecture) -> Check {
    let finding = format!("its MPI library is for {architecture}");
    Check::failed("process-architecture", finding, format!("use a {} build of the program", Architecture::NATIVE))
}
