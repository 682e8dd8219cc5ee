//! `mpiprobe export`: what other tools read in what it writes, of traces of which everything is known; and the same traces as they are
//! viewed and plotted.

mod made;
mod readers;

use std::{collections::BTreeMap, fs};

use libtest_mimic::{Arguments, Failed, Trial};
use mpiprobe_tests::{
    Profiler, Requirement, requirement,
    terminal::{STARTER, Terminal},
};
use serde_json::{Value, json};

use made::{CALLS_OF_STEP, MESSAGES_OF_STEP, Made, RANKS, STEPS};
use readers::{otf2_print, read};

fn main() {
    let with =
        |name: &str, needed: Requirement, test: fn() -> Result<(), Failed>| requirement::trial(name, &[needed], test);
    let tests: Vec<Trial> = vec![
        with("otf2_by_otf2_print", Requirement::Command("otf2-print"), otf2_by_otf2_print),
        with("otf2_by_its_python_reader", Requirement::Readers, otf2_by_its_python_reader),
        with("otf2_has_both_ends_or_none", Requirement::Readers, otf2_has_both_ends_or_none),
        with("perfetto_by_its_own_classes", Requirement::Readers, perfetto_by_its_own_classes),
        with("parquet_by_duckdb_with_the_queries_of_the_docs", Requirement::Readers, parquet_by_duckdb),
        requirement::trial("csv_and_chrome_have_each_call", &[], csv_and_chrome),
        requirement::trial("what_cannot_be_exported_is_said", &[], refusals),
        requirement::trial("a_trace_is_printed_and_plotted", &[], printed_and_plotted),
        with("a_trace_is_gone_through_on_a_terminal", Requirement::Command(STARTER), on_a_terminal),
    ];
    mpiprobe_tests::run(Arguments::from_args(), tests);
}

const CALLS: u64 = RANKS * STEPS * CALLS_OF_STEP;
const MESSAGES: u64 = RANKS * STEPS * MESSAGES_OF_STEP;

#[expect(clippy::needless_pass_by_value, reason = "what is compared is made for it")]
fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), Failed> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:?} instead of {expected:?}").into()) }
}

fn otf2_by_otf2_print() -> Result<(), Failed> {
    Made::both()?.iter().try_for_each(otf2_by_otf2_print_of)
}

fn otf2_by_otf2_print_of(made: &Made) -> Result<(), Failed> {
    made.export(&["otf2", "whole"], &[])?;
    let text = otf2_print(&made.path("whole").join("traces.otf2"))?;
    let count =
        |record: &str| text.lines().filter(|line| line.split_whitespace().next() == Some(record)).count() as u64;
    for record in ["MPI_ISEND", "MPI_ISEND_COMPLETE", "MPI_IRECV_REQUEST", "MPI_IRECV"] {
        expect(record, count(record), MESSAGES)?;
    }
    expect("MPI_COLLECTIVE_END", count("MPI_COLLECTIVE_END"), RANKS * STEPS)?;

    // A part has whole messages and balanced regions, and says what it has left out.
    let options = ["--from", "10ms", "--until", "30ms", "--ranks", "0..2", "--synthetic-ends"];
    let ended = made.export(&["otf2", "part"], &options)?;
    let said = ended.stderr.join("\n");
    if !said.contains("have no other end in it, and were left out as such") {
        return Err(format!("nothing is said of what was left out:\n{said}").into());
    }
    let text = otf2_print(&made.path("part").join("traces.otf2"))?;
    let count =
        |record: &str| text.lines().filter(|line| line.split_whitespace().next() == Some(record)).count() as u64;
    expect("regions of the part that are left", count("LEAVE"), count("ENTER"))?;
    expect("messages of the part", count("MPI_IRECV"), count("MPI_ISEND"))?;
    let is_some = (1..MESSAGES / 2).contains(&count("MPI_ISEND"));
    expect("some messages of the part, not all", is_some, true)
}

fn otf2_by_its_python_reader() -> Result<(), Failed> {
    Made::both()?.iter().try_for_each(otf2_by_its_python_reader_of)
}

