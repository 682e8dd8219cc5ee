//! Reading of an ELF file what is asked for.
//!
//! An MPI library can have tens of megabytes, of which headers, symbols and the code of some hundred functions matter. Parts are
//! copied, not mapped: the file's owner could truncate it at any moment, and touching a mapped page beyond the new end would kill
//! mpiprobe with SIGBUS.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::rc::Rc;

use mpiprobe_discover::{ForeignFile, foreign::Reader};
use mpiprobe_elf::limits::MAX_FILE;
use object::{ReadCache, ReadRef};

use super::ReadError;

/// What parts of a file may have in all, beyond the file's own size, bytes: some are read twice, as parts of others.
const MORE: u64 = 16 << 20;

/// The last error of a file system, if there was one.
type Failure = Rc<RefCell<Option<io::Error>>>;

/// An ELF file of at most [`MAX_FILE`], of which what is asked for is read, once, and kept.
#[derive(Debug)]
pub struct ElfFile<'file> {
    cache: ReadCache<Parts<'file>>,
    failure: Failure,
}

impl<'file> ElfFile<'file> {
    pub fn new(file: &'file ForeignFile) -> Result<Self, ReadError> {
        Self::of_at_most(file, MAX_FILE)
    }

    fn of_at_most(file: &'file ForeignFile, limit: u64) -> Result<Self, ReadError> {
        let state = file.state()?;
        if !state.is_regular {
            return Err(ReadError::NotRegular);
        }
        let size = state.size;
        if size > limit {
            return Err(ReadError::TooLarge { size, limit });
        }
        let failure = Failure::default();
        let parts = Parts { reader: file.reader(), left: size.saturating_add(MORE), failure: Rc::clone(&failure) };
        Ok(Self { cache: ReadCache::new(parts), failure })
    }

    /// To be asked when all has been read: whether the file gave what it was asked for, as far as it has it. Otherwise what was made
    /// of it may lack something.
    pub fn was_readable(&self) -> Result<(), ReadError> {
        self.failure.borrow_mut().take().map_or(Ok(()), |error| Err(error.into()))
    }
}

/// The parts of a file that are read.
#[derive(Debug)]
struct Parts<'file> {
    reader: Reader<'file>,
    /// How much may still be read, bytes: headers that name the same part of the file ten thousand times fill no memory.
    left: u64,
    failure: Failure,
}

impl Parts<'_> {
    fn noted<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        outcome.map_err(|error| {
            let kind = error.kind();
            // Interrupted reads are begun anew.
            if kind != io::ErrorKind::Interrupted {
                *self.failure.borrow_mut() = Some(error);
            }
            kind.into()
        })
    }
}

impl Read for Parts<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.len() as u64 > self.left {
            return self.noted(Err(io::Error::other("its headers name the same parts of it over and over")));
        }
        let outcome = self.reader.read(buffer);
        let read = self.noted(outcome)?;
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

impl Seek for Parts<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let outcome = self.reader.seek(to);
        self.noted(outcome)
    }
}

/// Where the bytes of an ELF file come from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bytes<'data> {
    Memory(&'data [u8]),
    File(&'data dyn Source),
}

/// What [`ReadRef`] asks of a file, for those to whom it does not matter which file that is.
pub(super) trait Source: fmt::Debug {
    fn size(&self) -> Result<u64, ()>;
    fn at(&self, offset: u64, size: u64) -> Result<&[u8], ()>;
    fn until(&self, range: Range<u64>, delimiter: u8) -> Result<&[u8], ()>;
}

impl Source for ElfFile<'_> {
    fn size(&self) -> Result<u64, ()> {
        ReadRef::len(&self.cache)
    }

    fn at(&self, offset: u64, size: u64) -> Result<&[u8], ()> {
        self.cache.read_bytes_at(offset, size)
    }

    fn until(&self, range: Range<u64>, delimiter: u8) -> Result<&[u8], ()> {
        self.cache.read_bytes_at_until(range, delimiter)
    }
}

impl<'data> ReadRef<'data> for Bytes<'data> {
    fn len(self) -> Result<u64, ()> {
        match self {
            Self::Memory(bytes) => ReadRef::len(bytes),
            Self::File(file) => file.size(),
        }
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'data [u8], ()> {
        match self {
            Self::Memory(bytes) => bytes.read_bytes_at(offset, size),
            Self::File(file) => file.at(offset, size),
        }
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'data [u8], ()> {
        match self {
            Self::Memory(bytes) => bytes.read_bytes_at_until(range, delimiter),
            Self::File(file) => file.until(range, delimiter),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;

    use super::*;
    use crate::Library;

    #[test]
    fn a_file_is_what_its_bytes_are_wherever_the_position_is() {
        let mut exe = File::open("/proc/self/exe").unwrap();
        exe.seek(SeekFrom::Start(1000)).unwrap();
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let exe = exe.into();
        let file = ElfFile::new(&exe).unwrap();
        let (read, parsed) = (Library::read(&file).unwrap(), Library::parse(&bytes).unwrap());
        assert_eq!(read.build_id(), parsed.build_id());
        let symbols =
            |library: &Library<'_>| library.all_symbols().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(symbols(&read), symbols(&parsed));
        assert_eq!(read.bytes_from(4000, 1 << 16), parsed.bytes_from(4000, 1 << 16));
        let end = bytes.len() as u64;
        for (offset, length, left) in [(end - 3, 10, 3), (end, 1, 0), (u64::MAX, u64::MAX, 0)] {
            assert_eq!(read.bytes_from(offset, length).len(), left);
            assert_eq!(parsed.bytes_from(offset, length).len(), left);
        }
        file.was_readable().unwrap();
    }

    #[test]
    fn a_file_over_the_limit_is_refused_by_its_size() {
        let exe: ForeignFile = File::open("/proc/self/exe").unwrap().into();
        let size = exe.state().unwrap().size;
        let error = ElfFile::of_at_most(&exe, size - 1).unwrap_err();
        assert!(matches!(error, ReadError::TooLarge { size: s, limit } if s == size && limit == size - 1), "{error:?}");
        ElfFile::of_at_most(&exe, size).unwrap();
    }

    #[test]
    fn what_is_not_a_regular_file_is_refused() {
        for path in ["/", "/dev/zero"] {
            let file = File::open(path).unwrap().into();
            assert!(matches!(ElfFile::new(&file), Err(ReadError::NotRegular)), "{path}");
        }
    }

    /// Invariant BOUNDED-READS.
    #[test]
    fn the_same_part_is_read_once_and_all_parts_together_are_bounded() {
        let mut small = tempfile::tempfile().unwrap();
        small.write_all(&vec![0; 1 << 20]).unwrap();
        let small = small.into();
        let file = ElfFile::new(&small).unwrap();
        for _ in 0..100 {
            assert_eq!(file.at(0, 1 << 20).unwrap().len(), 1 << 20);
        }
        file.was_readable().unwrap();
        let read = (1..1000).take_while(|&offset| file.at(offset, (1 << 20) - offset).is_ok()).count();
        assert_eq!(read, 16);
        file.was_readable().unwrap_err();
    }
}
