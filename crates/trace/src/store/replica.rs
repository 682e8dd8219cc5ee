//! A window as another process keeps it, by what is told of it there.

use std::sync::Arc;

use mpiprobe_functions::FunctionId;

use super::{
    chunk::Kind,
    columns::Reading,
    definition::Definition,
    error::FollowError,
    kept::{Dropped, Kept},
    relay::{BEFORE, CHUNK, KNOWN, WANTED},
    stored::{Keeper as _, Stored},
    window::Window,
    wire::Malformed,
};
use crate::{
    definitions::LocationId,
    event::{Event, PhaseChange},
    part::Part,
};

/// A window that is kept a second time.
#[derive(Debug)]
pub struct Replica {
    window: Arc<Window>,
    /// What numbers of functions mean; empty: they were not named yet.
    functions: Vec<FunctionId>,
}

impl Replica {
    /// `window`: an empty one.
    pub fn new(window: Window) -> Self {
        Self { window: Arc::new(window), functions: Vec::new() }
    }

    pub fn window(&self) -> Arc<Window> {
        Arc::clone(&self.window)
    }

    /// The next message of [`Window::relay`]. Gives why what there is now is to be kept, if it says that: [`Window::want`].
    pub fn take(&mut self, message: &[u8]) -> Result<Option<String>, FollowError> {
        if let Some((&WANTED, why)) = message.split_first() {
            return Ok(Some(String::from_utf8_lossy(why).into_owned()));
        }
        self.understand(message).map_err(|Malformed(why)| FollowError(why)).map(|()| None)
    }

    fn understand(&mut self, message: &[u8]) -> Result<(), Malformed> {
        match message.split_first() {
            Some((&BEFORE, before)) => {
                let dropped: Vec<Dropped> =
                    serde_json::from_slice(before).map_err(|_| Malformed("what is before makes no sense"))?;
                let is_short = !dropped.is_empty();
                self.window.begin_with(Kept::after(dropped), is_short);
                Ok(())
            }
            Some((&CHUNK, chunk)) => match Stored::split(chunk)? {
                (chunk, []) => self.keep(chunk),
                _ => Err(Malformed("it is longer than its chunk")),
            },
            Some((&KNOWN, known)) => {
                let (until_ns, mut rest) = known.split_first_chunk().ok_or(Malformed("it has no time"))?;
                let mut open_calls = Vec::new();
                while !rest.is_empty() {
                    let chunk;
                    (chunk, rest) = Stored::split(rest)?;
                    let location = LocationId(chunk.head.location);
                    open_calls.extend(self.events(&chunk)?.into_iter().map(|event| (location, event)));
                }
                self.window.note(u64::from_le_bytes(*until_ns), open_calls);
                Ok(())
            }
            _ => Err(Malformed("it is of an unknown kind")),
        }
    }

    fn keep(&mut self, chunk: Stored) -> Result<(), Malformed> {
        if chunk.head.kind == Kind::Events {
            let (mut calls, mut phase): (u64, Option<PhaseChange>) = (0, None);
            for event in self.events(&chunk)? {
                match event {
                    Event::Call(_) => calls += 1,
                    Event::Phase(change) => phase = Some(change),
                }
            }
            self.window.keep(chunk, calls, phase);
            return Ok(());
        }
        let payload = chunk.head.payload(&chunk.payload)?;
        let definitions: Vec<Definition> =
            serde_json::from_slice(&payload).map_err(|_| Malformed("its definitions make no sense"))?;
        for definition in definitions {
            if matches!(definition, Definition::Functions(_)) {
                // Chunks are kept as they are, and read with the functions of this program.
                if definition != Definition::own_functions() {
                    return Err(Malformed("it is of another version of mpiprobe"));
                }
                self.functions = FunctionId::all().collect();
            }
            if definition != Definition::End {
                self.window.define(definition);
            }
        }
        Ok(())
    }

    fn events(&self, chunk: &Stored) -> Result<Vec<Event>, Malformed> {
        if self.functions.is_empty() {
            return Err(Malformed("its functions were not named"));
        }
        let head = &chunk.head;
        let payload = head.payload(&chunk.payload)?;
        let (mut reading, shapes) = Reading::new(payload, head.count, head.first_number, &self.functions, |_| {})?;
        let mut part = Part { shapes, rows: Vec::new(), changes: Vec::new() };
        reading.rows(head.count, &mut part.rows, &mut part.changes)?;
        Ok(part.events().collect())
    }
}
