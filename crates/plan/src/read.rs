//! Reading an ELF file into memory.
//!
//! The file is copied, not mapped: its owner could truncate it at any moment, and touching a mapped page beyond the new end
//! would kill mpiprobe with SIGBUS.

use std::io::Read as _;

use mpiprobe_discover::ForeignFile;
use mpiprobe_elf::limits::MAX_FILE;

use super::ReadError;

/// Reads a whole file of at most [`MAX_FILE`], from its start wherever the file position is.
pub fn read_elf_file(file: &ForeignFile) -> Result<Vec<u8>, ReadError> {
    read_at_most(file, MAX_FILE)
}

fn read_at_most(file: &ForeignFile, limit: u64) -> Result<Vec<u8>, ReadError> {
    let state = file.state()?;
    if !state.is_regular {
        return Err(ReadError::NotRegular);
    }
    let size = state.size;
    if size > limit {
        return Err(ReadError::TooLarge { size, limit });
    }
    let mut bytes = Vec::new();
    let capacity = usize::try_from(size).map_err(|_| ReadError::NoMemory { size })?;
    bytes.try_reserve_exact(capacity).map_err(|_| ReadError::NoMemory { size })?;
    // The file may grow meanwhile: what was reserved is the bound.
    file.reader().take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Seek as _, SeekFrom};

    #[test]
    fn a_file_is_read_from_its_start_wherever_the_position_is() {
        let mut exe = File::open("/proc/self/exe").unwrap();
        exe.seek(SeekFrom::Start(1000)).unwrap();
        let size = exe.metadata().unwrap().len();
        let bytes = read_elf_file(&exe.into()).unwrap();
        assert_eq!(bytes.len() as u64, size);
        assert_eq!(bytes[..4], *b"\x7fELF");
    }

    #[test]
    fn a_file_over_the_limit_is_refused_by_its_size() {
        let exe: ForeignFile = File::open("/proc/self/exe").unwrap().into();
        let size = exe.state().unwrap().size;
        let error = read_at_most(&exe, size - 1).unwrap_err();
        assert!(matches!(error, ReadError::TooLarge { size: s, limit } if s == size && limit == size - 1), "{error:?}");
        assert_eq!(read_at_most(&exe, size).unwrap().len() as u64, size);
    }

    #[test]
    fn what_is_not_a_regular_file_is_refused() {
        for path in ["/", "/dev/zero"] {
            assert!(matches!(read_elf_file(&File::open(path).unwrap().into()), Err(ReadError::NotRegular)), "{path}");
        }
    }
}
