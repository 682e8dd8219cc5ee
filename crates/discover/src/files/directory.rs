//! A directory of the user's: nothing that others have put there is followed or replaced.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fchmod, fstat, mkdirat, openat, renameat, statat, unlinkat},
    process::geteuid,
};

use super::{FileError, is_ours_alone, with_callers_rights};
use crate::read_from;

/// Names that are tried for a new file.
const TRIES: u32 = 16;

#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    path: PathBuf,
    /// To whom it and everything that is read in it belongs.
    owner: u32,
}

/// What is to be done there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    /// Directories that are missing are made.
    Write,
}

impl Directory {
    /// `below`: names of directories, each in the one before; `None`: one of them is missing.
    pub fn open(base: &Path, below: &[&str], access: Access) -> Result<Option<Self>, FileError> {
        with_callers_rights(|| Self::opened(base, below, access))
    }

    fn opened(base: &Path, below: &[&str], access: Access) -> Result<Option<Self>, FileError> {
        let failed =
            |source: rustix::io::Errno, path: &Path| FileError::Io { path: path.into(), source: source.into() };
        let fd = match openat(CWD, base, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) if access == Access::Read => return Ok(None),
            opened => opened.map_err(|error| failed(error, base))?,
        };
        let owner = fstat(&fd).map_err(|error| failed(error, base))?.st_uid;
        let user = geteuid().as_raw();
        if access == Access::Write && owner != user {
            return Err(FileError::OfSomebodyElse { path: base.into(), owner, user });
        }
        let mut directory = Self { fd, path: base.into(), owner };
        directory.trust(&fstat(&directory.fd).map_err(|error| failed(error, base))?)?;
        for name in below {
            let path = directory.path.join(name);
            if access == Access::Write {
                match mkdirat(&directory.fd, *name, Mode::RWXU) {
                    Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                    Err(error) => return Err(failed(error, &path)),
                }
            }
            directory.check_link(name)?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let fd = match openat(&directory.fd, *name, flags, Mode::empty()) {
                Err(rustix::io::Errno::NOENT) => return Ok(None),
                opened => opened.map_err(|error| failed(error, &path))?,
            };
            directory = Self { fd, path, owner };
            directory.trust(&fstat(&directory.fd).map_err(|error| failed(error, &directory.path))?)?;
        }
        Ok(Some(directory))
    }

    /// A directory in which others may write is none of the owner's alone.
    fn trust(&self, status: &Stat) -> Result<(), FileError> {
        let is_own = status.st_uid == self.owner && !Mode::from_raw_mode(status.st_mode).contains(Mode::WOTH);
        if is_own { Ok(()) } else { Err(FileError::NotTrusted { path: self.path.clone() }) }
    }

    /// Whether a name is a link, which must be the owner's own.
    fn check_link(&self, name: &str) -> Result<bool, FileError> {
        let Ok(status) = statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) else { return Ok(false) };
        let is_link = FileType::from_raw_mode(status.st_mode) == FileType::Symlink;
        if is_link && status.st_uid != self.owner {
            return Err(FileError::NotTrusted { path: self.path.join(name) });
        }
        Ok(is_link)
    }

    fn failed(&self, name: &str) -> impl Fn(io::Error) -> FileError {
        let path = self.path.join(name);
        move |source| FileError::Io { path: path.clone(), source }
    }

    /// To whom it and everything that is read in it belongs.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The same directory by a path without links, on which nobody but root and this user can put something else.
    pub fn ours_alone(self) -> Result<Self, FileError> {
        let own = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        let path = fs::read_link(own).map_err(|source| FileError::Io { path: self.path.clone(), source })?;
        with_callers_rights(|| is_ours_alone(&path))?;
        Ok(Self { path, ..self })
    }

    /// Whether a file is there that has this content, and that nobody else can change.
    pub fn holds(&self, name: &str, content: &[u8]) -> bool {
        let Ok(Some(file)) = with_callers_rights(|| self.file(name, OFlags::NOFOLLOW)) else { return false };
        let is_ours =
            fstat(&file).is_ok_and(|status| !Mode::from_raw_mode(status.st_mode).intersects(Mode::WGRP | Mode::WOTH));
        is_ours && read_from(&file, content.len()).is_ok_and(|read| !read.truncated && read.bytes == content)
    }

    /// `None`: there is no such file.
    pub fn read(&self, name: &str, limit: usize) -> Result<Option<String>, FileError> {
        let Some(file) = with_callers_rights(|| self.file(name, OFlags::empty()))? else { return Ok(None) };
        let read = read_from(&file, limit).map_err(self.failed(name))?;
        if read.truncated {
            return Err(FileError::TooLarge { path: self.path_of(name), limit });
        }
        let text = String::from_utf8(read.bytes);
        text.map(Some).map_err(|error| self.failed(name)(io::Error::new(io::ErrorKind::InvalidData, error)))
    }

    /// The owner's regular file of this name; `None`: there is none.
    fn file(&self, name: &str, flags: OFlags) -> Result<Option<File>, FileError> {
        self.check_link(name)?;
        let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = match openat(&self.fd, name, flags, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            opened => File::from(opened.map_err(|error| self.failed(name)(error.into()))?),
        };
        let status = fstat(&file).map_err(|error| self.failed(name)(error.into()))?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile || status.st_uid != self.owner {
            return Err(FileError::NotTrusted { path: self.path_of(name) });
        }
        Ok(Some(file))
    }

    /// All of the file or nothing: whoever reads it meanwhile finds the old one. It keeps its mode.
    pub fn replace(&self, name: &str, text: &str) -> Result<(), FileError> {
        if self.check_link(name)? {
            return Err(FileError::Link { path: self.path_of(name) });
        }
        let old = statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        let mode = old.map_or(Mode::RUSR | Mode::WUSR, |old| Mode::from_raw_mode(old.st_mode));
        self.put(name, text.as_bytes(), mode & (Mode::RWXU | Mode::RWXG | Mode::RWXO))
    }

    /// The same of whatever is there by that name, a link too: what it leads to is left alone.
    pub fn put(&self, name: &str, content: &[u8], mode: Mode) -> Result<(), FileError> {
        with_callers_rights(|| {
            let (mut file, new) = self.create(name)?;
            let written = file
                .write_all(content)
                .and_then(|()| Ok(fchmod(&file, mode)?))
                .and_then(|()| Ok(renameat(self.fd.as_fd(), &new, self.fd.as_fd(), name)?));
            written.map_err(|error| {
                let _ = unlinkat(&self.fd, &new, AtFlags::empty());
                self.failed(name)(error)
            })
        })
    }

    /// A new file beside the one that it is to replace.
    fn create(&self, name: &str) -> Result<(File, String), FileError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for attempt in 0..TRIES {
            let new = format!(".{name}.{}-{attempt}", std::process::id());
            match openat(&self.fd, &new, flags, Mode::RUSR | Mode::WUSR) {
                Ok(fd) => return Ok((File::from(fd), new)),
                Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(self.failed(name)(error.into())),
            }
        }
        Err(self.failed(name)(io::ErrorKind::AlreadyExists.into()))
    }
}
