//! What is in a package, as files below a folder.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Release, make, said, write};
use crate::command::{self, workspace};

/// Documents that are for users.
const DOCUMENTS: [&str; 2] = ["README.md", "docs"];

/// Where a package has its files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    /// Everything is below it: `usr`, or nothing.
    pub(super) prefix: &'static str,
    /// Of zsh.
    pub(super) zsh: &'static str,
    /// Of licences.
    pub(super) licences: &'static str,
    /// What the licence of mpiprobe itself is called there.
    pub(super) copyright: &'static str,
    /// Of the node service's settings, below the root: where the service looks for them, or among the documents.
    pub(super) settings: &'static str,
    /// The program, as units name it.
    pub(super) installed: &'static str,
}

/// The node service's files.
const SERVICE: &str = "daemon/systemd";
/// Its settings, which are the administrator's once they are there.
pub(super) const SETTINGS: &str = "service.toml";

/// Lays out all files below `root`, which must not exist.
pub(super) fn lay_out(root: &Path, places: Places, program: &Path, licences: &str) -> Result<()> {
    let below = root.join(places.prefix);
    let share = below.join("share");
    let manuals = share.join("man/man1");
    let documents = share.join("doc/mpiprobe");
    let licence_folder = below.join(places.licences);
    let completions = [
        ("bash", share.join("bash-completion/completions"), "mpiprobe"),
        ("zsh", below.join(places.zsh), "_mpiprobe"),
        ("fish", share.join("fish/vendor_completions.d"), "mpiprobe.fish"),
    ];
    for folder in [&below.join("bin"), &manuals, &documents, &licence_folder] {
        make(folder)?;
    }
    copy(program, &below.join("bin/mpiprobe"))?;
    for (shell, folder, name) in completions {
        make(&folder)?;
        write(&folder.join(name), said(Command::new(program).args(["completions", shell]))?)?;
    }
    for (name, text) in pages(program)? {
        let page = manuals.join(name);
        write(&page, text)?;
        // Without time and name, so that the same page is the same file.
        command::quietly(Command::new("gzip").args(["-9", "--no-name"]).arg(&page))?;
    }
    for document in DOCUMENTS {
        copy_documents(&workspace().join(document), &documents)?;
    }
    lay_out_service(root, &below, places)?;
    write(&licence_folder.join(places.copyright), copyright()?)?;
    let third = licence_folder.join("licences.txt");
    write(&third, licences)?;
    command::quietly(Command::new("gzip").args(["-9", "--no-name"]).arg(&third))?;
    set_modes(root)
}

/// Units of systemd, the user that they run as, and settings. Nothing of it does anything until somebody enables it.
fn lay_out_service(root: &Path, below: &Path, places: Places) -> Result<()> {
    let (units, users) = (below.join("lib/systemd/system"), below.join("lib/sysusers.d"));
    let settings = root.join(places.settings);
    for folder in [&units, &users, &settings] {
        make(folder)?;
    }
    let sources = workspace().join(SERVICE);
    for source in files(&sources)? {
        let name = source.file_name().and_then(OsStr::to_str).context("a file of the service has a name")?;
        match source.extension().and_then(OsStr::to_str) {
            Some("service" | "socket") => {
                let unit =
                    fs::read_to_string(&source).with_context(|| format!("{} cannot be read", source.display()))?;
                write(&units.join(name), unit.replace("/usr/bin/mpiprobe", places.installed))?;
            }
            Some("sysusers") => copy(&source, &users.join("mpiprobe.conf"))?,
            _ if name == SETTINGS => copy(&source, &settings.join(SETTINGS))?,
            _ => bail!("{} has no place in a package", source.display()),
        }
    }
    Ok(())
}

/// Gives all files below `root` the time of the release.
pub(super) fn set_times(root: &Path, release: &Release) -> Result<()> {
    let time = format!("--date=@{}", release.epoch);
    let mut find = Command::new("find");
    find.arg(root).args(["-exec", "touch", "--no-dereference", &time, "{}", "+"]);
    command::quietly(&mut find)
}

/// Names of files below `root` with their places, directories left out.
pub(super) fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root).with_context(|| format!("{} cannot be read", root.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(self::files(&path)?);
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A folder and all below it, those that hold others first.
pub(super) fn folders(root: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = vec![root.to_owned()];
    let entries = fs::read_dir(root).with_context(|| format!("{} cannot be read", root.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            folders.extend(self::folders(&path)?);
        }
    }
    folders.sort();
    Ok(folders)
}

/// Of mpiprobe, and of each of its commands.
fn pages(program: &Path) -> Result<Vec<(String, String)>> {
    let page = |command: &[&str]| said(Command::new(program).arg("man").args(command));
    let main = page(&[])?;
    let commands = commands(&main);
    if !commands.contains(&"report".to_owned()) {
        bail!("the manual page of mpiprobe does not name its commands, but {commands:?}");
    }
    let mut pages = Vec::new();
    for command in commands {
        pages.push((format!("mpiprobe-{command}.1"), page(&[&command])?));
    }
    pages.push(("mpiprobe.1".to_owned(), main));
    Ok(pages)
}

/// Commands that a manual page refers to, as `mpiprobe\-hang(1)`.
fn commands(page: &str) -> Vec<String> {
    let names = page.split(r"mpiprobe\-").skip(1).filter_map(|rest| Some(rest.split_once("(1)")?.0));
    let names = names.map(|name| name.replace(r"\-", "-"));
    let mut names: Vec<String> =
        names.filter(|name| name != "help" && name.chars().all(|c| c.is_ascii_lowercase() || c == '-')).collect();
    names.sort();
    names.dedup();
    names
}

fn copyright() -> Result<String> {
    let mut text = String::from(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: mpiprobe\n\n\
         Files: *\nCopyright: The mpiprobe contributors\nLicense: MIT or Apache-2.0\n\
         Comment: Libraries that are part of the program have their own licences: licences.txt.gz beside this file.\n",
    );
    for (name, file) in [("MIT", "LICENSE-MIT"), ("Apache-2.0", "LICENSE-APACHE")] {
        let path = workspace().join(file);
        let licence = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\nLicense: {name}");
        for line in licence.trim().lines() {
            let line = if line.trim().is_empty() { "." } else { line.trim_end() };
            let _ = writeln!(text, " {line}");
        }
    }
    Ok(text)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let copied = fs::copy(from, to);
    copied.map(drop).with_context(|| format!("{} cannot be copied to {}", from.display(), to.display()))
}

/// A document, or all in a folder that are text or pictures, with the folder's name.
fn copy_documents(from: &Path, to: &Path) -> Result<()> {
    let to = to.join(from.file_name().context("a document has a name")?);
    if from.is_file() {
        return copy(from, &to);
    }
    make(&to)?;
    for entry in fs::read_dir(from).with_context(|| format!("{} cannot be read", from.display()))? {
        copy_documents(&entry?.path(), &to)?;
    }
    Ok(())
}

/// Everybody may read all, whatever the mask of who builds it.
fn set_modes(root: &Path) -> Result<()> {
    command::quietly(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(root))
}

#[cfg(test)]
mod tests {
    use super::commands;

    #[test]
    fn commands_are_those_that_the_page_names() {
        let page =
            ".TP\nmpiprobe\\-ps(1)\nList\n.TP\nmpiprobe\\-wrapper\\-path(1)\n.TP\nmpiprobe\\-help(1)\nmpiprobe\\-ps(1)";
        assert_eq!(commands(page), ["ps", "wrapper-path"]);
        assert!(commands("mpiprobe \\- htop for MPI").is_empty());
    }
}
