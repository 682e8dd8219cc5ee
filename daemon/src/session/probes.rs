//! Probes on the MPI libraries of targets, and on tools before them: each file once, whatever number of processes map it.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    fs::File,
    io,
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
    thread,
    time::Instant,
};

use mpiprobe_attach::{Attachment, Engine, ProbeSite, Scope};
use mpiprobe_common::{Cookie, tool::TOOLS};
use mpiprobe_discover::{
    MpiLibrary, MpiProcess, identity_when_mapped,
    mappings::{FileId, MappedFile},
};
use mpiprobe_functions::{FunctionId, FunctionSet, by_name};
use mpiprobe_model::{LibraryInfo, ToolInfo};
use mpiprobe_observe::monotonic_ns;

use super::{file_plan::FilePlan, functions::unit_of, probe_error::ProbeError};

/// All files under probes.
#[derive(Debug, Default)]
pub(super) struct Probes {
    files: HashMap<FileId, Probed>,
    /// By number.
    tools: Vec<ToolInfo>,
    /// Time spent attaching, ns.
    attach_ns: u64,
    /// Functions that may have to be sampled have links of their own, by [`unit_of`].
    pub(super) in_units: bool,
}

/// One file that was to be probed.
#[derive(Debug)]
struct Probed {
    covers: Vec<Cover>,
    sites: Vec<ProbeSite>,
    /// Of a library.
    info: Option<LibraryInfo>,
    /// Whether probes were attached to it, and not to another file that is the same to the kernel.
    was_attached: bool,
    /// Whether there were probes of others before.
    has_others: bool,
    /// Of a library with functions that can be taken off: the file, and its name in messages.
    file: Option<(OwnedFd, String)>,
}

/// Probes for all processes, or for one.
#[derive(Debug)]
struct Cover {
    scope: Scope,
    /// When the last probe was there, ns.
    since_ns: u64,
    /// `None`: its probes are those of another file that is the same to the kernel, or there is nothing to probe in it.
    attachment: Option<Attachment>,
    /// Those that can be taken off and put on again, by [`unit_of`].
    units: BTreeMap<u16, Unit>,
}

/// Probes that are taken off and put on together.
#[derive(Debug)]
struct Unit {
    sites: Vec<ProbeSite>,
    /// `None`: they are off.
    attachment: Option<Attachment>,
}

impl Cover {
    fn now(scope: Scope, attachment: Option<Attachment>) -> Self {
        Self { scope, since_ns: monotonic_ns(), attachment, units: BTreeMap::new() }
    }

    fn attachments(&self) -> impl Iterator<Item = &Attachment> {
        self.attachment.iter().chain(self.units.values().filter_map(|unit| unit.attachment.as_ref()))
    }

    fn attachments_mut(&mut self) -> impl Iterator<Item = &mut Attachment> {
        self.attachment.iter_mut().chain(self.units.values_mut().filter_map(|unit| unit.attachment.as_mut()))
    }

    fn into_attachments(self) -> impl Iterator<Item = Attachment> {
        self.attachment.into_iter().chain(self.units.into_values().filter_map(|unit| unit.attachment))
    }
}

impl Probed {
    fn cover(&self, scope: Scope) -> Option<&Cover> {
        self.covers.iter().find(|cover| cover.scope == scope)
    }
}

