//! Made-up `/proc` trees for tests.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::new_without_default,
    reason = "a test that cannot make its files fails"
)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::{mapped_identity::identity_when_mapped, mappings::FileId, proc_root::ProcRoot};

/// A directory that looks like `/proc`, removed when dropped.
#[derive(Debug)]
pub struct FakeProc(tempfile::TempDir);

impl FakeProc {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn root(&self) -> ProcRoot {
        ProcRoot::at(self.0.path()).unwrap()
    }

    /// A process of this test's user that started when its pid says.
    pub fn process(&self, pid: u32, parent: u32, comm: &str, arguments: &[&str]) {
        self.process_started_at(pid, parent, comm, arguments, u64::from(pid));
    }

    pub fn process_started_at(&self, pid: u32, parent: u32, comm: &str, arguments: &[&str], start: u64) {
        fs::create_dir(self.path(pid)).unwrap();
        let content = format!("{pid} ({comm}) S {parent} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {start} 0 0\n");
        self.file(pid, "stat", content.as_bytes());
        self.file(pid, "comm", format!("{comm}\n").as_bytes());
        let command_line: String = arguments.iter().flat_map(|argument| [argument, "\0"]).collect();
        self.file(pid, "cmdline", command_line.as_bytes());
        self.file(pid, "environ", b"");
        self.file(pid, "maps", b"");
        let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        self.ids(pid, [user; 3], [group; 3]);
        symlink(format!("/bin/{comm}"), self.path(pid).join("exe")).unwrap();
    }

    /// Writes a status file with these real, effective and saved ids.
    pub fn ids(&self, pid: u32, users: [u32; 3], groups: [u32; 3]) {
        let line = |ids: [u32; 3]| format!("{}\t{}\t{}\t{}", ids[0], ids[1], ids[2], ids[1]);
        let status = format!("Tgid:\t{pid}\nUid:\t{}\nGid:\t{}\n", line(users), line(groups));
        self.file(pid, "status", status.as_bytes());
    }

    /// Lets the process map `file`, of all its memory only that.
    pub fn map(&self, pid: u32, file: &Path) {
        let id = identity_when_mapped(&fs::File::open(file).unwrap()).unwrap().unwrap();
        let FileId { major, minor, inode } = id;
        let maps = format!("1000-2000 r-xp 00000000 {major:02x}:{minor:02x} {inode}   {}\n", file.display());
        self.file(pid, "maps", maps.as_bytes());
        fs::create_dir(self.path(pid).join("map_files")).unwrap();
        symlink(file, self.path(pid).join("map_files/1000-2000")).unwrap();
        symlink("/", self.path(pid).join("root")).unwrap();
    }

    pub fn file(&self, pid: u32, name: &str, content: &[u8]) {
        fs::write(self.path(pid).join(name), content).unwrap();
    }

    pub fn path(&self, pid: u32) -> PathBuf {
        self.0.path().join(pid.to_string())
    }
}
