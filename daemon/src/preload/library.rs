//! The wrapper as a file: it comes inside the `mpiprobe` binary, and is written to where programs can load it from.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::{ffi::OsStrExt as _, fs::DirBuilderExt as _},
    path::{Path, PathBuf},
};

use mpiprobe_discover::{
    files::{Access, Directory, FileError, is_ours_alone, with_callers_rights},
    users::Users,
};
use rustix::{fs::Mode, process::geteuid};
use thiserror::Error;

static LIBRARY: &[u8] = include_bytes!(env!("MPIPROBE_WRAPPER"));

/// Why there is no library to preload.
#[derive(Debug, Error)]
pub enum LibraryError {
    #[error("no place for the wrapper library: neither XDG_CACHE_HOME nor HOME is an absolute path; set one of them")]
    NoHome,
    #[error("no place for the wrapper library: {}; set XDG_CACHE_HOME to a directory that only you can change", .0.join("; "))]
    NoPlace(Vec<String>),
}

/// The path of the library, which is written there if it is not yet.
///
/// In the user's cache: home directories are there on all nodes of most clusters, and files in them may be executed. The environment
/// may be another user's (`sudo -E`): what it names is used only if it belongs to this user, and nobody else can put another file
/// there before it is loaded.
///
/// A user without such a place, as in many containers, has one in the directory for temporary files.
pub fn library() -> Result<PathBuf, LibraryError> {
    let user = geteuid().as_raw();
    let home = Users::read().home(user);
    library_in(&caches(|name| std::env::var_os(name).map(PathBuf::from), home))
        .or_else(|error| library_below(&std::env::temp_dir(), user).map_err(|_| error))
}

/// Below a directory that everybody may write to: in one of a known name, which is refused if somebody else has made it.
fn library_below(shared: &Path, user: u32) -> Result<PathBuf, FileError> {
    let own = shared.join(format!("mpiprobe-{user}"));
    with_callers_rights(|| match DirBuilder::new().mode(Mode::RWXU.bits()).create(&own) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
            Err(FileError::Io { path: own.clone(), source })
        }
        _ => put(&own),
    })
}

fn library_in(caches: &[PathBuf]) -> Result<PathBuf, LibraryError> {
    let mut refused = Vec::new();
    for cache in caches {
        match with_callers_rights(|| put(cache)) {
            Ok(path) => return Ok(path),
            Err(error) => refused.push(error.to_string()),
        }
    }
    refused.dedup();
    Err(if refused.is_empty() { LibraryError::NoHome } else { LibraryError::NoPlace(refused) })
}

/// Where caches may be, the best place first: as the environment says, and as the system says.
fn caches(variable: impl Fn(&str) -> Option<PathBuf>, home: Option<PathBuf>) -> Vec<PathBuf> {
    let absolute = |path: Option<PathBuf>| path.filter(|path| path.is_absolute());
    let of_home = |home: Option<PathBuf>| Some(absolute(home)?.join(".cache"));
    let places = [absolute(variable("XDG_CACHE_HOME")), of_home(variable("HOME")), of_home(home)];
    let mut caches: Vec<PathBuf> = places.into_iter().flatten().collect();
    caches.dedup();
    caches
}

