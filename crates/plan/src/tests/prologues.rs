//! The planner on hand-written beginnings of functions.

use super::super::*;

const ADDRESS: u64 = 0x7000;
const OFFSET: u64 = 0x1000;

const PUSH_RBP: &[u8] = &[0x55];
const PUSH_R12: &[u8] = &[0x41, 0x54];
const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
const NOP5: &[u8] = &[0x0f, 0x1f, 0x44, 0x00, 0x00];
const MOV_RAX_GLOBAL: &[u8] = &[0x48, 0x8b, 0x05, 0x91, 0xde, 0x09, 0x00];
const LEA_RAX_GLOBAL: &[u8] = &[0x48, 0x8d, 0x05, 0x91, 0xde, 0x09, 0x00];
const SUB_RSP_24: &[u8] = &[0x48, 0x83, 0xec, 0x18];
const TEST_RDI_RDI: &[u8] = &[0x48, 0x85, 0xff];
const JE_OUT: &[u8] = &[0x74, 0x7f];
const JMP_FAR_ON: &[u8] = &[0xe9, 0x00, 0x10, 0x00, 0x00];
const XOR_EAX_EAX: &[u8] = &[0x31, 0xc0];
const RET: &[u8] = &[0xc3];

/// Plans a function made of these instructions.
fn site(instructions: &[&[u8]], arguments: usize) -> Result<Site, Unprobeable> {
    plan_site(&instructions.concat(), ADDRESS, OFFSET, arguments)
}

fn kind(instructions: &[&[u8]]) -> SiteKind {
    let site = site(instructions, 6).unwrap();
    let by = if let SiteKind::Moved { by } = site.kind { by } else { 0 };
    assert_eq!(site.offset, OFFSET + u64::from(by));
    assert!(!site.reentered);
    site.kind
}

fn slow(reason: SlowReason) -> SiteKind {
    SiteKind::Slow { reason }
}

#[test]
fn an_emulated_first_instruction_is_the_site() {
    for first in [PUSH_RBP, PUSH_R12, JMP_FAR_ON, JE_OUT, &[0x90], &[0xe8, 0, 0, 0, 0], &[0xeb, 0x10]] {
        assert_eq!(kind(&[first, SUB_RSP_24, RET]), SiteKind::Fast, "{first:02x?}");
    }
}

#[test]
fn harmless_instructions_are_stepped_over() {
    let moved = |by| SiteKind::Moved { by };
    assert_eq!(kind(&[ENDBR64, PUSH_RBP, RET]), moved(4));
    assert_eq!(kind(&[MOV_RAX_GLOBAL, PUSH_R12, RET]), moved(7)); // MPI_Test of Open MPI 4.1.4
    assert_eq!(kind(&[LEA_RAX_GLOBAL, PUSH_RBP, RET]), moved(7)); // MPI_Init of MPICH 4.0.2
    assert_eq!(kind(&[ENDBR64, MOV_RAX_GLOBAL, PUSH_RBP, RET]), moved(11));
    assert_eq!(kind(&[TEST_RDI_RDI, JE_OUT, RET]), moved(3));
    assert_eq!(kind(&[ENDBR64, XOR_EAX_EAX, JMP_FAR_ON]), moved(6));
    // The five-byte nop is emulated by recent kernels only.
    assert_eq!(kind(&[ENDBR64, NOP5, PUSH_RBP, RET]), moved(9));
    // mov [rsp-8], rbx: the red zone.
    assert_eq!(kind(&[&[0x48, 0x89, 0x5c, 0x24, 0xf8], PUSH_RBP, RET]), moved(5));
    // vpxor xmm0, xmm0, xmm0: refused as a site, harmless before one.
    assert_eq!(kind(&[&[0xc5, 0xf9, 0xef, 0xc0], PUSH_RBP, RET]), moved(4));
}

#[test]
fn what_a_probe_needs_to_see_is_not_stepped_over() {
    use ArgumentRegister::{R8, R9, Rcx, Rdi, Rdx, Rsi};
    let cases: [(&[u8], SlowReason); 19] = [
        (SUB_RSP_24, SlowReason::StackPointerMoved),
        (&[0x48, 0x8d, 0x64, 0x24, 0xe8], SlowReason::StackPointerMoved), // lea rsp, [rsp-24]
        (&[0x6a, 0x00], SlowReason::StackPointerMoved),                   // push 0
        (&[0x5b], SlowReason::StackPointerMoved),                         // pop rbx
        (&[0x31, 0xff], SlowReason::ArgumentOverwritten(Rdi)),            // xor edi, edi
        (&[0x40, 0xb6, 0x01], SlowReason::ArgumentOverwritten(Rsi)),      // mov sil, 1
        (&[0x66, 0x89, 0xda], SlowReason::ArgumentOverwritten(Rdx)),      // mov dx, bx
        (&[0xb5, 0x01], SlowReason::ArgumentOverwritten(Rcx)),            // mov ch, 1
        (&[0x4c, 0x8b, 0xc3], SlowReason::ArgumentOverwritten(R8)),       // mov r8, rbx
        (&[0x4c, 0x0f, 0x44, 0xc8], SlowReason::ArgumentOverwritten(R9)), // cmove r9, rax
        (&[0xf7, 0xe3], SlowReason::ArgumentOverwritten(Rdx)),            // mul ebx
        (&[0x48, 0x87, 0xf8], SlowReason::ArgumentOverwritten(Rdi)),      // xchg rax, rdi
        (&[0x48, 0x89, 0x5c, 0x24, 0x08], SlowReason::MemoryWritten),     // mov [rsp+8], rbx: the seventh argument
        (&[0x48, 0x89, 0x1c, 0x24], SlowReason::MemoryWritten),           // mov [rsp], rbx: the return address
        (&[0x48, 0x89, 0x5c, 0x24, 0xfc], SlowReason::MemoryWritten),     // mov [rsp-4], rbx: half of it
        (&[0xc7, 0x07, 0, 0, 0, 0], SlowReason::MemoryWritten),           // mov dword [rdi], 0: a request
        (RET, SlowReason::Branch),
        (&[0xff, 0xe0], SlowReason::Branch), // jmp rax
        (&[0x0f, 0x05], SlowReason::Branch), // syscall
    ];
    for (first, reason) in cases {
        assert_eq!(kind(&[first, PUSH_RBP, RET]), slow(reason), "{first:02x?}");
        assert_eq!(kind(&[ENDBR64, first, PUSH_RBP, RET]), slow(reason), "{first:02x?}");
    }
}

