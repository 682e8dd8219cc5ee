//! Processes that come and go one after the other, each with tables of its own: what a run keeps of them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use super::CampaignError;
use crate::profiler::{Profile, binary};
use crate::{Mpi, compile, program};

/// What `run` keeps in memory of a process that has ended, at most.
const MOST_BYTES: u64 = 8 << 10;
/// Before this many it is not yet as large as it is without any of them.
const FEW: u64 = 100;

/// What was left, and what it took.
#[derive(Debug, Clone, Copy)]
pub struct ProcessesReport {
    /// Of each process that has ended, bytes of memory of `mpiprobe run`.
    pub bytes_per_process: u64,
    /// Files of tables that were left when the last one had ended.
    pub files: u64,
}

/// `mpiprobe run` with the wrapper over so many processes.
pub fn processes(count: u64) -> Result<ProcessesReport, CampaignError> {
    let place = tempfile::tempdir().map_err(|error| CampaignError::wrong(0, error.to_string()))?;
    let (few, many) = (run(place.path(), FEW)?, run(place.path(), FEW + count)?);
    let bytes_per_process = many.0.saturating_sub(few.0) * 1024 / count.max(1);
    let report = ProcessesReport { bytes_per_process, files: many.1 };
    if bytes_per_process > MOST_BYTES || report.files > 0 {
        return Err(CampaignError::wrong(0, format!("of each of {count} processes there is left: {report:?}")));
    }
    Ok(report)
}

/// After so many: memory of `run` in KiB, and files of tables that are still there when it has been waited for that they go.
fn run(place: &Path, count: u64) -> Result<(u64, u64), CampaignError> {
    const SCRIPT: &str = r#"i=0; while [ $i -lt "$1" ]; do "$2" >/dev/null || exit 1; i=$((i + 1)); done
        i=0; while [ -n "$(ls "$MPIPROBE_OUTPUT")" ] && [ $i -lt 30000 ]; do sleep 0.01; i=$((i + 1)); done
        awk '/^VmRSS/ { print $2 }' "/proc/$PPID/status"; ls "$MPIPROBE_OUTPUT" | wc -l"#;
    let wrong = |what: String| CampaignError::wrong(0, what);
    let brief = compile::executable_of_brief(Mpi::ALL[0], program::BRIEF).map_err(|error| wrong(error.to_string()))?;
    let profile = place.join(count.to_string());
    let mut command = Command::new(binary()?);
    command.args(["run", "--engine", "wrapper", "--json", "--profile"]).arg(&profile);
    command.args(["--", "sh", "-c", SCRIPT, "sh", &count.to_string()]).arg(brief);
    let output: Output = command.output().map_err(|error| wrong(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    let (Some(Ok(memory)), Some(Ok(files))) = (numbers.next(), numbers.next()) else {
        return Err(wrong(format!("{output:?}")));
    };
    let profile = fs::read_to_string(&profile).map_err(|error| wrong(error.to_string()))?;
    let profile: Profile = serde_json::from_str(&profile).map_err(|error| wrong(error.to_string()))?;
    if !profile.complete || profile.ranks.len() as u64 != count || profile.ranks.iter().any(|row| row.calls != 5) {
        return Err(wrong(format!("{} of {count} processes, {:?}", profile.ranks.len(), profile.incomplete_because)));
    }
    Ok((memory, files))
}
