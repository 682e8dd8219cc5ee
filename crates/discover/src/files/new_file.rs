//! Files for what is found out: new, and the user's alone.

use std::{
    fs::{File, Permissions},
    io::{self, BufWriter, Write},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, CWD, Mode, OFlags, openat, statat, unlinkat},
};

use super::with_callers_rights;

/// Mode of files unless the user asks for another: a profile tells what a job does.
pub const PRIVATE: u32 = 0o600;

/// Makes a file. None is ever overwritten, nor a symbolic link followed, nor anything waited for: mpiprobe may be root in a directory
/// of somebody else.
pub fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    with_callers_rights(|| {
        let file = File::options().write(true).create_new(true).mode(PRIVATE).open(path)?;
        if mode != PRIVATE {
            // As asked for, whatever the umask is.
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        Ok(file)
    })
}

/// A file that is there from the beginning, so that what is wrong with its name is known before anything has been done in vain, and
/// is written at the end. Dropped without that, it is gone.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    file: File,
    /// Where it was made, whatever has become of the path meanwhile.
    directory: Option<OwnedFd>,
    is_written: bool,
}

impl NewFile {
    pub fn create(path: &Path, mode: u32) -> io::Result<Self> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = with_callers_rights(|| Ok::<_, io::Error>(openat(CWD, parent, flags, Mode::empty()).ok()))?;
        Ok(Self { path: path.into(), file: create_new(path, mode)?, directory, is_written: false })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All of the content.
    pub fn write(self, text: &str) -> io::Result<()> {
        self.write_with(|to| to.write_all(text.as_bytes()))
    }

    /// All of the content, as it comes. What cannot be written whole, because the disk is full, is gone again.
    pub fn write_with(mut self, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut to = BufWriter::new(&self.file);
        content(&mut to)?;
        to.flush()?;
        drop(to);
        self.is_written = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.is_written {
            return;
        }
        let (Some(directory), Some(name)) = (&self.directory, self.path.file_name()) else { return };
        let found = statat(directory, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW);
        let is_it = self
            .file
            .metadata()
            .is_ok_and(|own| found.is_ok_and(|found| (found.st_dev, found.st_ino) == (own.dev(), own.ino())));
        if is_it {
            let _ = unlinkat(directory, name.as_bytes(), AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn it_is_the_users_alone_unless_asked_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        for wanted in [PRIVATE, 0o644, 0o666] {
            let path = folder.path().join(format!("{wanted:o}"));
            NewFile::create(&path, wanted).unwrap().write("x").unwrap();
            assert_eq!((mode(&path), fs::read_to_string(&path).unwrap().as_str()), (wanted, "x"));
        }
    }

    #[test]
    fn nothing_is_overwritten_followed_or_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "precious").unwrap();
        std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
        std::os::unix::fs::symlink(path("nowhere"), path("dangling")).unwrap();
        rustix::fs::mknodat(CWD, path("fifo"), rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for name in ["file", "link", "dangling", "fifo"] {
            let error = NewFile::create(&path(name), PRIVATE).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{name}");
        }
        assert_eq!(fs::read_to_string(path("file")).unwrap(), "precious");
        assert!(!path("nowhere").exists());
    }

    #[test]
    fn what_was_never_written_is_gone_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profile");
        drop(NewFile::create(&path, PRIVATE).unwrap());
        assert!(!path.exists());
        let file = NewFile::create(&path, PRIVATE).unwrap();
        fs::rename(&path, folder.path().join("moved")).unwrap();
        fs::write(&path, "another's").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "another's");
    }
}
