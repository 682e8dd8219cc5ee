//! `perf_event_open(2)`, and uprobes by it: the oldest of the three ways, and the slowest to detach.
#![expect(unsafe_code, reason = "perf_event_open(2) takes a pointer to its attributes")]

use std::{
    ffi::CStr,
    fs, io, mem,
    os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
};

use aya_obj::generated::perf_event_attr;

use super::breakpoints::Breakpoints;

/// Where the kernel tells the number of its uprobe event source, and which bit of `config` asks for a return probe.
const EVENT_SOURCE: &str = "/sys/bus/event_source/devices/uprobe";
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_long = 1 << 3;
/// `PERF_EVENT_IOC_DISABLE`.
const DISABLE: libc::Ioctl = 0x2401;

/// Opens the event of one probe at a file offset, in one process or in all.
pub(crate) fn open_uprobe(path: &CStr, offset: u64, returns: bool, pid: Option<u32>) -> io::Result<Breakpoints> {
    let kind = read_number(&format!("{EVENT_SOURCE}/type"))?;
    // SAFETY: all-zero is a valid value.
    let mut attributes: perf_event_attr = unsafe { mem::zeroed() };
    attributes.type_ = kind;
    if returns {
        attributes.config = 1 << read_return_bit()?;
    }
    attributes.__bindgen_anon_3.config1 = path.as_ptr() as u64;
    attributes.__bindgen_anon_4.config2 = offset;
    let (pid, cpu) = match pid {
        Some(pid) => (i32::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?, -1),
        None => (-1, 0),
    };
    // SAFETY: the path in the attributes outlives the call.
    Breakpoints::by(|| unsafe { open(attributes, pid, cpu) })
}

/// Opens an event of a process or of all (-1), on one CPU or on any (-1).
///
/// # Safety
/// What the attributes point to must be valid.
pub(super) unsafe fn open(mut attributes: perf_event_attr, pid: i32, cpu: i32) -> io::Result<OwnedFd> {
    attributes.size = u32::try_from(size_of::<perf_event_attr>()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the attributes outlive the call; the rest is by contract.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            libc::c_long::from(pid),
            libc::c_long::from(cpu),
            -1 as libc::c_long,
            CLOSE_ON_EXEC,
        )
    };
    let fd = i32::try_from(fd).map_err(|_| io::ErrorKind::InvalidData)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this file descriptor for us; nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Stops an event at once; the breakpoint itself goes when the event is closed, which takes 0.1 s.
pub(crate) fn disable(event: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: this request takes no pointer.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), DISABLE, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn read_number(path: &str) -> io::Result<u32> {
    fs::read_to_string(path)?.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The file says, for example, `config:0`.
fn read_return_bit() -> io::Result<u32> {
    let text = fs::read_to_string(format!("{EVENT_SOURCE}/format/retprobe"))?;
    let bit: u32 =
        text.trim().strip_prefix("config:").and_then(|bit| bit.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    if bit < 64 { Ok(bit) } else { Err(io::ErrorKind::InvalidData.into()) }
}
