//! Which way of attaching works here: found out by trying, never by the kernel's version.

use std::{
    cell::{Cell, OnceCell, RefCell},
    os::fd::{AsFd as _, BorrowedFd},
    path::Path,
    process,
    thread::{self, JoinHandle, ScopedJoinHandle},
};

use aya::EbpfLoader;
use mpiprobe_common::{Config, Cookie, Namespace, ToolCookie};

use super::{
    AttachError, AttachMethod, Attachment, Calibration, ProbeSite, Refusal, Scope, Tables,
    apart::{self, Other},
    calibrate,
    kernel::bpf,
    locate::{KernelTypes, LocateError, Locator, PidNamespace},
    object::Program,
};

/// Loaded tables and programs that have been seen to count exactly.
#[derive(Debug)]
pub struct Engine {
    pub tables: Tables,
    pub method: AttachMethod,
    pub calibration: Calibration,
    /// Better methods that do not work here.
    pub refusals: Vec<Refusal>,
    programs: Programs,
    /// Whether a tool was probed.
    has_tools: Cell<bool>,
    /// Whether programs are attached that run at returns only.
    returns: Cell<bool>,
}

/// What is attached, and by whom.
#[derive(Debug)]
enum Programs {
    Here(Box<Own>),
    /// By another process, which has the rights.
    Apart(Other),
}

#[derive(Debug)]
struct Own {
    library: Vec<Program>,
    /// Loaded for the first tool: few processes have any.
    tool: OnceCell<Vec<Program>>,
    /// Has names of phases brought into memory, where the kernel can.
    resident: Option<Program>,
    /// Tells of others who begin to use MPI, where they have the same return probes.
    newcomer: Option<Program>,
    /// Loaded for the first call that had begun before.
    note_return: OnceCell<Program>,
    locator: Option<Locator>,
    /// Removes the probes that calibration was made with.
    tidying: RefCell<Option<JoinHandle<()>>>,
}

/// Loads everything and takes the best method that works; `only` limits the choice to one.
pub fn choose_method(config: &Config, only: Option<AttachMethod>) -> Result<Engine, AttachError> {
    if apart::other().is_some() {
        let apart::Loaded { tables, config, method, calibration, refusals, other } = apart::load(config, only)?;
        let tables = Tables::given(tables, config);
        let (has_tools, returns) = (Cell::new(false), Cell::new(true));
        let programs = Programs::Apart(other);
        return Ok(Engine { tables, method, calibration, refusals, programs, has_tools, returns });
    }
    let mut tried = Vec::new();
    for method in AttachMethod::ALL.into_iter().filter(|method| only.is_none_or(|only| only == *method)) {
        // For each its own: a table of programs takes those of one way of attaching only.
        let (mut tables, locator) = load(config)?;
        let stats = tables.stats()?;
        let own = method.programs(config.rings != 0);
        let attempt = tables.load_method(method, &own).and_then(|programs| {
            let newcomer = method.newcomer_program().map(|usage| tables.load_program(usage)).transpose()?;
            Ok((Calibration::run(method, &programs, &mut tables, &stats)?, programs, newcomer))
        });
        match attempt {
            Ok(((calibration, attachment), library, newcomer)) => {
                // Where no thread can be had they are removed at once.
                let tidying = thread::Builder::new().name("detach".into()).spawn(move || drop(attachment));
                let refusals = tried.iter().map(|(method, error): &(AttachMethod, Box<AttachError>)| Refusal {
                    method: *method,
                    reason: error.to_string(),
                });
                let (refusals, has_tools, returns) = (refusals.collect(), Cell::new(false), Cell::new(true));
                let (resident, tidying) = (load_resident(&tables, method), RefCell::new(tidying.ok()));
                let (tool, note_return) = (OnceCell::new(), OnceCell::new());
                let own = Own { library, tool, resident, newcomer, note_return, locator, tidying };
                let programs = Programs::Here(Box::new(own));
                return Ok(Engine { tables, method, calibration, refusals, programs, has_tools, returns });
            }
            Err(error) => tried.push((method, Box::new(error))),
        }
    }
    Err(AttachError::NoMethod { tried })
}

