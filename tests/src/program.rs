//! The MPI programs in `tests/programs/`. What each one calls, and how often, is written at the top of its source.

use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    C,
    Cxx,
    Fortran,
    Python,
    /// Whatever it was written in: an executable that comes with the system.
    Installed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Program {
    /// Also the name of the executable, hence of its processes (except for Python).
    pub name: &'static str,
    pub language: Language,
    /// Files in `tests/programs/`; headers only count for the question whether to compile again. Of an installed program its input,
    /// which it finds where it is started.
    files: &'static [&'static str],
    /// Of the compiler, besides those of the language.
    pub(crate) options: &'static [&'static str],
}

const fn program(name: &'static str, language: Language, files: &'static [&'static str]) -> Program {
    Program { name, language, files, options: &[] }
}

impl Program {
    /// Somebody's executable, by its path. Kept until the end of this process.
    pub fn installed(path: &str) -> Self {
        program(Box::leak(path.to_owned().into_boxed_str()), Language::Installed, &[])
    }
}

/// Messages round a ring, in every language. `ring [iterations] [--pause-us N] [--imbalance] [--forever]`.
pub const RING: Program = program("ring", Language::C, &["ring.c", "gate.h"]);
/// With a tool in it.
pub const RING_WITH_TOOL: Program = program("ring_with_tool", Language::C, &["ring.c", "../tool/tool.c", "gate.h"]);
/// With what waits at gates in it: nothing has to be preloaded.
pub const RING_WITH_GATES: Program = program("ring_gated", Language::C, &["ring.c", "../truth/gate.c", "gate.h"]);
/// The same with a sanitizer, whose library comes first.
pub const RING_WITH_SANITIZER: Program =
    Program { options: &["-fsanitize=address"], ..program("ring_asan", Language::C, RING_WITH_GATES.files) };
pub const RING_CXX: Program = program("ring_cxx", Language::Cxx, &["ring_cxx.cpp", "gate.h"]);
pub const RING_USE_MPI: Program =
    program("ring_use_mpi", Language::Fortran, &["ring_use_mpi.f90", "gate_fortran.c", "gate.h"]);
pub const RING_USE_MPI_F08: Program =
    program("ring_use_mpi_f08", Language::Fortran, &["ring_use_mpi_f08.f90", "gate_fortran.c", "gate.h"]);
pub const RING_MPI4PY: Program = program("ring_mpi4py", Language::Python, &["ring_mpi4py.py"]);

/// A little of everything that a report has a table for: `report FILE`. Three ranks and more.
pub const REPORT: Program = program("report", Language::C, &["report.c", "gate.h"]);
/// Calls whose arguments tell one from another: `recent [K]`.
pub const RECENT: Program = program("recent", Language::C, &["recent.c", "gate.h"]);
/// Legal calls in random order: `random SEED [STEPS [THREADS]]`.
pub const RANDOM: Program = program("random", Language::C, &["random.c"]);
/// Windows and a file that all use together. `fences FILE`.
pub const FENCES: Program = program("fences", Language::C, &["fences.c", "late.h"]);
/// Can take longer in one function of one rank: `slower [N [PERMILLE [compute]]]`. Two ranks.
pub const SLOWER: Program = program("slower", Language::C, &["slower.c", "gate.h"]);
/// Functions of every group. Has [own counts](crate::Job::own_counts).
pub const GROUPS: Program = program(
    "groups",
    Language::C,
    &[
        "groups/main.c",
        "groups/point_to_point.c",
        "groups/completion.c",
        "groups/collectives.c",
        "groups/nonblocking_collectives.c",
        "groups/neighbourhoods.c",
        "groups/one_sided.c",
        "groups/input_output.c",
        "groups/communicators.c",
        "groups/datatypes.c",
        "counted.c",
        "groups/groups.h",
        "counted.h",
        "gate.h",
    ],
);
/// Every kind of call that moves data, in every form that is easily misread from outside: `semantics [SECTION…]`.
pub const SEMANTICS: Program = program(
    "semantics",
    Language::C,
    &[
        "semantics/main.c",
        "semantics/point_to_point.c",
        "semantics/collectives.c",
        "semantics/datatypes.c",
        "semantics/requests.c",
        "semantics/communicators.c",
        "semantics/nonblocking_collectives.c",
        "semantics/neighbourhoods.c",
        "semantics/one_sided.c",
        "semantics/input_output.c",
        "semantics/large.c",
        "semantics/repeated.c",
        "semantics/errors.c",
        "semantics/inner_calls.c",
        "semantics/many.c",
        "semantics/semantics.h",
        "gate.h",
    ],
);
/// Sections of that for traffic: what is told by arguments and statuses alone.
pub const MEANING_OF_MESSAGES: [&str; 8] =
    ["point-to-point", "requests", "datatypes", "collectives", "communicators", "large", "repeated", "inner-calls"];
/// The others: what is made by calls that have to be seen.
pub const MEANING_OF_SCOPES: [&str; 5] =
    ["nonblocking-collectives", "neighbourhoods", "one-sided", "input-output", "errors"];
/// A part of that in other languages; all of these have the same traffic.
pub const SEMANTICS_F08: Program =
    program("semantics_f08", Language::Fortran, &["semantics_f08.f90", "gate_fortran.c", "gate.h"]);
pub const SEMANTICS_CXX: Program = program("semantics_cxx", Language::Cxx, &["semantics_cxx.cpp", "gate.h"]);
pub const SEMANTICS_MPI4PY: Program = program("semantics_mpi4py", Language::Python, &["semantics_mpi4py.py"]);
/// Local questions, of which one may be answered by another.
pub const QUESTIONS: Program = program("questions", Language::Fortran, &["questions.f90", "gate_fortran.c", "gate.h"]);
/// Threads that exchange messages at once: `semantics_threads [T [N]]`.
pub const SEMANTICS_THREADS: Program = program("semantics_threads", Language::C, &["semantics_threads.c", "gate.h"]);
/// Messages without `MPI_COMM_WORLD`, where MPI has sessions.
pub const SEMANTICS_SESSION: Program = program("semantics_session", Language::C, &["semantics_session.c", "gate.h"]);
/// Thousands of communicators, one after the other: `many_communicators N`.
pub const MANY_COMMUNICATORS: Program = program("many_communicators", Language::C, &["many_communicators.c", "gate.h"]);
/// Collective MPI-IO, which makes MPI calls of its own in some libraries. Has own counts.
pub const NESTED_IO: Program = program("nested_io", Language::C, &["nested_io.c", "counted.c", "counted.h", "gate.h"]);
/// Checks every byte of its messages until [asked to stop](crate::Job::stop). Has own counts.
pub const VERIFY: Program = program("verify", Language::C, &["verify.c", "counted.c", "counted.h", "gate.h"]);
/// Communicators that are used in other orders than they were made in, or never. Three ranks.
pub const COMMUNICATOR_ORDERS: Program = program("communicator_orders", Language::C, &["communicator_orders.c"]);
/// Communicators that threads make at once, each out of its own one.
pub const COMMUNICATOR_THREADS: Program = program("communicator_threads", Language::C, &["communicator_threads.c"]);
/// Collective calls over an inter-communicator. Four ranks.
pub const BETWEEN_GROUPS: Program = program("between_groups", Language::C, &["between_groups.c", "late.h"]);
/// One-sided communication, with epochs of whom it is for. Three ranks.
pub const EPOCHS: Program = program("epochs", Language::C, &["epochs.c", "late.h"]);
/// One-sided communication with locks: three ranks.
pub const LOCKS: Program = program("locks", Language::C, &["locks.c"]);
/// Ranks that spawn as many more. Two ranks.
pub const SPAWNS: Program = program("spawns", Language::C, &["spawns.c"]);
/// Communicators that were made long ago, over which nothing synchronises. Four ranks.
pub const HALVES: Program = program("halves", Language::C, &["halves.c", "gate.h"]);
/// Ranks that have counting switched off for some steps. Three ranks.
pub const SWITCHED_OFF: Program = program("switched_off", Language::C, &["switched_off.c"]);
/// A distributed graph out of a grid.
pub const GRAPH_OF_GRID: Program = program("graph_of_grid", Language::C, &["graph_of_grid.c"]);
/// Messages that are received after the communicator was freed over which they were matched. Three ranks.
pub const FREED_MESSAGE: Program = program("freed_message", Language::C, &["freed_message.c", "gate.h"]);
/// Operations that are completed by calls that are not counted. Two ranks.
pub const COMPLETED_UNSEEN: Program = program("completed_unseen", Language::C, &["completed_unseen.c", "gate.h"]);
/// Phases marked by `MPI_Pcontrol`, and counting switched off: `phases [deep]`. Two ranks.
pub const PHASES: Program = program("phases", Language::C, &["phases.c", "gate.h"]);
/// Traffic as soon as MPI is initialised. Two ranks.
pub const WINDOW: Program = program("window", Language::C, &["window.c", "gate.h"]);
/// MPI_THREAD_MULTIPLE: `threads [T [N]]`, `threads --short-lived T`.
pub const THREADS: Program = program("threads", Language::C, &["threads.c", "gate.h"]);
/// A deadlock after known calls: `hang [K]`.
pub const HANG: Program = program("hang", Language::C, &["hang.c", "gate.h"]);
/// A deadlock of all ranks, each waiting for the next one, after known calls: `circle [K]`.
pub const CIRCLE: Program = program("circle", Language::C, &["circle.c", "gate.h"]);
/// The same in Fortran, ten calls.
pub const HANG_MPIF: Program = program("hang_mpif", Language::Fortran, &["hang_mpif.f90"]);
pub const HANG_F08: Program = program("hang_f08", Language::Fortran, &["hang_f08.f90"]);
/// Receives of a datatype with a name and of a predefined one, for ever: `named_datatype`. Two ranks.
pub const NAMED_DATATYPE: Program = program("named_datatype", Language::C, &["named_datatype.c", "gate.h"]);
/// Ranks with workers that they have forked: `workers exchange N`, `workers circle`. Two ranks.
pub const WORKERS: Program = program("workers", Language::C, &["workers.c", "gate.h"]);
/// Jobs that end in unusual ways: `exits MODE`.
pub const EXITS: Program = program("exits", Language::C, &["exits.c", "gate.h"]);

/// Gates of `exits MODE` that let ranks end together: nobody is killed by another's end while still in an allreduce, or in MPI_Finalize.
pub fn gates_of_exits(mode: &str) -> &'static [&'static str] {
    match mode {
        "exec-after" | "exec-thread" => &["2", "3", "4"],
        "survives" => &["2", "3"],
        _ => &["2"],
    }
}

