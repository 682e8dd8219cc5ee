//! An observation by probes: everything that lives as long, and what is done with it.

use std::{fs::File, iter, path::Path, sync::Arc, time::Instant};

use mpiprobe_attach::{AttachError, Observer, Targets as AllowList, begin_job};
use mpiprobe_discover::{
    Caller, Finding, MpiLibrary, MpiProcess, ProcRoot, ReturnRisk, Scanner, mappings::FileId, printable,
};
use mpiprobe_model::{
    EndReason, EngineInfo, Profile,
    analyse::{self, Beginning, Expected, Observed, SelfCost},
};
use mpiprobe_observe::monotonic_ns;
use mpiprobe_plan::ImplementationRecogniser;
use mpiprobe_report::present::say;
use mpiprobe_trace::store::Window;

use super::{
    began_before::EarlierCalls,
    budget::Limiter,
    coverage::{Coverage, Late, files_of},
    error::SessionError,
    found::found,
    functions::{counted, leaves_requests},
    host,
    jobs::ChosenJobs,
    kernel::{Kernel, reaches_own_only, room},
    notices::Notices,
    options::Options,
    probe_error::ProbeError,
    recent::RecentCalls,
    sizes::Sizes,
    targets::Targets,
    trace::Finished,
    traced::TracedProcesses,
    watch::EndWatch,
};

/// What else the profile is to say than what is counted in any case, and how.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own that may be asked for")]
struct Asked {
    nested: bool,
    traffic: bool,
    /// Requests may be completed by functions that are not looked at.
    leaves_requests: bool,
    communicators: Vec<String>,
    /// Call sites by name in every look, not in the last one only.
    sites: bool,
}

/// An observation under way.
#[derive(Debug)]
pub(super) struct Observation {
    kernel: Kernel,
    targets: Targets,
    coverage: Coverage,
    notices: Notices,
    recent: RecentCalls,
    earlier: EarlierCalls,
    late: Vec<Late>,
    /// Of whom the course of events is recorded.
    traced: Option<TracedProcesses>,
    asked: Asked,
    limiter: Limiter,
    /// Probes are for targets only, whoever they are ([`reaches_own_only`]).
    only_own: bool,
    /// mpiprobe has started the targets.
    is_job: bool,
    began: String,
    began_ns: u64,
}

impl Observation {
    /// Finds the targets, loads the programs and attaches them. On an error nothing stays attached.
    pub(super) fn begin(options: &Options) -> Result<Self, SessionError> {
        Self::begin_for(options, Caller::current()?, |_| Ok(()))
    }

    /// The same for somebody who may see other processes than who has started this one. `permit` is told how much room the tables take,
    /// bytes, before there are any.
    pub(super) fn begin_for(
        options: &Options,
        caller: Caller,
        permit: impl FnOnce(u64) -> Result<(), SessionError>,
    ) -> Result<Self, SessionError> {
        let scanner = Scanner::new(ProcRoot::system()?, caller, ImplementationRecogniser::default());
        let mut targets = Targets::new(options.target.clone(), scanner, ChosenJobs::new(&options.jobs))?;
        // Looked for before anything is loaded: most mistakes are found here.
        let first = found(targets.select(), options.wait)?;
        for process in first.iter().flat_map(|selection| &selection.processes) {
            targets.jobs.admit(process);
        }

        first.iter().flat_map(|selection| &selection.unanswered).for_each(say);

        let number = first.as_ref().map_or(0, |selection| selection.processes.len());
        let sizes = Sizes::of_job(options, number);
        permit(room(options, sizes, targets.scanner.caller()))?;
        let mut observation = Self::load(options, sizes, targets, false)?;
        // Once more, because others may have started until the kernel began to tell of new ones.
        let now = found(observation.targets.select(), options.wait || first.is_some())?;
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
        let targets = Targets::new(options.target.clone(), scanner, ChosenJobs::All)?;
        let observation = Self::load(options, Sizes::asked(options), targets, true)?;
        if !observation.kernel.engine.tells_families() {
            return Err(AttachError::NoFamilies.into());
        }
        Ok(observation)
    }

