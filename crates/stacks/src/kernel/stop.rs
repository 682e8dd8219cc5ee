//! Registers and stack of a thread that is stopped for a moment by ptrace(2): where BPF is not permitted.
//!
//! A thread that waits in `epoll_wait` or a timed `recv` sees EINTR afterwards, as it does of a debugger. On a thread of its own:
//! when that ends, by whatever, the kernel lets go of all that it still holds.
#![expect(unsafe_code, reason = "ptrace(2) takes pointers")]

use std::{
    fs::{self, File},
    io, mem,
    os::unix::fs::FileExt as _,
    ptr::null_mut,
    thread,
    time::{Duration, Instant},
};

use crate::{
    copy::{Stack, SystemCall},
    registers::Registers,
};

/// How long a thread in an uninterruptible wait is waited for: it may not stop at all.
const PATIENCE: Duration = Duration::from_millis(20);
/// How long others are, which stop as soon as they get a processor.
const LONG_PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks whether it has.
const PAUSE: Duration = Duration::from_micros(50);
const PAGE: u64 = 4096;
/// Of the stack, bytes.
const STACK: u64 = 64 << 10;

/// One thread, as it was when it was stopped.
#[derive(Debug, Clone)]
pub(crate) struct Stopped {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) registers: Registers,
    pub(crate) system_call: Option<SystemCall>,
    pub(crate) stack: Stack,
    /// The base of FS.
    pub(crate) thread_pointer: u64,
}

/// Stops threads (pid, tid) one after the other, each as shortly as possible; why it was not possible is said for each.
pub(crate) fn look(threads: &[(u32, u32)], until: Instant) -> Vec<Result<Stopped, io::Error>> {
    let look_at = |&(pid, tid): &(u32, u32)| {
        if Instant::now() >= until { Err(io::ErrorKind::TimedOut.into()) } else { one(pid, tid) }
    };
    thread::scope(|scope| {
        let worker = thread::Builder::new().name("stop".to_owned());
        match worker.spawn_scoped(scope, || threads.iter().map(look_at).collect()) {
            Ok(worker) => worker.join().unwrap_or_default(),
            Err(_) => Vec::new(),
        }
    })
}

fn one(pid: u32, tid: u32) -> io::Result<Stopped> {
    let memory = File::open(format!("/proc/{pid}/mem"))?;
    let thread = libc::pid_t::try_from(tid).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: these requests take no pointers.
    unsafe {
        request(libc::PTRACE_SEIZE, thread, 0)?;
        request(libc::PTRACE_INTERRUPT, thread, 0)?;
    }
    let signal = wait(pid, thread)?;
    let registers = registers_of(thread);
    let stack = registers.as_ref().ok().map(|registers| copy(&memory, registers.rsp));
    // SAFETY: as above. Resumed with the signal that it was about to get, if it was one.
    let resumed = unsafe { request(libc::PTRACE_DETACH, thread, i64::from(signal)) };
    let raw = registers?;
    resumed?;
    let registers = Registers::new([
        raw.rax, raw.rdx, raw.rcx, raw.rbx, raw.rsi, raw.rdi, raw.rbp, raw.rsp, raw.r8, raw.r9, raw.r10, raw.r11,
        raw.r12, raw.r13, raw.r14, raw.r15, raw.rip,
    ]);
    let in_call = raw.orig_rax.cast_signed() >= 0;
    Ok(Stopped {
        pid,
        tid,
        registers,
        system_call: in_call.then(|| SystemCall::of(raw.orig_rax, &registers)),
        stack: stack.unwrap_or_default(),
        thread_pointer: raw.fs_base,
    })
}

/// Waits until the thread has stopped; the signal that it is to be resumed with.
fn wait(pid: u32, thread: libc::pid_t) -> io::Result<i32> {
    let began = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: the status is a live local.
        let found = unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL | libc::WNOHANG) };
        if found < 0 {
            return Err(io::Error::last_os_error());
        }
        if found == thread {
            if !libc::WIFSTOPPED(status) {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            let is_event = status >> 16 == libc::PTRACE_EVENT_STOP;
            return Ok(if is_event { 0 } else { libc::WSTOPSIG(status) });
        }
        let waited = began.elapsed();
        if waited >= LONG_PATIENCE || (waited >= PATIENCE && is_uninterruptible(pid, thread)) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        thread::sleep(PAUSE);
    }
}

/// Whether the kernel says so now (`D` in `/proc/PID/task/TID/stat`, behind the name in parentheses).
fn is_uninterruptible(pid: u32, thread: libc::pid_t) -> bool {
    let stat = fs::read(format!("/proc/{pid}/task/{thread}/stat")).unwrap_or_default();
    let state = stat.rsplit(|&byte| byte == b')').next().and_then(|rest| rest.get(1));
    state == Some(&b'D')
}

fn registers_of(thread: libc::pid_t) -> io::Result<libc::user_regs_struct> {
    // SAFETY: all-zero is a valid value.
    let mut registers: libc::user_regs_struct = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes a structure of that type into a live local.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETREGS, thread, null_mut::<libc::c_void>(), &raw mut registers) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(registers) }
}

fn copy(memory: &File, sp: u64) -> Stack {
    let start = sp & !(PAGE - 1);
    let mut bytes = Vec::new();
    let mut page = [0; 4096];
    while (bytes.len() as u64) < STACK {
        let Some(at) = start.checked_add(bytes.len() as u64) else { break };
        if memory.read_exact_at(&mut page, at).is_err() {
            break;
        }
        bytes.extend_from_slice(&page);
    }
    Stack::new(start, bytes)
}

/// # Safety
/// The request must take no pointers.
unsafe fn request(request: libc::c_uint, thread: libc::pid_t, data: i64) -> io::Result<()> {
    // SAFETY: by contract.
    let result = unsafe { libc::ptrace(request, thread, null_mut::<libc::c_void>(), data) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
