//! The observation of jobs that count themselves, while they run. Needs no rights but those to read what is the user's own.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use mpiprobe_common::file::SUFFIX;
use mpiprobe_discover::{
    Caller, Finding, JobChoice, MpiProcess, ProcRoot, Process, Scanner, Target, is_wrapper, mappings::Mappings,
    open_mapped, select,
};
use mpiprobe_model::{EndReason, Profile, analyse::Identity};
use mpiprobe_observe::{TableFileError, monotonic_ns};
use mpiprobe_plan::ImplementationRecogniser;
use mpiprobe_report::present::say;

use super::{
    changes::{Changes, Event},
    image::Image,
    images::Images,
    profile::{RunFacts, profile},
    stale::remove_stale,
};
use crate::{
    preload::own_directories,
    session::{
        error::SessionError,
        found::{found, found_meanwhile},
        jobs::ChosenJobs,
        options::Options,
        sites::Sites,
        source::Source,
        watch::EndWatch,
    },
};

/// How often new processes are looked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// An observation under way.
#[derive(Debug)]
pub(in crate::session) struct WrappedJob {
    target: Target,
    jobs: ChosenJobs,
    communicators: Vec<String>,
    names_sites: bool,
    scanner: Scanner<ImplementationRecogniser>,
    images: Images,
    sites: Sites,
    changes: Changes,
    /// As long as there has been nobody, somebody is waited for.
    wait: bool,
    /// Where tables of the targets were found, besides the user's own places.
    directories: BTreeSet<PathBuf>,
    /// Targets without tables: they may come with the first call, or never.
    without: Vec<MpiProcess>,
    missing: Vec<String>,
    began_ns: u64,
}

impl WrappedJob {
    /// Finds the targets' tables. `None`: there are none, and another engine may be asked, if this is not the only way.
    pub(in crate::session) fn begin(options: &Options, is_only_way: bool) -> Result<Option<Self>, SessionError> {
        let mut scanner = Scanner::new(ProcRoot::system()?, Caller::current()?, ImplementationRecogniser::default());
        let jobs = ChosenJobs::new(&options.jobs);
        let selected = match select(&mut scanner, &options.target, &options.jobs) {
            // The other engine will say so too, or wait.
            Err(_) if !is_only_way => return Ok(None),
            selected => found(selected, options.wait)?,
        };
        let mut job = Self {
            target: options.target.clone(),
            jobs,
            communicators: options.communicators.clone(),
            names_sites: options.json || options.is_viewed,
            scanner,
            images: Images::new(ProcRoot::system()?),
            sites: Sites::default(),
            changes: Changes::new(EndWatch::new().map_err(SessionError::Watch)?, LOOK_INTERVAL),
            wait: options.wait,
            directories: BTreeSet::new(),
            without: Vec::new(),
            missing: Vec::new(),
            began_ns: monotonic_ns(),
        };
        let (targets, unanswered) =
            selected.map_or_else(Default::default, |selection| (selection.processes, selection.unanswered));
        for process in targets {
            job.jobs.admit(&process);
            job.take_in(process);
        }
        // Those whose tables cannot be read may be observed in another way.
        let may_count = !job.images.is_empty() || (job.missing.is_empty() && job.without.iter().any(has_wrapper));
        if !may_count && (!is_only_way || !job.without.is_empty()) {
            return if is_only_way { Err(SessionError::NotWrapped(job.without.len())) } else { Ok(None) };
        }
        remove_stale(job.scanner.root());
        unanswered.iter().for_each(say);
        job.tell_observed(options);
        Ok(Some(job))
    }

    /// Takes in the tables that a process has mapped, if it has.
    fn take_in(&mut self, process: MpiProcess) {
        let tables = Mappings::with_suffix(&process.process, SUFFIX).unwrap_or_default();
        let mut is_taken = false;
        for mapped in &tables {
            let path = mapped.candidate_paths().into_iter().next().map(path_of).unwrap_or_default();
            let file = open_mapped(&process.process, mapped).map_err(|error| error.to_string());
            let image = file.and_then(|file| self.images.mapped_by(&process, file).map_err(|error| error.to_string()));
            match image {
                Ok(Some(image)) => {
                    self.directories.extend(path.parent().map(Path::to_owned));
                    is_taken |= self.take(path, image);
                }
                // It was forked by the process that they are of.
                Ok(None) => {}
                Err(why) => self.miss(format!("tables of process {} were not read: {why}", process.pid())),
            }
        }
        if !is_taken {
            self.without.push(process);
        }
    }

