/* One trampoline per interposed symbol. It passes any argument list on unchanged: all argument registers are saved and
 * restored, and a fixed piece of the caller's stack is copied in front of the real function. MPI's longest argument list
 * (MPI_Dist_graph_create_adjacent, MPI_Rget_accumulate: 13 and ierror, Fortran's hidden string lengths included) needs
 * ten words there; the copy reads beyond them, which is harmless as every stack ends in more than that.
 *
 * The return address stays in place and the frame is an ordinary one with unwind information, so exceptions and
 * backtraces pass through. */

#define STACK_WORDS 32
/* Below rbp: 6 integer argument registers, rax (number of vector arguments), r10, 8 xmm registers, and, at -200, what truth.c marks
 * the frame of an open call with. */
#define SAVED 208
#define FRAME (SAVED + STACK_WORDS * 8)

        .text
        .p2align 4
        .type truth_common, @function
truth_common:                              /* r11d: index of the symbol */
        .cfi_startproc
        .cfi_personality 0x1b, truth_unwound
        push    %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        mov     %rsp, %rbp
        .cfi_def_cfa_register %rbp
        sub     $FRAME, %rsp
        mov     %rdi, -8(%rbp)
        mov     %rsi, -16(%rbp)
        mov     %rdx, -24(%rbp)
        mov     %rcx, -32(%rbp)
        mov     %r8, -40(%rbp)
        mov     %r9, -48(%rbp)
        mov     %rax, -56(%rbp)
        mov     %r10, -64(%rbp)
        movaps  %xmm0, -80(%rbp)
        movaps  %xmm1, -96(%rbp)
        movaps  %xmm2, -112(%rbp)
        movaps  %xmm3, -128(%rbp)
        movaps  %xmm4, -144(%rbp)
        movaps  %xmm5, -160(%rbp)
        movaps  %xmm6, -176(%rbp)
        movaps  %xmm7, -192(%rbp)

        mov     %r11d, %edi
        mov     %rbp, %rsi
        call    truth_enter
        mov     %rax, %r11

        lea     16(%rbp), %rsi             /* above the saved rbp and the return address */
        mov     %rsp, %rdi
        mov     $STACK_WORDS, %ecx
        cld
        rep movsq

        mov     -8(%rbp), %rdi
        mov     -16(%rbp), %rsi
        mov     -24(%rbp), %rdx
        mov     -32(%rbp), %rcx
        mov     -40(%rbp), %r8
        mov     -48(%rbp), %r9
        mov     -56(%rbp), %rax
        mov     -64(%rbp), %r10
        movaps  -80(%rbp), %xmm0
        movaps  -96(%rbp), %xmm1
        movaps  -112(%rbp), %xmm2
        movaps  -128(%rbp), %xmm3
        movaps  -144(%rbp), %xmm4
        movaps  -160(%rbp), %xmm5
        movaps  -176(%rbp), %xmm6
        movaps  -192(%rbp), %xmm7
        call    *%r11

        mov     %rax, -8(%rbp)             /* results: rax, rdx, xmm0, xmm1 */
        mov     %rdx, -16(%rbp)
        movaps  %xmm0, -80(%rbp)
        movaps  %xmm1, -96(%rbp)
        mov     %rbp, %rdi
        call    truth_leave
        mov     -8(%rbp), %rax
        mov     -16(%rbp), %rdx
        movaps  -80(%rbp), %xmm0
        movaps  -96(%rbp), %xmm1
        leave
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size truth_common, . - truth_common

        .section .rodata
        .p2align 3
        .globl truth_frame
        .hidden truth_frame
truth_frame:
        .quad   FRAME
        .text

        .macro INTERPOSE symbol, index
        .p2align 4
        .globl \symbol
        .type \symbol, @function
\symbol:
        .cfi_startproc
        mov     $\index, %r11d             /* r11 belongs to the linkage, no caller expects it to survive */
        jmp     truth_common
        .cfi_endproc
        .size \symbol, . - \symbol
        .endm

#include "symbols.inc"

        .section .note.GNU-stack, "", @progbits