/// `None` if phases are not counted, or the kernel has no probes that may sleep: names are then known that are in memory already.
fn load_resident(tables: &Tables, method: AttachMethod) -> Option<Program> {
    if tables.config().pcontrol_plus_1 == 0 {
        return None;
    }
    let loaded = tables.load_sleeping(method.resident_program());
    loaded.inspect_err(|error| tracing::info!("names of phases are read only if they are in memory: {error}")).ok()
}

/// The tables, and what finds call sites of open calls. Where that does not work, every call that may wait reads its own.
fn load(config: &Config) -> Result<(Tables, Option<Locator>), AttachError> {
    let (types, loader) = types_and_loader();
    let config = &Config { namespace: namespace_of_targets(&types)?, ..*config };
    let located = types.and_then(|types| {
        let found =
            Config { open_calls: types.open_calls, environment: types.environment, read_call_sites: 0, ..*config };
        let tables = Tables::load_by(loader, &found).map_err(Box::new)?;
        let locator = Locator::new(&tables, &types)?;
        Ok((tables, locator))
    });
    match located {
        Ok((tables, locator)) => Ok((tables, Some(locator))),
        Err(reason) => {
            tracing::info!("call sites are read at every call, which makes calls dearer: {reason}");
            Ok((Tables::load(config)?, None))
        }
    }
}

/// By what numbers the programs know processes. Within a pid namespace of its own mpiprobe cannot do without the kernel's types: the
/// programs would take processes for others.
fn namespace_of_targets(types: &Result<KernelTypes, LocateError>) -> Result<Namespace, AttachError> {
    let own = PidNamespace::own();
    match types {
        Ok(types) => types.namespace(own).map_err(|reason| AttachError::PidNamespace(reason.to_string())),
        Err(_) if own == PidNamespace::Initial => Ok(Namespace::INITIAL),
        Err(reason) => Err(AttachError::PidNamespace(reason.to_string())),
    }
}

/// The kernel's types, and a loader. That one reads them as well, though they are not wanted there: both at once.
fn types_and_loader() -> (Result<KernelTypes, LocateError>, EbpfLoader<'static>) {
    thread::scope(|scope| {
        let reading = thread::Builder::new().spawn_scoped(scope, KernelTypes::read);
        let loader = EbpfLoader::new();
        let types = match reading.map(ScopedJoinHandle::join) {
            Ok(Ok(types)) => types,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            // Where no further thread may be started.
            Err(_) => KernelTypes::read(),
        };
        (types, loader)
    })
}

impl Engine {
    /// Looks up where the calls that are open now were made from.
    pub fn locate_open_calls(&self) {
        let located = match &self.programs {
            Programs::Here(own) => own.locator.as_ref().map_or(Ok(()), Locator::run).map_err(|error| error.to_string()),
            Programs::Apart(_) if self.tables.config().read_call_sites != 0 => Ok(()),
            Programs::Apart(other) => other.locate().map_err(|error| error.to_string()),
        };
        if let Err(error) = located {
            tracing::warn!("cannot look up where open calls were made from: {error}");
        }
    }

    /// Starts the programs that see processes exec and threads end, and members of a job start others.
    pub fn watch_processes(&mut self) -> Result<(), AttachError> {
        match &self.programs {
            Programs::Here(_) => self.tables.watch_processes(),
            Programs::Apart(other) => other.watch(),
        }
    }

    /// Probes functions of one file.
    pub fn attach(
        &self,
        file: BorrowedFd<'_>,
        shown: &Path,
        sites: &[ProbeSite],
        scope: Scope,
    ) -> Result<Attachment, AttachError> {
        self.attach_to_library((file, shown), sites, scope, self.returns.get())
    }

    /// The same for a short time, in which calls are counted at their entry.
    pub fn attach_entries(
        &self,
        file: BorrowedFd<'_>,
        shown: &Path,
        sites: &[ProbeSite],
        scope: Scope,
    ) -> Result<Attachment, AttachError> {
        self.attach_to_library((file, shown), sites, scope, false)
    }

