//! Returns of calls that had begun when the observation of their process did. The place that such a call returns to gets a probe, and if
//! its thread is still in it then, all that the thread calls until it comes there is inside the call: wherever that is called from, be it
//! by a part of MPI that is a file of its own, or by a function of the program that MPI has called.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    io,
    os::fd::AsFd as _,
    path::Path,
    thread,
};

use mpiprobe_attach::{Attachment, Scope};
use mpiprobe_common::{EarlierCall, earlier::EARLIER_CALLS};
use mpiprobe_discover::{
    ForeignFile, Process,
    mappings::{FileId, MappedFile, Mappings},
    open_mapped,
};
use mpiprobe_stacks::{CallNow, Returns, WhereNow};

use super::{kernel::Kernel, probe_error::ProbeError};

/// Probes at once. Ranks of one program are in few different calls, but each may have a probe of its own.
const MOST_SITES: usize = 512;
/// The longest instruction, and some of what comes after it: what the file and the memory have to have in common.
const COMPARED: usize = 16;
/// What the kernel puts where a probe is.
const BREAKPOINT: u8 = 0xcc;

/// Process and thread.
pub(super) type ThreadId = (u32, u32);

/// All threads that are watched.
#[derive(Debug, Default)]
pub(super) struct EarlierReturns {
    threads: HashMap<ThreadId, Watched>,
    /// `None`: there can be no probe.
    sites: HashMap<Site, Option<Attachment>>,
}

/// A place that is probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Site {
    file: FileId,
    /// Bytes into it.
    offset: u64,
    scope: Option<u32>,
}

/// A call that a thread was seen in.
#[derive(Debug)]
struct Watched {
    seen: CallNow,
    call: EarlierCall,
    site: Site,
    /// It was seen in it again, after the probe was there.
    is_confirmed: bool,
    /// When it was noted to have returned, ns.
    returned_ns: Option<u64>,
}

/// A call that is certain to have begun unseen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Confirmed<'a> {
    pub(super) seen: &'a CallNow,
    /// When it has returned, ns; `None`: it has not.
    pub(super) returned_ns: Option<u64>,
}

impl EarlierReturns {
    /// Watches the calls that threads of a process were just seen in; gives whether there is one that was not watched before.
    pub(super) fn watch(&mut self, kernel: &mut Kernel, process: &Process, calls: &[&CallNow]) -> bool {
        let mut mappings = None;
        let mut is_new = false;
        for now in calls {
            let Some(call) = call_of(now) else { continue };
            let thread = (now.pid, now.tid);
            if let Some(watched) = self.threads.get(&thread) {
                if watched.returned_ns.is_none() && watched.is_of(call) {
                    continue;
                }
                self.forget(kernel, thread);
            }
            if self.threads.len() >= EARLIER_CALLS as usize {
                break;
            }
            let Some(mappings) = mappings.get_or_insert_with(|| Mappings::of(process).ok()) else { break };
            match self.watch_one(kernel, (process, mappings), now, call) {
                Ok(is_watched) => is_new |= is_watched,
                Err(error) => tracing::debug!("it is not seen when a call of thread {} returns: {error}", now.tid),
            }
        }
        is_new
    }

    /// Whether it could be done: there must be a file.
    fn watch_one(
        &mut self,
        kernel: &mut Kernel,
        (process, mappings): (&Process, &Mappings),
        now: &CallNow,
        call: EarlierCall,
    ) -> Result<bool, ProbeError> {
        let thread = (now.pid, now.tid);
        let Some((mapped, offset)) = mapped_at(mappings, call.return_address) else { return Ok(false) };
        let scope = kernel.engine.can_scope_returns().then_some(now.pid);
        let site = Site { file: mapped.id, offset, scope };
        let sites = self.sites.len();
        match self.sites.entry(site) {
            Entry::Occupied(known) if known.get().is_none() => return Ok(false),
            Entry::Vacant(_) if sites >= MOST_SITES => return Ok(false),
            _ => {}
        }
        let file = open_mapped(process, mapped)?;
        let memory = process.memory_with(&file)?;
        let unread = |source| ProbeError::Memory { path: mapped.display_path(), pid: now.pid, source };
        if !is_same_code(&file, offset, &memory, call.return_address).map_err(unread)? {
            return Ok(false);
        }
        if let Entry::Vacant(place) = self.sites.entry(site) {
            let scope = scope.map_or(Scope::Inode, Scope::Process);
            let path = mapped.display_path();
            let attached = kernel.engine.attach_to_return(file.as_fd(), Path::new(&path), offset, scope);
            // Whatever the kernel has against it, it is not asked again.
            let attached = attached.inspect_err(|error| tracing::debug!("no probe where a call returns to: {error}"));
            if place.insert(attached.ok()).is_none() {
                return Ok(false);
            }
        }
        // The kernel leaves memory out that is mapped in other ways than programs and libraries are.
        if byte_at(&memory, call.return_address).map_err(unread)? != BREAKPOINT {
            return Ok(false);
        }
        kernel.earlier_calls().watch(thread, call)?;
        let (is_confirmed, returned_ns) = (false, None);
        self.threads.insert(thread, Watched { seen: (*now).clone(), call, site, is_confirmed, returned_ns });
        Ok(true)
    }

