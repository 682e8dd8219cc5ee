//! A file in which the wrapper keeps the tables of one process image.
//!
//! It belongs to another process, which writes to it and may cut it short at any time: so it is read, not mapped, each read is
//! checked against what the file may contain, and numbers in it are believed only within limits.

use std::{
    collections::{BTreeMap, HashMap},
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
    CALIBRATION_FUNCTION, Communicator, CommunicatorKey, EndedThread, Flow, FlowKey, FunctionStats, Layout,
    ProcessCounters, Request, ThreadState,
    file::{
        CODE_REGION, COMMUNICATORS_REGION, COUNTERS_REGION, ENDED_THREADS_REGION, FILE_SIZE, FINGERPRINT, FLOWS_REGION,
        FollowedRequest, Header, LAYOUT_REGION, MAGIC, NAMES_REGION, OFF_REGION, OWNERS_REGION, PHASES_REGION,
        RECENT_REGION, REQUESTS_REGION, Region, STATS_REGION, THREADS_REGION, VERSION,
    },
    flow::peer,
    request::{key_kind, state},
};
use mpiprobe_discover::ForeignFile;
use mpiprobe_functions::fingerprint;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use thiserror::Error;

use super::{
    ByFunction, CommunicatorSnapshot, PendingRequest, PhaseSnapshot, ProcessSnapshot, RecentRing, RecentSwitch,
    ThreadSnapshot, ToolsSnapshot, alive, by_end,
};

/// What room is given back in, bytes.
const PAGE: usize = 4096;

/// How often a thread's state is read again if it changed while it was copied.
const TORN_ATTEMPTS: usize = 4;

/// Why a file is of no use.
#[derive(Debug, Error)]
pub enum TableFileError {
    #[error("it is still being made")]
    Unfinished,
    #[error("it is no file of the wrapper's")]
    Foreign,
    #[error("it was written by a wrapper of another version; use the mpiprobe that the wrapper came with")]
    OtherVersion,
    #[error("it ends too soon")]
    Short,
    #[error(
        "it belongs to user {0}, who may have written anything into it; report --any-owner takes it in all the same"
    )]
    OtherOwner(u32),
    #[error("it says that it is of process {0}, which is another one, or another user's")]
    OtherProcess(u32),
    #[error(transparent)]
    Read(#[from] io::Error),
}

/// The tables of one process image.
#[derive(Debug)]
pub struct TableFile {
    file: ForeignFile,
}

impl TableFile {
    /// Takes an open file, if this version can read it.
    pub fn new(file: impl Into<ForeignFile>) -> Result<Self, TableFileError> {
        let tables = Self { file: file.into() };
        tables.header()?;
        Ok(tables)
    }

    /// Who the process is.
    pub fn header(&self) -> Result<Header, TableFileError> {
        // Before its size, which another version's may have different.
        let start = self.bytes(0, offset_of!(Header, functions) + size_of::<u64>())?;
        let word = |at: usize| start.get(at..at + 8).and_then(|word| Some(u64::from_ne_bytes(word.try_into().ok()?)));
        match word(offset_of!(Header, magic)) {
            Some(MAGIC) => {}
            Some(0) => return Err(TableFileError::Unfinished),
            _ => return Err(TableFileError::Foreign),
        }
        // Version and the header's size are one word.
        let version = u64::from(VERSION) | (size_of::<Header>() as u64) << 32;
        let expected = [
            (offset_of!(Header, version), version),
            (offset_of!(Header, fingerprint), FINGERPRINT),
            (offset_of!(Header, functions), fingerprint()),
        ];
        if expected.iter().any(|&(at, value)| word(at) != Some(value)) {
            return Err(TableFileError::OtherVersion);
        }
        let bytes = self.bytes(0, size_of::<Header>())?;
        value(&bytes).ok_or(TableFileError::Short)
    }

