//! Where the tables of a job's processes are.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use mpiprobe_common::file::SUFFIX;
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

/// The tables of one run.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    /// Removed with everything in it at the end.
    temporary: bool,
}

impl RunDirectory {
    /// A new directory that only this run knows, in memory where possible.
    pub fn temporary() -> Result<Self, DirectoryError> {
        let candidates = parents();
        let parent = candidates.iter().find(|parent| is_usable(parent)).ok_or_else(|| {
            let tried: Vec<String> = candidates.iter().map(|path| path.display().to_string()).collect();
            DirectoryError::Nowhere { tried: tried.join(", ") }
        })?;
        let path = parent.join(format!("run-{}-{}", std::process::id(), crate::observe::monotonic_ns()));
        let made = DirBuilder::new().mode(PRIVATE).create(&path);
        made.map_err(|source| DirectoryError::Make { parent: parent.clone(), source })?;
        Ok(Self { path, temporary: true })
    }

    /// A directory of the user's choice, made if need be, and kept.
    pub fn chosen(path: &Path) -> Result<Self, DirectoryError> {
        let failed = |source| DirectoryError::Make { parent: path.to_owned(), source };
        fs::create_dir_all(path).map_err(failed)?;
        // The job may run elsewhere than here.
        let path = path.canonicalize().map_err(failed)?;
        Ok(Self { path, temporary: false })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The files in it that may be tables.
    pub fn files(&self) -> Result<Vec<PathBuf>, DirectoryError> {
        let failed = |source| DirectoryError::Read { directory: self.path.clone(), source };
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.to_str().is_some_and(|path| path.ends_with(SUFFIX)) {
                files.push(path);
            }
        }
        files.sort_unstable();
        Ok(files)
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        if self.temporary
            && let Err(error) = fs::remove_dir_all(&self.path)
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
    let _ = DirBuilder::new().mode(PRIVATE).create(parent);
    fs::symlink_metadata(parent).is_ok_and(|status| {
        status.is_dir()
            && status.uid() == rustix::process::getuid().as_raw()
            && status.permissions().mode() & 0o777 == PRIVATE
    })
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
    fn only_tables_are_listed_and_a_chosen_directory_stays() {
        let folder = tempfile::tempdir().unwrap();
        let chosen = folder.path().join("a/b");
        let directory = RunDirectory::chosen(&chosen).unwrap();
        for name in ["x.mpiprobe", "y.txt"] {
            fs::write(chosen.join(name), "").unwrap();
        }
        assert_eq!(directory.files().unwrap(), [directory.path().join("x.mpiprobe")]);
        drop(directory);
        assert!(chosen.join("x.mpiprobe").exists());
    }
}
