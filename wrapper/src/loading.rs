//! Programs that load MPI while they run: mpi4py, plug-ins.
//!
//! Whoever loads something calls `dlopen`, which is looked at here before it happens: what needs MPI finds this library's functions,
//! since those are in the program's own scope, which is searched first. They are shown before the first of those that need MPI is
//! bound, or never: else some calls of the process would be counted and others not. The call itself goes on to the next definition by
//! a jump: it matters to the dynamic linker who calls.

use core::{
    arch::naked_asm,
    ffi::{CStr, c_char, c_int, c_void},
    ptr,
    sync::atomic::{AtomicPtr, AtomicU8, Ordering},
};

use crate::{imports, local, message::SavedErrno, needed, past, visibility};

static NEXT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// The library's handle, once it has been found.
static MPI: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// How far it is with programs that load MPI later.
static STATE: AtomicU8 = AtomicU8::new(STARTED);
/// MPI is there from the start, or nobody has asked yet.
const STARTED: u8 = 0;
/// There is no MPI yet.
const WITHOUT: u8 = 1;
/// The library itself is being loaded, by its name.
const EXPECTED: u8 = 2;
/// The functions are shown.
const COVERED: u8 = 3;
/// MPI has come in a way that is not seen through: the process is not counted.
const UNCOVERED: u8 = 4;

/// To be called once, when this library has been loaded.
pub(crate) fn start() {
    STATE.store(if visibility::is_hidden() { WITHOUT } else { STARTED }, Ordering::Release);
}

mod exported {
    #![allow(unreachable_pub, reason = "it is reached by the linker")]

    use super::{c_char, c_int, c_void, look, naked_asm};

    /// `void *dlopen(const char *file, int mode)`
    ///
    /// # Safety
    /// As the C library's.
    #[unsafe(naked)]
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn dlopen(file: *const c_char, mode: c_int) -> *mut c_void {
        naked_asm!(
            ".cfi_startproc",
            "push rdi",
            ".cfi_adjust_cfa_offset 8",
            "push rsi",
            ".cfi_adjust_cfa_offset 8",
            "sub rsp, 8",
            ".cfi_adjust_cfa_offset 8",
            "call {look}",
            "add rsp, 8",
            ".cfi_adjust_cfa_offset -8",
            "pop rsi",
            ".cfi_adjust_cfa_offset -8",
            "pop rdi",
            ".cfi_adjust_cfa_offset -8",
            "jmp rax",
            ".cfi_endproc",
            look = sym look,
        )
    }
}

/// Where no dynamic linker has such a function.
extern "C" fn nothing(_file: *const c_char, _mode: c_int) -> *mut c_void {
    ptr::null_mut()
}

/// Something is about to be loaded. Gives the function that does it.
unsafe extern "C" fn look(file: *const c_char) -> *mut c_void {
    let state = STATE.load(Ordering::Acquire);
    if matches!(state, WITHOUT | EXPECTED) && !file.is_null() {
        let _errno = SavedErrno::save();
        if !local::begin_slow() {
            // SAFETY: by contract of `dlopen`.
            let state = prepare(state, unsafe { CStr::from_ptr(file) });
            if matches!(state, EXPECTED | UNCOVERED) {
                past::prepare();
            }
            STATE.store(state, Ordering::Release);
            local::end_slow();
        }
    }
    let next = next();
    if next.is_null() { nothing as *const () as *mut c_void } else { next }
}

/// What the state is when a file is loaded in another one.
fn prepare(state: u8, file: &CStr) -> u8 {
    let is_there = is_loaded();
    if is_there && state == WITHOUT {
        return UNCOVERED;
    }
    if !is_there {
        if needed::is_mpi(file.to_bytes()) {
            return EXPECTED;
        }
        // Which functions the library has must be known before anybody is bound to them: so it is loaded first, as the dynamic linker
        // would do it. A file that says where its libraries are may mean another one of that name.
        match needed::by(file) {
            Some(needed) if !needed.has_path && !open(needed.name.as_c_str(), libc::RTLD_LAZY).is_null() => {}
            _ => return WITHOUT,
        }
    }
    visibility::show();
    COVERED
}

/// Loads a library, which stays; null if that is not possible.
fn open(name: &CStr, mode: c_int) -> *mut c_void {
    let next = next();
    if next.is_null() {
        return next;
    }
    // SAFETY: the function has this type.
    unsafe {
        let open: unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void = core::mem::transmute(next);
        open(name.as_ptr(), mode)
    }
}

/// The next definition of `dlopen`. Others may call it before this library has been started.
fn next() -> *mut c_void {
    let mut next = NEXT.load(Ordering::Acquire);
    if next.is_null() {
        // SAFETY: a handle that stands for what comes after this library.
        next = unsafe { imports::dlsym(libc::RTLD_NEXT, c"dlopen") };
        NEXT.store(next, Ordering::Release);
    }
    next
}

/// Whether the program has loaded MPI.
fn is_loaded() -> bool {
    let mut found = false;
    // The callback gets the flag.
    imports::each_object(note, (&raw mut found).cast());
    found
}

unsafe extern "C" fn note(object: *mut libc::dl_phdr_info, _size: usize, found: *mut c_void) -> c_int {
    // SAFETY: by contract of `dl_iterate_phdr`, and of the caller.
    unsafe {
        let is_mpi = is_mpi_object(object);
        if is_mpi {
            *found.cast::<bool>() = true;
        }
        c_int::from(is_mpi)
    }
}

unsafe fn is_mpi_object(object: *mut libc::dl_phdr_info) -> bool {
    // SAFETY: by contract of `dl_iterate_phdr`.
    let name = unsafe { (*object).dlpi_name };
    // SAFETY: as above.
    !name.is_null() && needed::is_mpi(unsafe { CStr::from_ptr(name) }.to_bytes())
}

/// The definition of a name in the MPI library that the program has loaded while it ran.
pub(crate) fn in_loaded(name: &CStr) -> Option<*mut c_void> {
    if STATE.load(Ordering::Acquire) == STARTED {
        return None;
    }
    let mut handle = MPI.load(Ordering::Acquire);
    if handle.is_null() {
        // The callback gets the place of the handle.
        imports::each_object(take, (&raw mut handle).cast());
        MPI.store(handle, Ordering::Release);
    }
    if handle.is_null() {
        return None;
    }
    // SAFETY: a handle that is never given back.
    let found = unsafe { imports::dlsym(handle, name) };
    if found.is_null() { None } else { Some(found) }
}

/// Opens the MPI library once more: it is there, and stays as long as it is in use here.
unsafe extern "C" fn take(object: *mut libc::dl_phdr_info, _size: usize, handle: *mut c_void) -> c_int {
    // SAFETY: by contract of `dl_iterate_phdr`, and of the caller; the dynamic linker allows to be asked from in here.
    unsafe {
        if !is_mpi_object(object) {
            return 0;
        }
        let name = CStr::from_ptr((*object).dlpi_name);
        *handle.cast::<*mut c_void>() = open(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        1
    }
}