    /// Everything that was counted up to now, as of process slot `process`.
    pub fn snapshot(&self, process: u32) -> Result<ProcessSnapshot, TableFileError> {
        let header = self.header()?;
        // In this order: what a thread has done is added to its process, then written down, and then it is forgotten.
        let threads = self.threads(header.threads, process)?;
        let ended_threads = by_end(self.ended_threads()?);
        let counters = self.counters(header.threads)?;
        let (functions, phases) = self.functions(header.stats)?;
        Ok(ProcessSnapshot {
            process,
            counters,
            functions,
            phases,
            threads: alive(threads, &ended_threads),
            ended_threads,
            layout: self.layout()?,
            communicators: self.communicators(header.communicators, process)?,
            requests: self.requests(header.flows)?,
            flows: self.flows(header.flows, process)?,
            datatypes: Vec::new(),
            awaited: Vec::new(),
            windows: Vec::new(),
            groups: Vec::new(),
            inner: Vec::new(),
            recent: None,
            began_before: None,
            tools: ToolsSnapshot::default(),
        })
    }

    /// What the last calls were, as far as they have been written down.
    pub fn recent_ring(&self) -> Result<RecentRing, TableFileError> {
        let copy = || self.entries(RECENT_REGION, RECENT_REGION.capacity.into());
        let first = copy()?;
        Ok(RecentRing::of(first, &copy()?))
    }

    /// How many calls have been written down.
    pub fn recent_calls_numbered(&self) -> Result<u64, TableFileError> {
        let place = COUNTERS_REGION.offset + offset_of!(ProcessCounters, recent_calls) as u64;
        let bytes = self.bytes(place, size_of::<u64>())?;
        bytes.try_into().map(u64::from_ne_bytes).map_err(|_| TableFileError::Short)
    }

    /// What has them written down.
    pub fn recent_switch(&self) -> io::Result<RecentSwitch> {
        RecentSwitch::of(self.file.here().ok_or(io::ErrorKind::Unsupported)?)
    }

    /// The file itself, if nobody else has it.
    pub(crate) fn file(&self) -> Option<&File> {
        self.file.here()
    }

    /// Threads that live, and those that have ended.
    pub(crate) fn all_threads(&self) -> Result<(Vec<ThreadSnapshot>, Vec<EndedThread>), TableFileError> {
        let threads = self.threads(self.header()?.threads, 0)?;
        let ended = by_end(self.ended_threads()?);
        Ok((alive(threads, &ended), ended))
    }

    /// The number of the communicator that a handle means now.
    pub(crate) fn communicator_of(&self, handle: u64) -> Option<u32> {
        let used = self.header().ok()?.communicators;
        let entries = self.entries(COMMUNICATORS_REGION, used).ok()?;
        let is_it = |known: &Communicator| known.first_ns != 0 && known.freed_ns == 0 && known.key.handle == handle;
        (1..).zip(&entries).find(|(_, known)| is_it(known)).map(|(number, _)| number)
    }

    /// The special values of the process's MPI library; zeroed where they are not known.
    pub(crate) fn layout(&self) -> Result<Layout, TableFileError> {
        Ok(self.entries(LAYOUT_REGION, 1)?.first().copied().unwrap_or_default())
    }

