//! The identity that `/proc/PID/maps` gives to a file.
#![expect(unsafe_code, reason = "the kernel prints a file's identity in maps only for files that are mapped")]

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::ptr::null_mut;

use rustix::fs::{CWD, fstat, major, minor};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::{
    maps_line::{self, FileId, file_of_line},
    read::read_at,
};

/// Whether `file` is the one that maps calls `id`.
///
/// stat(2) decides for most file systems. On btrfs it gives the subvolume's device and on overlayfs the overlay's
/// file, where maps gives the super block's device and (before Linux 6.8) the underlying file: there one page of the file is
/// mapped and looked up in the own maps.
pub(crate) fn is_mapped_as(file: &File, id: FileId) -> io::Result<bool> {
    let stat = fstat(file)?;
    let by_stat = FileId { major: major(stat.st_dev), minor: minor(stat.st_dev), inode: stat.st_ino };
    Ok(by_stat == id || identity_when_mapped(file)? == Some(id))
}

/// What maps says of `file`; `None` if the mapping does not show.
pub fn identity_when_mapped(file: &File) -> io::Result<Option<FileId>> {
    let page = Page::map(file)?;
    let maps = read_at(CWD, "/proc/self/maps", maps_line::LIMIT)?;
    let wanted = format!("{:x}-", page.address());
    Ok(maps.bytes.split(|byte| *byte == b'\n').find(|line| line.starts_with(wanted.as_bytes())).and_then(file_of_line))
}

/// One page of a file, mapped but never touched.
struct Page(*mut std::ffi::c_void);

const LENGTH: usize = 1;

impl Page {
    fn map(file: &File) -> io::Result<Self> {
        // SAFETY: with a null hint the kernel chooses unused addresses. No reference into the mapping is ever made and
        // nothing is read from it, so that it does not matter what becomes of the file.
        let address = unsafe { mmap(null_mut(), LENGTH, ProtFlags::READ, MapFlags::PRIVATE, file.as_fd(), 0)? };
        Ok(Self(address))
    }

    fn address(&self) -> usize {
        self.0.addr()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: address and length are those of the mapping made in `map`, which nothing else knows of.
        let _ = unsafe { munmap(self.0, LENGTH) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mappings::Mappings;

    #[test]
    fn the_own_executable_is_known_by_both_ways() {
        let file = File::open("/proc/self/exe").unwrap();
        let maps = std::fs::read("/proc/self/maps").unwrap();
        let own = std::fs::read_link("/proc/self/exe").unwrap().display().to_string();
        let mappings = Mappings::parse(&maps, false);
        let mapped = mappings.files.iter().find(|mapped| mapped.display_path() == own).unwrap();
        assert_eq!(identity_when_mapped(&file).unwrap(), Some(mapped.id));
        assert!(is_mapped_as(&file, mapped.id).unwrap());
        assert!(!is_mapped_as(&file, FileId { inode: mapped.id.inode + 1, ..mapped.id }).unwrap());
    }

    #[test]
    fn nothing_stays_mapped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("only-here");
        std::fs::write(&path, b"x").unwrap();
        let file = File::open(&path).unwrap();
        assert!(identity_when_mapped(&file).unwrap().is_some());
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        assert!(!maps.contains(&*path.to_string_lossy()), "{maps}");
    }
}
