//! The files of the packages themselves, by each system's own tools.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::tree::{Places, SETTINGS, files, folders, lay_out, set_times};
use super::{Release, make, said, write};
use crate::command;

const SUMMARY: &str = "htop for MPI: profiles running MPI programs from outside";
const DESCRIPTION: &str = "mpiprobe shows what a running MPI job does: time and calls in each MPI function, per rank and over ranks, from \
outside, by eBPF, or by a library for jobs that it starts. The program is not changed. It reports, records and compares what it saw.";

const SETTINGS_FOLDER: &str = "etc/mpiprobe";

/// Makes the user that the node service runs as, and lets systemd know of its units. Nothing is enabled: that is the administrator's. A
/// service that runs is the new one after an upgrade.
const POSTINST: &str = r#"#!/bin/sh
set -e
if [ "$1" = configure ]; then
    if command -v systemd-sysusers >/dev/null; then systemd-sysusers mpiprobe.conf; fi
    if [ -d /run/systemd/system ]; then
        systemctl daemon-reload
        if [ -n "$2" ]; then systemctl try-restart mpiprobe.service mpiprobe-push.service; fi
    fi
fi
"#;

/// On removal, what runs is ended.
const PRERM: &str = r#"#!/bin/sh
set -e
if [ "$1" = remove ] && command -v systemctl >/dev/null; then
    now=
    if [ -d /run/systemd/system ]; then now=--now; fi
    systemctl disable $now mpiprobe-push.service mpiprobe-metrics.socket mpiprobe.socket mpiprobe.service
fi
"#;

const POSTRM: &str = "#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
";

/// The same for rpm, in the language that it brings along: a system may have no shell. `arg[2]` is how many of this package there will be.
const SCRIPTLETS: &str = r#"%post -p <lua>
if posix.access("/usr/bin/systemd-sysusers", "x") then os.execute("systemd-sysusers mpiprobe.conf") end
if posix.access("/run/systemd/system") then
  os.execute("systemctl daemon-reload")
  if tonumber(arg[2]) > 1 then os.execute("systemctl try-restart mpiprobe.service mpiprobe-push.service") end
end

%preun -p <lua>
if tonumber(arg[2]) == 0 and posix.access("/usr/bin/systemctl", "x") then
  local now = posix.access("/run/systemd/system") and "--now" or ""
  os.execute("systemctl disable " .. now .. " mpiprobe-push.service mpiprobe-metrics.socket mpiprobe.socket mpiprobe.service")
end

%postun -p <lua>
if posix.access("/run/systemd/system") then os.execute("systemctl daemon-reload") end
"#;

/// `mpiprobe_1.2.3_amd64.deb`. It depends on nothing.
pub(super) fn deb(folder: &Path, release: &Release, program: &Path, licences: &str) -> Result<PathBuf> {
    let root = folder.join("deb");
    let places = Places {
        prefix: "usr",
        zsh: "share/zsh/vendor-completions",
        licences: "share/doc/mpiprobe",
        copyright: "copyright",
        settings: SETTINGS_FOLDER,
        installed: "/usr/bin/mpiprobe",
    };
    lay_out(&root, places, program, licences)?;
    let bytes = files(&root)?.iter().map(|file| Ok(file.symlink_metadata()?.len())).sum::<Result<u64>>()?;
    let control = format!(
        "Package: mpiprobe\nVersion: {}\nArchitecture: amd64\nMaintainer: The mpiprobe contributors\nInstalled-Size: {}\n\
         Section: utils\nPriority: optional\nSuggests: openmpi-bin | mpich\nDescription: {SUMMARY}\n {DESCRIPTION}\n",
        release.version,
        bytes.div_ceil(1024),
    );
    let about = root.join("DEBIAN");
    make(&about)?;
    write(&about.join("control"), control)?;
    // What an administrator has changed stays.
    write(&about.join("conffiles"), format!("/{SETTINGS_FOLDER}/{SETTINGS}\n"))?;
    for (name, script) in [("postinst", POSTINST), ("prerm", PRERM), ("postrm", POSTRM)] {
        write(&about.join(name), script)?;
        command::quietly(Command::new("chmod").arg("755").arg(about.join(name)))?;
    }
    set_times(&root, release)?;
    let package = folder.join(format!("mpiprobe_{}_amd64.deb", release.version));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "--build"]).arg(&root).arg(&package);
    command::quietly(build.env("SOURCE_DATE_EPOCH", &release.epoch))?;
    Ok(package)
}

