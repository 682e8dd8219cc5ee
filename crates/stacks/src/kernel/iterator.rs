//! Registers and stacks of many threads at once, by the BPF iterator of `probe-ebpf/src/stacks.rs`.

use std::{
    fs::File,
    io,
    os::fd::{AsFd as _, OwnedFd},
};

use aya::{
    Btf, Ebpf, EbpfLoader,
    maps::{Array, HashMap, Map, MapData, MapError},
    programs::{Iter, ProgramError},
};
use mpiprobe_common::stacks::{
    COPIED, ENDED, FS_BASE, HAS_REGISTERS, ID, MOST_RETURNS, PAGES, Page, REGISTERS, RETURNS, Record, SLOTS, STACK,
    STATE, WORDS, progress, register,
};

use super::fields;
use crate::{
    CaptureError,
    apart::{Looking, is_apart},
    copy::{Progress, Replaced, Stack},
    registers::Registers,
};

static OBJECT: &[u8] = aya::include_bytes_aligned!(env!("MPIPROBE_STACKS_OBJECT"));

/// The program in the kernel, and its tables.
pub(crate) struct Iterator {
    program: Loaded,
    records: Array<MapData, Record>,
    stacks: Array<MapData, Page>,
}

/// Who has loaded the program.
enum Loaded {
    Here(Box<Program>),
    /// Another process, which has the rights.
    Apart(Looking),
}

struct Program {
    ebpf: Ebpf,
    wanted: HashMap<MapData, u32, u32>,
    /// Of notes and of pages.
    tables: [OwnedFd; 2],
}

impl std::fmt::Debug for Iterator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Iterator").finish_non_exhaustive()
    }
}

/// One thread as the iterator has found it.
#[derive(Debug, Clone)]
pub(crate) struct CopiedThread {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    /// `None`: it is on its way out.
    pub(crate) registers: Option<Registers>,
    /// Of the system call that it is in.
    pub(crate) system_call: Option<u64>,
    pub(crate) stack: Stack,
    /// Return addresses that return probes have replaced on it.
    pub(crate) replaced: Replaced,
    /// The base of FS.
    pub(crate) thread_pointer: u64,
    pub(crate) state: u32,
    pub(crate) before: Progress,
    pub(crate) after: Progress,
    /// By the monotonic clock, ns.
    pub(crate) at_ns: u64,
}

impl Iterator {
    /// Threads that one run looks at.
    pub(crate) const MOST: usize = SLOTS as usize;

    pub(crate) fn load() -> Result<Self, CaptureError> {
        let failed = |error: MapError| CaptureError::Program(Box::new(error));
        if is_apart() {
            let (looking, tables) = Looking::load()?;
            let [records, stacks] = tables.map(|table| Map::from_map_data(MapData::from_fd(table)?));
            return Ok(Self {
                program: Loaded::Apart(looking),
                records: records.and_then(Array::try_from).map_err(failed)?,
                stacks: stacks.and_then(Array::try_from).map_err(failed)?,
            });
        }
        let fields = fields::read()?;
        let btf = Btf::from_sys_fs().map_err(|error| CaptureError::Program(Box::new(error)))?;
        let mut ebpf = EbpfLoader::new()
            .btf(None)
            .override_global("FIELDS", &fields, true)
            .load(OBJECT)
            .map_err(|error| CaptureError::Program(Box::new(error)))?;
        let program: &mut Iter = ebpf
            .program_mut("look")
            .and_then(|program| program.try_into().ok())
            .ok_or(CaptureError::Missing("program"))?;
        let refused = |error: ProgramError| CaptureError::Program(Box::new(error));
        program.load("task", &btf).map_err(refused)?;
        let mut take = |name| ebpf.take_map(name).ok_or(CaptureError::Missing("table"));
        let (wanted, records, stacks) = (take("WANTED")?, take("RECORDS")?, take("STACKS")?);
        let wanted = HashMap::try_from(wanted).map_err(failed)?;
        let tables = [descriptor(&records)?, descriptor(&stacks)?];
        Ok(Self {
            program: Loaded::Here(Box::new(Program { ebpf, wanted, tables })),
            records: Array::try_from(records).map_err(failed)?,
            stacks: Array::try_from(stacks).map_err(failed)?,
        })
    }

