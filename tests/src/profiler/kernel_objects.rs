//! The BPF objects that a process holds in the kernel, and whether they are still there when it is gone.
//!
//! The kernel gives every map, program and link a number of its own that is not given again soon, so that this is exact whatever
//! other tracers run beside.
#![expect(unsafe_code, reason = "bpf(2) has no safe wrapper in the libraries used here")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use std::{io, thread};

use super::ProfilerError;
use crate::proc::descriptors;

/// The kernel frees some objects from a work queue after the last descriptor was closed: when that runs depends on what else there is to do.
const PATIENCE: Duration = Duration::from_mins(5);
const POLL: Duration = Duration::from_millis(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ObjectKind {
    Program,
    Map,
    Link,
}

/// Maps, programs and links by their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelObjects(BTreeSet<(ObjectKind, u32)>);

impl KernelObjects {
    /// Those that a process has open.
    pub fn of(pid: u32) -> Result<Self, ProfilerError> {
        let said = descriptors(pid).map_err(ProfilerError::system(format!("reading /proc/{pid}/fdinfo")))?;
        Ok(Self(said.iter().flat_map(|text| text.lines().filter_map(object)).collect()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many of them are links.
    pub fn links(&self) -> usize {
        self.0.iter().filter(|(kind, _)| *kind == ObjectKind::Link).count()
    }

    /// Waits until the kernel has none of them any more.
    pub fn wait_until_gone(&self) -> Result<(), ProfilerError> {
        let start = Instant::now();
        loop {
            let mut left = Vec::new();
            for &(kind, id) in &self.0 {
                if exists(kind, id).map_err(ProfilerError::system(format!("looking for {kind:?} {id}")))? {
                    left.push((kind, id));
                }
            }
            if left.is_empty() {
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                let what = "the kernel to free what mpiprobe had made".to_owned();
                return Err(ProfilerError::Timeout { what, waited: PATIENCE, output: format!("left: {left:?}") });
            }
            thread::sleep(POLL);
        }
    }
}

fn object(line: &str) -> Option<(ObjectKind, u32)> {
    let (name, number) = line.split_once(':')?;
    let kind = match name {
        "prog_id" => ObjectKind::Program,
        "map_id" => ObjectKind::Map,
        "link_id" => ObjectKind::Link,
        _ => return None,
    };
    // Zero: a link whose program is gone.
    number.trim().parse().ok().filter(|id| *id != 0).map(|id| (kind, id))
}

/// Whether there is an object of this number: the next one after the number before is it.
fn exists(kind: ObjectKind, id: u32) -> io::Result<bool> {
    /// `union bpf_attr` of `BPF_*_GET_NEXT_ID` (include/uapi/linux/bpf.h).
    #[repr(C)]
    struct NextId {
        start: u32,
        next: u32,
        open_flags: u32,
    }
    let command: libc::c_long = match kind {
        ObjectKind::Program => 11,
        ObjectKind::Map => 12,
        ObjectKind::Link => 31,
    };
    let mut request = NextId { start: id.saturating_sub(1), next: 0, open_flags: 0 };
    // SAFETY: the kernel reads and writes `request` within the size given, and nothing else of this process.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut request, size_of::<NextId>()) };
    if result == 0 {
        return Ok(request.next == id);
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        error => Err(error),
    }
}
