//! Why a file cannot be read, and why a symbol cannot be probed. The caller names the path and the process around these messages.

use std::{fmt, io};

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("it is not a regular file, so it cannot be what the process has mapped as code")]
    NotRegular,
    #[error(
        "it has {size} bytes and mpiprobe reads at most {limit}: strip its debug information (strip --strip-debug keeps the \
         function symbols that are needed)"
    )]
    TooLarge { size: u64, limit: u64 },
    #[error("reading it failed: {0}")]
    Io(#[from] io::Error),
}

/// Why a symbol cannot be probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rejection {
    /// This file only uses it.
    Imported,
    /// Not a function but data, or of no type.
    NotAFunction,
    /// STT_GNU_IFUNC: the address is that of a resolver, which runs once at load time.
    IndirectFunction,
    /// SHN_ABS: the value is no address in this file.
    Absolute,
    /// A size of 0: where the function ends is unknown, and so is how far its code may be read.
    NoSize,
    /// No segment covers the address.
    Unmapped,
    /// The address lies in data.
    NotExecutable,
    /// The address lies in a part that the file has no bytes for.
    NotInFile,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Imported => "it is only used here, not defined",
            Self::NotAFunction => "it is not a function",
            Self::IndirectFunction => {
                "it is chosen when the program starts (an IFUNC), so its address here is not its own"
            }
            Self::Absolute => "its address is absolute, not one of this file",
            Self::NoSize => "its size is not known",
            Self::Unmapped => "its address is in no loadable segment",
            Self::NotExecutable => "its address is in data, not in code",
            Self::NotInFile => "its code is not in the file",
        })
    }
}