    /// Everything loaded, and nobody observed.
    fn load(options: &Options, sizes: Sizes, targets: Targets, is_job: bool) -> Result<Self, SessionError> {
        let kernel = Kernel::load(options, sizes, targets.scanner.caller(), is_job)?;
        let only_own = reaches_own_only(&kernel.engine, targets.scanner.caller());
        let mut coverage = Coverage::new(options, &kernel.engine, is_job);
        coverage.scope_to_processes(only_own);
        let limiter = Limiter::new(options, &kernel);
        coverage.probes.in_units = limiter.may_sample();
        // Before anybody can call.
        let traced = options.trace.as_ref().map(|trace| TracedProcesses::begin(trace, &kernel.engine)).transpose()?;
        Ok(Self {
            traced,
            limiter,
            kernel,
            targets,
            coverage,
            notices: Notices::default(),
            recent: RecentCalls::default(),
            earlier: EarlierCalls::new(counted(options.functions, options.ignore_pcontrol)),
            late: Vec::new(),
            asked: Asked {
                nested: options.nested,
                traffic: options.traffic,
                leaves_requests: options.traffic && leaves_requests(options.functions),
                communicators: options.communicators.clone(),
                sites: options.json || options.is_viewed,
            },
            only_own,
            is_job,
            began: host::utc_now(),
            began_ns: monotonic_ns(),
        })
    }

    /// The job's first process, which has executed nothing yet.
    pub(super) fn begin_job(&mut self, pid: u32) -> Result<(), SessionError> {
        Ok(begin_job(&mut self.kernel.engine.tables, pid)?)
    }

    /// Probes a file that the job maps, or is expected to. Gives since when it is probed, ns.
    pub(super) fn cover_file(&mut self, path: &Path, file: &File, id: FileId) -> Result<Option<u64>, ProbeError> {
        self.coverage.cover_file(&mut self.kernel, path, file, id)
    }

    /// Whether a file that the job has mapped is MPI itself.
    pub(super) fn is_mpi(&mut self, path: &Path, file: &File, id: FileId) -> bool {
        self.targets.scanner.is_mpi(path, file, id)
    }

    /// Since when a file is under probes, ns.
    pub(super) fn probed_since_ns(&self, id: FileId) -> Option<u64> {
        self.coverage.file_since_ns(id)
    }

    /// Something of the job could not be counted.
    pub(super) fn note_missing(&mut self, what: String) {
        self.coverage.note_missing(what);
    }

    /// Libraries were probed only after processes of the job had loaded them.
    pub(super) fn note_late(&mut self, late: impl IntoIterator<Item = Late>) {
        self.late.extend(late);
    }

    /// Leaves return probes out for all processes if that of one forbids them.
    pub(super) fn weigh(&mut self, risk: &ReturnRisk) {
        self.coverage.weigh(&mut self.kernel, risk);
    }

    /// Attaches to the processes found and puts them onto the allow-list. Gives the number of those that had not ended before.
    fn take_in(&mut self, mut found: Vec<MpiProcess>, beginning: Beginning) -> Result<usize, SessionError> {
        let scoped = self.only_own || (self.kernel.engine.can_scope() && self.targets.is_scope_worth_it(&found)?);
        self.coverage.scope_to_processes(scoped);
        if !found.is_empty() && !self.kernel.engine.is_asked_for_returns() {
            let all = self.targets.scanner.scan()?.processes;
            let is_other = |process: &&MpiProcess| self.targets.process_table.running_slot(process.pid()).is_none();
            let others: Vec<&MpiProcess> = all.iter().filter(is_other).collect();
            found.retain(|process| !self.coverage.is_endangered(process, &others));
            let files: Vec<FileId> = found.iter().flat_map(files_of).collect();
            self.coverage.spare_bystanders(&mut self.kernel, &all, &files, scoped);
        }
        if !found.is_empty() {
            self.earlier.prepare(&mut self.kernel, found.iter().map(|process| &process.process));
        }
        let mut taken = 0_usize;
        for process in found {
            match self.adopt(process, beginning) {
                Ok(()) => taken += 1,
                Err(SessionError::Probe(error)) if error.is_gone() => {}
                Err(error) => return Err(error),
            }
        }
        self.earlier.begin(&mut self.kernel, &self.targets.process_table);
        if taken > 0 {
            self.targets.process_table.note_callers(self.earlier.callers());
            let copies = self.targets.process_table.silent_copies().len();
            self.targets.tell_observed(taken.saturating_sub(copies));
        }
        Ok(taken)
    }

