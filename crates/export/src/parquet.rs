//! Tables of calls and messages as Parquet, which DuckDB, Polars, pandas and Spark read.

use std::{io::Write, sync::Arc};

use mpiprobe_functions::FunctionId;
use mpiprobe_model::CallSite;
use mpiprobe_trace::{Communicator, Definitions, Trace};
use parquet::{
    basic::{Compression, Encoding, ZstdLevel},
    data_type::{ByteArray, ByteArrayType, Int64Type},
    errors::ParquetError,
    file::{
        metadata::KeyValue,
        properties::{WriterProperties, WriterPropertiesBuilder, WriterPropertiesPtr},
        writer::SerializedFileWriter,
    },
    schema::{parser::parse_message_type, types::ColumnPath},
};

use crate::{
    calls::{self, COLUMNS, all},
    error::ExportError,
    messages::{Message, Messages},
    summary::{Exported, Selection, realtime},
    text,
};

/// Rows that are in memory before they are written.
const ROW_GROUP: usize = 1 << 17;
/// Columns whose values differ little from those before.
const DELTA: [&str; 7] =
    ["start_ns", "duration_ns", "number", "send_number", "receive_number", "send_start_ns", "receive_end_ns"];
const TEXT: [&str; 6] = ["job", "host", "function", "operation_group", "site", "communicator"];

/// Names of the columns of the table of messages: who has sent by which call, who has received by which, and when.
pub const MESSAGE_COLUMNS: [&str; 10] = [
    "send_job",
    "send_rank",
    "send_tid",
    "send_number",
    "send_start_ns",
    "receive_rank",
    "receive_tid",
    "receive_number",
    "posted_ns",
    "receive_end_ns",
];

impl From<ParquetError> for ExportError {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(error) => match error.downcast::<std::io::Error>() {
                Ok(error) => Self::Write(*error),
                Err(error) => Self::Write(std::io::Error::other(error)),
            },
            error => Self::Write(std::io::Error::other(error)),
        }
    }
}

enum Values {
    Text(Vec<ByteArray>),
    Number(Vec<i64>),
}

struct Column {
    values: Values,
    /// Whether there is a value, by row.
    is_there: Vec<i16>,
}

impl Column {
    fn text(&mut self, value: Option<&ByteArray>) {
        self.is_there.push(i16::from(value.is_some()));
        if let (Values::Text(values), Some(value)) = (&mut self.values, value) {
            values.push(value.clone());
        }
    }

    fn number(&mut self, value: Option<u64>) {
        self.int(value.map(u64::cast_signed));
    }

    fn int(&mut self, value: Option<i64>) {
        self.is_there.push(i16::from(value.is_some()));
        if let (Values::Number(values), Some(value)) = (&mut self.values, value) {
            values.push(value);
        }
    }
}

/// A table that is being written.
struct Table<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Column>,
    rows: usize,
}

impl<W: Write + Send> Table<W> {
    fn new(to: W, name: &str, columns: &[&str], facts: Vec<KeyValue>) -> Result<Self, ParquetError> {
        let kind = |name: &&str| {
            let is_text = TEXT.contains(name) || *name == "send_job";
            if is_text { format!("optional binary {name} (UTF8);") } else { format!("optional int64 {name};") }
        };
        let fields: String = columns.iter().map(kind).collect();
        let schema = Arc::new(parse_message_type(&format!("message {name} {{ {fields} }}"))?);
        let writer = SerializedFileWriter::new(to, schema, properties(facts)?)?;
        let column = |name: &&str| Column {
            values: if TEXT.contains(name) || *name == "send_job" {
                Values::Text(Vec::new())
            } else {
                Values::Number(Vec::new())
            },
            is_there: Vec::new(),
        };
        Ok(Self { writer, columns: columns.iter().map(column).collect(), rows: 0 })
    }

