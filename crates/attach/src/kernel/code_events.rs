//! What a process, and all that it starts, map as code: by `perf_event_open(2)`, from rings that the kernel writes. They tell of
//! processes too that have ended before anybody could look.
#![expect(unsafe_code, reason = "the ring of a perf event is memory that the kernel writes")]

use std::{
    io, mem,
    os::fd::{AsFd as _, OwnedFd},
    ptr::null_mut,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use aya_obj::generated::perf_event_attr;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    mm::{MapFlags, ProtFlags, mmap, munmap},
    pipe::{PipeFlags, pipe_with},
};

use super::{
    code_record::{Record, is_told, record},
    perf_event,
};

/// `PERF_TYPE_SOFTWARE`, `PERF_COUNT_SW_DUMMY`, `PERF_SAMPLE_TIME`, `CLOCK_MONOTONIC` (include/uapi/linux/perf_event.h).
const SOFTWARE: u32 = 1;
const DUMMY: u64 = 9;
const SAMPLE_TIME: u64 = 1 << 2;
const MONOTONIC: i32 = 1;

const PAGE: usize = 4096;
/// Sizes of rings, bytes, the first that the kernel permits. Beginnings and ends of threads are in them, too, which is not to be avoided:
/// on a busy machine some ten thousand threads may come and go on a processor before anybody can read, which is the largest. 60 processes
/// that start on one processor map some four thousand files, which is the next one; what users without privileges may lock is as much
/// (`kernel.perf_event_mlock_kb`).
const RINGS: [usize; 4] = [512 * PAGE, 128 * PAGE, 32 * PAGE, 8 * PAGE];
/// Of all rings together, where there are many processors, bytes.
const MOST: usize = 32 << 20;
/// Records that are kept until somebody reads them: those of some hundred thousand files.
const MOST_RECORDS: usize = 1 << 18;
/// In the page before the ring, `struct perf_event_mmap_page`.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// What is written into a ring before its reader is woken up, bytes: less than the smallest of them.
const WATERMARK: u32 = 16 << 10;

/// The rings of one process tree, one for each processor, which a thread empties before they are full, whatever else is to be done.
#[derive(Debug)]
pub struct CodeEvents {
    rings: Arc<Mutex<Rings>>,
    /// Closed, it ends the thread.
    _stop: OwnedFd,
}

#[derive(Debug)]
struct Rings {
    rings: Vec<Ring>,
    /// Taken out of them.
    records: Vec<Record>,
}

impl CodeEvents {
    /// Of the process and all that it starts from now on.
    pub fn open(pid: u32) -> io::Result<Self> {
        // SAFETY: takes a number.
        let processors = i32::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) }).unwrap_or(1);
        let mut rings = Vec::new();
        let share = MOST / usize::try_from(processors).unwrap_or(1).max(1);
        for processor in 0..processors {
            match Ring::open(pid, processor, share) {
                Ok(ring) => rings.push(ring),
                // Switched off.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(error) => return Err(error),
            }
        }
        let events = rings.iter().map(|ring| ring.event.try_clone()).collect::<io::Result<Vec<_>>>()?;
        let rings = Arc::new(Mutex::new(Rings { rings, records: Vec::new() }));
        let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC)?;
        let shared = Arc::clone(&rings);
        thread::Builder::new().name("code-events".into()).spawn(move || empty(&shared, events, &stopped))?;
        Ok(Self { rings, _stop: stop })
    }

    /// What there is since the last time, in no order over processors.
    pub fn read(&mut self) -> Vec<Record> {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        rings.take_out();
        mem::take(&mut rings.records)
    }
}

impl Rings {
    fn take_out(&mut self) {
        self.records.extend(self.rings.iter_mut().flat_map(Ring::read));
        let too_many = self.records.len().saturating_sub(MOST_RECORDS);
        if too_many > 0 {
            self.records.truncate(MOST_RECORDS);
            self.records.push(Record::Lost(too_many as u64));
        }
    }
}

/// Empties the rings that are filling up, until nobody wants to know, or all processes have ended.
fn empty(rings: &Mutex<Rings>, mut events: Vec<OwnedFd>, stopped: &OwnedFd) {
    while !events.is_empty() {
        let mut polled: Vec<PollFd<'_>> = events.iter().map(|event| PollFd::new(event, PollFlags::IN)).collect();
        polled.push(PollFd::new(stopped, PollFlags::IN));
        match poll(&mut polled, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return,
        }
        let found: Vec<PollFlags> = polled.iter().map(PollFd::revents).collect();
        let Some((of_stop, of_events)) = found.split_last() else { return };
        if !of_stop.is_empty() {
            return;
        }
        if of_events.iter().any(|found| found.contains(PollFlags::IN)) {
            rings.lock().unwrap_or_else(PoisonError::into_inner).take_out();
        }
        // All that wrote there have ended.
        let mut found = of_events.iter();
        events.retain(|_| found.next().is_none_or(|found| !found.intersects(PollFlags::HUP | PollFlags::ERR)));
    }
}

#[derive(Debug)]
struct Ring {
    event: OwnedFd,
    /// The page of the kernel's, and behind it the ring.
    memory: *mut u8,
    /// Of the ring, bytes; a power of two.
    size: usize,
}

