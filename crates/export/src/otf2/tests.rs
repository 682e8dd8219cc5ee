//! What otf2-print and the official Python reader say of archives.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    process::Command,
};

use mpiprobe_replay::Clocks;
use mpiprobe_trace::{Call, Change, HandMade, LocationId, Partner, PhaseChange, ProcessId, Span, Trace as _, call};
use proptest::prelude::*;

use super::{Archive, ArchiveFile, Otf2Options, write};
use crate::{Exported, Selection};

struct Directory(PathBuf);

impl Archive for Directory {
    fn create(&self, file: ArchiveFile) -> io::Result<Box<dyn Write + '_>> {
        let path = self.0.join(file.path());
        fs::create_dir_all(path.parent().unwrap())?;
        Ok(Box::new(BufWriter::new(File::create_new(path)?)))
    }
}

fn exported(made: &HandMade, to: &Path, span: Span, synthetic_ends: bool) -> Exported {
    let clocks = Clocks::same();
    let has = |_: LocationId| true;
    let selection = Selection { clocks: &clocks, span, has: &has, filter: None, threads: 2 };
    write(made, &selection, Otf2Options { synthetic_ends }, &Directory(to.to_owned()), &|_| {}).unwrap()
}

/// What otf2-print prints; it must have nothing to complain of.
fn printed(directory: &Path) -> String {
    let output = Command::new("otf2-print").arg("--show-all").arg(directory.join("traces.otf2")).output();
    let output = output.expect("otf2-print is there: `cargo xtask setup test` installs it");
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    for complaint in ["UNKNOWN", "out of order", "duplicate", "INVALID", "[OTF2]"] {
        assert!(!text.contains(complaint), "{complaint} in\n{text}");
    }
    text
}

fn count(text: &str, record: &str) -> usize {
    text.lines().filter(|line| line.split_whitespace().next() == Some(record)).count()
}

fn small() -> HandMade {
    let mut made = HandMade::of_ranks(3);
    let site = made.site("exchange", "/src/halo.c", 91);
    let pair = made.communicator("pair", &[2, 0]);
    (0..3).for_each(|rank| made.add(rank, call("MPI_Init", 10, 20)));
    made.add(0, call("MPI_Send", 2000, 2500).to(1, -1, 8).at(site));
    made.add(1, call("MPI_Recv", 1500, 2600).from(0, -1, 8).at(site));
    let send = call("MPI_Isend", 3000, 3010).to(0, 7, 1 << 40).over(pair).posts(1);
    let receive = call("MPI_Irecv", 2990, 3001).from(1, 7, 1 << 40).over(pair).posts(1);
    made.add(0, send.clone());
    made.add(2, receive.clone());
    made.add(0, call("MPI_Wait", 3100, 3200).completes(&send));
    made.add(2, call("MPI_Waitall", 3100, 3210).completes(&receive));
    for rank in 0..3 {
        let mut inner = call("MPI_Allreduce", 4100, 4200).moves(8, 8);
        inner.depth = 1;
        made.add(rank, call("MPI_File_write_all", 4000, 4500).over(HandMade::WORLD));
        made.add(rank, inner);
        let begun = call("MPI_Ibcast", 5000, 5010).moves(8, 8).rooted(1).posts(9);
        made.add(rank, begun.clone());
        made.add(rank, call("MPI_Wait", 5100, 5200).completes(&begun));
        made.push(
            rank,
            mpiprobe_trace::Event::Phase(PhaseChange { at_ns: 5300, phase: Some("solve".into()), is_on: true }),
        );
        made.add(rank, call("MPI_Sendrecv", 6000, 6100).to((rank + 1) % 3, 1, 4).from((rank + 2) % 3, 1, 4));
        made.add(rank, call("MPI_Finalize", 7000, 7100));
    }
    made
}

