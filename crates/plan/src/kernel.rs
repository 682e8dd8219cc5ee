//! What the kernel does with the instruction under a uprobe (`arch/x86/kernel/uprobes.c`).
//!
//! The breakpoint replaces the instruction, so the kernel has to bring its effect about: it computes the effect of a few forms
//! itself (`branch_setup_xol_ops`, `push_setup_xol_ops`), lets the processor single-step a copy of most others, at the price of
//! a second exception, and refuses the rest (`uprobe_init_insn`). One refused probe makes the attachment of all fail.
//!
//! The rule here is narrower than any kernel's: what it calls emulated is emulated, and what it lets be single-stepped is
//! accepted, by every kernel since 5.15. Hence the five-byte nop, emulated from 6.18 on, does not count.

/// Why an instruction can carry no probe at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unprobeable {
    #[error("its first bytes are no instruction")]
    Undecodable,
    #[error("its first byte is a breakpoint (int3) in the file itself: another tool has patched the file")]
    Breakpoint,
    #[error("the kernel refuses probes on an instruction with prefix {prefix:#04x}")]
    Prefix { prefix: u8 },
    #[error("the kernel refuses probes on an instruction with opcode {opcode:#04x}")]
    Opcode { opcode: u8 },
    #[error("it begins with an AVX instruction, which older kernels mistake for others")]
    Vector,
}

const INT3: u8 = 0xcc;

/// Is `instruction`, the bytes of exactly one, emulated? Prefixes never are: some kernels look through some of them.
pub(super) fn is_emulated(instruction: &[u8]) -> bool {
    let nop = matches!(instruction, [0x90]);
    let push_register = matches!(instruction, [0x50..=0x57] | [0x41, 0x50..=0x57]);
    let short_jump = matches!(instruction, [0xeb | 0x70..=0x7f, _]);
    let near_jump = matches!(instruction, [0xe9, _, _, _, _] | [0x0f, 0x80..=0x8f, _, _, _, _]);
    let call = matches!(instruction, [0xe8, _, _, _, _]);
    nop || push_register || short_jump || near_jump || call
}

/// Would the kernel accept a probe on `instruction`, the bytes of exactly one?
pub(super) fn check_probeable(instruction: &[u8]) -> Result<(), Unprobeable> {
    let mut bytes = instruction.iter().copied().peekable();
    while let Some(prefix) = bytes.next_if(|byte| is_legacy_prefix(*byte)) {
        if is_refused_prefix(prefix) {
            return Err(Unprobeable::Prefix { prefix });
        }
    }
    bytes.next_if(|byte| matches!(byte, 0x40..=0x4f)); // REX
    let modrm_register = |modrm: Option<u8>| modrm.map(|modrm| modrm >> 3 & 7);
    match (bytes.next(), modrm_register(bytes.next())) {
        (None, _) => Err(Unprobeable::Undecodable),
        (Some(INT3), _) => Err(Unprobeable::Breakpoint),
        // EVEX, VEX, and XOP, which shares its first byte with `pop r/m`.
        (Some(0x62 | 0xc4 | 0xc5), _) | (Some(0x8f), Some(1..)) => Err(Unprobeable::Vector),
        // `mov ss` holds back the exception of the next instruction.
        (Some(opcode @ 0x8e), Some(2)) => Err(Unprobeable::Opcode { opcode }),
        (Some(opcode), _) if is_refused_opcode(opcode) => Err(Unprobeable::Opcode { opcode }),
        (Some(_), _) => Ok(()),
    }
}

fn is_legacy_prefix(byte: u8) -> bool {
    is_refused_prefix(byte) || matches!(byte, 0x64..=0x67 | 0xf2 | 0xf3)
}

/// Segment overrides es, cs, ss, ds, and lock.
fn is_refused_prefix(byte: u8) -> bool {
    matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0xf0)
}

/// Opcodes that do not exist in 64-bit mode, port input and output, software interrupts, and privileged ones.
fn is_refused_opcode(byte: u8) -> bool {
    matches!(
        byte,
        0x06 | 0x07 | 0x0e | 0x16 | 0x17 | 0x1e | 0x1f | 0x27 | 0x2f | 0x37 | 0x3f
        | 0x60 | 0x61 | 0x6c..=0x6f | 0x82 | 0x9a
        | 0xcc..=0xcf | 0xd4..=0xd6 | 0xe4..=0xe7 | 0xea | 0xec..=0xef
        | 0xf1 | 0xf4 | 0xfa | 0xfb
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emulated_forms_are_the_kernels() {
        let emulated: &[&[u8]] = &[
            &[0x90],
            &[0x55],
            &[0x41, 0x57],
            &[0xeb, 0xfe],
            &[0x74, 0x10],
            &[0xe9, 0, 0, 0, 0],
            &[0xe8, 0, 0, 0, 0],
            &[0x0f, 0x85, 0, 0, 0, 0],
        ];
        for bytes in emulated {
            assert!(is_emulated(bytes), "{bytes:02x?}");
            assert_eq!(check_probeable(bytes), Ok(()), "{bytes:02x?}");
        }
        let stepped: &[&[u8]] = &[
            &[0xf3, 0x0f, 0x1e, 0xfa],                      // endbr64
            &[0x0f, 0x1f, 0x44, 0, 0],                      // nop, 5 bytes
            &[0x66, 0x90],                                  // nop, 2 bytes
            &[0x40, 0x55],                                  // push with a REX prefix that says nothing
            &[0x6a, 0x01],                                  // push imm8
            &[0xff, 0xe0],                                  // jmp rax
            &[0xe3, 0x00],                                  // jrcxz
            &[0xc3],                                        // ret
            &[0xf2, 0xe9, 0, 0, 0, 0],                      // bnd jmp
            &[0x48, 0x83, 0xec, 0x08],                      // sub rsp, 8
            &[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0], // mov rax, fs:0x28
            &[0x8f, 0x00],                                  // pop [rax]
        ];
        for bytes in stepped {
            assert!(!is_emulated(bytes), "{bytes:02x?}");
            assert_eq!(check_probeable(bytes), Ok(()), "{bytes:02x?}");
        }
    }

    #[test]
    fn what_the_kernel_refuses_is_refused() {
        let refused: &[(&[u8], Unprobeable)] = &[
            (&[], Unprobeable::Undecodable),
            (&[0xcc], Unprobeable::Breakpoint),
            (&[0x3e, 0xff, 0xe0], Unprobeable::Prefix { prefix: 0x3e }), // notrack jmp rax
            (&[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0], Unprobeable::Prefix { prefix: 0x2e }), // cs nopw
            (&[0xf0, 0x48, 0xff, 0x00], Unprobeable::Prefix { prefix: 0xf0 }), // lock inc
            (&[0xf4], Unprobeable::Opcode { opcode: 0xf4 }),             // hlt
            (&[0xcd, 0x80], Unprobeable::Opcode { opcode: 0xcd }),       // int 0x80
            (&[0x8e, 0xd0], Unprobeable::Opcode { opcode: 0x8e }),       // mov ss, eax
            (&[0xc5, 0xf8, 0x77], Unprobeable::Vector),                  // vzeroupper
            (&[0x62, 0xf1, 0x7c, 0x48, 0x28, 0xc0], Unprobeable::Vector), // vmovaps zmm
        ];
        for (bytes, reason) in refused {
            assert_eq!(check_probeable(bytes), Err(*reason), "{bytes:02x?}");
            assert!(!is_emulated(bytes), "{bytes:02x?}");
        }
    }
}
