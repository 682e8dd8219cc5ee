//! The entry points: every function of MPI, under both of its names.
//!
//! `PMPI_X` too, because that is what other tools and Fortran libraries call: each call of the library's C function passes here
//! exactly once, whatever the language and whoever stands before. Inside an open call, entries are inner calls.
//!
//! An entry point jumps to where [`ROUTES`] says: to the next definition itself if the function is not counted, else to one of the
//! trampolines below. They save the argument registers, ask [`crate::call::enter`] for the next definition, and jump to it if the call
//! is not to be counted; else they call it with a copy of the arguments on the stack, and tell [`crate::call::leave`]. Only their own frame is on the stack meanwhile, with unwind
//! information: exceptions, `longjmp`, cancellation and backtraces pass through. Who is left by these is told ([`crate::left`]).

use core::{
    arch::{global_asm, naked_asm},
    ffi::{CStr, c_void},
    sync::atomic::{AtomicPtr, Ordering},
};

use mpiprobe_common::{CALIBRATION_FUNCTION, Descriptor, thread::REGISTER_ARGUMENTS};

use crate::{
    call::{enter, leave},
    thread::Local,
};

/// What a trampoline saves, as it lies on the stack; above it the caller's frame pointer, the return address and the arguments that
/// are not in registers.
#[repr(C)]
pub(crate) struct Frame {
    /// What the library tells of a call of which the program wants to know nothing ([`crate::own_status`]).
    pub(crate) own_status: OwnStatus,
    /// When the call began, if it is counted: by that it is known again as long as nobody has written over it ([`crate::left`]).
    pub(crate) started_ns: u64,
    /// Of the thread that has made the call, if it is counted: a user-level thread may return from it in another one.
    pub(crate) local: *mut Local,
    /// Result in the register for floating-point numbers, while the call is accounted for.
    float: u64,
    pub(crate) result: u64,
    /// Of the registers, in the order of the arguments.
    pub(crate) arguments: [u64; 6],
    /// The caller's frame pointer.
    pub(crate) callers: u64,
    pub(crate) return_address: u64,
}

/// Room for a status, and whether it is in use.
#[repr(C)]
pub(crate) struct OwnStatus {
    /// As large as that of any implementation.
    pub(crate) words: [u64; 4],
    /// Position plus one of the argument in place of which the library is given the address of the above; 0: it is given all arguments
    /// as they are. The trampolines set it to that.
    pub(crate) position_plus_1: u64,
    /// What the program has passed there.
    pub(crate) given: u64,
}

impl Frame {
    /// Where the arguments are that are not in registers, one behind the other.
    #[inline]
    pub(crate) const unsafe fn on_stack(frame: *const Self) -> *const u64 {
        // SAFETY: by contract a frame on the stack; behind the return address are the caller's words.
        unsafe { (&raw const (*frame).return_address).add(1) }
    }

    /// Where the copies of those are, for the library, of a function with a fixed number of arguments.
    #[inline]
    pub(crate) const unsafe fn copies(frame: *mut Self, arguments: u8) -> *mut u64 {
        // SAFETY: by contract a frame on the stack, which lies right above the copies.
        unsafe { frame.cast::<u64>().sub(room_for_copies(arguments) / size_of::<u64>()) }
    }
}

unsafe extern "C" {
    #[link_name = "mpiprobe_backs"]
    static BACKS: [u64; 9];
}

/// Where the frame of an open call keeps the time at which that began.
pub(crate) const fn start(stack_pointer: u64) -> u64 {
    const FRAME: u64 = core::mem::offset_of!(Frame, return_address) as u64;
    stack_pointer.wrapping_sub(FRAME) + core::mem::offset_of!(Frame, started_ns) as u64
}

/// Of a call that is open: where its return address is that leads back to the trampoline, and what that is. The caller's return address is at
/// `stack_pointer`.
pub(crate) fn back(stack_pointer: u64, function: u32) -> (u64, u64) {
    /// From the caller's return address down to what is at the stack's end before arguments are copied.
    const FRAME: u64 = core::mem::offset_of!(Frame, return_address) as u64;
    let arguments = DESCRIPTORS.get(function as usize).map_or(0, |descriptor| descriptor.arguments);
    let (index, room) =
        if function == CONTROL_FUNCTION { (8, 272) } else { (on_stack(arguments), room_for_copies(arguments)) };
    // SAFETY: the assembly's table, which has so many words.
    let back = unsafe { &BACKS }.get(index).copied().unwrap_or(0);
    (stack_pointer.wrapping_sub(FRAME + room as u64 + 8), back)
}