#[test]
fn otf2_print_finds_every_record_and_nothing_to_complain_of() {
    let folder = tempfile::tempdir().unwrap();
    let made = small();
    let exported = exported(&made, folder.path(), Span::ALL, false);
    assert_eq!((exported.messages, exported.loose_ends, exported.cut_calls), (5, 0, 0));
    let text = printed(folder.path());
    for (record, expected) in [
        ("MPI_SEND", 1 + 3),
        ("MPI_RECV", 1 + 3),
        ("MPI_ISEND", 1),
        ("MPI_ISEND_COMPLETE", 1),
        ("MPI_IRECV_REQUEST", 1),
        ("MPI_IRECV", 1),
        ("MPI_COLLECTIVE_BEGIN", 3),
        ("MPI_COLLECTIVE_END", 3),
        ("NON_BLOCKING_COLLECTIVE_REQUEST", 3),
        ("NON_BLOCKING_COLLECTIVE_COMPLETE", 3),
    ] {
        assert_eq!(count(&text, record), expected, "{record} in\n{text}");
    }
    assert_eq!(count(&text, "ENTER"), count(&text, "LEAVE"));
    assert_eq!(count(&text, "ENTER"), 27 + 3 + 2 + 3, "calls, programs, call sites, phases\n{text}");
}

#[test]
fn messages_that_were_given_up_or_found_by_a_probe_have_left_out_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut made = HandMade::of_ranks(2);
    (0..2).for_each(|rank| made.add(rank, call("MPI_Init", 10, 20)));
    let given_up = call("MPI_Irecv", 100, 110).from(0, 7, 8).posts(1);
    made.add(1, given_up.clone());
    made.add(1, call("MPI_Cancel", 120, 130));
    made.add(1, call("MPI_Wait", 140, 150).changes(&given_up, Change::Cancelled));
    made.add(0, call("MPI_Send", 200, 210).to(1, 3, 8));
    let found = call("MPI_Mprobe", 190, 220).from(0, 3, 8).posts(2);
    let mut taken = call("MPI_Imrecv", 230, 240).from(0, 3, 8).completes(&found).posts(3);
    if let Some(receive) = &mut taken.operation.receive {
        receive.partner = Partner::Unknown;
    }
    let complete = call("MPI_Wait", 250, 260).completes(&call("MPI_Irecv", 230, 240).from(0, 3, 8).posts(3));
    made.add(1, found);
    made.add(1, taken);
    made.add(1, complete);
    (0..2).for_each(|rank| made.add(rank, call("MPI_Finalize", 300, 310)));
    let exported = exported(&made, folder.path(), Span::ALL, false);
    assert_eq!((exported.messages, exported.loose_ends), (1, 0), "{exported:?}");
}

#[test]
fn a_span_has_no_half_message_and_no_open_region() {
    let folder = tempfile::tempdir().unwrap();
    let made = small();
    let exported = exported(&made, folder.path(), Span { from_ns: 1600, until_ns: 6050 }, true);
    assert!(exported.cut_calls > 0 && exported.loose_ends > 0, "{exported:?}");
    let text = printed(folder.path());
    assert_eq!(count(&text, "ENTER"), count(&text, "LEAVE"));
    assert_eq!((count(&text, "MPI_SEND"), count(&text, "MPI_RECV")), (0, 0), "{text}");
    assert_eq!((count(&text, "MPI_ISEND"), count(&text, "MPI_IRECV")), (1, 1));
    assert!(text.contains("SYNTHETIC_INIT_AND_FINALIZE") && text.contains("\"MPI_Init\""), "{text}");
}

/// Ranks in a ring that send and receive in all ways in which one call does not tell all of a message: by requests that are started together,
/// with a tag that only completion tells, and by what a probe has found. A step takes 1 us.
fn in_many_ways(ranks: u32, steps: u64) -> HandMade {
    let mut made = HandMade::of_ranks(ranks);
    for rank in 0..ranks {
        let (next, before) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
        let to = |tag: i32, request: u64| call("MPI_Send_init", 10, 11).to(next, tag, 8).posts(request);
        let from = |tag: i32, request: u64| call("MPI_Recv_init", 10, 11).from(before, tag, 8).posts(request);
        let persistent = [to(1, 1), from(1, 2), to(2, 3), from(2, 4)];
        for one in &persistent {
            made.add(rank, one.clone());
        }
        for step in 0..steps {
            let at = 1000 * (step + 1);
            let all = |call: Call, what: fn(Call, &Call) -> Call| persistent.iter().fold(call, what);
            made.add(rank, all(call("MPI_Startall", at, at + 10), Call::starts));
            made.add(rank, all(call("MPI_Waitall", at + 100, at + 150), Call::completes));
            let mut posted = call("MPI_Irecv", at + 200, at + 210).from(before, 5, 8).posts(10);
            let complete = call("MPI_Wait", at + 300, at + 350).completes(&posted);
            let receive = posted.operation.receive.as_mut().unwrap();
            (receive.tag, receive.any_tag) = (None, true);
            made.add(rank, posted);
            made.add(rank, call("MPI_Send", at + 220, at + 230).to(next, 5, 8));
            made.add(rank, complete);
            made.add(rank, call("MPI_Send", at + 400, at + 410).to(next, 6, 8));
            made.add(rank, call("MPI_Send", at + 420, at + 430).to(next, 7, 8));
            let found = call("MPI_Mprobe", at + 440, at + 450).from(before, 6, 8).posts(11);
            made.add(rank, found.clone());
            made.add(rank, call("MPI_Mrecv", at + 460, at + 470).from(before, 6, 8).completes(&found));
            let found = call("MPI_Mprobe", at + 480, at + 490).from(before, 7, 8).posts(12);
            made.add(rank, found.clone());
            let taken = call("MPI_Imrecv", at + 500, at + 510).from(before, 7, 8).completes(&found).posts(13);
            made.add(rank, taken);
            let complete = call("MPI_Irecv", at + 500, at + 510).from(before, 7, 8).posts(13);
            made.add(rank, call("MPI_Wait", at + 600, at + 650).completes(&complete));
        }
    }
    made
}

