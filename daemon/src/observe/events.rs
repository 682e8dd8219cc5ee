//! Notices about the life of processes.

use mpiprobe_common::{EndedInCall, Event, event::EventKind, thread::ARGUMENT_WORDS};

use super::ArgumentWords;

/// What happened to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    pub kind: NoticeKind,
    pub tgid: u32,
    /// Process slot.
    pub process: u32,
    /// When, ns.
    pub time_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// It became a target by exec, or stays one.
    Exec,
    /// It exec'ed a program that is no target.
    ExecAway,
    /// It wants what was counted so far to be written out.
    Flush,
    /// A thread of it ended inside a call.
    EndedInCall {
        tid: u32,
        function: u32,
        started_ns: u64,
        /// `None`: it could not be read.
        call_site: Option<u64>,
        arguments: ArgumentWords,
    },
}

impl Notice {
    /// From the bytes in the ring buffer; `None` for what this version does not know.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let event = parse(bytes)?;
        let kind = match event.kind {
            kind if kind == EventKind::Exec as u32 => NoticeKind::Exec,
            kind if kind == EventKind::ExecAway as u32 => NoticeKind::ExecAway,
            kind if kind == EventKind::Flush as u32 => NoticeKind::Flush,
            kind if kind == EventKind::EndedInCall as u32 => NoticeKind::EndedInCall {
                tid: event.tid,
                function: event.function_plus_1.checked_sub(1)?,
                started_ns: event.started_ns,
                call_site: (event.call_site != 0).then_some(event.call_site),
                arguments: ArgumentWords { words: arguments(bytes)?, has_stack: event.has_stack != 0 },
            },
            _ => return None,
        };
        Some(Self { kind, tgid: event.tgid, process: event.process, time_ns: event.time_ns })
    }
}

fn arguments(bytes: &[u8]) -> Option<[u64; ARGUMENT_WORDS]> {
    let bytes = bytes.get(std::mem::offset_of!(EndedInCall, arguments)..size_of::<EndedInCall>())?;
    let mut words = [0; ARGUMENT_WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    Some(words)
}

/// Field by field, so that neither alignment nor length is trusted.
fn parse(bytes: &[u8]) -> Option<Event> {
    let word = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let half = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    Some(Event {
        kind: half(std::mem::offset_of!(Event, kind))?,
        tgid: half(std::mem::offset_of!(Event, tgid))?,
        tid: half(std::mem::offset_of!(Event, tid))?,
        process: half(std::mem::offset_of!(Event, process))?,
        time_ns: word(std::mem::offset_of!(Event, time_ns))?,
        function_plus_1: half(std::mem::offset_of!(Event, function_plus_1))?,
        has_stack: half(std::mem::offset_of!(Event, has_stack))?,
        started_ns: word(std::mem::offset_of!(Event, started_ns))?,
        call_site: word(std::mem::offset_of!(Event, call_site))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_short_or_unknown_is_nothing() {
        assert_eq!(Notice::read(&[]), None);
        assert_eq!(Notice::read(&[1; size_of::<Event>() - 1]), None);
        assert_eq!(Notice::read(&[0xff; size_of::<Event>()]), None);
    }

    #[test]
    fn a_call_that_its_thread_did_not_survive_has_arguments() {
        let mut bytes = vec![0; size_of::<EndedInCall>()];
        bytes[0] = EventKind::EndedInCall as u8;
        assert_eq!(Notice::read(&bytes), None, "of no function");
        bytes[std::mem::offset_of!(Event, function_plus_1)] = 5;
        bytes[std::mem::offset_of!(EndedInCall, arguments) + 8] = 42;
        let Some(Notice { kind: NoticeKind::EndedInCall { function, arguments, .. }, .. }) = Notice::read(&bytes)
        else {
            panic!("it is one");
        };
        assert_eq!((function, arguments.words[1], arguments.has_stack), (4, 42, false));
        bytes.pop();
        assert_eq!(Notice::read(&bytes), None, "cut short");
    }

    #[test]
    fn exec_is_read() {
        let mut bytes = [0; size_of::<Event>()];
        bytes[0] = 1;
        bytes[4] = 77;
        bytes[12] = 3;
        bytes[16] = 9;
        assert_eq!(Notice::read(&bytes), Some(Notice { kind: NoticeKind::Exec, tgid: 77, process: 3, time_ns: 9 }));
    }
}
