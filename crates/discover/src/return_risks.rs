//! Whether return probes may harm a program. They replace the return address on the stack while a call runs, so that a call has to be
//! left by a return, on the thread that has entered it.
//!
//! Told by what each file uses that calls MPI itself: others are not asked to leave MPI's calls, whatever they use.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;

use mpiprobe_elf::{Elf, Place, SymbolTable, SymbolTableKind, limits::MAX_FILE};
use mpiprobe_functions::{Role, by_name};
use object::ReadCache;
use serde::Serialize;

use super::{
    foreign::ForeignFile,
    mappings::{FileId, MappedFile, Mappings},
    open_mapped::open_mapped,
    process::Process,
    text::base_name,
};

/// Symbol and string tables that are read, all together, bytes: those of programs are a few megabytes. Anybody may claim that theirs
/// are larger.
const MOST_BYTES: u64 = 1 << 30;
/// What functions of user-level threads are called: Argobots, Qthreads, MassiveThreads, Boost.Fiber, HPX, GNU Pth.
const USER_LEVEL_THREADS: [&[u8]; 6] =
    [b"ABT_thread_create", b"qthread_fork", b"myth_create", b"_ZN5boost6fibers", b"_ZN3hpx", b"pth_spawn"];
/// Files of a process that are looked at: programs have some hundreds at most.
const MOST_FILES: usize = 1024;

/// In what way a program may leave a call other than by a return where it was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// It throws C++ exceptions, and has functions called back by MPI, though none for errors: these hardly throw.
    MayThrow,
    /// It switches between stacks, and has functions called back by MPI: a call on one stack inside a call on another.
    SwitchesStacks,
    /// It has threads of its own, which may go on on another of the kernel's threads.
    MovesThreads,
    /// It ends threads from within what they call, and handles errors of MPI: handlers may do that. What stands around the call is unwound.
    EndsThreads,
    /// It throws C++ exceptions, and handles errors of MPI: handlers are there to throw.
    Throws,
}

impl Way {
    /// Whether anything can happen where the kernel asks for each call.
    pub const fn is_risky_if_asked(self) -> bool {
        !matches!(self, Self::SwitchesStacks)
    }

    /// Whether return probes are to be left out. Where the kernel asks for each call whether a return probe is wanted, switching
    /// stacks is safe.
    pub const fn forbids_returns(self, is_asked: bool) -> bool {
        match self {
            Self::MayThrow => false,
            Self::SwitchesStacks => !is_asked,
            Self::MovesThreads | Self::EndsThreads | Self::Throws => true,
        }
    }
}

/// Where that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReturnRisk {
    pub way: Way,
    pub file: String,
}

impl fmt::Display for ReturnRisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = &self.file;
        match self.way {
            Way::MayThrow => write!(f, "{file} throws C++ exceptions and has functions that MPI calls back"),
            Way::SwitchesStacks => write!(f, "{file} switches stacks and has functions that MPI calls back"),
            Way::MovesThreads => {
                write!(f, "{file} has user-level threads, which may go on on another of the kernel's threads")
            }
            Way::EndsThreads => write!(f, "{file} ends threads by pthread_exit and has error handlers that MPI calls"),
            Way::Throws => write!(f, "{file} throws C++ exceptions and has error handlers that MPI calls"),
        }
    }
}

/// What one file uses of what matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that a file uses or does not")]
struct Uses {
    mpi: bool,
    /// Functions that MPI calls back.
    callbacks: bool,
    /// Reduction operations of its own. The C++ bindings of Open MPI have that in every program, in functions that nobody calls.
    operations: bool,
    bindings: bool,
    /// Of these, error handlers.
    error_handlers: bool,
    throws: bool,
    ends_threads: bool,
    switches_stacks: bool,
    /// Threads of the kernel.
    threads: bool,
    /// Threads of a library that may move them from one of the kernel's threads to another.
    user_level_threads: bool,
}

impl Uses {
    fn way(self) -> Option<Way> {
        let callbacks = self.callbacks || (self.operations && !self.bindings);
        if !self.mpi {
            None
        } else if self.throws && self.error_handlers {
            Some(Way::Throws)
        } else if self.ends_threads && self.error_handlers {
            Some(Way::EndsThreads)
        } else if self.user_level_threads || (self.switches_stacks && self.threads && callbacks) {
            Some(Way::MovesThreads)
        } else if self.switches_stacks && callbacks {
            Some(Way::SwitchesStacks)
        } else if self.throws && callbacks {
            Some(Way::MayThrow)
        } else {
            None
        }
    }

    fn note(&mut self, name: &[u8]) {
        // A symbol of another version of the same function is called as this one.
        match name {
            b"__cxa_throw"
            | b"__cxa_rethrow"
            | b"_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE"
            | b"_Unwind_RaiseException"
            | b"_Unwind_Resume_or_Rethrow" => self.throws = true,
            b"pthread_exit" | b"thrd_exit" | b"_Unwind_ForcedUnwind" => self.ends_threads = true,
            b"makecontext" | b"swapcontext" | b"setcontext" | b"jump_fcontext" | b"ontop_fcontext" => {
                self.switches_stacks = true;
            }
            b"pthread_create" | b"thrd_create" => self.threads = true,
            // `MPI::ERRORS_THROW_EXCEPTIONS` of the C++ bindings: the predefined handler that throws.
            b"_ZN3MPI23ERRORS_THROW_EXCEPTIONSE" => (self.throws, self.error_handlers) = (true, true),
            _ => self.note_prefix(name),
        }
    }

