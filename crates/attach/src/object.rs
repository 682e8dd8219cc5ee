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
    maps::{Array, Map, MapData},
    programs::RawTracePoint,
};
use aya_log::EbpfLogger;
use aya_obj::Object;
use bytemuck::Pod;
use mpiprobe_common::{
    CALIBRATION_FUNCTION, CacheKey, Config, Descriptor, FUNCTION_SLOTS, JOB_MEMBERS, LIBRARIES, LIBRARY_PROBES,
    config::{
        STAGE_ATTRIBUTE, STAGE_FOLLOW, STAGE_FOLLOW_ANY, STAGE_LOOK, STAGE_MEASURE, STAGE_POST, STAGE_PREPARE,
        STAGE_RELATE, STAGE_SETTLE, STAGE_START, STAGE_SUM,
    },
    layer::LAYER_CALLS,
    recent::RECENT_CALLS,
};
use mpiprobe_observe::{SharedArray, StatsReader};

use super::{AttachError, AttachMethod, kernel::bpf, method::ProgramUse, pod::Plain};

static OBJECT: &[u8] = aya::include_bytes_aligned!(env!("MPIPROBE_BPF_OBJECT"));

/// The programs that are called by others, and where these look for them.
const STAGES: [(&str, u32); 11] = [
    ("attribute", STAGE_ATTRIBUTE),
    ("prepare", STAGE_PREPARE),
    ("relate", STAGE_RELATE),
    ("look", STAGE_LOOK),
    ("measure", STAGE_MEASURE),
    ("sum", STAGE_SUM),
    ("post", STAGE_POST),
    ("settle", STAGE_SETTLE),
    ("follow", STAGE_FOLLOW),
    ("follow_any", STAGE_FOLLOW_ANY),
    ("start", STAGE_START),
];

