//! Where a process is, or was: this machine, in this run of it.

use std::{
    ffi::CStr,
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use mpiprobe_common::file::Header;
use mpiprobe_discover::{ProcRoot, Process, files::with_callers_rights, printable, status::Status};
use rustix::fs::{Mode, OFlags, open};

use crate::session::host;

/// This machine, as headers of tables tell machines apart.
#[derive(Clone, Debug)]
pub(super) struct Here {
    pub(super) boot: [u8; 16],
    pub(super) pid_namespace: u64,
    pub(super) host: String,
}

/// Where and when the process of some tables began, as they say it: all that is kept of their head of a process that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) boot: [u8; 16],
    pub(super) pid_namespace: u64,
    pub(super) pid: u32,
    pub(super) start_ticks: u64,
    pub(super) began_ns: u64,
    pub(super) began_unix_ns: u64,
}

impl From<&Header> for Origin {
    fn from(header: &Header) -> Self {
        let &Header { boot, pid_namespace, pid, start_ticks, began_ns, began_unix_ns, .. } = header;
        Self { boot, pid_namespace, pid, start_ticks, began_ns, began_unix_ns }
    }
}

impl Here {
    pub(super) fn now() -> Self {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boot = u128::from_str_radix(&boot.trim().replace('-', ""), 16).unwrap_or(0);
        let pid_namespace = fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino());
        Self { boot: boot.to_be_bytes(), pid_namespace, host: host::name() }
    }

    /// Whether the pid in a header means something here.
    pub(super) fn numbers_processes_of(&self, header: &Origin) -> bool {
        header.boot == self.boot && header.pid_namespace == self.pid_namespace
    }

    /// Whether tables that a process has mapped are its own, and not old ones or another's: owner, number, start and machine fit.
    pub(super) fn are_own_tables(&self, process: &Process, header: &Origin, owner: u32) -> bool {
        let fits = |status: Status| {
            let own_number = status.namespace_pids.last().copied().unwrap_or(process.pid());
            status.users.real == owner && header.pid == own_number
        };
        header.boot == self.boot
            && header.start_ticks == process.id().start_ticks
            && process.pid_namespace().is_ok_and(|namespace| namespace == header.pid_namespace)
            && process.status().is_ok_and(fits)
    }

    /// The process that a file of this owner says it is of, if it lives here, now, and is that user's.
    pub(super) fn process(&self, root: &ProcRoot, header: &Origin, owner: u32) -> Option<Process> {
        if !self.numbers_processes_of(header) {
            return None;
        }
        let process = Process::open(root, header.pid).ok()?;
        let is_it = process.id().start_ticks == header.start_ticks
            && process.status().is_ok_and(|status| status.users.real == owner);
        (is_it && process.is_alive()).then_some(process)
    }
}

/// Opens a file that any user may have put there: no link is followed, and nothing waits for whoever has the other end of a pipe.
pub(super) fn open_tables(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    with_callers_rights(|| Ok(open(path, flags, Mode::empty())?.into()))
}

/// A text of a header, which any user may have written.
pub(super) fn text(bytes: &[u8]) -> String {
    printable(CStr::from_bytes_until_nul(bytes).unwrap_or_default().to_bytes())
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable as _;

    use super::*;

    /// Invariant FILE-OF-PROCESS.
    #[test]
    fn tables_are_a_processs_own_only_if_owner_number_start_and_machine_fit() {
        let (root, here) = (ProcRoot::system().unwrap(), Here::now());
        let process = Process::open(&root, std::process::id()).unwrap();
        let user = process.status().unwrap().users.real;
        let own = || {
            let mut header = Header::zeroed();
            (header.boot, header.pid_namespace) = (here.boot, here.pid_namespace);
            (header.pid, header.start_ticks) = (process.pid(), process.id().start_ticks);
            Origin::from(&header)
        };
        assert!(here.are_own_tables(&process, &own(), user));
        assert!(here.process(&root, &own(), user).is_some());
        assert!(!here.are_own_tables(&process, &own(), user + 1) && here.process(&root, &own(), user + 1).is_none());
        let spoil: [fn(&mut Origin); 4] = [
            // The process after this one may have begun in the same tick.
            |header| header.pid = 1,
            |header| header.start_ticks += 1,
            |header| header.boot = [7; 16],
            |header| header.pid_namespace += 1,
        ];
        for spoil in spoil {
            let mut header = own();
            spoil(&mut header);
            assert!(!here.are_own_tables(&process, &header, user), "{header:?}");
            assert!(here.process(&root, &header, user).is_none(), "{header:?}");
        }
    }
}