    fn row_is_whole(&mut self) -> Result<(), ParquetError> {
        self.rows += 1;
        if self.rows >= ROW_GROUP { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            let Some(mut to) = group.next_column()? else { break };
            match &mut column.values {
                Values::Text(values) => {
                    to.typed::<ByteArrayType>().write_batch(values, Some(&column.is_there), None)?;
                    values.clear();
                }
                Values::Number(values) => {
                    to.typed::<Int64Type>().write_batch(values, Some(&column.is_there), None)?;
                    values.clear();
                }
            }
            column.is_there.clear();
            to.close()?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }

    fn finish(mut self) -> Result<(), ParquetError> {
        self.flush()?;
        self.writer.close()?;
        Ok(())
    }
}

/// Of all files.
pub(crate) fn common_properties() -> Result<WriterPropertiesBuilder, ParquetError> {
    Ok(WriterProperties::builder()
        .set_created_by(concat!("mpiprobe ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?)))
}

fn properties(facts: Vec<KeyValue>) -> Result<WriterPropertiesPtr, ParquetError> {
    let mut properties = common_properties()?.set_key_value_metadata(Some(facts));
    for name in DELTA {
        let path = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    Ok(Arc::new(properties.build()))
}

/// What is told of the whole, besides the rows.
fn facts(schema: &str, trace: &dyn Trace, selection: &Selection<'_>) -> Vec<KeyValue> {
    let definitions = trace.definitions();
    let from_ns = selection.whole(trace).from_ns;
    let lost = definitions.missing_calls();
    let mut facts = vec![("mpiprobe.schema", schema.to_owned()), ("mpiprobe.lost_calls", lost.to_string())];
    if let Some(ns) = realtime(definitions, from_ns) {
        // What is to be added to times for those since 1970.
        let offset = ns.cast_signed().wrapping_sub(from_ns.cast_signed());
        facts.push(("mpiprobe.realtime_offset_ns", offset.to_string()));
    }
    if let Some(within_ns) = selection.clocks_within_ns() {
        facts.push(("mpiprobe.clocks_within_ns", within_ns.to_string()));
    }
    facts.into_iter().map(|(key, value)| KeyValue::new(key.to_owned(), value)).collect()
}

/// Texts of a definition, once.
struct Texts {
    functions: Vec<(ByteArray, ByteArray)>,
    sites: Vec<ByteArray>,
    communicators: Vec<ByteArray>,
    /// By location.
    jobs: Vec<Option<ByteArray>>,
    hosts: Vec<ByteArray>,
}

impl Texts {
    fn new(definitions: &Definitions) -> Self {
        let function = |id: FunctionId| {
            let function = id.function();
            (ByteArray::from(function.name), ByteArray::from(function.group.title()))
        };
        let threads = calls::threads(definitions);
        let site = |site: &CallSite| ByteArray::from(site.text.as_str());
        let communicator = |known: &Communicator| ByteArray::from(known.name.as_str());
        Self {
            functions: FunctionId::all().map(function).collect(),
            sites: definitions.call_sites.iter().map(site).collect(),
            communicators: definitions.communicators.iter().map(communicator).collect(),
            jobs: threads.iter().map(|thread| thread.job.map(ByteArray::from)).collect(),
            hosts: threads.iter().map(|thread| ByteArray::from(thread.host)).collect(),
        }
    }
}

/// Writes the table of calls. `progress` is told of events that were dealt with.
pub fn write_calls(
    trace: &dyn Trace,
    selection: &Selection<'_>,
    to: &mut (dyn Write + Send),
    progress: &dyn Fn(u64),
) -> Result<Exported, ExportError> {
    let definitions = trace.definitions();
    let (texts, whose) = (Texts::new(definitions), calls::threads(definitions));
    let facts = facts("mpiprobe.calls/1", trace, selection);
    let mut table = Table::new(to, "calls", &COLUMNS, facts)?;
    let exported = all(trace, selection, progress, |one| {
        let call = one.call;
        let at = one.location.index();
        let thread = whose.get(at);
        let function = texts.functions.get(call.function().index());
        let communicator = call.operation.communicator.and_then(|id| texts.communicators.get(id.index()));
        let site = call.call_site.and_then(|site| texts.sites.get(site.index()));
        let [
            job,
            host,
            rank,
            tid,
            number,
            name,
            group,
            start,
            duration,
            depth,
            site_column,
            over,
            destination,
            source,
            tag,
            sent,
            received,
            root,
            request,
            completes,
            result,
            returned,
        ] = table.columns.as_mut_slice()
        else {
            return Ok(());
        };
        job.text(texts.jobs.get(at).and_then(Option::as_ref));
        host.text(texts.hosts.get(at));
        rank.number(thread.and_then(|thread| thread.rank).map(Into::into));
        tid.number(thread.map(|thread| thread.tid.into()));
        number.number(Some(one.row.number));
        name.text(function.map(|(name, _)| name));
        group.text(function.map(|(_, group)| group));
        start.number(Some(one.row.begin_ns));
        duration.number(Some(one.row.end_ns.saturating_sub(one.row.begin_ns)));
        depth.number(Some(call.depth.into()));
        site_column.text(site);
        over.text(communicator);
        destination.int(one.destination());
        source.int(one.source);
        tag.int(one.tag().map(Into::into));
        sent.number(one.sent);
        received.number(one.received);
        root.int(text::root(call.operation.root));
        request.number(one.request);
        completes.number(Some(one.completes));
        result.int(Some(call.result.into()));
        returned.number(Some(call.has_returned.into()));
        table.row_is_whole().map_err(std::io::Error::other)
    })?;
    table.finish()?;
    Ok(exported)
}

/// Writes the table of messages of which both ends are selected, and of a filter, whose calls it keeps. `progress` is told of events that were dealt with.
pub fn write_messages(
    trace: &dyn Trace,
    selection: &Selection<'_>,
    to: &mut (dyn Write + Send),
    progress: &dyn Fn(u64),
) -> Result<Exported, ExportError> {
    let whose = calls::threads(trace.definitions());
    let jobs = Texts::new(trace.definitions()).jobs;
    let mut table = Table::new(to, "messages", &MESSAGE_COLUMNS, facts("mpiprobe.messages/1", trace, selection))?;
    let found = Messages::find(trace, selection, progress, &mut |&Message { send, posted, received }| {
        let (sender, receiver) = (whose.get(send.location.index()), whose.get(received.location.index()));
        let values = [
            sender.and_then(|thread| thread.rank).map(Into::into),
            sender.map(|thread| thread.tid.into()),
            Some(send.number),
            Some(send.entry_ns),
            receiver.and_then(|thread| thread.rank).map(Into::into),
            receiver.map(|thread| thread.tid.into()),
            Some(received.number),
            Some(posted.entry_ns),
            Some(received.return_ns),
        ];
        let mut columns = table.columns.iter_mut();
        if let Some(job) = columns.next() {
            job.text(jobs.get(send.location.index()).and_then(Option::as_ref));
        }
        columns.zip(values).for_each(|(column, value)| column.number(value));
        table.row_is_whole().map_err(std::io::Error::other)
    })?;
    table.finish()?;
    Ok(Exported {
        messages: found.whole,
        between_clocks: found.between_clocks,
        loose_ends: found.loose_ends(),
        ..Exported::default()
    })
}