    /// Observes an image from now on.
    fn take(&mut self, path: PathBuf, image: Image) -> bool {
        let Some(slot) = self.images.take(path, image) else { return false };
        if let Some(process) = self.images.process(slot) {
            self.sites.add(slot, process);
            self.changes.add(process, slot);
        }
        true
    }

    fn miss(&mut self, what: String) {
        if !self.missing.contains(&what) {
            say(&what);
            self.missing.push(what);
        }
    }

    fn tell_observed(&self, options: &Options) {
        let jobs: BTreeSet<&str> = self.images.iter().filter_map(|image| image.identity().job.as_deref()).collect();
        let jobs: Vec<&str> = jobs.into_iter().collect();
        let number = self.images.iter().count();
        let plural = if number == 1 { "process" } else { "processes" };
        if number > 0 {
            say(format_args!(
                "observing {number} {plural} of {}, which count themselves (wrapper), since their start; Ctrl-C ends and \
                 prints the profile",
                jobs.join(", ")
            ));
        } else if self.without.is_empty() {
            say("waiting for an MPI process");
        } else {
            say(format_args!("{} with the wrapper: no call of MPI yet", processes(self.without.len())));
        }
        if options.nested {
            say("--nested has no effect: the wrapper does not time calls that MPI makes inside MPI");
        }
        let bare = self.without.iter().filter(|process| !has_wrapper(process)).count();
        if bare > 0 {
            say(without_wrapper(bare));
        }
    }

    /// Looks for tables of processes that are new. Tells whether there were any.
    fn take_new(&mut self) -> bool {
        let mut is_news = false;
        let known = self.directories.iter().cloned();
        let directories: BTreeSet<PathBuf> = known.chain(own_directories()).collect();
        for directory in directories {
            // A run that has ended has removed its own.
            let Ok(new) = self.images.new_in(&directory) else { continue };
            for (path, image) in new {
                match image {
                    Ok(image) => is_news |= self.decide(path, image),
                    Err(TableFileError::Unfinished) => {}
                    Err(error) => {
                        if matches!(error, TableFileError::OtherOwner(_)) {
                            say(format_args!("{} is left out: {error}", path.display()));
                        }
                        self.images.pass_over(path);
                    }
                }
            }
        }
        self.images.go_on_with_recent_calls();
        is_news
    }

    /// Takes an image in if it is of those that are asked for.
    fn decide(&mut self, path: PathBuf, mut image: Image) -> bool {
        // What is there after an exec is not what the tables are of.
        let process = image.process().filter(|_| image.execed_ns().is_none());
        let found = process.map(Process::pid).map(|pid| self.scanner.inspect(pid));
        let is_asked_for = match found {
            Some(Ok(Finding::Mpi(process))) => {
                let is_meant = self.is_named(&process) && self.jobs.admit(&process);
                image.identify(&process);
                is_meant
            }
            Some(Ok(_)) => false,
            Some(Err(error)) if !error.is_gone() => false,
            // It has ended, or is another program, before it could be looked at: what its tables tell must do.
            Some(Err(_)) | None => {
                image.origin().began_ns >= self.began_ns
                    && self.is_named_by_executable(&image)
                    && self.images.iter().any(|other| image.adopt_job_of(other))
            }
        };
        if !is_asked_for {
            self.images.pass_over(path);
            return false;
        }
        let who = image.identity().clone();
        if self.take(path, image) {
            tell_joined(&who);
            self.without.retain(|process| process.pid() != who.pid);
            return true;
        }
        false
    }

    fn is_named(&self, process: &MpiProcess) -> bool {
        match &self.target {
            Target::Name(name) => process.is_called(name.as_bytes()),
            Target::Pids(pids) => pids.contains(&process.pid()),
            Target::Any => true,
        }
    }