    /// Where return probes are armed for each call of everybody who maps one of these files, they are left out if they may harm somebody.
    pub(super) fn spare_bystanders(&mut self, files: &[FileId]) -> Result<(), SessionError> {
        if !self.kernel.engine.is_asked_for_returns() {
            let all = self.targets.scanner.scan()?.processes;
            self.coverage.spare_bystanders(&mut self.kernel, &all, files, false);
        }
        Ok(())
    }

    /// Observes a process from now on.
    fn adopt(&mut self, process: MpiProcess, beginning: Beginning) -> Result<(), SessionError> {
        let Self { kernel, targets, coverage, earlier, .. } = self;
        let pid = process.pid();
        let has_returns = coverage.may_have_returns(kernel, &process);
        coverage.cover(kernel, &process)?;
        // Started since the kernel watches, it has a slot already, and its threads may have been counted there.
        let by_exec = AllowList::of(&mut kernel.engine.tables)?.slot_of(pid);
        let Some(slot) = by_exec.or_else(|| kernel.observer.take_slot(pid)) else {
            coverage.note_missing(format!("process {pid} is not observed: process table full (--max-processes)"));
            return Ok(());
        };
        if !has_returns {
            kernel.observer.count_entries_only(slot);
        }
        // Before its first call is counted.
        coverage.understand(kernel, slot, &process);
        targets.allow(&mut kernel.engine.tables, slot, &process)?;
        let since_ns = monotonic_ns();
        targets.add(slot, process, since_ns, beginning);
        if has_returns {
            earlier.follow((slot, pid), since_ns);
        }
        Ok(())
    }

    /// When there is something to do next for the limit of what observing costs.
    pub(super) fn next_turn_of_limiter(&self) -> Instant {
        self.limiter.next_moment()
    }

    /// Does it.
    pub(super) fn keep_limit(&mut self) {
        let Self { kernel, targets, coverage, limiter, .. } = self;
        limiter.turn(kernel, &mut coverage.probes, &targets.process_table);
    }

    /// When to look again for calls that had begun before; `None`: there are none.
    pub(super) fn next_look_at_earlier_calls(&self) -> Option<Instant> {
        self.earlier.next_look()
    }

    /// Looks whether calls that had begun before are still open.
    pub(super) fn look_at_earlier_calls(&mut self) {
        self.earlier.look(&mut self.kernel, &self.targets.process_table);
    }

    /// Processes that have the name but no MPI yet, and may load it (`--wait`).
    fn wait_for_loaders(&mut self) {
        for process in self.targets.find_loaders() {
            if let Some(slot) = self.kernel.observer.take_slot(process.pid()) {
                self.targets.add_loader(slot, process);
            }
        }
        if !self.was_anybody_there() {
            say("waiting for an MPI process");
        }
    }

    /// Looks the node over for targets that the kernel does not tell of. Tells whether there were new ones.
    pub(super) fn search(&mut self) -> Result<bool, SessionError> {
        let new = self.targets.find_new();
        Ok(self.take_in(new, Beginning::Awaited)? > 0)
    }

    /// Looks at those again that had not initialised MPI.
    pub(super) fn retry_layouts(&mut self) {
        self.coverage.retry_layouts(&mut self.kernel);
    }

    /// When somebody has to be looked at again who had not initialised MPI.
    pub(super) fn next_look_at_layouts(&self) -> Option<Instant> {
        self.coverage.next_look_at_layouts()
    }

    /// What the kernel has told since the last time.
    pub(super) fn handle_notices(&mut self) {
        self.notices.handle(&mut self.kernel, &mut self.targets, &mut self.coverage);
    }

    /// Whether a program has asked since the last time for what was counted to be written out.
    pub(super) fn take_flush(&mut self) -> bool {
        self.notices.take_flush()
    }

