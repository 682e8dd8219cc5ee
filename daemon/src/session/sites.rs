//! Where in their source the observed processes call MPI.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    os::unix::fs::FileExt as _,
    time::{Duration, Instant},
};

use mpiprobe_common::ThreadState;
use mpiprobe_discover::{Process, printable};
use mpiprobe_model::CallSite;
use mpiprobe_report::present::say;
use mpiprobe_stacks::callsites::{AddressMap, Modules, Naming, Registers, unwind_out_of_layers};

/// How much of a stack is looked at to find the caller of a layer, bytes: layers need some hundred.
const STACK: usize = 4 << 10;

/// By process slot and thread: entry of an open call that was made by a layer, and who had called the layer.
pub(super) type OpenBehindLayers = HashMap<(u32, u32), (u64, u64)>;

/// Tables of code of all processes, taken while they live, and the names found so far.
#[derive(Default)]
pub(super) struct Sites {
    modules: Modules,
    maps: HashMap<u32, AddressMap>,
    /// Slots of processes that were about to end when they were looked at: something may be missing.
    cut_short: HashSet<u32>,
    naming: Naming,
    /// Until when names are waited for; those that come later are shown the next time.
    patient_until: Option<Instant>,
    /// At the last look, and at the one before: of threads that have ended between, it may be heard later.
    behind_layers: [OpenBehindLayers; 2],
}

impl fmt::Debug for Sites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sites").field("maps", &self.maps.len()).finish_non_exhaustive()
    }
}

/// How long all names of one look are waited for: of one among many, and of the last one.
const PATIENCE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

impl Sites {
    /// Names are asked for from now on.
    pub(super) fn begin_naming(&mut self, is_last: bool) {
        let patience = if is_last { PATIENCE.1 } else { PATIENCE.0 };
        self.patient_until = Instant::now().checked_add(patience);
    }

    /// Tells the user which names have come too late for the last look.
    pub(super) fn tell_unnamed(&self) {
        let pending = self.naming.pending();
        if pending > 0 {
            let noun = if pending == 1 { "call site is" } else { "call sites are" };
            say(format_args!("{pending} {noun} told by file and offset: finding their names takes too long"));
        }
    }

    /// Notes what a process has mapped. Of one that has ended meanwhile, addresses stay numbers.
    ///
    /// One that ends has nothing mapped any more, from one line of `/proc/PID/maps` to the next; it has no executable either then.
    pub(super) fn add(&mut self, slot: u32, process: &Process) {
        if let Ok(map) = AddressMap::of(process, &mut self.modules) {
            self.maps.insert(slot, map);
            if process.executable().is_ok() {
                self.cut_short.remove(&slot);
            } else {
                self.cut_short.insert(slot);
            }
        }
    }

    /// The same of a process that has ended, or may end before it is looked at: what it has noted itself, when it began (ns since
    /// 1970) or later.
    pub(super) fn add_noted(&mut self, slot: u32, list: &[u8], began_unix_ns: u64) {
        let map = AddressMap::noted(list, began_unix_ns, &mut self.modules);
        self.maps.insert(slot, map);
        self.cut_short.remove(&slot);
    }

    /// Whether nothing is known of a process's code, or perhaps not all.
    pub(super) fn lack(&self, slot: u32) -> bool {
        !self.maps.contains_key(&slot) || self.cut_short.contains(&slot)
    }

    /// Lets go of the files of a process that has ended.
    pub(super) fn forget(&mut self, slot: u32) {
        self.maps.remove(&slot);
        self.cut_short.remove(&slot);
    }

    /// The code of a process.
    pub(super) fn map(&self, slot: u32) -> Option<&AddressMap> {
        self.maps.get(&slot)
    }

