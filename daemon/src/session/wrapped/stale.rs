//! Tables that nobody needs any more, in the places where they go by themselves: files that killed runs have left, and of programs
//! that were started by hand. What the user has named a directory for is never touched.

use std::{
    ffi::OsStr,
    fs::{self, Metadata},
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::Path,
    time::{Duration, SystemTime},
};

use mpiprobe_discover::{ProcRoot, Process, files::with_callers_rights};
use mpiprobe_observe::TableFile;
use rustix::time::{ClockId, clock_gettime};

use super::place::{Here, open_tables, text};
use crate::preload::{is_abandoned, is_run, own_directories, tables_in};

/// Tables of ended processes are kept so long: somebody may want to look at them.
const KEPT: Duration = Duration::from_hours(24);

/// Removes what is stale of this user's. What cannot be removed stays.
pub(in crate::session) fn remove_stale(root: &ProcRoot) {
    remove_in(&own_directories(), root, &Here::now());
}

fn remove_in(directories: &[impl AsRef<Path>], root: &ProcRoot, here: &Here) {
    for directory in directories.iter().map(AsRef::as_ref) {
        if is_run(directory) && !is_abandoned(directory) {
            continue;
        }
        for path in tables_in(directory).unwrap_or_default() {
            if is_stale(&path, root, here) && with_callers_rights(|| fs::remove_file(&path)).is_ok() {
                tracing::info!("removed {}: its process has ended", path.display());
            }
        }
        let is_old = fs::symlink_metadata(directory).is_ok_and(|status| is_old(&status));
        // Only of a run, and only if it is empty.
        if is_run(directory) && is_old {
            let _ = with_callers_rights(|| fs::remove_dir(directory));
        }
    }
}

fn is_stale(path: &Path, root: &ProcRoot, here: &Here) -> bool {
    let Ok(file) = open_tables(path) else { return false };
    let Ok(status) = file.metadata() else { return false };
    if !status.is_file() {
        return false;
    }
    match TableFile::new(file).and_then(|tables| tables.header()) {
        // Another machine's, by way of a shared file system: nothing is known of its processes.
        Ok(header) if header.boot != here.boot && text(&header.host) != here.host => false,
        Ok(header) if header.boot != here.boot => true,
        Ok(header) if !here.numbers_processes_of(&(&header).into()) => false,
        Ok(header) => here.process(root, &(&header).into(), status.uid()).is_none() && is_old(&status),
        // Another version's, or damaged: its name says whose it is.
        Err(_) => is_old(&status) && pid(path).is_some_and(|pid| Process::open(root, pid).is_err()),
    }
}

/// Not changed for a day, or not since this machine was started.
fn is_old(status: &Metadata) -> bool {
    let since_boot = Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default();
    let age = status.modified().ok().and_then(|modified| SystemTime::now().duration_since(modified).ok());
    age.is_some_and(|age| age > KEPT.min(since_boot))
}

/// Files are called HOST-PID-TIME.
fn pid(path: &Path) -> Option<u32> {
    let name = path.file_stem().map(OsStr::as_bytes)?;
    let pid = name.rsplit(|&byte| byte == b'-').nth(1)?;
    std::str::from_utf8(pid).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes};

    use super::*;

    #[test]
    fn old_files_of_ended_processes_go_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (own, ended) = (std::process::id(), i32::MAX);
        let old = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
        let file = |name: String, is_old: bool| {
            let path = folder.path().join(name);
            let file = File::create(&path).unwrap();
            if is_old {
                file.set_times(old).unwrap();
            }
            path
        };
        let stale = file(format!("node-1-{ended}-7.mpiprobe"), true);
        let kept = [
            file(format!("node-1-{ended}-8.mpiprobe"), false),
            file(format!("node-1-{own}-9.mpiprobe"), true),
            file("unknown.mpiprobe".into(), true),
            file(format!("node-1-{ended}-7.txt"), true),
        ];
        remove_in(&[folder.path()], &ProcRoot::system().unwrap(), &Here::now());
        assert!(!stale.exists());
        assert!(kept.iter().all(|path| path.exists()));
    }
}
