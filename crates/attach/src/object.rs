//! The embedded object: its tables by aya, its uprobe programs by our own hand.

use std::{
    collections::HashMap,
    fmt,
    num::NonZero,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd},
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use aya::{
    Ebpf, EbpfLoader,
    maps::{Map, MapData},
    programs::RawTracePoint,
};
use aya_log::EbpfLogger;
use aya_obj::Object;
use bytemuck::Pod;
use mpiprobe_common::{
    CALIBRATION_FUNCTION, CacheKey, Config, Descriptor,
    tables::{self, Indexed, KeyValue, Mapped, Ring, Stage, Table, sizes},
};
use mpiprobe_observe::{SharedArray, StatsReader};

use super::{
    AttachError, AttachMethod,
    hash_table::{HashTable, Plain},
    kernel::bpf,
    method::ProgramUse,
};

static OBJECT: &[u8] = aya::include_bytes_aligned!(env!("MPIPROBE_BPF_OBJECT"));

/// What is in a hash table.
type Entries<Kind> = Vec<(<Kind as KeyValue>::Key, <Kind as KeyValue>::Value)>;

/// What the programs say while they run.
enum Log {
    /// Nothing was read yet.
    Untouched,
    Read(Box<EbpfLogger<&'static dyn log::Log>>),
    /// Not asked for, or it cannot be read, which has been said.
    Off,
}

/// The tables in the kernel, and the programs that watch processes.
pub struct Tables {
    maps: Maps,
    log: Log,
    config: Config,
    linked: OnceLock<Linked>,
}

/// Who has made the tables.
enum Maps {
    Loaded(Box<Ebpf>),
    /// Another process, which has the programs.
    Given(HashMap<String, Map>),
}

impl Maps {
    fn get(&self, name: &str) -> Option<&Map> {
        match self {
            Self::Loaded(ebpf) => ebpf.map(name),
            Self::Given(maps) => maps.get(name),
        }
    }

    fn get_mut(&mut self, name: &str) -> Option<&mut Map> {
        match self {
            Self::Loaded(ebpf) => ebpf.map_mut(name),
            Self::Given(maps) => maps.get_mut(name),
        }
    }

    fn take(&mut self, name: &str) -> Option<Map> {
        match self {
            Self::Loaded(ebpf) => ebpf.take_map(name),
            Self::Given(maps) => maps.remove(name),
        }
    }

