//! Runs in files that are whole, cut off, damaged, foreign, and of several nodes.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::present::recording::Writer;
use mpiprobe_discover::files::PRIVATE;
use mpiprobe_model::{
    JobInfo, Profile,
    sample::{self, SECOND, function},
};
use tempfile::TempDir;

use super::{Part, Source, SourceError, Span};

/// A node after so many seconds: each rank has made ten calls in each.
fn node(host: &str, ranks: std::ops::Range<u32>, seconds: u64) -> Profile {
    let mut rows = sample::ranks(4);
    rows.retain(|row| row.rank.is_some_and(|rank| ranks.contains(&rank)));
    for row in &mut rows {
        row.host = host.into();
        (row.calls, row.mpi_ns) = (10 * seconds, 10 * seconds * 1_000_000);
        (row.wall_ns, row.thread_wall_ns) = (seconds * SECOND, seconds * SECOND);
        row.functions = vec![function("MPI_Send", 10 * seconds, 1_000_000).all].into();
    }
    let mut profile = sample::profile(rows);
    profile.host = host.into();
    profile.observed_ns = seconds * SECOND;
    profile.jobs = vec![JobInfo { id: "job".into(), ranks: ranks.len(), size: Some(4) }];
    profile.totals.calls = 10 * seconds * ranks.len() as u64;
    profile
}

fn recorded(folder: &TempDir, host: &str, ranks: std::ops::Range<u32>, seconds: u64) -> PathBuf {
    let path = folder.path().join(format!("{host}.rec"));
    let mut writer = Writer::create(&path, PRIVATE, u64::MAX).unwrap();
    for second in 1..=seconds {
        writer.add(&node(host, ranks.clone(), second)).unwrap();
    }
    writer.end(0).unwrap();
    path
}

fn lines(folder: &TempDir, seconds: u64) -> (PathBuf, String) {
    let line = |second| serde_json::to_string(&node("a", 0..4, second)).unwrap() + "\n";
    let text: String = (1..=seconds).map(line).collect();
    let path = folder.path().join("job.json");
    fs::write(&path, &text).unwrap();
    (path, text)
}

fn open(path: &Path, span: Span) -> Result<Source, SourceError> {
    Source::open(&[path.to_owned()], span)
}

fn calls(source: &Source) -> u64 {
    source.profile().totals.calls
}

fn moments(source: &Source) -> Vec<(u64, u64)> {
    let calls = |moment| (source.at_ns(moment) / SECOND, source.moment(moment).unwrap().totals.calls);
    (0..source.count()).map(calls).collect()
}

#[test]
fn a_recording_and_its_profiles_as_json_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let recording = open(&recorded(&folder, "a", 0..4, 5), Span::default()).unwrap();
    let json = open(&lines(&folder, 5).0, Span::default()).unwrap();
    for source in [recording, json] {
        assert_eq!((calls(&source), source.notes().len(), source.count()), (200, 0, 5));
        assert_eq!(moments(&source), [(1, 40), (2, 80), (3, 120), (4, 160), (5, 200)]);
    }
}

#[test]
fn a_span_is_what_happened_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = recorded(&folder, "a", 0..4, 5);
    let at = |text: &str| Some(text.parse().unwrap());
    let until = open(&path, Span { at: at("3s"), ..Span::default() }).unwrap();
    assert_eq!((calls(&until), moments(&until).len()), (120, 3));
    let span = open(&path, Span { from: at("2s"), until: at("4s"), at: None }).unwrap();
    assert_eq!((calls(&span), span.profile().observed_ns), (80, 2 * SECOND));
    assert_eq!(moments(&span), [(2, 80), (3, 120), (4, 160)]);
    let all = open(&path, Span { from: at("0s"), ..Span::default() }).unwrap();
    assert_eq!(calls(&all), 200);
    let backwards = open(&path, Span { from: at("4s"), until: at("2s"), at: None }).unwrap_err();
    assert!(matches!(backwards, SourceError::Backwards { .. }), "{backwards}");
    let beyond = open(&path, Span { at: at("9s"), ..Span::default() }).unwrap_err().to_string();
    assert!(beyond.contains("it goes from 12:00:01 (+00:01) to 12:00:05 (+00:05), 5 in all"), "{beyond}");
}

