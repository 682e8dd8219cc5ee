//! Registers and stack of a thread that is on a CPU: one sample of a perf event of its own, taken by a timer while it runs.
#![expect(unsafe_code, reason = "perf_event_open(2) takes a pointer, and its ring is memory that the kernel writes")]

use std::{
    io, mem,
    os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd},
    ptr::null_mut,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use aya_obj::generated::perf_event_attr;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    mm::{MapFlags, ProtFlags, mmap, munmap},
};

use crate::apart::{is_apart, open_event};

use super::sample_record::{REGISTERS, Sample, sample};

/// `PERF_TYPE_SOFTWARE`, `PERF_COUNT_SW_TASK_CLOCK` (include/uapi/linux/perf_event.h).
const SOFTWARE: u32 = 1;
const TASK_CLOCK: u64 = 1;
/// `PERF_SAMPLE_TID`, `PERF_SAMPLE_REGS_USER`, `PERF_SAMPLE_STACK_USER`.
const SAMPLE: u64 = 1 << 1 | 1 << 12 | 1 << 13;
/// `PERF_EVENT_IOC_REFRESH`: so many samples, and then it is off.
pub(super) const REFRESH: libc::Ioctl = 0x2402;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_long = 1 << 3;

/// Of running, ns, until the sample is taken.
const PERIOD_NS: u64 = 100_000;
/// Of stack, bytes: a record of the kernel's has less than 64 KiB.
const STACK_BYTES: u32 = 48 << 10;
const PAGE: usize = 4096;
/// Room for one sample and what is written beside it.
const RING: usize = 16 * PAGE;
/// Events that are open at once.
const AT_ONCE: usize = 64;
/// In the page before the ring, `struct perf_event_mmap_page`.
const HEAD: usize = 1024;

/// Samples of those threads that run within the time; in no order.
pub(crate) fn take(threads: &[u32], patience: Duration) -> io::Result<Vec<Sample>> {
    let mut samples = Vec::new();
    for some in threads.chunks(AT_ONCE) {
        let mut events = Vec::new();
        let mut refused = None;
        for tid in some {
            match Event::open(*tid) {
                Ok(event) => events.push(event),
                // It has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => refused = Some(error),
            }
        }
        if events.is_empty()
            && let Some(error) = refused
        {
            return Err(error);
        }
        wait(&mut events, &mut samples, Instant::now() + patience)?;
    }
    Ok(samples)
}

fn wait(events: &mut Vec<Event>, samples: &mut Vec<Sample>, until: Instant) -> io::Result<()> {
    while !events.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let ready: Vec<bool> = {
            let mut polled: Vec<_> =
                events.iter().map(|event| PollFd::new(&event.event, PollFlags::IN | PollFlags::HUP)).collect();
            let timeout = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
            match poll(&mut polled, Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            polled.iter().map(|polled| !polled.revents().is_empty()).collect()
        };
        let mut ready = ready.into_iter();
        events.retain(|event| {
            let is_ready = ready.next().unwrap_or(false);
            if is_ready {
                samples.extend(event.read());
            }
            !is_ready
        });
    }
    Ok(())
}

#[derive(Debug)]
struct Event {
    event: OwnedFd,
    /// The page of the kernel's, and behind it the ring.
    memory: *mut u8,
}

/// Whether a thread may be sampled. Nothing is: the event is never switched on.
pub(crate) fn is_permitted(tid: u32) -> io::Result<()> {
    Event::mapped(tid).map(drop)
}

impl Event {
    /// Of one thread, for one sample.
    fn open(tid: u32) -> io::Result<Self> {
        let event = Self::mapped(tid)?;
        // SAFETY: takes a number.
        if unsafe { libc::ioctl(event.event.as_raw_fd(), REFRESH, 1) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(event)
    }

    fn mapped(tid: u32) -> io::Result<Self> {
        let event = if is_apart() { open_event(tid)? } else { switched_off(tid)? };
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: with a null hint the kernel chooses unused addresses.
        let memory = unsafe { mmap(null_mut(), PAGE + RING, access, MapFlags::SHARED, event.as_fd(), 0)? };
        Ok(Self { event, memory: memory.cast() })
    }

    /// The sample, if there is one.
    fn read(&self) -> Option<Sample> {
        // SAFETY: an aligned word of the kernel's page, which is mapped as long as the event is.
        let head = unsafe { AtomicU64::from_ptr(self.memory.add(HEAD).cast()) }.load(Ordering::Acquire);
        let length = usize::try_from(head).unwrap_or(RING).min(RING);
        // SAFETY: within the ring, which was empty at first and is not written any more behind what has been written.
        let bytes = unsafe { std::slice::from_raw_parts(self.memory.add(PAGE), length) }.to_vec();
        sample(&bytes)
    }
}

/// An event of one thread, which takes no sample before it is told to.
pub(crate) fn switched_off(tid: u32) -> io::Result<OwnedFd> {
    // SAFETY: all-zero is a valid value.
    let mut attributes: perf_event_attr = unsafe { mem::zeroed() };
    attributes.type_ = SOFTWARE;
    attributes.config = TASK_CLOCK;
    attributes.__bindgen_anon_1.sample_period = PERIOD_NS;
    attributes.sample_type = SAMPLE;
    attributes.sample_regs_user = REGISTERS;
    attributes.sample_stack_user = STACK_BYTES;
    attributes.__bindgen_anon_2.wakeup_events = 1;
    attributes.set_disabled(1);
    event_of(attributes, tid)
}

/// An event of a thread, wherever that runs.
pub(super) fn event_of(mut attributes: perf_event_attr, tid: u32) -> io::Result<OwnedFd> {
    attributes.size = u32::try_from(size_of::<perf_event_attr>()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the attributes outlive the call.
    let event = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            libc::c_long::from(tid),
            -1 as libc::c_long,
            -1 as libc::c_long,
            CLOSE_ON_EXEC,
        )
    };
    let event = i32::try_from(event).map_err(|_| io::ErrorKind::InvalidData)?;
    if event < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us; nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(event) })
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: address and length are those of the mapping made in `open`, which nothing else knows of.
        let _ = unsafe { munmap(self.memory.cast(), PAGE + RING) };
    }
}
