//! Ends that the program brings about itself: it leaves by `_exit`, or has itself replaced by another program.
//!
//! Neither leaves room for anything to be done afterwards. Without a word of it, nobody could tell the status of the one from that of
//! whatever program comes after the other. So both are written down before they happen, with nothing that a signal handler may not do:
//! words of memory and the clock. An `execve` that fails returns, and takes its word back.
//!
//! Children that share the program's memory (`vfork`) do both of this all the time, and mean themselves: see [`file::is_own`]. Whoever
//! asks the kernel without the C library is not seen.

use core::{
    arch::naked_asm,
    ffi::{c_char, c_int, c_void},
    mem::transmute,
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use crate::{clock::monotonic_ns, file, header, imports, system};

/// Texts in an array that ends in a null pointer: arguments, or an environment.
type Texts = *const *const c_char;

/// Functions that end the program, or would.
#[derive(Clone, Copy)]
enum End {
    Exit,
    UpperExit,
    Execve,
    Execv,
    Execvp,
    Execvpe,
    Fexecve,
    Execveat,
}

impl End {
    const ALL: [Self; 8] = [
        Self::Exit,
        Self::UpperExit,
        Self::Execve,
        Self::Execv,
        Self::Execvp,
        Self::Execvpe,
        Self::Fexecve,
        Self::Execveat,
    ];
}

/// Their next definitions, in this order.
static NEXT: [AtomicPtr<c_void>; End::ALL.len()] = [const { AtomicPtr::new(ptr::null_mut()) }; End::ALL.len()];

/// To be called once, when this library has been loaded.
pub(crate) fn start() {
    for end in End::ALL {
        next(end);
    }
    imports::forget_error();
    imports::at_quick_exit(quick_exiting);
    imports::at_exit(exiting);
}

/// The next definition. Found when the library is loaded: later it may be a signal handler that ends the program.
fn next(end: End) -> *mut c_void {
    let name = match end {
        End::Exit => c"_exit",
        End::UpperExit => c"_Exit",
        End::Execve => c"execve",
        End::Execv => c"execv",
        End::Execvp => c"execvp",
        End::Execvpe => c"execvpe",
        End::Fexecve => c"fexecve",
        End::Execveat => c"execveat",
    };
    let Some(place) = NEXT.get(end as usize) else { return ptr::null_mut() };
    let mut next = place.load(Ordering::Acquire);
    if next.is_null() {
        // SAFETY: a handle that stands for what comes after this library.
        next = unsafe { imports::dlsym(libc::RTLD_NEXT, name) };
        place.store(next, Ordering::Release);
    }
    next
}

/// The next definition of a function, whose type is for the caller to know.
macro_rules! next {
    ($end:ident: $type:ty) => {
        // SAFETY: the function of that name has this type in all C libraries; null is none.
        unsafe { transmute::<*mut c_void, Option<$type>>(next(End::$end)) }
    };
}

/// The program leaves at once; `status`: with which status, if that is known.
fn note_exit(status: Option<c_int>) {
    if file::is_own() {
        if let Some(status) = status {
            header::note_exit_status(status);
        }
        header::note_exit();
    }
}

/// The program ends in the ordinary way. Called last of all, because it was registered first: what is called before may end it in another way.
/// Who looks at the tables only after a short program has ended is told the status by nobody else.
unsafe extern "C" fn exiting(status: c_int, _: *mut c_void) {
    if file::is_own() {
        header::note_exit_status(status);
    }
}

/// What was registered with `atexit` is not called then, what was so with `at_quick_exit` is; this last, because it was so first.
unsafe extern "C" fn quick_exiting() {
    note_exit(None);
}

fn leave(end: End, status: c_int) -> ! {
    note_exit(Some(status));
    let next = match end {
        End::Exit => next!(Exit: unsafe extern "C" fn(c_int)),
        _ => next!(UpperExit: unsafe extern "C" fn(c_int)),
    };
    if let Some(next) = next {
        // SAFETY: takes a number, and never returns.
        unsafe { next(status) };
    }
    system::exit(status)
}

/// The program is about to be replaced: notes that, and that it has not been if `execute` returns.
fn replace(execute: impl FnOnce() -> c_int) -> c_int {
    let Some(noted) = header::execed().filter(|_| file::is_own()) else { return execute() };
    let now = monotonic_ns();
    noted.store(now, Ordering::Release);
    let answer = execute();
    // Another thread may be about to do the same.
    let _ = noted.compare_exchange(now, 0, Ordering::AcqRel, Ordering::Relaxed);
    answer
}

/// The answer of a function that has failed.
fn failed(error: i32) -> c_int {
    let place = imports::errno();
    if !place.is_null() {
        // SAFETY: the thread's own variable.
        unsafe { *place = error };
    }
    -1
}

unsafe fn execve(path: *const c_char, arguments: Texts, environment: Texts) -> c_int {
    replace(|| {
        let next = next!(Execve: unsafe extern "C" fn(*const c_char, Texts, Texts) -> c_int);
        // SAFETY: by contract of `execve`.
        unsafe {
            match next {
                Some(next) => next(path, arguments, environment),
                None => failed(system::execute_at(libc::AT_FDCWD, path, arguments, environment, 0)),
            }
        }
    })
}

unsafe extern "C" fn execv(path: *const c_char, arguments: Texts) -> c_int {
    replace(|| {
        let next = next!(Execv: unsafe extern "C" fn(*const c_char, Texts) -> c_int);
        // SAFETY: by contract of `execv`.
        unsafe {
            match next {
                Some(next) => next(path, arguments),
                None => failed(system::execute_at(libc::AT_FDCWD, path, arguments, imports::environment(), 0)),
            }
        }
    })
}

unsafe extern "C" fn execvp(file: *const c_char, arguments: Texts) -> c_int {
    replace(|| {
        let next = next!(Execvp: unsafe extern "C" fn(*const c_char, Texts) -> c_int);
        // SAFETY: by contract of `execvp`.
        next.map_or_else(|| failed(libc::ENOSYS), |next| unsafe { next(file, arguments) })
    })
}

unsafe fn execvpe(file: *const c_char, arguments: Texts, environment: Texts) -> c_int {
    replace(|| {
        let next = next!(Execvpe: unsafe extern "C" fn(*const c_char, Texts, Texts) -> c_int);
        // SAFETY: by contract of `execvpe`.
        next.map_or_else(|| failed(libc::ENOSYS), |next| unsafe { next(file, arguments, environment) })
    })
}

unsafe fn fexecve(file: c_int, arguments: Texts, environment: Texts) -> c_int {
    replace(|| {
        let next = next!(Fexecve: unsafe extern "C" fn(c_int, Texts, Texts) -> c_int);
        // SAFETY: by contract of `fexecve`.
        unsafe {
            match next {
                Some(next) => next(file, arguments, environment),
                None => failed(system::execute_at(file, c"".as_ptr(), arguments, environment, libc::AT_EMPTY_PATH)),
            }
        }
    })
}

unsafe fn execveat(directory: c_int, path: *const c_char, arguments: Texts, environment: Texts, flags: c_int) -> c_int {
    replace(|| {
        let next = next!(Execveat: unsafe extern "C" fn(c_int, *const c_char, Texts, Texts, c_int) -> c_int);
        // SAFETY: by contract of `execveat`.
        unsafe {
            match next {
                Some(next) => next(directory, path, arguments, environment, flags),
                None => failed(system::execute_at(directory, path, arguments, environment, flags)),
            }
        }
    })
}

/// With the environment behind the arguments' end.
unsafe extern "C" fn execute_with_environment(path: *const c_char, arguments: Texts) -> c_int {
    // SAFETY: by contract of `execle`: the arguments end in a null pointer, and the environment is what comes next.
    unsafe {
        let mut end = arguments;
        while !(*end).is_null() {
            end = end.add(1);
        }
        execve(path, arguments, end.add(1).read().cast())
    }
}

mod exported {
    #![allow(unreachable_pub, reason = "they are reached by the linker")]

    use super::{End, Texts, c_char, c_int, execute_with_environment, leave, naked_asm};

    /// `void _exit(int status)`
    ///
    /// # Safety
    /// As the C library's.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn _exit(status: c_int) -> ! {
        leave(End::Exit, status)
    }

    /// `void _Exit(int status)`
    ///
    /// # Safety
    /// As the C library's.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
        leave(End::UpperExit, status)
    }

    /// `int execve(const char *path, char *const arguments[], char *const environment[])`
    ///
    /// # Safety
    /// As the C library's.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn execve(path: *const c_char, arguments: Texts, environment: Texts) -> c_int {
        // SAFETY: by contract of the caller.
        unsafe { super::execve(path, arguments, environment) }
    }

    /// `int execv(const char *path, char *const arguments[])`
    ///
    /// # Safety
    /// As the C library's.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn execv(path: *const c_char, arguments: Texts) -> c_int {
        // SAFETY: by contract of the caller.
        unsafe { super::execv(path, arguments) }
    }

    /// `int execvp(const char *file, char *const arguments[])`
    ///
    /// # Safety
    /// As the C library's.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn execvp(file: *const c_char, arguments: Texts) -> c_int {
        // SAFETY: by contract of the caller.
        unsafe { super::execvp(file, arguments) }
    }

    /// `int execvpe(const char *file, char *const arguments[], char *const environment[])`
    ///
    /// # Safety
    /// As the C library's.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn execvpe(file: *const c_char, arguments: Texts, environment: Texts) -> c_int {
        // SAFETY: by contract of the caller.
        unsafe { super::execvpe(file, arguments, environment) }
    }

    /// `int fexecve(int file, char *const arguments[], char *const environment[])`
    ///
    /// # Safety
    /// As the C library's.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn fexecve(file: c_int, arguments: Texts, environment: Texts) -> c_int {
        // SAFETY: by contract of the caller.
        unsafe { super::fexecve(file, arguments, environment) }
    }

    /// `int execveat(int directory, const char *path, char *const arguments[], char *const environment[], int flags)`
    ///
    /// # Safety
    /// As the C library's.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn execveat(
        directory: c_int,
        path: *const c_char,
        arguments: Texts,
        environment: Texts,
        flags: c_int,
    ) -> c_int {
        // SAFETY: by contract of the caller.
        unsafe { super::execveat(directory, path, arguments, environment, flags) }
    }

    /// Functions that have the arguments one by one. Those in registers are put before those on the stack, which makes an array of them
    /// all; the return address, which is between them, goes to its other side.
    macro_rules! lists {
        ($($name:ident $with_array:path;)*) => {$(
            /// `int execl(const char *path, const char *argument, ...)`, and its kind.
            ///
            /// # Safety
            /// As the C library's.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(path: *const c_char, argument: *const c_char) -> c_int {
                naked_asm!(
                    ".cfi_startproc",
                    "pop rax",
                    ".cfi_adjust_cfa_offset -8",
                    ".cfi_register 16, 0",
                    "push r9",
                    ".cfi_adjust_cfa_offset 8",
                    "push r8",
                    ".cfi_adjust_cfa_offset 8",
                    "push rcx",
                    ".cfi_adjust_cfa_offset 8",
                    "push rdx",
                    ".cfi_adjust_cfa_offset 8",
                    "push rsi",
                    ".cfi_adjust_cfa_offset 8",
                    "mov rsi, rsp",
                    "push rax",
                    ".cfi_adjust_cfa_offset 8",
                    ".cfi_offset 16, -48",
                    "call {with_array}",
                    "pop rcx",
                    ".cfi_adjust_cfa_offset -8",
                    ".cfi_register 16, 2",
                    "add rsp, 40",
                    ".cfi_adjust_cfa_offset -40",
                    "push rcx",
                    ".cfi_adjust_cfa_offset 8",
                    ".cfi_offset 16, -8",
                    "ret",
                    ".cfi_endproc",
                    with_array = sym $with_array,
                )
            }
        )*};
    }

    lists! {
        execl super::execv;
        execlp super::execvp;
        execle execute_with_environment;
    }
}
