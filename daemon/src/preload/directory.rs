//! Where the tables of a job's processes are.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use mpiprobe_common::file::{PAST_BYTES, PAST_NAME, SUFFIX};
use mpiprobe_discover::{
    files::{is_ours_alone, with_callers_rights},
    open_regular,
};
use rustix::fs::{Access, access, statvfs};
use thiserror::Error;

/// Why there is no directory for tables.
#[derive(Debug, Error)]
pub enum DirectoryError {
    #[error("cannot make a directory for the tables in {}: {source}", .parent.display())]
    Make { parent: PathBuf, source: io::Error },
    #[error("no directory for the tables: none of {tried} can be used; name one with --output")]
    Nowhere { tried: String },
    #[error("cannot read the directory {}: {source}", .directory.display())]
    Read { directory: PathBuf, source: io::Error },
}

/// All rights for the owner, none for others.
const PRIVATE: u32 = 0o700;

/// Bytes that a job on one node needs for its tables, or more.
const ROOM: u64 = 16 << 20;

/// How names of runs' directories begin.
const RUN: &str = "run-";

/// The tables of one run.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    /// Of a directory that is removed with everything in it at the end: locked until then, so that others know that it is in use.
    temporary: Option<File>,
}

impl RunDirectory {
    /// A new directory that only this run knows, in memory where possible.
    pub fn temporary() -> Result<Self, DirectoryError> {
        let candidates = parents();
        let usable: Vec<&PathBuf> = candidates.iter().filter(|parent| is_usable(parent)).collect();
        // Where all are full, ranks say so themselves.
        let parent = usable.iter().find(|parent| has_room(parent)).or(usable.first()).ok_or_else(|| {
            let tried: Vec<String> = candidates.iter().map(|path| path.display().to_string()).collect();
            DirectoryError::Nowhere { tried: tried.join(", ") }
        })?;
        let path = parent.join(format!("{RUN}{}-{}", std::process::id(), mpiprobe_observe::monotonic_ns()));
        let locked = with_callers_rights(|| {
            DirBuilder::new().mode(PRIVATE).create(&path)?;
            let directory = File::open(&path)?;
            directory.lock()?;
            io::Result::Ok(directory)
        });
        let locked = locked.map_err(|source| DirectoryError::Make { parent: (*parent).clone(), source })?;
        make_past(&path);
        Ok(Self { path, temporary: Some(locked) })
    }

