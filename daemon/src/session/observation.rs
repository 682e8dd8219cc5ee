//! Everything that lives as long as an observation, and what is done with it.

use std::{collections::BTreeSet, fmt::Display, fs::File, path::Path};

use mpiprobe_common::{Config, Target as Allowed, config::COMM_LENGTH, process::target_flags};
use mpiprobe_functions::FunctionId;

use super::{
    ImplementationRecogniser, Options, Returns, SessionError,
    found::{found, found_meanwhile},
    host,
    jobs::ChosenJobs,
    layers::Layers,
    layouts::{Layouts, blueprint, blueprint_of},
    probes::{Coverage, ProbeError, Probes, library_range},
    recent::RecentCalls,
    returns::ReturnChoice,
    roster::Roster,
    sites::{OpenBehindLayers, Sites},
    watch::EndWatch,
};
use crate::{
    analyse::{self, Beginning, Expected, Observed, SelfCost},
    attach::{
        AttachError, Engine, LoadOptions, Scope, Targets, begin_job, check_pid_namespace, climb, release_requests,
    },
    discover::{
        Caller, Finding, JobChoice, MpiLibrary, MpiProcess, ProcRoot, Process, ReturnRisk, Scanner, SelectError,
        Target, environment::Environment, mappings::FileId, printable, select,
    },
    model::{EndReason, EngineInfo, LibraryInfo, Profile, RankState},
    observe::{Notice, NoticeKind, Observer, Snapshot, monotonic_ns},
    present::say,
};

/// Above this number of targets one probe for all is cheaper than one for each: every hit walks all probes at its place.
const MOST_SCOPED_TARGETS: usize = 4;

/// What else the profile is to say than what is counted in any case, and how.
#[derive(Clone, Debug)]
struct Asked {
    nested: bool,
    traffic: bool,
    communicators: Vec<String>,
    /// Call sites by name in every look, not in the last one only.
    sites: bool,
}

/// An observation under way.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each says one thing of the observation that nothing else says")]
pub(super) struct Observation {
    target: Target,
    functions: mpiprobe_functions::FunctionSet,
    asked: Asked,
    scanner: Scanner<ImplementationRecogniser>,
    engine: Engine,
    pub(super) observer: Observer,
    pub(super) probes: Probes,
    pub(super) ends: EndWatch,
    roster: Roster,
    layouts: Layouts,
    sites: Sites,
    layers: Layers,
    jobs: ChosenJobs,
    recent: RecentCalls,
    returns: ReturnChoice,
    /// Each process has probes of its own.
    scoped: bool,
    /// The caller may not trace everybody: nobody else's processes are to have anything to do with it.
    only_own: bool,
    /// mpiprobe has started it: its standard error is the job's as well, where nothing is said that is no trouble.
    is_job: bool,
    /// A program wants results now.
    flush_asked: bool,
    /// How many notices nobody has taken in time.
    dropped_notices: u64,
    /// Slots of processes that are none of those asked for.
    dismissed: BTreeSet<u32>,
    began: String,
    began_ns: u64,
    incomplete_because: Vec<String>,
    /// Why amounts or partners of some calls cannot be known.
    unknown_because: Vec<String>,
}

