//! What of the targets is seen: which files are under probes, what is known of each process's library and code, and what could not
//! be seen.

use std::{
    collections::BTreeSet,
    fmt::Display,
    fs::File,
    path::Path,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use mpiprobe_attach::{Engine, Scope, release_requests};
use mpiprobe_discover::{MpiProcess, Process, ReturnRisk, Way, mappings::FileId};
use mpiprobe_functions::{FunctionId, FunctionSet, by_name};
use mpiprobe_model::{LibraryInfo, analyse::is_seen_from_its_beginning};
use mpiprobe_observe::{Snapshot, monotonic_ns};
use mpiprobe_report::present::say;

use super::{
    functions::{counted, has_queries, probed},
    kernel::Kernel,
    layers::Layers,
    layouts::Layouts,
    options::Options,
    probe_error::ProbeError,
    probes::{Covered, Probes, has_breakpoints},
    process_table::ProcessTable,
    returns::{Arming, ReturnChoice},
    sites::{OpenBehindLayers, Sites},
};
use crate::blueprints::{blueprint, blueprint_of};

/// A process began to call before its files had been read.
const EARLY_QUERIES: &str = "local queries (MPI_Comm_size, MPI_*_f2c and so on) that a Fortran library made on its own account at the \
                             beginning of a process were counted as the program's";

/// Of all targets.
#[derive(Debug)]
pub(super) struct Coverage {
    functions: FunctionSet,
    /// Those of them that are counted.
    counted: FunctionSet,
    /// What calls move is asked for.
    traffic: bool,
    /// mpiprobe has started the targets: its standard error is the job's as well, where nothing is said that is no trouble.
    is_job: bool,
    /// Each process has probes of its own.
    scoped: bool,
    pub(super) probes: Probes,
    pub(super) layouts: Layouts,
    pub(super) sites: Sites,
    layers: Layers,
    returns: ReturnChoice,
    incomplete_because: Vec<String>,
    /// Why amounts or partners of some calls cannot be known.
    unknown_because: Vec<String>,
}

/// An MPI library that was probed only after a process had loaded it.
#[derive(Debug)]
pub(super) struct Late {
    /// Its path.
    pub(super) shown: String,
    /// When the last probe was there, and how long the first process had had it by then, ns.
    pub(super) since_ns: u64,
    pub(super) without_ns: u64,
    /// Who had loaded it by then.
    pub(super) pids: BTreeSet<u32>,
}

/// What of a process is probed: its MPI library, and tools before it.
pub(super) fn files_of(process: &MpiProcess) -> impl Iterator<Item = FileId> + use<'_> {
    let files = process.library().map(|library| &library.file).into_iter().chain(&process.tools);
    files.map(|file| file.id)
}

impl Coverage {
    /// Of nothing yet.
    pub(super) fn new(options: &Options, engine: &Engine, is_job: bool) -> Self {
        // Those that have the same return probes.
        let looks_at_others = !engine.is_asked_for_returns();
        Self {
            functions: probed(options.functions, options.traffic, options.ignore_pcontrol, looks_at_others),
            counted: counted(options.functions, options.ignore_pcontrol),
            traffic: options.traffic,
            is_job,
            scoped: false,
            probes: Probes::default(),
            layouts: Layouts::default(),
            sites: Sites::default(),
            layers: Layers::default(),
            returns: ReturnChoice::new(options.returns),
            incomplete_because: Vec::new(),
            unknown_because: Vec::new(),
        }
    }

    /// Whether each process gets probes of its own from now on.
    pub(super) fn scope_to_processes(&mut self, scoped: bool) {
        self.scoped = scoped;
    }

    /// Whom probes for a process are for.
    fn scope(&self, pid: u32) -> Scope {
        if self.scoped { Scope::Process(pid) } else { Scope::Inode }
    }

    /// Whether the calls of a process get return probes.
    pub(super) fn may_have_returns(&mut self, kernel: &mut Kernel, process: &MpiProcess) -> bool {
        let Some(risk) = self.returns.risk(&process.process) else { return true };
        if !kernel.engine.is_asked_for_returns() {
            // Others have the same probes.
            return !self.weigh(kernel, &risk);
        }
        // What others have armed may be dropped by nobody of us, and the other way round.
        let arming = if risk.way == Way::SwitchesStacks && self.probes.are_others_at(&self.functions, process) {
            Arming::AskedAmongOthers
        } else {
            Arming::Asked
        };
        !self.returns.judge(&risk, arming)
    }