    /// A directory of the user's choice, made if need be, and kept.
    pub fn chosen(path: &Path) -> Result<Self, DirectoryError> {
        let chosen = with_callers_rights(|| {
            fs::create_dir_all(path)?;
            // The job may run elsewhere than here.
            let path = path.canonicalize()?;
            access(&path, Access::WRITE_OK | Access::EXEC_OK)?;
            io::Result::Ok(path)
        });
        let path = chosen.map_err(|source| DirectoryError::Make { parent: path.to_owned(), source })?;
        make_past(&path);
        Ok(Self { path, temporary: None })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many processes have told that they called MPI past the wrapper.
    pub fn called_past(&self) -> u64 {
        let read = || {
            let mut number = [0; 8];
            open_regular(&self.path.join(PAST_NAME))?.read_exact_at(&mut number, 0)?;
            io::Result::Ok(u64::from_ne_bytes(number))
        };
        // They cannot tell without it.
        with_callers_rights(read).unwrap_or(0)
    }
}

/// What the processes of a run share.
fn make_past(directory: &Path) {
    let make = || {
        let path = directory.join(PAST_NAME);
        // Another run's.
        let _ = fs::remove_file(&path);
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?.set_len(PAST_BYTES as u64)
    };
    if let Err(error) = with_callers_rights(make) {
        tracing::info!("processes that call MPI past the wrapper cannot tell so: {error}");
    }
}

/// The files in a directory that may be tables.
pub fn tables_in(directory: &Path) -> Result<Vec<PathBuf>, DirectoryError> {
    let failed = |source| DirectoryError::Read { directory: directory.to_owned(), source };
    let mut files = Vec::new();
    for entry in with_callers_rights(|| fs::read_dir(directory)).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.as_os_str().as_bytes().ends_with(SUFFIX.as_bytes()) {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Where this user's tables are if nobody has said where: the places that the wrapper chooses from, and the directories of runs in
/// them.
pub fn own_directories() -> Vec<PathBuf> {
    let mut directories = Vec::new();
    for parent in parents().into_iter().filter(|parent| is_private(parent)) {
        let entries = with_callers_rights(|| fs::read_dir(&parent)).into_iter().flatten().flatten();
        let runs = entries.filter(|entry| is_run(&entry.path()) && entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let runs: Vec<PathBuf> = runs.map(|entry| entry.path()).collect();
        directories.push(parent);
        directories.extend(runs);
    }
    directories
}

/// Whether a directory is that of one run.
pub fn is_run(directory: &Path) -> bool {
    directory.file_name().is_some_and(|name| name.as_bytes().starts_with(RUN.as_bytes()))
}

/// Whether the run that made a directory has ended.
pub fn is_abandoned(directory: &Path) -> bool {
    with_callers_rights(|| File::open(directory)).is_ok_and(|directory| directory.try_lock().is_ok())
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        if self.temporary.is_none() {
            // Only as long as somebody waits for what it says.
            let _ = with_callers_rights(|| fs::remove_file(self.path.join(PAST_NAME)));
        }
        if self.temporary.is_some()
            && let Err(error) = with_callers_rights(|| fs::remove_dir_all(&self.path))
        {
            tracing::warn!("cannot remove {}: {error}", self.path.display());
        }
    }
}

/// The same places, in the same order, as in the wrapper.
fn parents() -> Vec<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let runtime = runtime.map(|path| path.join("mpiprobe"));
    let own = |parent: &str| Path::new(parent).join(format!("mpiprobe-{user}"));
    runtime.into_iter().chain([own("/dev/shm"), own("/tmp")]).collect()
}

/// Makes it if need be. It must be this user's alone: its name is known to all.
fn is_usable(parent: &Path) -> bool {
    // If it exists it is looked at all the same.
    let _ = with_callers_rights(|| match parent.parent().map(is_shared_properly) {
        Some(true) => DirBuilder::new().mode(PRIVATE).create(parent),
        _ => Err(io::ErrorKind::PermissionDenied.into()),
    });
    is_private(parent)
}

fn has_room(parent: &Path) -> bool {
    statvfs(parent).is_ok_and(|status| status.f_bavail.saturating_mul(status.f_frsize) >= ROOM)
}

/// The environment may be another user's (`sudo -E`), who could put another directory there.
fn is_private(parent: &Path) -> bool {
    let status = with_callers_rights(|| fs::symlink_metadata(parent));
    let is_ours = status.is_ok_and(|status| {
        status.is_dir()
            && status.uid() == rustix::process::getuid().as_raw()
            && status.permissions().mode() & 0o777 == PRIVATE
    });
    is_ours && with_callers_rights(|| is_ours_alone(&parent.canonicalize()?)).is_ok()
}

/// Nobody is given a directory in the place of another user.
fn is_shared_properly(place: &Path) -> bool {
    let owners = [0, rustix::process::getuid().as_raw()];
    fs::metadata(place).is_ok_and(|status| owners.contains(&status.uid()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_may_enter_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        assert!(is_usable(&own));
        fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(!is_usable(&own));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert!(!is_usable(&link));
    }

    #[test]
    fn the_place_of_another_user_is_not_used() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let theirs = folder.path().join("theirs");
        fs::create_dir_all(theirs.join("ours")).unwrap();
        fs::set_permissions(theirs.join("ours"), fs::Permissions::from_mode(PRIVATE)).unwrap();
        std::os::unix::fs::chown(&theirs, Some(65_534), Some(65_534)).unwrap();
        assert!(!is_usable(&theirs.join("mpiprobe")) && !theirs.join("mpiprobe").exists());
        assert!(!is_usable(&theirs.join("ours")), "they could put another one there");
    }

    #[test]
    fn a_run_that_goes_on_has_its_directory_locked() {
        let directory = RunDirectory::temporary().unwrap();
        let path = directory.path().to_owned();
        assert!(is_run(&path) && !is_abandoned(&path));
        assert!(own_directories().contains(&path));
        drop(directory);
        assert!(!path.exists());
    }

    #[test]
    fn only_tables_are_listed_and_a_chosen_directory_stays() {
        let folder = tempfile::tempdir().unwrap();
        let chosen = folder.path().join("a/b");
        let directory = RunDirectory::chosen(&chosen).unwrap();
        for name in ["x.mpiprobe", "y.txt"] {
            fs::write(chosen.join(name), "").unwrap();
        }
        assert_eq!(tables_in(directory.path()).unwrap(), [directory.path().join("x.mpiprobe")]);
        drop(directory);
        assert!(chosen.join("x.mpiprobe").exists());
    }
}