// SAFETY: the memory belongs to whoever has the ring.
unsafe impl Send for Ring {}

impl Ring {
    /// `share`: no larger than this, bytes, unless it is the smallest.
    fn open(pid: u32, processor: i32, share: usize) -> io::Result<Self> {
        // SAFETY: all-zero is a valid value.
        let mut attributes: perf_event_attr = unsafe { mem::zeroed() };
        attributes.type_ = SOFTWARE;
        attributes.config = DUMMY;
        attributes.sample_type = SAMPLE_TIME;
        attributes.clockid = MONOTONIC;
        attributes.set_use_clockid(1);
        attributes.set_sample_id_all(1);
        attributes.set_inherit(1);
        attributes.set_mmap(1);
        attributes.set_mmap2(1);
        attributes.set_comm(1);
        attributes.set_comm_exec(1);
        attributes.set_watermark(1);
        attributes.__bindgen_anon_2.wakeup_watermark = WATERMARK;
        let pid = i32::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the attributes point to nothing.
        let event = unsafe { perf_event::open(attributes, pid, processor)? };
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let mut refused = io::ErrorKind::InvalidInput.into();
        let [.., smallest] = RINGS;
        for size in RINGS.into_iter().filter(|&size| size <= share.max(smallest)) {
            // SAFETY: with a null hint the kernel chooses unused addresses.
            match unsafe { mmap(null_mut(), PAGE + size, access, MapFlags::SHARED, event.as_fd(), 0) } {
                Ok(memory) => return Ok(Self { event, memory: memory.cast(), size }),
                Err(error) => refused = io::Error::from(error),
            }
        }
        Err(refused)
    }

    fn read(&mut self) -> Vec<Record> {
        // SAFETY: aligned words of the kernel's page, which is mapped as long as the ring is.
        let (head, tail) = unsafe {
            (AtomicU64::from_ptr(self.memory.add(HEAD).cast()), AtomicU64::from_ptr(self.memory.add(TAIL).cast()))
        };
        let (end, mut at) = (head.load(Ordering::Acquire), tail.load(Ordering::Relaxed));
        let mut records = Vec::new();
        while at < end {
            // `struct perf_event_header`: the kind, 16 bits of flags and the size, which is a multiple of 8.
            let header = self.word(at);
            let (kind, size) = (header & 0xffff_ffff, header >> 48);
            if size < 8 || size % 8 != 0 || at + size > end {
                break;
            }
            // Most are of threads, which come and go by thousands: those are only passed over.
            if is_told(kind) {
                records.extend(record(&self.copy(at, size)));
            }
            at += size;
        }
        tail.store(end, Ordering::Release);
        records
    }

    /// A word of the ring: one that has been written and not yet been read.
    fn word(&self, at: u64) -> u64 {
        let place = PAGE + (usize::try_from(at).unwrap_or(0) & (self.size - 1) & !7);
        // SAFETY: within the ring, and aligned as the ring is; the kernel leaves alone what is between the tail and the head.
        unsafe { AtomicU64::from_ptr(self.memory.add(place).cast()).load(Ordering::Relaxed) }
    }

    /// A record, of whole words, may go over the ring's end to its beginning.
    fn copy(&self, at: u64, size: u64) -> Vec<u8> {
        (0..size / 8).flat_map(|step| self.word(at + 8 * step).to_ne_bytes()).collect()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: address and length are those of the mapping made in `open`, which nothing else knows of.
        let _ = unsafe { munmap(self.memory.cast(), PAGE + self.size) };
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::MetadataExt as _, process::Command};

    use super::*;

    /// What ranks map that start all at once, while nobody reads.
    #[test]
    fn as_many_processes_as_a_node_has_ranks_may_start_before_anybody_reads() {
        let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let Ok(mut events) = CodeEvents::open(thread) else { return };
        // Each maps the shell, the C library, the linker and true's; as much as 64 processes with 60 libraries.
        let script = "i=0; while [ $i -lt 600 ]; do /bin/true; i=$((i+1)); done";
        let mut command = Command::new("taskset");
        let Ok(status) = command.args(["-c", "0", "sh", "-c", script]).status() else { return };
        assert!(status.success());
        let lost = events.read().into_iter().filter(|record| matches!(record, Record::Lost(_))).count();
        assert_eq!(lost, 0);
    }

    #[test]
    fn what_a_child_of_a_child_maps_is_told_after_its_end() {
        // Of this thread: others that exist already are not followed.
        let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let Ok(mut events) = CodeEvents::open(thread) else { return };
        assert!(Command::new("sh").args(["-c", "/bin/true; exit 0"]).status().unwrap().success());
        let inode = fs::metadata("/bin/true").unwrap().ino();
        let own = std::process::id();
        let mapped = events.read().into_iter().filter_map(|record| match record {
            Record::Mapped(mapped) => Some(mapped),
            Record::Executed { .. } | Record::Lost(_) => None,
        });
        let of_true: Vec<_> = mapped.filter(|mapped| mapped.inode == inode).collect();
        assert!(!of_true.is_empty() && of_true.iter().all(|mapped| mapped.pid != own && mapped.time_ns > 0));
        assert!(of_true[0].path.ends_with(b"true"));
        assert!(events.read().is_empty());
    }
}
