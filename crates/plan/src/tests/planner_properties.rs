//! The planner on random code, judged by rules stated in other terms than its own.
//!
//! Invariant WHOLE-INSTRUCTIONS.

use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use proptest::prelude::*;

use super::super::*;

const ADDRESS: u64 = 0x55_0000;
const OFFSET: u64 = 0x2_0000;

/// What is known about an instruction because it was written down, not decoded.
#[derive(Debug, Clone, Copy)]
enum Effect {
    Emulated,
    Harmless,
    Overwrites(usize),
    Stops,
}

/// Instructions that compilers put at the beginning of functions, and a few that they do not.
const TEMPLATES: &[(&[u8], Effect)] = &[
    (&[0x53], Effect::Emulated),                               // push rbx
    (&[0x41, 0x57], Effect::Emulated),                         // push r15
    (&[0x90], Effect::Emulated),                               // nop
    (&[0x0f, 0x84, 0x00, 0x10, 0x00, 0x00], Effect::Emulated), // je far on
    (&[0xe9, 0x00, 0x10, 0x00, 0x00], Effect::Emulated),       // jmp far on
    (&[0xf3, 0x0f, 0x1e, 0xfa], Effect::Harmless),             // endbr64
    (&[0x48, 0x8b, 0x05, 0, 0, 0, 0], Effect::Harmless),       // mov rax, [rip]
    (&[0x48, 0x8d, 0x05, 0, 0, 0, 0], Effect::Harmless),       // lea rax, [rip]
    (&[0x48, 0x85, 0xff], Effect::Harmless),                   // test rdi, rdi
    (&[0x83, 0x3f, 0x00], Effect::Harmless),                   // cmp dword [rdi], 0
    (&[0x49, 0x89, 0xfa], Effect::Harmless),                   // mov r10, rdi
    (&[0x31, 0xc0], Effect::Harmless),                         // xor eax, eax
    (&[0x4c, 0x8b, 0x5c, 0x24, 0x08], Effect::Harmless),       // mov r11, [rsp+8]
    (&[0x48, 0x89, 0x5c, 0x24, 0xe8], Effect::Harmless),       // mov [rsp-24], rbx
    (&[0x66, 0x0f, 0xef, 0xc0], Effect::Harmless),             // pxor xmm0, xmm0
    (&[0x48, 0x89, 0xdf], Effect::Overwrites(0)),              // mov rdi, rbx
    (&[0x83, 0xc6, 0x01], Effect::Overwrites(1)),              // add esi, 1
    (&[0x48, 0x99], Effect::Overwrites(2)),                    // cqo
    (&[0x0f, 0xb6, 0xc8], Effect::Overwrites(3)),              // movzx ecx, al
    (&[0x45, 0x31, 0xc0], Effect::Overwrites(4)),              // xor r8d, r8d
    (&[0x41, 0xb1, 0x01], Effect::Overwrites(5)),              // mov r9b, 1
    (&[0x48, 0x83, 0xec, 0x28], Effect::Stops),                // sub rsp, 40
    (&[0x48, 0x89, 0x5c, 0x24, 0x10], Effect::Stops),          // mov [rsp+16], rbx
    (&[0xc7, 0x06, 0, 0, 0, 0], Effect::Stops),                // mov dword [rsi], 0
    (&[0xc3], Effect::Stops),                                  // ret
];