    /// Gives pages back in which there is nothing: the wrapper asks for room before it knows whether it will need it. Only for tables that
    /// nobody writes to any more.
    pub fn give_room_back(&self) -> io::Result<()> {
        let link = format!("/proc/self/fd/{}", self.file.here().ok_or(io::ErrorKind::Unsupported)?.as_raw_fd());
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(link)?;
        let mut page = vec![0; PAGE];
        let mut offset = 0;
        while let Ok(data) = seek(&file, SeekFrom::Data(offset)) {
            // What another process has cut short ends here.
            let Ok(length) = file.read_at(&mut page, data) else { break };
            if length == 0 {
                break;
            }
            if page.iter().take(length).all(|&byte| byte == 0) {
                fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, data, length as u64)?;
            }
            offset = data.saturating_add(length as u64);
            if offset >= FILE_SIZE {
                break;
            }
        }
        Ok(())
    }

    /// Who owns it.
    pub fn owner(&self) -> io::Result<u32> {
        Ok(self.file.state()?.owner)
    }

    /// What the process has mapped where, as it has noted it: lines of `/proc/PID/maps`.
    pub fn code(&self) -> Result<Vec<u8>, TableFileError> {
        self.table(CODE_REGION, self.header()?.code)
    }

    /// When the program asked last for what was counted to be written out, ns; 0: it has not.
    pub fn flushed_ns(&self) -> Result<u64, TableFileError> {
        Ok(self.counters(0)?.flushed_ns)
    }

    fn counters(&self, threads: u64) -> Result<ProcessCounters, TableFileError> {
        let bytes = self.bytes(COUNTERS_REGION.offset, size_of::<ProcessCounters>())?;
        let counters: ProcessCounters = value(&bytes).ok_or(TableFileError::Short)?;
        let off = self.entries(OFF_REGION, threads)?;
        let calls_off = off.iter().fold(0, |sum: u64, thread| sum.saturating_add(thread.calls));
        Ok(ProcessCounters { calls_off, ..counters })
    }

    /// Sums over thread slots, by function id: in all phases and none, and in each phase.
    fn functions(&self, used: u64) -> Result<(ByFunction, Vec<PhaseSnapshot>), TableFileError> {
        let owners = self.entries(OWNERS_REGION, used)?;
        let stats = self.entries(STATS_REGION, used)?;
        let mut sums: BTreeMap<u32, FunctionStats> = BTreeMap::new();
        let mut by_phase: BTreeMap<u32, BTreeMap<u32, FunctionStats>> = BTreeMap::new();
        for (owner, entry) in owners.iter().zip(stats) {
            let entry = &entry.with_numbers();
            let Some(function) = owner.function_plus_1.checked_sub(1) else { continue };
            // A request's data may arrive in another phase than the call was made in.
            if !entry.is_empty() {
                sums.entry(function).or_insert(FunctionStats::ZERO).merge(entry);
                let of_phase = by_phase.entry(owner.phase_plus_1).or_default();
                of_phase.entry(function).or_insert(FunctionStats::ZERO).merge(entry);
            }
        }
        let phases = if by_phase.keys().any(|&phase_plus_1| phase_plus_1 != 0) || self.has_phases()? {
            self.entries(PHASES_REGION, PHASES_REGION.capacity.into())?
        } else {
            Vec::new()
        };
        let opened = (1..).zip(phases).filter(|(_, phase)| phase.opened > 0);
        let snapshot = |(phase_plus_1, phase)| PhaseSnapshot {
            phase,
            functions: shared(by_phase.remove(&phase_plus_1).unwrap_or_default()),
        };
        Ok((shared(sums), opened.map(snapshot).collect()))
    }

    /// Whether a phase was ever opened.
    fn has_phases(&self) -> Result<bool, TableFileError> {
        Ok(self.entries(PHASES_REGION, 1)?.iter().any(|phase| phase.opened > 0))
    }

    /// Sums over thread slots, of those that have carried anything.
    fn flows(&self, used: u64, process: u32) -> Result<Vec<Flow>, TableFileError> {
        let mut sums: HashMap<FlowKey, Flow> = HashMap::new();
        let flows = self.entries(FLOWS_REGION, used)?.into_iter();
        for flow in flows.filter(|flow| u32::from(flow.key.function) != CALIBRATION_FUNCTION) {
            let key = FlowKey { process, ..flow.key };
            sums.entry(key).or_insert(Flow { key, ..Flow::default() }).merge(&flow);
        }
        Ok(sums.into_values().filter(|flow| flow.calls > 0).collect())
    }

    /// By number.
    fn communicators(&self, used: u64, process: u32) -> Result<Vec<CommunicatorSnapshot>, TableFileError> {
        let entries = self.entries(COMMUNICATORS_REGION, used)?;
        let names = self.entries(NAMES_REGION, used)?;
        let known = (1..).zip(entries.into_iter().zip(names)).filter(|(_, (entry, _))| entry.first_ns != 0);
        let of_process = |entry: Communicator| Communicator { key: CommunicatorKey { process, ..entry.key }, ..entry };
        let snapshot = |(number, (entry, name))| CommunicatorSnapshot {
            number,
            facts: of_process(entry),
            name: CommunicatorSnapshot::name_of(&name),
            ..CommunicatorSnapshot::default()
        };
        Ok(fitting(known.map(snapshot).collect()))
    }

    /// Operations under way.
    fn requests(&self, flows: u64) -> Result<Vec<PendingRequest>, TableFileError> {
        let flows = self.entries(FLOWS_REGION, flows)?;
        let peer = |request: &Request| {
            let flow = request.receiving_flow_plus_1().checked_sub(1).and_then(|index| flows.get(index as usize));
            flow.map_or(peer::UNKNOWN, |flow| flow.key.peer)
        };
        let entries = self.entries(REQUESTS_REGION, REQUESTS_REGION.capacity.into())?;
        let is_operation =
            |entry: &FollowedRequest| entry.key.kind == key_kind::REQUEST && entry.request.state & state::ACTIVE != 0;
        let pending = entries.into_iter().filter(is_operation);
        let row = |entry: FollowedRequest| PendingRequest {
            peer: peer(&entry.request),
            request: entry.request,
            handle: entry.key.handle,
        };
        Ok(fitting(pending.map(row).collect()))
    }

    fn threads(&self, used: u64, process: u32) -> Result<Vec<ThreadSnapshot>, TableFileError> {
        let mut threads = Vec::new();
        for slot in 0..u32::try_from(used).unwrap_or(u32::MAX).min(THREADS_REGION.capacity) {
            let Some(mut state) = self.thread(slot)? else { continue };
            let Ok(tid) = u32::try_from(state.id & u64::from(u32::MAX)) else { continue };
            state.process = process;
            threads.push(ThreadSnapshot { tid, slot: slot as usize, state });
        }
        threads.sort_unstable_by_key(|thread| thread.tid);
        Ok(threads)
    }

    /// In the order of their places.
    fn ended_threads(&self) -> Result<Vec<EndedThread>, TableFileError> {
        let copy = || self.entries(ENDED_THREADS_REGION, ENDED_THREADS_REGION.capacity.into());
        // What was whole in the first copy is so in the second one.
        let whole: Vec<bool> = copy()?.iter().map(|thread| thread.ended_ns != 0).collect();
        let ended = copy()?.into_iter().zip(whole).filter_map(|(thread, is_whole)| is_whole.then_some(thread));
        Ok(fitting(ended.collect()))
    }

    /// The state of the thread in a slot; `None` if the slot is free.
    fn thread(&self, slot: u32) -> Result<Option<ThreadState>, TableFileError> {
        let Some(offset) = THREADS_REGION.at(slot) else { return Ok(None) };
        let mut last = None;
        for _ in 0..TORN_ATTEMPTS {
            let bytes = self.bytes(offset, size_of::<ThreadState>())?;
            let state: ThreadState = value(&bytes).ok_or(TableFileError::Short)?;
            let sequence = self.bytes(offset + offset_of!(ThreadState, sequence) as u64, size_of::<u64>())?;
            let is_whole = state.is_settled() && sequence == state.sequence.to_ne_bytes();
            last = Some(state);
            if is_whole {
                break;
            }
        }
        // A torn copy is better than none: what may be wrong in it is the open call, for the blink of an eye.
        Ok(last.filter(|state| state.id != 0))
    }

    /// The first `used` entries of a table, at most all of them.
    fn entries<T: AnyBitPattern>(&self, region: Region<T>, used: u64) -> Result<Vec<T>, TableFileError> {
        let bytes = self.table(region, used)?;
        Ok(bytes.chunks_exact(size_of::<T>()).filter_map(value).collect())
    }

    /// The same, in one piece.
    fn table<T>(&self, region: Region<T>, used: u64) -> Result<Vec<u8>, TableFileError> {
        let entries = used.min(u64::from(region.capacity));
        self.bytes(region.offset, usize::try_from(entries * Region::<T>::ENTRY).unwrap_or(0))
    }

    fn bytes(&self, offset: u64, length: usize) -> Result<Vec<u8>, TableFileError> {
        let mut bytes = vec![0; length];
        match self.file.read_exact_at(&mut bytes, offset) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(TableFileError::Short),
            Err(error) => Err(error.into()),
        }
    }
}

/// A vector in the room that it needs: what most of another one was left out of keeps the room of all.
fn fitting<T>(mut entries: Vec<T>) -> Vec<T> {
    entries.shrink_to_fit();
    entries
}

fn shared(sums: BTreeMap<u32, FunctionStats>) -> ByFunction {
    sums.into_iter().map(|(function, stats)| (function, Arc::new(stats))).collect()
}
/// The value that these bytes are, wherever they lie; `None` if they are of another number.
fn value<T: AnyBitPattern>(bytes: &[u8]) -> Option<T> {
    bytemuck::try_pod_read_unaligned(bytes).ok()
}
