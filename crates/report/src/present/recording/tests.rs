//! Recordings that are whole, cut off, damaged, hostile.

use std::{
    fs,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use mpiprobe_discover::files::PRIVATE;
use mpiprobe_model::{EndReason, Profile};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    At, RecordTo, Recorder, Recording, RecordingError,
    chunk::{ChunkKind, HEAD, Head},
    format::{MAGIC, START, VERSION},
    payload::pack,
    writer::{Added, Writer},
};

const SECOND: u64 = 1_000_000_000;

/// A profile of nobody, after so many seconds; what matters here is that moments are told apart.
fn profile(seconds: u64) -> Profile {
    let spread = json!({"sum": 0.5, "mean": 0.1, "min": 0.0, "max": 1e300, "imbalance": 0.1 + 0.2});
    let losses = serde_json::to_value(mpiprobe_model::Losses::default()).unwrap();
    let value = json!({
        "schema": mpiprobe_model::SCHEMA, "mpiprobe_version": "0.0.1", "host": "node1", "began": "2026-03-01T12:00:00.500Z",
        "observed_ns": seconds * SECOND + 500_000, "end": null, "complete": true, "incomplete_because": [],
        "engine": {"engine": "ebpf", "attached_by": "hand \\ \"", "attach_ns": u64::MAX, "libraries": []},
        "jobs": [{"id": format!("job {seconds}"), "ranks": 1, "size": null}],
        "totals": {"calls": seconds, "wall_ns": spread, "mpi_ns": spread, "mpi_percent": spread, "mpi_percent_of_all": 0.1,
            "efficiency": null},
        "groups": [], "functions": [], "traffic": null, "phases": [], "ranks": [], "losses": losses,
        "own_cost": {"per_call_ns": 1.0, "inside_ns": 0.1, "calls": 1, "total_ns": 1.0, "percent_of_wall": 0.0},
    });
    serde_json::from_value(value).unwrap()
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.rec");
    (folder, path)
}

/// A recording of so many seconds, and its bytes.
fn recorded(seconds: u64) -> (TempDir, PathBuf, Vec<u8>) {
    let (folder, path) = folder();
    let mut writer = Writer::create(&path, PRIVATE, u64::MAX).unwrap();
    for second in 1..=seconds {
        assert_eq!(writer.add(&profile(second)).unwrap(), Added::Written);
    }
    writer.end(0).unwrap();
    let bytes = fs::read(&path).unwrap();
    (folder, path, bytes)
}

/// Numbers of the seconds that can be read.
fn readable(recording: &Recording) -> Vec<u64> {
    (0..recording.len()).filter_map(|index| Some(recording.profile(index).ok()?.totals.calls)).collect()
}

fn opened(path: &Path) -> Recording {
    Recording::open(path).unwrap()
}

#[test]
fn what_is_recorded_is_read_back() {
    let (_folder, path, _) = recorded(3);
    let recording = opened(&path);
    assert_eq!((recording.len(), recording.notes().len()), (3, 0));
    for second in 1..=3 {
        let read = recording.profile(second - 1).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), serde_json::to_value(profile(second as u64)).unwrap());
    }
    assert_eq!(recording.describe(1), "12:00:02 (+00:02)");
}

#[test]
fn moments_are_found_by_number_by_time_and_by_the_clock() {
    let (_folder, path, _) = recorded(3);
    let recording = opened(&path);
    let find = |at: &str| recording.find(at.parse::<At>().unwrap());
    assert_eq!(find("#1").unwrap(), 0);
    assert_eq!(find("#3").unwrap(), 2);
    assert_eq!(find("2s").unwrap(), 1, "a moment of the second");
    assert_eq!(find("2100ms").unwrap(), 1, "the last one before");
    assert_eq!(find("+00:03").unwrap(), 2);
    assert_eq!(find("12:00:02").unwrap(), 1);
    for nowhere in ["#0", "#4", "0s", "500ms", "4s", "11:59:59", "12:00:00", "12:00:04"] {
        let error = find(nowhere).unwrap_err().to_string();
        assert!(error.ends_with("it goes from 12:00:01 (+00:01) to 12:00:03 (+00:03), 3 in all"), "{nowhere}: {error}");
    }
}

