//! The rings in a file of the wrapper's, and what their lines refer to.

use std::{
    fs::{File, OpenOptions},
    io,
    mem::offset_of,
    os::{
        fd::AsRawFd as _,
        unix::fs::{FileExt as _, OpenOptionsExt as _},
    },
    sync::Arc,
};

use bytemuck::AnyBitPattern;
use mpiprobe_common::{
    EndedThread, FlowKey, Layout, PhaseKey,
    file::{
        COMMUNICATORS_REGION, FLOWS_REGION, Header, LINES_REGION, NAMES_REGION, PHASES_REGION, RING_LINES, RINGS,
        RINGS_REGION, Region, TOPOLOGIES_REGION,
    },
    flow::Topology,
    trace::{Line, RingHead},
};

use super::{Referred, Rings, communicator};
use crate::{CommunicatorSnapshot, RecentSwitch, TableFile, TableFileError, ThreadSnapshot};

/// Those of one process image. As long as it lives, calls are written to them; then they may still be read.
#[derive(Debug)]
pub struct FileRings {
    file: File,
    tables: TableFile,
}

impl FileRings {
    /// Of a file that is the process's own: it is opened again, for reading and writing. Whoever has a lease on it is not waited for.
    pub fn of(tables: &TableFile) -> Result<Self, TableFileError> {
        let file = tables.file().ok_or(io::Error::from(io::ErrorKind::Unsupported))?;
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(link)?;
        Ok(Self { tables: TableFile::new(file.try_clone()?)?, file })
    }

    /// What has calls written.
    pub fn switch(&self) -> io::Result<RecentSwitch> {
        RecentSwitch::of_trace(&self.file)
    }

    /// What the process says of itself.
    pub fn header(&self) -> Result<Header, TableFileError> {
        self.tables.header()
    }

    /// What its lines refer to.
    pub fn referred(self: &Arc<Self>) -> FileReferred {
        FileReferred { rings: Arc::clone(self) }
    }

    fn entry<T: AnyBitPattern>(&self, region: Region<T>, index: u32) -> Option<T> {
        let mut bytes = vec![0; size_of::<T>()];
        self.file.read_exact_at(&mut bytes, region.at(index)?).ok()?;
        bytemuck::try_pod_read_unaligned(&bytes).ok()
    }
}

impl Rings for FileRings {
    fn count(&self) -> u32 {
        RINGS
    }

    fn lines(&self) -> u64 {
        RING_LINES.into()
    }

    fn heads(&self, to: &mut [u64]) -> io::Result<()> {
        let mut all = [0; RINGS as usize * size_of::<RingHead>()];
        self.file.read_exact_at(&mut all, RINGS_REGION.offset)?;
        let heads =
            all.chunks_exact(size_of::<RingHead>()).filter_map(|head| bytemuck::try_pod_read_unaligned(head).ok());
        for (to, head) in to.iter_mut().zip(heads) {
            let RingHead { head, .. } = head;
            *to = head;
        }
        Ok(())
    }

    fn read(&self, ring: u32, first: u64, to: &mut [Line]) -> io::Result<()> {
        let entry = u64::from(ring) * u64::from(RING_LINES) + first % u64::from(RING_LINES);
        let at =
            u32::try_from(entry).ok().and_then(|entry| LINES_REGION.at(entry)).ok_or(io::ErrorKind::InvalidInput)?;
        self.file.read_exact_at(bytemuck::cast_slice_mut(to), at)
    }

    fn set_tail(&self, ring: u32, tail: u64) -> io::Result<()> {
        let at = RINGS_REGION.at(ring).ok_or(io::ErrorKind::InvalidInput)?;
        self.file.write_all_at(&tail.to_ne_bytes(), at + offset_of!(RingHead, tail) as u64)
    }
}

/// What the lines of a process refer to, in its file.
#[derive(Debug)]
pub struct FileReferred {
    rings: Arc<FileRings>,
}

impl Referred for FileReferred {
    /// Each writes to the ring of its slot.
    fn has_threads_in_order(&self) -> bool {
        true
    }

    fn flow(&mut self, plus_1: u32) -> Option<FlowKey> {
        Some(self.rings.entry(FLOWS_REGION, plus_1.checked_sub(1)?)?.key)
    }

    fn communicator(&mut self, number: u32) -> Option<CommunicatorSnapshot> {
        let index = number.checked_sub(1)?;
        let (facts, name) = (self.rings.entry(COMMUNICATORS_REGION, index)?, self.rings.entry(NAMES_REGION, index)?);
        communicator(number, facts, &name)
    }

    fn communicators(&mut self) -> u32 {
        let mut used = [0; size_of::<u64>()];
        let is_read = self.rings.file.read_exact_at(&mut used, offset_of!(Header, communicators) as u64).is_ok();
        let used = if is_read { u64::from_ne_bytes(used) } else { 0 };
        u32::try_from(used).unwrap_or(u32::MAX).min(COMMUNICATORS_REGION.capacity)
    }

    fn topology(&mut self, plus_1: u32) -> Option<Topology> {
        self.rings.entry(TOPOLOGIES_REGION, plus_1.checked_sub(1)?)
    }

    fn communicator_of(&mut self, handle: u64) -> Option<u32> {
        self.rings.tables.communicator_of(handle)
    }

    fn layout(&mut self) -> Layout {
        self.rings.tables.layout().unwrap_or_default()
    }

    fn phase(&mut self, plus_1: u32) -> Option<PhaseKey> {
        self.rings.entry(PHASES_REGION, plus_1.checked_sub(1)?).map(|phase| phase.key)
    }

    fn threads(&mut self) -> Option<(Vec<ThreadSnapshot>, Vec<EndedThread>)> {
        self.rings.tables.all_threads().ok()
    }
}
