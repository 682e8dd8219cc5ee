//! Where a process is, or was: this machine, in this run of it.

use std::{
    ffi::CStr,
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use mpiprobe_common::file::Header;
use rustix::fs::{Mode, OFlags, open};

use crate::{
    discover::{ProcRoot, Process, printable},
    session::host,
};

/// This machine, as headers of tables tell machines apart.
#[derive(Clone, Debug)]
pub(super) struct Here {
    pub(super) boot: [u8; 16],
    pub(super) pid_namespace: u64,
    pub(super) host: String,
}

impl Here {
    pub(super) fn now() -> Self {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boot = u128::from_str_radix(&boot.trim().replace('-', ""), 16).unwrap_or(0);
        let pid_namespace = fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino());
        Self { boot: boot.to_be_bytes(), pid_namespace, host: host::name() }
    }

    /// Whether the pid in a header means something here.
    pub(super) fn numbers_processes_of(&self, header: &Header) -> bool {
        header.boot == self.boot && header.pid_namespace == self.pid_namespace
    }

    /// The process that a file of this owner says it is of, if it lives here, now, and is that user's.
    pub(super) fn process(&self, root: &ProcRoot, header: &Header, owner: u32) -> Option<Process> {
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
    Ok(open(path, flags, Mode::empty())?.into())
}

/// A text of a header, which any user may have written.
pub(super) fn text(bytes: &[u8]) -> String {
    printable(CStr::from_bytes_until_nul(bytes).unwrap_or_default().to_bytes())
}