    fn attach_to_library(
        &self,
        (file, shown): (BorrowedFd<'_>, &Path),
        sites: &[ProbeSite],
        scope: Scope,
        returns: bool,
    ) -> Result<Attachment, AttachError> {
        let own = match &self.programs {
            Programs::Here(own) => own,
            Programs::Apart(other) => {
                return Ok(Attachment::apart(other.attach(file, shown, sites, (scope, false, returns))?));
            }
        };
        let some = |are_meant: &dyn Fn(Cookie) -> bool| -> Vec<ProbeSite> {
            sites.iter().filter(|site| are_meant(Cookie(site.cookie))).copied().collect()
        };
        let beginnings = some(&Cookie::is_beginning);
        let programs = (own.newcomer.as_ref(), own.library.as_slice());
        let attachment = self.attach_programs(programs, (file, shown), (sites, &beginnings), (scope, returns))?;
        let control_plus_1 = self.tables.config().pcontrol_plus_1;
        let control = some(&|cookie| cookie.function() + 1 == control_plus_1);
        let Some(resident) = own.resident.as_ref().filter(|_| !control.is_empty()) else { return Ok(attachment) };
        match Attachment::new(self.method, std::iter::once(resident), file, shown, &control, scope) {
            Ok(further) => Ok(attachment.and(further)),
            Err(error) => {
                tracing::info!("names of phases are read only if they are in memory: {error}");
                Ok(attachment)
            }
        }
    }

    /// Attaches programs at all sites, and before that, if others will have the same return probes, what tells of those who begin to use MPI.
    fn attach_programs(
        &self,
        (newcomer, programs): (Option<&Program>, &[Program]),
        (file, shown): (BorrowedFd<'_>, &Path),
        (sites, beginnings): (&[ProbeSite], &[ProbeSite]),
        (scope, returns): (Scope, bool),
    ) -> Result<Attachment, AttachError> {
        let newcomer = newcomer.filter(|_| returns && scope == Scope::Inode && !beginnings.is_empty());
        let attachment = Attachment::new(self.method, newcomer, file, shown, beginnings, scope)?;
        Ok(attachment.and(Attachment::new(self.method, wanted(programs, returns), file, shown, sites, scope)?))
    }

    /// Whether probes can be taken off and put on again often: closing those of perf events takes too long.
    pub fn can_sample(&self) -> bool {
        self.method != AttachMethod::PerfEvent
    }

    /// Whether the kernel asks at each entry whether a return probe is wanted.
    pub fn is_asked_for_returns(&self) -> bool {
        self.method == AttachMethod::Session
    }

    /// Attaches nothing from now on that runs at returns only.
    pub fn leave_returns_out(&self) {
        self.returns.set(false);
    }

    /// Attaches what runs at returns only from now on, or not.
    pub(crate) fn arm_returns(&self, wanted: bool) {
        self.returns.set(wanted);
    }

    /// Whether the kernel tells which process has started which.
    pub fn tells_families(&self) -> bool {
        self.tables.config().open_calls.task_tgid != 0
    }

    /// Probes functions of a tool.
    pub fn attach_tool(
        &self,
        file: BorrowedFd<'_>,
        shown: &Path,
        sites: &[ProbeSite],
        scope: Scope,
    ) -> Result<Attachment, AttachError> {
        self.has_tools.set(true);
        match &self.programs {
            Programs::Here(own) => {
                let programs = if let Some(programs) = own.tool.get() {
                    programs
                } else {
                    let loaded = self.tables.load_programs(self.method.tool_programs())?;
                    own.tool.get_or_init(|| loaded)
                };
                let returns = self.returns.get();
                let are_beginnings = |site: &&ProbeSite| ToolCookie(site.cookie).is_beginning();
                let beginnings: Vec<ProbeSite> = sites.iter().filter(are_beginnings).copied().collect();
                let programs = (own.newcomer.as_ref(), programs.as_slice());
                self.attach_programs(programs, (file, shown), (sites, &beginnings), (scope, returns))
            }
            Programs::Apart(other) => {
                Ok(Attachment::apart(other.attach(file, shown, sites, (scope, true, self.returns.get()))?))
            }
        }
    }

    /// Probes a place that calls return to which had begun before, in a file of any kind: [`super::EarlierCalls`] are what is noted there.
    pub fn attach_to_return(
        &self,
        file: BorrowedFd<'_>,
        shown: &Path,
        offset: u64,
        scope: Scope,
    ) -> Result<Attachment, AttachError> {
        let site = ProbeSite { offset, cookie: 0 };
        match &self.programs {
            Programs::Here(own) => {
                let program = self.note_return_program(own)?;
                Attachment::new(self.method, std::iter::once(program), file, shown, &[site], scope)
            }
            Programs::Apart(other) => Ok(Attachment::apart(other.attach_to_return(file, shown, offset, scope)?)),
        }
    }

    /// Whether that can be done for one process only, so that others who execute the same place pay nothing.
    pub fn can_scope_returns(&self) -> bool {
        match &self.programs {
            Programs::Apart(other) => other.can_scope_returns(),
            Programs::Here(_) if self.method == AttachMethod::PerfEvent => true,
            Programs::Here(own) => {
                self.note_return_program(own).is_ok_and(|program| bpf::multi_links_see_all_threads(program.fd.as_fd()))
            }
        }
    }

    fn note_return_program<'a>(&self, own: &'a Own) -> Result<&'a Program, AttachError> {
        if let Some(program) = own.note_return.get() {
            return Ok(program);
        }
        let loaded = self.tables.load_program(self.method.note_return_program())?;
        Ok(own.note_return.get_or_init(|| loaded))
    }

