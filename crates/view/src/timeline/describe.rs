//! All that is known of a call, in words.

use mpiprobe_discover::printable;
use mpiprobe_model::WaitKind;
use mpiprobe_replay::{
    CallAt,
    timeline::{Found, Message, Messages, WaitSeen},
};
use mpiprobe_report::present::units::{count, ns};
use mpiprobe_trace::{
    Bytes, Call, Change, Definitions, LocationId, Object, Operation, Partner, Process, RequestChange, Root, SiteId,
    Target, Transfer,
};

use crate::content::Tone;

/// What texts refer to.
pub(super) struct Around<'a> {
    pub(super) definitions: &'a Definitions,
    /// When the trace begins, ns.
    pub(super) begin_ns: u64,
    pub(super) messages: Option<&'a Messages>,
    /// Of a call without a return: that there is none, in words.
    pub(super) open: &'static str,
}

/// A time since the beginning, as exactly as it is needed to tell two of them apart that are so far from each other, ns.
pub(super) fn time(since_ns: u64, apart_ns: u64) -> String {
    let decimals = 9 - apart_ns.max(1).ilog10().min(9);
    let (seconds, rest) = (since_ns / 1_000_000_000, since_ns % 1_000_000_000);
    if decimals == 0 {
        return format!("+{} s", count(seconds));
    }
    let digits = rest / 10_u64.pow(9 - decimals);
    format!("+{}.{digits:0width$} s", count(seconds), width = decimals as usize)
}