/// What attaching for a process came to.
#[derive(Clone, Debug)]
pub(super) enum Covered<T> {
    /// Probes were put onto a file that had none.
    New(T),
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
    ) -> Result<Covered<LibraryInfo>, ProbeError> {
        let Some(library) = process.library() else { return Ok(Covered::Present) };
        if self.is_covered(&library.file, scope) {
            return Ok(Covered::Present);
        }
        let start = Instant::now();
        let file_plan =
            FilePlan::of(&process.process, &library.file, |name| by_name(name).filter(|id| wanted.contains(*id)))?;
        let (sites, mut info) = of_library(&file_plan)?;
        if let Some(known) = self.same_file(&library.file, &file_plan, &sites, scope) {
            info.functions = 0;
            self.files.entry(library.file.id).or_insert(Probed { info: Some(info), ..known });
            return Ok(Covered::Present);
        }
        self.attach(engine, (library.file.id, &file_plan), (sites, info.clone()), scope)?;
        self.note_time(start);
        Ok(Covered::New(info))
    }

    /// The same of a file that processes will map; `None`: it has probes already.
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
        let file = file.try_clone().map_err(unread)?;
        let file_plan = FilePlan::of_file(file.into(), shown, |name| by_name(name).filter(|id| wanted.contains(*id)))?;
        let (sites, info) = of_library(&file_plan)?;
        self.attach(engine, (id, &file_plan), (sites, info.clone()), Scope::Inode)?;
        self.note_time(start);
        Ok(Some(info))
    }

    fn attach(
        &mut self,
        engine: &Engine,
        (id, file_plan): (FileId, &FilePlan),
        (sites, info): (Vec<ProbeSite>, LibraryInfo),
        scope: Scope,
    ) -> Result<(), ProbeError> {
        let attach =
            |sites: &[ProbeSite]| engine.attach(file_plan.file.as_fd(), Path::new(&file_plan.path), sites, scope);
        // On an error those are dropped that are there already.
        let mut units = BTreeMap::new();
        let mut lasting = Vec::new();
        for site in &sites {
            match unit_of_site(*site).filter(|_| self.in_units) {
                Some(unit) => units.entry(unit).or_insert_with(Vec::new).push(*site),
                None => lasting.push(*site),
            }
        }
        let lasting = if lasting.is_empty() { None } else { Some(attach(&lasting)?) };
        let mut attached = BTreeMap::new();
        for (unit, sites) in units {
            let attachment = Some(attach(&sites)?);
            attached.insert(unit, Unit { sites, attachment });
        }
        let file = if attached.is_empty() {
            None
        } else {
            let unread = |source: io::Error| ProbeError::Read { path: file_plan.path.clone(), source: source.into() };
            Some((file_plan.file.as_fd().try_clone_to_owned().map_err(unread)?, file_plan.path.clone()))
        };
        let covers = vec![Cover { units: attached, ..Cover::now(scope, lasting) }];
        let has_others = file_plan.has_breakpoints();
        self.insert(id, Probed { covers, sites, info: Some(info), was_attached: true, has_others, file });
        Ok(())
    }

    /// Takes off the probes of a unit, which is to be dropped by whoever has time for it.
    pub(super) fn take_off(&mut self, unit: u16) -> Vec<Attachment> {
        let covers = self.files.values_mut().flat_map(|probed| &mut probed.covers);
        covers.filter_map(|cover| cover.units.get_mut(&unit)?.attachment.take()).collect()
    }

    /// Puts them on again wherever they are off; those that see returns only if they are to stay.
    pub(super) fn put_on(&mut self, engine: &Engine, unit: u16, stay: bool) -> Result<(), ProbeError> {
        let put = if stay { Engine::attach } else { Engine::attach_entries };
        for probed in self.files.values_mut() {
            let Some((file, shown)) = &probed.file else { continue };
            for cover in &mut probed.covers {
                let Some(unit) = cover.units.get_mut(&unit).filter(|unit| unit.attachment.is_none()) else { continue };
                match put(engine, file.as_fd(), Path::new(shown), &unit.sites, cover.scope) {
                    Ok(attachment) => unit.attachment = Some(attachment),
                    // Who has ended has nothing to be probed.
                    Err(error) if error.errno() == Some(libc::ESRCH) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Since when a file is under probes for all processes, or for one, ns.
    pub(super) fn since_ns(&self, id: FileId, scope: Scope) -> Option<u64> {
        Some(self.files.get(&id)?.cover(scope)?.since_ns)
    }

    /// Since when all files are under probes for all processes, ns; `None`: some are not, or there are none.
    pub(super) fn all_since_ns(&self) -> Option<u64> {
        let mut files = self.files.values();
        files.try_fold(None, |latest, probed| Some(latest.max(Some(probed.cover(Scope::Inode)?.since_ns)))).flatten()
    }

    /// Whether there have ever been probes.
    pub(super) fn have_been_attached(&self) -> bool {
        self.files.values().any(|probed| probed.was_attached)
    }

    /// Removes the probes that were for these processes only, which have ended: other processes may get their numbers, and every
    /// hit walks over all probes of its place. Apart from all else, because it may take long.
    pub(super) fn remove_ended(&mut self, pids: &[u32]) {
        let mut removed = Vec::new();
        for probed in self.files.values_mut() {
            let is_of_ended = |cover: &mut Cover| matches!(cover.scope, Scope::Process(pid) if pids.contains(&pid));
            removed.extend(probed.covers.extract_if(.., is_of_ended).flat_map(Cover::into_attachments));
        }
        // Where no thread can be had they are removed at once.
        if !removed.is_empty()
            && let Err(error) = thread::Builder::new().name("detach".into()).spawn(move || drop(removed))
        {
            tracing::warn!("probes of ended processes were removed in passing: {error}");
        }
    }

    /// Whether others have, or had when ours came, probes at functions of a process's MPI library.
    pub(super) fn are_others_at(&self, wanted: &FunctionSet, process: &MpiProcess) -> bool {
        let Some(library) = process.library() else { return false };
        if let Some(known) = self.files.get(&library.file.id) {
            return known.has_others;
        }
        has_breakpoints(wanted, process)
    }

    /// What the programs are told with each hit of a probe in a file.
    pub(super) fn cookies(&self, id: FileId) -> Vec<u64> {
        let sites = self.files.get(&id).map(|probed| probed.sites.as_slice()).unwrap_or_default();
        sites.iter().map(|site| site.cookie).collect()
    }

    /// Makes sure that a tool of `process` is under probes, if it has functions that are wanted.
    pub(super) fn cover_tool(
        &mut self,
        engine: &Engine,
        wanted: &FunctionSet,
        (process, tool): (&MpiProcess, &MappedFile),
        scope: Scope,
    ) -> Result<Covered<ToolInfo>, ProbeError> {
        if self.is_covered(tool, scope) {
            return Ok(Covered::Present);
        }
        let start = Instant::now();
        // What it may define besides, for tools before it, is not what the program calls.
        let wanted = |name: &str| by_name(name).filter(|id| name.starts_with("MPI_") && wanted.contains(*id));
        let file_plan = FilePlan::of(&process.process, tool, wanted)?;
        let sites = |number: u16| file_plan.sites(|id, _, _| id.tool_cookie(number).0);
        let known =
            (0..).zip(&self.tools).find_map(|(number, _)| self.same_file(tool, &file_plan, &sites(number), scope));
        if let Some(known) = known {
            self.files.entry(tool.id).or_insert(known);
            return Ok(Covered::Present);
        }
        let number = self.tools.iter().position(|known| known.path == file_plan.path).unwrap_or(self.tools.len());
        let Some(number) = u16::try_from(number).ok().filter(|&number| usize::from(number) < TOOLS) else {
            return Err(ProbeError::TooManyTools { path: file_plan.path });
        };
        let sites = sites(number);
        let functions = sites.len();
        if functions == 0 {
            // A program's own function that only looks like one of MPI's.
            let covers = vec![Cover::now(scope, None)];
            self.files.insert(
                tool.id,
                Probed { covers, sites, info: None, was_attached: false, has_others: false, file: None },
            );
            return Ok(Covered::Present);
        }
        let attachment = engine.attach_tool(file_plan.file.as_fd(), Path::new(&file_plan.path), &sites, scope)?;
        let covers = vec![Cover::now(scope, Some(attachment))];
        self.insert(tool.id, Probed { covers, sites, info: None, was_attached: true, has_others: false, file: None });
        self.note_time(start);
        let name = file_plan.path.rsplit('/').next().unwrap_or_default().to_owned();
        let info = ToolInfo { name, path: file_plan.path, functions, not_probed: file_plan.not_probed };
        if self.tools.len() == usize::from(number) {
            self.tools.push(info.clone());
        }
        Ok(Covered::New(info))
    }

    /// A probe limited to one process covers no other.
    fn is_covered(&self, file: &MappedFile, scope: Scope) -> bool {
        let known = self.files.get(&file.id);
        known.is_some_and(|known| scope == Scope::Inode || known.sites.is_empty())
    }

    /// What is known of a file whose probes are all there already.
    fn same_file(&self, file: &MappedFile, file_plan: &FilePlan, sites: &[ProbeSite], scope: Scope) -> Option<Probed> {
        if !file_plan.is_all_probed() {
            return None;
        }
        let known = match self.files.get(&file.id) {
            // The same process with a new program: its probes go with it, unless another thread than the first has executed it.
            Some(known) => Some(known),
            // Through two overlay mounts one file looks like two, but the kernel knows that it is one: its probes are there.
            None => self.files.values().find(|known| known.sites == sites && known.cover(scope).is_some()),
        }?;
        let since_ns = known.cover(scope)?.since_ns;
        let covers = vec![Cover { since_ns, ..Cover::now(scope, None) }];
        let has_others = known.has_others;
        Some(Probed { covers, sites: sites.to_vec(), info: None, was_attached: false, has_others, file: None })
    }

    fn note_time(&mut self, start: Instant) {
        self.attach_ns += u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    }

    fn insert(&mut self, id: FileId, probed: Probed) {
        match self.files.entry(id) {
            // A further process under a probe of its own: one file still, with one more link.
            Entry::Occupied(mut known) => {
                known.get_mut().covers.extend(probed.covers);
                known.get_mut().was_attached |= probed.was_attached;
            }
            Entry::Vacant(place) => {
                place.insert(probed);
            }
        }
    }

    pub(super) fn attach_ns(&self) -> u64 {
        self.attach_ns
    }

    pub(super) fn libraries(&self) -> Vec<LibraryInfo> {
        let mut libraries: Vec<LibraryInfo> =
            self.files.values().filter(|probed| probed.was_attached).filter_map(|probed| probed.info.clone()).collect();
        libraries.sort_by(|a, b| a.path.cmp(&b.path));
        libraries
    }

    /// What the MPI library calls itself, or several of them.
    pub(super) fn implementation(&self) -> String {
        let mut all: Vec<String> = self.libraries().into_iter().map(|library| library.implementation).collect();
        all.dedup();
        all.join(", ")
    }

    /// By number.
    pub(super) fn tools(&self) -> Vec<ToolInfo> {
        self.tools.clone()
    }

    /// Detaches what runs at returns only.
    pub(super) fn leave_returns_out(&mut self) {
        let covers = self.files.values_mut().flat_map(|probed| &mut probed.covers);
        covers.flat_map(Cover::attachments_mut).for_each(Attachment::leave_returns_out);
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
        let (mut attachments, mut units) = (Vec::new(), Vec::new());
        for cover in self.files.into_values().flat_map(|probed| probed.covers) {
            attachments.extend(cover.attachment);
            units.extend(cover.units.into_values().filter_map(|unit| unit.attachment));
        }
        // The kernel waits for each link, and for several at once as long as for one.
        left -= units.iter().map(Attachment::links).sum::<usize>();
        thread::scope(|scope| {
            for unit in units {
                // Where no thread can be had they are removed at once.
                drop(thread::Builder::new().spawn_scoped(scope, move || drop(unit)));
            }
        });
        for attachment in attachments {
            let before = left;
            let links = attachment.links();
            attachment.detach(|here| {
                left = before - (links - here);
                progress(left);
            });
        }
    }

    fn attachments(&self) -> impl Iterator<Item = &Attachment> {
        self.files.values().flat_map(|probed| &probed.covers).flat_map(Cover::attachments)
    }
}

/// The unit of the function that a library's site is of.
fn unit_of_site(site: ProbeSite) -> Option<u16> {
    let number = u16::try_from(Cookie(site.cookie).function()).ok()?;
    FunctionId::from_index(number).and_then(unit_of)
}

/// Where a library's functions are probed, and what is said of it.
fn of_library(file_plan: &FilePlan) -> Result<(Vec<ProbeSite>, LibraryInfo), ProbeError> {
    let sites = file_plan.sites(|id, offset, text_end| id.cookie().at(offset, text_end).0);
    if sites.is_empty() {
        return Err(ProbeError::NothingToProbe { path: file_plan.path.clone() });
    }
    let info = LibraryInfo {
        path: file_plan.path.clone(),
        implementation: file_plan.implementation.clone(),
        build_id: file_plan.build_id.clone(),
        functions: sites.len(),
        slow: file_plan.slow(),
        not_probed: file_plan.not_probed.clone(),
    };
    Ok((sites, info))
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

/// Whether a process has breakpoints at functions of its MPI library.
pub(super) fn has_breakpoints(wanted: &FunctionSet, process: &MpiProcess) -> bool {
    let Some(library) = process.library() else { return false };
    let wanted = |name: &str| by_name(name).filter(|id| wanted.contains(*id));
    FilePlan::of(&process.process, &library.file, wanted).is_ok_and(|file_plan| file_plan.has_breakpoints())
}
