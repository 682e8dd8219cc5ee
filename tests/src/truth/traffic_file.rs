//! Reads what calls meant from the tables of a file (`struct truth_scope`, `struct truth_traffic` in `tests/truth/truth.h`).

use super::file::TruthError;
use super::reader::Reader;
use super::traffic::{Amounts, Key, Peer, Received, Scope, ScopeKind, Traffic};

const SCOPE_SIZE: u64 = 160;
const TRAFFIC_SIZE: u64 = 128;
/// More than any file has room for.
const MOST: u32 = 1 << 20;

/// Communicators, windows and files. Nothing if the library was not asked for the meaning of calls.
pub(super) fn scopes(file: Reader) -> Result<Vec<Scope>, TruthError> {
    let (scopes_offset, members_offset, scopes) = (file.u64(64)?, file.u64(72)?, file.u32(88)?);
    let mut described: Vec<Scope> = Vec::new();
    if scopes_offset == 0 {
        return Ok(described);
    }
    if scopes > MOST {
        return Err(file.error("too many communicators"));
    }
    for index in 0..u64::from(scopes) {
        let offset = scopes_offset.saturating_add(index * SCOPE_SIZE);
        described.push(scope(file, offset, members_offset, &described)?);
    }
    Ok(described)
}

/// `names` are the functions by index, `described` the [`scopes`].
pub(super) fn traffic(file: Reader, names: &[String], described: &[Scope]) -> Result<Traffic, TruthError> {
    let (scopes_offset, traffic_offset, entries) = (file.u64(64)?, file.u64(80)?, file.u32(96)?);
    if scopes_offset == 0 {
        return Ok(Traffic::default());
    }
    if entries > MOST {
        return Err(file.error("too many entries"));
    }
    let mut traffic = Traffic { untold: file.u64(104)?, ..Traffic::default() };
    for index in 0..u64::from(entries) {
        let offset = traffic_offset.saturating_add(index * TRAFFIC_SIZE);
        let function = at(names, file.u32(offset)?).ok_or_else(|| file.error("no such function"))?;
        let started_by = numbered(names, file.u32(offset + 4)?);
        let scope = numbered(described, file.u32(offset + 8)?);
        let key = Key { function, started_by, scope, peer: peer(file.i32(offset + 12)?) };
        // A receive from anybody is moved to its source's entry when it is complete.
        let amounts = amounts(file, offset + 16)?;
        if amounts != Amounts::default() {
            *traffic.entries.entry(key).or_default() += amounts;
        }
    }
    Ok(traffic)
}

fn at<T: Clone>(list: &[T], index: u32) -> Option<T> {
    list.get(usize::try_from(index).ok()?).cloned()
}

/// By index + 1, where 0 stands for none.
fn numbered<T: Clone>(list: &[T], number: u32) -> Option<T> {
    at(list, number.checked_sub(1)?)
}

/// Communicators come before what was made with them.
fn scope(file: Reader, offset: u64, members_offset: u64, before: &[Scope]) -> Result<Scope, TruthError> {
    let kind = match file.u32(offset + 128)? {
        1 => ScopeKind::Communicator,
        2 => ScopeKind::Window,
        3 => ScopeKind::File,
        _ => return Err(file.error("no such kind of communicator")),
    };
    let members = |size: u64, first: u64| -> Result<Vec<Option<u32>>, TruthError> {
        let (size, first) = (file.u32(offset + size)?, u64::from(file.u32(offset + first)?));
        if size > MOST {
            return Err(file.error("too many members"));
        }
        let member = |index: u64| file.i32(members_offset.saturating_add((first + index) * 4));
        (0..u64::from(size)).map(|index| Ok(u32::try_from(member(index)?).ok())).collect()
    };
    Ok(Scope {
        kind,
        name: file.text::<128>(offset)?,
        members: members(136, 140)?,
        remote_members: members(144, 148)?,
        parent: numbered(before, file.u32(offset + 152)?).map(Box::new),
    })
}

fn peer(stored: i32) -> Peer {
    match stored {
        -1 => Peer::None,
        -2 => Peer::Null,
        -3 => Peer::Any,
        _ => u32::try_from(stored).map_or(Peer::Foreign, Peer::Rank),
    }
}

fn amounts(file: Reader, offset: u64) -> Result<Amounts, TruthError> {
    let received = |offset: u64| {
        Ok(Received { messages: file.u64(offset)?, bytes: file.u64(offset + 8)?, capacity: file.u64(offset + 16)? })
    };
    Ok(Amounts {
        calls: file.u64(offset)?,
        sends: file.u64(offset + 8)?,
        sent: file.u64(offset + 16)?,
        received: received(offset + 24)?,
        ignored: received(offset + 48)?,
        hidden: received(offset + 72)?,
        open: file.u64(offset + 96)?,
    })
}
