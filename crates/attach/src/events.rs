//! Notices about the life of processes.

use std::mem::offset_of;

use mpiprobe_common::{EndedInCall, Event, ExecNotice, event::EventKind, thread::ARGUMENT_WORDS};
use mpiprobe_discover::environment::Environment;
use mpiprobe_observe::ArgumentWords;

/// What happened to a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub kind: NoticeKind,
    pub tgid: u32,
    /// Process slot.
    pub process: u32,
    /// When, ns.
    pub time_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// It became a target by exec, or stays one. `None`: the kernel could not tell more.
    Exec(Option<Passed>),
    /// It exec'ed a program that is no target.
    ExecAway,
    /// It wants what was counted so far to be written out.
    Flush,
    /// It is no target, and begins to use MPI where there are probes.
    Newcomer,
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

/// Of a process that exec'ed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The process that has started it; `None`: it is in another pid namespace, or has ended.
    pub parent: Option<u32>,
    pub environment: Environment,
}

impl Notice {
    /// From the bytes in the ring buffer; `None` for what this version does not know.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let event = parse(bytes)?;
        let kind = match event.kind {
            kind if kind == EventKind::Exec as u32 => NoticeKind::Exec(passed(bytes)),
            kind if kind == EventKind::ExecAway as u32 => NoticeKind::ExecAway,
            kind if kind == EventKind::Flush as u32 => NoticeKind::Flush,
            kind if kind == EventKind::Newcomer as u32 => NoticeKind::Newcomer,
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

/// Behind a notice of exec, if it is there.
fn passed(bytes: &[u8]) -> Option<Passed> {
    let half = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let (is_cut, parent) = (half(offset_of!(ExecNotice, cut))? != 0, half(offset_of!(ExecNotice, parent))?);
    let bytes = bytes.get(offset_of!(ExecNotice, environment)..)?;
    // A variable whose beginning is missing is none.
    let begin = if is_cut { memchr::memchr(0, bytes).map_or(bytes.len(), |end| end + 1) } else { 0 };
    let environment = Environment::new(bytes.get(begin..)?.to_vec(), is_cut);
    Some(Passed { parent: (parent != 0).then_some(parent), environment })
}

fn arguments(bytes: &[u8]) -> Option<[u64; ARGUMENT_WORDS]> {
    let bytes = bytes.get(offset_of!(EndedInCall, arguments)..size_of::<EndedInCall>())?;
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
        kind: half(offset_of!(Event, kind))?,
        tgid: half(offset_of!(Event, tgid))?,
        tid: half(offset_of!(Event, tid))?,
        process: half(offset_of!(Event, process))?,
        time_ns: word(offset_of!(Event, time_ns))?,
        function_plus_1: half(offset_of!(Event, function_plus_1))?,
        has_stack: half(offset_of!(Event, has_stack))?,
        started_ns: word(offset_of!(Event, started_ns))?,
        call_site: word(offset_of!(Event, call_site))?,
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
        bytes[offset_of!(Event, function_plus_1)] = 5;
        bytes[offset_of!(EndedInCall, arguments) + 8] = 42;
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
        let kind = NoticeKind::Exec(None);
        assert_eq!(Notice::read(&bytes), Some(Notice { kind, tgid: 77, process: 3, time_ns: 9 }));
    }

    #[test]
    fn what_was_passed_at_an_exec_is_read() {
        let rank = |cut: u8, environment: &[u8]| {
            let mut bytes = vec![0; offset_of!(ExecNotice, environment)];
            bytes[0] = EventKind::Exec as u8;
            bytes[offset_of!(ExecNotice, cut)] = cut;
            bytes[offset_of!(ExecNotice, parent)] = 9;
            bytes.extend_from_slice(environment);
            match Notice::read(&bytes)?.kind {
                NoticeKind::Exec(Some(Passed { parent: Some(9), environment })) => {
                    Some(environment.get("PMI_RANK")?.to_vec())
                }
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(rank(0, b"PMI_RANK=3\0A=1\0"), Some(b"3".to_vec()));
        assert_eq!(rank(1, b"PMI_RANK=3\0A=1\0"), None, "it may be the end of another name");
        assert_eq!(rank(1, b"PMI_RANK=3\0PMI_RANK=4\0"), Some(b"4".to_vec()));
        assert_eq!(rank(1, b"PMI_RANK=3"), None);
        assert_eq!(rank(0, b""), None);
    }
}