fn otf2_by_its_python_reader_of(made: &Made) -> Result<(), Failed> {
    made.export(&["otf2", "out"], &[])?;
    let anchor = made.path("out").join("traces.otf2");
    let seen = read("read_otf2.py", &[anchor.as_os_str()])?;
    let records = seen.get("records").cloned().unwrap_or_default();
    let count = |kind: &str| records.get(kind).and_then(Value::as_u64).unwrap_or(0);
    for kind in ["MpiIsend", "MpiIsendComplete", "MpiIrecvRequest", "MpiIrecv"] {
        expect(kind, count(kind), MESSAGES)?;
    }
    expect("MpiCollectiveEnd", count("MpiCollectiveEnd"), RANKS * STEPS)?;
    expect("Enter and Leave", count("Enter"), count("Leave"))?;
    for (name, calls) in [("MPI_Isend", 6), ("MPI_Irecv", 6), ("MPI_Waitall", 1), ("MPI_Allreduce", 1)] {
        let entered = seen.pointer(&format!("/regions/{name}")).and_then(Value::as_u64).unwrap_or(0);
        expect(name, entered, RANKS * STEPS * calls)?;
    }
    let files = seen.get("files").and_then(Value::as_array).cloned().unwrap_or_default();
    // By this name, Scalasca knows what is MPI.
    expect("functions of MPI are marked as such", files.contains(&json!("MPI")), true)?;
    // Whom each rank has sent how much, by what each message says of itself.
    let mut sent: BTreeMap<(String, u64, i64), u64> = BTreeMap::new();
    for message in seen.get("messages").and_then(Value::as_array).into_iter().flatten() {
        let [from, to, tag, bytes, size] = message.as_array().map(Vec::as_slice).unwrap_or_default() else {
            return Err("a message of another form".into());
        };
        expect("ranks of the communicator", size.as_u64(), Some(RANKS))?;
        let tag = tag.as_i64().unwrap_or(-1);
        expect("bytes of a message", bytes.as_u64(), Some(made::bytes(tag)))?;
        *sent
            .entry((from.as_str().unwrap_or_default().to_owned(), to.as_u64().unwrap_or(u64::MAX), tag))
            .or_default() += 1;
    }
    expect("messages with different ends and tags", sent.len() as u64, RANKS * MESSAGES_OF_STEP)?;
    expect("all of them in each step", sent.values().all(|&count| count == STEPS), true)
}

/// An analysis that looks for the other end of a message would wait for ever.
fn otf2_has_both_ends_or_none() -> Result<(), Failed> {
    let parts: [&[&str]; 4] =
        [&[], &["--ranks", "0,2"], &["--from", "2ms", "--until", "5ms"], &["--ranks", "1..3", "--until", "4ms"]];
    for is_whole in [true, false] {
        let made = Made::irregular(is_whole)?;
        for (number, options) in parts.iter().enumerate() {
            let name = format!("part{number}");
            made.export_some(&["otf2", &name], options)?;
            let seen = read("read_otf2.py", &[made.path(&name).join("traces.otf2").as_os_str()])?;
            let what = format!("{options:?} of all {is_whole}");
            expect(&format!("messages with one end, {what}"), seen.get("one_end"), Some(&json!([])))?;
            expect(&format!("open requests, {what}"), seen.get("open_requests"), Some(&json!(0)))?;
            let messages = seen.get("messages").and_then(Value::as_array).map_or(0, Vec::len);
            // Nobody knows of messages that nobody waits for whether some were under way when recording began.
            expect(&format!("some messages, {what}"), messages > 0 || !is_whole, true)?;
        }
    }
    Ok(())
}

fn perfetto_by_its_own_classes() -> Result<(), Failed> {
    Made::both()?.iter().try_for_each(perfetto_by_its_own_classes_of)
}

