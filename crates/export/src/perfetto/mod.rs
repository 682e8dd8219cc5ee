//! Perfetto's protocol buffers, which ui.perfetto.dev and `trace_processor` read.
//!
//! A rank is a process, a thread a thread, a call a slice. A message is a flow from the slice of the call that has sent it to an instant at
//! the end of the one that has received it: flows that end in slices would go by the slices' beginnings, and those of receives that are
//! posted first lead backwards.

mod proto;

use std::io::{self, Write};

use hashbrown::HashMap;
use mpiprobe_functions::FunctionId;
use mpiprobe_trace::{
    Bytes, CommunicatorId, Definitions, LocationId, Operation, Partner, PhaseChange, ProcessId, Root, SiteId, Trace,
};

use self::proto::{
    Message,
    field::{annotation, clocks, defaults, event, interned, packet, process, thread, trace as file, track},
};
use crate::{
    course::{Begun, Flow, Writer, follow},
    error::ExportError,
    names::Names,
    summary::{Exported, Selection, realtime},
};

/// Kinds of track events.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
/// Flags of a packet: nothing is known of what came before, or something must be.
const CLEARED: u64 = 1;
const NEEDS: u64 = 2;
/// Order of tracks and processes: as they say.
const EXPLICIT: u64 = 3;
const PROCESSES_EXPLICIT: u64 = 1;
/// Clocks.
const REALTIME: u64 = 1;
const BOOTTIME: u64 = 6;
/// The name of instants at which messages arrive, in each sequence; numbers of functions are behind it.
const ARRIVAL: u64 = 1;
const FIRST_NAME: u64 = 2;
/// Texts are of communicators, and of call sites behind this number.
const SITE_TEXTS: u64 = 1 << 24;

/// Names of what is told of a call.
const ANNOTATIONS: [&str; 13] = [
    "to",
    "from",
    "tag",
    "bytes sent",
    "bytes received",
    "communicator",
    "root",
    "called at",
    "request",
    "completes",
    "result",
    "number",
    "lock",
];
const TO: usize = 0;
const FROM: usize = 1;
const TAG: usize = 2;
const SENT: usize = 3;
const RECEIVED: usize = 4;
const COMMUNICATOR: usize = 5;
const ROOT: usize = 6;
const CALLED_AT: usize = 7;
const REQUEST: usize = 8;
const COMPLETES: usize = 9;
const RESULT: usize = 10;
const NUMBER: usize = 11;
const LOCK: usize = 12;

/// Writes a trace. `progress` is told of events that were dealt with.
pub fn write(
    trace: &dyn Trace,
    selection: &Selection<'_>,
    to: &mut dyn Write,
    progress: &dyn Fn(u64),
) -> Result<Exported, ExportError> {
    let definitions = trace.definitions();
    let names = Names::new(definitions, |location| selection.has(location));
    let mut writer = PerfettoWriter {
        to,
        definitions,
        names: &names,
        packet: Message::default(),
        sequences: definitions.locations.iter().map(|_| Sequence::default()).collect(),
    };
    writer.tracks(selection, selection.whole(trace).from_ns)?;
    let exported = follow(trace, selection, &mut writer, progress)?;
    to.flush()?;
    Ok(exported)
}

/// What a sequence of packets has said already.
#[derive(Debug, Default)]
struct Sequence {
    has_begun: bool,
    names: HashMap<FunctionId, u64>,
    categories: HashMap<&'static str, u64>,
    sites: HashMap<SiteId, u64>,
    communicators: HashMap<CommunicatorId, u64>,
}

struct PerfettoWriter<'a> {
    to: &'a mut dyn Write,
    definitions: &'a Definitions,
    names: &'a Names<'a>,
    packet: Message,
    sequences: Vec<Sequence>,
}

