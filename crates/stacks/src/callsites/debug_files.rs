//! Debug information that was split off a file (strip, objcopy --only-keep-debug) or is shared by several (dwz).
//!
//! Looked for where gdb does ("Debugging Information in Separate Files"), first with the names of the process's own root
//! directory, then with mpiprobe's. Names come from hostile files: what they lead to is believed only if it has the right build
//! id or checksum.

use mpiprobe_discover::{ForeignFile, Root};

use super::{image::Image, module::Module, modules::hexadecimal};

/// Larger files are not looked at, in bytes: those of the largest programs have some GB.
const MAX_FILE: u64 = 16 << 30;
/// Nor larger ones that can be told by their checksum only: for that all of the file is read.
const MAX_CHECKED_FILE: u64 = 512 << 20;
/// Longer paths are none, in bytes.
const MAX_PATH: usize = 4 << 10;
/// Name and checksum or build id, in bytes.
const MAX_LINK: u64 = 8 << 10;
/// Where distributions put them.
const GLOBAL: &[u8] = b"/usr/lib/debug";

/// A file of debug information, and its path in the root that it was found in.
pub(super) struct DebugFile {
    pub(super) image: Image,
    path: Vec<u8>,
}

/// The file with the debug information of `image`, by build id or by name and checksum; the latter takes from the bytes that are `left` to be
/// read for it.
pub(super) fn separate(module: &Module, image: &Image, left: &mut u64) -> Option<DebugFile> {
    let by_id = image.build_id().and_then(|id| by_build_id(module, id));
    by_id.or_else(|| by_link(module, image, left))
}

/// The file that `image`, found at `path`, shares debug information with.
pub(super) fn supplement(module: &Module, image: &Image, debug_file: Option<&DebugFile>) -> Option<Image> {
    let link = image.section(".gnu_debugaltlink", MAX_LINK)?;
    let (name, id) = link.split_at_checked(memchr::memchr(0, &link)?)?;
    let id = id.get(1..)?;
    let beside = directory(debug_file.map_or(&module.raw_path, |file| &file.path));
    let path = if name.starts_with(b"/") { name.to_vec() } else { [beside, b"/", name].concat() };
    let named = open(module, &path, |_, image| image.build_id() == Some(id));
    named.or_else(|| by_build_id(module, id)).map(|file| file.image)
}

fn by_build_id(module: &Module, id: &[u8]) -> Option<DebugFile> {
    let (first, rest) = id.split_at_checked(1).filter(|(_, rest)| !rest.is_empty())?;
    let path = format!("/.build-id/{}/{}.debug", hexadecimal(first), hexadecimal(rest));
    open(module, &[GLOBAL, path.as_bytes()].concat(), |_, image| image.build_id() == Some(id))
}

fn by_link(module: &Module, image: &Image, left: &mut u64) -> Option<DebugFile> {
    let link = image.section(".gnu_debuglink", MAX_LINK)?;
    let (name, checksum) = parse_link(&link)?;
    let directory = directory(&module.raw_path);
    let candidates: [&[&[u8]]; 3] = [&[directory, b"/"], &[directory, b"/.debug/"], &[GLOBAL, directory, b"/"]];
    candidates.into_iter().find_map(|folder| {
        let path = [&folder.concat(), name].concat();
        open(module, &path, |file, _| checksum_of(file, left) == Some(checksum))
    })
}

/// A name without directories, padded to a multiple of four bytes, and a CRC-32 in little-endian.
fn parse_link(section: &[u8]) -> Option<(&[u8], u32)> {
    let end = memchr::memchr(0, section)?;
    let name = section.get(..end)?;
    let checksum = section.get((end + 4) & !3..)?.first_chunk()?;
    let plain = !name.is_empty() && !name.contains(&b'/') && name != b"." && name != b"..";
    plain.then(|| (name, u32::from_le_bytes(*checksum)))
}

fn checksum_of(file: &ForeignFile, left: &mut u64) -> Option<u32> {
    let size = file.state().ok()?.size;
    if size > MAX_CHECKED_FILE {
        return None;
    }
    // A sparse file costs its owner nothing.
    *left = left.checked_sub(size)?;
    let mut hasher = crc32fast::Hasher::new();
    let mut chunk = vec![0; 1 << 20];
    let mut offset = 0;
    while offset <= size {
        let read = file.read_at(&mut chunk, offset).ok()?;
        if read == 0 {
            return Some(hasher.finalize());
        }
        hasher.update(chunk.get(..read)?);
        offset += read as u64;
    }
    None
}

fn open(module: &Module, path: &[u8], mut is_right: impl FnMut(&ForeignFile, &Image) -> bool) -> Option<DebugFile> {
    if path.len() > MAX_PATH || !path.starts_with(b"/") {
        return None;
    }
    let own = Root::own().ok();
    let roots = module.root.as_deref().into_iter().chain(own.as_ref());
    roots.into_iter().find_map(|root| {
        let file = root.open_regular(path, module.user).ok()?;
        if file.state().ok()?.size > MAX_FILE {
            return None;
        }
        let image = Image::open(file)?;
        is_right(image.file(), &image).then(|| DebugFile { image, path: path.to_vec() })
    })
}

fn directory(path: &[u8]) -> &[u8] {
    let end = memchr::memrchr(b'/', path).unwrap_or(0);
    path.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_names_without_directories_and_a_checksum() {
        assert_eq!(parse_link(b"a.debug\0\x01\x02\x03\x04"), Some((&b"a.debug"[..], 0x0403_0201)));
        assert_eq!(parse_link(b"abc\0\x01\0\0\0"), Some((&b"abc"[..], 1)));
        assert_eq!(parse_link(b"ab.debug\0\0\0\0\x01\0\0\0"), Some((&b"ab.debug"[..], 1)));
        for broken in [
            &b""[..],
            b"a.debug",
            b"a.debug\0\x01\x02\x03",
            b"\0\0\0\0\x01\0\0\0",
            b"../a\0\0\0\0\x01\0\0\0",
            b"..\0\0\x01\0\0\0",
        ] {
            assert_eq!(parse_link(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn what_is_read_only_to_be_compared_has_limits() {
        let file = tempfile::tempfile().unwrap();
        let set = |size| file.set_len(size).unwrap();
        let mut left = 1000;
        let check = |left: &mut u64| checksum_of(&file.try_clone().unwrap().into(), left);
        set(600);
        assert!(check(&mut left).is_some());
        assert_eq!((check(&mut left), left), (None, 400));
        // A sparse file costs nothing but the time of whoever reads it.
        set(MAX_CHECKED_FILE + 1);
        left = u64::MAX;
        assert_eq!((check(&mut left), left), (None, u64::MAX));
    }

    #[test]
    fn directories_of_paths() {
        assert_eq!(directory(b"/usr/lib/libm.so"), b"/usr/lib");
        assert_eq!(directory(b"/ring"), b"");
        assert_eq!(directory(b"ring"), b"");
    }
}
