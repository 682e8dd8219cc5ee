//! A clean Debian 12, to prove that nothing depends on the machine that mpiprobe was written on.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::command::{self, is_in_path, is_root};

pub(crate) const MIRROR: &str = "http://deb.debian.org";

/// What a user of rustup has besides rustup: it asks for a linker, and certificates are needed to reach crates.io.
const PACKAGES: &str = "ca-certificates,gcc,libc6-dev";

/// Runs inside a mount namespace of its own, so no mount is left behind, whatever happens. `$1` is the root file
/// system, `$2` and `$3` the toolchain's and cargo's folder outside, `$4` the toolchain's name, the rest the command.
///
/// Kernel file systems are the machine's, the Rust toolchain is mounted read-only: that is all that comes from outside.
const ENTER: &str = r#"
set -eu
root=$1 toolchain=$2 programs=$3 name=$4
shift 4
for folder in dev proc sys; do
    mount --rbind "/$folder" "$root/$folder"
done
mount --bind "$toolchain" "$root/root/.rustup/toolchains/$name"
mount --options remount,bind,ro "$root/root/.rustup/toolchains/$name"
mount --bind "$programs" "$root/root/.cargo/bin"
mount --options remount,bind,ro "$root/root/.cargo/bin"
exec chroot "$root" env --chdir=/root/mpiprobe "$@"
"#;

/// Runs `wanted` on a fresh clone of HEAD. What earlier runs installed stays: remove `root` for a fresh machine.
pub(crate) fn run(root: &Path, mirror: &str, wanted: &[String]) -> Result<ExitCode> {
    for (program, package) in [("debootstrap", "debootstrap"), ("unshare", "util-linux"), ("git", "git")] {
        if !is_in_path(program) {
            bail!("the clean room needs {program}: apt-get install {package}");
        }
    }
    if !is_root() {
        bail!("the clean room needs root: it makes a root file system and changes into it");
    }
    let toolchain = rustup_sysroot()?;
    let name = toolchain.file_name().context("rustup's toolchain has no name")?.to_string_lossy().into_owned();

    make(root, mirror, PACKAGES)?;
    connect(root, mirror)?;
    furnish(root, &name)?;
    clone(root)?;

    eprintln!("clean room: {} in {}", wanted.join(" "), root.display());
    let mut enter = Command::new("unshare");
    enter.args(["--mount", "--propagation", "private", "sh", "-c", ENTER, "sh"]);
    enter.args([root, &toolchain, &cargo_home()?.join("bin")]).arg(&name);
    // Nothing of this machine's environment goes in but the terminal and the way to the network.
    enter.args(["-i", "HOME=/root", "LANG=C.UTF-8"]);
    enter.arg("PATH=/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    for variable in ["CI", "TERM", "http_proxy", "https_proxy", "no_proxy"] {
        if let Ok(value) = env::var(variable) {
            enter.arg(format!("{variable}={value}"));
        }
    }
    let status = enter.args(wanted).status().context("unshare cannot be started")?;
    Ok(command::exit_code(status))
}

/// A base system, if there is none. It is made next to its final place, so a half-made one is never taken for done.
pub(crate) fn make(root: &Path, mirror: &str, packages: &str) -> Result<()> {
    if root.join("etc/debian_version").exists() {
        return Ok(());
    }
    let mut unfinished = root.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    match fs::remove_dir_all(&unfinished) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("{} cannot be removed", unfinished.display()));
        }
        _ => {}
    }
    command::run(
        Command::new("debootstrap")
            .args(["--variant=minbase", &format!("--include={packages}"), "bookworm"])
            .arg(&unfinished)
            .arg(format!("{mirror}/debian")),
    )?;
    fs::rename(&unfinished, root).with_context(|| format!("{} cannot be put in place", root.display()))
}

/// Package sources as on every Debian 12, and this machine's way to the network.
pub(crate) fn connect(root: &Path, mirror: &str) -> Result<()> {
    write(
        root,
        "etc/apt/sources.list",
        &format!(
            "deb {mirror}/debian bookworm main\ndeb {mirror}/debian bookworm-updates main\n\
             deb {mirror}/debian-security bookworm-security main\n"
        ),
    )?;
    for path in ["/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt"] {
        if let Ok(text) = fs::read_to_string(path) {
            write(root, path.trim_start_matches('/'), &text)?;
        }
    }
    Ok(())
}

fn write(root: &Path, path: &str, text: &str) -> Result<()> {
    let path = root.join(path);
    fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
}

/// A place for rustup's Rust.
fn furnish(root: &Path, toolchain: &str) -> Result<()> {
    let make = |path: String| {
        let path = root.join(path);
        fs::create_dir_all(&path).with_context(|| format!("{} cannot be made", path.display()))
    };
    make(format!("root/.rustup/toolchains/{toolchain}"))?;
    make("root/.cargo/bin".into())?;
    write(
        root,
        "root/.rustup/settings.toml",
        &format!("version = \"12\"\ndefault_toolchain = \"{toolchain}\"\nprofile = \"default\"\n"),
    )
}

fn clone(root: &Path) -> Result<()> {
    let clone = root.join("root/mpiprobe");
    if clone.exists() {
        fs::remove_dir_all(&clone).with_context(|| format!("{} cannot be removed", clone.display()))?;
    }
    let origin = format!("file://{}", command::workspace().display());
    command::run(Command::new("git").args(["clone", "--quiet", "--depth=1", &origin]).arg(&clone))
}

/// The folder of the toolchain that runs us: `~/.rustup/toolchains/NAME`.
fn rustup_sysroot() -> Result<PathBuf> {
    let output = Command::new("rustup").args(["which", "rustc"]).output().context("rustup cannot be started")?;
    let rustc = PathBuf::from(String::from_utf8(output.stdout).context("rustup's answer is no text")?.trim_end());
    let sysroot = rustc.parent().and_then(Path::parent).filter(|_| output.status.success());
    sysroot.map(Path::to_path_buf).context("rustup does not tell where its rustc is")
}

fn cargo_home() -> Result<PathBuf> {
    let home = || Some(PathBuf::from(env::var_os("HOME")?).join(".cargo"));
    env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home).context("neither CARGO_HOME nor HOME is set")
}