/// Sizes and switches that are fixed at load.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    pub config: Config,
    /// Calls of language layers are to be told from the program's, or charged to it.
    pub layers: bool,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self { config: Config::DEFAULT, layers: false }
    }
}

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
    ebpf: Ebpf,
    log: Log,
    options: LoadOptions,
    linked: OnceLock<Linked>,
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Tables {
    /// Makes the tables and fills in what is fixed.
    pub fn load(options: &LoadOptions) -> Result<Self, AttachError> {
        Self::load_by(EbpfLoader::new(), options)
    }

    /// The same by a loader that was made before, which takes as long as reading the kernel's types.
    pub(super) fn load_by(loader: EbpfLoader<'static>, options: &LoadOptions) -> Result<Self, AttachError> {
        let config = Plain(options.config);
        let slots = options.config.process_slots;
        let threads = options.config.thread_slots;
        let rings = if options.config.recent == 0 { 1 } else { slots };
        // What it borrows lives as long as this function.
        let mut loader: EbpfLoader<'_> = loader;
        let ebpf = loader
            // Nothing in the object depends on the kernel's types.
            .btf(None)
            .override_global("CONFIG", &config, true)
            .map_max_entries("TARGETS", slots)
            .map_max_entries("PROCESSES", slots)
            .map_max_entries("JOB", if options.config.job == 0 { 1 } else { JOB_MEMBERS })
            .map_max_entries("STATS_INDEX", options.config.stats_rows().saturating_mul(FUNCTION_SLOTS))
            .map_max_entries("STATS", options.config.stats_entries)
            .map_max_entries("INNER", options.config.stats_entries)
            .map_max_entries("THREADS", threads)
            .map_max_entries("THREAD_SLOT", threads)
            .map_max_entries("FREE_SLOTS", threads)
            .map_max_entries("TOOL_FRAMES", threads)
            .map_max_entries("TOOL_STATS", options.config.stats_entries)
            .map_max_entries("TOOL_CALLS", options.config.stats_entries)
            .map_max_entries("LAYOUTS", slots)
            .map_max_entries("LAYERS", slots)
            .map_max_entries("LAYER_FRAMES", if options.layers { LAYER_CALLS } else { 1 })
            .map_max_entries("LIBRARIES", if options.config.traffic == 0 { 1 } else { LIBRARIES })
            .map_max_entries("LIBRARY_OF", if options.config.traffic == 0 { 1 } else { LIBRARY_PROBES })
            .map_max_entries("COMMUNICATORS", options.config.communicator_slots)
            .map_max_entries("COMMUNICATOR_OF", options.config.communicator_slots)
            .map_max_entries("REQUESTS", options.config.request_slots)
            .map_max_entries("HANDLES", options.config.handle_stores)
            .map_max_entries("CALL_CACHES", options.config.call_cache_slots)
            .map_max_entries("COMMUNICATOR_NAMES", options.config.communicator_slots)
            .map_max_entries("SCOPES", options.config.communicator_slots)
            .map_max_entries("ORIGINS", options.config.communicator_slots)
            .map_max_entries("SHARED_NUMBERS", options.config.communicator_slots)
            .map_max_entries("RECENT", rings.saturating_mul(RECENT_CALLS))
            .map_max_entries("FLOWS", options.config.flow_slots)
            .map_max_entries("FLOW_OF", options.config.flow_slots)
            .load(OBJECT)
            .map_err(|source| AttachError::Object { source: Box::new(source) })?;
        let log = if options.config.trace == 0 { Log::Off } else { Log::Untouched };
        let mut tables = Self { ebpf, log, options: options.clone(), linked: OnceLock::new() };
        tables.describe([(CALIBRATION_FUNCTION, Descriptor::EMPTY)])?;
        Ok(tables)
    }

    /// Tells the programs where each function's arguments stand.
    pub fn describe(&mut self, descriptors: impl IntoIterator<Item = (u32, Descriptor)>) -> Result<(), AttachError> {
        let descriptors: Vec<_> = descriptors.into_iter().collect();
        let keys = descriptors.iter().map(|&(function, descriptor)| (function, Plain(CacheKey::of(&descriptor))));
        self.fill("CACHE_KEYS", keys)?;
        self.fill("DESCRIPTORS", descriptors.into_iter().map(|(function, descriptor)| (function, Plain(descriptor))))
    }

    pub(super) fn fill<T: aya::Pod>(
        &mut self,
        name: &'static str,
        rows: impl Iterator<Item = (u32, T)>,
    ) -> Result<(), AttachError> {
        let failed = |source: aya::maps::MapError| AttachError::Object { source: Box::new(source) };
        let mut table: Array<_, T> = Array::try_from(self.map_mut(name)?).map_err(failed)?;
        for (index, row) in rows {
            table.set(index, row, 0).map_err(failed)?;
        }
        Ok(())
    }

    /// Starts the programs that see processes exec and threads end, and members of a job start others.
    pub fn watch_processes(&mut self) -> Result<(), AttachError> {
        let forks = (self.options.config.job != 0).then_some(("process_fork", "sched_process_fork"));
        let always = [("thread_exit", "sched_process_exit"), ("process_exec", "sched_process_exec")];
        for (name, tracepoint) in forks.into_iter().chain(always) {
            let missing = AttachError::Missing { what: "program", name };
            let program: &mut RawTracePoint =
                self.ebpf.program_mut(name).and_then(|program| program.try_into().ok()).ok_or(missing)?;
            let failed = |source: aya::programs::ProgramError| AttachError::Object { source: Box::new(source) };
            program.load().map_err(failed)?;
            program.attach(tracepoint).map_err(failed)?;
        }
        Ok(())
    }

    /// Passes on what the programs have logged meanwhile.
    pub fn flush_log(&mut self) {
        // Not before: the reader takes its table away, which programs that are loaded need.
        if matches!(self.log, Log::Untouched) {
            self.log = EbpfLogger::init(&mut self.ebpf).map_or_else(
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

    pub fn options(&self) -> &LoadOptions {
        &self.options
    }

    /// A table, to be read or mapped.
    pub fn table(&self, name: &'static str) -> Result<&MapData, AttachError> {
        let map = self.ebpf.map(name).ok_or(AttachError::Missing { what: "table", name })?;
        data(map).ok_or(AttachError::Missing { what: "table", name })
    }

    /// A table's file descriptor.
    pub fn table_fd(&self, name: &'static str) -> Result<BorrowedFd<'_>, AttachError> {
        Ok(self.table(name)?.fd().as_fd())
    }

    /// A table of `length` values, mapped.
    pub(crate) fn mapped<T: Pod>(&self, table: &'static str, length: usize) -> Result<SharedArray<T>, AttachError> {
        SharedArray::map(self.table_fd(table)?, length).map_err(|source| AttachError::Table { table, source })
    }

    /// A reader of the statistics.
    pub(crate) fn stats(&self) -> Result<StatsReader, AttachError> {
        let config = &self.options.config;
        let slots = config.stats_rows() as usize * FUNCTION_SLOTS as usize;
        let stats = self.mapped("STATS", config.stats_entries as usize)?;
        Ok(StatsReader::new(self.mapped("STATS_INDEX", slots)?, stats))
    }

    /// A table for good, to be owned by its reader.
    pub fn take(&mut self, name: &'static str) -> Result<Map, AttachError> {
        self.ebpf.take_map(name).ok_or(AttachError::Missing { what: "table", name })
    }

    pub(super) fn map_mut(&mut self, name: &'static str) -> Result<&mut Map, AttachError> {
        self.ebpf.map_mut(name).ok_or(AttachError::Missing { what: "table", name })
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
        let stages = if self.options.config.traffic == 0 { &[][..] } else { &STAGES[..] };
        let own = uses.iter().map(|usage| (usage.name, bpf::ProgramKind::Probe(usage.attach_type)));
        let called = stages.iter().map(|&(name, _)| (name, bpf::ProgramKind::Probe(method.return_attach_type())));
        let all: Vec<_> = own.chain(called).collect();
        let mut loaded = concurrently(&all, |&(name, kind)| load(linked, name, kind)).into_iter();
        let programs = uses.iter().zip(&mut loaded).map(|(&usage, fd)| Ok(Program { fd: fd?, usage })).collect();
        let table = "STAGES";
        for (&(_, index), program) in stages.iter().zip(loaded) {
            // The table holds them from now on.
            bpf::set_program(self.table_fd(table)?, index, program?.as_fd())
                .map_err(|source| AttachError::Table { table, source })?;
        }
        programs
    }

    /// Loads uprobe programs of one method, in the order in which they are to be attached.
    pub(super) fn load_programs(&self, uses: &[ProgramUse]) -> Result<Vec<Program>, AttachError> {
        let linked = self.linked()?;
        uses.iter().map(|&usage| Program::load(linked, usage)).collect()
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
            let Some(map) = self.ebpf.map(name) else { continue };
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
