//! `mpiprobe compare`: reads runs, and says what differs.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use mpiprobe_discover::{files::with_callers_rights, open_regular};
use mpiprobe_model::Profile;
use mpiprobe_report::compare::{Comparison, Condition, ConditionError, MOMENTS, Options, Refused, Run, markdown, text};
use mpiprobe_report::present::{
    Output, OutputError, Progress,
    recording::{Recording, RecordingError},
    say,
};
use thiserror::Error;

/// Bytes of JSON that are read of a file.
const LONGEST: u64 = 512 << 20;

/// In which form a comparison is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    #[default]
    Text,
    /// GitHub's, for merge requests.
    Markdown,
    Json,
}

/// What was asked for.
#[derive(Debug)]
pub struct Compared<'a> {
    pub before: &'a [PathBuf],
    pub after: &'a [PathBuf],
    pub options: Options,
    pub conditions: &'a [Condition],
    pub format: Format,
    /// Rows of each table.
    pub top: usize,
}

/// Why there is no comparison.
#[derive(Debug, Error)]
pub enum CompareError {
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error("cannot read {}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is neither a recording (--record) nor a profile as JSON (--json, -o): {source}", .path.display())]
    Json { path: PathBuf, source: serde_json::Error },
    #[error("{} is larger than {} MiB, which no profile as JSON is", .0.display(), LONGEST >> 20)]
    TooLarge(PathBuf),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    Condition(#[from] ConditionError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Prints the comparison; whether a condition holds.
pub fn compare(asked: &Compared<'_>) -> Result<bool, CompareError> {
    let progress = Progress::new("reading runs", asked.before.len() + asked.after.len());
    let read = |paths: &[PathBuf]| paths.iter().map(|path| run(path, &progress)).collect::<Result<Vec<_>, _>>();
    let (before, after) = (read(asked.before)?, read(asked.after)?);
    drop(progress);
    let comparison = Comparison::of(&before, &after, &asked.options)?;
    let mut held = Vec::new();
    for condition in asked.conditions {
        held.extend(condition.held(&comparison)?);
    }
    match asked.format {
        Format::Text => Output.text(&text(&comparison, asked.top))?,
        Format::Markdown => Output.text(&markdown(&comparison, asked.top))?,
        Format::Json => Output.json(&comparison)?,
    }
    held.iter().for_each(say);
    Ok(!held.is_empty())
}

fn run(path: &Path, progress: &Progress) -> Result<Run, CompareError> {
    let name = path.display().to_string();
    let run = match Recording::open(path) {
        Ok(recording) => of_recording(&name, &recording),
        Err(RecordingError::Foreign(_)) => of_json(&name, path),
        Err(error) => Err(error.into()),
    };
    progress.step();
    run
}

/// Its last moment, and a few evenly over it.
fn of_recording(name: &str, recording: &Recording) -> Result<Run, CompareError> {
    for note in recording.notes() {
        say(format_args!("{name}: {note}"));
    }
    let last = recording.len().saturating_sub(1);
    let run = Run::new(name, &recording.profile(last)?);
    // A damaged one only makes the parts longer.
    let moments = evenly(recording.len()).filter_map(|index| recording.profile(index).ok());
    Ok(run.with_moments(moments))
}

/// One profile, or one on each line.
fn of_json(name: &str, path: &Path) -> Result<Run, CompareError> {
    let failed = |source| CompareError::Read { path: path.into(), source };
    let file: File = with_callers_rights(|| open_regular(path)).map_err(failed)?;
    let mut text = String::new();
    file.take(LONGEST + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > LONGEST {
        return Err(CompareError::TooLarge(path.into()));
    }
    let profile = |text: &str| {
        serde_json::from_str::<Profile>(text).map_err(|source| CompareError::Json { path: path.into(), source })
    };
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    match lines.as_slice() {
        // Laid out for people, a profile begins with a line that is none.
        [first, .., last] if first.trim() != "{" => {
            let run = Run::new(name, &profile(last)?);
            let moments = evenly(lines.len()).filter_map(|index| profile(lines.get(index)?).ok());
            Ok(run.with_moments(moments))
        }
        _ => Ok(Run::new(name, &profile(&text)?)),
    }
}

/// Numbers of moments that are looked at, of so many.
fn evenly(moments: usize) -> impl Iterator<Item = usize> {
    let wanted = moments.min(MOMENTS);
    (1..=wanted).map(move |part| (part * moments).div_ceil(wanted.max(1)).saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_taken_evenly_and_the_last_is_among_them() {
        assert_eq!(evenly(5).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        let of_many: Vec<usize> = evenly(600).collect();
        assert_eq!((of_many.len(), of_many.first(), of_many.last()), (MOMENTS, Some(&46), Some(&599)));
        assert!(of_many.windows(2).all(|pair| (46..=47).contains(&(pair[1] - pair[0]))));
        assert_eq!(evenly(0).count(), 0);
    }

    #[test]
    fn what_is_no_run_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        std::fs::write(&path, "{\"schema\": \"other/1\"}").unwrap();
        let error = run(&path, &Progress::new("reading", 1)).unwrap_err().to_string();
        assert!(error.contains("x.json is neither a recording") && error.contains("schema"), "{error}");
        std::fs::write(&path, "\0\u{1}").unwrap();
        assert!(matches!(run(&path, &Progress::new("reading", 1)), Err(CompareError::Json { .. })));
        assert!(matches!(run(folder.path(), &Progress::new("reading", 1)), Err(CompareError::Recording(_))));
    }
}
