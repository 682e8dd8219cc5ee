//! Chrome's JSON, the "Trace Event Format", for whatever cannot read anything else: ten times as large as other formats, and the ranks stand in
//! any order.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use mpiprobe_trace::{Definitions, LocationId, Partner, PhaseChange, Trace, Transfer};

use crate::{
    course::{Begun, Flow, Writer, follow},
    error::ExportError,
    names::Names,
    summary::{Exported, Selection},
    text,
};

/// Writes a trace. `progress` is told of events that were dealt with.
pub fn write(
    trace: &dyn Trace,
    selection: &Selection<'_>,
    to: &mut dyn Write,
    progress: &dyn Fn(u64),
) -> Result<Exported, ExportError> {
    let definitions = trace.definitions();
    let names = Names::new(definitions, |location| selection.has(location));
    to.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
    let mut writer = ChromeWriter { to: &mut *to, definitions, names: &names };
    writer.metadata()?;
    let exported = follow(trace, selection, &mut writer, progress)?;
    // An event that says nothing, as the last one has no comma behind it.
    to.write_all(b"{\"ph\":\"M\",\"name\":\"trace_end\",\"pid\":0,\"tid\":0,\"args\":{}}\n]}\n")?;
    to.flush()?;
    Ok(exported)
}

struct ChromeWriter<'a> {
    to: &'a mut dyn Write,
    definitions: &'a Definitions,
    names: &'a Names<'a>,
}

/// A string as JSON writes it.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if c.is_control() => drop(write!(quoted, "\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// µs, to the nanosecond.
fn us(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

impl ChromeWriter<'_> {
    /// Numbers of the process and the thread.
    fn ids(&self, location: LocationId) -> (u32, u32) {
        let Some(known) = self.definitions.location(location) else { return (0, 0) };
        (self.names.place(known.process).unwrap_or(0), known.tid)
    }

    fn metadata(&mut self) -> io::Result<()> {
        for (place, &id) in (0u32..).zip(&self.names.processes) {
            let name = quoted(&self.names.process(id));
            for (what, argument) in [
                ("process_name", format!("\"name\":{name}")),
                ("process_sort_index", format!("\"sort_index\":{place}")),
            ] {
                writeln!(self.to, "{{\"ph\":\"M\",\"name\":\"{what}\",\"pid\":{place},\"args\":{{{argument}}}}},")?;
            }
        }
        Ok(())
    }

    fn event(&mut self, location: LocationId, phase: char, ns: u64, rest: &str) -> io::Result<()> {
        let (pid, tid) = self.ids(location);
        writeln!(self.to, "{{\"ph\":\"{phase}\",\"ts\":{},\"pid\":{pid},\"tid\":{tid}{rest}}},", us(ns))
    }

    fn arguments(&self, begun: &Begun<'_>) -> String {
        let operation = &begun.call.operation;
        let mut all = vec![format!("\"number\":{}", begun.number)];
        let partner = |all: &mut Vec<String>, name: &str, partner| match (text::partner(partner), partner) {
            (Some(rank), _) => all.push(format!("\"{name}\":{rank}")),
            (None, Partner::Null) => all.push(format!("\"{name}\":\"MPI_PROC_NULL\"")),
            (None, Partner::Any) => all.push(format!("\"{name}\":\"MPI_ANY_SOURCE\"")),
            _ => {}
        };
        let transfer = |all: &mut Vec<String>, name: &str, bytes: &str, transfer: Transfer| {
            partner(all, name, transfer.partner);
            if let Some(amount) = text::exact(transfer.bytes) {
                all.push(format!("\"{bytes}\":{amount}"));
            }
        };
        if let Some(send) = operation.send {
            transfer(&mut all, "to", "sent", send);
        }
        if let Some(receive) = operation.receive {
            transfer(&mut all, "from", "received", receive);
        }
        if let Some(tag) = operation.send.or(operation.receive).and_then(|transfer| transfer.tag) {
            all.push(format!("\"tag\":{tag}"));
        }
        if let Some(root) = text::root(operation.root) {
            all.push(format!("\"root\":{root}"));
        }
        if let Some(target) = operation.target {
            partner(&mut all, "to", target.partner);
            all.extend(target.lock.map(|lock| format!("\"lock\":\"{}\"", lock.name())));
        }
        if let Some(known) = operation.communicator.and_then(|id| self.definitions.communicator(id)) {
            all.push(format!("\"communicator\":{}", quoted(&known.name)));
        }
        if let Some(site) = begun.call.call_site.and_then(|site| self.definitions.call_site(site)) {
            all.push(format!("\"at\":{}", quoted(&site.text)));
        }
        all.join(",")
    }
}

impl Writer for ChromeWriter<'_> {
    fn begin(&mut self, begun: &Begun<'_>) -> io::Result<()> {
        let function = begun.call.function().function();
        let (name, group) = (function.name, function.group.title());
        let arguments = self.arguments(begun);
        let rest = format!(",\"name\":\"{name}\",\"cat\":\"{group}\",\"args\":{{{arguments}}}");
        self.event(begun.location, 'B', begun.begin_ns, &rest)?;
        for flow in begun.sends {
            let rest = format!(",\"name\":\"message\",\"cat\":\"message\",\"id\":\"{flow:x}\"");
            self.event(begun.location, 's', begun.begin_ns, &rest)?;
        }
        Ok(())
    }

    fn end(&mut self, location: LocationId, ns: u64, received: &[Flow]) -> io::Result<()> {
        for &flow in received {
            self.late(location, ns, flow)?;
        }
        self.event(location, 'E', ns, "")
    }

    fn late(&mut self, location: LocationId, ns: u64, received: Flow) -> io::Result<()> {
        // A slice of its own, as arrows go by the beginnings of slices.
        let rest = ",\"name\":\"message\",\"cat\":\"message\",\"dur\":0";
        self.event(location, 'X', ns, rest)?;
        let rest = format!(",\"name\":\"message\",\"cat\":\"message\",\"bp\":\"e\",\"id\":\"{received:x}\"");
        self.event(location, 'f', ns, &rest)
    }

    fn phase(&mut self, location: LocationId, change: &PhaseChange) -> io::Result<()> {
        let name = quoted(&change.phase.as_ref().map_or_else(|| "no phase".into(), |phase| format!("phase {phase}")));
        self.event(location, 'i', change.at_ns, &format!(",\"s\":\"t\",\"name\":{name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted() {
        assert_eq!(quoted("a\"b\\c\nd"), "\"a\\\"b\\\\c\\u000ad\"");
        assert_eq!(us(1_234_567), "1234.567");
    }
}
