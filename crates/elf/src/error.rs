//! What can be wrong with an ELF file. The caller knows the path and the process, and names them around these messages.

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
    pub(crate) fn malformed(what: &'static str) -> impl Fn(object::Error) -> Self {
        move |error| Self::Malformed { what, why: error.to_string() }
    }
}