/// Ranks of `exits MODE`: a launcher may end the others when one of them is gone without `MPI_Finalize`.
pub fn ranks_of_exits(mode: &str) -> u32 {
    if mode == "exec-early" { 1 } else { 2 }
}

/// Calls of known length, for the benchmark of times: `lengths [N]`. Two ranks.
pub const LENGTHS: Program = program("lengths", Language::C, &["lengths.c", "gate.h"]);
/// Programs as people run them, with work that is always the same: `apps polling|molecules|bulk STEPS`. At most four ranks.
pub const APPS: Program = program("apps", Language::C, &["apps.c", "../truth/gate.c", "gate.h"]);
/// Polls as often as it can between exchanges: `polls SECONDS EXCHANGES_PER_S [calm]`.
pub const POLLS: Program = program("polls", Language::C, &["polls.c", "../truth/gate.c", "gate.h"]);
/// Calls in tight loops on request, for the benchmark: `callrate SOCKET`.
pub const CALLRATE: Program = program("callrate", Language::C, &["callrate.c"]);
/// Makes objects of every kind and writes down what MPI says of them. Needs four ranks.
pub const LAYOUTS: Program = program(
    "layouts",
    Language::C,
    &[
        "layouts.c",
        "layouts/constants.inc",
        "layouts/types.inc",
        "layouts/communicators.inc",
        "layouts/messages.inc",
        "gate.h",
    ],
);
/// HPC Challenge as Debian has compiled it: linear algebra, transposition, FFT, random access, latencies; only with Open MPI.
pub const HPCC: Program = program("hpcc", Language::Installed, &["hpcc/hpccinf.txt"]);
/// Legal programs that are easily harmed by whoever counts from inside: `stays MODE`.
pub const STAYS: Program = program("stays", Language::C, &["odd/stays.c", "gate.h"]);
/// Over in a moment, with functions that do nothing for MPI. Has its gates in it.
pub const BRIEF: Program = program("brief", Language::C, &["odd/brief.c", "../truth/gate.c", "gate.h"]);
/// C++ exceptions through MPI calls: `throws [N]`.
pub const THROWS: Program = program("throws", Language::Cxx, &["throws.cpp", "gate.h"]);
/// Threads that end within MPI calls: `ends_threads [N]`.
pub const ENDS_THREADS: Program = program("ends_threads", Language::Cxx, &["ends_threads.cpp", "gate.h"]);
/// Callbacks that go on on another stack, or leave their call by longjmp: `stacks up|down|signal|jump [N]`.
pub const STACKS: Program = program("stacks", Language::C, &["odd/stacks.c", "gate.h"]);
/// A user-level thread that goes on on another kernel thread inside an MPI call: `migrates [N]`.
pub const MIGRATES: Program = program("migrates", Language::C, &["odd/migrates.c", "gate.h"]);
/// Sends that may be complete as they are posted, many at once: `at_once [ROUNDS]`. Two ranks.
pub const AT_ONCE: Program = program("at_once", Language::C, &["odd/at_once.c", "gate.h"]);
/// Threads that end inside a call, each with a notice to whoever observes: `floods [THREADS]`.
pub const FLOODS: Program = program("floods", Language::C, &["odd/floods.c", "gate.h"]);
/// Children made by vfork: `vforks [N]`.
pub const VFORKS: Program = program("vforks", Language::C, &["odd/vforks.c", "gate.h"]);