    /// Processes have ended, given by the tokens of their watches: slots, and perhaps a command's.
    pub(super) fn handle_ends(&mut self, tokens: &[u64]) {
        // What was told of their threads before, such as the calls that they were in, is of processes that run.
        self.handle_notices();
        let Self { kernel, targets, coverage, .. } = self;
        let (mut released, mut ended) = (Vec::new(), Vec::new());
        for slot in tokens.iter().filter_map(|&token| u32::try_from(token).ok()) {
            let Some(pid) = targets.end(slot) else { continue };
            released.push(slot);
            if !coverage.probes.have_been_attached() && !self.is_job {
                say(format_args!(
                    "process {pid} ended before an MPI library of it could be probed; nothing of it was counted"
                ));
            }
            if targets.forget_pid(&mut kernel.engine.tables, pid) {
                ended.push(pid);
            }
        }
        coverage.release(kernel, &targets.process_table, &released);
        coverage.probes.remove_ended(&ended);
    }

    /// Whether processes that are new have loaded MPI meanwhile.
    pub(super) fn look_at_candidates(&mut self) -> Result<(), SessionError> {
        let at_ns = monotonic_ns();
        let found: Vec<_> = self.targets.inspect_candidates().collect();
        if found.iter().any(|(_, finding)| !matches!(finding, Ok(Finding::NotMpi(..)))) {
            // Who has become another program meanwhile is another candidate by now: what was seen is that one's.
            self.handle_notices();
        }
        for ((slot, pid), finding) in found {
            if self.targets.process_table.running_slot(pid) != Some(slot) {
                continue;
            }
            match finding {
                // What is preloaded comes before MPI itself.
                Ok(Finding::Mpi(process)) if !process.library().is_some_and(MpiLibrary::implements_mpi) => {}
                Ok(Finding::Mpi(process)) => self.promote(slot, *process)?,
                Ok(Finding::NotMpi(..)) => self.targets.process_table.note_without_mpi(slot, at_ns),
                Err(error) if error.is_gone() => {}
                Ok(_) | Err(_) => self.dismiss(slot, pid)?,
            }
        }
        Ok(())
    }

    /// A candidate has loaded MPI: observes it, if it is one of those asked for.
    fn promote(&mut self, slot: u32, process: MpiProcess) -> Result<(), SessionError> {
        let pid = process.pid();
        if !self.targets.admit(&process) {
            return self.dismiss(slot, pid);
        }
        let Self { kernel, targets, coverage, earlier, limiter, .. } = self;
        let has_returns = coverage.may_have_returns(kernel, &process);
        if !has_returns {
            kernel.observer.count_entries_only(slot);
        }
        coverage.understand(kernel, slot, &process);
        match coverage.cover(kernel, &process) {
            Ok(()) => {}
            Err(error) if error.is_gone() => return Ok(()),
            Err(error) => {
                say(format_args!("process {pid} is not observed: {error}"));
                coverage.note_missing(format!("process {pid} is not observed"));
                return self.dismiss(slot, pid);
            }
        }
        let mut since_ns = targets.process_table.since_ns(slot).unwrap_or_else(monotonic_ns);
        let probed_ns = coverage.since_ns(&process).unwrap_or(0);
        let mut beginning = Beginning::Awaited;
        // What it called before its library was probed is not known.
        if !targets.process_table.is_by_exec(slot) {
            targets.allow(&mut kernel.engine.tables, slot, &process)?;
            since_ns = monotonic_ns();
        } else if targets.process_table.no_call_before_ns(slot).is_some_and(|before_ns| probed_ns > before_ns) {
            targets.allow(&mut kernel.engine.tables, slot, &process)?;
            since_ns = probed_ns;
        } else {
            beginning = Beginning::FirstCall;
            if limiter.may_sample() {
                // Of calls inside those that are not followed it is known by where they come from.
                targets.allow(&mut kernel.engine.tables, slot, &process)?;
            }
        }
        let job = process.job.to_string();
        let rank = process.rank.rank.map_or_else(|| "unknown".to_owned(), |rank| rank.to_string());
        let executable = printable(&process.executable.path);
        coverage.tell(format_args!("joined: rank {rank} of job {job}, pid {pid}, {executable}"));
        let is_late = beginning == Beginning::Awaited && has_returns;
        if is_late {
            earlier.prepare(kernel, iter::once(&process.process));
        }
        targets.add(slot, process, since_ns, beginning);
        if is_late {
            earlier.follow((slot, pid), since_ns);
            earlier.begin(kernel, &targets.process_table);
        }
        Ok(())
    }