/// How many records of sends and of receives there are.
fn ends(text: &str) -> (usize, usize) {
    let sum = |records: [&str; 2]| records.iter().map(|record| count(text, record)).sum();
    (sum(["MPI_SEND", "MPI_ISEND"]), sum(["MPI_RECV", "MPI_IRECV"]))
}

#[test]
fn messages_have_both_ends_whichever_call_tells_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let exported = exported(&in_many_ways(3, 4), folder.path(), Span::ALL, false);
    assert_eq!((exported.messages, exported.loose_ends), (3 * 4 * 5, 0), "{exported:?}");
    assert_eq!(ends(&printed(folder.path())), (60, 60));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Invariant WHOLE-MESSAGES.
    #[test]
    fn parts_have_whole_messages(from_ns in 0u64..5000, length_ns in 0u64..5000, left_out in 0u32..6, is_irregular: bool) {
        let folder = tempfile::tempdir().unwrap();
        let made = if is_irregular { HandMade::irregular(4, 20) } else { in_many_ways(4, 4) };
        let clocks = Clocks::same();
        // Of four ranks, one or none is left out.
        let has = |location: LocationId| location.0 != left_out;
        let span = Span { from_ns, until_ns: from_ns + length_ns };
        let selection = Selection { clocks: &clocks, span, has: &has, filter: None, threads: 2 };
        let options = Otf2Options { synthetic_ends: false };
        write(&made, &selection, options, &Directory(folder.path().to_owned()), &|_| {}).unwrap();
        let (sends, receives) = ends(&printed(folder.path()));
        prop_assert_eq!(sends, receives);
    }
}

#[test]
fn chunks_follow_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let made = HandMade::halo(2, 3000);
    let exported = exported(&made, folder.path(), Span::ALL, false);
    assert_eq!(exported.calls, made.event_count());
    let events = folder.path().join("traces/0.evt");
    assert!(fs::metadata(&events).unwrap().len() > 1 << 20, "more than a chunk");
    let text = printed(folder.path());
    assert_eq!(count(&text, "MPI_ISEND"), 2 * 3000 * 6);
    assert_eq!(count(&text, "MPI_IRECV"), 2 * 3000 * 6);
    assert_eq!(count(&text, "ENTER"), 2 * (1 + 2 * 3000 * 14));
}

#[test]
fn threads_are_locations_of_their_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut made = HandMade::of_ranks(2);
    let second = made.thread(ProcessId(0), 2000).0;
    let posted = call("MPI_Irecv", 100, 110).from(1, 0, 8).posts(3);
    made.add(0, posted.clone());
    made.add(1, call("MPI_Send", 200, 210).to(0, 0, 8));
    // Another thread waits for it.
    made.add(second, call("MPI_Wait", 150, 300).completes(&posted));
    let _: Call = posted;
    exported(&made, folder.path(), Span::ALL, false);
    let text = printed(folder.path());
    assert_eq!((count(&text, "MPI_IRECV_REQUEST"), count(&text, "MPI_IRECV")), (1, 1), "{text}");
    assert!(folder.path().join(format!("traces/{}.evt", 1u64 << 32)).exists());
    assert!(made.definitions().locations.len() == 3);
}