    /// One look more, after which it was read who has been seen to call (`called`, by thread): whoever is still in its call, and has not
    /// called, is in one that has begun unseen, and whose return will be noted.
    pub(super) fn confirm(&mut self, kernel: &mut Kernel, calls: &[CallNow], called: &HashSet<u32>) {
        self.read(kernel);
        for now in calls {
            let thread = (now.pid, now.tid);
            let Some(watched) = self.threads.get_mut(&thread) else { continue };
            if !watched.is_confirmed && watched.may_be_confirmed(now) && !called.contains(&now.tid) {
                match kernel.earlier_calls().confirm(thread, watched.call) {
                    Ok(()) => (watched.is_confirmed, watched.seen) = (true, now.clone()),
                    Err(error) => tracing::debug!("a call of thread {} is not followed: {error}", now.tid),
                }
            }
        }
    }

    /// Whether nobody is watched, since whenever, whose call is not confirmed.
    pub(super) fn are_all_confirmed(&self) -> bool {
        self.threads.values().all(|watched| watched.is_confirmed || watched.returned_ns.is_some())
    }

    /// Reads which calls have returned.
    pub(super) fn read(&mut self, kernel: &mut Kernel) {
        for (&thread, watched) in self.threads.iter_mut().filter(|(_, watched)| watched.returned_ns.is_none()) {
            match kernel.earlier_calls().returned_ns(thread) {
                Ok(returned_ns) => watched.returned_ns = returned_ns,
                Err(error) => tracing::debug!("it is not known whether a call has returned: {error}"),
            }
        }
    }

    /// The call of a thread, if it is certain.
    pub(super) fn confirmed(&self, thread: ThreadId) -> Option<Confirmed<'_>> {
        let watched = self.threads.get(&thread).filter(|watched| watched.is_confirmed)?;
        Some(Confirmed { seen: &watched.seen, returned_ns: watched.returned_ns })
    }

    /// Watches others no longer than those of whom something is still to be found out.
    pub(super) fn keep(&mut self, kernel: &mut Kernel, is_wanted: impl Fn(ThreadId) -> bool) {
        let is_over = |(&thread, watched): (&ThreadId, &Watched)| {
            (watched.returned_ns.is_some() || !is_wanted(thread)).then_some(thread)
        };
        let over: Vec<ThreadId> = self.threads.iter().filter_map(is_over).collect();
        for thread in over {
            self.forget(kernel, thread);
        }
        let wanted: HashSet<Site> = self.threads.values().map(|watched| watched.site).collect();
        let attached =
            |site: &Site, attachment: &mut Option<Attachment>| attachment.is_some() && !wanted.contains(site);
        let unused: Vec<Attachment> =
            self.sites.extract_if(attached).filter_map(|(_, attachment)| attachment).collect();
        // It may take long. Where no thread can be had they are removed at once.
        if !unused.is_empty()
            && let Err(error) = thread::Builder::new().name("detach".into()).spawn(move || drop(unused))
        {
            tracing::warn!("probes where calls have returned were removed in passing: {error}");
        }
    }

    fn forget(&mut self, kernel: &mut Kernel, thread: ThreadId) {
        self.threads.remove(&thread);
        if let Err(error) = kernel.earlier_calls().forget(thread) {
            tracing::debug!("a call stays watched: {error}");
        }
    }
}

impl Watched {
    fn is_of(&self, call: EarlierCall) -> bool {
        self.call == call
    }