    /// A process turned out to be none that was asked for.
    fn dismiss(&mut self, slot: u32, pid: u32) -> Result<(), SessionError> {
        if let Some(traced) = &mut self.traced {
            traced.refuse(slot);
        }
        self.targets.dismiss(&mut self.kernel.engine.tables, slot, pid)
    }

    /// Takes processes that are new into the recording of the course of events, and what is new of calls that had begun before.
    pub(super) fn look_at_traced(&mut self) {
        let Self { traced: Some(traced), earlier, kernel, coverage, targets, .. } = self else { return };
        targets.process_table.note_unseen(coverage.probes.all_since_ns());
        earlier.note_returns(kernel);
        let news = earlier.take_news(|slot| kernel.observer.layout(slot).handle_width());
        traced.look(&targets.process_table, || coverage.probes.implementation(), news);
    }

    /// Whether calls that had begun before are recorded when they return.
    pub(super) fn are_earlier_calls_traced(&self) -> bool {
        self.traced.is_some() && self.earlier.is_any_open()
    }

    /// All processes are in that recording that had called MPI by then, ns.
    pub(super) fn know_traced_until(&self, ns: u64) {
        if let Some(traced) = &self.traced {
            traced.know_until(ns);
        }
    }

    /// Says in that recording where calls were made, as far as it is known by now.
    pub(super) fn name_traced_sites(&mut self) {
        let Self { traced, targets, coverage, kernel, .. } = self;
        if let Some(traced) = traced {
            traced.locate_open_calls(|| kernel.engine.locate_open_calls());
            traced.name_sites(&targets.process_table, &mut coverage.sites, false);
        }
    }

    /// Records no more calls: the last profile, which is about to be made, has all that are recorded, and few more.
    pub(super) fn stop_trace(&mut self) {
        if self.are_earlier_calls_traced() {
            self.look_at_earlier_calls();
        }
        self.look_at_traced();
        if let Some(traced) = &self.traced {
            traced.stop();
        }
    }

    /// Says to that recording that the job has not ended as it should.
    pub(super) fn fail_trace(&self, why: String) {
        if let Some(traced) = &self.traced {
            traced.fail(why);
        }
    }

    /// Ends the recording of the course of events; gives what has come of it.
    pub(super) fn finish_trace(&mut self) -> Option<Finished> {
        self.look_at_traced();
        let traced = self.traced.take()?;
        Some(traced.finish(&self.targets.process_table, &mut self.coverage.sites))
    }

    /// Whether somebody looks at calls as they come, for whom call sites are to be known soon.
    pub(super) fn is_looked_at(&self) -> bool {
        self.traced.as_ref().is_some_and(TracedProcesses::is_looked_at)
    }

    /// What is kept in memory is to be written down by whoever keeps it elsewhere.
    pub(super) fn dump(&self) {
        if let Some(traced) = &self.traced {
            traced.dump();
        }
    }

    /// The latest calls, if they are kept.
    pub(super) fn window(&self) -> Option<Arc<Window>> {
        self.traced.as_ref()?.window()
    }

    pub(super) fn has_candidates(&self) -> bool {
        !self.targets.process_table.candidates().is_empty()
    }

    pub(super) fn is_anybody_left(&self) -> bool {
        self.targets.process_table.is_anybody_left()
    }

    /// Whether a process that uses MPI is still there.
    pub(super) fn is_rank_left(&self) -> bool {
        self.targets.process_table.is_rank_left()
    }

    /// Whether an MPI process has been observed yet, or missed.
    pub(super) fn was_anybody_there(&self) -> bool {
        self.targets.process_table.has_mpi() || self.targets.process_table.missed() > 0
    }

    /// Whether the last calls of each rank are to be shown.
    pub(super) fn show_recent_calls(&mut self, wanted: bool) {
        self.recent.show(&self.kernel.observer, wanted);
    }

    pub(super) fn has_recent_calls(&self) -> bool {
        self.recent.are_shown()
    }

    /// Takes recent calls out of their rings before they are overwritten.
    pub(super) fn gather_recent_calls(&mut self) {
        self.recent.gather(&self.kernel.observer);
    }

    pub(super) fn flush_log(&mut self) {
        self.kernel.engine.tables.flush_log();
    }

