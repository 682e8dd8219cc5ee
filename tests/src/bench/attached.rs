//! Attaching each kind of probes, and what it has counted.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::fd::AsFd;
use std::path::Path;

use mpiprobe_attach::{Attachment, Engine, Scope};
use serde_json::Value;

use super::{
    BenchError, Counting, Probes, Script,
    callrate::{CallRate, LOOPS},
    child::Tracer,
    sites::Sites,
};

/// What the script prints after each report.
const END_OF_REPORT: &str = "end of report";

/// Calls by function.
type Counts = BTreeMap<String, u64>;

/// Probes on the measured process; dropping it detaches them.
#[derive(Debug)]
pub(super) enum Attached {
    Nothing,
    Empty(Attachment),
    Mpiprobe(Tracer),
    /// With what it had counted when it was seen to be attached to everything.
    Bpftrace(Tracer, Counts),
}

impl Attached {
    /// Returns when every call is seen.
    pub(super) fn attach(
        probes: &Probes,
        target: &mut CallRate,
        sites: &Sites,
        engine: &Engine,
    ) -> Result<Self, BenchError> {
        match probes {
            Probes::Bare => Ok(Self::Nothing),
            Probes::Empty => {
                let scope = Scope::Process(target.pid());
                Ok(Self::Empty(engine.attach_empty(sites.file.as_fd(), &sites.path, &sites.probes, scope)?))
            }
            Probes::Mpiprobe(executable, counting) => mpiprobe(executable, *counting, target.pid()),
            Probes::Bpftrace(script) => bpftrace(*script, target),
        }
    }

    /// Detaches and gives the calls counted, if this kind of probes counts any.
    pub(super) fn detach(self) -> Result<Option<Counts>, BenchError> {
        match self {
            Self::Nothing => Ok(None),
            Self::Empty(attachment) => {
                attachment.detach(|_| ());
                Ok(None)
            }
            Self::Mpiprobe(tracer) => Ok(tracer.stop()?.last().map(|line| profile_counts(line))),
            Self::Bpftrace(tracer, before) => {
                let mut counts = Counts::new();
                for line in tracer.stop()? {
                    counts.extend(map_counts(&line).unwrap_or_default());
                }
                for (name, calls) in &mut counts {
                    *calls -= before.get(name).copied().unwrap_or(0).min(*calls);
                }
                Ok(Some(counts))
            }
        }
    }
}

/// With default options otherwise: functions, and the interval of its reports.
fn mpiprobe(executable: &Path, counting: Counting, pid: u32) -> Result<Attached, BenchError> {
    let pid = pid.to_string();
    // Whatever it costs is what is to be measured.
    let mut arguments = vec!["--json", "--max-overhead", "off", "--pid", &pid];
    if counting == Counting::Traffic {
        arguments.push("--traffic");
    }
    let arguments: Vec<&OsStr> = arguments.into_iter().map(OsStr::new).collect();
    let mut tracer = Tracer::start(executable.as_os_str(), &arguments)?;
    // The first report comes after everything is attached.
    tracer.line("had attached its probes")?;
    Ok(Attached::Mpiprobe(tracer))
}

fn profile_counts(line: &str) -> Counts {
    let profile: Value = serde_json::from_str(line).unwrap_or_default();
    let rows = profile.get("functions").and_then(Value::as_array).into_iter().flatten();
    rows.filter_map(|row| Some((row.get("name")?.as_str()?.to_owned(), row.get("calls")?.as_u64()?))).collect()
}

/// What one would write in mpiprobe's place: the time of a call by thread, and then by function what `script` says.
fn text(script: Script, library: &Path) -> String {
    let mut text = String::new();
    for function in probed() {
        let more = match script {
            Script::SameFigures => format!(
                "@min[\"{function}\"] = min($ns); @max[\"{function}\"] = max($ns); @hist[\"{function}\"] = hist($ns); "
            ),
            Script::Sums => String::new(),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "uprobe:{library}:{function} {{ @start[tid] = nsecs; }}\n\
             uretprobe:{library}:{function} /@start[tid]/ {{ $ns = nsecs - @start[tid]; @calls[\"{function}\"] = count(); \
             @time[\"{function}\"] = sum($ns); {more}delete(@start[tid]); }}",
            library = library.display()
        );
    }
    let _ = writeln!(text, "interval:ms:200 {{ print(@calls); printf(\"{END_OF_REPORT}\"); }}");
    text + "END { clear(@start); }\n"
}

fn probed() -> BTreeSet<&'static str> {
    LOOPS.iter().flat_map(|each| each.probed).copied().collect()
}

fn bpftrace(script: Script, target: &mut CallRate) -> Result<Attached, BenchError> {
    let (text, pid) = (text(script, target.library()), target.pid().to_string());
    let mut tracer = Tracer::start(OsStr::new("bpftrace"), &["-f", "json", "-p", &pid, "-e", &text].map(OsStr::new))?;
    // It does not tell when it has attached the last probe: it has when a call of each function is counted.
    loop {
        for each in &LOOPS {
            target.measure(each, 1, 1)?;
        }
        // Twice: the first report may have been under way before those calls.
        next_counts(&mut tracer)?;
        let counts = next_counts(&mut tracer)?;
        if probed().iter().all(|function| counts.contains_key(*function)) {
            return Ok(Attached::Bpftrace(tracer, counts));
        }
    }
}

/// Of one report, which ends with a word of its own because an empty map may print nothing.
fn next_counts(tracer: &mut Tracer) -> Result<Counts, BenchError> {
    let mut counts = Counts::new();
    loop {
        let line = tracer.line("had attached its probes")?;
        if line.contains(END_OF_REPORT) {
            return Ok(counts);
        }
        counts.extend(map_counts(&line).unwrap_or_default());
    }
}

/// From `{"type": "map", "data": {"@calls": {"MPI_Test": 1}}}`; `None` of other messages.
fn map_counts(line: &str) -> Option<Counts> {
    let message: Value = serde_json::from_str(line).ok()?;
    let calls = message.get("data")?.get("@calls")?.as_object()?;
    Some(calls.iter().filter_map(|(name, calls)| Some((name.clone(), calls.as_u64()?))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_what_the_tracers_print() {
        let counts = Counts::from([("MPI_Test".to_owned(), 7)]);
        assert_eq!(map_counts(r#"{"type": "map", "data": {"@calls": {"MPI_Test": 7}}}"#), Some(counts.clone()));
        assert_eq!(map_counts(r#"{"type": "attached_probes", "data": {"probes": 15}}"#), None);
        assert_eq!(profile_counts(r#"{"functions": [{"name": "MPI_Test", "calls": 7, "time_ns": 1}]}"#), counts);
    }

    #[test]
    fn the_script_has_a_pair_of_probes_for_each_function() {
        for script in [Script::SameFigures, Script::Sums] {
            let text = text(script, Path::new("/l/libmpi.so"));
            assert_eq!(text.matches("uprobe:/l/libmpi.so:MPI_").count(), probed().len());
            assert_eq!(text.matches("uretprobe:/l/libmpi.so:MPI_").count(), probed().len());
        }
    }
}
