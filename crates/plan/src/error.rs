//! What can be wrong with an ELF file. The caller knows the path and the process, and names them around these messages.

use std::{fmt, io};

/// Why a file could not be read into memory.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("it is not a regular file, so it cannot be what the process has mapped as code")]
    NotRegular,
    #[error(
        "it has {size} bytes and mpiprobe reads at most {limit}: strip its debug information (strip --strip-debug keeps the \
         function symbols that are needed)"
    )]
    TooLarge { size: u64, limit: u64 },
    #[error("there is not enough memory to read its {size} bytes")]
    NoMemory { size: u64 },
    #[error("reading it failed: {0}")]
    Io(#[from] io::Error),
}

/// Why an ELF file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    #[error("it is not an ELF file (it does not begin with 7f 45 4c 46)")]
    NotElf,
    #[error(
        "it is a 32-bit (or x32) ELF file: mpiprobe profiles 64-bit programs only; use a 64-bit build of the program"
    )]
    Not64Bit,
    #[error("it is a big-endian ELF file: mpiprobe profiles x86-64 programs only")]
    BigEndian,
    #[error("it is made for another processor (ELF machine {machine}): mpiprobe profiles x86-64 programs only")]
    OtherMachine { machine: u16 },
    #[error("it is neither an executable nor a shared library (ELF type {kind}): only those can be mapped as code")]
    NotLoadable { kind: u16 },
    #[error("it is truncated or damaged: {what}: {why}; if it is being replaced, try again")]
    Malformed { what: &'static str, why: String },
    #[error(
        "it has more than {limit} {what}, far more than any compiler makes: it is damaged or hostile and is left alone"
    )]
    TooMany { what: &'static str, limit: usize },
}

impl ElfError {
    /// For `map_err`: `what` names the part of the file that the error is about.
    pub(super) fn malformed(what: &'static str) -> impl Fn(object::Error) -> Self {
        move |error| Self::Malformed { what, why: error.to_string() }
    }
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