fn put(cache: &Path) -> Result<PathBuf, FileError> {
    // What is there already must be this user's; the rest is made.
    let base = cache.ancestors().find(|path| fs::metadata(path).is_ok()).unwrap_or(cache);
    // Before anything is made there.
    is_ours_alone(&base.canonicalize().map_err(|source| FileError::Io { path: base.into(), source })?)?;
    let missing = cache.strip_prefix(base).unwrap_or(Path::new(""));
    let mut below: Vec<&str> = missing.iter().filter_map(|name| name.to_str()).collect();
    below.push("mpiprobe");
    let directory = Directory::open(base, &below, Access::Write)?.ok_or(FileError::NotTrusted { path: base.into() })?;
    let directory = directory.ours_alone()?;
    // By content: another version has another name, so that jobs that run with this one keep it.
    let name = format!("libmpiprobe_wrapper-{:08x}.so", crc32fast::hash(LIBRARY));
    let path = directory.path_of(&name);
    // ld.so(8)
    if path.as_os_str().as_bytes().iter().any(|byte| byte.is_ascii_whitespace() || *byte == b':') {
        return Err(FileError::NoPreload { path });
    }
    if !directory.holds(&name, LIBRARY) {
        directory.put(&name, LIBRARY, Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH)?;
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::{
        fs::Permissions,
        os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink},
    };

    use tempfile::TempDir;

    use super::*;

    /// Nobody's.
    const OTHER: u32 = 65_534;

    /// By a path without links.
    fn folder() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        (folder, path)
    }

    #[test]
    fn without_a_home_there_is_a_place_among_temporary_files() {
        let (_folder, shared) = folder();
        fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
        let user = geteuid().as_raw();
        let path = library_below(&shared, user).unwrap();
        assert_eq!(path.ancestors().nth(2), Some(shared.join(format!("mpiprobe-{user}")).as_path()));
        assert_eq!(library_below(&shared, user).unwrap(), path);
        // Others may write into it, or it is a link.
        fs::create_dir(shared.join("mpiprobe-1")).unwrap();
        fs::set_permissions(shared.join("mpiprobe-1"), Permissions::from_mode(0o777)).unwrap();
        assert!(library_below(&shared, 1).is_err());
        symlink(shared.join("mpiprobe-1"), shared.join("mpiprobe-2")).unwrap();
        assert!(library_below(&shared, 2).is_err());
        assert_eq!(fs::read_dir(shared.join("mpiprobe-1")).unwrap().count(), 0);
    }

    #[test]
    fn the_cache_is_where_the_user_has_it() {
        let of = |variables: &'static [(&str, &str)], home: Option<&str>| {
            let find = |name: &str| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into());
            caches(find, home.map(PathBuf::from))
        };
        let both: &[_] = &[("XDG_CACHE_HOME", "/c"), ("HOME", "/h")];
        assert_eq!(of(both, None), [PathBuf::from("/c"), "/h/.cache".into()]);
        let relative: &[_] = &[("XDG_CACHE_HOME", "relative"), ("HOME", "/h")];
        assert_eq!(of(relative, Some("/h")), [PathBuf::from("/h/.cache")]);
        assert!(of(&[], None).is_empty());
        assert!(matches!(library_in(&[]), Err(LibraryError::NoHome)));
    }

    #[test]
    fn it_is_a_shared_library() {
        assert!(LIBRARY.starts_with(b"\x7fELF"));
    }

    #[test]
    fn it_is_put_where_nobody_else_can_replace_it() {
        let (_folder, place) = folder();
        let path = library_in(&[place.join("new/cache")]).unwrap();
        assert!(path.starts_with(place.join("new/cache/mpiprobe")));
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!((mode(&path), mode(path.parent().unwrap()), mode(&place.join("new"))), (0o755, 0o700, 0o700));
        assert_eq!(fs::read(&path).unwrap(), LIBRARY);
        // What is there is believed for its content only, and what others may write to not even for that.
        let first = fs::metadata(&path).unwrap().ino();
        assert_eq!(library_in(&[place.join("new/cache")]).unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().ino(), first);
        for spoil in [(|path: &Path| fs::write(path, b"\x7fELF another").unwrap()) as fn(&Path), |path| {
            fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
        }] {
            spoil(&path);
            library_in(&[place.join("new/cache")]).unwrap();
            assert_eq!((fs::read(&path).unwrap() == LIBRARY, mode(&path)), (true, 0o755));
        }
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing else is left behind");
    }

    #[test]
    fn a_planted_link_is_replaced_and_not_written_through() {
        let (_folder, place) = folder();
        let path = library_in(std::slice::from_ref(&place)).unwrap();
        let precious = place.join("precious");
        fs::write(&precious, "precious").unwrap();
        fs::remove_file(&path).unwrap();
        symlink(&precious, &path).unwrap();
        let unfinished = path.parent().unwrap().join(format!(
            ".{}.{}-0",
            path.file_name().unwrap().to_str().unwrap(),
            std::process::id()
        ));
        symlink(&precious, unfinished).unwrap();
        assert_eq!(library_in(std::slice::from_ref(&place)).unwrap(), path);
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    }

    #[test]
    fn the_home_of_another_user_is_left_alone() {
        if !geteuid().is_root() {
            return;
        }
        let ((_others, others), (_own, own)) = (folder(), folder());
        fs::create_dir(others.join(".cache")).unwrap();
        // Of this user's, but in a place where the other can put something else.
        fs::create_dir(others.join("ours")).unwrap();
        for path in [".cache", ""] {
            chown(others.join(path), Some(OTHER), Some(OTHER)).unwrap();
        }
        let caches = [others.join(".cache"), others.join("missing"), others.join("ours"), own.clone()];
        assert!(library_in(&caches).unwrap().starts_with(&own));
        assert_eq!(fs::read_dir(others.join(".cache")).unwrap().count(), 0);
        assert!(!others.join("missing").exists());
        assert_eq!(fs::read_dir(others.join("ours")).unwrap().count(), 0);
        let error = library_in(&caches[..3]).unwrap_err().to_string();
        assert!(error.contains("uid 65534") && error.contains("XDG_CACHE_HOME"), "{error}");
    }

    #[test]
    fn what_the_linker_would_take_for_two_files_is_refused() {
        let (_folder, place) = folder();
        for name in ["a b", "a:b"] {
            assert!(matches!(put(&place.join(name)), Err(FileError::NoPreload { .. })), "{name}");
        }
    }
}
