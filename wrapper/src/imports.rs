//! What is asked of the C library and the dynamic linker, whichever they are: a program is to start with the library preloaded whatever it
//! was linked with, another C library than glibc, or an older one.
//!
//! So no symbol is needed for the library to be loaded. Those that it would like to have are weak, without a version, and stand in
//! one table, which the dynamic linker fills in; of those that it does not find, the place stays zero. A program in which the
//! necessary ones are missing runs as if the library were not there.

use core::{
    arch::global_asm,
    ffi::{CStr, c_char, c_int, c_void},
    mem::transmute,
    ptr,
};

macro_rules! imports {
    ($($variant:ident $name:literal)*) => {
        #[derive(Clone, Copy)]
        enum Import { $($variant),* }

        global_asm!(
            ".section .data.rel.ro.mpiprobe_imports, \"aw\", @progbits",
            ".p2align 3",
            ".globl mpiprobe_imports",
            ".hidden mpiprobe_imports",
            ".type mpiprobe_imports, @object",
            "mpiprobe_imports:",
            $(concat!(".weak ", $name), concat!(".quad ", $name),)*
            ".size mpiprobe_imports, . - mpiprobe_imports",
            ".text",
        );
    };
}

imports! {
    Dlsym "dlsym"
    Dladdr "dladdr"
    Dlerror "dlerror"
    DlIteratePhdr "dl_iterate_phdr"
    Errno "__errno_location"
    Environ "environ"
    ClockGettime "clock_gettime"
    Getauxval "getauxval"
    RegisterAtfork "__register_atfork"
    PthreadAtfork "pthread_atfork"
    CxaAtQuickExit "__cxa_at_quick_exit"
    AtQuickExit "at_quick_exit"
    OnExit "on_exit"
    PthreadKeyCreate "pthread_key_create"
    PthreadSetspecific "pthread_setspecific"
    MutexattrInit "pthread_mutexattr_init"
    MutexattrSettype "pthread_mutexattr_settype"
    MutexInit "pthread_mutex_init"
    MutexLock "pthread_mutex_lock"
    MutexUnlock "pthread_mutex_unlock"
    MutexDestroy "pthread_mutex_destroy"
}

unsafe extern "C" {
    #[link_name = "mpiprobe_imports"]
    static TABLE: [*mut c_void; 0];
}

/// The address of a symbol; null: there is none.
#[inline]
fn address(of: Import) -> *mut c_void {
    // SAFETY: a word of the table, which has one for each name.
    unsafe { (&raw const TABLE).cast::<*mut c_void>().add(of as usize).read_volatile() }
}

/// The function of a name, whose type is for the caller to know.
macro_rules! function {
    ($import:ident: $type:ty) => {{
        let address = address(Import::$import);
        // SAFETY: the function of that name has this type in all C libraries; null is none.
        unsafe { transmute::<*mut c_void, Option<$type>>(address) }
    }};
}

/// Whether there is everything without which nothing can be counted.
pub(crate) fn are_there() -> bool {
    [Import::Dlsym, Import::DlIteratePhdr, Import::Errno].iter().all(|&import| !address(import).is_null())
}

/// Null: there is no such symbol.
///
/// # Safety
/// The handle must be one of the dynamic linker's.
pub(crate) unsafe fn dlsym(handle: *mut c_void, name: &CStr) -> *mut c_void {
    let Some(find) = function!(Dlsym: unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void) else {
        return ptr::null_mut();
    };
    // SAFETY: by contract of the caller, and a name that ends in NUL.
    unsafe { find(handle, name.as_ptr()) }
}

/// A failed search is no error of the program's.
pub(crate) fn forget_error() {
    if let Some(take) = function!(Dlerror: unsafe extern "C" fn() -> *mut c_char) {
        // SAFETY: takes no arguments.
        unsafe { take() };
    }
}

/// The file that an address is in.
pub(crate) fn file_of(address: *const c_void) -> Option<&'static CStr> {
    name_at(address, |information| information.dli_fname)
}

/// The exported symbol that an address belongs to.
pub(crate) fn symbol_of(address: *const c_void) -> Option<&'static CStr> {
    name_at(address, |information| information.dli_sname)
}

fn name_at(address: *const c_void, name: impl Fn(&libc::Dl_info) -> *const c_char) -> Option<&'static CStr> {
    let find = function!(Dladdr: unsafe extern "C" fn(*const c_void, *mut libc::Dl_info) -> c_int)?;
    // SAFETY: pointers, of which null is one; the address is not looked at; the name lives as long as the file is loaded.
    unsafe {
        let mut information = core::mem::zeroed::<libc::Dl_info>();
        if find(address, &raw mut information) == 0 || name(&information).is_null() {
            return None;
        }
        Some(CStr::from_ptr(name(&information)))
    }
}

pub(crate) type EachObject = unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int;

/// Has a function called with each loaded object, until one call gives something else than 0.
pub(crate) fn each_object(function: EachObject, data: *mut c_void) {
    if let Some(iterate) = function!(DlIteratePhdr: unsafe extern "C" fn(EachObject, *mut c_void) -> c_int) {
        // SAFETY: the callback gets what it expects, by contract of the caller.
        unsafe { iterate(function, data) };
    }
}