#[test]
fn nodes_of_one_job_are_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let paths = [recorded(&folder, "a", 0..2, 5), recorded(&folder, "b", 2..4, 4)];
    let source = Source::open(&paths, Span::default()).unwrap();
    assert_eq!(source.profile().ranks.iter().map(|row| row.rank.unwrap()).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!((calls(&source), source.profile().complete), (180, true));
    assert_eq!(moments(&source), [(1, 40), (2, 80), (3, 120), (4, 160), (5, 180)]);
    assert!(source.name().contains("a.rec + ") && source.name().ends_with("b.rec"), "{}", source.name());

    let twice = Source::open(&[paths[0].clone(), paths[0].clone()], Span::default()).unwrap_err().to_string();
    assert!(twice.contains("both have rank 0"), "{twice}");
}

#[test]
fn tables_and_files_go_together() {
    let folder = tempfile::tempdir().unwrap();
    let parts =
        vec![Part::open(&recorded(&folder, "a", 0..2, 3)).unwrap(), Part::of_profile("tables", node("b", 2..4, 3))];
    let source = Source::of_parts(parts, Span::default()).unwrap();
    assert_eq!((calls(&source), source.count()), (120, 3));
    let single = Source::of_profile("tables", node("b", 2..4, 3));
    assert_eq!((single.name(), calls(&single), single.is_single(), moments(&single).len()), ("tables", 60, true, 1));
}

#[test]
fn json_that_is_cut_off_has_what_was_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (path, text) = lines(&folder, 3);
    fs::write(&path, &text[..text.len() - 100]).unwrap();
    let source = open(&path, Span::default()).unwrap();
    assert_eq!((calls(&source), source.notes().len()), (80, 1));
    assert!(source.notes()[0].starts_with("profile 3 is cut off"), "{:?}", source.notes());
    fs::write(&path, format!("{text}hello")).unwrap();
    let source = open(&path, Span::default()).unwrap();
    assert!(calls(&source) == 120 && source.notes()[0].contains("it is damaged"), "{:?}", source.notes());
    fs::write(&path, &text[..50]).unwrap();
    assert!(matches!(open(&path, Span::default()), Err(SourceError::NoJson { .. })));
}

#[test]
fn json_of_people_has_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pretty.json");
    fs::write(&path, serde_json::to_string_pretty(&node("a", 0..4, 2)).unwrap()).unwrap();
    assert_eq!(calls(&open(&path, Span::default()).unwrap()), 80);
}

#[test]
fn strings_of_others_cannot_steer_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let (path, text) = lines(&folder, 1);
    fs::write(&path, text.replace("/bin/solve", "\\u001b[2J\\u009b")).unwrap();
    let source = open(&path, Span::default()).unwrap();
    assert!(source.profile().ranks.iter().all(|rank| rank.executable == "\u{fffd}[2J\u{fffd}"));
}

#[test]
fn what_is_no_run_is_said_to_be_none() {
    let folder = tempfile::tempdir().unwrap();
    let said = |content: &[u8]| {
        let path = folder.path().join("file");
        fs::write(&path, content).unwrap();
        open(&path, Span::default()).unwrap_err().to_string()
    };
    assert!(said(b"").contains("is empty"));
    assert!(said(b" \n ").contains("is empty"));
    assert!(said(b"@ mpiP\n").contains("neither a recording"));
    assert!(
        said(b"{\"schema\": \"mpiprobe.ps/1\"}")
            .contains("holds \"mpiprobe.ps/1\", and this mpiprobe reads mpiprobe.profile/1")
    );
    assert!(said(b"{}").contains("is neither a recording"));
    assert!(said(b"{\"schema\": \"mpiprobe.profile/1\"}").contains("profile 1 (at byte 0) cannot be read"));
    assert!(said(&b"{\"a\":".repeat(100_000)).contains("is no JSON"));
    let missing = open(&folder.path().join("nothing"), Span::default()).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read ") && missing.contains("No such file"), "{missing}");
    let directory = open(folder.path(), Span::default()).unwrap_err().to_string();
    assert!(directory.contains("it is a Directory"), "{directory}");
}