/// Ranks that wait for others which are not in MPI: `outside`. Five ranks.
pub const OUTSIDE: Program = program("outside", Language::C, &["hang/outside.c", "gate.h"]);
/// Ways to hang with several threads, and one not to: `threads CASE`. Two ranks.
pub const THREADS_HANG: Program = program("hang_threads", Language::C, &["hang/threads.c", "gate.h"]);
/// The same in calls that wait for requests, and in accesses to windows. Three ranks.
pub const REQUESTS_HANG: Program = program("hang_requests", Language::C, &["hang/requests.c", "gate.h"]);
pub const WINDOWS_HANG: Program = program("hang_windows", Language::C, &["hang/windows.c", "gate.h"]);
/// The same of ranks that ask again and again. Three ranks.
/// Calls of a process by itself: `alone ROUNDS FILE`.
pub const ALONE: Program = program("alone", Language::C, &["alone.c"]);
pub const POLLS_ONCE: Program = program("polls_once", Language::C, &["polls_once.c", "../truth/gate.c", "gate.h"]);
pub const POLLS_HANG: Program = program("hang_polls", Language::C, &["hang/polls.c", "gate.h"]);
/// The same in calls on files. Three ranks.
pub const FILES_HANG: Program = program("hang_files", Language::C, &["hang/files.c", "gate.h"]);
/// The same over communicators of two groups, of parts of a communicator, and with neighbours. Four ranks.
pub const GROUPS_HANG: Program = program("hang_groups", Language::C, &["hang/groups.c", "gate.h"]);