impl Observation {
    /// Finds the targets, loads the programs and attaches them. On an error nothing stays attached.
    pub(super) fn begin(options: &Options) -> Result<Self, SessionError> {
        // Before anything is looked for: the numbers that are named there are not those that are seen here.
        check_pid_namespace()?;
        let mut scanner = Scanner::new(ProcRoot::system()?, Caller::current()?, ImplementationRecogniser::default());
        let mut jobs = ChosenJobs::new(&options.jobs);
        // Looked for before anything is loaded: most mistakes are found here.
        let first = found(select(&mut scanner, &options.target, &options.jobs), options.wait)?;
        for process in first.iter().flat_map(|selection| &selection.processes) {
            jobs.admit(process);
        }

        first.iter().flat_map(|selection| &selection.unanswered).for_each(say);

        let mut observation = Self::load(options, scanner, jobs, false)?;
        // Once more, because others may have started until the kernel began to tell of new ones.
        let choice = observation.jobs.choice();
        let now = found(select(&mut observation.scanner, &options.target, &choice), options.wait || first.is_some())?;
        // Who was not there at first was waited for.
        let is_awaited = options.wait && first.is_none();
        let targets = now.or(first).map_or_else(Vec::new, |selection| selection.processes);
        let number = targets.len();
        let beginning = if is_awaited { Beginning::Awaited } else { Beginning::MidRun };
        if observation.take_in(targets, beginning)? == 0 && number > 0 && !options.wait {
            return Err(SessionError::GoneBeforeAttach(number));
        }
        if options.wait {
            observation.wait_for_loaders();
        }
        Ok(observation)
    }

    /// Of a job that is going to be started. Its processes are all that the first one ([`Self::begin_job`]) executes and starts.
    pub(super) fn of_job(options: &Options, scanner: Scanner<ImplementationRecogniser>) -> Result<Self, SessionError> {
        let observation = Self::load(options, scanner, ChosenJobs::All, true)?;
        if !observation.engine.tells_families() {
            return Err(AttachError::NoFamilies.into());
        }
        Ok(observation)
    }

    /// Everything loaded, and nobody observed.
    fn load(
        options: &Options,
        scanner: Scanner<ImplementationRecogniser>,
        jobs: ChosenJobs,
        is_job: bool,
    ) -> Result<Self, SessionError> {
        let only_own = !scanner.caller().may_trace_all;
        let mut engine = climb(&load_options(options, scanner.caller(), is_job), options.rung)?;
        // A job's libraries are probed before there is a process, and so for everybody.
        if only_own && (is_job || !engine.can_scope()) {
            return Err(AttachError::OthersProcesses { rung: engine.rung, is_job }.into());
        }
        let descriptors =
            FunctionId::all().filter_map(|id| Some((u32::try_from(id.index()).ok()?, id.function().descriptor())));
        engine.tables.describe(descriptors)?;
        let observer = Observer::new(&mut engine)?;
        if options.returns == Returns::Off {
            engine.leave_returns_out();
            observer.count_entries_only_of_all();
        }
        engine.tables.watch_processes()?;

        Ok(Self {
            target: options.target.clone(),
            functions: options.functions,
            asked: Asked {
                nested: options.nested,
                traffic: options.traffic,
                communicators: options.communicators.clone(),
                sites: options.json || options.view.is_some(),
            },
            scanner,
            engine,
            observer,
            probes: Probes::default(),
            ends: EndWatch::new().map_err(SessionError::Watch)?,
            roster: Roster::default(),
            layouts: Layouts::default(),
            sites: Sites::default(),
            layers: Layers::default(),
            jobs,
            recent: RecentCalls::default(),
            returns: ReturnChoice::new(options.returns),
            scoped: only_own,
            only_own,
            is_job,
            flush_asked: false,
            dropped_notices: 0,
            dismissed: BTreeSet::new(),
            began: host::utc_now(),
            began_ns: monotonic_ns(),
            incomplete_because: Vec::new(),
            unknown_because: Vec::new(),
        })
    }

    /// The job's first process, which has executed nothing yet.
    pub(super) fn begin_job(&mut self, pid: u32) -> Result<(), SessionError> {
        Ok(begin_job(&mut self.engine.tables, pid)?)
    }

    /// Probes a file that the job maps, or is expected to. Gives since when it is probed, ns.
    pub(super) fn cover_file(&mut self, path: &Path, file: &File, id: FileId) -> Result<Option<u64>, ProbeError> {
        if let Some(library) = self.probes.cover_file(&self.engine, &self.functions, path, file)? {
            self.tell_attached(&library);
        }
        if self.asked.traffic {
            let (cookies, read) = (|| self.probes.cookies(id), || blueprint_of(file));
            self.layouts.foresee(&mut self.engine.tables, id, cookies, read);
        }
        Ok(self.probes.since_ns(id, Scope::Inode))
    }

