//! Processes of a command that have MPI in them and do not count themselves: the wrapper is not in them, or the program finds MPI's functions
//! past it. Where nobody counts, nothing else tells of them.
//!
//! What each process maps as code the kernel tells, also of those that have ended by the time that somebody looks; where it may not be asked,
//! processes are looked at while they live.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ffi::OsStr,
    fs::{File, read_dir},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use mpiprobe_attach::{CodeEvents, CodeMapped, Record};
use mpiprobe_common::{file::SUFFIX, layout::Template};
use mpiprobe_discover::{
    Caller, Finding, MpiProcess, ProcRoot, Scanner, identity_when_mapped, is_wrapper,
    mappings::{FileId, Mappings},
    open_regular, printable,
};
use mpiprobe_layout::{Blueprint, TargetMemory};
use mpiprobe_observe::monotonic_ns;
use mpiprobe_plan::ImplementationRecogniser;

use crate::blueprints::blueprint_of;

/// How often a process is looked at that has MPI and does not count itself (yet): first, and not more seldom than the second.
const INTERVAL: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));
/// The kernel tells of each processor's events for itself: what is younger than this, in ns, may not be all that happened until then.
const SETTLED_NS: u64 = 10_000_000;
/// When more images are known than this, and than twice as many as have lived the last time, those of processes that have ended are put
/// away.
const FEW_IMAGES: usize = 1 << 10;
/// Processes of a command that are looked for, and threads of one, each of which may have started some.
const MOST_PROCESSES: usize = 1 << 14;
const MOST_THREADS: usize = 1 << 10;

/// What is known of the processes that a command has started.
#[derive(Debug)]
pub(in crate::session) struct Uncounted {
    scanner: Scanner<ImplementationRecogniser>,
    /// Whether a program gets other rights than whoever executes it, and has MPI.
    has_other_rights: OtherRights,
    /// The first of them.
    command: u32,
    /// `None`: it may not be asked for.
    events: Option<CodeEvents>,
    /// Those that are too young.
    held_back: Vec<Record>,
    /// The present image of each process.
    images: BTreeMap<u32, Image>,
    /// By program and by why: of how many images nothing was counted.
    found: BTreeMap<(String, Why), usize>,
    /// Ended ones, by number and program, that are [`Why::Past`] unless they have tables.
    perhaps_past: Vec<(u32, String)>,
    /// What is known of libraries, to tell whether a process has initialised MPI.
    libraries: HashMap<FileId, Reading>,
    /// Files by what they are.
    files: HashMap<FileId, bool>,
    lost: u64,
    living: usize,
}

/// What a library's file tells, found out beside all else, because it takes some tens of milliseconds.
#[derive(Debug)]
enum Reading {
    UnderWay(JoinHandle<Option<(Blueprint, Template)>>),
    Done(Option<Box<(Blueprint, Template)>>),
}

impl Reading {
    fn begin(file: File) -> Self {
        let read = move || {
            let blueprint = blueprint_of(&file)?;
            let template = blueprint.template()?;
            Some((blueprint, template))
        };
        match thread::Builder::new().name("library".into()).spawn(read) {
            Ok(reading) => Self::UnderWay(reading),
            Err(_) => Self::Done(None),
        }
    }

    /// `None`: nothing, or nothing yet.
    fn get(&mut self) -> Option<&(Blueprint, Template)> {
        if let Self::UnderWay(reading) = self
            && reading.is_finished()
            && let Self::UnderWay(reading) = std::mem::replace(self, Self::Done(None))
        {
            *self = Self::Done(reading.join().ok().flatten().map(Box::new));
        }
        match self {
            Self::UnderWay(_) => None,
            Self::Done(known) => known.as_deref(),
        }
    }
}

/// Looks at a program by the name that it is called by.
pub(in crate::session) type OtherRights = fn(&OsStr, &mut Scanner<ImplementationRecogniser>) -> bool;

/// Why a process does not count itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    /// The wrapper is not in it.
    Without,
    /// MPI is linked into the program itself.
    LinkedIn,
    /// It finds MPI's functions past the wrapper, or its tables could not be kept.
    Past,
    /// It runs with other rights than whoever has started it, and must not be looked at.
    OtherRights,
}