    /// Whether a later look has found the thread in the same call of the same function.
    fn may_be_confirmed(&self, now: &CallNow) -> bool {
        let function = |now: &CallNow| match now.found {
            WhereNow::InCall { function, .. } => Some(function),
            _ => None,
        };
        self.returned_ns.is_none() && call_of(now) == Some(self.call) && function(now) == function(&self.seen)
    }
}

/// What is to be watched of the call that a thread is in.
fn call_of(now: &CallNow) -> Option<EarlierCall> {
    match now.found {
        WhereNow::InCall { returns: Some(Returns { address, slot }), .. } => {
            Some(EarlierCall { return_slot: slot, return_address: address, is_confirmed: 0 })
        }
        _ => None,
    }
}

/// The file that is mapped at an address, and where in it that is.
fn mapped_at(mappings: &Mappings, address: u64) -> Option<(&MappedFile, u64)> {
    mappings.files.iter().find_map(|mapped| {
        let range = mapped.ranges.iter().find(|range| (range.start..range.end).contains(&address))?;
        Some((mapped, range.offset.checked_add(address - range.start)?))
    })
}

/// Whether the process has the code there that the file has, but for a probe of somebody's: the kernel executes what the file says.
fn is_same_code(file: &ForeignFile, offset: u64, memory: &ForeignFile, address: u64) -> io::Result<bool> {
    let (mut expected, mut found) = ([0; COMPARED], [0; COMPARED]);
    let known = file.read_at(&mut expected, offset)?;
    let read = memory.read_at(&mut found, address)?;
    Ok(agree(expected.get(..known).unwrap_or_default(), found.get(..read).unwrap_or_default()))
}

fn agree(expected: &[u8], found: &[u8]) -> bool {
    let (Some((first, expected)), Some((found_first, found))) = (expected.split_first(), found.split_first()) else {
        return false;
    };
    (first == found_first || *found_first == BREAKPOINT) && expected.iter().zip(found).all(|(one, other)| one == other)
}

fn byte_at(memory: &ForeignFile, address: u64) -> io::Result<u8> {
    let mut byte = [0];
    memory.read_exact_at(&mut byte, address)?;
    Ok(byte[0])
}

#[cfg(test)]
mod tests {
    use mpiprobe_functions::by_name;

    use super::*;

    fn at(name: &str, slot: u64) -> CallNow {
        let (function, returns) = (by_name(name).unwrap(), Some(Returns { address: 0x40, slot }));
        let found = WhereNow::InCall { function, call_site: Some(0x40), words: Vec::new(), returns };
        CallNow { pid: 7, tid: 8, at_ns: 100, found }
    }

    fn watched(returned_ns: Option<u64>) -> Watched {
        let seen = at("MPI_Recv", 0x1000);
        let site = Site { file: FileId { major: 1, minor: 2, inode: 3 }, offset: 0x40, scope: None };
        Watched { call: call_of(&seen).unwrap(), seen, site, is_confirmed: false, returned_ns }
    }

    #[test]
    fn only_the_same_call_at_the_same_place_of_the_stack_is_confirmed() {
        assert!(watched(None).may_be_confirmed(&at("MPI_Recv", 0x1000)));
        assert!(!watched(None).may_be_confirmed(&at("MPI_Recv", 0x0f00)));
        assert!(!watched(None).may_be_confirmed(&at("MPI_Send", 0x1000)));
        let outside = CallNow { found: WhereNow::Outside, ..at("MPI_Recv", 0x1000) };
        assert!(!watched(None).may_be_confirmed(&outside));
        // It has returned since it was seen first: this is another one, of whose return nothing would be noted.
        assert!(!watched(Some(90)).may_be_confirmed(&at("MPI_Recv", 0x1000)));
    }

    /// Invariant SAME-BYTES.
    #[test]
    fn code_that_was_changed_gets_no_probe() {
        assert!(agree(&[0x89, 0xc2, 0x90], &[0x89, 0xc2, 0x90]));
        assert!(agree(&[0x89, 0xc2, 0x90], &[0xcc, 0xc2, 0x90]));
        assert!(!agree(&[0x89, 0xc2, 0x90], &[0x89, 0xcc, 0x90]));
        assert!(!agree(&[0x89, 0xc2, 0x90], &[0xe9, 0xc2, 0x90]));
        assert!(!agree(&[], &[0x89]) && !agree(&[0x89], &[]));
    }
}