    /// Whether a file that the job has mapped is MPI itself.
    pub(super) fn is_mpi(&mut self, path: &Path, file: &File, id: FileId) -> bool {
        self.scanner.is_mpi(path, file, id)
    }

    /// Since when a file is under probes, ns.
    pub(super) fn probed_since_ns(&self, id: FileId) -> Option<u64> {
        self.probes.since_ns(id, Scope::Inode)
    }

    /// Something of the job could not be counted.
    pub(super) fn note_missing(&mut self, what: String) {
        if !self.incomplete_because.contains(&what) {
            self.incomplete_because.push(what);
        }
    }

    /// Attaches to the processes found and puts them onto the allow-list. Gives the number of those that had not ended before.
    fn take_in(&mut self, found: Vec<MpiProcess>, beginning: Beginning) -> Result<usize, SessionError> {
        self.scoped = self.only_own || self.is_scope_worth_it(&found)?;
        let mut taken = 0;
        for process in found {
            match self.adopt(process, beginning) {
                Ok(()) => taken += 1,
                Err(SessionError::Probe(error)) if error.is_gone() => {}
                Err(error) => return Err(error),
            }
        }
        if taken > 0 {
            self.tell_observed(taken);
        }
        Ok(taken)
    }

    /// Probes for single processes are worth it if others use the same library, and nobody can join in.
    fn is_scope_worth_it(&mut self, targets: &[MpiProcess]) -> Result<bool, SessionError> {
        if !self.engine.can_scope()
            || !matches!(self.target, Target::Pids(_))
            || targets.is_empty()
            || targets.len() > MOST_SCOPED_TARGETS
        {
            return Ok(false);
        }
        let is_target = |process: &MpiProcess| targets.iter().any(|target| target.pid() == process.pid());
        let file = |process: &MpiProcess| process.library().map(|library| library.file.id);
        let others = self.scanner.scan()?.processes;
        let bystander =
            |other: &MpiProcess| !is_target(other) && targets.iter().any(|target| file(target) == file(other));
        Ok(others.iter().any(bystander))
    }

    /// Observes a process from now on.
    fn adopt(&mut self, process: MpiProcess, beginning: Beginning) -> Result<(), SessionError> {
        let pid = process.pid();
        let has_returns = self.may_have_returns(&process);
        self.cover(&process)?;
        // Started since the kernel watches, it has a slot already, and its threads may have been counted there.
        let by_exec = Targets::of(&mut self.engine.tables)?.slot_of(pid);
        let Some(slot) = by_exec.or_else(|| self.observer.take_slot(pid)) else {
            self.incomplete_because
                .push(format!("process {pid} is not observed: process table full (--max-processes)"));
            return Ok(());
        };
        if !has_returns {
            self.observer.count_entries_only(slot);
        }
        // Before its first call is counted.
        self.find_layout(slot, &process);
        self.find_sites(slot, &process.process);
        self.allow(slot, &process)?;
        let since_ns = monotonic_ns();
        self.watch_end(&process.process, slot);
        self.roster.add(slot, process, since_ns, beginning);
        Ok(())
    }

    /// Whether the calls of a process get return probes.
    fn may_have_returns(&mut self, process: &MpiProcess) -> bool {
        let is_asked = self.engine.is_asked_for_returns();
        match self.returns.of(&process.process, is_asked) {
            // Others have the same probes.
            Some(risk) if !is_asked => !self.weigh(&risk),
            Some(_) => false,
            None => true,
        }
    }

    /// Leaves return probes out for all processes if that of one forbids them. Tells whether it does.
    pub(super) fn weigh(&mut self, risk: &ReturnRisk) -> bool {
        let forbids = self.returns.judge(risk, self.engine.is_asked_for_returns());
        if forbids {
            self.engine.leave_returns_out();
            self.probes.leave_returns_out();
            self.observer.count_entries_only_of_all();
        }
        forbids
    }

