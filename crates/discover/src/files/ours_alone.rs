//! Whether what is at a path stays what it is: nobody but root and this user can put something else there.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use rustix::{
    fs::{CWD, Mode, OFlags, fstat, openat},
    process::geteuid,
};

use super::FileError;

const WRITABLE_BY_GROUP: u32 = 0o020;
const WRITABLE_BY_OTHERS: u32 = 0o002;
/// Who may write into such a directory can still not rename or remove what others have in it.
const STICKY: u32 = 0o1000;

/// Looks at a directory and all that lead to it. `path` has no links in it: it was resolved before.
pub fn is_ours_alone(path: &Path) -> Result<(), FileError> {
    let failed = |source| FileError::Io { path: path.into(), source };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = openat(CWD, path, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
    let user = geteuid().as_raw();
    for (directory, is_last) in path.ancestors().zip(std::iter::once(true).chain(std::iter::repeat(false))) {
        let status = fs::symlink_metadata(directory).map_err(failed)?;
        let (owner, mode) = (status.uid(), status.mode());
        let is_owned = owner == user || (owner == 0 && !is_last);
        // Many systems give each user a group of the same number.
        let of_others = if status.gid() == owner { WRITABLE_BY_OTHERS } else { WRITABLE_BY_OTHERS | WRITABLE_BY_GROUP };
        let is_shared = mode & of_others != 0 && (is_last || mode & STICKY == 0);
        if !is_owned || is_shared || !status.is_dir() {
            let (path, changeable) = (path.into(), directory.into());
            return Err(FileError::Replaceable { path, changeable, owner, mode: mode & 0o7777 });
        }
    }
    // What was looked at is what was meant, now that nobody can change it.
    let meant = fstat(&held).map_err(|error| failed(error.into()))?;
    let found = fs::symlink_metadata(path).map_err(failed)?;
    if (meant.st_dev, meant.st_ino) == (found.dev(), found.ino()) {
        Ok(())
    } else {
        Err(FileError::NotTrusted { path: path.into() })
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

    use super::*;

    fn made(path: &Path, mode: u32) {
        fs::create_dir(path).unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_others_can_rename_away_is_not_ours_alone() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        for (name, mode, is_ours) in [("own", 0o755, true), ("sticky", 0o1777, true), ("open", 0o777, false)] {
            let (outer, inner) = (folder.join(name), folder.join(name).join("x"));
            made(&outer, mode);
            made(&inner, 0o700);
            assert_eq!(is_ours_alone(&inner).is_ok(), is_ours, "{name}");
        }
        assert!(is_ours_alone(&folder.join("sticky")).is_err(), "others may put something there");
        std::os::unix::fs::symlink(folder.join("own"), folder.join("link")).unwrap();
        assert!(is_ours_alone(&folder.join("link")).is_err());
        if geteuid().is_root() {
            std::os::unix::fs::chown(folder.join("own"), Some(65_534), Some(65_534)).unwrap();
            let error = is_ours_alone(&folder.join("own/x")).unwrap_err();
            assert!(matches!(error, FileError::Replaceable { owner: 65_534, .. }), "{error}");
        }
    }
}