impl PerfettoWriter<'_> {
    fn send(&mut self) -> io::Result<()> {
        let mut whole = Message::default();
        whole.bytes(file::PACKET, &self.packet.0);
        self.packet.clear();
        self.to.write_all(&whole.0)
    }

    /// Numbers of tracks: those of processes, and of threads.
    fn process_track(place: u32) -> u64 {
        (u64::from(place) + 1) << 32
    }

    fn thread_track(&self, location: LocationId) -> u64 {
        let process = self.definitions.location(location).map(|location| location.process);
        let place = process.and_then(|process| self.names.place(process)).unwrap_or(0);
        Self::process_track(place) | u64::from(self.names.thread(location) + 1)
    }

    /// Process ids of several nodes may be the same: then they are numbered.
    fn pid(&self, id: ProcessId) -> i64 {
        let several = self.definitions.nodes.len() > 1;
        match self.definitions.process(id) {
            Some(process) if !several => process.pid.into(),
            _ => i64::from(self.names.place(id).unwrap_or(0)) + 1,
        }
    }

    fn tracks(&mut self, selection: &Selection<'_>, from_ns: u64) -> io::Result<()> {
        self.packet.message(packet::TRACK_DESCRIPTOR, |to| {
            to.number(track::UUID, 0);
            to.number(track::CHILD_ORDERING, EXPLICIT);
            to.number(track::PROCESS_ORDERING, PROCESSES_EXPLICIT);
        });
        self.packet.number(packet::SEQUENCE, 1);
        self.send()?;
        if let Some(realtime_ns) = realtime(self.definitions, from_ns) {
            self.packet.message(packet::CLOCK_SNAPSHOT, |to| {
                for (id, ns) in [(BOOTTIME, from_ns), (REALTIME, realtime_ns)] {
                    to.message(clocks::CLOCKS, |to| {
                        to.number(clocks::ID, id);
                        to.number(clocks::TIMESTAMP, ns);
                    });
                }
            });
            self.packet.number(packet::SEQUENCE, 1);
            self.send()?;
        }
        for (place, &id) in (0..).zip(&self.names.processes) {
            let Some(known) = self.definitions.process(id) else { continue };
            let host = self.definitions.nodes.get(known.node.index()).map_or("", |node| node.host.as_str());
            let (name, pid) = (self.names.process(id), self.pid(id));
            let within = selection.clocks_within_ns().map(|ns| format!("times of other nodes are true to ± {ns} ns"));
            self.packet.message(packet::TRACK_DESCRIPTOR, |to| {
                to.number(track::UUID, Self::process_track(place));
                to.text(track::NAME, &name);
                to.message(track::PROCESS, |to| {
                    to.int(process::PID, pid);
                    to.text(process::NAME, &name);
                    if !host.is_empty() {
                        to.text(process::LABELS, host);
                    }
                });
                to.number(track::RANK, place.into());
                to.number(track::CHILD_ORDERING, EXPLICIT);
                to.number(track::THREAD_ORDERING, PROCESSES_EXPLICIT);
                if let Some(within) = within {
                    to.text(track::DESCRIPTION, &within);
                }
            });
            self.packet.number(packet::SEQUENCE, 1);
            self.send()?;
            for location in self.definitions.threads(id) {
                let Some(known) = self.definitions.location(location) else { continue };
                let (uuid, number) = (self.thread_track(location), self.names.thread(location));
                self.packet.message(packet::TRACK_DESCRIPTOR, |to| {
                    to.number(track::UUID, uuid);
                    to.number(track::PARENT, Self::process_track(place));
                    to.message(track::THREAD, |to| {
                        to.int(thread::PID, pid);
                        to.int(thread::TID, known.tid.into());
                        to.text(
                            thread::NAME,
                            &if number == 0 { name.clone() } else { format!("thread {}", known.tid) },
                        );
                    });
                    to.number(track::RANK, number.into());
                });
                self.packet.number(packet::SEQUENCE, 1);
                self.send()?;
            }
        }
        Ok(())
    }

    /// Begins a packet of a location.
    fn event(&mut self, location: LocationId, ns: u64) {
        let uuid = self.thread_track(location);
        self.packet.number(packet::TIMESTAMP, ns);
        self.packet.number(packet::SEQUENCE, u64::from(location.0) + 2);
        let Some(sequence) = self.sequences.get_mut(location.index()) else { return };
        if std::mem::replace(&mut sequence.has_begun, true) {
            self.packet.number(packet::SEQUENCE_FLAGS, NEEDS);
            return;
        }
        self.packet.number(packet::SEQUENCE_FLAGS, CLEARED | NEEDS);
        self.packet.number(packet::FIRST_ON_SEQUENCE, 1);
        self.packet.message(packet::DEFAULTS, |to| {
            to.message(defaults::TRACK_EVENT, |to| to.number(event::TRACK_UUID, uuid));
        });
        self.packet.message(packet::INTERNED_DATA, |to| {
            named(to, interned::NAMES, ARRIVAL, "message");
            for (iid, name) in (1..).zip(ANNOTATIONS) {
                named(to, interned::ANNOTATION_NAMES, iid, name);
            }
        });
    }
}