    /// Finds out how the process's MPI library keeps its objects.
    fn find_layout(&mut self, slot: u32, process: &MpiProcess) {
        let missing = self.layouts.add(&mut self.engine.tables, &self.observer, slot, process);
        self.tell_missing(missing);
    }

    /// Notes where the process has code, and tells the programs which of it are language layers.
    fn find_sites(&mut self, slot: u32, process: &Process) {
        self.sites.add(slot, process);
        if self.asked.traffic
            && let Some(map) = self.sites.map(slot)
        {
            self.layers.tell(&mut self.engine.tables, &self.observer, slot, map);
        }
    }

    /// Looks at those again that had not initialised MPI.
    pub(super) fn retry_layouts(&mut self) {
        let missing = self.layouts.retry(&mut self.engine.tables, &self.observer);
        self.tell_missing(missing);
    }

    /// Whether somebody has to be looked at again soon: before calls are counted that move data.
    pub(super) fn has_pending_layouts(&self) -> bool {
        self.asked.traffic && self.layouts.are_pending()
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
        for what in missing.into_iter().filter(|_| self.asked.traffic) {
            if !self.unknown_because.contains(&what) {
                say(&what);
                self.unknown_because.push(what);
            }
        }
    }

    /// Whom probes for a process are for.
    fn scope(&self, pid: u32) -> Scope {
        if self.scoped { Scope::Process(pid) } else { Scope::Inode }
    }

    /// Probes the process's library, and tools before it; tells whether the library was not yet.
    fn cover(&mut self, process: &MpiProcess) -> Result<bool, ProbeError> {
        let scope = self.scope(process.pid());
        let is_new = self.cover_library(process, scope)?;
        // Later, so that no tool's call seems to pass nothing on.
        for tool in &process.tools {
            match self.probes.cover_tool(&self.engine, &self.functions, (process, tool), scope) {
                Ok(Coverage::New(tool)) => {
                    self.tell(format_args!(
                        "attached {} functions in {}, a tool before MPI",
                        tool.functions, tool.path
                    ));
                    for function in &tool.not_probed {
                        self.miss(format!("not probed: {function} in {}", tool.path));
                    }
                }
                Ok(Coverage::Present) => {}
                Err(error) if error.is_gone() => return Err(error),
                // What is counted at the library does not need it.
                Err(error) => self.miss(format!("calls are not timed at the entry of a tool: {error}")),
            }
        }
        Ok(is_new)
    }

    /// Something is not in the profile. Said once: all ranks of a job lack the same.
    fn miss(&mut self, what: String) {
        if !self.incomplete_because.contains(&what) {
            say(&what);
            self.incomplete_because.push(what);
        }
    }

    fn cover_library(&mut self, process: &MpiProcess, scope: Scope) -> Result<bool, ProbeError> {
        let coverage = self.probes.cover(&self.engine, &self.functions, process, scope)?;
        if let Some(library) = process.library().filter(|_| self.asked.traffic) {
            let id = library.file.id;
            let (cookies, read) = (|| self.probes.cookies(id), || blueprint(&process.process, &library.file));
            self.layouts.foresee(&mut self.engine.tables, id, cookies, read);
        }
        let Coverage::New(library) = coverage else {
            return Ok(false);
        };
        self.tell_attached(&library);
        Ok(true)
    }

    fn tell_attached(&mut self, library: &LibraryInfo) {
        self.tell(format_args!(
            "attached {} functions in {} ({}) by {}",
            library.functions, library.path, library.implementation, self.engine.rung
        ));
        for function in &library.not_probed {
            self.miss(format!("not probed: {function}"));
        }
    }

    /// That everything goes well.
    fn tell(&self, what: impl Display) {
        if self.is_job {
            tracing::info!("{what}");
        } else {
            say(what);
        }
    }

