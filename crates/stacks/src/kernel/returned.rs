//! Whether a call has returned: a breakpoint of the processor's where it returns to, of one thread only. The program's code stays as it
//! is, and the thread is held up once, for a microsecond, if it comes there.
#![expect(unsafe_code, reason = "perf_event_open(2) takes a pointer")]

use std::{
    io, mem,
    os::fd::{AsRawFd as _, OwnedFd},
};

use aya_obj::generated::perf_event_attr;

use super::sample::{REFRESH, event_of};

/// `PERF_TYPE_BREAKPOINT` (include/uapi/linux/perf_event.h), `HW_BREAKPOINT_X` (hw_breakpoint.h), whose length is that of a word.
const BREAKPOINT: u32 = 5;
const EXECUTED: u32 = 4;
const LENGTH: u64 = size_of::<libc::c_long>() as u64;

/// An address in one thread, from now on.
#[derive(Debug)]
pub(crate) struct Returned(OwnedFd);

impl Returned {
    /// As often as the processor has room for it: four such for each thread.
    pub(crate) fn watch(tid: u32, address: u64) -> io::Result<Self> {
        // SAFETY: all-zero is a valid value.
        let mut attributes: perf_event_attr = unsafe { mem::zeroed() };
        attributes.type_ = BREAKPOINT;
        attributes.bp_type = EXECUTED;
        attributes.__bindgen_anon_3.bp_addr = address;
        attributes.__bindgen_anon_4.bp_len = LENGTH;
        attributes.__bindgen_anon_1.sample_period = 1;
        attributes.set_exclude_kernel(1);
        attributes.set_exclude_hv(1);
        attributes.set_disabled(1);
        let event = event_of(attributes, tid)?;
        // Whoever calls a million times in a second is held up once all the same.
        // SAFETY: takes a number.
        if unsafe { libc::ioctl(event.as_raw_fd(), REFRESH, 1) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(event))
    }

    /// Whether the thread has come there.
    pub(crate) fn is_reached(&self) -> io::Result<bool> {
        let mut count = [0; 8];
        let read = rustix::io::read(&self.0, &mut count)?;
        if read == count.len() { Ok(u64::from_ne_bytes(count) > 0) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn place() {
        std::hint::black_box(());
    }

    #[test]
    fn a_place_is_reached_when_it_was() {
        let tid = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
        // Not everywhere is it permitted, and some machines have no such breakpoints.
        let Ok(watched) = Returned::watch(tid, place as fn() as usize as u64) else { return };
        assert!(!watched.is_reached().unwrap());
        for _ in 0..3 {
            std::hint::black_box(place as fn())();
        }
        assert!(watched.is_reached().unwrap());
    }
}