fn named(to: &mut Message, field: u32, iid: u64, name: &str) {
    to.message(field, |to| {
        to.number(interned::IID, iid);
        to.text(interned::VALUE, name);
    });
}

fn annotate(to: &mut Message, name: usize, write: impl FnOnce(&mut Message)) {
    to.message(event::ANNOTATIONS, |to| {
        to.number(annotation::NAME_IID, name as u64 + 1);
        write(to);
    });
}

fn partner(to: &mut Message, name: usize, partner: Partner) {
    match partner {
        Partner::Rank(rank) => annotate(to, name, |to| to.number(annotation::UINT, rank.into())),
        Partner::Null => annotate(to, name, |to| to.text(annotation::TEXT, "MPI_PROC_NULL")),
        Partner::Any => annotate(to, name, |to| to.text(annotation::TEXT, "MPI_ANY_SOURCE")),
        Partner::Unknown => annotate(to, name, |to| to.text(annotation::TEXT, "?")),
        Partner::Group => {}
    }
}

fn amount(to: &mut Message, name: usize, bytes: Bytes) {
    match bytes {
        Bytes::Known(bytes) => annotate(to, name, |to| to.number(annotation::UINT, bytes)),
        Bytes::AtMost(bytes) => annotate(to, name, |to| to.text(annotation::TEXT, &format!("at most {bytes}"))),
        Bytes::Unknown => {}
    }
}

fn operation(to: &mut Message, operation: &Operation) {
    if let Some(send) = operation.send {
        partner(to, TO, send.partner);
        amount(to, SENT, send.bytes);
    }
    if let Some(receive) = operation.receive {
        partner(to, FROM, receive.partner);
        amount(to, RECEIVED, receive.bytes);
    }
    if let Some(tag) = operation.send.or(operation.receive).and_then(|transfer| transfer.tag) {
        annotate(to, TAG, |to| to.int(annotation::INT, tag.into()));
    }
    if let Some(Root::Rank(rank)) = operation.root {
        annotate(to, ROOT, |to| to.number(annotation::UINT, rank.into()));
    }
    if let Some(target) = operation.target {
        partner(to, TO, target.partner);
        if let Some(lock) = target.lock {
            annotate(to, LOCK, |to| to.text(annotation::TEXT, lock.name()));
        }
    }
}

/// The number of something in a sequence, and whether it is new there.
fn number<K: std::hash::Hash + Eq>(known: &mut HashMap<K, u64>, key: K, first: u64) -> (u64, bool) {
    let next = known.len() as u64 + first;
    let number = *known.entry(key).or_insert(next);
    (number, number == next)
}

