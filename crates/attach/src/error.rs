//! What can go wrong between the kernel and the probes.

use std::{fmt::Write as _, io, path::PathBuf};

use thiserror::Error;

use super::AttachMethod;

/// Why probes could not be loaded or attached.
#[derive(Debug, Error)]
pub enum AttachError {
    /// The maps could not be made, or the object is damaged.
    #[error(
        "cannot load the BPF object: {source}\n  {}",
        limit(source.as_ref()).unwrap_or(
            "The kernel refused a map or the object itself. This needs CAP_BPF and CAP_PERFMON (or root) and a kernel 5.15 or later \
             with CONFIG_BPF_SYSCALL; `mpiprobe doctor` tells which is missing."
        )
    )]
    Object {
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The embedded object lacks a part that this binary expects.
    #[error(
        "the embedded BPF object has no {what} named {name}: this binary was built wrong; build it again with `cargo xtask setup`"
    )]
    Missing { what: &'static str, name: &'static str },
    /// The verifier or a missing right.
    #[error("the kernel refused the BPF program {name}: {source}{}", verifier_tail(.log))]
    Program {
        name: &'static str,
        #[source]
        source: io::Error,
        log: String,
    },
    /// One method did not work.
    #[error("cannot attach to {} by {method}: {source}{}", .file.display(), hint(.source))]
    Link {
        method: AttachMethod,
        file: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A test probe was attached but did not count what it must.
    #[error("a test probe by {method} counted {counted} of {made} calls of a function of mpiprobe's own")]
    Miscounted { method: AttachMethod, made: u64, counted: u64 },
    /// No method works.
    #[error(
        "no way of attaching uprobes works on this system:{}\n  Needs CONFIG_UPROBES and CONFIG_BPF_EVENTS, and root or \
         CAP_BPF + CAP_PERFMON; `mpiprobe doctor` checks each.",
        methods(.tried)
    )]
    NoMethod { tried: Vec<(AttachMethod, Box<AttachError>)> },
    /// A table could not be read or changed.
    #[error("cannot access the BPF table {table}: {source}{}", limit(source).map(|limit| format!("\n  {limit}")).unwrap_or_default())]
    Table {
        table: &'static str,
        #[source]
        source: io::Error,
    },
    /// A job that is started cannot be told from other processes.
    #[error(
        "the kernel's types (/sys/kernel/btf/vmlinux) do not tell which process starts which\n  Kernels with CONFIG_DEBUG_INFO_BTF do; \
         without, `mpiprobe run --engine wrapper` counts the job."
    )]
    NoFamilies,
    /// The kernel does not tell what a job maps.
    #[error(
        "cannot be told which libraries the job loads: perf_event_open: {source}\n  Needs root or CAP_PERFMON; \
         `mpiprobe run --engine wrapper` needs neither."
    )]
    CodeEvents {
        #[source]
        source: io::Error,
    },
    /// Probes for everybody are no business of a caller who may not trace everybody.
    #[error(
        "{}, and you may not trace processes of other users, or cannot see them (in a pid namespace of its own)\n  {}",
        if *.is_job { "the libraries of a command that does not run yet can only be probed for all processes of the node".to_owned() }
        else { format!("on this kernel, {method} are for all processes that use a library, or miss threads") },
        if *.is_job { "`mpiprobe run --engine wrapper` needs no probes; or run mpiprobe as root." }
        else { "Use a kernel from 6.6.35, 6.9.5 or 6.10 on, or `mpiprobe run --engine wrapper`, or run mpiprobe as root." }
    )]
    OthersProcesses { method: AttachMethod, is_job: bool },
    /// mpiprobe sees other process ids than the kernel, and the programs cannot find those.
    #[error(
        "mpiprobe runs in a pid namespace of its own (a container), where process ids are not the kernel's, and targets cannot be \
         told apart: {0}\n  Run it on the host, or in a container with the host's pid namespace (--pid=host)."
    )]
    PidNamespace(String),
    /// Of the process of the service that has the rights, in its words.
    #[error("{message}")]
    Apart { message: String, errno: Option<i32> },
}

impl AttachError {
    /// What the system said, where it was the system.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Program { source, .. }
            | Self::Link { source, .. }
            | Self::Table { source, .. }
            | Self::CodeEvents { source } => source.raw_os_error(),
            Self::Apart { errno, .. } => *errno,
            _ => None,
        }
    }
}

/// Which limit of this process's is in the way, if it is one, and what to do.
fn limit(error: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let code = causes.filter_map(|error| error.downcast_ref::<io::Error>()?.raw_os_error()).last()?;
    match code {
        libc::EMFILE => Some("The limit of open files is too low: raise it (ulimit -n 1024)."),
        libc::ENFILE => Some("The system has as many files open as it may: raise fs.file-max."),
        libc::ENOMEM => Some(
            "The tables do not fit into the limit of memory, of this process (ulimit -v) or of its control group: raise it, or make \
             them smaller (--max-stats, --max-threads, --max-processes of an observation).",
        ),
        _ => None,
    }
}

fn verifier_tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let tail = lines.get(lines.len().saturating_sub(12)..).unwrap_or_default();
    tail.iter().fold(String::new(), |text, line| text + "\n    " + line)
}

fn hint(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "\n  Needs root, or CAP_BPF + CAP_PERFMON (and CAP_SYS_ADMIN on kernels before 6.6)."
        }
        Some(libc::ENOSPC | libc::ENOMEM) => {
            "\n  The kernel is out of memory or of some limit for probes; close other tracers."
        }
        _ => "",
    }
}

fn methods(tried: &[(AttachMethod, Box<AttachError>)]) -> String {
    tried.iter().fold(String::new(), |mut text, (method, error)| {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n  - {method}: {}", error.to_string().replace('\n', "\n    "));
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_the_process_are_told_with_what_to_do() {
        let full = |code| AttachError::Table { table: "STATS", source: io::Error::from_raw_os_error(code) }.to_string();
        assert!(full(libc::ENOMEM).contains("ulimit -v"), "{}", full(libc::ENOMEM));
        assert!(full(libc::EMFILE).contains("ulimit -n"));
        assert!(!full(libc::EINVAL).contains("ulimit"));
        // As the library for BPF objects wraps it.
        let map = aya::maps::MapError::CreateError {
            name: "PHASES".into(),
            io_error: io::Error::from_raw_os_error(libc::EMFILE),
        };
        let object = AttachError::Object { source: Box::new(aya::EbpfError::MapError(map)) }.to_string();
        assert!(object.contains("ulimit -n") && !object.contains("CAP_BPF"), "{object}");
    }
}