    fn allow(&mut self, slot: u32, process: &MpiProcess) -> Result<(), SessionError> {
        let (library_start, library_end) = process.library().map_or((0, 0), library_range);
        let flags = if matches!(self.target, Target::Pids(_)) { target_flags::FOLLOW_EXEC } else { 0 };
        let allowed = Allowed { process: slot, flags, library_start, library_end };
        Ok(Targets::of(&mut self.engine.tables)?.allow(process.pid(), allowed)?)
    }

    fn watch_end(&self, process: &Process, slot: u32) {
        let added = process.pidfd().map(|pidfd| self.ends.add(pidfd, slot.into()));
        if let Some(Err(error)) = added {
            tracing::warn!("cannot watch for the end of process {}: {error}", process.pid());
        }
    }

    /// Processes that have the name but no MPI yet, and may load it (`--wait`).
    fn wait_for_loaders(&mut self) {
        let pids = match select(&mut self.scanner, &self.target, &self.jobs.choice()) {
            Err(SelectError::NotMpi { pids, .. }) => pids,
            _ => Vec::new(),
        };
        for pid in pids {
            let Ok(process) = Process::open(self.scanner.root(), pid) else { continue };
            if let Some(slot) = self.observer.take_slot(pid) {
                self.watch_end(&process, slot);
                self.roster.add_candidate(slot, pid, Some(process), None, monotonic_ns(), false);
            }
        }
        if !self.was_anybody_there() {
            say("waiting for an MPI process");
        }
    }

    /// Looks the node over for targets that the kernel does not tell of: it knows programs by their names only, not scripts or
    /// jobs. Tells whether there were new ones.
    pub(super) fn search(&mut self) -> Result<bool, SessionError> {
        let selected = select(&mut self.scanner, &self.target, &self.jobs.choice());
        let again = |choice: &JobChoice| select(&mut self.scanner, &self.target, choice);
        let Some(selection) = found_meanwhile(selected, &self.jobs, again) else { return Ok(false) };
        let mut new = selection.processes;
        new.retain(|process| self.roster.running_slot(process.pid()).is_none() && self.jobs.admit(process));
        Ok(self.take_in(new, Beginning::Awaited)? > 0)
    }

    /// Processes that have become targets, of which the kernel could not tell because nobody took its notices in time.
    fn find_untold(&mut self) {
        let dropped = self.observer.dropped_notices();
        if dropped == self.dropped_notices {
            return;
        }
        self.dropped_notices = dropped;
        for (slot, counters) in self.observer.executed() {
            if self.roster.since_ns(slot).is_none() && !self.dismissed.contains(&slot) {
                let kind = NoticeKind::Exec { environment: None };
                let notice = Notice { kind, tgid: counters.tgid, process: slot, time_ns: counters.exec_ns };
                self.handle_exec(&notice, None);
            }
        }
    }

    /// What the kernel has told since the last time.
    pub(super) fn handle_notices(&mut self) {
        for mut notice in self.observer.notices() {
            match &mut notice.kind {
                NoticeKind::Exec { environment } => {
                    let environment = environment.take();
                    self.handle_exec(&notice, environment);
                }
                NoticeKind::Flush => self.flush_asked = true,
                NoticeKind::ExecAway => {
                    self.roster.end(notice.process, RankState::Execed, notice.time_ns);
                    self.release(&[notice.process]);
                }
                NoticeKind::EndedInCall { tid, started_ns, .. } => {
                    let user = self.sites.was_behind_layers(notice.process, *tid, *started_ns);
                    self.roster.note_ended_call(&notice, user);
                }
            }
        }
        self.find_untold();
    }

    /// Whether a program has asked since the last time for what was counted to be written out.
    pub(super) fn take_flush(&mut self) -> bool {
        std::mem::take(&mut self.flush_asked)
    }

