//! System calls, made without the C library: so they need no library's symbol, leave `errno` as it is, and which of them are made, and
//! when, stands here and nowhere else.
//!
//! Programs may confine themselves (seccomp) at any time after they have started MPI: then a call that they did not reckon with is their
//! end. So what is made later than at the first call of MPI is what threads and memory need in any program, or nothing; where the program
//! asks for its own end, also its number.

use core::{
    arch::asm,
    ffi::{CStr, c_char},
    ptr,
};

/// What the kernel says, or the number of the error.
type Answer = Result<usize, i32>;

#[inline]
unsafe fn call(number: i64, arguments: [usize; 6]) -> Answer {
    let [first, second, third, fourth, fifth, sixth] = arguments;
    let answer: isize;
    // SAFETY: by contract of the caller; the kernel changes these two registers besides the answer's.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") first, in("rsi") second, in("rdx") third, in("r10") fourth, in("r8") fifth, in("r9") sixth,
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    if (-4095..0).contains(&answer) { Err(-answer as i32) } else { Ok(answer as usize) }
}

/// An open file; closed when it is dropped.
pub(crate) struct Descriptor(usize);

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: it is ours.
        let _ = unsafe { call(libc::SYS_close, [self.0, 0, 0, 0, 0, 0]) };
    }
}

pub(crate) fn open(path: &CStr, flags: i32, mode: u32) -> Result<Descriptor, i32> {
    let flags = (flags | libc::O_CLOEXEC) as usize;
    // SAFETY: a path that ends in NUL.
    unsafe { call(libc::SYS_open, [path.as_ptr() as usize, flags, mode as usize, 0, 0, 0]) }.map(Descriptor)
}

impl Descriptor {
    pub(crate) fn read(&self, to: &mut [u8]) -> Answer {
        // SAFETY: writes within the buffer's length.
        unsafe { call(libc::SYS_read, [self.0, to.as_mut_ptr() as usize, to.len(), 0, 0, 0]) }
    }

    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> Answer {
        // SAFETY: reads within the buffer's length.
        unsafe { call(libc::SYS_pwrite64, [self.0, bytes.as_ptr() as usize, bytes.len(), offset as usize, 0, 0]) }
    }

    pub(crate) fn set_length(&self, length: u64) -> Answer {
        // SAFETY: takes numbers.
        unsafe { call(libc::SYS_ftruncate, [self.0, length as usize, 0, 0, 0, 0]) }
    }

    /// Asks for room for a part of the file.
    pub(crate) fn allocate(&self, offset: u64, length: u64) -> Answer {
        // SAFETY: takes numbers.
        unsafe { call(libc::SYS_fallocate, [self.0, 0, offset as usize, length as usize, 0, 0]) }
    }

    pub(crate) fn status(&self) -> Result<libc::stat, i32> {
        let mut status = empty_status();
        // SAFETY: writes to a local of the kernel's form.
        unsafe { call(libc::SYS_fstat, [self.0, &raw mut status as usize, 0, 0, 0, 0]) }.map(|_| status)
    }

    /// Maps the file from its beginning on.
    pub(crate) fn map(&self, length: usize, protection: i32, flags: i32) -> Result<*mut u8, i32> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        unsafe { map_at(0, length, protection, flags, self.0) }
    }
}

/// New memory that is zero.
pub(crate) fn new_memory(length: usize) -> Result<*mut u8, i32> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    unsafe { map_at(0, length, libc::PROT_READ | libc::PROT_WRITE, flags, usize::MAX) }
}

unsafe fn map_at(address: usize, length: usize, protection: i32, flags: i32, file: usize) -> Result<*mut u8, i32> {
    // SAFETY: by contract of the caller.
    let at = unsafe { call(libc::SYS_mmap, [address, length, protection as usize, flags as usize, file, 0]) }?;
    Ok(at as *mut u8)
}

/// Puts new memory that is zero in the place of whatever is there.
///
/// # Safety
/// Whoever uses what is there must be content with that.
pub(crate) unsafe fn renew_memory(start: *mut u8, length: usize) -> Answer {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: by contract of the caller.
    unsafe { map_at(start as usize, length, libc::PROT_READ | libc::PROT_WRITE, flags, usize::MAX) }.map(|_| 0)
}

