//! The log of events of one process: every outermost call of every thread, in order, with its arguments (`struct truth_event` and
//! `struct truth_change` in `tests/truth/truth.h`).

use std::collections::BTreeMap;

use mpiprobe_trace::Lock;

use super::file::TruthError;
use super::reader::Reader;
use super::traffic::Scope;

const LOG_SIZE: u64 = 64;
const EVENT_SIZE: u64 = 112;
const CHANGE_SIZE: u64 = 64;
/// `TRUTH_EVENTS`, `TRUTH_CHANGES`.
const EVENTS: u32 = 1 << 16;
const CHANGES: u32 = 1 << 16;

/// A rank in a communicator, or a tag, as MPI has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Given {
    /// The function has none.
    Nothing,
    /// `MPI_PROC_NULL`.
    Null,
    /// `MPI_ANY_SOURCE`, `MPI_ANY_TAG`.
    Any,
    /// `MPI_ROOT`.
    Root,
    Number(i32),
}

/// A call that has returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedCall {
    /// Which of the thread's calls that have returned, from 0 on.
    pub number: u32,
    pub function: String,
    /// CLOCK_MONOTONIC, ns, around the library's function.
    pub start_ns: u64,
    pub end_ns: u64,
    /// `None`: its meaning is not recorded, for the function does not move data or complete what does.
    pub meaning: Option<Meaning>,
    pub changes: Vec<LoggedChange>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meaning {
    pub scope: Option<Scope>,
    /// Which of the scopes it is.
    pub scope_number: u32,
    pub result: i32,
    pub destination: Given,
    pub root: Given,
    pub source: Given,
    pub given_source: Given,
    pub send_tag: Given,
    pub receive_tag: Given,
    pub given_tag: Given,
    pub is_ignored: bool,
    pub sent: u64,
    pub received: u64,
    /// Bytes that might have come.
    pub capacity: u64,
    /// The request that it has given back; `None`: none that could be told from others.
    pub request: Option<u64>,
    /// How it locks a window; `None`: it locks none.
    pub lock: Option<Lock>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    Started,
    Completed,
    Cancelled,
    Failed,
    Released,
}

/// What a call has done to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedChange {
    pub kind: ChangeKind,
    /// That has posted it.
    pub function: String,
    pub scope: Option<Scope>,
    pub source: Given,
    pub given_source: Given,
    pub tag: Given,
    pub is_ignored: bool,
    pub request: u64,
    pub received: u64,
    pub capacity: u64,
}

/// All that one process has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    /// By thread id, in their order.
    pub threads: BTreeMap<u32, Vec<LoggedCall>>,
    /// The first calls and changes, whose place later ones have got.
    pub overwritten: u32,
}

pub(super) fn log(file: Reader, names: &[String], scopes: &[Scope]) -> Result<Log, TruthError> {
    let offset = file.u64(120)?;
    if offset == 0 {
        return Ok(Log::default());
    }
    let (events, changes) = (file.u32(offset)?, file.u32(offset + 4)?);
    let events_offset = offset.saturating_add(LOG_SIZE);
    let changes_offset = events_offset.saturating_add(u64::from(EVENTS) * EVENT_SIZE);
    let mut by_call: BTreeMap<(u32, u32), Vec<LoggedChange>> = BTreeMap::new();
    for index in 0..u64::from(changes.min(CHANGES)) {
        let at = changes_offset.saturating_add(index * CHANGE_SIZE);
        let call = (file.u32(at)?, file.u32(at + 4)?);
        by_call.entry(call).or_default().push(change(file, at, names, scopes)?);
    }
    let mut threads: BTreeMap<u32, BTreeMap<u32, LoggedCall>> = BTreeMap::new();
    for index in 0..u64::from(events.min(EVENTS)) {
        let at = events_offset.saturating_add(index * EVENT_SIZE);
        let (tid, number) = (file.u32(at)?, file.u32(at + 4)?);
        let changes = by_call.remove(&(tid, number)).unwrap_or_default();
        threads.entry(tid).or_default().insert(number, event(file, at, names, scopes, changes)?);
    }
    let threads = threads.into_iter().map(|(tid, calls)| (tid, calls.into_values().collect()));
    let overwritten = events.saturating_sub(EVENTS) + changes.saturating_sub(CHANGES);
    Ok(Log { threads: threads.collect(), overwritten })
}

fn event(
    file: Reader,
    at: u64,
    names: &[String],
    scopes: &[Scope],
    changes: Vec<LoggedChange>,
) -> Result<LoggedCall, TruthError> {
    let given = |offset: u64| file.i32(at + offset).map(given);
    let scope_number = file.u32(at + 32)?;
    let meaning = Meaning {
        scope: numbered(scopes, scope_number),
        scope_number,
        result: file.i32(at + 36)?,
        destination: given(40)?,
        root: given(44)?,
        source: given(48)?,
        given_source: given(52)?,
        send_tag: given(56)?,
        receive_tag: given(60)?,
        given_tag: given(64)?,
        is_ignored: file.u32(at + 68)? != 0,
        sent: file.u64(at + 72)?,
        received: file.u64(at + 80)?,
        capacity: file.u64(at + 88)?,
        request: Some(file.u64(at + 96)?).filter(|&request| request != 0),
        lock: match file.u32(at + 104)? {
            1 => Some(Lock::Exclusive),
            2 => Some(Lock::Shared),
            _ => None,
        },
    };
    Ok(LoggedCall {
        number: file.u32(at + 4)?,
        function: name(file, names, at + 8)?,
        start_ns: file.u64(at + 16)?,
        end_ns: file.u64(at + 24)?,
        meaning: (file.u32(at + 12)? != 0).then_some(meaning),
        changes,
    })
}

fn change(file: Reader, at: u64, names: &[String], scopes: &[Scope]) -> Result<LoggedChange, TruthError> {
    let given = |offset: u64| file.i32(at + offset).map(given);
    let kinds =
        [ChangeKind::Started, ChangeKind::Completed, ChangeKind::Cancelled, ChangeKind::Failed, ChangeKind::Released];
    let kind = kinds.get(file.u32(at + 8)? as usize).copied().ok_or_else(|| file.error("no such change"))?;
    Ok(LoggedChange {
        kind,
        function: name(file, names, at + 12)?,
        scope: numbered(scopes, file.u32(at + 16)?),
        source: given(20)?,
        given_source: given(24)?,
        tag: given(28)?,
        is_ignored: file.u32(at + 32)? != 0,
        request: file.u64(at + 40)?,
        received: file.u64(at + 48)?,
        capacity: file.u64(at + 56)?,
    })
}

fn given(stored: i32) -> Given {
    match stored {
        i32::MIN => Given::Nothing,
        -1001 => Given::Null,
        -1002 => Given::Any,
        -1003 => Given::Root,
        number => Given::Number(number),
    }
}

fn name(file: Reader, names: &[String], at: u64) -> Result<String, TruthError> {
    let index = usize::try_from(file.u32(at)?).ok();
    index.and_then(|index| names.get(index)).cloned().ok_or_else(|| file.error("no such function"))
}

fn numbered(scopes: &[Scope], number: u32) -> Option<Scope> {
    scopes.get(usize::try_from(number.checked_sub(1)?).ok()?).cloned()
}