    /// What else was loaded with them; an error if that was another process.
    fn loaded(&mut self) -> Result<&mut Ebpf, AttachError> {
        match self {
            Self::Loaded(ebpf) => Ok(ebpf),
            Self::Given(_) => Err(AttachError::Missing { what: "program", name: "of this process" }),
        }
    }
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Tables {
    /// Makes the tables and fills in what is fixed.
    pub fn load(config: &Config) -> Result<Self, AttachError> {
        Self::load_by(EbpfLoader::new(), config)
    }

    /// The same by a loader that was made before, which takes as long as reading the kernel's types.
    pub(super) fn load_by(loader: EbpfLoader<'static>, config: &Config) -> Result<Self, AttachError> {
        let global = Plain(*config);
        // What it borrows lives as long as this function.
        let mut loader: EbpfLoader<'_> = loader;
        // Nothing in the object depends on the kernel's types.
        loader.btf(None).override_global("CONFIG", &global, true);
        for (name, size) in sizes(config) {
            loader.map_max_entries(name, size);
        }
        let ebpf = loader.load(OBJECT).map_err(|source| AttachError::Object { source: Box::new(source) })?;
        let log = if config.trace == 0 { Log::Off } else { Log::Untouched };
        let maps = Maps::Loaded(Box::new(ebpf));
        let mut tables = Self { maps, log, config: *config, linked: OnceLock::new() };
        tables.describe([(CALIBRATION_FUNCTION, Descriptor::EMPTY)])?;
        Ok(tables)
    }

    /// Those that another process has made, by their names.
    pub(crate) fn given(maps: HashMap<String, Map>, config: Config) -> Self {
        Self { maps: Maps::Given(maps), log: Log::Off, config, linked: OnceLock::new() }
    }

    /// All of them, by their names.
    pub(crate) fn descriptors(&self) -> Result<Vec<(&'static str, BorrowedFd<'_>)>, AttachError> {
        sizes(&self.config).map(|(name, _)| Ok((name, self.descriptor(name)?))).collect()
    }

    /// Tells the programs where each function's arguments stand.
    pub fn describe(&mut self, descriptors: impl IntoIterator<Item = (u32, Descriptor)>) -> Result<(), AttachError> {
        let descriptors: Vec<_> = descriptors.into_iter().collect();
        let keys = descriptors.iter().map(|(function, descriptor)| (*function, CacheKey::of(descriptor)));
        self.fill(tables::CACHE_KEYS, keys)?;
        self.fill(tables::DESCRIPTORS, descriptors.into_iter())
    }

    /// Writes elements of an array.
    pub(super) fn fill<Kind: Indexed>(
        &mut self,
        table: Table<Kind>,
        rows: impl Iterator<Item = (u32, Kind::Value)>,
    ) -> Result<(), AttachError>
    where
        Kind::Value: Pod,
    {
        let failed = |source: aya::maps::MapError| AttachError::Object { source: Box::new(source) };
        let map = self.map_mut(table.name)?;
        let mut array: aya::maps::Array<_, Plain<Kind::Value>> = map.try_into().map_err(failed)?;
        for (index, row) in rows {
            array.set(index, Plain(row), 0).map_err(failed)?;
        }
        Ok(())
    }

    /// Starts the programs that see processes exec and threads end, and members of a job start others.
    pub fn watch_processes(&mut self) -> Result<(), AttachError> {
        let forks = (self.config.job != 0).then_some(("process_fork", "sched_process_fork"));
        let always = [("thread_exit", "sched_process_exit"), ("process_exec", "sched_process_exec")];
        for (name, tracepoint) in forks.into_iter().chain(always) {
            let missing = AttachError::Missing { what: "program", name };
            let program: &mut RawTracePoint =
                self.maps.loaded()?.program_mut(name).and_then(|program| program.try_into().ok()).ok_or(missing)?;
            let failed = |source: aya::programs::ProgramError| AttachError::Object { source: Box::new(source) };
            program.load().map_err(failed)?;
            program.attach(tracepoint).map_err(failed)?;
        }
        Ok(())
    }

    /// Passes on what the programs have logged meanwhile.
    pub fn flush_log(&mut self) {
        // Not before: the reader takes its table away, which programs that are loaded need.
        if let (Log::Untouched, Ok(ebpf)) = (&self.log, self.maps.loaded()) {
            self.log = EbpfLogger::init(ebpf).map_or_else(
                |error| {
                    tracing::warn!("no log from inside the BPF programs: {error}");
                    Log::Off
                },
                |logger| Log::Read(Box::new(logger)),
            );
        }
        if let Log::Read(logger) = &mut self.log {
            logger.flush();
        }
    }

    /// What is fixed since they were made.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// A table's file descriptor.
    pub(super) fn fd<Kind>(&self, table: Table<Kind>) -> Result<BorrowedFd<'_>, AttachError> {
        self.descriptor(table.name)
    }

