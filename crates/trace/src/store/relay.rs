//! A window that is kept a second time, by another process: what comes into the one is told to the other.
//!
//! A message is a byte that says what follows: what was dropped before ([`BEFORE`]); a chunk as it is in a file ([`CHUNK`]); until when all
//! is known, and chunks of calls that are open ([`KNOWN`]); or why what there is now is to be kept ([`WANTED`]).

use std::fmt;

use super::{
    definition::Definition,
    dump::encoded,
    error::WriteError,
    kept::Kept,
    stored::{DEFINITIONS, Stored},
};
use crate::{definitions::LocationId, event::Event};

pub(super) const BEFORE: u8 = 0;
pub(super) const CHUNK: u8 = 1;
pub(super) const KNOWN: u8 = 2;
pub(super) const WANTED: u8 = 3;

/// Takes a message, and says whether more is wanted.
pub(super) type Tell = dyn FnMut(&[u8]) -> bool + Send;

/// Somebody who is told.
pub(super) struct Relay {
    to: Box<Tell>,
    /// What was defined since the last message.
    definitions: Vec<Definition>,
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("definitions", &self.definitions).finish_non_exhaustive()
    }
}

impl Relay {
    /// Of somebody who is told of all that is kept first; `None`: he does not want it.
    pub(super) fn begin(kept: &Kept, to: Box<Tell>) -> Result<Option<Self>, WriteError> {
        let mut relay = Self { to, definitions: vec![Definition::own_functions()] };
        relay.definitions.extend(kept.known.definitions());
        let before = serde_json::to_vec(kept.dropped())?;
        let is_wanted = relay.tell(BEFORE, &before) && kept.chunks().iter().all(|chunk| relay.keep(&chunk.stored));
        Ok(is_wanted.then_some(relay))
    }

    pub(super) fn define(&mut self, definition: &Definition) {
        self.definitions.push(definition.clone());
    }

    pub(super) fn keep(&mut self, stored: &Stored) -> bool {
        self.tell_definitions() && self.tell(CHUNK, &stored.bytes(0))
    }

    pub(super) fn note(&mut self, known_until_ns: u64, open_calls: &[(LocationId, Event)]) -> bool {
        let Ok(chunks) = encoded(open_calls) else { return false };
        let mut known = known_until_ns.to_le_bytes().to_vec();
        known.extend(chunks.iter().flat_map(|chunk| chunk.stored.bytes(0)));
        self.tell_definitions() && self.tell(KNOWN, &known)
    }

    pub(super) fn want(&mut self, why: &str) -> bool {
        self.tell_definitions() && self.tell(WANTED, why.as_bytes())
    }

    /// What events refer to comes before them.
    fn tell_definitions(&mut self) -> bool {
        let definitions = std::mem::take(&mut self.definitions);
        definitions.chunks(DEFINITIONS).all(|definitions| {
            let chunk = Stored::of_definitions(definitions);
            chunk.is_ok_and(|chunk| self.tell(CHUNK, &chunk.bytes(0)))
        })
    }

    fn tell(&mut self, what: u8, content: &[u8]) -> bool {
        (self.to)(&[&[what], content].concat())
    }
}