/// Of a function with so many arguments: those that are not in registers.
const fn on_stack(arguments: u8) -> usize {
    (arguments as usize).saturating_sub(REGISTER_ARGUMENTS)
}

/// Bytes below the frame for the copies of those.
const fn room_for_copies(arguments: u8) -> usize {
    on_stack(arguments).div_ceil(2) * 16
}

// `through WORDS`: for functions with so many arguments on the stack, in units of two.
global_asm!(
    r#"
    .macro mpiprobe_save
        .cfi_startproc
        .cfi_personality 0x1b, mpiprobe_unwound
        push rbp
        .cfi_def_cfa_offset 16
        .cfi_offset rbp, -16
        mov rbp, rsp
        .cfi_def_cfa_register rbp
        sub rsp, 128
        mov [rbp - 48], rdi
        mov [rbp - 40], rsi
        mov [rbp - 32], rdx
        mov [rbp - 24], rcx
        mov [rbp - 16], r8
        mov [rbp - 8], r9
        mov qword ptr [rbp - 96], 0
    .endm

    .macro mpiprobe_enter
        mov rdi, [rip + mpiprobe_local@gottpoff]
        mov rdi, fs:[rdi]
        lea rsi, [rbp - 128]
        mov edx, r11d
        call {enter}
        mov r11, rax
        test dl, dl
    .endm

    .macro mpiprobe_restore
        mov rdi, [rbp - 48]
        mov rsi, [rbp - 40]
        mov rdx, [rbp - 32]
        mov rcx, [rbp - 24]
        mov r8, [rbp - 16]
        mov r9, [rbp - 8]
    .endm

    .macro mpiprobe_leave
        mov [rbp - 56], rax
        movsd [rbp - 64], xmm0
        mov rdi, [rip + mpiprobe_local@gottpoff]
        mov rdi, fs:[rdi]
        lea rsi, [rbp - 128]
        call {leave}
        mov rax, [rbp - 56]
        movsd xmm0, [rbp - 64]
        .cfi_remember_state
        leave
        .cfi_def_cfa rsp, 8
        ret
        .cfi_restore_state
    .endm

    # The call is none that is counted: on with it, as if nobody had been here.
    .macro mpiprobe_pass_on
        mpiprobe_restore
        leave
        .cfi_def_cfa rsp, 8
        jmp r11
        .cfi_endproc
    .endm

    .macro mpiprobe_restore_vectors
        movaps xmm0, [rsp + 128]
        movaps xmm1, [rsp + 144]
        movaps xmm2, [rsp + 160]
        movaps xmm3, [rsp + 176]
        movaps xmm4, [rsp + 192]
        movaps xmm5, [rsp + 208]
        movaps xmm6, [rsp + 224]
        movaps xmm7, [rsp + 240]
        mov rax, [rsp + 256]
    .endm

    .macro mpiprobe_copy word, words
        .if \word < \words
        mov rax, [rbp + 16 + 8 * \word]
        mov [rsp + 8 * \word], rax
        .endif
    .endm

    .macro mpiprobe_through words
        .section .text.mpiprobe_through_\words, "ax", @progbits
        .p2align 5
        .globl mpiprobe_through_\words
        .hidden mpiprobe_through_\words
        .type mpiprobe_through_\words, @function
    mpiprobe_through_\words:
        mpiprobe_save
        .if \words
        sub rsp, (\words + 1) / 2 * 16
        .endif
        # Before that is asked what is to be done, which may put another word in place of one of them.
        .irp word, 0, 1, 2, 3, 4, 5, 6, 7
        mpiprobe_copy \word, \words
        .endr
        mpiprobe_enter
        jz 2f
        mpiprobe_restore
        call r11
    mpiprobe_back_\words:
        mpiprobe_leave
    2:
        mpiprobe_pass_on
        .size mpiprobe_through_\words, . - mpiprobe_through_\words
    .endm

    mpiprobe_through 0
    mpiprobe_through 1
    mpiprobe_through 2
    mpiprobe_through 3
    mpiprobe_through 4
    mpiprobe_through 5
    mpiprobe_through 6
    mpiprobe_through 7

    # Any arguments, floating-point ones too: al says how many of those registers are in use. Reads beyond the arguments on the
    # stack, which is harmless: every stack ends in more than that.
        .section .text.mpiprobe_through_variadic, "ax", @progbits
        .p2align 5
        .globl mpiprobe_through_variadic
        .hidden mpiprobe_through_variadic
        .type mpiprobe_through_variadic, @function
    mpiprobe_through_variadic:
        mpiprobe_save
        sub rsp, 272
        mov [rsp + 256], rax
        movaps [rsp + 128], xmm0
        movaps [rsp + 144], xmm1
        movaps [rsp + 160], xmm2
        movaps [rsp + 176], xmm3
        movaps [rsp + 192], xmm4
        movaps [rsp + 208], xmm5
        movaps [rsp + 224], xmm6
        movaps [rsp + 240], xmm7
        mpiprobe_enter
        jz 2f
        .irp word, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        mpiprobe_copy \word, 16
        .endr
        mpiprobe_restore_vectors
        mpiprobe_restore
        call r11
    mpiprobe_back_variadic:
        mpiprobe_leave
    2:
        mpiprobe_restore_vectors
        mpiprobe_pass_on
        .size mpiprobe_through_variadic, . - mpiprobe_through_variadic

    # Where calls return to, by the words of their arguments on the stack; of any number, last.
        .section .data.rel.ro.mpiprobe_backs, "aw", @progbits
        .p2align 3
        .globl mpiprobe_backs
        .hidden mpiprobe_backs
        .type mpiprobe_backs, @object
    mpiprobe_backs:
        .irp words, 0, 1, 2, 3, 4, 5, 6, 7
        .quad mpiprobe_back_\words
        .endr
        .quad mpiprobe_back_variadic
        .size mpiprobe_backs, . - mpiprobe_backs
        .text
    "#,
    enter = sym enter,
    leave = sym leave,
);