/// The site by the rule as it is told to people, on what is known about the templates.
fn expected(instructions: &[(&[u8], Effect)], arguments: usize) -> Option<u8> {
    let mut distance = 0;
    for (skipped, (bytes, effect)) in instructions.iter().enumerate() {
        match effect {
            _ if skipped > 4 || distance > 24 => return None,
            Effect::Emulated => return u8::try_from(distance).ok(),
            Effect::Overwrites(argument) if *argument < arguments => return None,
            Effect::Stops => return None,
            Effect::Harmless | Effect::Overwrites(_) => distance += bytes.len(),
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn the_site_of_known_instructions_is_the_one_by_the_rule(
        choice in prop::collection::vec(0..TEMPLATES.len(), 1..8),
        arguments in 0..8_usize,
    ) {
        let instructions: Vec<_> = choice.iter().map(|&index| TEMPLATES[index]).collect();
        let code: Vec<u8> = instructions.iter().flat_map(|(bytes, _)| bytes.iter().copied()).collect();
        let site = plan_site(&code, ADDRESS, OFFSET, arguments).unwrap();
        let planned = match site.kind {
            SiteKind::Fast => Some(0),
            SiteKind::Moved { by } => Some(by),
            SiteKind::Slow { .. } => None,
        };
        prop_assert_eq!(planned, expected(&instructions, arguments), "{:02x?}", code);
        judge(&code, arguments)?;
    }

    #[test]
    fn any_bytes_give_a_sound_site_or_none(code in prop::collection::vec(any::<u8>(), 0..80), arguments in 0..8_usize) {
        judge(&code, arguments)?;
    }

    #[test]
    fn any_bytes_after_known_instructions_give_a_sound_site(
        choice in prop::collection::vec(0..TEMPLATES.len(), 0..4),
        tail in prop::collection::vec(any::<u8>(), 0..40),
        cut in 0..40_usize,
    ) {
        let mut code: Vec<u8> = choice.iter().flat_map(|&index| TEMPLATES[index].0.iter().copied()).collect();
        code.extend(tail);
        code.truncate(code.len().saturating_sub(cut));
        judge(&code, 6)?;
    }
}

/// Checks a planned site against the code it was planned in.
fn judge(code: &[u8], arguments: usize) -> Result<(), TestCaseError> {
    let Ok(site) = plan_site(code, ADDRESS, OFFSET, arguments) else { return Ok(()) };
    let distance = site.offset - OFFSET;
    let (skipped, rest): (Vec<_>, Vec<_>) = Decoder::with_ip(64, code, ADDRESS, DecoderOptions::NONE)
        .into_iter()
        .partition(|instruction| instruction.ip() < ADDRESS + distance);
    let at_site = rest.first().expect("a site is within the function");
    prop_assert_eq!(at_site.ip(), ADDRESS + distance, "the site is inside an instruction: {:02x?}", code);
    prop_assert!(!at_site.is_invalid());
    prop_assert!(at_site.next_ip() <= ADDRESS + code.len() as u64, "the site goes beyond the function: {:02x?}", code);
    match site.kind {
        SiteKind::Slow { .. } => prop_assert_eq!(distance, 0),
        SiteKind::Fast | SiteKind::Moved { .. } => {
            prop_assert!(is_of_an_emulated_kind(at_site), "{at_site:?} {:02x?}", code);
            prop_assert!(skipped.len() <= 4 && distance <= 24);
            for instruction in &skipped {
                prop_assert!(leaves_the_call_alone(instruction, arguments), "{instruction:?} {:02x?}", code);
            }
            let targets = rest.iter().filter(|i| i.op_kinds().next() == Some(OpKind::NearBranch64));
            let mut jumps = targets.filter(|i| !i.is_call_near() && i.mnemonic() != Mnemonic::Xbegin);
            let into = (ADDRESS + 1)..=(ADDRESS + distance);
            prop_assert!(!jumps.any(|jump| into.contains(&jump.near_branch_target())), "{:02x?}", code);
        }
    }
    Ok(())
}

/// By what the instruction is called, not by its bytes.
fn is_of_an_emulated_kind(instruction: &Instruction) -> bool {
    let plain = !instruction.has_rep_prefix() && !instruction.has_repne_prefix();
    let push = instruction.mnemonic() == Mnemonic::Push
        && instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().is_gpr64();
    let branch = instruction.is_jcc_short_or_near()
        || instruction.is_jmp_short_or_near()
        || (instruction.is_call_near() && instruction.op0_kind() == OpKind::NearBranch64);
    plain && (push || branch || (instruction.mnemonic() == Mnemonic::Nop && instruction.len() == 1))
}

/// Operand by operand, and by name for what instructions do besides.
fn leaves_the_call_alone(instruction: &Instruction, arguments: usize) -> bool {
    let registers = [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9];
    let kept = &registers[..arguments.min(6)];
    let needed = |register: Register| kept.contains(&register) || register == Register::RSP;
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(instruction);
    let operands_harmless = (0..instruction.op_count()).all(|operand| {
        if matches!(
            info.op_access(operand),
            OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
        ) {
            return true;
        }
        match instruction.op_kind(operand) {
            OpKind::Register => !needed(instruction.op_register(operand).full_register()),
            OpKind::Memory => {
                let start = instruction.memory_displacement64().cast_signed();
                let end = start.checked_add_unsigned(instruction.memory_size().size() as u64);
                instruction.memory_base() == Register::RSP && start >= -128 && end.is_some_and(|end| end <= 0)
            }
            _ => false,
        }
    });
    let counts = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    let through = |kinds: &[OpKind]| instruction.op_kinds().any(|kind| kinds.contains(&kind));
    let moves_source = instruction.is_string_instruction() && through(&[OpKind::MemorySegRSI, OpKind::MemorySegESI]);
    let moves_destination = instruction.is_string_instruction() && through(&[OpKind::MemoryESRDI, OpKind::MemoryESEDI]);
    operands_harmless
        && !(moves_source && needed(Register::RSI))
        && !(moves_destination && needed(Register::RDI))
        && !(counts && instruction.is_string_instruction() && needed(Register::RCX))
        && !writes_by_name(instruction).iter().any(|&register| needed(register))
        && instruction.stack_pointer_increment() == 0
        && !instruction.is_jcc_short_or_near()
        && !instruction.is_jmp_short_or_near()
}

/// Registers that instructions write without naming them as operands.
fn writes_by_name(instruction: &Instruction) -> &'static [Register] {
    match instruction.mnemonic() {
        Mnemonic::Imul if instruction.op_count() > 1 => &[],
        // With 8 bits the result fits into ax.
        _ if matches!(instruction.code(), Code::Mul_rm8 | Code::Imul_rm8 | Code::Div_rm8 | Code::Idiv_rm8) => &[],
        Mnemonic::Mul | Mnemonic::Imul | Mnemonic::Div | Mnemonic::Idiv => &[Register::RDX],
        Mnemonic::Cqo | Mnemonic::Cdq | Mnemonic::Cwd | Mnemonic::Rdtsc | Mnemonic::Xgetbv | Mnemonic::Rdpmc => {
            &[Register::RDX]
        }
        Mnemonic::Cpuid | Mnemonic::Rdtscp => &[Register::RCX, Register::RDX],
        _ => &[],
    }
}