fn perfetto_by_its_own_classes_of(made: &Made) -> Result<(), Failed> {
    made.export(&["perfetto", "out.pftrace"], &[])?;
    let seen = read("read_perfetto.py", &[made.path("out.pftrace").as_os_str()])?;
    expect("slices that have no end", seen.get("unfinished"), Some(&json!(0)))?;
    for (name, calls) in [("MPI_Isend", 6), ("MPI_Irecv", 6), ("MPI_Waitall", 1), ("MPI_Allreduce", 1)] {
        let slices = seen.pointer(&format!("/calls/{name}")).and_then(Value::as_u64);
        expect(name, slices, Some(RANKS * STEPS * calls))?;
    }
    let ranks: Vec<&str> =
        seen.get("ranks").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    expect("ranks", ranks.len() as u64, RANKS)?;
    let rank = |value: Option<&Value>| ranks.iter().position(|&name| value.and_then(Value::as_str) == Some(name));
    let arrows = seen.get("arrows").and_then(Value::as_array).cloned().unwrap_or_default();
    expect("arrows", arrows.len() as u64, MESSAGES)?;
    // By rank, when its receives of each step began, which are the steps' only ones.
    let mut steps: BTreeMap<Option<usize>, Vec<u64>> = BTreeMap::new();
    for arrow in &arrows {
        steps.entry(rank(arrow.get("rank"))).or_default().extend(arrow.get("begin").and_then(Value::as_u64));
    }
    for begins in steps.values_mut() {
        begins.sort_unstable();
        begins.dedup();
        expect("steps in which a rank has received", begins.len() as u64, STEPS)?;
    }
    for arrow in &arrows {
        let number = |key: &str| arrow.get(key).and_then(Value::as_u64);
        let (Some(sent_by), Some(tag), Some(begin)) = (number("number"), number("tag"), number("begin")) else {
            return Err(format!("an arrow does not say where it is from: {arrow}").into());
        };
        let receiver = rank(arrow.get("rank"));
        let from = rank(arrow.get("from")).unwrap_or(usize::MAX) as u64;
        let to = made::destination(from, tag);
        expect("the rank that an arrow leads to", receiver.map(|rank| rank as u64), Some(to))?;
        expect("what it leads to", arrow.get("in"), Some(&json!("MPI_Waitall")))?;
        let step = steps.get(&receiver).and_then(|begins| begins.binary_search(&begin).ok());
        expect("the step that it ends in", step.map(|step| step as u64), Some(made::step_of(sent_by)))?;
    }
    Ok(())
}

/// Blocks of SQL in the page.
fn queries() -> Result<Vec<String>, Failed> {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/exports.md"))?;
    let blocks = page.split("```sql\n").skip(1).filter_map(|rest| rest.split_once("```"));
    Ok(blocks.map(|(query, _)| query.to_owned()).collect())
}

fn parquet_by_duckdb() -> Result<(), Failed> {
    Made::both()?.iter().try_for_each(parquet_by_duckdb_of)
}

fn parquet_by_duckdb_of(made: &Made) -> Result<(), Failed> {
    made.export(&["parquet", "out"], &[])?;
    let mut asked = vec![
        "SELECT count(*), sum(sent_bytes), count(DISTINCT rank), min(start_ns), sum(completes) FROM 'calls.parquet'".to_owned(),
        "SELECT count(*), sum(CASE WHEN receive_end_ns > send_start_ns THEN 1 ELSE 0 END)::BIGINT FROM 'messages.parquet'"
            .to_owned(),
        // Both tables say the same of a message.
        "SELECT count(*) FROM 'messages.parquet' m JOIN 'calls.parquet' s ON (m.send_rank, m.send_number) = (s.rank, s.number)
             JOIN 'calls.parquet' r ON (m.receive_rank, m.receive_number) = (r.rank, r.number)
         WHERE s.destination = m.receive_rank AND s.start_ns = m.send_start_ns AND r.start_ns + r.duration_ns = m.receive_end_ns"
            .to_owned(),
    ];
    let shown = queries()?;
    expect("queries are shown in docs/exports.md", shown.len() >= 3, true)?;
    asked.extend(shown);
    let directory = made.path("out");
    let arguments: Vec<_> = std::iter::once(directory.as_os_str()).chain(asked.iter().map(AsRef::as_ref)).collect();
    let seen = read("query_parquet.py", &arguments)?;
    let number = |at: &str| {
        let value = seen.pointer(at);
        // A sum is wider than JSON's numbers, and comes as text.
        value.and_then(|value| value.as_u64().or_else(|| value.as_str()?.parse().ok()))
    };
    let bytes: u64 = (0..6).map(made::bytes).sum::<u64>() * RANKS * STEPS;
    expect("calls", number("/0/0/0"), Some(CALLS))?;
    expect(
        "bytes sent, as bytes of messages and of the reductions",
        number("/0/0/1"),
        Some(bytes + 8 * RANKS * STEPS),
    )?;
    expect("ranks", number("/0/0/2"), Some(RANKS))?;
    let first = number("/0/0/3").ok_or("no first call")?;
    expect("the first call", first.abs_diff(made.begin_ns) <= made.within_ns, true)?;
    expect("requests completed", number("/0/0/4"), Some(2 * MESSAGES))?;
    expect("messages", number("/1/0/0"), Some(MESSAGES))?;
    expect("messages that were received after they were sent", number("/1/0/1"), Some(MESSAGES))?;
    expect("messages of which calls say the same", number("/2/0/0"), Some(MESSAGES))?;
    for (at, query) in asked.iter().enumerate().skip(3) {
        let rows = seen.pointer(&format!("/{at}")).and_then(Value::as_array).map_or(0, Vec::len);
        expect(&format!("rows of {query}"), rows > 0, true)?;
    }
    Ok(())
}

