//! One process image with its tables.

use std::{ffi::CStr, fs::File, os::unix::fs::MetadataExt as _, path::Path};

use mpiprobe_common::file::Header;
use rustix::fs::{Mode, OFlags, open};

use super::bury::bury;
use crate::{
    analyse::{Identity, Observed},
    discover::{JobKey, ProcRoot, Process, RankInfo, environment::Environment, printable},
    model::{LibraryInfo, RankState},
    observe::{ProcessSnapshot, TableFile, TableFileError},
};

/// A file of tables, and the process that writes it as long as that lives.
#[derive(Debug)]
pub(super) struct Image {
    slot: u32,
    tables: TableFile,
    header: Header,
    identity: Identity,
    process: Option<Process>,
    /// When it was noticed that the process has ended.
    gone_ns: Option<u64>,
}

impl Image {
    /// Opens a file of tables as process slot `slot`.
    pub(super) fn open(path: &Path, slot: u32, root: &ProcRoot) -> Result<Self, TableFileError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(open(path, flags, Mode::empty()).map_err(std::io::Error::from)?);
        let tables = TableFile::new(file)?;
        let header = tables.header()?;
        Ok(Self { slot, tables, header, identity: identity(&header), process: process(root, &header), gone_ns: None })
    }

    pub(super) fn slot(&self) -> u32 {
        self.slot
    }

    pub(super) fn process(&self) -> Option<&Process> {
        self.process.as_ref()
    }

    /// The same process as another image's: by an exec the later one has replaced the earlier one.
    pub(super) fn is_later_image_than(&self, earlier: &Self) -> bool {
        let of =
            |image: &Self| (image.header.boot, image.header.pid_namespace, image.header.pid, image.header.start_ticks);
        of(self) == of(earlier) && self.header.began_ns > earlier.header.began_ns
    }

    /// What counting a call costs it, and the part of that within measured durations, ns.
    pub(super) fn costs(&self) -> (f64, f64) {
        const UNIT: f64 = 1024.0;
        (self.header.call_cost as f64 / UNIT, self.header.inside_cost as f64 / UNIT)
    }

    pub(super) fn began_ns(&self) -> u64 {
        self.header.began_ns
    }

    /// The process has ended, or has become another program.
    pub(super) fn note_end(&mut self, at_ns: u64) {
        if self.process.take().is_some() {
            self.gone_ns = Some(at_ns);
        }
    }

    /// What its tables say now, and who it is.
    pub(super) fn read(&mut self, execed: bool) -> Result<(Observed, ProcessSnapshot), TableFileError> {
        self.header = self.tables.header()?;
        let mut snapshot = self.tables.snapshot(self.slot)?;
        let has_ended = execed || self.header.ended_ns != 0 || self.process.is_none();
        let mut observed = Observed {
            process: self.slot,
            identity: self.identity.clone(),
            state: RankState::Running,
            stopped: false,
            since_ns: self.header.began_ns,
            until_ns: None,
            ended_in: Vec::new(),
        };
        if has_ended {
            let last =
                snapshot.threads.iter().map(|thread| thread.state.last_return_ns.max(thread.state.open.started_ns));
            let last = last.max().unwrap_or(0).max(self.header.began_ns);
            // It may have ended long before that was noticed, but not before its own last words.
            let known =
                if self.header.ended_ns != 0 { Some(self.header.ended_ns) } else { self.gone_ns.filter(|_| !execed) };
            let until = known.unwrap_or(last).max(last);
            observed.state = if execed { RankState::Execed } else { RankState::Ended };
            observed.until_ns = Some(until);
            observed.ended_in = bury(&mut snapshot, until);
        }
        Ok((observed, snapshot))
    }

    pub(super) fn library(&self) -> LibraryInfo {
        LibraryInfo {
            path: text(&self.header.library),
            implementation: text(&self.header.implementation),
            build_id: None,
            functions: mpiprobe_functions::COUNT,
            slow: Vec::new(),
            not_probed: Vec::new(),
        }
    }
}

fn text(bytes: &[u8]) -> String {
    printable(CStr::from_bytes_until_nul(bytes).unwrap_or_default().to_bytes())
}

/// From what the process has noted of its environment.
fn identity(header: &Header) -> Identity {
    let environment = Environment::new(header.environment.to_vec(), false);
    let rank = RankInfo::from_environment(&environment, false);
    Identity {
        pid: header.pid,
        rank: rank.rank,
        size: rank.size,
        job: Some(JobKey::of_environment(&rank, &environment, header.parent, header.pid).to_string()),
        executable: text(&header.executable),
    }
}

/// The process itself, if it lives here, now.
fn process(root: &ProcRoot, header: &Header) -> Option<Process> {
    let namespace = std::fs::metadata("/proc/self/ns/pid").ok()?.ino();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits = boot.trim().replace('-', "");
    if header.pid_namespace != namespace || u128::from_str_radix(&digits, 16) != Ok(u128::from_be_bytes(header.boot)) {
        return None;
    }
    let process = Process::open(root, header.pid).ok()?;
    (process.id().start_ticks == header.start_ticks && process.is_alive()).then_some(process)
}