/// One process image.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "any of them may be true beside any other")]
struct Image {
    program: String,
    has_wrapper: bool,
    has_mpi: bool,
    is_linked_in: bool,
    is_past: bool,
    has_tables: bool,
    has_other_rights: bool,
    /// Not that of a process that was forked, which is a copy of its parent's.
    is_of_exec: bool,
    began: Option<Instant>,
    next_look: Option<Instant>,
}

impl Image {
    fn why(&self) -> Option<Why> {
        if self.has_other_rights {
            Some(Why::OtherRights)
        } else if !self.has_mpi || self.has_tables {
            None
        } else if self.is_linked_in {
            Some(Why::LinkedIn)
        } else if !self.has_wrapper {
            Some(Why::Without)
        } else {
            self.is_past.then_some(Why::Past)
        }
    }

    fn is_decided(&self) -> bool {
        self.has_tables || self.is_past || self.has_other_rights
    }

    /// Whether it is time to look at it, now that somebody looks.
    fn is_due(&self) -> bool {
        !self.is_decided() && self.next_look.is_none_or(|next| next <= Instant::now())
    }

    /// The older it is, the more seldom it is looked at.
    fn note_look(&mut self) {
        let now = Instant::now();
        let age = self.began.get_or_insert(now).elapsed();
        self.next_look = Some(now + (age / 8).clamp(INTERVAL.0, INTERVAL.1));
    }
}

impl Uncounted {
    /// Of a command that has not executed anything yet.
    pub(in crate::session) fn new(command: u32, root: ProcRoot, caller: Caller, has_other_rights: OtherRights) -> Self {
        let events = CodeEvents::open(command);
        if let Err(error) = &events {
            tracing::info!("processes that live for less than 50 ms are not looked at: {error}");
        }
        Self {
            scanner: Scanner::new(root, caller, ImplementationRecogniser::default()),
            has_other_rights,
            command,
            events: events.ok(),
            held_back: Vec::new(),
            images: BTreeMap::new(),
            found: BTreeMap::new(),
            perhaps_past: Vec::new(),
            libraries: HashMap::new(),
            files: HashMap::new(),
            lost: 0,
            living: 0,
        }
    }

    /// Looks who is there.
    pub(in crate::session) fn look(&mut self) {
        let settled_ns = monotonic_ns().saturating_sub(SETTLED_NS);
        self.read_events(settled_ns);
        for pid in self.family() {
            let image = self.images.entry(pid).or_default();
            // Of whom the kernel tells it is known that they have no MPI, but of those with other rights, of which it does not.
            let is_known = self.events.is_some() && !image.has_mpi && !image.program.is_empty();
            if image.is_due() && !is_known {
                self.look_at(pid);
            }
        }
        if self.images.len() > FEW_IMAGES.max(2 * self.living) {
            self.put_away_ended();
        }
    }

    /// Takes what the kernel has told that happened until a moment, ns.
    fn read_events(&mut self, until_ns: u64) {
        let Some(events) = &mut self.events else { return };
        let mut records = std::mem::take(&mut self.held_back);
        records.extend(events.read());
        records.sort_by_key(Record::time_ns);
        for record in records {
            match record {
                record if record.time_ns() > until_ns => self.held_back.push(record),
                Record::Executed { pid, .. } => self.begin_image(pid),
                Record::Mapped(mapped) => self.note_mapped(&mapped),
                Record::Lost(number) => self.lost += number,
            }
        }
    }

    fn put_away_ended(&mut self) {
        let is_over = |pid: &u32, _: &mut Image| !Path::new("/proc").join(pid.to_string()).exists();
        let ended: Vec<_> = self.images.extract_if(.., is_over).collect();
        for (pid, image) in &ended {
            self.judge(*pid, image);
        }
        self.living = self.images.len();
    }

    /// When the next look is worth it sooner than looks are taken anyway.
    pub(in crate::session) fn is_hurried(&self) -> bool {
        let is_young = |image: &Image| image.began.is_none_or(|began| began.elapsed() < INTERVAL.1);
        self.images.values().any(|image| image.has_mpi && !image.is_linked_in && !image.is_decided() && is_young(image))
    }