/// Has the kernel do what it would do if each page were written to, except for the signal if that is not possible. Pages keep their content.
///
/// # Safety
/// It must be mapped memory that is written to by nobody but this library.
pub(crate) unsafe fn populate(start: *mut u8, length: usize) -> Answer {
    // SAFETY: by contract of the caller.
    unsafe { call(libc::SYS_madvise, [start as usize, length, libc::MADV_POPULATE_WRITE as usize, 0, 0, 0]) }
}

/// # Safety
/// Nobody may use the memory any more.
pub(crate) unsafe fn unmap(start: *mut u8, length: usize) {
    // SAFETY: by contract of the caller.
    let _ = unsafe { call(libc::SYS_munmap, [start as usize, length, 0, 0, 0, 0]) };
}

/// # Safety
/// Whoever uses the pages must be able to.
pub(crate) unsafe fn protect(start: u64, length: u64, protection: i32) -> Answer {
    // SAFETY: by contract of the caller.
    unsafe { call(libc::SYS_mprotect, [start as usize, length as usize, protection as usize, 0, 0, 0]) }
}

/// What a path leads to; `follow`: through a link at its end.
pub(crate) fn status(path: &CStr, follow: bool) -> Result<libc::stat, i32> {
    let number = if follow { libc::SYS_stat } else { libc::SYS_lstat };
    let mut status = empty_status();
    // SAFETY: a path that ends in NUL; writes to a local of the kernel's form.
    unsafe { call(number, [path.as_ptr() as usize, &raw mut status as usize, 0, 0, 0, 0]) }.map(|_| status)
}

fn empty_status() -> libc::stat {
    // SAFETY: numbers only, of which zero is one.
    unsafe { core::mem::zeroed() }
}

pub(crate) fn make_directory(path: &CStr, mode: u32) -> Answer {
    // SAFETY: a path that ends in NUL.
    unsafe { call(libc::SYS_mkdir, [path.as_ptr() as usize, mode as usize, 0, 0, 0, 0]) }
}

/// Whether the user may do so (`W_OK` and the like).
pub(crate) fn access(path: &CStr, mode: i32) -> Answer {
    // SAFETY: a path that ends in NUL.
    unsafe { call(libc::SYS_access, [path.as_ptr() as usize, mode as usize, 0, 0, 0, 0]) }
}

pub(crate) fn remove(path: &CStr) {
    // SAFETY: a path that ends in NUL.
    let _ = unsafe { call(libc::SYS_unlink, [path.as_ptr() as usize, 0, 0, 0, 0, 0]) };
}

/// Where a link leads, without a NUL.
pub(crate) fn read_link(path: &CStr, to: &mut [u8]) -> Answer {
    // SAFETY: a path that ends in NUL; writes within the buffer's length.
    unsafe { call(libc::SYS_readlink, [path.as_ptr() as usize, to.as_mut_ptr() as usize, to.len(), 0, 0, 0]) }
}

/// The largest file that may be written.
pub(crate) fn largest_file() -> Result<u64, i32> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes to a local.
    unsafe { call(libc::SYS_getrlimit, [libc::RLIMIT_FSIZE as usize, &raw mut limit as usize, 0, 0, 0, 0]) }?;
    Ok(limit.rlim_cur)
}

/// The name of this node; the last byte stays as it is.
pub(crate) fn host_name(to: &mut [u8]) {
    // SAFETY: texts, of which zeros are some.
    let mut names = unsafe { core::mem::zeroed::<libc::utsname>() };
    // SAFETY: writes to a local.
    if unsafe { call(libc::SYS_uname, [&raw mut names as usize, 0, 0, 0, 0, 0]) }.is_ok() {
        let room = to.len().saturating_sub(1);
        for (to, from) in to.iter_mut().take(room).zip(names.nodename.iter().take_while(|byte| **byte != 0)) {
            *to = *from as u8;
        }
    }
}

/// A number that a call without arguments gives, which cannot fail.
fn number(of: i64) -> u32 {
    // SAFETY: takes no arguments.
    unsafe { call(of, [0; 6]) }.unwrap_or(0) as u32
}

pub(crate) fn process_id() -> u32 {
    number(libc::SYS_getpid)
}

pub(crate) fn parent_id() -> u32 {
    number(libc::SYS_getppid)
}

pub(crate) fn thread_id() -> u32 {
    number(libc::SYS_gettid)
}

pub(crate) fn user_id() -> u32 {
    number(libc::SYS_getuid)
}