    /// Leaves return probes out if they may harm one of `processes` that has one of these files mapped: where they are armed for each call, whoever
    /// has the same breakpoints has them. `scoped`: those of ours are in targets only, and others have some only where they are already.
    pub(super) fn spare_bystanders(
        &mut self,
        kernel: &mut Kernel,
        processes: &[MpiProcess],
        files: &[FileId],
        scoped: bool,
    ) {
        let maps = |process: &&MpiProcess| files_of(process).any(|file| files.contains(&file));
        for process in processes.iter().filter(maps) {
            if let Some(risk) = self.returns.risk(&process.process)
                && (!scoped || self.is_probed(process))
            {
                self.weigh(kernel, &risk);
            }
        }
    }

    /// The same of one that is no target, and has begun to use MPI where return probes are armed for everybody.
    pub(super) fn spare_newcomer(&mut self, kernel: &mut Kernel, process: &Process) {
        if let Some(risk) = self.returns.risk(process) {
            self.weigh(kernel, &risk);
        }
    }

    /// Whether a process that is no target yet must not become one, which is said. Where the kernel does not ask for each call, it arms the return
    /// probes that others have for other processes wherever there is a breakpoint, and so in this one, too, as soon as there is one of ours.
    /// `others`: who uses MPI besides the targets.
    pub(super) fn is_endangered(&mut self, process: &MpiProcess, others: &[&MpiProcess]) -> bool {
        let Some(file) = process.library().map(|library| library.file.id) else { return false };
        let Some(risk) = self.returns.risk_by_others(&process.process) else { return false };
        let is_elsewhere = |other: &&&MpiProcess| {
            other.pid() != process.pid() && other.library().is_some_and(|library| library.file.id == file)
        };
        // One that has breakpoints already has nothing to lose.
        if self.is_probed(process) || !others.iter().filter(is_elsewhere).any(|other| self.is_probed(other)) {
            return false;
        }
        self.miss(format!(
            "process {} is not observed: {risk}, and others have probes in its MPI library. If these are return probes, this kernel has them armed in whoever \
             has a probe there, which may be the end of it; `mpiprobe run --engine wrapper` counts its calls without, `--returns on` observes it all the same",
            process.pid()
        ));
        true
    }

    /// Whether there are breakpoints in the MPI library of a process, whoever has set them.
    fn is_probed(&self, process: &MpiProcess) -> bool {
        has_breakpoints(&self.functions, process)
    }

    /// Leaves return probes out for all processes if that of one forbids them. Tells whether it does.
    pub(super) fn weigh(&mut self, kernel: &mut Kernel, risk: &ReturnRisk) -> bool {
        let arming = if kernel.engine.is_asked_for_returns() { Arming::Asked } else { Arming::Always };
        if self.returns.forbids(risk, arming) {
            kernel.engine.leave_returns_out();
            self.probes.leave_returns_out();
            kernel.observer.count_entries_only_of_all();
        }
        // What is said has been done.
        self.returns.judge(risk, arming)
    }

    /// Probes a file that a job maps, or is expected to. Gives since when it is probed, ns.
    pub(super) fn cover_file(
        &mut self,
        kernel: &mut Kernel,
        path: &Path,
        file: &File,
        id: FileId,
    ) -> Result<Option<u64>, ProbeError> {
        if let Some(library) = self.probes.cover_file(&kernel.engine, &self.functions, path, file)? {
            self.tell_attached(kernel, &library);
        }
        if self.traffic {
            let (cookies, read) = (|| self.probes.cookies(id), || blueprint_of(file));
            self.layouts.foresee(&mut kernel.engine.tables, id, cookies, read);
        }
        Ok(self.file_since_ns(id))
    }

    /// Since when a file is under probes for all processes, ns.
    pub(super) fn file_since_ns(&self, id: FileId) -> Option<u64> {
        self.probes.since_ns(id, Scope::Inode)
    }

    /// Since when the library of a process is under probes for it, ns.
    pub(super) fn since_ns(&self, process: &MpiProcess) -> Option<u64> {
        self.probes.since_ns(process.library()?.file.id, self.scope(process.pid()))
    }