    /// What was not counted, in words; for all of the command, when that has ended. `past`: how many processes say themselves that they
    /// called MPI past the wrapper; `counted`: those that have tables.
    pub(in crate::session) fn missing(&mut self, past: u64, counted: &HashSet<u32>) -> Vec<String> {
        self.look();
        self.read_events(u64::MAX);
        while let Some((pid, image)) = self.images.pop_first() {
            self.judge(pid, &image);
        }
        for (pid, program) in std::mem::take(&mut self.perhaps_past) {
            if !counted.contains(&pid) {
                *self.found.entry((program, Why::Past)).or_default() += 1;
            }
        }
        // Those that were seen say so, too, unless they were killed.
        let seen: usize = self.found.iter().filter(|((_, why), _)| *why == Why::Past).map(|(_, number)| number).sum();
        if let Some(others) =
            usize::try_from(past).ok().and_then(|past| past.checked_sub(seen)).filter(|&others| others > 0)
        {
            let program = if seen > 0 { "other programs" } else { "the command" };
            *self.found.entry((program.to_owned(), Why::Past)).or_default() += others;
        }
        let mut missing: Vec<String> =
            self.found.iter().map(|((program, why), &number)| words(program, *why, number)).collect();
        if self.lost > 0 {
            missing.push(format!(
                "{} notices of what the command loads were lost: there may be processes with MPI that were not counted",
                self.lost
            ));
        }
        missing
    }

    /// Whether there was something that was not counted, once it has been said what.
    pub(in crate::session) fn has_found(&self) -> bool {
        !self.found.is_empty()
    }

    /// The process has a new program.
    fn begin_image(&mut self, pid: u32) {
        let image = Image { is_of_exec: true, began: Some(Instant::now()), ..Image::default() };
        if let Some(old) = self.images.insert(pid, image) {
            self.judge(pid, &old);
        }
    }

    fn judge(&mut self, pid: u32, image: &Image) {
        let is_copy = self.events.is_some() && !image.is_of_exec;
        let Some(why) = image.why().filter(|_| !is_copy) else { return };
        if why == Why::Past && self.perhaps_past.len() < MOST_PROCESSES {
            // Where only some functions are counted, tables may come after a look, with the first call of one of them; and of a process that
            // was about to end they were gone already.
            self.perhaps_past.push((pid, image.program.clone()));
        } else {
            *self.found.entry((image.program.clone(), why)).or_default() += 1;
        }
    }

    /// A file has been mapped as code. The first one of an image is its program.
    fn note_mapped(&mut self, mapped: &CodeMapped) {
        if !mapped.path.starts_with(b"/") {
            return;
        }
        let path = Path::new(OsStr::from_bytes(&mapped.path));
        let is_mpi = self.is_mpi(mapped, path);
        let image = self.images.entry(mapped.pid).or_default();
        let is_program = image.program.is_empty();
        if is_program {
            image.program = printable(&mapped.path);
        }
        image.has_wrapper |= is_wrapper(path);
        image.has_mpi |= is_mpi;
        image.is_linked_in |= is_mpi && is_program;
    }

    fn is_mpi(&mut self, mapped: &CodeMapped, path: &Path) -> bool {
        let id = FileId { major: mapped.major, minor: mapped.minor, inode: mapped.inode };
        if let Some(&known) = self.files.get(&id) {
            return known;
        }
        let found = open(mapped, path).and_then(|file| Some((identity_when_mapped(&file).ok()??, file)));
        let is_mpi = found.is_some_and(|(own_id, file)| {
            let is_mpi = self.scanner.is_mpi(path, &file, own_id) && !is_wrapper(path);
            if is_mpi {
                self.libraries.entry(own_id).or_insert_with(|| Reading::begin(file));
            }
            is_mpi
        });
        self.files.insert(id, is_mpi);
        is_mpi
    }

