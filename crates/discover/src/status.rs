//! `/proc/PID/status` (proc_pid_status(5); kernel: fs/proc/array.c, proc_pid_status).

use serde::Serialize;

/// The seccomp mode a process runs under; a filter may forbid what a return probe needs on some kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Seccomp {
    Disabled,
    Strict,
    Filter,
}

/// User or group ids of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ids {
    pub real: u32,
    pub effective: u32,
    pub saved: u32,
    pub file_system: u32,
}

impl Ids {
    /// Whether real, effective and saved id are all `id`: what ptrace(2) asks for.
    pub fn all(self, id: u32) -> bool {
        self.real == id && self.effective == id && self.saved == id
    }
}

/// What mpiprobe needs of `/proc/PID/status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The process (thread group); differs from the file's own id if that is a thread's.
    pub thread_group: u32,
    pub users: Ids,
    pub groups: Ids,
    /// The groups that it belongs to besides.
    pub supplementary: Vec<u32>,
    /// The pid in each nested pid namespace, outermost first; the last one is what a container's user sees.
    pub namespace_pids: Vec<u32>,
    /// `None` on kernels built without seccomp.
    pub seccomp: Option<Seccomp>,
    /// Effective capabilities, bit n = capability n.
    pub effective_capabilities: u64,
    /// Ambient capabilities: those the process was started with by somebody who had them.
    pub ambient_capabilities: u64,
}

impl Status {
    /// Parses the file's content; `None` if a line that every kernel writes is missing or malformed.
    pub fn parse(content: &[u8]) -> Option<Self> {
        let (mut thread_group, mut users, mut groups, mut seccomp) = (None, None, None, None);
        let (mut effective_capabilities, mut ambient_capabilities) = (0, 0);
        let (mut namespace_pids, mut supplementary) = (Vec::new(), Vec::new());
        for line in content.split(|byte| *byte == b'\n') {
            // The name's line may hold any bytes but a newline, which the kernel escapes.
            let Ok(line) = std::str::from_utf8(line) else { continue };
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim_ascii();
            match key {
                "Tgid" => thread_group = value.parse().ok(),
                "Uid" => users = ids(value),
                "Gid" => groups = ids(value),
                "Groups" => supplementary = value.split_ascii_whitespace().map_while(|id| id.parse().ok()).collect(),
                "NSpid" => namespace_pids = value.split_ascii_whitespace().map_while(|pid| pid.parse().ok()).collect(),
                "Seccomp" => seccomp = seccomp_mode(value),
                "CapEff" => effective_capabilities = u64::from_str_radix(value, 16).unwrap_or(0),
                "CapAmb" => ambient_capabilities = u64::from_str_radix(value, 16).unwrap_or(0),
                _ => {}
            }
        }
        Some(Self {
            thread_group: thread_group?,
            users: users?,
            groups: groups?,
            supplementary,
            namespace_pids,
            seccomp,
            effective_capabilities,
            ambient_capabilities,
        })
    }
}

fn ids(value: &str) -> Option<Ids> {
    let mut ids = value.split_ascii_whitespace().map(|id| id.parse().ok());
    Some(Ids { real: ids.next()??, effective: ids.next()??, saved: ids.next()??, file_system: ids.next()?? })
}

fn seccomp_mode(value: &str) -> Option<Seccomp> {
    match value {
        "0" => Some(Seccomp::Disabled),
        "1" => Some(Seccomp::Strict),
        "2" => Some(Seccomp::Filter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STATUS: &str = "Name:\tri\\nng\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t4711\nPid:\t4712\n\
        Uid:\t1000\t1001\t1002\t1003\nGid:\t10\t11\t12\t13\nGroups:\t10 24 \nNSpid:\t4712\t7\nThreads:\t3\n\
        CapEff:\t000001ffffffffff\nCapAmb:\t0000000000080000\nNoNewPrivs:\t0\nSeccomp:\t2\n";

    #[test]
    fn every_field_is_read() {
        assert_eq!(
            Status::parse(STATUS.as_bytes()),
            Some(Status {
                thread_group: 4711,
                users: Ids { real: 1000, effective: 1001, saved: 1002, file_system: 1003 },
                groups: Ids { real: 10, effective: 11, saved: 12, file_system: 13 },
                supplementary: vec![10, 24],
                namespace_pids: vec![4712, 7],
                seccomp: Some(Seccomp::Filter),
                effective_capabilities: 0x1ff_ffff_ffff,
                ambient_capabilities: 0x8_0000,
            })
        );
    }

    #[test]
    fn a_name_cannot_forge_a_line() {
        // The kernel writes a newline in the name as the two characters \n.
        let forged = STATUS.replace("ri\\nng", "x\\nUid:\t0\t0\t0\t0");
        assert_eq!(Status::parse(forged.as_bytes()).unwrap().users.real, 1000);
    }

    #[test]
    fn missing_ids_are_refused_not_taken_for_root() {
        assert_eq!(Status::parse(STATUS.replace("Uid:\t1000", "Uid:\tx").as_bytes()), None);
        assert_eq!(Status::parse(b""), None);
    }

    proptest! {
        #[test]
        fn never_panics(bytes: Vec<u8>) {
            let _ = Status::parse(&bytes);
        }
    }
}