    /// Probes the process's library, and tools before it: all of [`files_of`].
    pub(super) fn cover(&mut self, kernel: &mut Kernel, process: &MpiProcess) -> Result<(), ProbeError> {
        let scope = self.scope(process.pid());
        self.cover_library(kernel, process, scope)?;
        // Later, so that no tool's call seems to pass nothing on.
        for tool in &process.tools {
            match self.probes.cover_tool(&kernel.engine, &self.functions, (process, tool), scope) {
                Ok(Covered::New(tool)) => {
                    self.tell(format_args!(
                        "attached {} functions in {}, a tool before MPI",
                        tool.functions, tool.path
                    ));
                    for function in &tool.not_probed {
                        self.miss(format!("not probed: {function} in {}", tool.path));
                    }
                }
                Ok(Covered::Present) => {}
                Err(error) if error.is_gone() => return Err(error),
                // What is counted at the library does not need it.
                Err(error) => self.miss(format!("calls are not timed at the entry of a tool: {error}")),
            }
        }
        Ok(())
    }

    fn cover_library(&mut self, kernel: &mut Kernel, process: &MpiProcess, scope: Scope) -> Result<(), ProbeError> {
        let covered = self.probes.cover(&kernel.engine, &self.functions, process, scope)?;
        if let Some(library) = process.library().filter(|_| self.traffic) {
            let id = library.file.id;
            let (cookies, read) = (|| self.probes.cookies(id), || blueprint(&process.process, &library.file));
            self.layouts.foresee(&mut kernel.engine.tables, id, cookies, read);
        }
        if let Covered::New(library) = covered {
            self.tell_attached(kernel, &library);
        }
        Ok(())
    }

    /// Finds out how the process's MPI library keeps its objects, and where it has code of the user's and of language layers.
    pub(super) fn understand(&mut self, kernel: &mut Kernel, slot: u32, process: &MpiProcess) {
        let missing = self.layouts.add(&mut kernel.engine.tables, &kernel.observer, slot, process);
        self.tell_missing(missing);
        self.find_sites(kernel, slot, &process.process);
    }

    fn find_sites(&mut self, kernel: &mut Kernel, slot: u32, process: &Process) {
        self.sites.add(slot, process);
        self.tell_layers(kernel, slot);
    }

    /// The same of a process that has ended, unless it was looked at before, from what it has mapped: lines of `/proc/PID/maps`.
    /// It began at a moment (ns).
    pub(super) fn find_noted_sites(&mut self, kernel: &mut Kernel, slot: u32, list: &[u8], since_ns: u64) {
        if list.is_empty() || !self.sites.lack(slot) {
            return;
        }
        let ago = Duration::from_nanos(monotonic_ns().saturating_sub(since_ns));
        let began = SystemTime::now().checked_sub(ago).and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let began_ns = began.and_then(|began| u64::try_from(began.as_nanos()).ok()).unwrap_or(0);
        self.sites.add_noted(slot, list, began_ns);
        self.tell_layers(kernel, slot);
    }

    fn tell_layers(&mut self, kernel: &mut Kernel, slot: u32) {
        if (self.traffic || has_queries(self.functions))
            && let Some(map) = self.sites.map(slot)
        {
            let early = self.layers.tell(&mut kernel.engine.tables, &kernel.observer, slot, map);
            if early {
                self.note_missing(EARLY_QUERIES.into());
            }
        }
    }

    /// Looks at those again that had not initialised MPI.
    pub(super) fn retry_layouts(&mut self, kernel: &mut Kernel) {
        let missing = self.layouts.retry(&mut kernel.engine.tables, &kernel.observer);
        self.tell_missing(missing);
    }

    /// When somebody has to be looked at again: before calls are counted that move data.
    pub(super) fn next_look_at_layouts(&self) -> Option<Instant> {
        self.layouts.next_look().filter(|_| self.traffic)
    }

    /// What is kept of process images that have ended: their files stay open only if there is something to be named.
    pub(super) fn release(&mut self, kernel: &mut Kernel, process_table: &ProcessTable, slots: &[u32]) {
        for &slot in slots {
            self.layouts.forget(slot);
            if !self.traffic && !process_table.has_ended_in_call(slot) {
                self.sites.forget(slot);
            }
        }
        // The whole table is read for it: once for all that end together.
        if self.traffic
            && !slots.is_empty()
            && let Err(error) = release_requests(&mut kernel.engine.tables, slots)
        {
            tracing::warn!("{error}");
        }
    }