#[test]
fn registers_beyond_the_functions_arguments_are_free() {
    let code = [&[0x31, 0xd2][..], PUSH_RBP, RET]; // xor edx, edx: the third argument
    assert_eq!(site(&code, 2).unwrap().kind, SiteKind::Moved { by: 2 });
    assert_eq!(site(&code, 3).unwrap().kind, slow(SlowReason::ArgumentOverwritten(ArgumentRegister::Rdx)));
    assert_eq!(site(&[SUB_RSP_24, PUSH_RBP], 0).unwrap().kind, slow(SlowReason::StackPointerMoved));
}

#[test]
fn nothing_is_sought_after_a_branch_the_functions_end_or_the_limits() {
    assert_eq!(kind(&[ENDBR64]), slow(SlowReason::EndOfFunction));
    assert_eq!(kind(&[ENDBR64, &[0x06], PUSH_RBP]), slow(SlowReason::Undecodable));
    // The push is cut off by the function's end.
    assert_eq!(kind(&[ENDBR64, &[0x41]]), slow(SlowReason::Undecodable));
    assert_eq!(kind(&[XOR_EAX_EAX, XOR_EAX_EAX, XOR_EAX_EAX, XOR_EAX_EAX, PUSH_RBP]), SiteKind::Moved { by: 8 });
    let five = [XOR_EAX_EAX, XOR_EAX_EAX, XOR_EAX_EAX, XOR_EAX_EAX, XOR_EAX_EAX, PUSH_RBP];
    assert_eq!(kind(&five), slow(SlowReason::TooFar));
    let bytes_24 = [MOV_RAX_GLOBAL, MOV_RAX_GLOBAL, MOV_RAX_GLOBAL, TEST_RDI_RDI, PUSH_RBP];
    assert_eq!(kind(&bytes_24), SiteKind::Moved { by: 24 });
    let bytes_25 = [MOV_RAX_GLOBAL, MOV_RAX_GLOBAL, MOV_RAX_GLOBAL, ENDBR64, PUSH_RBP];
    assert_eq!(kind(&bytes_25), slow(SlowReason::TooFar));
}

#[test]
fn a_site_that_the_function_jumps_back_to_is_not_used() {
    let jump_to = |from: u8, to: u8| [0xeb, to.wrapping_sub(from + 2)];
    let with_jump = |to| site(&[ENDBR64, XOR_EAX_EAX, PUSH_RBP, RET, &jump_to(8, to)], 6).unwrap();
    assert_eq!((with_jump(0).kind, with_jump(0).reentered), (SiteKind::Moved { by: 6 }, true));
    assert_eq!((with_jump(4).kind, with_jump(4).reentered), (slow(SlowReason::JumpTarget), false));
    assert_eq!(with_jump(6).kind, slow(SlowReason::JumpTarget));
    assert_eq!((with_jump(7).kind, with_jump(7).reentered), (SiteKind::Moved { by: 6 }, false));
    let tail_call_of_itself = site(&[PUSH_RBP, &[0x75, 0xfd]], 6).unwrap();
    assert_eq!((tail_call_of_itself.kind, tail_call_of_itself.reentered), (SiteKind::Fast, true));
    let recursion = site(&[PUSH_RBP, &[0xe8, 0xfa, 0xff, 0xff, 0xff]], 6).unwrap();
    assert!(!recursion.reentered);
}

#[test]
fn a_function_whose_entry_the_kernel_refuses_has_no_site() {
    assert_eq!(site(&[], 6), Err(Unprobeable::Undecodable));
    assert_eq!(site(&[&[0x06], PUSH_RBP], 6), Err(Unprobeable::Undecodable));
    assert_eq!(site(&[&[0xcc], PUSH_RBP], 6), Err(Unprobeable::Breakpoint));
    assert_eq!(site(&[&[0xf0, 0x48, 0xff, 0x07], PUSH_RBP], 6), Err(Unprobeable::Prefix { prefix: 0xf0 })); // lock inc [rdi]
    assert_eq!(site(&[&[0xc5, 0xf9, 0xef, 0xc0], SUB_RSP_24], 6), Err(Unprobeable::Vector));
}
