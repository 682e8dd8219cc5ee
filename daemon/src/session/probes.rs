//! Probes on the MPI libraries of targets: each file once, whatever number of processes map it.

use std::{collections::HashMap, fs::File, io, os::fd::AsFd as _, path::Path, time::Instant};

use mpiprobe_functions::{FunctionId, FunctionSet};
use thiserror::Error;

use super::code::compare_code;
use crate::{
    attach::{AttachError, Attachment, Engine, ProbeSite, Scope},
    discover::{
        MpiLibrary, MpiProcess, Process, ProcessError, identity_when_mapped, mappings::FileId, open_mapped,
        open_mapped::OpenMappedError,
    },
    model::{LibraryInfo, SlowSite},
    observe::monotonic_ns,
    plan::{
        Difference, ElfError, Implementation, Library, Plan, PlannedFunction, ReadError, SiteKind, plan, read_elf_file,
    },
};

/// Why a process's MPI library could not be probed.
#[derive(Debug, Error)]
pub enum ProbeError {
    #[error(transparent)]
    Open(#[from] OpenMappedError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("cannot read {path}: {source}")]
    Read {
        path: String,
        #[source]
        source: ReadError,
    },
    #[error("cannot find the MPI functions in {path}: {source}")]
    Elf {
        path: String,
        #[source]
        source: ElfError,
    },
    #[error(
        "{path} has none of the functions asked for\n  `--functions all` probes every MPI function; a library stripped of its \
         symbol tables cannot be probed by name."
    )]
    NothingToProbe { path: String },
    #[error("cannot compare {path} with the memory of process {pid}: {source}")]
    Memory {
        path: String,
        pid: u32,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Attach(#[from] AttachError),
}

impl ProbeError {
    /// Whether it failed because the process has ended.
    pub(super) fn is_gone(&self) -> bool {
        match self {
            Self::Open(OpenMappedError::Process(error)) | Self::Process(error) => error.is_gone(),
            Self::Memory { source, .. } => source.kind() == io::ErrorKind::UnexpectedEof,
            Self::Attach(AttachError::Link { source, .. }) => source.raw_os_error() == Some(libc::ESRCH),
            _ => false,
        }
    }
}

/// All files under probes.
#[derive(Debug, Default)]
pub(super) struct Probes {
    files: HashMap<FileId, Probed>,
    /// Time spent attaching, ns.
    attach_ns: u64,
}

/// One file under probes.
#[derive(Debug)]
struct Probed {
    attachment: Option<Attachment>,
    /// Whose calls reach the programs.
    scopes: Vec<Scope>,
    sites: Vec<ProbeSite>,
    info: LibraryInfo,
    /// When the last one was there, ns.
    since_ns: u64,
}

/// Where a file's functions are to be probed.
#[derive(Debug)]
struct Planned {
    plan: Plan<FunctionId>,
    info: LibraryInfo,
}

impl Planned {
    fn new(file: &File, path: &str, wanted: &FunctionSet) -> Result<Self, ProbeError> {
        let path = path.to_owned();
        let bytes = read_elf_file(file).map_err(|source| ProbeError::Read { path: path.clone(), source })?;
        let parsed = Library::parse(&bytes).map_err(|source| ProbeError::Elf { path: path.clone(), source })?;
        let plan = plan(
            &parsed,
            |name| mpiprobe_functions::by_name(name).filter(|id| wanted.contains(*id)),
            |id: &FunctionId| id.function().arguments.len(),
        )
        .map_err(|source| ProbeError::Elf { path: path.clone(), source })?;
        let info = LibraryInfo {
            path,
            implementation: Implementation::of(&parsed).to_string(),
            build_id: parsed.build_id().map(str::to_owned),
            functions: 0,
            slow: Vec::new(),
            not_probed: plan.unprobeable.iter().map(|function| function.function.name().to_owned()).collect(),
        };
        Ok(Self { plan, info })
    }

    /// What is left of the plan, once the code in memory has been looked at.
    fn sites(&mut self) -> Result<Vec<ProbeSite>, ProbeError> {
        let sites = sites(&self.plan);
        if sites.is_empty() {
            return Err(ProbeError::NothingToProbe { path: self.info.path.clone() });
        }
        self.info.functions = sites.len();
        self.info.slow = slow(&self.plan);
        Ok(sites)
    }
}

/// What attaching for a process came to.
#[derive(Clone, Debug)]
pub(super) enum Coverage {
    /// Probes were put onto a file that had none.
    New(LibraryInfo),
    /// They were there already.
    Present,
}

impl Probes {
    /// Makes sure that the MPI library of `process` is under probes.
    pub(super) fn cover(
        &mut self,
        engine: &Engine,
        wanted: &FunctionSet,
        process: &MpiProcess,
        scope: Scope,
    ) -> Result<Coverage, ProbeError> {
        let Some(library) = process.library() else { return Ok(Coverage::Present) };
        // A probe limited to one process covers no other.
        if scope == Scope::Inode && self.files.contains_key(&library.file.id) {
            return Ok(Coverage::Present);
        }
        let start = Instant::now();
        let path = library.file.display_path();
        let file = open_mapped(&process.process, &library.file)?;
        let mut planned = Planned::new(&file, &path, wanted)?;
        let breakpoints = remove_patched(&mut planned.plan, &process.process, library, &mut planned.info.not_probed)?;
        let sites = planned.sites()?;
        let mut info = planned.info;
        let all_probed = breakpoints == sites.len();
        if let Some(known) = self.files.get(&library.file.id) {
            // The same process with a new program: its probes go with it, unless another thread than the first has executed it.
            if all_probed && known.scopes.contains(&scope) {
                return Ok(Coverage::Present);
            }
        } else if all_probed
            && let Some(known) = self.files.values().find(|known| known.sites == sites && known.scopes.contains(&scope))
        {
            // Through two overlay mounts one file looks like two, but the kernel knows that it is one: its probes are there.
            info.functions = 0;
            let (scopes, since_ns) = (known.scopes.clone(), known.since_ns);
            self.files.insert(library.file.id, Probed { attachment: None, scopes, sites, info, since_ns });
            return Ok(Coverage::Present);
        }
        self.attach(engine, (library.file.id, &file), sites, info.clone(), (scope, start))?;
        Ok(Coverage::New(info))
    }

    /// The same of a file that processes will map; `None`: it has them.
    pub(super) fn cover_file(
        &mut self,
        engine: &Engine,
        wanted: &FunctionSet,
        path: &Path,
        file: &File,
    ) -> Result<Option<LibraryInfo>, ProbeError> {
        let (start, shown) = (Instant::now(), path.display().to_string());
        let unread = |source: io::Error| ProbeError::Read { path: shown.clone(), source: source.into() };
        let id = identity_when_mapped(file).map_err(unread)?.ok_or_else(|| unread(io::ErrorKind::NotFound.into()))?;
        if self.files.contains_key(&id) {
            return Ok(None);
        }
        let mut planned = Planned::new(file, &shown, wanted)?;
        let sites = planned.sites()?;
        self.attach(engine, (id, file), sites, planned.info.clone(), (Scope::Inode, start))?;
        Ok(Some(planned.info))
    }

    fn attach(
        &mut self,
        engine: &Engine,
        (id, file): (FileId, &File),
        sites: Vec<ProbeSite>,
        info: LibraryInfo,
        (scope, start): (Scope, Instant),
    ) -> Result<(), ProbeError> {
        let attachment = engine.attach(file.as_fd(), Path::new(&info.path), &sites, scope)?;
        self.attach_ns += u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let since_ns = monotonic_ns();
        self.insert(id, Probed { attachment: Some(attachment), scopes: vec![scope], sites, info, since_ns });
        Ok(())
    }

    /// Since when a file is under probes, ns.
    pub(super) fn since_ns(&self, id: FileId) -> Option<u64> {
        self.files.get(&id).map(|probed| probed.since_ns)
    }

    fn insert(&mut self, id: FileId, probed: Probed) {
        if let Some(mut known) = self.files.remove(&id) {
            // A further process under a probe of its own: one file still, with one more link.
            known.attachment = match (known.attachment, probed.attachment) {
                (Some(known), Some(more)) => Some(known.and(more)),
                (known, more) => known.or(more),
            };
            known.scopes.extend(probed.scopes);
            known.since_ns = probed.since_ns;
            self.files.insert(id, known);
        } else {
            self.files.insert(id, probed);
        }
    }

    pub(super) fn attach_ns(&self) -> u64 {
        self.attach_ns
    }

    pub(super) fn libraries(&self) -> Vec<LibraryInfo> {
        let mut libraries: Vec<LibraryInfo> = self
            .files
            .values()
            .filter(|probed| probed.attachment.is_some())
            .map(|probed| probed.info.clone())
            .collect();
        libraries.sort_by(|a, b| a.path.cmp(&b.path));
        libraries
    }

    /// Stops counting where detaching takes long.
    pub(super) fn disable(&self) {
        self.attachments().for_each(Attachment::disable);
    }

    /// How many links [`Self::detach`] closes.
    pub(super) fn links(&self) -> usize {
        self.attachments().map(Attachment::links).sum()
    }

    /// Removes all probes, telling after each link how many are left.
    pub(super) fn detach(self, mut progress: impl FnMut(usize)) {
        let mut left = self.links();
        for attachment in self.files.into_values().filter_map(|probed| probed.attachment) {
            let before = left;
            let links = attachment.links();
            attachment.detach(|here| {
                left = before - (links - here);
                progress(left);
            });
        }
    }

    fn attachments(&self) -> impl Iterator<Item = &Attachment> {
        self.files.values().filter_map(|probed| probed.attachment.as_ref())
    }
}

/// Where the executable part of a process's MPI library lies: calls from there are MPI's own. Empty for a program with MPI
/// linked in, whose own calls come from there too.
pub(super) fn library_range(library: &MpiLibrary) -> (u64, u64) {
    if library.recognised.is_static {
        return (0, 0);
    }
    let ranges = &library.file.ranges;
    let start = ranges.iter().map(|range| range.start).min().unwrap_or(0);
    let end = ranges.iter().map(|range| range.end).max().unwrap_or(0);
    (start, end)
}

/// Takes out the functions whose code in memory is not what the file says. Gives the number of breakpoints found.
fn remove_patched(
    planned: &mut Plan<FunctionId>,
    process: &Process,
    library: &MpiLibrary,
    not_probed: &mut Vec<String>,
) -> Result<usize, ProbeError> {
    let failed = |source| ProbeError::Memory { path: library.file.display_path(), pid: process.pid(), source };
    let memory = process.memory().map_err(ProbeError::Process)?;
    let mut breakpoints = 0;
    let mut unreadable = None;
    planned.functions.retain(|function| {
        let Some(address) = library.file.address_of(function.function.file_offset) else { return true };
        match compare_code(&memory, address, function) {
            Ok(Ok(())) => true,
            // Another tracer's uprobe, or an earlier one of ours: the kernel shares them.
            Ok(Err(Difference::Breakpoint { .. })) => {
                breakpoints += 1;
                true
            }
            Ok(Err(difference)) => {
                not_probed.push(format!("{} ({difference})", function.function.name()));
                false
            }
            Err(error) => {
                unreadable = Some(error);
                true
            }
        }
    });
    match unreadable {
        Some(error) => Err(failed(error)),
        None => Ok(breakpoints),
    }
}

fn sites(planned: &Plan<FunctionId>) -> Vec<ProbeSite> {
    let site = |function: &PlannedFunction<FunctionId>| {
        let id = function.function.aliases.first()?.key;
        Some(ProbeSite { offset: function.site.offset, cookie: id.cookie().at(function.site.offset, planned.text_end) })
    };
    planned.functions.iter().filter_map(site).collect()
}

fn slow(planned: &Plan<FunctionId>) -> Vec<SlowSite> {
    let slow = planned.functions.iter().filter_map(|function| match &function.site.kind {
        SiteKind::Slow { reason } => {
            let id = function.function.aliases.first()?.key;
            Some(SlowSite { function: id.function().name, reason: reason.to_string() })
        }
        _ => None,
    });
    slow.collect()
}
