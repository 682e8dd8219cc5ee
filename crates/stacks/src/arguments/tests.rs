//! What is made of instructions, as compilers write them.
//!
//! Invariant NO-ARGUMENT-GUESSED.

use iced_x86::{Decoder, DecoderOptions};

use super::{
    End,
    execution::Execution,
    value::{KnownValue, Source},
};
use crate::{copy::Stack, memory::Memory};

const RBP: usize = 5;
const RSP: usize = 4;
/// Where the caller's stack begins at the call.
const SP: u64 = 0x7000;

/// The first arguments after these instructions: `bp` is in rbp in the end, and these words are on the stack.
fn arguments(code: &[u8], bp: u64, words: &[u64]) -> Vec<Option<KnownValue>> {
    let stack = Stack::new(SP, words.iter().flat_map(|word| word.to_le_bytes()).collect());
    let mut memory = Memory::new(&stack, None);
    let mut execution = Execution::new();
    for instruction in &mut Decoder::with_ip(64, code, 0x40_0000, DecoderOptions::NONE) {
        assert!(!instruction.is_invalid());
        execution.step(&instruction);
    }
    for (register, number) in [(RBP, bp), (RSP, SP)] {
        let value = execution.register(register).unwrap();
        if !execution.symbols.solve(value, number) {
            return Vec::new();
        }
    }
    let mut end = End::of(&execution, &mut memory, SP - 0x1000..SP + 8);
    (0..7).map(|argument| end.argument(argument).0).collect()
}

fn value(known: Option<KnownValue>) -> Option<u64> {
    known.map(|known| known.value)
}

#[test]
fn constants_addresses_and_the_callers_variables_are_known() {
    // mov edx, 5; lea rdi, [rbp-8]; mov esi, [rbp-8]; mov rcx, rbp; lea r8, [rip+0x10]; xor r9d, r9d
    let code = [
        0xba, 5, 0, 0, 0, 0x48, 0x8d, 0x7d, 0xf8, 0x8b, 0x75, 0xf8, 0x48, 0x89, 0xe9, 0x4c, 0x8d, 0x05, 0x10, 0, 0, 0,
        0x45, 0x31, 0xc9,
    ];
    let found = arguments(&code, SP + 24, &[1, 2, 0x1_0000_0003]);
    let expected = [Some(SP + 16), Some(3), Some(5), Some(SP + 24), Some(0x40_0026), Some(0), None];
    assert_eq!(found.into_iter().map(value).collect::<Vec<_>>(), expected);
}

#[test]
fn what_may_have_been_written_since_is_not_known() {
    // mov esi, [rbp-8]; call +0: anybody may have written there.
    let code = [0x8b, 0x75, 0xf8, 0x89, 0x75, 0xf0, 0xe8, 0, 0, 0, 0, 0x8b, 0x75, 0xf0];
    let found = arguments(&code, SP + 24, &[1, 2, 3]);
    assert_eq!(value(found[1]), Some(2), "read again after the call");
    // mov esi, [rbp-8]; mov dword [rbp-8], 9
    let code = [0x8b, 0x75, 0xf8, 0xc7, 0x45, 0xf8, 9, 0, 0, 0];
    assert_eq!(value(arguments(&code, SP + 24, &[1, 2, 9])[1]), None);
    // mov esi, [rbp-8]; mov dword [rbp-16], 9: next to it.
    let code = [0x8b, 0x75, 0xf8, 0xc7, 0x45, 0xf0, 9, 0, 0, 0];
    assert_eq!(value(arguments(&code, SP + 24, &[1, 9, 3])[1]), Some(3));
    // mov esi, [rbp-8]; mov dword [rax], 9: wherever that is.
    let code = [0x8b, 0x75, 0xf8, 0xc7, 0x00, 9, 0, 0, 0];
    assert_eq!(value(arguments(&code, SP + 24, &[1, 9, 3])[1]), None);
    // mov esi, [rsp]: what is passed there belongs to the function that is called.
    assert_eq!(value(arguments(&[0x8b, 0x34, 0x24], SP + 24, &[1, 2, 3])[1]), None);
}

#[test]
fn words_on_the_stack_are_those_that_were_put_there() {
    // push 7; mov edx, ebp
    let found = arguments(&[0x6a, 7, 0x89, 0xea], 12, &[99]);
    assert_eq!((value(found[6]), value(found[2])), (Some(7), Some(12)));
    assert_eq!(value(arguments(&[0x90], 12, &[99])[6]), None, "what is there now may have been changed");
}

#[test]
fn neighbours_in_a_ring_are_calculated() {
    // mov eax, ebp; add eax, 1; cdq; mov ecx, 4; idiv ecx: (rank + 1) % 4
    let code = [0x89, 0xe8, 0x83, 0xc0, 1, 0x99, 0xb9, 4, 0, 0, 0, 0xf7, 0xf9];
    let of = |rank| value(arguments(&code, rank, &[])[2]);
    assert_eq!([of(0), of(3), of(0xffff_fffe)], [Some(1), Some(0), Some(0xffff_ffff)]);
    // Division by nought, which ends a program: idiv of a constant 0.
    let code = [0x89, 0xe8, 0x99, 0x31, 0xc9, 0xf7, 0xf9];
    assert_eq!(value(arguments(&code, 3, &[])[2]), None);
}