    fn descriptor(&self, name: &'static str) -> Result<BorrowedFd<'_>, AttachError> {
        let missing = AttachError::Missing { what: "table", name };
        let data = self.maps.get(name).and_then(data).ok_or(missing)?;
        Ok(data.fd().as_fd())
    }

    /// An array, mapped.
    pub(crate) fn mapped<V: Pod>(&self, table: Table<Mapped<V>>) -> Result<SharedArray<V>, AttachError> {
        let length = table.size(&self.config) as usize;
        let failed = |source| AttachError::Table { table: table.name, source };
        SharedArray::map(self.fd(table)?, length).map_err(failed)
    }

    /// A hash table, to be written.
    pub(super) fn hash<Kind: KeyValue>(
        &mut self,
        table: Table<Kind>,
    ) -> Result<HashTable<'_, Kind::Key, Kind::Value>, AttachError>
    where
        Kind::Key: Pod,
        Kind::Value: Pod,
    {
        HashTable::of(table.name, self.map_mut(table.name)?)
    }

    /// What is in a hash table.
    pub(super) fn entries<Kind: KeyValue>(&self, table: Table<Kind>) -> Result<Entries<Kind>, AttachError>
    where
        Kind::Key: Pod,
        Kind::Value: Pod,
    {
        let capacity = table.size(&self.config) as usize;
        bpf::read_hash(self.fd(table)?, capacity).map_err(|source| AttachError::Table { table: table.name, source })
    }

    /// A reader of the statistics.
    pub(crate) fn stats(&self) -> Result<StatsReader, AttachError> {
        Ok(StatsReader::new(self.mapped(tables::STATS_INDEX)?, self.mapped(tables::STATS)?))
    }

    /// A table for good, to be owned by its reader.
    pub(super) fn take(&mut self, table: Table<Ring>) -> Result<Map, AttachError> {
        self.maps.take(table.name).ok_or(AttachError::Missing { what: "table", name: table.name })
    }

    fn map_mut(&mut self, name: &'static str) -> Result<&mut Map, AttachError> {
        self.maps.get_mut(name).ok_or(AttachError::Missing { what: "table", name })
    }

    /// Loads a program that is run for every thread of the system.
    pub(super) fn load_iterator(&self, name: &'static str, function: u32) -> Result<OwnedFd, AttachError> {
        load(self.linked()?, name, bpf::ProgramKind::TaskIterator { function })
    }

    /// Loads the uprobe programs of one method, in the order in which they are to be attached, and the programs that they call at
    /// the end, which are told where those are. Verifying them is much of the time that an observation takes to begin, so it
    /// is done on all processors.
    pub(super) fn load_method(&self, method: AttachMethod, uses: &[ProgramUse]) -> Result<Vec<Program>, AttachError> {
        let linked = self.linked()?;
        let is_traced = self.config.rings != 0;
        let stages: Vec<Stage> = if self.config.traffic == 0 { Vec::new() } else { Stage::all(is_traced).collect() };
        let own = uses.iter().map(|usage| (usage.name, bpf::ProgramKind::Probe(usage.attach_type)));
        let called =
            stages.iter().map(|stage| (stage.program(is_traced), bpf::ProgramKind::Probe(method.return_attach_type())));
        let all: Vec<_> = own.chain(called).collect();
        let mut loaded = concurrently(&all, |&(name, kind)| load(linked, name, kind)).into_iter();
        let programs = uses.iter().zip(&mut loaded).map(|(&usage, fd)| Ok(Program { fd: fd?, usage })).collect();
        let table = tables::STAGES;
        for (&stage, program) in stages.iter().zip(loaded) {
            // The table holds them from now on.
            bpf::set_program(self.fd(table)?, stage as u32, program?.as_fd())
                .map_err(|source| AttachError::Table { table: table.name, source })?;
        }
        programs
    }

    /// Loads uprobe programs of one method, in the order in which they are to be attached.
    pub(super) fn load_programs(&self, uses: &[ProgramUse]) -> Result<Vec<Program>, AttachError> {
        uses.iter().map(|&usage| self.load_program(usage)).collect()
    }

    /// Loads one of them.
    pub(super) fn load_program(&self, usage: ProgramUse) -> Result<Program, AttachError> {
        Program::load(self.linked()?, usage)
    }

    /// Loads a program that may wait for memory.
    pub(super) fn load_sleeping(&self, usage: ProgramUse) -> Result<Program, AttachError> {
        let fd = load(self.linked()?, usage.name, bpf::ProgramKind::SleepingProbe(usage.attach_type))?;
        Ok(Program { fd, usage })
    }

    /// The object once more, its programs linked with the tables made before.
    fn linked(&self) -> Result<&Linked, AttachError> {
        if let Some(linked) = self.linked.get() {
            return Ok(linked);
        }
        let linked = self.link()?;
        Ok(self.linked.get_or_init(|| linked))
    }

    fn link(&self) -> Result<Linked, AttachError> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| AttachError::Object { source };
        let mut object = Object::parse(OBJECT).map_err(|error| failed(Box::new(error)))?;
        let text_sections = object.functions.keys().map(|(section, _)| *section).collect();
        let maps = object.maps.clone();
        let mut fds: HashMap<&str, i32> = HashMap::new();
        for name in maps.keys() {
            // Tables that were taken are used by none of these programs.
            let Some(map) = self.maps.get(name) else { continue };
            // One of an unknown kind must not be left out: its place in the programs would be given to another.
            let data = data(map).ok_or(AttachError::Missing { what: "table", name: "of a kind known" })?;
            fds.insert(name, data.fd().as_fd().as_raw_fd());
        }
        let located = maps.iter().filter_map(|(name, map)| Some((name.as_str(), *fds.get(name.as_str())?, map)));
        object.relocate_maps(located, &text_sections).map_err(|error| failed(Box::new(error)))?;
        object.relocate_calls(&text_sections).map_err(|error| failed(Box::new(error)))?;
        object.sanitize_functions(aya::features());
        let types = load_types(&mut object)
            .inspect_err(|error| tracing::info!("programs are verified as a whole, which takes long: {error}"));
        Ok(Linked { object, types: types.ok() })
    }
}

/// The object, its programs linked with the tables.
struct Linked {
    object: Object,
    /// Its types in the kernel.
    types: Option<OwnedFd>,
}

fn load_types(object: &mut Object) -> Result<OwnedFd, Box<dyn std::error::Error + Send + Sync>> {
    let features = aya::features().btf().ok_or("the kernel knows no types of programs")?;
    let types = object.fixup_and_sanitize_btf(features)?.ok_or("the object has no types")?;
    Ok(bpf::load_types(&types.to_bytes())?)
}

/// A loaded program.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) fd: OwnedFd,
    pub(super) usage: ProgramUse,
}