    fn is_named_by_executable(&self, image: &Image) -> bool {
        match &self.target {
            Target::Name(name) => image.identity().executable.rsplit('/').next() == Some(name),
            Target::Pids(pids) => pids.contains(&image.identity().pid),
            Target::Any => true,
        }
    }

    /// Looks the node over for targets whose tables are in places that nobody knows of.
    fn search(&mut self) {
        let selected = select(&mut self.scanner, &self.target, &self.jobs.choice());
        let again = |choice: &JobChoice| select(&mut self.scanner, &self.target, choice);
        let Some(selection) = found_meanwhile(selected, &self.jobs, again) else { return };
        self.without.clear();
        for process in selection.processes {
            let is_known =
                self.images.iter().any(|image| image.process().is_some_and(|it| it.id() == process.process.id()));
            if !is_known && self.jobs.admit(&process) {
                let before = self.images.iter().count();
                self.take_in(process);
                self.images.iter().skip(before).map(Image::identity).for_each(tell_joined);
            }
        }
    }

    /// The profile up to now.
    fn profile_now(&mut self, end: Option<EndReason>) -> Profile {
        // Who has begun, and perhaps ended, since the last look.
        self.take_new();
        self.images.note_silent_ends();
        let mut missing = self.missing.clone();
        let (silent, bare): (Vec<&MpiProcess>, Vec<&MpiProcess>) =
            self.without.iter().partition(|process| has_wrapper(process));
        if !bare.is_empty() {
            missing.push(without_wrapper(bare.len()));
        }
        if end.is_some() && !silent.is_empty() {
            missing.push(format!(
                "{} have no tables although they have loaded the wrapper: they have not called MPI yet, or their tables \
                 could not be kept",
                processes(silent.len())
            ));
        }
        let (names_sites, is_last) = (self.names_sites || end.is_some(), end.is_some());
        let communicators = self.communicators.clone();
        let facts = RunFacts { end, communicators, missing, names_sites, is_last, ..RunFacts::default() };
        profile(&mut self.images, &mut self.sites, facts)
    }
}

impl Source for WrappedJob {
    type Event = Event;

    async fn event(&mut self) -> Result<Event, SessionError> {
        self.changes.next().await
    }

    fn handle(&mut self, event: Event) -> Result<(), SessionError> {
        match event {
            Event::Ended(tokens) => self.images.note_ends(&tokens),
            Event::Look => self.look()?,
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), SessionError> {
        if !self.take_new() && self.wait && !self.was_anybody_there() {
            self.search();
        }
        Ok(())
    }

    fn profile(&mut self, end: Option<EndReason>) -> Result<Profile, SessionError> {
        Ok(self.profile_now(end))
    }

    fn take_flush(&mut self) -> bool {
        self.images.take_flush()
    }

    fn show_recent_calls(&mut self, wanted: bool) {
        self.images.show_recent_calls(wanted);
    }

    fn was_anybody_there(&self) -> bool {
        !self.images.is_empty()
    }

    fn is_anybody_left(&mut self) -> bool {
        let is_left = self.images.is_anybody_left() || self.without.iter().any(|process| process.process.is_alive());
        // Others of the job may have come since the last look.
        is_left || self.take_new()
    }

    /// Nothing was done to the targets.
    async fn end(self) {}
}

fn has_wrapper(process: &MpiProcess) -> bool {
    process.libraries.iter().any(|library| is_wrapper(Path::new(&library.file.display_path())))
}

fn without_wrapper(number: usize) -> String {
    format!("{} run without the wrapper: nothing of them is counted; --engine ebpf counts all", processes(number))
}

fn processes(number: usize) -> String {
    if number == 1 { "1 process".to_owned() } else { format!("{number} processes") }
}

fn path_of(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    std::ffi::OsString::from_vec(bytes).into()
}

fn tell_joined(who: &Identity) {
    let rank = who.rank.map_or_else(|| "unknown".to_owned(), |rank| rank.to_string());
    let job = who.job.as_deref().unwrap_or_default();
    say(format_args!("joined: rank {rank} of job {job}, pid {}, {}", who.pid, who.executable));
}
