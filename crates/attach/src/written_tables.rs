//! The tables that are written from here while programs run: which processes, libraries and language layers there are.

use mpiprobe_common::{
    EarlierCall, LayerFrame, Target,
    layout::Template,
    request::state,
    tables::{EARLIER_CALLS, EARLIER_RETURNS, JOB, LAYER_FRAMES, LIBRARIES, LIBRARY_OF, REQUESTS, TARGETS},
};

use super::{AttachError, Tables, hash_table::HashTable};

/// The allow-list of processes, which the programs consult before anything else. Processes may also get onto it in the kernel, by
/// exec.
#[derive(Debug)]
pub struct Targets<'a>(HashTable<'a, u32, Target>);

impl<'a> Targets<'a> {
    pub fn of(tables: &'a mut Tables) -> Result<Self, AttachError> {
        tables.hash(TARGETS).map(Self)
    }

    /// Observes a process from now on, or changes how.
    pub fn allow(&mut self, tgid: u32, target: Target) -> Result<(), AttachError> {
        self.0.insert(tgid, target)
    }

    /// The slot of a process that is on the list, put there by the kernel perhaps.
    pub fn slot_of(&self, tgid: u32) -> Option<u32> {
        self.0.get(tgid).map(|target| target.process)
    }

    /// Observes a process no longer.
    pub fn remove(&mut self, tgid: u32) -> Result<(), AttachError> {
        self.0.remove(tgid)
    }
}

/// Makes a process the first member of the job: what it executes, and what all that it starts execute, is observed. There must be
/// [`mpiprobe_common::Config::job`].
pub fn begin_job(tables: &mut Tables, tgid: u32) -> Result<(), AttachError> {
    tables.hash(JOB)?.insert(tgid, 0)
}

/// Tells the programs of a library whose layout is known before its processes are looked at: under a number that was not given before,
/// and by the cookies of the probes in it.
pub fn tell_library(tables: &mut Tables, number: u32, template: &Template, cookies: &[u64]) -> Result<(), AttachError> {
    tables.fill(LIBRARIES, [(number, *template)].into_iter())?;
    let mut libraries = tables.hash(LIBRARY_OF)?;
    cookies.iter().try_for_each(|&cookie| libraries.insert(cookie, number))
}

/// These cookies are of probes in two libraries that differ: they tell neither.
pub fn forget_library(tables: &mut Tables, cookies: &[u64]) -> Result<(), AttachError> {
    let mut libraries = tables.hash(LIBRARY_OF)?;
    cookies.iter().try_for_each(|&cookie| libraries.remove(cookie))
}

/// Ways out of language layers, by [`mpiprobe_common::layer::call_key`].
#[derive(Debug)]
pub struct LayerFrames<'a>(HashTable<'a, u64, LayerFrame>);

impl<'a> LayerFrames<'a> {
    pub fn of(tables: &'a mut Tables) -> Result<Self, AttachError> {
        tables.hash(LAYER_FRAMES).map(Self)
    }

    /// An error if there is no room for more.
    pub fn insert(&mut self, key: u64, frame: LayerFrame) -> Result<(), AttachError> {
        self.0.insert(key, frame)
    }
}

/// Calls that had begun before, by thread: (process, thread) in the numbers of whoever has loaded the programs.
#[derive(Debug)]
pub struct EarlierCalls<'a>(&'a mut Tables);

impl<'a> EarlierCalls<'a> {
    pub fn of(tables: &'a mut Tables) -> Self {
        Self(tables)
    }

    /// Has the programs note when a call returns. Nothing follows from it until it is confirmed.
    pub fn watch(&mut self, thread: (u32, u32), call: EarlierCall) -> Result<(), AttachError> {
        // In this order: what is noted of a call must find its place.
        self.0.hash(EARLIER_RETURNS)?.insert(key_of(thread), 0)?;
        self.0.hash(EARLIER_CALLS)?.insert(key_of(thread), EarlierCall { is_confirmed: 0, ..call })
    }

    /// All that the thread calls is inside this call from now on, until it returns. An error if the thread has ended.
    pub fn confirm(&mut self, thread: (u32, u32), call: EarlierCall) -> Result<(), AttachError> {
        self.0.hash(EARLIER_CALLS)?.replace(key_of(thread), EarlierCall { is_confirmed: 1, ..call })
    }

    /// Watches the thread no longer.
    pub fn forget(&mut self, thread: (u32, u32)) -> Result<(), AttachError> {
        self.0.hash(EARLIER_CALLS)?.remove(key_of(thread))?;
        self.0.hash(EARLIER_RETURNS)?.remove(key_of(thread))
    }

    /// When a call has returned, ns; `None`: it has not.
    pub fn returned_ns(&mut self, thread: (u32, u32)) -> Result<Option<u64>, AttachError> {
        Ok(self.0.hash(EARLIER_RETURNS)?.get(key_of(thread)).filter(|&ns| ns > 0))
    }
}

/// As `bpf_get_current_pid_tgid` has it.
fn key_of((process, thread): (u32, u32)) -> u64 {
    u64::from(process) << 32 | u64::from(thread)
}

/// Gives back the room for requests of processes that have ended, by their slots. What they never completed stays, to be told.
pub fn release_requests(tables: &mut Tables, processes: &[u32]) -> Result<(), AttachError> {
    let all = tables.entries(REQUESTS)?;
    let mut requests = tables.hash(REQUESTS)?;
    let complete = |request: &mpiprobe_common::Request| request.state & state::ACTIVE == 0;
    let over = all.iter().filter(|(key, request)| processes.contains(&key.process) && complete(request));
    // One that cannot be taken out keeps its room.
    over.for_each(|&(key, _)| drop(requests.remove(key)));
    Ok(())
}

/// Forgets all operations that are under way, where their completion may not have been seen: another one may have their handle by now.
/// As long as traffic is paused ([`Observer::pause_traffic`](crate::Observer::pause_traffic)), the programs add none.
pub fn forget_requests(tables: &mut Tables) -> Result<(), AttachError> {
    let all = tables.entries(REQUESTS)?;
    let mut requests = tables.hash(REQUESTS)?;
    all.iter().try_for_each(|&(key, _)| requests.remove(key))
}