fn csv_and_chrome() -> Result<(), Failed> {
    Made::both()?.iter().try_for_each(csv_and_chrome_of)
}

fn csv_and_chrome_of(made: &Made) -> Result<(), Failed> {
    let ended = made.export(&["csv", "-"], &[])?;
    expect("lines", ended.stdout.len() as u64, CALLS + 1)?;
    let header = ended.stdout.first().map(String::as_str).unwrap_or_default();
    let columns: Vec<&str> = header.split(',').collect();
    let column = |name: &str| columns.iter().position(|&one| one == name);
    let (Some(function), Some(start)) = (column("function"), column("start_ns")) else {
        return Err(format!("no columns: {header}").into());
    };
    let mut last = 0;
    for line in ended.stdout.iter().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        expect("fields", fields.len(), columns.len())?;
        let at: u64 = fields.get(start).and_then(|field| field.parse().ok()).ok_or("a call without a time")?;
        expect("calls are in the order of time", at >= last, true)?;
        last = at;
        expect("functions are named", fields.get(function).is_some_and(|name| name.starts_with("MPI_")), true)?;
    }
    let filtered = made.export(&["csv", "-"], &["--filter", "func == \"MPI_Waitall\""])?;
    expect("lines of a filter", filtered.stdout.len() as u64, RANKS * STEPS + 1)?;

    made.export(&["chrome", "out.json"], &[])?;
    let chrome: Value = serde_json::from_str(&fs::read_to_string(made.path("out.json"))?)?;
    let events = chrome.get("traceEvents").and_then(Value::as_array).ok_or("no traceEvents")?;
    let of = |phase: &str| {
        events.iter().filter(|event| event.get("ph").and_then(Value::as_str) == Some(phase)).count() as u64
    };
    for (phase, expected) in [("B", CALLS), ("E", CALLS), ("s", MESSAGES), ("f", MESSAGES)] {
        expect(phase, of(phase), expected)?;
    }
    Ok(())
}

fn refusals() -> Result<(), Failed> {
    let made = Made::halo()?;
    let refused = |arguments: &[&str], words: &str| -> Result<(), Failed> {
        let mut all: Vec<String> = vec!["export".into(), made.trace()];
        all.extend(arguments.iter().map(|&one| one.to_owned()));
        let ended = Profiler::start(&all)?.wait()?;
        let said = ended.stderr.join("\n");
        if ended.status.success() || !said.contains(words) {
            return Err(format!("{arguments:?} was not refused with {words:?}: {}", ended.printed()).into());
        }
        Ok(())
    };
    let there = made.path("there").display().to_string();
    fs::write(&there, "kept")?;
    refused(&["--to", "vampir", &there], "is none of the formats")?;
    refused(&["--to", "csv", &there], "there")?;
    refused(&["--to", "perfetto", &there], "there")?;
    refused(&["--to", "otf2", &there], "there")?;
    refused(&["--to", "otf2", "x", "--filter", "rank == 0"], "--ranks")?;
    refused(&["--to", "csv", "-", "--synthetic-ends"], "OTF2 only")?;
    expect("no file is overwritten", fs::read_to_string(&there)?.as_str(), "kept")?;
    let ended = Profiler::start(["export", there.as_str(), "--to", "csv", "-"])?.wait()?;
    expect("what is no trace is refused", ended.status.success(), false)
}

/// `mpiprobe ARGUMENTS`, which must succeed, or must not and say why.
fn run(arguments: &[&str], refused_with: Option<&str>) -> Result<String, Failed> {
    let ended = Profiler::start(arguments)?.wait()?;
    let said = ended.stderr.join("\n");
    let is_as_expected = match refused_with {
        None => ended.status.success(),
        Some(words) => !ended.status.success() && said.contains(words),
    };
    if is_as_expected { Ok(ended.stdout.join("\n")) } else { Err(format!("{arguments:?}: {}", ended.printed()).into()) }
}