    /// Looks at a process that lives.
    fn look_at(&mut self, pid: u32) {
        let found = self.scanner.inspect(pid);
        let Some(image) = self.images.get_mut(&pid) else { return };
        image.note_look();
        match found {
            Ok(Finding::Mpi(process)) => self.look_into(&process),
            Ok(Finding::Refused(_)) => {
                let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                let name = words.split(|&byte| byte == 0).next().unwrap_or_default();
                if (self.has_other_rights)(OsStr::from_bytes(name), &mut self.scanner) {
                    image.program = printable(name);
                    image.has_other_rights = true;
                }
            }
            Ok(_) | Err(_) => {}
        }
    }

    fn look_into(&mut self, process: &MpiProcess) {
        let is_initialised = self.has_initialised(process);
        let Some(image) = self.images.get_mut(&process.pid()) else { return };
        if image.program.is_empty() {
            image.program = printable(&process.executable.path);
        }
        image.has_wrapper |=
            process.libraries.iter().any(|library| is_wrapper(Path::new(&library.file.display_path())));
        if let Some(library) = process.library().filter(|library| library.implements_mpi()) {
            image.has_mpi = true;
            image.is_linked_in |= library.recognised.is_static;
        }
        image.has_tables |= Mappings::with_suffix(&process.process, SUFFIX).is_ok_and(|tables| !tables.is_empty());
        image.is_past |= is_initialised && !image.has_tables;
    }

    /// Whether it has, as far as the library's file tells how to know.
    fn has_initialised(&mut self, process: &MpiProcess) -> bool {
        let Some(library) = process.library().filter(|library| library.implements_mpi()) else { return false };
        let reading = self.libraries.entry(library.file.id).or_insert_with(|| {
            let file = open_regular(Path::new(&library.file.display_path()));
            file.map_or(Reading::Done(None), Reading::begin)
        });
        let Some((blueprint, template)) = reading.get() else { return false };
        let memory = TargetMemory::open(&process.process);
        memory.is_ok_and(|memory| blueprint.foresee(template, &library.file, &memory).is_some())
    }

    /// The command's processes that live, as far as they have not been given away. Those that count themselves start none that need be
    /// looked for.
    fn family(&self) -> Vec<u32> {
        let mut family = vec![self.command];
        let mut next = 0;
        while let Some(&pid) = family.get(next).filter(|_| family.len() < MOST_PROCESSES) {
            next += 1;
            if self.images.get(&pid).is_none_or(|image| !image.has_tables) {
                family.extend(children(pid));
            }
        }
        family
    }
}

/// Those that a process has started and that still belong to it.
fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists =
        threads.flatten().take(MOST_THREADS).map(|thread| std::fs::read_to_string(thread.path().join("children")));
    let lists: Vec<String> = lists.map_while(Result::ok).collect();
    lists.iter().flat_map(|list| list.split_ascii_whitespace()).filter_map(|pid| pid.parse().ok()).collect()
}

/// The file as the process sees it, or by its name. That it is the same one is checked as far as stat tells.
fn open(mapped: &CodeMapped, path: &Path) -> Option<File> {
    let seen = PathBuf::from(format!("/proc/{}/root", mapped.pid)).join(path.strip_prefix("/").ok()?);
    let is_same = |file: &File| rustix::fs::fstat(file).is_ok_and(|stat| stat.st_ino == mapped.inode);
    [seen, path.to_owned()].into_iter().find_map(|path| open_regular(&path).ok().filter(is_same))
}

fn words(program: &str, why: Why, number: usize) -> String {
    let processes = if number == 1 { "1 process".to_owned() } else { format!("{number} processes") };
    let of = format!("{processes} of {program}");
    match why {
        Why::Without => format!("{of} had MPI and not the wrapper: what was called of MPI there is not counted"),
        Why::LinkedIn => format!(
            "{of}, which has MPI linked in, cannot count themselves: what was called of MPI there is not counted"
        ),
        Why::Past => format!("{of} called MPI past the wrapper (by dlsym, for instance): that is not counted"),
        Why::OtherRights => {
            format!(
                "{of}, which has set-user-ID or set-group-ID rights, had MPI: what was called of it there is not counted"
            )
        }
    }
}