    fn note_prefix(&mut self, name: &[u8]) {
        // Standard library functions that throw for the caller (`std::__throw_…`).
        self.throws |= name.starts_with(b"_ZSt") && memchr::memmem::find(name, b"__throw_").is_some();
        self.bindings |= name.starts_with(b"_ZTVN3MPI");
        self.user_level_threads |= USER_LEVEL_THREADS.iter().any(|prefix| name.starts_with(prefix));
        let is_mpi = name.starts_with(b"MPI_") || name.starts_with(b"PMPI_");
        if is_mpi && let Some(id) = std::str::from_utf8(name).ok().and_then(by_name) {
            let has = |role| id.function().arguments.iter().any(|argument| argument.role == role);
            self.mpi = true;
            self.operations |= has(Role::Function) && has(Role::Op);
            self.callbacks |= has(Role::Function) && !has(Role::Op);
            self.error_handlers |= has(Role::Function) && has(Role::Errhandler);
        }
    }

    /// Of an ELF file. What cannot be read uses nothing.
    fn of(file: &ForeignFile, left: &mut u64) -> Self {
        Self::read(file, left).unwrap_or_default()
    }

    /// `left`: how many bytes may be read.
    fn read(file: &ForeignFile, left: &mut u64) -> Option<Self> {
        if file.state().ok()?.size > MAX_FILE {
            return None;
        }
        let data = &ReadCache::new(file.reader());
        // Most mapped files are told by their first bytes.
        let elf = Elf::parse(data).ok()?;
        let mut uses = Self::default();
        // What a program has linked in is in the larger table only, and defined there.
        for kind in [SymbolTableKind::Dynamic, SymbolTableKind::Full] {
            let Some((table, names)) = elf.symbol_sections(kind) else { continue };
            *left = left.checked_sub(table.size.checked_add(names.size)?)?;
            let names = Elf::content(data, &names)?;
            if memchr::memmem::find(names, b"MPI_").is_none() {
                continue;
            }
            let table = Elf::content(data, &table)?;
            let symbols = SymbolTable::new(elf.architecture, table, names, kind.section_name()).ok()?;
            if kind == SymbolTableKind::Dynamic && defines_mpi(symbols) {
                // MPI itself, or a tool before it.
                return None;
            }
            for symbol in symbols.iter() {
                uses.note(symbols.beginning_of_name(symbol));
            }
        }
        Some(uses)
    }
}

fn defines_mpi(symbols: SymbolTable<'_>) -> bool {
    symbols.iter().any(|symbol| {
        let name = symbols.c_name(symbol);
        symbol.place != Place::Undefined && (name.starts_with(b"MPI_") || name.starts_with(b"PMPI_"))
    })
}

/// Looks at files, each once.
#[derive(Debug)]
pub struct ReturnRisks {
    known: HashMap<FileId, Option<Way>>,
    /// Bytes that may still be read.
    left: u64,
}

impl Default for ReturnRisks {
    fn default() -> Self {
        Self { known: HashMap::new(), left: MOST_BYTES }
    }
}

impl ReturnRisks {
    /// The worst that is found in a process.
    pub fn of(&mut self, process: &Process) -> Option<ReturnRisk> {
        let mappings = Mappings::of(process).ok()?;
        self.of_mapped(process, &mappings)
    }

    /// The same where it is known what the process has mapped.
    pub fn of_mapped(&mut self, process: &Process, mappings: &Mappings) -> Option<ReturnRisk> {
        let look = |file: &MappedFile| {
            let path = file.display_path();
            let way = *self.known.entry(file.id).or_insert_with(|| {
                if is_binding(&path) { None } else { Uses::of(&open_mapped(process, file).ok()?, &mut self.left).way() }
            });
            Some(ReturnRisk { way: way?, file: path })
        };
        mappings.files.iter().take(MOST_FILES).filter_map(look).max_by_key(|risk| risk.way)
    }

    /// Of a file that no process need have mapped.
    pub fn of_file(file: &File, shown: &str) -> Option<ReturnRisk> {
        let same = || Some(Uses::of(&file.try_clone().ok()?.into(), &mut { MOST_BYTES }));
        let way = if is_binding(shown) { None } else { same()?.way() };
        Some(ReturnRisk { way: way?, file: shown.to_owned() })
    }
}

/// Whether a file is MPI's own binding for C++: it throws for programs that ask for that, which use its symbols then.
fn is_binding(path: &str) -> bool {
    let name = base_name(path.as_bytes());
    ["libmpi_cxx.", "libmpichcxx", "libmpicxx."].iter().any(|binding| name.starts_with(binding.as_bytes()))
}

#[cfg(test)]
#[path = "return_risks_tests.rs"]
mod tests;
