//! What a file asks the dynamic linker for: whether MPI is among it.

use core::ffi::CStr;

use crate::{file_view::View, text::Text};

const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;
/// Entries of a dynamic section that are looked at.
const MOST_ENTRIES: u64 = 4096;
/// The longest name of a library that is looked at.
const NAME: usize = 64;

/// The MPI library that a file is linked with.
pub(crate) struct Needed {
    /// Its name, without a folder.
    pub(crate) name: Text<NAME>,
    /// The file says itself where its libraries are looked for.
    pub(crate) has_path: bool,
}

/// Whether a path is that of an MPI library, or a name one's.
pub(crate) fn is_mpi(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    [&b"libmpi.so"[..], b"libmpi_abi.so", b"libmpich.so"].iter().any(|library| name.starts_with(library))
}

/// The MPI library that a file is linked with. A file that is named without its folder is looked for by the dynamic linker alone: of
/// that nothing is known.
pub(crate) fn by(path: &CStr) -> Option<Needed> {
    if path.to_bytes().contains(&b'/') { look(&View::open(path)?) } else { None }
}

fn look(file: &View) -> Option<Needed> {
    // ELF, 64 bit, little-endian.
    if file.bytes(0, 6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let (headers, size, number) = (file.number(32, 8)?, file.number(54, 2)?, file.number(56, 2)?);
    let header = |index: u64| headers.checked_add(index * size);
    let of_kind = |kind: u64| (0..number).filter_map(header).find(move |&at| file.number(at, 4) == Some(kind));
    let dynamic = file.number(of_kind(u64::from(libc::PT_DYNAMIC))?.checked_add(8)?, 8)?;
    let entry = |index: u64| {
        let at = dynamic.checked_add(index * 16)?;
        Some((file.number(at, 8)?, file.number(at.checked_add(8)?, 8)?)).filter(|(tag, _)| *tag != DT_NULL)
    };
    let entries = || (0..MOST_ENTRIES).map_while(entry);
    let strings = entries().find(|(tag, _)| *tag == DT_STRTAB)?.1;
    // It is given as an address: the segment tells where that is in the file.
    let in_file = (0..number).filter_map(header).find_map(|at| {
        let word = |place: u64| file.number(at.checked_add(place)?, 8);
        let (offset, address, length) = (word(8)?, word(16)?, word(32)?);
        let inside = strings.checked_sub(address)?;
        (file.number(at, 4)? == u64::from(libc::PT_LOAD) && inside < length).then(|| offset.checked_add(inside))?
    })?;
    let name = |at: u64| {
        let name = file.at_most(in_file.checked_add(at)?, NAME)?.split(|&byte| byte == 0).next()?;
        is_mpi(name).then_some(name)
    };
    let name = entries().filter(|(tag, _)| *tag == DT_NEEDED).find_map(|(_, at)| name(at))?;
    let has_path = entries().any(|(tag, _)| matches!(tag, DT_RPATH | DT_RUNPATH));
    Some(Needed { name: Text::new().with(name), has_path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_their_names() {
        for name in ["libmpi.so.40", "/x/libmpi.so.12.2", "libmpi_abi.so.0", "libmpich.so.12"] {
            assert!(is_mpi(name.as_bytes()), "{name}");
        }
        for name in ["libmpi_cxx.so.40", "libmpi_mpifh.so.40", "libmpifort.so.12", "libm.so.6", ""] {
            assert!(!is_mpi(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn what_is_no_library_needs_nothing() {
        assert!(by(c"/proc/self/maps").is_none());
        assert!(by(c"/proc/self/exe").is_none());
        assert!(by(c"/nowhere/at/all").is_none());
        assert!(by(c"libmpi.so").is_none());
    }
}
