//! Packages as a new user has them: installed, used and removed in a system that has nothing else of mpiprobe's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Release, make, said};
use crate::clean_room;
use crate::command::{self, is_root, workspace};
use crate::mpi::Mpi;

/// Of a Debian that packages are tried on: what reaches a mirror, an MPI library to run a job with, and what reads pages and units.
const DEBIAN: &str = "ca-certificates,openmpi-bin,bash-completion,man-db,systemd";

/// In a mount namespace of its own, so that no mount is left: `$1` is the root file system, the rest the command.
const ENTER: &str = r#"
set -eu
root=$1
shift
for folder in dev proc sys; do
    mkdir -p "$root/$folder"
    mount --rbind "/$folder" "$root/$folder"
done
exec chroot "$root" "$@"
"#;

/// From the package to the page. What has to be there is asked for by its own system: dpkg, man, bash.
const USE: &str = r#"
set -eux
cd /root
apt-get install --yes --quiet --reinstall --no-install-recommends ./mpiprobe.deb
test "$(mpiprobe --version)" = "mpiprobe $1"
dpkg --verify mpiprobe
man --where mpiprobe mpiprobe-report mpiprobe-compare
bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader mpiprobe; complete -p mpiprobe'
zcat /usr/share/doc/mpiprobe/licences.txt.gz | grep -q 'GNU LESSER GENERAL PUBLIC LICENSE\|LGPL'
mpiprobe config
getent passwd mpiprobe
systemd-analyze verify mpiprobe.service mpiprobe.socket mpiprobe-metrics.socket mpiprobe-push.service
systemctl enable mpiprobe.socket
test "$(systemctl is-enabled mpiprobe.service mpiprobe.socket mpiprobe-push.service | tr '\n' ' ')" = "disabled enabled disabled "
test "$(stat -c '%U %a' /etc/mpiprobe/service.toml)" = "root 644"
rm -rf ring.rec ring.html ring.json
mpirun='mpirun --allow-run-as-root --oversubscribe -n 2'
mpiprobe run --record ring.rec --report ring.html -- $mpirun ./ring 200 > ring.txt
grep -q '^<!doctype html>' ring.html
mpiprobe report ring.rec | grep MPI_
mpiprobe report ring.rec --json -o ring.json
mpiprobe compare ring.rec ring.json | grep 'No difference'
mpiprobe doctor || test $? -le 3
"#;

const REMOVE: &str = r"
set -eux
rm -rf /root/ring* /root/mpiprobe.deb
apt-get purge --yes --quiet mpiprobe
apt-get clean
! command -v mpiprobe
";

pub(super) fn run(packages: &Path, release: &Release, roots: &Path, mirror: &str) -> Result<()> {
    if !is_root() {
        bail!("trying packages needs root: they are installed in root file systems of their own");
    }
    make(roots)?;
    on_debian(packages, release, &roots.join("debian"), mirror)?;
    by_rpm(packages, release, &roots.join("rpm"))?;
    unpacked(packages, release, &roots.join("tarball"))?;
    eprintln!("packages: installed, used and removed");
    Ok(())
}

fn package(packages: &Path, name: &str) -> Result<PathBuf> {
    let path = packages.join(name);
    if !path.is_file() {
        bail!("{} is not there: cargo xtask dist", path.display());
    }
    Ok(path)
}

/// With a job of an MPI library that Debian has.
fn on_debian(packages: &Path, release: &Release, root: &Path, mirror: &str) -> Result<()> {
    let package = package(packages, &format!("mpiprobe_{}_amd64.deb", release.version))?;
    clean_room::make(root, mirror, DEBIAN)?;
    clean_room::connect(root, mirror)?;
    let inside = root.join("root/mpiprobe.deb");
    fs::copy(&package, &inside).with_context(|| format!("{} cannot be made", inside.display()))?;
    Mpi::find()?.compile(&workspace().join("tests/programs/ring.c"), &root.join("root/ring"))?;
    // A program of the machine must find its library there.
    command::run(&mut enter(root, &["sh", "-c", USE, "sh", &release.version]))?;
    command::run(&mut enter(root, &["sh", "-c", REMOVE]))?;
    nothing_left(root)
}

/// In a root file system in which there is nothing at all: the package needs nothing.
fn by_rpm(packages: &Path, release: &Release, root: &Path) -> Result<()> {
    let package = package(packages, &format!("mpiprobe-{}-1.x86_64.rpm", release.version))?;
    anew(root)?;
    let rpm = |arguments: &[&str]| {
        let mut rpm = Command::new("rpm");
        // Debian's rpm would have its data base below the user's home.
        rpm.arg("--root").arg(root).args(["--dbpath", "/var/lib/rpm"]).args(arguments);
        rpm
    };
    command::run(&mut rpm(&["--initdb"]))?;
    command::run(rpm(&["--install"]).arg(&package))?;
    command::run(&mut rpm(&["--verify", "mpiprobe"]))?;
    says_its_version(root, "/usr/bin/mpiprobe", release)?;
    command::run(&mut rpm(&["--erase", "mpiprobe"]))?;
    nothing_left(root)
}

fn unpacked(packages: &Path, release: &Release, root: &Path) -> Result<()> {
    let package = package(packages, &format!("mpiprobe-{}-x86_64-linux.tar.xz", release.version))?;
    anew(root)?;
    command::run(Command::new("tar").args(["--strip-components=1", "-C"]).arg(root).arg("-xf").arg(&package))?;
    says_its_version(root, "/bin/mpiprobe", release)
}

fn anew(root: &Path) -> Result<()> {
    if root.exists() {
        fs::remove_dir_all(root).with_context(|| format!("{} cannot be removed", root.display()))?;
    }
    make(root)
}

fn enter(root: &Path, wanted: &[&str]) -> Command {
    let mut enter = Command::new("unshare");
    enter.args(["--mount", "--propagation", "private", "sh", "-c", ENTER, "sh"]).arg(root).args(wanted);
    // Nothing of this machine's environment goes in but the way to the network.
    let network: Vec<_> = ["http_proxy", "https_proxy", "no_proxy"]
        .into_iter()
        .filter_map(|name| Some((name, std::env::var(name).ok()?)))
        .collect();
    enter.env_clear().envs(network);
    enter.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/root");
    enter.env("LANG", "C.UTF-8").env("DEBIAN_FRONTEND", "noninteractive");
    enter
}

fn says_its_version(root: &Path, program: &str, release: &Release) -> Result<()> {
    let version = said(&mut enter(root, &[program, "--version"]))?;
    let wanted = format!("mpiprobe {}", release.version);
    if version.trim() != wanted {
        bail!("{program} says {version:?}, not {wanted:?}");
    }
    Ok(())
}

/// No file below `root` is called after mpiprobe; what package managers write about what they did is theirs, and what `man` keeps is its own.
fn nothing_left(root: &Path) -> Result<()> {
    let mut find = Command::new("find");
    find.arg(root).args(["-xdev", "(", "-path", "*/var/log", "-o", "-path", "*/var/cache/man", ")", "-prune"]);
    find.args(["-o", "-name", "*mpiprobe*", "-print"]);
    let left = said(&mut find)?;
    if !left.is_empty() {
        bail!("these are left after removal:\n{left}");
    }
    Ok(())
}
