//! The functions that compilers call on their own for copies and comparisons: the library's own ones, so that no C library need have them.

use core::arch::global_asm;

global_asm!(
    r#"
    .macro mpiprobe_own name
        .globl \name
        .hidden \name
        .type \name, @function
        .p2align 4
    \name:
        .cfi_startproc
    .endm
    .macro mpiprobe_end name
        .cfi_endproc
        .size \name, . - \name
    .endm

        .section .text.mpiprobe_memory, "ax", @progbits

    # Sixteen bytes at a time, the last of them overlapping those before.
    mpiprobe_own memcpy
        mov rax, rdi
        cmp rdx, 16
        jb 3f
        cmp rdx, 1024
        ja 2f
        movups xmm1, [rsi + rdx - 16]
        lea r8, [rdi + rdx - 16]
    6:
        movups xmm0, [rsi]
        movups [rdi], xmm0
        add rsi, 16
        add rdi, 16
        cmp rdi, r8
        jb 6b
        movups [r8], xmm1
        ret
    2:
        mov rcx, rdx
        rep movsb
        ret
    3:
        test rdx, rdx
        jz 5f
    4:
        movzx ecx, byte ptr [rsi]
        mov [rdi], cl
        inc rsi
        inc rdi
        dec rdx
        jnz 4b
    5:
        ret
    mpiprobe_end memcpy

    mpiprobe_own memmove
        mov rcx, rdi
        sub rcx, rsi
        cmp rcx, rdx
        jae memcpy
        mov rax, rdi
        test rdx, rdx
        jz 7f
    6:
        movzx ecx, byte ptr [rsi + rdx - 1]
        mov [rdi + rdx - 1], cl
        dec rdx
        jnz 6b
    7:
        ret
    mpiprobe_end memmove

    mpiprobe_own memset
        mov r8, rdi
        movzx eax, sil
        mov rcx, rdx
        rep stosb
        mov rax, r8
        ret
    mpiprobe_end memset

    mpiprobe_own bcmp
        jmp memcmp
    mpiprobe_end bcmp

    mpiprobe_own memcmp
        xor eax, eax
        test rdx, rdx
        jz 9f
    8:
        movzx eax, byte ptr [rdi]
        movzx ecx, byte ptr [rsi]
        sub eax, ecx
        jnz 9f
        inc rdi
        inc rsi
        dec rdx
        jnz 8b
    9:
        ret
    mpiprobe_end memcmp

    mpiprobe_own strlen
        xor eax, eax
        cmp byte ptr [rdi], 0
        jz 3f
    2:
        inc rax
        cmp byte ptr [rdi + rax], 0
        jnz 2b
    3:
        ret
    mpiprobe_end strlen
        .text
    "#
);