impl Program {
    fn load(linked: &Linked, usage: ProgramUse) -> Result<Self, AttachError> {
        let fd = load(linked, usage.name, bpf::ProgramKind::Probe(usage.attach_type))?;
        Ok(Self { fd, usage })
    }
}

/// What comes of each, in their order, worked out on as many threads as there are processors.
fn concurrently<T: Sync, R: Send>(all: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let some = || -> Vec<(usize, R)> {
        let mine = std::iter::from_fn(|| {
            let place = next.fetch_add(1, Ordering::Relaxed);
            Some((place, work(all.get(place)?)))
        });
        mine.collect()
    };
    let others = thread::available_parallelism().map_or(1, NonZero::get).min(all.len()).saturating_sub(1);
    let mut done = thread::scope(|scope| {
        // Where no further thread may be started, this one does it all.
        let started = (0..others).map_while(|_| thread::Builder::new().spawn_scoped(scope, some).ok());
        let threads: Vec<_> = started.collect();
        let mut done = some();
        for thread in threads {
            match thread.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

fn load(linked: &Linked, name: &'static str, kind: bpf::ProgramKind) -> Result<OwnedFd, AttachError> {
    let program = linked.object.programs.get(name);
    let code = program.and_then(|program| Some((program, linked.object.functions.get(&program.function_key())?)));
    let (program, function) = code.ok_or(AttachError::Missing { what: "program", name })?;
    let types = linked.types.as_ref().map(|types| (types.as_fd(), function.func_info.func_info.as_slice()));
    let code = bpf::Code { instructions: &function.instructions, license: &program.license, types };
    bpf::load_program(name, code, kind).map_err(|failure| AttachError::Program {
        name,
        source: failure.source,
        log: failure.log,
    })
}

fn data(map: &Map) -> Option<&MapData> {
    match map {
        Map::Array(data)
        | Map::HashMap(data)
        | Map::PerCpuArray(data)
        | Map::ProgramArray(data)
        | Map::RingBuf(data)
        | Map::Stack(data) => Some(data),
        _ => None,
    }
}

#[cfg(test)]
#[path = "object_tests.rs"]
mod tests;