/// Where the current thread's `errno` is; null: nowhere.
#[inline]
pub(crate) fn errno() -> *mut c_int {
    // SAFETY: takes no arguments.
    function!(Errno: unsafe extern "C" fn() -> *mut c_int).map_or(ptr::null_mut(), |place| unsafe { place() })
}

/// The environment: null, or an array of pointers to texts that ends in a null pointer.
pub(crate) fn environment() -> *const *const c_char {
    let variable = address(Import::Environ).cast::<*const *const c_char>();
    // SAFETY: the variable of that name has this type.
    if variable.is_null() { ptr::null() } else { unsafe { variable.read_volatile() } }
}

/// By the C library, which need not ask the kernel; tells whether it could be asked.
#[inline]
pub(crate) fn clock_gettime(clock: libc::clockid_t, now: &mut libc::timespec) -> bool {
    let Some(read) = function!(ClockGettime: unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> c_int)
    else {
        return false;
    };
    // SAFETY: writes to a local of the caller's.
    unsafe { read(clock, now) == 0 }
}

/// Whether the program has been started with rights that its user has not; `None`: nobody knows.
pub(crate) fn is_secure() -> Option<bool> {
    let get = function!(Getauxval: unsafe extern "C" fn(libc::c_ulong) -> libc::c_ulong)?;
    // SAFETY: takes a number.
    Some(unsafe { get(libc::AT_SECURE) } != 0)
}

/// Has a function called in forked children.
pub(crate) fn at_fork(child: unsafe extern "C" fn()) {
    type Handler = Option<unsafe extern "C" fn()>;
    type Register = unsafe extern "C" fn(Handler, Handler, Handler, *mut c_void) -> c_int;
    // glibc's own has a fourth argument: who goes away with the handlers. Nobody does.
    if let Some(register) = function!(RegisterAtfork: Register).or(function!(PthreadAtfork: Register)) {
        // SAFETY: a function without arguments, which lives as long as the library.
        unsafe { register(None, None, Some(child), ptr::null_mut()) };
    }
}

/// Has a function called when the program ends by `quick_exit`.
pub(crate) fn at_quick_exit(ending: unsafe extern "C" fn()) {
    type Register = unsafe extern "C" fn(unsafe extern "C" fn(), *mut c_void) -> c_int;
    // glibc's own has a second argument: what is given to the function. The other one takes only the first.
    if let Some(register) = function!(CxaAtQuickExit: Register).or(function!(AtQuickExit: Register)) {
        // SAFETY: a function that looks at no argument, which lives as long as the library.
        unsafe { register(ending, ptr::null_mut()) };
    }
}

/// Has a function called when the program ends by `exit` or by returning from `main`, with its exit status. Not in every C library.
pub(crate) fn at_exit(ending: unsafe extern "C" fn(c_int, *mut c_void)) {
    type Register = unsafe extern "C" fn(unsafe extern "C" fn(c_int, *mut c_void), *mut c_void) -> c_int;
    if let Some(register) = function!(OnExit: Register) {
        // SAFETY: a function that looks at no pointer, which lives as long as the library.
        unsafe { register(ending, ptr::null_mut()) };
    }
}

/// A key by which threads are told that they end, by a call with what they have set.
pub(crate) fn new_key(ended: unsafe extern "C" fn(*mut c_void)) -> Option<u32> {
    type Destructor = unsafe extern "C" fn(*mut c_void);
    let create = function!(PthreadKeyCreate: unsafe extern "C" fn(*mut u32, Destructor) -> c_int)?;
    let mut key = 0;
    // SAFETY: writes to a local; the function lives as long as the library, which is never unloaded.
    (unsafe { create(&raw mut key, ended) } == 0).then_some(key)
}

/// What the current thread is to be told about at its end.
pub(crate) fn set_of_key(key: u32, value: *const c_void) {
    if let Some(set) = function!(PthreadSetspecific: unsafe extern "C" fn(u32, *const c_void) -> c_int) {
        // SAFETY: a key of ours.
        unsafe { set(key, value) };
    }
}

/// Makes a lock that the thread that has it may take again, takes it for a call of `look`, and unmakes it. Tells whether that was possible.
///
/// # Safety
/// There must be room for a lock, which nobody else uses.
pub(crate) unsafe fn with_lock(lock: *mut c_void, look: impl FnOnce()) -> bool {
    type OfOne = unsafe extern "C" fn(*mut c_void) -> c_int;
    // More than any C library's has.
    let mut attributes = [0u64; 8];
    let attributes = attributes.as_mut_ptr().cast::<c_void>();
    let (Some(begin), Some(set), Some(make), Some(take), Some(give), Some(unmake)) = (
        function!(MutexattrInit: OfOne),
        function!(MutexattrSettype: unsafe extern "C" fn(*mut c_void, c_int) -> c_int),
        function!(MutexInit: unsafe extern "C" fn(*mut c_void, *const c_void) -> c_int),
        function!(MutexLock: OfOne),
        function!(MutexUnlock: OfOne),
        function!(MutexDestroy: OfOne),
    ) else {
        return false;
    };
    // SAFETY: by contract of the caller.
    unsafe {
        let is_taken = begin(attributes) == 0
            && set(attributes, libc::PTHREAD_MUTEX_RECURSIVE) == 0
            && make(lock, attributes) == 0
            && take(lock) == 0;
        if is_taken {
            look();
            give(lock);
            unmake(lock);
        }
        is_taken
    }
}
