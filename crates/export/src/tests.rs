//! What formats that show calls and messages have of traces made by hand.

use std::collections::BTreeMap;

use mpiprobe_model::filter::Filter;
use mpiprobe_replay::Clocks;
use mpiprobe_trace::{Change, HandMade, LocationId, Selected, Span, Trace, call};

use crate::{Exported, Selection, chrome, csv, perfetto};

fn with<T>(span: Span, filter: Option<&Filter>, write: impl FnOnce(&Selection<'_>) -> T) -> T {
    let clocks = Clocks::same();
    let has = |_: LocationId| true;
    write(&Selection { clocks: &clocks, span, has: &has, filter, threads: 2 })
}

/// What Chrome's format has, and the ids of arrows that begin and end in it.
fn chrome_of(trace: &dyn Trace, span: Span, filter: Option<&Filter>) -> (Exported, Vec<String>, Vec<String>) {
    let mut text = Vec::new();
    let exported = with(span, filter, |selection| chrome::write(trace, selection, &mut text, &|_| {})).unwrap();
    let text = String::from_utf8(text).unwrap();
    let ids = |phase: &str| {
        let begin = format!("{{\"ph\":\"{phase}\"");
        let lines = text.lines().filter(|line| line.starts_with(&begin));
        let mut ids: Vec<String> =
            lines.map(|line| line.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned()).collect();
        ids.sort();
        ids
    };
    (exported, ids("s"), ids("f"))
}

/// The arrows of Chrome's format, all of which have both ends; the other formats must have as many messages.
fn arrows(trace: &dyn Trace, span: Span, filter: Option<&Filter>) -> Exported {
    let (exported, begun, ended) = chrome_of(trace, span, filter);
    assert_eq!(begun, ended, "each arrow has both ends");
    assert_eq!(exported.messages, begun.len() as u64);
    let of_perfetto = with(span, filter, |selection| perfetto::write(trace, selection, &mut Vec::new(), &|_| {}));
    assert_eq!(of_perfetto.unwrap(), exported);
    #[cfg(feature = "parquet")]
    {
        let mut file = Vec::new();
        let of_parquet =
            with(span, filter, |selection| crate::parquet::write_messages(trace, selection, &mut file, &|_| {}));
        let Exported { messages, between_clocks, loose_ends, .. } = of_parquet.unwrap();
        assert_eq!(
            (messages, between_clocks, loose_ends),
            (exported.messages, exported.between_clocks, exported.loose_ends)
        );
    }
    exported
}

/// By the number of a call of rank 0: what columns of CSV say of it.
fn columns(trace: &dyn Trace, names: [&str; 2]) -> BTreeMap<(u64, String), [String; 2]> {
    let mut text = Vec::new();
    with(Span::ALL, None, |selection| csv::write(trace, selection, &mut text, &|_| {})).unwrap();
    let text = String::from_utf8(text).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let at = |name: &str| head.iter().position(|column| *column == name).unwrap();
    let (rank, number, function) = (at("rank"), at("number"), at("function"));
    let of_rank = lines.filter(|line| line[rank] == "0");
    of_rank
        .map(|line| {
            ((line[number].parse().unwrap(), line[function].to_owned()), names.map(|name| line[at(name)].to_owned()))
        })
        .collect()
}

/// Two ranks that send each other a message in each step, 100 ns after the one before, and meet in the world after each.
fn steps(ranks: u32, count: u64) -> HandMade {
    let mut made = HandMade::of_ranks(ranks);
    for step in 0..count {
        let at = 1000 + step * 100;
        for rank in 0..ranks {
            let other = rank ^ 1;
            let posted = call("MPI_Irecv", at, at + 1).from(other, 3, 8).posts(step + 1);
            made.add(rank, posted.clone());
            made.add(rank, call("MPI_Send", at + 2, at + 5).to(other, 3, 8));
            made.add(rank, call("MPI_Wait", at + 6, at + 20).completes(&posted));
            made.add(rank, call("MPI_Barrier", at + 30, at + 40).over(HandMade::WORLD));
        }
    }
    made
}

#[test]
fn a_part_of_the_time_and_of_the_ranks_has_its_messages() {
    let made = steps(4, 10);
    let span = Span { from_ns: 1200, until_ns: 1499 };
    assert_eq!(arrows(&made, span, None).messages, 3 * 4);
    // Without the others there is no collective of all members, after which ends would be sure again.
    let some = Selected::new(&made, |process| process.0 < 2);
    let exported = arrows(&some, span, None);
    assert_eq!((exported.messages, exported.loose_ends, exported.cut_calls), (3 * 2, 0, 0));
    assert_eq!(exported.calls, 3 * 2 * 4);
    let beginning = Span { from_ns: 1000, ..Span::ALL };
    assert_eq!(arrows(&some, beginning, None), arrows(&some, Span::ALL, None));
}

#[test]
fn a_message_of_which_a_span_has_one_end_is_told_and_has_no_arrow() {
    let made = steps(2, 3);
    // The last step's sends are in it, and what waits for them returns behind it.
    let exported = arrows(&made, Span { from_ns: 1000, until_ns: 1210 }, None);
    assert_eq!((exported.messages, exported.loose_ends, exported.cut_calls), (4, 2, 2));
    // The middle step's receives are posted before it, the last step is whole.
    let exported = arrows(&made, Span { from_ns: 1102, until_ns: 1300 }, None);
    assert_eq!((exported.messages, exported.loose_ends), (2, 4));
}

#[test]
fn half_messages_are_told() {
    let mut made = steps(2, 1);
    made.add(0, call("MPI_Send", 2000, 2010).to(1, 9, 8));
    made.add(1, call("MPI_Recv", 2100, 2110).from(0, 8, 8));
    let exported = arrows(&made, Span::ALL, None);
    assert_eq!((exported.messages, exported.loose_ends), (2, 2));
    // Nobody waits for what goes to nobody, what was only made to be sent, or what is no message.
    let mut made = steps(2, 1);
    let mut to_nobody = call("MPI_Send", 2000, 2010).to(1, 9, 8);
    if let Some(send) = &mut to_nobody.operation.send {
        send.partner = mpiprobe_trace::Partner::Null;
    }
    made.add(0, to_nobody);
    made.add(0, call("MPI_Send_init", 2020, 2030).to(1, 9, 8).posts(77));
    made.add(0, call("MPI_Put", 2040, 2050).to(1, 9, 8));
    let mut failed = call("MPI_Send", 2060, 2070).to(1, 9, 8);
    failed.result = 5;
    made.add(0, failed);
    let exported = arrows(&made, Span::ALL, None);
    assert_eq!((exported.messages, exported.loose_ends), (2, 0));
}

#[test]
fn a_filter_keeps_messages_of_which_it_keeps_both_calls() {
    let made = steps(2, 5);
    let exported = |text: &str| arrows(&made, Span::ALL, Some(&text.parse().unwrap()));
    let none = exported("func = \"MPI_Barrier\"");
    assert_eq!((none.calls, none.messages, none.loose_ends), (10, 0, 0));
    let half = exported("func = \"MPI_Send\"");
    assert_eq!((half.calls, half.messages, half.loose_ends), (10, 0, 10));
    let both = exported("func = \"MPI_Send\" or func = \"MPI_Wait\"");
    assert_eq!((both.calls, both.messages, both.loose_ends), (20, 10, 0));
}

#[test]
fn persistent_and_partitioned_messages_have_arrows() {
    let mut made = HandMade::of_ranks(2);
    let send = call("MPI_Send_init", 10, 11).to(1, 3, 8).posts(1);
    let receive = call("MPI_Recv_init", 10, 11).from(0, 3, 8).posts(1);
    made.add(0, send.clone());
    made.add(1, receive.clone());
    let (parts, whole) =
        (call("MPI_Psend_init", 20, 21).to(1, 4, 32).posts(2), call("MPI_Precv_init", 20, 21).from(0, 4, 32).posts(2));
    made.add(0, parts.clone());
    made.add(1, whole.clone());
    for step in 0..3 {
        let at = 100 + step * 100;
        made.add(0, call("MPI_Startall", at, at + 1).starts(&send).starts(&parts));
        made.add(1, call("MPI_Startall", at, at + 1).starts(&receive).starts(&whole));
        for part in 0..2 {
            made.add(0, call("MPI_Pready", at + 10 + part, at + 11 + part).changes(&parts, Change::Ready));
        }
        made.add(0, call("MPI_Waitall", at + 20, at + 30).completes(&send).completes(&parts));
        made.add(1, call("MPI_Waitall", at + 20, at + 40).completes(&receive).completes(&whole));
    }
    let exported = arrows(&made, Span::ALL, None);
    assert_eq!((exported.messages, exported.loose_ends), (6, 0));
}

#[test]
fn what_is_persistent_moves_its_amounts_when_it_is_started() {
    let mut made = HandMade::of_ranks(2);
    let send = call("MPI_Send_init", 10, 11).to(1, 3, 100).posts(1);
    let receive = call("MPI_Recv_init", 12, 13).from(1, 3, 30).posts(2);
    let reduction = call("MPI_Allreduce_init", 14, 15).moves(8, 8).posts(3);
    for one in [&send, &receive, &reduction] {
        made.add(0, one.clone());
    }
    made.add(0, call("MPI_Startall", 20, 21).starts(&send).starts(&receive).starts(&reduction));
    made.add(0, call("MPI_Waitall", 22, 23).completes(&send).completes(&receive).completes(&reduction));
    made.add(0, call("MPI_Start", 24, 25).starts(&send));
    made.add(0, call("MPI_Isend", 26, 27).to(1, 3, 5).posts(4));
    let found = columns(&made, ["sent_bytes", "received_bytes"]);
    let expected = [
        ("MPI_Send_init", "0", "0"),
        ("MPI_Recv_init", "0", "0"),
        ("MPI_Allreduce_init", "0", "0"),
        ("MPI_Startall", "108", "0"),
        ("MPI_Waitall", "0", "38"),
        ("MPI_Start", "100", "0"),
        ("MPI_Isend", "5", "0"),
    ];
    let found: Vec<(&str, &str, &str)> =
        found.iter().map(|((_, name), [sent, received])| (name.as_str(), sent.as_str(), received.as_str())).collect();
    assert_eq!(found, expected);
}
