//! A second user, who gets at nothing of the first one's: each is an id that nobody has, so that root can be both.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use crate::copy_executable;

/// Whose files and processes are wanted.
pub const FIRST: u32 = 65_532;
/// Who wants them.
pub const SECOND: u32 = 65_533;

/// Somebody whose only files and processes are those of one trial: also of a trial that runs in another process, or was killed before.
pub fn nobody_else() -> u32 {
    const USERS: u32 = 30_000;
    const EACH: u32 = 64;
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    USERS + std::process::id() % (USERS / EACH) * EACH + TAKEN.fetch_add(1, Ordering::Relaxed) % EACH
}

/// A process of the first user's in a directory of which only that user has the way: everybody may do everything in it, and nobody
/// else comes there but through the process.
#[derive(Debug)]
pub struct PrivatePlace {
    folder: TempDir,
    process: Child,
}

/// A path, its mode, its owner and, of a regular file, its content.
pub type PathState = (PathBuf, u32, u32, Vec<u8>);

impl PrivatePlace {
    /// With a file, a program and a directory of tables.
    pub fn new() -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let work = folder.path().join("work");
        fs::create_dir_all(work.join("tables"))?;
        fs::write(work.join("file"), "private")?;
        fs::write(work.join("tables/x.mpiprobe"), "private")?;
        copy_executable(Path::new("/bin/true"), &work.join("program"))?;
        for (path, mode) in
            [("", 0o777), ("file", 0o666), ("tables", 0o777), ("tables/x.mpiprobe", 0o666), ("program", 0o755)]
        {
            chown(work.join(path), Some(FIRST), Some(FIRST))?;
            fs::set_permissions(work.join(path), Permissions::from_mode(mode))?;
        }
        chown(folder.path(), Some(FIRST), Some(FIRST))?;
        let mut command = Command::new("sleep");
        command.arg("infinity").current_dir(&work).uid(FIRST).gid(FIRST).stdin(Stdio::null());
        let process = command.spawn()?;
        Ok(Self { folder, process })
    }

    /// Through the process.
    pub fn through(&self, name: &str) -> OsString {
        format!("/proc/{}/cwd/{name}", self.process.id()).into()
    }

    /// Everything that is there, with its content, mode and owner.
    pub fn state(&self) -> io::Result<Vec<PathState>> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                let status = fs::symlink_metadata(&path)?;
                let content = if status.is_file() { fs::read(&path)? } else { Vec::new() };
                if status.is_dir() {
                    folders.push(path.clone());
                }
                found.push((path, status.mode(), status.uid(), content));
            }
        }
        found.sort();
        Ok(found)
    }
}

impl Drop for PrivatePlace {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A directory of this user's, which others may look into.
pub fn home_of(user: u32) -> io::Result<TempDir> {
    let home = tempfile::tempdir()?;
    fs::set_permissions(home.path(), Permissions::from_mode(0o755))?;
    chown(home.path(), Some(user), Some(user))?;
    Ok(home)
}

/// Gives everything below a path, and the path, to a user.
pub fn give(path: &Path, user: u32) -> io::Result<()> {
    chown(path, Some(user), Some(user))?;
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), user)?;
        }
    }
    Ok(())
}