/// Invariant KEPT-MOMENTS.
#[test]
fn wherever_it_is_cut_off_what_was_whole_is_read() {
    let (_folder, path, bytes) = recorded(3);
    for length in 0..bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        match Recording::open(&path) {
            Ok(recording) => {
                let seconds = readable(&recording);
                assert_eq!(seconds, (1..=seconds.len() as u64).collect::<Vec<_>>());
                assert_eq!(recording.len(), seconds.len());
                assert_eq!(recording.notes().len(), 1, "{:?}", recording.notes());
                assert!(recording.notes()[0].contains("killed, or records still"), "{:?}", recording.notes());
            }
            Err(RecordingError::Empty(_) | RecordingError::Foreign(_)) => {}
            Err(other) => panic!("{length}: {other}"),
        }
    }
}

#[test]
fn damage_costs_one_moment() {
    let (_folder, path, bytes) = recorded(5);
    let heads: Vec<usize> = (0..bytes.len() - HEAD)
        .filter(|&at| {
            Head::of(bytes[at..at + HEAD].try_into().unwrap()).is_some_and(|head| head.kind == ChunkKind::Frame)
        })
        .collect();
    for (what, at, said) in [("head", heads[2] + 9, "said"), ("content", heads[2] + HEAD + 9, "")] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        fs::write(&path, &damaged).unwrap();
        let recording = opened(&path);
        assert_eq!(readable(&recording), [1, 2, 4, 5], "{what}");
        assert_eq!(
            recording.notes().iter().any(|note| note.contains("are damaged or left out")),
            !said.is_empty(),
            "{what}"
        );
        if said.is_empty() {
            let error = recording.profile(2).unwrap_err().to_string();
            assert!(error.contains("job.rec: moment 3 of 5 (at byte") && error.contains("checksum"), "{error}");
        }
    }
}

#[test]
fn looking_for_what_is_whole_comes_to_an_end() {
    let (_folder, path, bytes) = recorded(1);
    let mut all = bytes.clone();
    for _ in 0..1000 {
        all.extend([0; 10]);
        all.extend(&bytes[START..]);
    }
    fs::write(&path, all).unwrap();
    let recording = opened(&path);
    assert_eq!((recording.len(), recording.notes().len()), (100, 100));
}

#[test]
fn other_files_and_other_versions_are_told_apart() {
    let (_folder, path) = folder();
    for foreign in [&b""[..], b"text", &[0; 1000]] {
        fs::write(&path, foreign).unwrap();
        assert!(matches!(Recording::open(&path), Err(RecordingError::Foreign(_))));
    }
    let mut later = MAGIC.to_vec();
    later.extend((VERSION + 1).to_le_bytes());
    fs::write(&path, later).unwrap();
    let error = Recording::open(&path).unwrap_err().to_string();
    assert!(error.contains("is a recording of version 2, this mpiprobe reads version 1"), "{error}");
    assert!(matches!(Recording::open(path.parent().unwrap()), Err(RecordingError::Read { .. })));
}

/// A chunk whose sums are right, whatever is in it.
fn forged(length: usize, moments: &[Value]) -> (TempDir, PathBuf) {
    let (folder, path, _) = recorded(length as u64);
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let mut end = file.metadata().unwrap().len();
    for moment in moments {
        let at_ns = moment["observed_ns"].as_u64().unwrap_or(0);
        let chunk = pack(ChunkKind::Frame, at_ns, moment).unwrap();
        file.write_all_at(&chunk, end).unwrap();
        end += chunk.len() as u64;
    }
    (folder, path)
}

#[test]
fn profiles_of_other_versions_are_read_or_said_to_be() {
    let of = |change: fn(&mut Value)| {
        let mut value = serde_json::to_value(profile(2)).unwrap();
        change(&mut value);
        let (_folder, path) = forged(1, &[value]);
        opened(&path).profile(1).map_err(|error| error.to_string())
    };
    assert!(of(|value| value["something_new"] = json!({"a": 1})).is_ok(), "new fields may come at any time");
    let schema = of(|value| value["schema"] = json!("mpiprobe.profile/2")).unwrap_err();
    assert!(
        schema.contains("schema mpiprobe.profile/2, this version of mpiprobe reads mpiprobe.profile/1"),
        "{schema}"
    );
    let missing = of(|value| value["totals"] = json!({})).unwrap_err();
    assert!(missing.contains("moment 2 of 2") && missing.contains("written by mpiprobe 0.0.1"), "{missing}");
}

#[test]
fn terminals_are_not_steered() {
    let mut value = serde_json::to_value(profile(2)).unwrap();
    value["host"] = json!("\u{1b}[2Jnode\u{202e}");
    let (_folder, path) = forged(1, &[value]);
    assert_eq!(opened(&path).profile(1).unwrap().host, "\u{fffd}[2Jnode\u{fffd}");
}