    /// Whether a tool was probed.
    pub fn has_tools(&self) -> bool {
        self.has_tools.get()
    }

    /// Whether [`Scope::Process`] is safe, and sees all threads of the process on this kernel.
    ///
    /// A session of one process is not: of others who have a breakpoint at the same place, by whomever, the kernel does not ask its program
    /// whether their return is to be seen, and arms it (`uprobe_multi_link_handler` in `kernel/trace/bpf_trace.c`).
    pub fn can_scope(&self) -> bool {
        match (self.method, &self.programs) {
            (_, Programs::Apart(other)) => other.can_scope(),
            (AttachMethod::Session, _) => false,
            (AttachMethod::PerfEvent, _) => true,
            (AttachMethod::Multi, Programs::Here(own)) => {
                own.library.first().is_some_and(|program| bpf::multi_links_see_all_threads(program.fd.as_fd()))
            }
        }
    }

    /// Probes the same with the program that does nothing, for whoever wants to know what the kernel alone costs.
    pub fn attach_empty(
        &self,
        file: BorrowedFd<'_>,
        shown: &Path,
        sites: &[ProbeSite],
        scope: Scope,
    ) -> Result<Attachment, AttachError> {
        let programs = self.tables.load_programs(self.method.empty_programs())?;
        Attachment::new(self.method, &programs, file, shown, sites, scope)
    }

    /// Hits that the kernel did not pass to the programs.
    pub fn missed_hits(&self) -> Option<u64> {
        match &self.programs {
            Programs::Here(own) => {
                let programs = own.library.iter().chain(own.tool.get().into_iter().flatten());
                programs.map(|program| bpf::recursion_misses(program.fd.as_fd()).ok()).sum()
            }
            Programs::Apart(other) => other.missed_hits(),
        }
    }

    /// What a probe costs whose program does nothing (ns per call): the kernel's own share of the cost.
    pub fn empty_probe_ns(&self) -> Result<f64, AttachError> {
        if let Programs::Here(own) = &self.programs
            && let Some(tidying) = own.tidying.take()
        {
            // A function of mpiprobe's own with two probes would be a dearer one.
            let _ = tidying.join();
        }
        calibrate::added_ns(self.method, &self.tables.load_programs(self.method.empty_programs())?, process::id())
    }
}

/// All of them, or those that run at entries only.
fn wanted(programs: &[Program], returns: bool) -> impl Iterator<Item = &Program> {
    programs.iter().filter(move |program| returns || !program.usage.returns)
}
