//! The kernel's own code in every process, `[vdso]`: the same in all of them, so its rules and names are read in ours.

use std::{
    fs::{self, File},
    io::{Seek as _, SeekFrom, Write as _},
    os::unix::fs::FileExt as _,
};

use rustix::fs::{MemfdFlags, memfd_create};

use super::image::Image;

/// What it is called in lists of mappings.
pub(super) const NAME: &str = "[vdso]";
/// It is two pages.
const MAX_BYTES: u64 = 1 << 20;

/// That of this process, as a file.
pub(super) fn image() -> Option<Image> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let (range, _) = maps.lines().find(|line| line.ends_with(NAME))?.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let length = end.checked_sub(start).filter(|length| *length <= MAX_BYTES)?;
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, start).ok()?;
    let mut file = File::from(memfd_create("vdso", MemfdFlags::CLOEXEC).ok()?);
    file.write_all(&bytes).ok()?;
    file.seek(SeekFrom::Start(0)).ok()?;
    Image::open(file)
}