/// Whether the program runs with another user's or group's rights.
pub(crate) fn has_others_rights() -> bool {
    number(libc::SYS_geteuid) != user_id() || number(libc::SYS_getegid) != number(libc::SYS_getgid)
}

pub(crate) fn let_others_run() {
    number(libc::SYS_sched_yield);
}

pub(crate) fn clock_ns(clock: libc::clockid_t, now: &mut libc::timespec) {
    // SAFETY: writes to a local of the caller's.
    let _ = unsafe { call(libc::SYS_clock_gettime, [clock as usize, ptr::from_mut(now) as usize, 0, 0, 0, 0]) };
}

/// What is done about a signal, in the kernel's form.
#[repr(C)]
pub(crate) struct Action {
    pub(crate) handler: usize,
    pub(crate) flags: u64,
    pub(crate) restorer: usize,
    pub(crate) mask: u64,
}

impl Action {
    pub(crate) const NONE: Self = Self { handler: libc::SIG_DFL, flags: 0, restorer: 0, mask: 0 };
}

/// Sets what is done about a signal, and tells what was.
///
/// # Safety
/// A handler must be one.
pub(crate) unsafe fn action(signal: i32, new: Option<&Action>, before: Option<&mut Action>) -> Answer {
    let new = new.map_or(0, |new| ptr::from_ref(new) as usize);
    let before = before.map_or(0, |before| ptr::from_mut(before) as usize);
    // SAFETY: by contract of the caller; the last argument is the size of a set of signals.
    unsafe { call(libc::SYS_rt_sigaction, [signal as usize, new, before, 8, 0, 0]) }
}

/// Sends this thread a signal that it has just been sent.
///
/// # Safety
/// The information must be the kernel's.
pub(crate) unsafe fn signal_again(signal: i32, information: *const libc::siginfo_t) {
    let (process, thread) = (process_id() as usize, thread_id() as usize);
    // SAFETY: by contract of the caller.
    let _ =
        unsafe { call(libc::SYS_rt_tgsigqueueinfo, [process, thread, signal as usize, information as usize, 0, 0]) };
}

/// To standard error.
pub(crate) fn print(text: &[u8]) {
    // SAFETY: reads within the buffer's length.
    let _ = unsafe { call(libc::SYS_write, [2, text.as_ptr() as usize, text.len(), 0, 0, 0]) };
}

/// Has another program replace this one; gives the number of the error.
///
/// # Safety
/// Pointers as the system call has them.
pub(crate) unsafe fn execute_at(
    directory: i32,
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    flags: i32,
) -> i32 {
    let arguments = [directory as usize, path as usize, arguments as usize, environment as usize, flags as usize, 0];
    // SAFETY: by contract of the caller.
    unsafe { call(libc::SYS_execveat, arguments) }.err().unwrap_or(0)
}

pub(crate) fn exit(status: i32) -> ! {
    loop {
        // SAFETY: takes a number.
        let _ = unsafe { call(libc::SYS_exit_group, [status as usize, 0, 0, 0, 0, 0]) };
    }
}

/// Reads memory of this process that may not be there: from several places into one. Gives how much there was.
pub(crate) fn read_memory(from: &[libc::iovec], to: &mut [u8]) -> Answer {
    let to = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let own = process_id() as usize;
    // SAFETY: writes within the buffer's length; what is read is checked by the kernel.
    unsafe { call(libc::SYS_process_vm_readv, [own, &raw const to as usize, 1, from.as_ptr() as usize, from.len(), 0]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_those_of_the_c_library() {
        assert_eq!(process_id(), std::process::id());
        let mut host = [0; 65];
        host_name(&mut host);
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        assert_eq!(CStr::from_bytes_until_nul(&host).unwrap().to_str().unwrap(), name.trim());
        assert_eq!(open(c"/nowhere/at/all", libc::O_RDONLY, 0).err(), Some(libc::ENOENT));
        let mut first = [0; 4];
        assert_eq!(open(c"/proc/self/exe", libc::O_RDONLY, 0).ok().unwrap().read(&mut first), Ok(4));
        assert_eq!(&first, b"\x7fELF");
    }

    #[test]
    fn memory_that_is_not_there_is_not_read() {
        let from = libc::iovec { iov_base: 8 as *mut _, iov_len: 8 };
        assert_eq!(read_memory(&[from], &mut [0; 8]), Err(libc::EFAULT));
    }
}