#[test]
fn memory_is_for_what_is_there() {
    let (_folder, path, mut bytes) = recorded(1);
    // 256 MiB of zeroes, said to be one byte, and one byte said to be 256 MiB.
    let bomb = zstd::bulk::compress(&vec![0; 1 << 28], 3).unwrap();
    for (stored, length) in [(bomb, 1), (zstd::bulk::compress(b"1", 3).unwrap(), 1 << 28), (Vec::new(), u32::MAX)] {
        let head = Head {
            kind: ChunkKind::Frame,
            stored: u32::try_from(stored.len()).unwrap(),
            length,
            at_ns: 0,
            checksum: crc32fast::hash(&stored),
        };
        bytes.extend(head.bytes());
        bytes.extend(stored);
    }
    fs::write(&path, bytes).unwrap();
    let recording = opened(&path);
    let said = |index| recording.profile(index).unwrap_err().to_string();
    assert!(said(1).contains("another length") && said(2).contains("another length"), "{}", said(1));
    assert!(said(3).contains("larger than 512 MiB"), "{}", said(3));
}

#[test]
fn nothing_is_overwritten_and_no_link_followed() {
    let (folder, path) = folder();
    let to = |path: &Path| RecordTo { path: path.into(), mode: PRIVATE, limit: 1 << 20 };
    fs::write(&path, "precious").unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(folder.path().join("target"), &link).unwrap();
    for taken in [&path, &link] {
        assert!(matches!(to(taken).check(), Err(RecordingError::Exists(_))));
        assert!(matches!(Recorder::begin(&to(taken)), Err(RecordingError::Exists(_))));
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    assert!(!folder.path().join("target").exists());
    let nowhere = Recorder::begin(&to(Path::new("/nonexistent/x"))).unwrap_err();
    assert!(matches!(nowhere, RecordingError::Create { .. }), "{nowhere}");
}

#[test]
fn the_limit_holds_and_is_said() {
    let (_folder, path, bytes) = recorded(2);
    let limit = bytes.len() as u64;
    fs::remove_file(&path).unwrap();
    let mut writer = Writer::create(&path, PRIVATE, limit).unwrap();
    let added: Vec<Added> = (1..=10).map(|second| writer.add(&profile(second)).unwrap()).collect();
    assert_eq!(added.iter().filter(|added| **added == Added::Written).count(), 2);
    assert_eq!(writer.end(3).unwrap(), 8);
    let recording = opened(&path);
    assert_eq!(readable(&recording), [1, 2]);
    assert!(recording.notes()[0].starts_with("3 moments were not recorded"), "{:?}", recording.notes());
    assert!(recording.notes()[1].starts_with("its last 8 moments were not recorded"), "{:?}", recording.notes());
    // Only the few words about the end are beyond it.
    assert!(fs::metadata(&path).unwrap().len() < limit + 200);
}

#[test]
fn a_recorder_writes_the_last_moment_once() {
    let (_folder, path) = folder();
    let mut recorder = Recorder::begin(&RecordTo { path: path.clone(), mode: PRIVATE, limit: u64::MAX }).unwrap();
    let last = Arc::new(Profile { end: Some(EndReason::TargetsEnded), ..profile(9) });
    recorder.add(&Arc::new(profile(1)));
    recorder.add(&last);
    recorder.add(&last);
    assert!(recorder.end());
    let recording = opened(&path);
    assert_eq!(readable(&recording), [1, 9]);
    assert!(recording.notes().is_empty());
}

/// As on a full disk.
#[test]
fn a_disk_without_room_ends_the_recording_only() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let (_folder, path) = folder();
    let writer = Writer::create(&path, PRIVATE, u64::MAX).unwrap();
    let mut writer = writer.onto(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    let error = writer.add(&profile(1)).unwrap_err().to_string();
    assert!(error.contains("cannot record any longer") && error.contains("No space left"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_it_fail(bytes in proptest::collection::vec(any::<u8>(), 0..2000), is_begun in any::<bool>()) {
        let (_folder, path) = folder();
        let mut all = if is_begun { recorded(1).2[..START].to_vec() } else { Vec::new() };
        all.extend(bytes);
        fs::write(&path, all).unwrap();
        if let Ok(recording) = Recording::open(&path) {
            readable(&recording);
        }
    }

    #[test]
    fn no_change_makes_it_fail(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20)) {
        let (_folder, path, mut bytes) = recorded(4);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        fs::write(&path, bytes).unwrap();
        if let Ok(recording) = Recording::open(&path) {
            for second in readable(&recording) {
                prop_assert!((1..=4).contains(&second), "what is read is what was recorded");
            }
            for index in 0..recording.len() {
                recording.describe(index);
            }
        }
    }
}