impl Around<'_> {
    fn at(&self, at_ns: u64) -> String {
        time(at_ns.saturating_sub(self.begin_ns), 1)
    }

    pub(super) fn site(&self, site: Option<SiteId>) -> String {
        let known = site.and_then(|site| self.definitions.call_site(site));
        known.map_or_else(String::new, |site| format!(" at {}", printable(site.text.as_bytes())))
    }

    /// The lines of it: who and when, what, requests one by one, and who is at the other end.
    pub(super) fn lines(&self, found: &Found) -> Vec<(Tone, String)> {
        let Found { location, call } = found;
        let process = self.process(*location);
        let thread =
            self.definitions.location(*location).filter(|thread| process.is_some_and(|own| own.pid != thread.tid));
        let thread = thread.map_or_else(String::new, |thread| format!(", thread {}", thread.tid));
        let name = call.function().function().name;
        let mut lines = vec![
            (
                Tone::Title,
                format!("{}{thread}: {name}{}", process_name(self.definitions, *location), self.site(call.call_site)),
            ),
            (Tone::Plain, self.times(call)),
        ];
        let what = self.operation(&call.operation, process);
        let failed = if call.result == 0 { String::new() } else { format!("returned error {}", call.result) };
        let given = call.request.map_or_else(String::new, |request| format!("gives request {}", request.0));
        let parts: Vec<String> = [what, given, failed].into_iter().filter(|part| !part.is_empty()).collect();
        if !parts.is_empty() {
            lines.push((if call.result == 0 { Tone::Plain } else { Tone::Alarm }, parts.join("; ")));
        }
        for wait in self.waits(found) {
            lines.push((Tone::Warning, self.wait(wait)));
        }
        lines.extend(call.requests.iter().map(|change| (Tone::Plain, self.change(change, process))));
        lines.extend(self.messages_of(found).map(|message| (Tone::Plain, self.message(found, message))));
        lines
    }

    fn process(&self, location: LocationId) -> Option<&Process> {
        self.definitions.location(location).and_then(|location| self.definitions.process(location.process))
    }

    fn times(&self, call: &Call) -> String {
        let before = if call.began_before { "before " } else { "" };
        if call.has_returned {
            let duration = ns(call.duration_ns());
            format!(
                "entered {before}{}, returned {}, after {duration}",
                self.at(call.entry_ns),
                self.at(call.return_ns)
            )
        } else {
            format!("entered {before}{}, {}", self.at(call.entry_ns), self.open)
        }
    }

    fn operation(&self, operation: &Operation, process: Option<&Process>) -> String {
        let mut parts = Vec::new();
        if let Some(send) = operation.send {
            parts.push(self.transfer("to", "sends", &send, operation, process));
        }
        if let Some(receive) = operation.receive {
            parts.push(self.transfer("from", "receives", &receive, operation, process));
        }
        match operation.root {
            Some(Root::Rank(rank)) => parts.push(format!("root {}", self.rank(rank, operation, process))),
            Some(Root::Own) => parts.push("root MPI_ROOT".into()),
            Some(Root::Null) => parts.push("root MPI_PROC_NULL".into()),
            None => {}
        }
        if let Some(Target { partner, lock }) = operation.target {
            let whom = self.whom("to", partner, "", operation, process);
            let how = lock.map_or_else(String::new, |lock| format!(", {} lock", lock.name()));
            parts.push(format!("{}{how}", whom.unwrap_or_default()));
        }
        match operation.object {
            Some(Object::Window(window)) => parts.push(format!("window {}", window.0)),
            Some(Object::File(file)) => {
                let path = self.definitions.files.get(file.index()).and_then(|file| file.path.as_ref());
                parts.push(format!("file {}", path.map_or_else(|| "?".into(), |path| printable(path.as_bytes()))));
            }
            None => {}
        }
        if let Some(known) = operation.communicator.and_then(|id| self.definitions.communicator(id)) {
            let size = known.size().map_or_else(String::new, |size| format!(" of {size}"));
            parts.push(format!("over {}{size}", printable(known.name.as_bytes())));
        }
        parts.join(", ")
    }

    fn transfer(
        &self,
        word: &str,
        verb: &str,
        transfer: &Transfer,
        operation: &Operation,
        process: Option<&Process>,
    ) -> String {
        let any = if transfer.any_source { " (MPI_ANY_SOURCE)" } else { "" };
        let whom = self.whom(word, transfer.partner, any, operation, process).unwrap_or_else(|| verb.to_owned());
        let any = if transfer.any_tag { " (MPI_ANY_TAG)" } else { "" };
        let tag = match transfer.tag {
            Some(tag) => format!(", tag {tag}{any}"),
            None if transfer.any_tag => ", MPI_ANY_TAG".into(),
            None => String::new(),
        };
        let bytes = match transfer.bytes {
            Bytes::Known(bytes) => format!("{} B", count(bytes)),
            Bytes::AtMost(bytes) => format!("at most {} B", count(bytes)),
            Bytes::Unknown => "a size that is not known".into(),
        };
        if transfer.partner == Partner::Group { format!("{whom} {bytes}") } else { format!("{whom}{tag}, {bytes}") }
    }

    /// A partner; `None`: it is all of the communicator.
    fn whom(
        &self,
        word: &str,
        partner: Partner,
        any: &str,
        operation: &Operation,
        process: Option<&Process>,
    ) -> Option<String> {
        Some(match partner {
            Partner::Rank(rank) => format!("{word} {}{any}", self.rank(rank, operation, process)),
            Partner::Group => return None,
            Partner::Null => format!("{word} MPI_PROC_NULL"),
            Partner::Any => format!("{word} MPI_ANY_SOURCE"),
            Partner::Unknown => format!("{word} a rank that is not known"),
        })
    }

    /// A rank of the communicator; if that is another one in the world, it as well.
    fn rank(&self, rank: u32, operation: &Operation, process: Option<&Process>) -> String {
        let known = operation.communicator.and_then(|id| self.definitions.communicator(id));
        let world = known.and_then(|known| known.member(process.and_then(|process| process.rank), rank));
        match world {
            Some(world) if world != rank => format!("{rank} (rank {world} of the world)"),
            _ => rank.to_string(),
        }
    }

    fn change(&self, change: &RequestChange, process: Option<&Process>) -> String {
        let verb = match change.change {
            Change::Started => "starts",
            Change::Completed => "completes",
            Change::Cancelled => "cancelled:",
            Change::Failed => "failed:",
            Change::Released => "gives up",
            Change::Ready => "makes parts ready of",
        };
        let name = change.operation.function.function().name;
        format!("{verb} request {}: {name} {}", change.request.0, self.operation(&change.operation, process))
    }

    /// Messages that the call has sent, or has to do with receiving.
    pub(super) fn messages_of<'a>(&'a self, found: &'a Found) -> impl Iterator<Item = &'a Message> + 'a {
        let all = self.messages.map(|known| known.messages.as_slice()).unwrap_or_default();
        all.iter().filter(|message| is_of(message, found))
    }

    fn message(&self, found: &Found, message: &Message) -> String {
        let call = |call: &CallAt| {
            format!(
                "{} of {}{}",
                call.function.function().name,
                process_name(self.definitions, call.location),
                self.site(call.site)
            )
        };
        if is_call(&message.send, found) {
            format!("→ {}, complete {}", call(&message.done), self.at(message.done.return_ns))
        } else {
            format!("← {}, sent {}", call(&message.send), self.at(message.send.entry_ns))
        }
    }

    fn waits<'a>(&'a self, found: &'a Found) -> impl Iterator<Item = &'a WaitSeen> + 'a {
        let all = self.messages.map(|known| known.waits.as_slice()).unwrap_or_default();
        all.iter().filter(|wait| is_call(&wait.call, found))
    }

    pub(super) fn wait(&self, wait: &WaitSeen) -> String {
        let (who, site) = (process_name(self.definitions, wait.cause.location), self.site(wait.cause.site));
        let name = wait.cause.function.function().name;
        let what = match wait.kind {
            WaitKind::LateSender => "sends later",
            _ => "comes later",
        };
        format!("waits {} for {who}, which {what}: {name}{site}, entered {}", ns(wait.ns), self.at(wait.cause.entry_ns))
    }
}

pub(super) fn is_call(call: &CallAt, found: &Found) -> bool {
    (call.location, call.number) == (found.location, found.call.number)
}

/// Whether a call has to do with a message.
pub(super) fn is_of(message: &Message, found: &Found) -> bool {
    is_call(&message.send, found) || is_call(&message.done, found) || is_call(&message.posted, found)
}

/// What the process of a thread is called.
fn process_name(definitions: &Definitions, location: LocationId) -> String {
    let name = definitions.location(location).and_then(|location| definitions.process_name(location.process));
    name.map_or_else(|| "an unknown process".into(), |name| printable(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_as_exact_as_needed() {
        assert_eq!(time(1_234_567_890, 1), "+1.234567890 s");
        assert_eq!(time(1_234_567_890, 1_000_000), "+1.234 s");
        assert_eq!(time(12_034_567_890, 20_000_000), "+12.03 s");
        assert_eq!(time(5_000_000_000_000, 1 << 40), "+5,000 s");
        assert_eq!(time(5, 0), "+0.000000005 s");
    }
}