/// Ways to hang in other languages. Three ranks.
pub const CAUSES_CXX: Program = program("causes_cxx", Language::Cxx, &["hang/causes_cxx.cpp", "gate.h"]);
pub const CAUSES_F77: Program = program("causes_f77", Language::Fortran, &["hang/causes_f77.f"]).compiled(&["-O0"]);
pub const CAUSES_F08: Program = program("causes_f08", Language::Fortran, &["hang/causes_f08.f90"]).compiled(&["-O0"]);
pub const CAUSES_MPI4PY: Program = program("causes_mpi4py", Language::Python, &["hang/causes_mpi4py.py"]);

/// A call that returns behind a gate: `late`. Two ranks.
pub const LATE: Program = program("late", Language::C, &["hang/late.c", "gate.h"]);

/// A call that calls the program, which is held at a gate in it: `callback`. Two ranks.
pub const CALLBACK: Program = program("callback", Language::C, &["hang/callback.c", "gate.h"]);

/// Ways to hang, and one not to: `causes CASE`. Three ranks.
pub const CAUSES: Program = program("causes", Language::C, &["hang/causes.c", "gate.h"]);

impl Program {
    /// This program, compiled otherwise: options for the compiler, which come last.
    #[must_use]
    pub const fn compiled(self, options: &'static [&'static str]) -> Self {
        Self { options, ..self }
    }

    /// What the compiler is told besides.
    pub const fn options(&self) -> &'static [&'static str] {
        self.options
    }

    /// What the first of its files says.
    pub fn source(&self) -> std::io::Result<String> {
        self.files().next().map_or_else(|| Ok(String::new()), std::fs::read_to_string)
    }

    /// All files, sources first.
    pub fn files(&self) -> impl Iterator<Item = PathBuf> {
        self.files.iter().map(|file| directory().join(file))
    }
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs")
}
