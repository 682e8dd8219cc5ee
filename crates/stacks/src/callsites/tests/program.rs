//! Programs that say where they were called from, and wait.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use mpiprobe_discover::{ProcRoot, Process};
use mpiprobe_model::CallSite;

use super::super::{AddressMap, ModuleAddress, Modules, Symboliser};

/// `mark` prints its return address in hexadecimal, then waits for an end of input.
const MARK: &str = r#"
#include <stdio.h>
__attribute__((noinline)) static void say(void *address) {
    printf("%lx\n", (unsigned long)address);
    fflush(stdout);
    while (getchar() != EOF) {}
}
void mark(void) { say(__builtin_return_address(0)); }
void mark_(void) { say(__builtin_return_address(0)); }
"#;

/// A directory with one program in it.
pub(super) struct Build {
    folder: tempfile::TempDir,
}

impl Build {
    /// Compiles `source`, in a file of the given name, and `mark`, to the program `prog`.
    pub(super) fn new(compiler: &str, source: (&str, &str), options: &[&str]) -> Self {
        let build = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::write(build.path("mark.c"), MARK).unwrap();
        std::fs::write(build.path(source.0), source.1).unwrap();
        build.run("gcc", &["-O1", "-fPIC", "-c", "mark.c"]);
        let arguments = [&[source.0, "mark.o", "-o", "prog"], options].concat();
        build.run(compiler, &arguments);
        build
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a tool in the directory.
    pub(super) fn run(&self, tool: &str, arguments: &[&str]) {
        let output = Command::new(tool).args(arguments).current_dir(self.folder.path()).output();
        let output = output.unwrap_or_else(|error| panic!("{tool} is needed for this test: {error}"));
        assert!(output.status.success(), "{tool} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    pub(super) fn start(&self) -> Waiting {
        Waiting::start(&self.path("prog"))
    }

    /// Runs the program and says what its call site is.
    pub(super) fn call_site(&self) -> CallSite {
        let waiting = self.start();
        let mut modules = Modules::default();
        let address = waiting.locate(&mut modules);
        CallSite::clone(&Symboliser::default().resolve(&address))
    }

    pub(super) fn text(&self) -> String {
        self.call_site().text
    }
}

/// A process that is inside `mark`.
pub(super) struct Waiting {
    child: Child,
    pub(super) return_address: u64,
}

impl Waiting {
    pub(super) fn start(program: &Path) -> Self {
        let (mut waiting, line) = Self::start_and_read(program);
        waiting.return_address = u64::from_str_radix(line.trim(), 16).unwrap();
        waiting
    }

    /// Starts a program and reads the line that it prints.
    pub(super) fn start_and_read(program: &Path) -> (Self, String) {
        let mut command = Command::new(program);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        (Self { child, return_address: 0 }, line)
    }

    pub(super) fn process(&self) -> Process {
        Process::open(&ProcRoot::system().unwrap(), self.child.id()).unwrap()
    }

    pub(super) fn locate(&self, modules: &mut Modules) -> ModuleAddress {
        let mut map = AddressMap::of(&self.process(), modules).unwrap();
        map.locate(self.return_address, None, modules)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number of the line of `source` that contains `text`.
pub(super) fn line_of(source: &str, text: &str) -> u32 {
    let line = source.lines().position(|line| line.contains(text)).unwrap();
    u32::try_from(line + 1).unwrap()
}