    /// The return address in the user's code of an open call that was made by a language layer, as the stack of its thread says at
    /// this moment; `None` if it was made by the user, or nothing is known.
    pub(super) fn behind_layers(&mut self, slot: u32, state: &ThreadState, process: Option<&Process>) -> Option<u64> {
        let call_site = state.call_site().filter(|_| state.open_function().is_some())?;
        let map = self.maps.get_mut(&slot)?;
        if !map.locate(call_site, process, &mut self.modules).layer()?.is_called_by_user() {
            return None;
        }
        let mut stack = vec![0; STACK];
        // After the return, as the rules of the calling functions say it; of the outermost tool, if there are any.
        let sp = state.open.stack_pointer.wrapping_add(u64::from(state.open.to_user) + 8);
        // The stack may end before.
        let read = process?.memory().ok()?.read_at(&mut stack, sp).ok()?;
        let registers =
            Registers { saved: [None, Some(state.frame_pointer), None, None, None, None], ..Registers::at(sp) };
        let mut locate = |address| map.locate(address, process, &mut self.modules);
        Some(unwind_out_of_layers(&mut locate, call_site, registers, stack.get(..read)?)?.return_address)
    }

    /// Keeps what was found of the calls that are open now.
    pub(super) fn keep_behind_layers(&mut self, found: OpenBehindLayers) {
        let [last, before] = &mut self.behind_layers;
        *before = std::mem::replace(last, found);
    }

    /// What was found of a call that was open until its thread ended; `None` if it was not made by a layer or nobody had looked.
    pub(super) fn was_behind_layers(&self, slot: u32, tid: u32, started_ns: u64) -> Option<u64> {
        let calls = self.behind_layers.iter().filter_map(|looked| looked.get(&(slot, tid)));
        calls.copied().find(|(started, _)| *started == started_ns).map(|(_, user)| user)
    }

    /// A return address as a place in the source, as far as that is known by now, and whether no more will be; `None` of a process that nothing is
    /// known of (yet). `is_last`: names are waited for.
    pub(super) fn call_site(
        &mut self,
        slot: u32,
        address: u64,
        process: Option<&Process>,
        is_last: bool,
    ) -> Option<(CallSite, bool)> {
        let map = self.maps.get_mut(&slot)?;
        let at = map.locate(address, process, &mut self.modules);
        let until = self.patient_until.filter(|_| is_last).unwrap_or_else(Instant::now);
        let site = self.naming.resolve(&at, until);
        Some((site.as_ref().clone().printable(), !self.naming.is_pending(&at)))
    }

    /// A return address as a place in the source, or as near to that as the files allow; `None` of a process that nothing is
    /// known of. `process` is asked for what it has mapped since, if it lives.
    pub(super) fn name(&mut self, slot: u32, address: u64, process: Option<&Process>) -> Option<String> {
        let map = self.maps.get_mut(&slot)?;
        let at = map.locate(address, process, &mut self.modules);
        // Names come from files of other users.
        let name = printable(self.naming.resolve(&at, self.patient_until.unwrap_or_else(Instant::now)).text.as_bytes());
        Some(match at.layer().filter(|layer| layer.is_called_by_user()) {
            Some(layer) => format!("{name} ({layer} layer, caller unknown)"),
            None => name,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use mpiprobe_discover::ProcRoot;
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

    use super::*;

    /// Of a process that ends while it is looked at, what it has noted itself is asked for.
    #[test]
    fn what_a_process_has_no_more_is_not_taken_for_what_it_had() {
        let mut sites = Sites::default();
        let own = Process::open(&ProcRoot::system().unwrap(), std::process::id()).unwrap();
        sites.add(0, &own);
        assert!(!sites.lack(0) && sites.lack(1));

        // It lives until its input ends.
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let ended = Process::open(&ProcRoot::system().unwrap(), child.id()).unwrap();
        drop(child.stdin.take());
        // It stays as a zombie, whose mappings can be read and are none.
        waitid(WaitId::Pid(Pid::from_child(&child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        sites.add(1, &ended);
        assert!(sites.lack(1));
        child.wait().unwrap();
        let address = std::ptr::from_ref(&sites).addr() as u64;
        assert!(sites.call_site(0, address, None, true).is_some());
        sites.add_noted(1, &std::fs::read("/proc/self/maps").unwrap(), 0);
        assert!(!sites.lack(1));
    }
}