    /// A process became a target by exec, or stayed one: a new process image either way.
    fn handle_exec(&mut self, notice: &Notice, environment: Option<Environment>) {
        if self.roster.since_ns(notice.process).is_some() {
            return;
        }
        let old = self.roster.running_slot(notice.tgid);
        if let Some(old) = old {
            self.roster.end(old, RankState::Execed, notice.time_ns);
            self.release(&[old]);
        }
        let process = Process::open(self.scanner.root(), notice.tgid).ok();
        if let Some(process) = &process {
            self.watch_end(process, notice.process);
        }
        let is_gone = process.is_none();
        self.roster.add_candidate(notice.process, notice.tgid, process, environment, notice.time_ns, true);
        if let Some(old) = old {
            self.roster.inherit(old, notice.process);
        }
        if is_gone {
            self.roster.end(notice.process, RankState::Ended, notice.time_ns);
        }
    }

    /// Processes have ended, given by their slots.
    pub(super) fn handle_ends(&mut self, slots: &[u64]) {
        let (mut released, mut ended) = (Vec::new(), Vec::new());
        for slot in slots.iter().filter_map(|&slot| u32::try_from(slot).ok()) {
            let Some(pid) = self.roster.end(slot, RankState::Ended, monotonic_ns()) else { continue };
            released.push(slot);
            if !self.probes.have_been_attached() && !self.is_job {
                say(format_args!(
                    "process {pid} ended before an MPI library of it could be probed; nothing of it was counted"
                ));
            }
            // Its number may be given to another process now.
            if self.roster.running_slot(pid).is_some() {
                continue;
            }
            ended.push(pid);
            if let Err(error) = Targets::of(&mut self.engine.tables).and_then(|mut targets| targets.remove(pid)) {
                tracing::warn!("cannot take process {pid} off the allow-list: {error}");
            }
        }
        self.release(&released);
        self.probes.remove_ended(&ended);
    }

    /// What is kept of process images that have ended: their files stay open only if there is something to be named.
    fn release(&mut self, slots: &[u32]) {
        for &slot in slots {
            self.layouts.forget(slot);
            if !self.asked.traffic && !self.roster.has_ended_in_call(slot) {
                self.sites.forget(slot);
            }
        }
        // The whole table is read for it: once for all that end together.
        if self.asked.traffic
            && !slots.is_empty()
            && let Err(error) = release_requests(&mut self.engine.tables, slots)
        {
            tracing::warn!("{error}");
        }
    }

    /// Whether processes that are new have loaded MPI meanwhile.
    pub(super) fn look_at_candidates(&mut self) -> Result<(), SessionError> {
        let candidates = self.roster.candidates();
        let pids: Vec<u32> = candidates.iter().map(|&(_, pid)| pid).collect();
        for ((slot, pid), finding) in candidates.into_iter().zip(self.scanner.inspect_all(&pids)) {
            match finding {
                // What is preloaded comes before MPI itself.
                Ok(Finding::Mpi(process)) if !process.library().is_some_and(MpiLibrary::implements_mpi) => {}
                Ok(Finding::Mpi(process)) => self.promote(slot, *process)?,
                Ok(Finding::NotMpi(..)) => {}
                Err(error) if error.is_gone() => {}
                Ok(_) | Err(_) => self.dismiss(slot, pid)?,
            }
        }
        Ok(())
    }