    /// Who has made a call that was cut short, if it came through a language layer.
    pub(super) fn was_behind_layers(&mut self, slot: u32, tid: u32, started_ns: u64) -> Option<u64> {
        self.sites.was_behind_layers(slot, tid, started_ns)
    }

    /// Open calls that came through a language layer are the user's.
    pub(super) fn look_behind_layers(
        &mut self,
        kernel: &Kernel,
        process_table: &ProcessTable,
        snapshot: &mut Snapshot,
    ) {
        let mut found = OpenBehindLayers::new();
        for process in &mut snapshot.processes {
            let slot = process.process;
            for thread in &mut process.threads {
                let user = self.sites.behind_layers(slot, &thread.state, process_table.process(slot));
                // The stack may have been another call's by then.
                if let Some(user) = user.filter(|_| kernel.observer.is_still_open(thread)) {
                    thread.state.located_address = user;
                    thread.state.located_ns = thread.state.open.started_ns;
                    found.insert((slot, thread.tid), (thread.state.open.started_ns, user));
                }
            }
        }
        self.sites.keep_behind_layers(found);
    }

    /// Something could not be counted. Noted once: all ranks of a job lack the same.
    pub(super) fn note_missing(&mut self, what: String) {
        if !self.incomplete_because.contains(&what) {
            self.incomplete_because.push(what);
        }
    }

    /// Something could not be counted, which is said at once. Noted once, too.
    fn miss(&mut self, what: String) {
        if !self.incomplete_because.contains(&what) {
            say(&what);
            self.incomplete_because.push(what);
        }
    }

    /// Why the profile is not whole.
    pub(super) fn incomplete_because(&self) -> Vec<String> {
        self.incomplete_because.clone()
    }

    /// What is not counted because a library was probed only after processes had loaded it; `None`: nothing.
    pub(super) fn lacks_because_late(
        &self,
        library: &Late,
        process_table: &ProcessTable,
        snapshot: &Snapshot,
    ) -> Option<String> {
        let Late { shown, since_ns, without_ns, pids } = library;
        // Who begins sessions need not initialise MPI first.
        let sees_sessions = by_name("MPI_Session_init").is_some_and(|id| self.functions.contains(id));
        let is_seen = |pid: &u32| {
            let slots = process_table.slots_of(*pid);
            let tables = snapshot.processes.iter().filter(|tables| slots.contains(&tables.process));
            let mut called = tables.filter(|tables| !tables.functions.is_empty()).peekable();
            called.peek().is_some() && called.all(|tables| is_seen_from_its_beginning(tables, *since_ns))
        };
        let what = if !sees_sessions || !pids.iter().all(is_seen) {
            "what was called in it until then"
        } else if self.counted.iter().any(FunctionId::may_precede_init) {
            "what may be called before MPI_Init (MPI_Initialized, for instance) and was until then"
        } else {
            return None;
        };
        let ms = *without_ns as f64 / 1e6;
        Some(format!("{shown} was probed {ms:.1} ms after a process had loaded it: {what} is not counted"))
    }

    /// Each once: all ranks of a job lack the same.
    fn tell_missing(&mut self, missing: Vec<String>) {
        for pid in self.layouts.take_mistaken() {
            self.note_missing(format!(
                "the layout that was expected of the MPI library of process {pid} was not its own: what its first calls moved, and \
                 with whom, is not certain"
            ));
        }
        // Without traffic, it is only for open calls that objects are looked at.
        for what in missing.into_iter().filter(|_| self.traffic) {
            if !self.unknown_because.contains(&what) {
                say(&what);
                self.unknown_because.push(what);
            }
        }
    }

    fn tell_attached(&mut self, kernel: &Kernel, library: &LibraryInfo) {
        self.tell(format_args!(
            "attached {} functions in {} ({}) by {}",
            library.functions, library.path, library.implementation, kernel.engine.method
        ));
        for function in &library.not_probed {
            self.miss(format!("not probed: {function}"));
        }
    }

    /// That everything goes well.
    pub(super) fn tell(&self, what: impl Display) {
        if self.is_job {
            tracing::info!("{what}");
        } else {
            say(what);
        }
    }
}