#[test]
fn partners_in_trees_grids_and_cubes_are_calculated() {
    // mov edx, ebp; xor edx, 4; mov edi, ebp; not edi; mov r8d, ebp; neg r8d; mov r9d, ebp; or r9d, 8
    let code = [
        0x89, 0xea, 0x83, 0xf2, 4, 0x89, 0xef, 0xf7, 0xd7, 0x41, 0x89, 0xe8, 0x41, 0xf7, 0xd8, 0x41, 0x89, 0xe9, 0x41,
        0x83, 0xc9, 8,
    ];
    let found: Vec<_> = arguments(&code, 5, &[]).into_iter().map(value).collect();
    assert_eq!([found[2], found[0], found[4], found[5]], [Some(1), Some(0xffff_fffa), Some(0xffff_fffb), Some(13)]);
    // lea eax, [rbp-1]; mov ecx, eax; shr ecx, 31; add ecx, eax; sar ecx, 1: (rank - 1) / 2
    let code = [0x8d, 0x45, 0xff, 0x89, 0xc1, 0xc1, 0xe9, 31, 0x01, 0xc1, 0xd1, 0xf9];
    let parent = |rank| value(arguments(&code, rank, &[])[3]);
    assert_eq!([parent(0), parent(5), parent(6)], [Some(0), Some(2), Some(2)]);
    // movsxd rdx, ebp; imul rdx, rdx, 0x55555556; shr rdx, 32; mov eax, ebp; sar eax, 31; sub edx, eax; lea eax, [rdx+rdx*2];
    // mov esi, ebp; sub esi, eax: rank % 3
    let code = [
        0x48, 0x63, 0xd5, 0x48, 0x69, 0xd2, 0x56, 0x55, 0x55, 0x55, 0x48, 0xc1, 0xea, 32, 0x89, 0xe8, 0xc1, 0xf8, 31,
        0x29, 0xc2, 0x8d, 0x04, 0x52, 0x89, 0xee, 0x29, 0xc6,
    ];
    let column = |rank| value(arguments(&code, rank, &[])[1]);
    assert_eq!([column(7), column(0xdead_0000_0008), column(0xffff_ffff)], [Some(1), Some(2), Some(0xffff_ffff)]);
    // mov edi, ebp; shl edi, 33: by one bit. mov esi, ebp; sar esi, cl: by an unknown number.
    let found = arguments(&[0x89, 0xef, 0xc1, 0xe7, 33, 0x89, 0xee, 0xd3, 0xfe], 3, &[]);
    assert_eq!((value(found[0]), value(found[1])), (Some(6), None));
}

#[test]
fn what_was_given_in_a_register_that_is_not_kept_is_known_by_the_caller() {
    let mut execution = Execution::new();
    let given = execution.register(7).unwrap();
    // lea esi, [rdi+1]; mov ebx, edi
    for instruction in &mut Decoder::with_ip(64, &[0x8d, 0x77, 1, 0x89, 0xfb], 0x40_0000, DecoderOptions::NONE) {
        execution.step(&instruction);
    }
    let known = |value, low_half_only| KnownValue { value, low_half_only, source: Source::Passed };
    let kept = execution.register(3).unwrap();
    assert!(execution.symbols.solve(kept, 30));
    assert!(!execution.symbols.assume(given, known(31, false)), "that is not what is kept of it");
    assert!(execution.symbols.assume(given, known(30, true)));
    let found = execution.symbols.resolve(execution.register(6).unwrap(), &mut |_, _, _, _| None);
    assert_eq!(value(found), Some(31));
    let mut execution = Execution::new();
    let given = execution.register(7).unwrap();
    assert!(execution.symbols.assume(given, known(u64::MAX, true)));
    let found = execution.symbols.resolve(given, &mut |_, _, _, _| None);
    assert_eq!(found, Some(known(u64::MAX, true)), "and how it is");
}

#[test]
fn registers_that_contradict_the_code_make_all_of_it_unknown() {
    // mov ebp, 5
    assert!(arguments(&[0xbd, 5, 0, 0, 0], 6, &[]).is_empty());
    assert!(!arguments(&[0xbd, 5, 0, 0, 0], 5, &[]).is_empty());
}

#[test]
fn an_int_is_known_by_its_lower_half() {
    // mov edi, ebp; movsxd rsi, ebp; mov rbx, rbp
    let found = arguments(&[0x89, 0xef, 0x48, 0x63, 0xf5], 0xdead_ffff_ffff, &[]);
    assert_eq!((value(found[0]), value(found[1])), (Some(0xffff_ffff), Some(u64::MAX)));
}
