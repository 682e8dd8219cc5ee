//! The directory that is `/` to a process.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::{
    foreign::{ForeignFile, Opening, Request, Whose, open},
    privileged::here,
    process::Process,
    process_error::ProcessError,
};

/// A root directory, of a container or this one. While it is held, the file system it is on stays in use.
#[derive(Debug)]
pub struct Root(OwnedFd);

impl Root {
    /// The one of mpiprobe itself.
    pub fn own() -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat(CWD, "/", flags, Mode::empty())?))
    }

    /// The one of `process`; `None` if names mean the same to it as to mpiprobe.
    pub fn of(process: &Process) -> Result<Option<Self>, ProcessError> {
        process.alive_after("root", Self::other(process))
    }

    /// Opens a regular file for reading; symbolic links do not lead out of the root. The path may be anybody's word: `user` has chosen it.
    pub fn open_regular(&self, path: &[u8], user: u32) -> io::Result<ForeignFile> {
        let request = Request::InRoot { path: path.to_vec() };
        match open(&request, self.0.as_fd(), Whose { user, device: None })? {
            Opening::File(file) => Ok(file),
            Opening::Other | Opening::Nothing => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn other(process: &Process) -> io::Result<Option<Self>> {
        if here::has_same_names(process.directory())? {
            Ok(None)
        } else {
            Ok(Some(Self(here::root(process.directory())?)))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::fake::FakeProc;
    use super::super::test_child::TestChild;
    use super::*;

    #[test]
    fn a_process_beside_this_one_has_the_same_names() {
        let child = TestChild::waiting("/bin/cat");
        assert!(Root::of(&child.process()).unwrap().is_none());
        assert!(Root::own().unwrap().open_regular(b"/bin/cat", 0).is_ok());
    }

    #[test]
    fn another_root_or_mount_namespace_has_names_of_its_own() {
        let (fake, folder) = (FakeProc::new(), tempfile::tempdir().unwrap());
        std::fs::write(folder.path().join("only-here"), "x").unwrap();
        let own = std::fs::read_link("/proc/self/ns/mnt").unwrap();
        for (pid, root, namespace) in [(1, folder.path(), own.as_path()), (2, "/".as_ref(), "mnt:[1]".as_ref())] {
            fake.process(pid, 0, "ring", &["ring"]);
            symlink(root, fake.path(pid).join("root")).unwrap();
            std::fs::create_dir(fake.path(pid).join("ns")).unwrap();
            symlink(namespace, fake.path(pid).join("ns/mnt")).unwrap();
            let root = Root::of(&Process::open(&fake.root(), pid).unwrap()).unwrap().unwrap();
            assert_eq!(root.open_regular(b"/only-here", 0).is_ok(), pid == 1);
        }
    }
}