macro_rules! entries {
    ($($index:literal $name:ident $through:ident;)*) => {
        /// Number of entry points.
        pub(crate) const ENTRIES: usize = [$($index),*].len();

        /// Where each entry point leads.
        static ROUTES: [AtomicPtr<c_void>; ENTRIES] =
            [$(AtomicPtr::new($through as *const () as *mut c_void)),*];

        /// The names, each with a final NUL.
        static NAMES: [&CStr; ENTRIES] = [$(
            // SAFETY: an identifier has no NUL inside.
            unsafe { CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) }
        ),*];

        $(
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name() {
                naked_asm!(
                    ".cfi_startproc",
                    // This register belongs to the linkage: no caller expects it to survive.
                    "mov r11d, {index}",
                    "jmp qword ptr [rip + {routes} + 8 * {index}]",
                    ".cfi_endproc",
                    index = const $index,
                    routes = sym ROUTES,
                )
            }
        )*
    };
}

unsafe extern "C" {
    fn mpiprobe_through_0();
    fn mpiprobe_through_1();
    fn mpiprobe_through_2();
    fn mpiprobe_through_3();
    fn mpiprobe_through_4();
    fn mpiprobe_through_5();
    fn mpiprobe_through_6();
    fn mpiprobe_through_7();
    fn mpiprobe_through_variadic();
}

mod generated {
    #![allow(non_snake_case, reason = "the names are those of the standard")]
    #![allow(clippy::wildcard_imports, reason = "a part of the module above")]
    #![allow(unreachable_pub, reason = "they are reached by the linker")]
    #![allow(clippy::unreadable_literal, reason = "sets of bits")]

    use super::*;

    include!(concat!(env!("OUT_DIR"), "/entries.rs"));

    pub(super) static ALL: (&[AtomicPtr<c_void>; ENTRIES], &[&CStr; ENTRIES]) = (&ROUTES, &NAMES);
}

pub(crate) use generated::{
    CONTROL_FUNCTION, DEFAULT_FUNCTIONS, DESCRIPTORS, ENTRIES, FUNCTIONS, FUNCTIONS_FINGERPRINT, SESSION_BEGINS,
    SESSION_ENDS,
};

/// An entry point, by its place in the generated list. The one after the last is the calibration's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry(usize);

impl Entry {
    #[inline]
    pub(crate) fn new(index: u32) -> Option<Self> {
        let index = index as usize;
        if index <= ENTRIES { Some(Self(index)) } else { None }
    }

    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0
    }

    /// Id of its function.
    #[inline]
    pub(crate) const fn function(self) -> u32 {
        if self.0 == ENTRIES {
            return CALIBRATION_FUNCTION;
        }
        (if self.0 < FUNCTIONS { self.0 } else { self.0 - FUNCTIONS }) as u32
    }

    /// Whether it is called `PMPI_X`.
    #[inline]
    pub(crate) const fn is_profiling_name(self) -> bool {
        self.0 >= FUNCTIONS
    }

    pub(crate) fn name(self) -> &'static CStr {
        generated::ALL.1.get(self.0).copied().unwrap_or(c"")
    }

    /// From now on calls go straight to `next`.
    pub(crate) fn bypass(self, next: *mut c_void) {
        if let Some(route) = generated::ALL.0.get(self.0) {
            route.store(next, Ordering::Release);
        }
    }
}