    /// Its tables of notes and of pages.
    pub(crate) fn descriptors(&self) -> io::Result<Vec<OwnedFd>> {
        match &self.program {
            Loaded::Here(own) => own.tables.iter().map(OwnedFd::try_clone).collect(),
            Loaded::Apart(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Looks at threads, at most [`Self::MOST`] of them; those that are no longer there are missing in the answer.
    pub(crate) fn look(&mut self, threads: &[u32]) -> Result<Vec<CopiedThread>, CaptureError> {
        let failed = |error: MapError| CaptureError::Program(Box::new(error));
        let threads = threads.get(..Self::MOST).unwrap_or(threads);
        let wanted: Vec<Option<u32>> = threads.iter().copied().map(Some).collect();
        self.note(&wanted)?;
        let mut found = Vec::with_capacity(threads.len());
        for (slot, tid) in (0..).zip(threads) {
            let record = self.records.get(&slot, 0).map_err(failed)?;
            if u32::try_from(record[ID] & 0xffff_ffff) == Ok(*tid) {
                found.push(self.found(slot, &record)?);
            }
        }
        Ok(found)
    }

    /// Notes what these threads do, each at its place; at most [`Self::MOST`] of them.
    pub(crate) fn note(&mut self, threads: &[Option<u32>]) -> Result<(), CaptureError> {
        let failed = |error: MapError| CaptureError::Program(Box::new(error));
        let own = match &mut self.program {
            Loaded::Here(own) => own,
            Loaded::Apart(looking) => {
                return looking.look(&threads.iter().flatten().copied().collect::<Vec<u32>>());
            }
        };
        let threads = threads.get(..Self::MOST).unwrap_or(threads);
        for (slot, tid) in (0..).zip(threads) {
            self.records.set(slot, [0; WORDS], 0).map_err(failed)?;
            if let Some(tid) = tid {
                own.wanted.insert(tid, slot, 0).map_err(failed)?;
            }
        }
        let run = own.run();
        for tid in threads.iter().flatten() {
            // One that is wanted and not there is looked for in vain the next time, too.
            let _ = own.wanted.remove(tid);
        }
        run
    }

    fn found(&self, slot: u32, record: &Record) -> Result<CopiedThread, CaptureError> {
        let word = |place: usize| record.get(place).copied().unwrap_or(0);
        let progress = |place: usize| Progress {
            voluntary: word(place + progress::VOLUNTARY),
            involuntary: word(place + progress::INVOLUNTARY),
            run_ns: word(place + progress::RUN_NS),
            on_cpu: word(place + progress::ON_CPU) != 0,
        };
        let mut bytes = Vec::new();
        for page in 0..u32::try_from(word(COPIED)).unwrap_or(0).min(PAGES) {
            let page = self.stacks.get(&(slot * PAGES + page), 0);
            let page = page.map_err(|error| CaptureError::Program(Box::new(error)))?;
            bytes.extend(page.iter().flat_map(|word| word.to_le_bytes()));
        }
        let returns = (RETURNS..).step_by(2).take(MOST_RETURNS).map(|place| (word(place), word(place + 1)));
        let replaced = Replaced(returns.take_while(|(address, _)| *address != 0).collect());
        let mut stack = Stack::new(word(STACK), bytes);
        replaced.put_back(&mut stack);
        let registers = (word(HAS_REGISTERS) != 0).then(|| registers(|place| word(REGISTERS + place)));
        let system_call = word(REGISTERS + register::ORIGINAL_AX);
        Ok(CopiedThread {
            pid: u32::try_from(word(ID) >> 32).unwrap_or(0),
            tid: u32::try_from(word(ID) & 0xffff_ffff).unwrap_or(0),
            registers,
            // Negative when the kernel was entered otherwise.
            system_call: (registers.is_some() && system_call.cast_signed() >= 0).then_some(system_call),
            stack,
            replaced,
            thread_pointer: word(FS_BASE),
            state: u32::try_from(word(STATE)).unwrap_or(0),
            before: progress(mpiprobe_common::stacks::BEFORE),
            after: progress(mpiprobe_common::stacks::AFTER),
            at_ns: word(ENDED),
        })
    }
}

impl Program {
    /// Reading makes the kernel run the program for every thread; it writes nothing into the file itself.
    fn run(&mut self) -> Result<(), CaptureError> {
        let program: &mut Iter = self
            .ebpf
            .program_mut("look")
            .and_then(|program| program.try_into().ok())
            .ok_or(CaptureError::Missing("program"))?;
        let link = program.attach().and_then(|link| program.take_link(link));
        let link = link.map_err(|error| CaptureError::Program(Box::new(error)))?;
        let mut file: File = link.into_file().map_err(|error| CaptureError::Program(Box::new(error)))?;
        io::copy(&mut file, &mut io::sink()).map(|_| ()).map_err(CaptureError::Run)
    }
}

fn descriptor(table: &Map) -> Result<OwnedFd, CaptureError> {
    match table {
        Map::Array(data) => data.fd().as_fd().try_clone_to_owned().map_err(CaptureError::Run),
        _ => Err(CaptureError::Missing("table")),
    }
}

/// From the kernel's order to that of DWARF.
pub(super) fn registers(word: impl Fn(usize) -> u64) -> Registers {
    use register::{AX, BP, BX, CX, DI, DX, IP, R8, R9, R10, R11, R12, R13, R14, R15, SI, SP};
    Registers::new([AX, DX, CX, BX, SI, DI, BP, SP, R8, R9, R10, R11, R12, R13, R14, R15, IP].map(word))
}
