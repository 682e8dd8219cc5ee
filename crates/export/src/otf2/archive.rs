//! The files of an archive.

use std::{
    collections::HashMap,
    io::{self, Write},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use mpiprobe_functions::by_name;
use mpiprobe_replay::LooseEnds;
use mpiprobe_trace::{LocationId, Process, ProcessId, Span, Trace};

use super::{
    bytes::{Anchor, definition_file},
    definitions::{About, global, local, location_number},
    events::{Around, ProcessWriter, Region, Written},
    used::Used,
};
use crate::{
    error::ExportError,
    names::Names,
    rows::visit,
    summary::{Exported, Selection, realtime},
};

/// Makes the files of an archive, which is a directory.
pub trait Archive: Sync {
    /// A new file, by its path in the archive's directory.
    fn create(&self, file: ArchiveFile) -> io::Result<Box<dyn Write + '_>>;
}

/// Which file of the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveFile {
    /// `traces.otf2`
    Anchor,
    /// `traces.def`
    Definitions,
    /// `traces/NUMBER.evt`
    Events(u64),
    /// `traces/NUMBER.def`
    LocalDefinitions(u64),
}

impl ArchiveFile {
    pub fn path(self) -> String {
        match self {
            Self::Anchor => "traces.otf2".into(),
            Self::Definitions => "traces.def".into(),
            Self::Events(number) => format!("traces/{number}.evt"),
            Self::LocalDefinitions(number) => format!("traces/{number}.def"),
        }
    }
}

/// What may be wished for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Otf2Options {
    /// Make up an `MPI_Init` and an `MPI_Finalize` of no length where a span has none, without which Scalasca does not look for causes.
    pub synthetic_ends: bool,
}

