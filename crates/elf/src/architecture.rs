//! Which processor an ELF file is for: probes and argument registers are known for this machine's own only.

use std::fmt;

use object::Endianness;
use serde::Serialize;

/// Word size, byte order and machine of an ELF file, from the first 20 bytes of its header (ELF gABI, "ELF Header").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Architecture {
    /// 32 or 64.
    pub bits: u8,
    pub big_endian: bool,
    /// `e_machine`, for instance 62 for x86-64.
    pub machine: u16,
}

const X86: u16 = 3;
const ARM: u16 = 40;
const X86_64: u16 = 62;
const AARCH64: u16 = 183;
const RISCV: u16 = 243;

impl Architecture {
    /// How much of a file [`Self::parse`] needs, in bytes.
    pub const HEADER: usize = 20;

    /// What this mpiprobe was built for.
    pub const NATIVE: Self = Self {
        bits: if cfg!(target_pointer_width = "64") { 64 } else { 32 },
        big_endian: cfg!(target_endian = "big"),
        machine: if cfg!(target_arch = "x86_64") {
            X86_64
        } else if cfg!(target_arch = "aarch64") {
            AARCH64
        } else if cfg!(target_arch = "riscv64") {
            RISCV
        } else {
            0
        },
    };

    /// Reads the start of a file; `None` if that is not ELF.
    pub fn parse(header: &[u8]) -> Option<Self> {
        let header: &[u8; Self::HEADER] = header.first_chunk()?;
        let [0x7f, b'E', b'L', b'F', class, data, .., low, high] = *header else { return None };
        let bits = match class {
            1 => 32,
            2 => 64,
            _ => return None,
        };
        let big_endian = match data {
            1 => false,
            2 => true,
            _ => return None,
        };
        let machine = if big_endian { u16::from_be_bytes([low, high]) } else { u16::from_le_bytes([low, high]) };
        Some(Self { bits, big_endian, machine })
    }

    pub(crate) const fn endianness(self) -> Endianness {
        if self.big_endian { Endianness::Big } else { Endianness::Little }
    }

    /// Whether this mpiprobe can observe such a process.
    pub fn is_native(self) -> bool {
        self == Self::NATIVE
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = match self.machine {
            X86 => "x86",
            ARM => "ARM",
            X86_64 => "x86-64",
            AARCH64 => "AArch64",
            RISCV => "RISC-V",
            other => return write!(f, "{}-bit machine {other}", self.bits),
        };
        write!(f, "{}-bit {machine}", self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(class: u8, data: u8, machine: [u8; 2]) -> Vec<u8> {
        let mut bytes = vec![0x7f, b'E', b'L', b'F', class, data];
        bytes.resize(18, 0);
        bytes.extend(machine);
        bytes
    }

    #[test]
    fn headers() {
        let i386 = Architecture::parse(&header(1, 1, [3, 0])).unwrap();
        assert_eq!(i386.to_string(), "32-bit x86");
        assert!(!i386.is_native());
        // The x32 ABI: the 64-bit machine with 32-bit pointers.
        assert_eq!(Architecture::parse(&header(1, 1, [62, 0])).unwrap().to_string(), "32-bit x86-64");
        let s390x = Architecture::parse(&header(2, 2, [0, 22])).unwrap();
        assert_eq!(s390x, Architecture { bits: 64, big_endian: true, machine: 22 });
        assert_eq!(s390x.to_string(), "64-bit machine 22");
    }

    #[test]
    fn other_files_are_not_elf() {
        assert_eq!(Architecture::parse(b"#!/bin/sh\nexec ring\n"), None);
        assert_eq!(Architecture::parse(b"\x7fELF"), None);
        assert_eq!(Architecture::parse(&header(3, 1, [62, 0])), None);
    }

    #[test]
    fn this_program_is_native() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        assert_eq!(Architecture::parse(&own), Some(Architecture::NATIVE));
    }

    proptest! {
        #[test]
        fn never_panics(bytes: Vec<u8>) {
            let _ = Architecture::parse(&bytes);
        }
    }
}