fn printed_and_plotted() -> Result<(), Failed> {
    let made = Made::halo()?;
    let trace = made.trace();
    let printed = run(&["view", &trace, "--plain", "--ascii"], None)?;
    let lanes: Vec<&str> =
        printed.lines().filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit())).collect();
    expect("lanes", lanes.len() as u64, RANKS)?;
    for lane in lanes {
        expect(
            "a lane has waiting and collectives in it",
            lane.contains(['w', 'W']) && lane.contains(['c', 'C']),
            true,
        )?;
    }
    run(&["view", &trace, "--json"], Some("is a trace, which has no profile"))?;
    run(&["view", &trace, "--at", "1s"], Some("--at is for recordings"))?;

    let out = |name: &str| made.path(name).display().to_string();
    run(&["plot", "timeline", &trace, "-o", &out("whole.svg")], None)?;
    let whole = fs::read_to_string(made.path("whole.svg"))?;
    expect("messages are counted where they are too many", whole.contains("960 messages not drawn"), true)?;
    let part = ["--from", "1.5ms", "--until", "4ms", "--ranks", "0..2"];
    let arguments: Vec<String> = ["plot", "timeline", &trace, "-o", &out("part.svg")].map(str::to_owned).to_vec();
    let all: Vec<&str> = arguments.iter().map(String::as_str).chain(part).collect();
    run(&all, None)?;
    let part = fs::read_to_string(made.path("part.svg"))?;
    expect("a part has arrows", part.contains("<polygon") && !part.contains("not drawn"), true)?;
    expect("and names", part.contains("Waitall") && part.contains("completion"), true)?;
    run(&["plot", "matrix", &trace, "-o", &out("x.svg")], Some("of which there is a timeline only"))?;
    run(&["plot", "timeline", &trace, "--at", "1s", "-o", &out("x.svg")], Some("there is no --at"))?;
    run(&["plot", "timeline", &trace, "--from", "#2", "-o", &out("x.svg")], Some("since its beginning"))?;
    run(&["plot", "timeline", &trace, "--from", "1h", "-o", &out("x.svg")], Some("nothing to be plotted"))?;
    expect("nothing is left of a picture that was refused", made.path("x.svg").exists(), false)?;

    // What is cut off is said, and the rest is shown.
    let bytes = fs::read(made.path("halo.trace"))?;
    fs::write(made.path("cut.trace"), bytes.get(..bytes.len() * 3 / 4).unwrap_or_default())?;
    let ended = Profiler::start(["view", &out("cut.trace"), "--plain"])?.wait()?;
    expect("exit status of a part", ended.status.code(), Some(3))?;
    expect("what is missing is said", ended.stderr.join("\n").contains("it was cut off"), true)
}

fn on_a_terminal() -> Result<(), Failed> {
    let made = Made::halo()?;
    let mut terminal = Terminal::start((110, 32), ["view", &made.trace()])?;
    terminal.wait_for(&["mpiprobe program  4 ranks", "2,240 events", "p point-to-point", "lane 0"])?;
    // Whatever has not been read yet by then is waited for by the view.
    terminal.press("w")?;
    terminal.wait_for(&["rank 2: MPI_Waitall at halo.c:82", "waits 1.67 ms for rank 3"])?;
    terminal.press("\rd")?;
    terminal.wait_for(&["The call", "completes request"])?;
    terminal.press("d")?;
    terminal.wait_until("the call is closed", |shown| !shown.contains("The call"))?;
    terminal.press("/allred\r")?;
    terminal.wait_for(&["MPI_Allreduce at halo.c:83 in exchange"])?;
    terminal.resize(60, 15)?;
    // Cut where the narrow screen ends: a key that is pressed before is seen with the next one.
    terminal.wait_until("the narrow screen", |shown| shown.contains("after 6.0…"))?;
    terminal.press("?")?;
    terminal.wait_for(&["Keys"])?;
    terminal.press("?q")?;
    let left = terminal.left()?;
    expect("the terminal is given back", left.not_restored, Vec::<String>::new())?;
    expect("the view ends well", left.status.success(), true)
}