    /// The profile up to now.
    /// Of processes that ended before anybody had looked at them, the code is what they are known to have mapped, as lines of
    /// `/proc/PID/maps`.
    pub(super) fn find_code_of_ended<'a>(&mut self, mapped: &dyn Fn(u32) -> &'a [u8]) {
        let Self { kernel, targets, coverage, .. } = self;
        for (slot, pid, since_ns) in targets.process_table.ended_once() {
            coverage.find_noted_sites(kernel, slot, mapped(pid), since_ns);
        }
    }

    pub(super) fn profile(&mut self, end: Option<EndReason>) -> Result<Profile, SessionError> {
        self.retry_layouts();
        self.look_at_earlier_calls();
        let Self { kernel, targets, coverage, earlier, late, limiter, .. } = self;
        let process_table = &mut targets.process_table;
        let mut snapshot = kernel.observer.snapshot(&kernel.engine)?;
        earlier.note_returns(kernel);
        coverage.look_behind_layers(kernel, process_table, &mut snapshot);
        self.recent.complete(&kernel.observer, process_table, &mut snapshot);
        if limiter.has_paused_traffic() {
            // Of those it would not be known any more that they are complete.
            snapshot.processes.iter_mut().for_each(|process| process.requests.clear());
        }
        process_table.update(&snapshot);
        process_table.note_unseen(coverage.probes.all_since_ns());
        process_table.note_callers(earlier.callers());
        process_table.look_who_is_stopped();
        coverage.layouts.complete(&kernel.observer, &mut snapshot, process_table);
        let mut incomplete_because = coverage.incomplete_because();
        for library in late.iter() {
            incomplete_because.extend(coverage.lacks_because_late(library, process_table, &snapshot));
        }
        let missed = process_table.missed();
        if missed > 0 && !self.is_job {
            incomplete_because.push(format!(
                "{missed} ranks ended before an MPI library of them could be probed: they are not counted"
            ));
        }
        let session = analyse::Session {
            host: host::name(),
            began: self.began.clone(),
            began_ns: self.began_ns,
            end,
            engine: EngineInfo {
                engine: "ebpf",
                attached_by: kernel.engine.method.to_string(),
                launched: self.is_job,
                attach_ns: coverage.probes.attach_ns(),
                libraries: coverage.probes.libraries(),
                tools: coverage.probes.tools(),
            },
            per_call_ns: kernel.engine.calibration.per_call_ns,
            inside_ns: Some(kernel.engine.calibration.inside_ns),
            nested: self.asked.nested,
            traffic: self.asked.traffic,
            communicators: self.asked.communicators.clone(),
            expected: if self.is_job && end.is_some() { Expected::AllRanks } else { Expected::Some },
            incomplete_because,
        };
        // Tables in between show no call sites, and looking them up may take a second the first time.
        let is_shown = self.asked.sites || end.is_some();
        let (sites, process_table) = (&mut coverage.sites, &targets.process_table);
        sites.begin_naming(end.is_some());
        let self_cost = SelfCost(session.inside_ns);
        let observed: Vec<_> = process_table.observed().into_iter().map(|one| Observed { self_cost, ..one }).collect();
        earlier.complete(&observed, &mut snapshot);
        coverage.layouts.complete_operands(&mut snapshot, process_table);
        let mut profile = analyse::profile(&session, &observed, &snapshot, &mut |slot, address| {
            if is_shown { sites.name(slot, address, process_table.process(slot)) } else { None }
        });
        profile.wait_states = self.traced.as_ref().and_then(TracedProcesses::wait_states);
        limiter.complete(kernel, process_table, &mut profile);
        if self.asked.leaves_requests {
            profile.leave_requests_open();
        }
        if end.is_some() {
            sites.tell_unnamed();
        }
        Ok(profile)
    }

    pub(super) fn observer(&self) -> &Observer {
        &self.kernel.observer
    }

    pub(super) fn ends(&self) -> &EndWatch {
        &self.targets.ends
    }

    /// How many links [`Self::let_go`] closes.
    pub(super) fn links(&self) -> usize {
        self.coverage.probes.links()
    }

    /// Detaches everything, telling after each link how many are left.
    pub(super) fn let_go(self, progress: impl FnMut(usize)) {
        self.coverage.probes.disable();
        self.coverage.probes.detach(progress);
        self.limiter.end();
    }
}
