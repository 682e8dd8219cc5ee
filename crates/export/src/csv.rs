//! A table of all calls as CSV (RFC 4180).

use std::io::Write;

use mpiprobe_trace::Trace;

use crate::{
    calls::{COLUMNS, all, threads},
    error::ExportError,
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
    let whose = threads(definitions);
    writeln!(to, "{}", COLUMNS.join(","))?;
    let mut line = String::new();
    let exported = all(trace, selection, progress, |one| {
        line.clear();
        let call = one.call;
        let function = call.function().function();
        let thread = whose.get(one.location.index());
        let communicator = call.operation.communicator.and_then(|id| definitions.communicator(id));
        let site = call.call_site.and_then(|site| definitions.call_site(site));
        field(&mut line, thread.and_then(|thread| thread.job).unwrap_or_default());
        field(&mut line, thread.map_or("", |thread| thread.host));
        number(&mut line, thread.and_then(|thread| thread.rank));
        number(&mut line, thread.map(|thread| thread.tid));
        number(&mut line, Some(one.row.number));
        field(&mut line, function.name);
        field(&mut line, function.group.title());
        number(&mut line, Some(one.row.begin_ns));
        number(&mut line, Some(one.row.end_ns.saturating_sub(one.row.begin_ns)));
        number(&mut line, Some(call.depth));
        field(&mut line, site.map_or("", |site| &site.text));
        field(&mut line, communicator.map_or("", |known| &known.name));
        number(&mut line, one.destination());
        number(&mut line, one.source);
        number(&mut line, one.tag());
        number(&mut line, one.sent);
        number(&mut line, one.received);
        number(&mut line, text::root(call.operation.root));
        number(&mut line, one.request);
        number(&mut line, Some(one.completes));
        number(&mut line, Some(call.result));
        number(&mut line, Some(u8::from(call.has_returned)));
        line.pop();
        line.push('\n');
        to.write_all(line.as_bytes())
    })?;
    to.flush()?;
    Ok(exported)
}

fn number<T: ToString>(line: &mut String, value: Option<T>) {
    if let Some(value) = value {
        line.push_str(&value.to_string());
    }
    line.push(',');
}

fn field(line: &mut String, text: &str) {
    // A spreadsheet would take it for a formula; behind an apostrophe it is text.
    if text.trim_start().starts_with(['=', '+', '-', '@']) {
        field(line, &format!("'{text}"));
        return;
    }
    if text.contains([',', '"', '\n', '\r']) {
        line.push('"');
        line.push_str(&text.replace('"', "\"\""));
        line.push('"');
    } else {
        line.push_str(text);
    }
    line.push(',');
}
