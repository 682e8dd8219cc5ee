//! The library that is preloaded into MPI programs: it counts their MPI calls and keeps the counts in a mapped file.
//!
//! It is in somebody else's process. So it never allocates, locks, unwinds or panics, and makes system calls only when a thread or
//! a function is seen for the first time; whatever it cannot do it leaves undone, and the program runs on. There is no standard
//! library in it, and no path that could panic: such a path would call a function that no library has, and the linker refuses to
//! make the library then.
//!
//! A call comes in by `entry`, which passes it on to the next definition of the function, and tells `call` before and after.
#![cfg_attr(not(test), no_std)]
#![expect(unsafe_code, reason = "it stands between a program and its library: everything here is pointers")]
#![allow(clippy::missing_safety_doc, reason = "what is exported has the contract of the MPI function of that name")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "registers have no type"
)]
#![allow(clippy::similar_names, reason = "sent and send, sides and sizes are the terms of the field")]
#![allow(clippy::cast_lossless, reason = "widening casts are as clear here")]

mod calibrate;
mod call;
mod clock;
mod code;
mod ends;
mod entry;
mod environment;
mod file;
mod file_view;
mod guard;
mod header;
mod identity;
mod imports;
mod layers;
mod left;
mod loading;
mod local;
#[cfg(all(not(test), panic = "abort"))]
mod memory;
mod message;
mod needed;
mod next;
mod own_status;
mod past;
mod phases;
mod process;
mod recent;
mod semantics;
mod statistics;
mod system;
mod text;
mod thread;
mod trace;
mod unwind;
mod visibility;

#[cfg(all(not(test), panic = "abort"))]
mod panic {
    unsafe extern "C" {
        /// Nowhere defined, on purpose.
        fn mpiprobe_wrapper_would_panic() -> !;
    }

    #[panic_handler]
    fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
        // SAFETY: the library would not have been linked.
        unsafe { mpiprobe_wrapper_would_panic() }
    }
}
