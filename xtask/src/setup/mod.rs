//! What a machine needs, and getting it there.

mod apt;
mod catalogue;
mod linker;
mod machine;
mod page;
mod requirement;
mod unpacked;
mod wheels;

use std::thread::{self, JoinHandle};

use anyhow::{Result, bail};
use mpiprobe_bpf_build::{LINKER_VERSION, Toolchain, ToolchainKind, detect, detect_compiler};

use machine::Machine;
pub(crate) use requirement::Purpose;
use requirement::Requirement;
use wheels::Environment;

/// May the set-up change the machine?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Install,
    /// Only tell what is missing.
    Tell,
}

/// What is still being fetched, which no build needs.
#[derive(Debug)]
pub(crate) struct Later(Option<JoinHandle<Result<()>>>);

impl Later {
    pub(crate) fn wait(self) -> Result<()> {
        let Some(fetching) = self.0 else { return Ok(()) };
        fetching.join().unwrap_or_else(|_| bail!("what the tests need could not be fetched"))?;
        eprintln!("set-up: done");
        Ok(())
    }
}

/// Sees to it that this machine is good for `purposes`. Quick if it is.
pub(crate) fn ensure(purposes: &[Purpose], mode: Mode) -> Result<()> {
    ensure_for_now(purposes, mode)?.wait()
}

/// As [`ensure`], but only what is needed to build is there when it returns.
pub(crate) fn ensure_for_now(purposes: &[Purpose], mode: Mode) -> Result<Later> {
    // A nightly with rust-src makes Debian's compiler needless.
    let nightly = detect_compiler().is_ok_and(|compiler| compiler.kind == ToolchainKind::RustupNightly);
    let required = catalogue::required(purposes, nightly);
    let missing = missing(&required);
    let needs_linker = purposes.contains(&Purpose::Build) && linker::is_missing();
    let needs_page = purposes.contains(&Purpose::Build) && page::is_missing();
    let wheels = if purposes.contains(&Purpose::Test) { wheels::missing() } else { Vec::new() };
    let needs_unpacked = purposes.contains(&Purpose::Test) && unpacked::is_missing();
    if missing.is_empty() && !needs_linker && !needs_page && !needs_unpacked && wheels.is_empty() {
        eprintln!("set-up: everything is there{}", toolchain_in_words(purposes)?);
        return Ok(Later(None));
    }

    tell(&missing, needs_linker, needs_page, needs_unpacked, &wheels);
    if mode == Mode::Tell {
        bail!("the set-up is incomplete (--no-install: nothing has been changed)");
    }
    if !missing.is_empty() {
        apt::install(&missing)?;
        let still: Vec<_> = self::missing(&missing).iter().map(|requirement| requirement.package).collect();
        if !still.is_empty() {
            bail!("apt-get has installed {}, but what was looked for is still not there", still.join(", "));
        }
    }
    if needs_linker {
        linker::install()?;
    }
    if needs_page {
        page::install()?;
    }
    eprintln!("set-up: all is there to build{}", toolchain_in_words(purposes)?);
    Ok(Later(Some(thread::spawn(move || {
        if needs_unpacked {
            unpacked::install()?;
        }
        wheels::install(&wheels)
    }))))
}

fn missing<'a>(required: &[&'a Requirement]) -> Vec<&'a Requirement> {
    let machine = Machine::look(required);
    required.iter().copied().filter(|requirement| !machine.has(requirement)).collect()
}

fn tell(missing: &[&Requirement], needs_linker: bool, needs_page: bool, needs_unpacked: bool, wheels: &[Environment]) {
    eprintln!("set-up: missing on this machine:");
    for requirement in missing {
        eprintln!("  {:24} {}", requirement.package, requirement.reason);
    }
    if needs_linker {
        eprintln!("  {:24} {}", format!("bpf-linker {LINKER_VERSION}"), linker::REASON);
    }
    if needs_page {
        eprintln!("  {:24} {}", "libraries of the page", page::REASON);
    }
    if needs_unpacked {
        eprintln!("  {:24} {}", "unpacked packages", unpacked::REASON);
    }
    for wheel in wheels {
        eprintln!("  {:24} {}", wheel.name(), wheel.reason);
    }
    eprintln!("to be installed by:");
    if !missing.is_empty() {
        eprintln!("  {}", crate::command::shown(&apt::install_command(missing)));
    }
    if needs_linker {
        eprintln!("  cargo xtask setup build   # {}", linker::EFFORT);
    }
    if needs_page {
        eprintln!("  cargo xtask setup build   # from npm, by the lock file in crates/report/web");
    }
    if needs_unpacked {
        eprintln!(
            "  cargo xtask setup test   # fetched by apt-get and unpacked below the build directory, not installed"
        );
    }
    if !wheels.is_empty() {
        eprintln!("  cargo xtask setup test   # from PyPI by pip, in virtual environments below the build directory");
    }
}

/// Also the final check: the parts fit together.
fn toolchain_in_words(purposes: &[Purpose]) -> Result<String> {
    if !purposes.contains(&Purpose::Build) {
        return Ok(String::new());
    }
    let Toolchain { compiler, .. } = detect()?;
    let compiler = match compiler.kind {
        ToolchainKind::RustupNightly => "rustup's nightly",
        ToolchainKind::Debian => "Debian's rustc-web",
    };
    Ok(format!(" (BPF programs are built by {compiler} and bpf-linker {LINKER_VERSION})"))
}
