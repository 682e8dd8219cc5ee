//! What this process may do.

use std::{fs, path::Path};

use mpiprobe_discover::{printable, status::Status};
use rustix::fs::{StatVfsMountFlags, statvfs};

use super::read::read_text;

/// A capability (include/uapi/linux/capability.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capability {
    SysPtrace = 19,
    SysAdmin = 21,
    Perfmon = 38,
    Bpf = 39,
    CheckpointRestore = 40,
}

/// Effective capabilities, and what else decides how more can be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rights {
    /// Bit n: capability n.
    pub(super) effective: u64,
    pub(super) is_root: bool,
    /// In a user namespace of its own capabilities count for nothing that the kernel asks for here.
    pub(super) in_user_namespace: bool,
    /// Why file capabilities would have no effect on this program's file.
    pub(super) no_file_capabilities: Option<&'static str>,
    /// This program's file.
    pub(super) program: String,
}

impl Rights {
    pub(super) fn own() -> Self {
        let text = read_text("/proc/self/status").unwrap_or_default();
        let status = Status::parse(text.as_bytes());
        Self {
            effective: status.as_ref().map_or(0, |status| status.effective_capabilities),
            is_root: rustix::process::geteuid().is_root(),
            in_user_namespace: is_user_namespace(fs::read_link("/proc/self/ns/user").ok().as_deref()),
            no_file_capabilities: no_file_capabilities(&text),
            program: program(),
        }
    }

    /// CAP_SYS_ADMIN contains most of the newer ones (include/linux/capability.h: bpf_capable, perfmon_capable,
    /// checkpoint_restore_ns_capable).
    pub(super) fn has(&self, capability: Capability) -> bool {
        let holds = |one: Capability| self.effective & (1 << one as u32) != 0;
        holds(capability) || (capability != Capability::SysPtrace && holds(Capability::SysAdmin))
    }

    /// How to get what is missing.
    pub(super) fn how_to_grant(&self) -> String {
        if self.in_user_namespace {
            return "run it outside the user namespace (a rootless container is one), as root of the host".into();
        }
        if self.is_root {
            return "this is a root without its capabilities: start the container with --cap-add=BPF,PERFMON,SYS_PTRACE and \
                    --pid=host, or run it on the host"
                .into();
        }
        match self.no_file_capabilities {
            Some(why) => format!("run it with sudo (setcap would not help: {why})"),
            None => {
                format!("run it with sudo, or once: sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep {}", self.program)
            }
        }
    }
}

fn is_user_namespace(link: Option<&Path>) -> bool {
    // include/linux/proc_ns.h: PROC_USER_INIT_INO. Without the link the kernel has no user namespaces.
    link.is_some_and(|link| link != Path::new("user:[4026531837]"))
}

fn no_file_capabilities(status: &str) -> Option<&'static str> {
    if status.lines().any(|line| line == "NoNewPrivs:\t1") {
        return Some("this process was started with no_new_privs");
    }
    let flags = statvfs("/proc/self/exe").ok()?.f_flag;
    flags.contains(StatVfsMountFlags::NOSUID).then_some("its file system is mounted nosuid")
}

fn program() -> String {
    use std::os::unix::ffi::OsStrExt as _;
    match std::env::current_exe() {
        Ok(path) => printable(path.as_os_str().as_bytes()),
        Err(_) => "$(command -v mpiprobe)".into(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::doctor) fn rights(effective: u64) -> Rights {
        Rights {
            effective,
            is_root: false,
            in_user_namespace: false,
            no_file_capabilities: None,
            program: "/usr/bin/mpiprobe".into(),
        }
    }

    #[test]
    fn each_bit_is_one_capability() {
        let bpf_only = rights(1 << 39);
        assert!(bpf_only.has(Capability::Bpf));
        assert!(
            ![Capability::SysPtrace, Capability::SysAdmin, Capability::Perfmon]
                .map(|one| bpf_only.has(one))
                .contains(&true)
        );
    }

    #[test]
    fn admin_contains_the_newer_ones_but_not_ptrace() {
        let admin = rights(1 << 21);
        assert!(
            [Capability::Bpf, Capability::Perfmon, Capability::CheckpointRestore].into_iter().all(|one| admin.has(one))
        );
        assert!(!admin.has(Capability::SysPtrace));
    }

    #[test]
    fn the_advice_fits_the_situation() {
        let user = rights(0);
        assert_eq!(
            user.how_to_grant(),
            "run it with sudo, or once: sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep /usr/bin/mpiprobe"
        );
        let advice = Rights { no_file_capabilities: Some("it is so"), ..user.clone() }.how_to_grant();
        assert_eq!(advice, "run it with sudo (setcap would not help: it is so)");
        assert!(Rights { is_root: true, ..user.clone() }.how_to_grant().contains("--cap-add=BPF,PERFMON,SYS_PTRACE"));
        assert!(Rights { in_user_namespace: true, ..user }.how_to_grant().contains("user namespace"));
    }

    #[test]
    fn user_namespaces() {
        assert!(!is_user_namespace(Some(Path::new("user:[4026531837]"))));
        assert!(is_user_namespace(Some(Path::new("user:[4026532210]"))));
        assert!(!is_user_namespace(None));
    }

    #[test]
    fn no_new_privs_is_seen() {
        assert_eq!(
            no_file_capabilities("Threads:\t1\nNoNewPrivs:\t1\n"),
            Some("this process was started with no_new_privs")
        );
    }
}