impl Writer for PerfettoWriter<'_> {
    fn begin(&mut self, begun: &Begun<'_>) -> io::Result<()> {
        self.event(begun.location, begun.begin_ns);
        let definitions = self.definitions;
        let Some(sequence) = self.sequences.get_mut(begun.location.index()) else { return Ok(()) };
        let call = begun.call;
        let function = call.function().function();
        let (name, name_is_new) = number(&mut sequence.names, call.function(), FIRST_NAME);
        let (category, category_is_new) = number(&mut sequence.categories, function.group.title(), 1);
        let site = call.call_site.map(|site| (site, number(&mut sequence.sites, site, 1)));
        let communicator = call.operation.communicator;
        let communicator = communicator.map(|id| (id, number(&mut sequence.communicators, id, 1)));
        let text_is_new = communicator.is_some_and(|(_, (_, is_new))| is_new);
        let site_is_new = site.is_some_and(|(_, (_, is_new))| is_new);
        if name_is_new || category_is_new || text_is_new || site_is_new {
            self.packet.message(packet::INTERNED_DATA, |to| {
                if name_is_new {
                    named(to, interned::NAMES, name, function.name);
                }
                if category_is_new {
                    named(to, interned::CATEGORIES, category, function.group.title());
                }
                if let Some((id, (iid, true))) = communicator {
                    let name = definitions.communicator(id).map_or("?", |known| &known.name);
                    to.message(interned::TEXTS, |to| {
                        to.number(interned::IID, iid);
                        to.bytes(interned::VALUE, name.as_bytes());
                    });
                }
                if let Some((site, (iid, true))) = site
                    && let Some(known) = definitions.call_site(site)
                {
                    to.message(interned::SOURCE_LOCATIONS, |to| {
                        to.number(interned::IID, iid);
                        to.text(interned::VALUE, known.at.file.as_deref().unwrap_or(&known.path));
                        to.text(interned::FUNCTION, known.at.function.as_deref().unwrap_or(&known.text));
                        to.number(interned::LINE, known.at.line.unwrap_or(0).into());
                    });
                    to.message(interned::TEXTS, |to| {
                        to.number(interned::IID, SITE_TEXTS + iid);
                        to.bytes(interned::VALUE, known.text.as_bytes());
                    });
                }
            });
        }
        self.packet.message(packet::TRACK_EVENT, |to| {
            to.number(event::TYPE, BEGIN);
            to.number(event::NAME_IID, name);
            to.number(event::CATEGORY_IIDS, category);
            operation(to, &call.operation);
            if let Some((_, (iid, _))) = communicator {
                annotate(to, COMMUNICATOR, |to| to.number(annotation::TEXT_IID, iid));
            }
            if let Some((site, (iid, _))) = site {
                to.number(event::SOURCE_LOCATION_IID, iid);
                if definitions.call_site(site).is_some() {
                    annotate(to, CALLED_AT, |to| to.number(annotation::TEXT_IID, SITE_TEXTS + iid));
                }
            }
            if let Some(request) = begun.request {
                annotate(to, REQUEST, |to| to.number(annotation::UINT, request));
            }
            let completed: Vec<String> = begun.changes().take(16).map(|(request, _)| request.to_string()).collect();
            if !completed.is_empty() {
                let more = begun.changes.len().saturating_sub(completed.len());
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                annotate(to, COMPLETES, |to| to.text(annotation::TEXT, &(completed.join(", ") + &more)));
            }
            if call.result != 0 {
                annotate(to, RESULT, |to| to.int(annotation::INT, call.result.into()));
            }
            annotate(to, NUMBER, |to| to.number(annotation::UINT, begun.number));
            for &flow in begun.sends {
                to.fixed(event::FLOW_IDS, flow);
            }
        });
        self.send()
    }

    fn end(&mut self, location: LocationId, ns: u64, received: &[Flow]) -> io::Result<()> {
        for &flow in received {
            self.late(location, ns, flow)?;
        }
        self.event(location, ns);
        self.packet.message(packet::TRACK_EVENT, |to| to.number(event::TYPE, END));
        self.send()
    }

    fn late(&mut self, location: LocationId, ns: u64, received: Flow) -> io::Result<()> {
        self.event(location, ns);
        self.packet.message(packet::TRACK_EVENT, |to| {
            to.number(event::TYPE, INSTANT);
            to.number(event::NAME_IID, ARRIVAL);
            to.fixed(event::TERMINATING_FLOW_IDS, received);
        });
        self.send()
    }

    fn phase(&mut self, location: LocationId, change: &PhaseChange) -> io::Result<()> {
        let text = match &change.phase {
            Some(phase) if change.is_on => format!("phase {phase}"),
            _ if change.is_on => "no phase".into(),
            _ => "counting switched off".into(),
        };
        self.event(location, change.at_ns);
        self.packet.message(packet::TRACK_EVENT, |to| {
            to.number(event::TYPE, INSTANT);
            to.text(event::NAME, &text);
        });
        self.send()
    }
}