/// Writes an archive. `progress` is told of events that were dealt with, each of which is twice.
pub fn write(
    trace: &dyn Trace,
    selection: &Selection<'_>,
    options: Otf2Options,
    archive: &dyn Archive,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Exported, ExportError> {
    let Selection { clocks, span, threads, .. } = *selection;
    let used = Mutex::<Used>::default();
    let has = |location| selection.has(location);
    let loose = LooseEnds::find(trace, clocks, (span, &has), threads, &|part| {
        used.lock().unwrap_or_else(PoisonError::into_inner).look(part);
        progress(part.rows.len() as u64);
    })?;
    let mut used = used.into_inner().unwrap_or_else(PoisonError::into_inner);
    let definitions = trace.definitions();
    let names = Names::new(definitions, has);
    let ends = [by_name("MPI_Init"), by_name("MPI_Finalize")];
    let has_ends = used.functions().iter().any(|function| function.function().name.starts_with("MPI_Init"));
    let is_synthetic = options.synthetic_ends && !(has_ends && span == Span::ALL);
    if is_synthetic {
        ends.into_iter().flatten().for_each(|function| used.add_function(function));
    }
    for communicator in definitions.windows.iter().filter_map(|window| window.communicator) {
        used.add_communicator(communicator);
    }
    used.number();
    let synthetic = match ends {
        [Some(init), Some(finalize)] if is_synthetic => Some((used.function(init), used.function(finalize))),
        _ => None,
    };
    let regions: Vec<Region> = (0..=used.regions()).map(Region::new).collect();
    let whole = selection.whole(trace);
    let write_process = |&process: &ProcessId| -> Result<(Written, Vec<(LocationId, u64)>), ExportError> {
        let node = definitions.process(process).map_or(0, |process| process.node.index());
        let own = |span: Span| clocks.own_span(node, span);
        let around = Around {
            names: &names,
            used: &used,
            regions: &regions,
            loose: &loose,
            span: own(span),
            begin_ns: own(whole).from_ns,
            end_ns: own(whole).until_ns,
            synthetic,
        };
        write_events(trace, &around, process, &names, archive, progress)
    };
    let (written, events) = in_parallel(threads, &names.processes, write_process)?;
    for &location in events.keys() {
        let process = definitions.location(location).and_then(|location| definitions.process(location.process));
        let Some(Process { node, .. }) = process else { continue };
        let own = clocks.own_span(node.index(), whole);
        let records = local(clocks.correction(*node), own.from_ns, own.until_ns);
        let mut file = archive.create(ArchiveFile::LocalDefinitions(location_number(&names, location)))?;
        file.write_all(&definition_file(&records))?;
        file.flush()?;
    }
    let program = names.processes.first().and_then(|&id| definitions.process(id)).map(|process| &process.executable);
    let program = program.and_then(|path| path.rsplit('/').next()).filter(|name| !name.is_empty());
    let about = About {
        from_ns: whole.from_ns,
        until_ns: whole.until_ns,
        realtime_ns: realtime(definitions, whole.from_ns),
        program: program.unwrap_or("program"),
    };
    let records = global(&names, &used, &about, &events);
    let mut file = archive.create(ArchiveFile::Definitions)?;
    file.write_all(&definition_file(&records))?;
    file.flush()?;
    let exported = Exported {
        calls: written.calls,
        messages: written.sends,
        loose_ends: written.loose,
        cut_calls: written.cut,
        damaged: written.damaged,
        ..Exported::default()
    };
    let anchor = Anchor {
        locations: events.len() as u64,
        definitions: records.len() as u64,
        machine: definitions.nodes.first().map_or("", |node| &node.host),
        creator: concat!("mpiprobe ", env!("CARGO_PKG_VERSION")),
        description: "",
        properties: &properties(&exported, selection, is_synthetic),
        trace_id: about.realtime_ns.unwrap_or(whole.from_ns),
    };
    let mut file = archive.create(ArchiveFile::Anchor)?;
    file.write_all(&anchor.bytes())?;
    file.flush()?;
    Ok(exported)
}

fn properties(exported: &Exported, selection: &Selection<'_>, is_synthetic: bool) -> Vec<(&'static str, String)> {
    let mut properties = vec![
        // Whatever is written has both ends.
        ("OTF2::MPI_COMMUNICATION_COMPLETE", (exported.loose_ends == 0).to_string()),
        ("MPIPROBE::LEFT_OUT_ENDS", exported.loose_ends.to_string()),
        ("MPIPROBE::CUT_CALLS", exported.cut_calls.to_string()),
    ];
    if is_synthetic {
        properties.push(("MPIPROBE::SYNTHETIC_INIT_AND_FINALIZE", "true".into()));
    }
    if let Some(within_ns) = selection.clocks_within_ns() {
        properties.push(("MPIPROBE::CLOCKS_WITHIN_NS", within_ns.to_string()));
    }
    properties
}

fn write_events(
    trace: &dyn Trace,
    around: &Around<'_>,
    process: ProcessId,
    names: &Names<'_>,
    archive: &dyn Archive,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<(Written, Vec<(LocationId, u64)>), ExportError> {
    let threads: Vec<LocationId> = names.definitions.threads(process).collect();
    let file = |&location: &LocationId| archive.create(ArchiveFile::Events(location_number(names, location)));
    let mut files = threads.iter().map(file).collect::<io::Result<Vec<_>>>()?;
    let written = {
        let to = files.iter_mut().map(|file| file.as_mut() as &mut dyn Write);
        let mut writer = ProcessWriter::new(around, process, threads.iter().copied().zip(to))?;
        writer.written.damaged = visit(trace, &threads, around.span, &mut writer, &mut |rows| progress(rows))?;
        writer.finish()?
    };
    for mut file in files {
        file.flush()?;
    }
    Ok(written)
}

type Done = (Written, HashMap<LocationId, u64>);

/// Several processes at once.
fn in_parallel(
    threads: usize,
    processes: &[ProcessId],
    work: impl Fn(&ProcessId) -> Result<(Written, Vec<(LocationId, u64)>), ExportError> + Sync,
) -> Result<Done, ExportError> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Done> = Mutex::default();
    let failed: Mutex<Option<ExportError>> = Mutex::new(None);
    let has_failed = || failed.lock().unwrap_or_else(PoisonError::into_inner).is_some();
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, processes.len().max(1)) {
            scope.spawn(|| {
                while let Some(process) = processes.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if has_failed() {
                        return;
                    }
                    match work(process) {
                        Ok((written, events)) => {
                            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                            done.0.add(written);
                            done.1.extend(events);
                        }
                        Err(error) => {
                            failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                        }
                    }
                }
            });
        }
    });
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}