/// `mpiprobe-1.2.3-1.x86_64.rpm`. It depends on nothing, and is compressed as every rpm of the last ten years can read it.
pub(super) fn rpm(folder: &Path, release: &Release, program: &Path, licences: &str) -> Result<PathBuf> {
    let root = folder.join("rpm");
    let places = Places {
        prefix: "usr",
        zsh: "share/zsh/site-functions",
        licences: "share/licenses/mpiprobe",
        copyright: "LICENSE",
        settings: SETTINGS_FOLDER,
        installed: "/usr/bin/mpiprobe",
    };
    lay_out(&root, places, program, licences)?;
    set_times(&root, release)?;
    let spec = folder.join("mpiprobe.spec");
    write(&spec, specification(&root, release)?)?;
    let work = folder.join("rpmbuild");
    let mut build = Command::new("rpmbuild");
    build.args(["-bb", "--quiet", "--target", "x86_64"]);
    for (name, value) in [
        ("_topdir", work.as_os_str()),
        ("_rpmdir", folder.as_os_str()),
        ("_rpmfilename", "%{name}-%{version}-%{release}.%{arch}.rpm".as_ref()),
        ("_buildhost", "localhost".as_ref()),
        ("_binary_payload", "w7.xzdio".as_ref()),
        // The tree is finished: nothing is stripped, compressed or added.
        ("__os_install_post", "%{nil}".as_ref()),
        ("debug_package", "%{nil}".as_ref()),
        ("_build_id_links", "none".as_ref()),
        ("use_source_date_epoch_as_buildtime", "1".as_ref()),
        ("clamp_mtime_to_source_date_epoch", "1".as_ref()),
    ] {
        build.arg("--define").arg(format!("{name} {}", value.to_str().context("the folder's name is no text")?));
    }
    command::quietly(build.arg(&spec).env("SOURCE_DATE_EPOCH", &release.epoch))?;
    Ok(folder.join(format!("mpiprobe-{}-1.x86_64.rpm", release.version)))
}

/// What rpmbuild is told, with each file by name, and the folders that are mpiprobe's alone: those of others stay theirs.
fn specification(root: &Path, release: &Release) -> Result<String> {
    let mut list = String::new();
    for own in [SETTINGS_FOLDER, "usr/share/doc/mpiprobe", "usr/share/licenses/mpiprobe"] {
        for folder in folders(&root.join(own))? {
            let path = Path::new("/").join(folder.strip_prefix(root)?);
            // Writing to a String cannot fail.
            let _ = writeln!(list, "%dir {}", path.display());
        }
    }
    for file in files(root)? {
        let path = Path::new("/").join(file.strip_prefix(root)?);
        let path = path.to_str().context("a file's name is no text")?;
        let mark = match path {
            path if path.starts_with("/usr/share/licenses/") => "%license ",
            path if path.starts_with("/usr/share/doc/") => "%doc ",
            path if path.starts_with("/etc/") => "%config(noreplace) ",
            _ => "",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(list, "{mark}{path}");
    }
    Ok(format!(
        "Name: mpiprobe\nVersion: {}\nRelease: 1\nSummary: {SUMMARY}\nLicense: MIT OR Apache-2.0\nGroup: Development/Tools\n\
         AutoReqProv: no\n\n%description\n{DESCRIPTION}\n\n%install\nmkdir -p %{{buildroot}}\n\
         cp -a '{}/.' %{{buildroot}}/\n\n{SCRIPTLETS}\n%files\n%defattr(-,root,root)\n{list}",
        release.version,
        root.display(),
    ))
}

/// `mpiprobe-1.2.3-x86_64-linux.tar.xz`: to be unpacked below `/usr/local`, or anywhere.
pub(super) fn tarball(folder: &Path, release: &Release, program: &Path, licences: &str) -> Result<PathBuf> {
    let name = format!("mpiprobe-{}", release.version);
    let root = folder.join("tar");
    let places = Places {
        prefix: "",
        zsh: "share/zsh/site-functions",
        licences: "share/doc/mpiprobe",
        copyright: "copyright",
        settings: "share/doc/mpiprobe",
        // There systemd finds units, too.
        installed: "/usr/local/bin/mpiprobe",
    };
    lay_out(&root.join(&name), places, program, licences)?;
    set_times(&root, release)?;
    let package = folder.join(format!("{name}-x86_64-linux.tar.xz"));
    let mut tar = Command::new("tar");
    // Jumps of programs are found again where they lead to, and not by how far that is.
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-I", "xz --x86 --lzma2=preset=9e", "-C"]);
    command::quietly(tar.arg(&root).arg("-cf").arg(&package).arg(&name))?;
    Ok(package)
}

/// What `sha256sum --check` reads.
pub(super) fn sums(folder: &Path, packages: &[PathBuf]) -> Result<()> {
    let names: Vec<_> = packages.iter().filter_map(|package| package.file_name()).collect();
    write(&folder.join("SHA256SUMS"), said(Command::new("sha256sum").args(names).current_dir(folder))?)
}