    fn promote(&mut self, slot: u32, process: MpiProcess) -> Result<(), SessionError> {
        let pid = process.pid();
        let is_called = match &self.target {
            Target::Name(name) => process.is_called(name.as_bytes()),
            Target::Pids(_) | Target::Any => true,
        };
        if !is_called || !self.jobs.admit(&process) {
            return self.dismiss(slot, pid);
        }
        if !self.may_have_returns(&process) {
            self.observer.count_entries_only(slot);
        }
        self.find_layout(slot, &process);
        self.find_sites(slot, &process.process);
        match self.cover(&process) {
            Ok(_) => {}
            Err(error) if error.is_gone() => return Ok(()),
            Err(error) => {
                say(format_args!("process {pid} is not observed: {error}"));
                self.incomplete_because.push(format!("process {pid} is not observed"));
                return self.dismiss(slot, pid);
            }
        }
        let mut since_ns = self.roster.since_ns(slot).unwrap_or_else(monotonic_ns);
        let probed_ns =
            process.library().and_then(|library| self.probes.since_ns(library.file.id, self.scope(pid))).unwrap_or(0);
        let mut beginning = Beginning::Awaited;
        // What it called before its library was probed is not known.
        if !self.roster.is_by_exec(slot) {
            self.allow(slot, &process)?;
            since_ns = monotonic_ns();
        } else if probed_ns > since_ns {
            self.allow(slot, &process)?;
            since_ns = probed_ns;
        } else {
            beginning = Beginning::FirstCall;
        }
        // This one is kept instead of the one that was opened at the exec, and a watch ends with its descriptor.
        self.watch_end(&process.process, slot);
        let job = process.job.to_string();
        let rank = process.rank.rank.map_or_else(|| "unknown".to_owned(), |rank| rank.to_string());
        self.tell(format_args!("joined: rank {rank} of job {job}, pid {pid}, {}", printable(&process.executable.path)));
        self.roster.add(slot, process, since_ns, beginning);
        Ok(())
    }

    /// A process turned out to be none that was asked for.
    fn dismiss(&mut self, slot: u32, pid: u32) -> Result<(), SessionError> {
        Targets::of(&mut self.engine.tables)?.remove(pid)?;
        self.roster.remove(slot);
        self.dismissed.insert(slot);
        Ok(())
    }

    pub(super) fn has_candidates(&self) -> bool {
        !self.roster.candidates().is_empty()
    }

    pub(super) fn is_anybody_left(&self) -> bool {
        self.roster.is_anybody_left()
    }

    /// Whether a process that uses MPI is still there.
    pub(super) fn is_rank_left(&self) -> bool {
        self.roster.is_rank_left()
    }

    /// Whether an MPI process has been observed yet.
    pub(super) fn was_anybody_there(&self) -> bool {
        self.roster.has_mpi()
    }

    /// Whether the last calls of each rank are to be shown.
    pub(super) fn show_recent_calls(&mut self, wanted: bool) {
        self.recent.show(&self.observer, wanted);
    }

    pub(super) fn has_recent_calls(&self) -> bool {
        self.recent.are_shown()
    }

    /// Takes recent calls out of their rings before they are overwritten.
    pub(super) fn gather_recent_calls(&mut self) {
        self.recent.gather(&self.observer);
    }

    pub(super) fn flush_log(&mut self) {
        self.engine.tables.flush_log();
    }

    /// Open calls that came through a language layer are the user's.
    fn look_behind_layers(&mut self, snapshot: &mut Snapshot) {
        let mut found = OpenBehindLayers::new();
        for process in &mut snapshot.processes {
            let slot = process.process;
            for thread in &mut process.threads {
                let user = self.sites.behind_layers(slot, &thread.state, self.roster.process(slot));
                // The stack may have been another call's by then.
                if let Some(user) = user.filter(|_| self.observer.is_still_open(thread)) {
                    thread.state.located_address = user;
                    thread.state.located_ns = thread.state.open.started_ns;
                    found.insert((slot, thread.tid), (thread.state.open.started_ns, user));
                }
            }
        }
        self.sites.keep_behind_layers(found);
    }

    /// The profile up to now.
    pub(super) fn profile(&mut self, end: Option<EndReason>) -> Result<Profile, SessionError> {
        self.retry_layouts();
        let mut snapshot = self.observer.snapshot(&self.engine)?;
        self.look_behind_layers(&mut snapshot);
        self.recent.complete(&self.observer, &self.roster, &mut snapshot);
        self.roster.update(&snapshot);
        self.roster.look_who_is_stopped();
        self.layouts.complete(&self.observer, &mut snapshot, &self.roster);
        let session = analyse::Session {
            host: host::name(),
            began: self.began.clone(),
            began_ns: self.began_ns,
            end,
            engine: EngineInfo {
                engine: "ebpf",
                attached_by: self.engine.rung.to_string(),
                launched: self.is_job,
                attach_ns: self.probes.attach_ns(),
                libraries: self.probes.libraries(),
                tools: self.probes.tools(),
            },
            per_call_ns: self.engine.calibration.per_call_ns,
            inside_ns: Some(self.engine.calibration.inside_ns),
            nested: self.asked.nested,
            traffic: self.asked.traffic,
            communicators: self.asked.communicators.clone(),
            expected: if self.is_job && end.is_some() { Expected::AllRanks } else { Expected::Some },
            incomplete_because: self.incomplete_because.clone(),
        };
        // Tables in between show no call sites, and looking them up may take a second the first time.
        let is_shown = self.asked.sites || end.is_some();
        self.sites.begin_naming(end.is_some());
        let (sites, roster) = (&mut self.sites, &self.roster);
        let mut name_site = |slot, address| {
            if is_shown { sites.name(slot, address, roster.process(slot)) } else { None }
        };
        let self_cost = SelfCost(session.inside_ns);
        let observed: Vec<_> =
            self.roster.observed().into_iter().map(|observed| Observed { self_cost, ..observed }).collect();
        let profile = analyse::profile(&session, &observed, &snapshot, &mut name_site);
        if session.end.is_some() {
            self.sites.tell_unnamed();
        }
        Ok(profile)
    }

    fn tell_observed(&self, number: usize) {
        let jobs: BTreeSet<String> = self.roster.jobs().into_iter().map(ToString::to_string).collect();
        let jobs: Vec<String> = jobs.into_iter().collect();
        let plural = if number == 1 { "process" } else { "processes" };
        say(format_args!("observing {number} {plural} of {}; Ctrl-C ends and prints the profile", jobs.join(", ")));
    }

    /// Detaches everything, telling after each link how many are left.
    pub(super) fn let_go(self, progress: impl FnMut(usize)) {
        self.probes.disable();
        self.probes.detach(progress);
    }
}

fn load_options(options: &Options, caller: &Caller, is_job: bool) -> LoadOptions {
    let mut exec_name = [0; COMM_LENGTH];
    if let Target::Name(name) = &options.target {
        // The kernel keeps a final NUL.
        for (to, from) in exec_name.iter_mut().take(COMM_LENGTH - 1).zip(name.bytes()) {
            *to = from;
        }
    }
    LoadOptions {
        config: Config {
            exec_name,
            exec_uid: if caller.may_trace_all { u32::MAX } else { caller.user },
            nested: options.nested.into(),
            job: is_job.into(),
            process_slots: options.max_processes,
            stats_entries: options.max_stats,
            thread_slots: options.max_threads,
            traffic: options.traffic.into(),
            read_stack: (options.traffic || options.once || options.view.is_some()).into(),
            pcontrol_plus_1: if options.ignore_pcontrol { 0 } else { pcontrol_plus_1() },
            flow_slots: if options.traffic { options.max_flows } else { 1 },
            communicator_slots: if options.traffic { options.max_communicators } else { 2 },
            request_slots: if options.traffic { options.max_requests } else { 1 },
            handle_stores: if options.traffic { Config::DEFAULT.handle_stores } else { 1 },
            recall_stores: if options.traffic { Config::DEFAULT.recall_stores } else { 1 },
            recent: options.view.is_some().into(),
            ..Config::DEFAULT
        },
    }
}

/// Id of `MPI_Pcontrol`, plus one.
fn pcontrol_plus_1() -> u32 {
    mpiprobe_functions::by_name("MPI_Pcontrol").map_or(0, |id| u32::from(id.number()) + 1)
}
