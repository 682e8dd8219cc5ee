//! Whatever is written is read back, as far as it is there.
#![allow(clippy::cast_possible_truncation, reason = "nothing here is so long")]

use std::{fs, io::Write as _};

use proptest::prelude::*;
use tempfile::NamedTempFile;

use super::*;
use crate::{
    Bytes, Call, Change, CommunicatorId, Definitions, Event, HandMade, LocationId, Lock, Neighbours, Numbers,
    Operation, Partner, PhaseChange, ProcessId, RequestChange, RequestId, Root, Span, Target, Trace, Transfer, call,
    in_order,
};

fn written(trace: &HandMade) -> Vec<u8> {
    copy(trace, Span::ALL, Vec::new()).unwrap()
}

fn file(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn opened(bytes: &[u8]) -> TraceFiles {
    TraceFiles::open(&[file(bytes).path()]).unwrap()
}

fn events(trace: &dyn Trace, location: u32) -> Vec<Event> {
    trace.events(LocationId(location), Span::ALL).map(Result::unwrap).collect()
}

#[test]
fn what_is_written_is_read_back() {
    let mut made = HandMade::halo(4, 700);
    let pair = made.communicator("pair", &[3, 1]);
    let neighbours = Neighbours { sources: vec![0], destinations: vec![0, 1] };
    made.definitions.communicators[pair.index()].neighbours.insert(1, neighbours.clone());
    made.add(1, call("MPI_Send", 1 << 40, (1 << 40) + 5).over(pair).to(0, -3, u64::MAX));
    made.push(1, Event::Phase(PhaseChange { at_ns: 1 << 41, phase: Some("solve".into()), is_on: true }));
    made.push(1, Event::Phase(PhaseChange { at_ns: 1 << 42, phase: None, is_on: false }));
    let mut late = call("MPI_Bcast", 1 << 43, 1 << 44).rooted(2).moves(0, 77).over(pair);
    late.number = 5;
    late.has_returned = false;
    made.add(1, late);
    let read = opened(&written(&made));
    assert!(read.notes().is_empty(), "{:?}", read.notes());
    assert_eq!(read.definitions().processes, made.definitions.processes);
    let found: Vec<_> = read.definitions().communicators.iter().flat_map(|one| &one.neighbours).collect();
    assert_eq!(found, [(&1, &neighbours)]);
    assert_eq!(read.definitions().communicators, made.definitions.communicators);
    assert_eq!(read.definitions().call_sites, made.definitions.call_sites);
    assert_eq!((read.span(), read.event_count()), (made.span(), made.event_count()));
    for location in 0..4 {
        assert_eq!(events(&read, location), events(&made, location));
    }
    let span = Span { from_ns: 400_000_000, until_ns: 401_000_000 };
    let part = |trace: &dyn Trace| trace.events(LocationId(2), span).map(Result::unwrap).collect::<Vec<_>>();
    assert!(!part(&made).is_empty());
    assert_eq!(part(&read), part(&made));
}

#[test]
fn an_event_of_a_halo_exchange_takes_less_than_four_bytes() {
    let made = HandMade::halo(8, 2000);
    let bytes = written(&made).len() as f64;
    let each = bytes / made.event_count() as f64;
    assert!(each <= 4.0, "{each} bytes an event");
}

/// Invariant TRACE-PREFIX.
#[test]
fn wherever_a_file_is_cut_off_what_is_before_is_read() {
    let made = HandMade::halo(3, 1900);
    let bytes = written(&made);
    let all: Vec<Vec<Event>> = (0..3).map(|location| events(&made, location)).collect();
    let mut numbers = Numbers(7);
    let mut most = 0;
    for _ in 0..100 {
        let length = 16 + numbers.below(bytes.len() as u64 - 16) as usize;
        let read = opened(&bytes[..length]);
        let known = u32::try_from(read.definitions().locations.len()).unwrap();
        assert!(known == 0 || known == 3, "definitions are there or not");
        for location in 0..known {
            let events = events(&read, location);
            most = most.max(events.len());
            assert_eq!(events, all[location as usize][..events.len()], "cut at {length}");
        }
    }
    assert!(most > 8000);
}

#[test]
fn damage_costs_what_is_damaged_and_is_said() {
    let made = HandMade::halo(3, 1900);
    let whole = written(&made);
    let all: Vec<Vec<Event>> = (0..3).map(|location| events(&made, location)).collect();
    let mut numbers = Numbers(11);
    for _ in 0..100 {
        let mut bytes = whole.clone();
        let at = 16 + numbers.below(bytes.len() as u64 - 16) as usize;
        bytes[at] ^= 1 << numbers.below(8);
        let path = file(&bytes);
        let Ok(read) = TraceFiles::open(&[path.path()]) else { panic!("a damaged file is read as far as it can be") };
        let mut missing = made.event_count();
        let mut errors = 0;
        for location in read.definitions().location_ids() {
            for event in read.events(location, Span::ALL) {
                match event {
                    Ok(event) => {
                        let number = usize::try_from(event.call().unwrap().number).unwrap();
                        assert_eq!(event, all[location.index()][number]);
                        missing -= 1;
                    }
                    Err(_) => errors += 1,
                }
            }
        }
        assert!(errors > 0 || !read.notes().is_empty(), "nobody has noticed byte {at}");
        assert!(missing > 0 || !read.notes().is_empty());
    }
}

/// What somebody has read of a file: of each location its events, as far as there is no mistake, and how many mistakes there are.
fn as_far_as_it_goes(read: &TraceFiles) -> (Vec<Vec<Event>>, u64) {
    let mut errors = 0;
    let locations = read.definitions().location_ids().map(|location| {
        read.events(location, Span::ALL).filter_map(|event| event.inspect_err(|_| errors += 1).ok()).collect()
    });
    (locations.collect(), errors)
}

/// With all that events can have: requests, phases, several threads, communicators, calls that have not returned.
fn varied() -> HandMade {
    let mut made = HandMade::halo(3, 300);
    let pair = made.communicator("pair", &[2, 0]);
    let thread = made.thread(ProcessId(1), 77);
    let end = made.span().until_ns;
    let made_once = call("MPI_Send_init", end + 1, end + 2).to(1, 4, 100).over(pair).posts(900);
    made.add(0, made_once.clone());
    for step in 0..200 {
        let at = end + 10 + step * 10;
        made.add(0, call("MPI_Start", at, at + 1).starts(&made_once));
        made.add(0, call("MPI_Wait", at + 2, at + 5).completes(&made_once));
        made.add(2, call("MPI_Recv", at, at + 4).from(1, 4, 100).over(pair));
        made.add(thread.0, call("MPI_Test", at, at + 1));
        made.push(2, Event::Phase(PhaseChange { at_ns: at + 6, phase: Some(format!("step {step}")), is_on: true }));
    }
    let mut open = call("MPI_Barrier", end + 5000, end + 6000).over(HandMade::WORLD);
    open.has_returned = false;
    made.add(1, open);
    made
}

/// In small chunks: more places at which something can be cut.
fn in_small_chunks(made: &HandMade) -> Vec<u8> {
    let mut writer = TraceWriter::new(Vec::new()).unwrap();
    copy::define(&made.definitions, |definition| writer.define(definition));
    for (place, event) in in_order(made, made.definitions.location_ids(), Span::ALL).enumerate() {
        let (location, event) = event.unwrap();
        writer.push(location, &event).unwrap();
        if place % 500 == 0 {
            writer.flush().unwrap();
        }
    }
    writer.finish().unwrap()
}

/// Invariant TRACE-PREFIX.
#[test]
fn cut_anywhere_a_varied_trace_is_a_prefix_of_itself_or_says_that_it_is_none() {
    const SEED: u64 = 20_261_125;
    let made = varied();
    let bytes = in_small_chunks(&made);
    let whole = opened(&bytes);
    assert!(whole.notes().is_empty(), "{:?}", whole.notes());
    let (all, errors) = as_far_as_it_goes(&whole);
    assert_eq!((errors, all.len()), (0, 4));
    assert_eq!(all, (0..4).map(|location| events(&made, location)).collect::<Vec<_>>());
    let mut numbers = Numbers(SEED);
    let mut lengths: Vec<usize> = (0..100).map(|_| numbers.below(bytes.len() as u64) as usize).collect();
    // The head of the file, and around the head of the first chunk.
    lengths.extend(0..100);
    for length in lengths {
        let path = file(&bytes[..length]);
        let read = match TraceFiles::open(&[path.path()]) {
            Ok(read) => read,
            Err(error) => {
                assert!(length < 16, "seed {SEED}, cut at {length}: {error}");
                assert!(error.to_string().ends_with(" is no trace of mpiprobe"), "{error}");
                continue;
            }
        };
        let (cut, errors) = as_far_as_it_goes(&read);
        assert_eq!(errors, 0, "seed {SEED}, cut at {length}: what is cut off is no mistake");
        for (cut, all) in cut.iter().zip(&all) {
            assert!(all.starts_with(cut), "seed {SEED}, cut at {length}");
        }
        assert!(read.event_count() <= whole.event_count());
    }
}

/// Bytes, runs of bytes, and chunks in other places: everything is an event of the trace, and what is missing is said.
#[test]
fn damaged_anywhere_a_varied_trace_tells_nothing_that_is_not_true() {
    const SEED: u64 = 11_111;
    let made = varied();
    let bytes = in_small_chunks(&made);
    let all: Vec<Vec<Event>> = (0..4).map(|location| events(&made, location)).collect();
    let mut numbers = Numbers(SEED);
    for round in 0..200 {
        let mut damaged = bytes.clone();
        let at = numbers.below(bytes.len() as u64) as usize;
        let length = (numbers.below(300) as usize).min(bytes.len() - at);
        let what = match round % 4 {
            0 => {
                damaged[at] ^= 1 << numbers.below(8);
                "a bit"
            }
            1 => {
                damaged[at..at + length].fill(0);
                "zeros"
            }
            2 => {
                drop(damaged.drain(at..at + length));
                "left out"
            }
            _ => {
                let other = numbers.below(bytes.len() as u64 - length as u64) as usize;
                damaged.splice(at..at, bytes[other..other + length].iter().copied());
                "put in"
            }
        };
        let context = format!("seed {SEED}, round {round}: {what} at {at}, {length} bytes");
        let path = file(&damaged);
        let read = match TraceFiles::open(&[path.path()]) {
            Ok(read) => read,
            Err(error) => {
                let said = error.to_string();
                let is_clear = said.contains(" is no trace of mpiprobe") || said.contains(" is a trace of format ");
                assert!(is_clear && at < 16, "{context}: {said}");
                continue;
            }
        };
        let (found, errors) = as_far_as_it_goes(&read);
        let count: usize = found.iter().map(Vec::len).sum();
        for (found, all) in found.iter().zip(&all) {
            // In their order; definitions may be older than they were.
            let mut rest = all.iter().map(when);
            assert!(found.iter().all(|event| rest.any(|other| other == when(event))), "{context}");
        }
        let is_whole = count == all.iter().map(Vec::len).sum::<usize>();
        assert!(is_whole || errors > 0 || !read.notes().is_empty(), "{context}: nobody has noticed");
    }
}

fn when(event: &Event) -> (u64, u64, Option<u64>) {
    (event.time_ns(), event.end_ns(), event.call().map(|call| call.number))
}

/// Checksums keep no one from writing what he likes: they can be computed.
#[test]
fn whoever_can_compute_checksums_makes_no_panic_either() {
    const SEED: u64 = 4_242;
    let bytes = in_small_chunks(&varied());
    let mut numbers = Numbers(SEED);
    for _ in 0..300 {
        let mut forged = bytes[..16].to_vec();
        let mut at = 16;
        while at < bytes.len() {
            let head = chunk::Head::read(bytes[at..at + chunk::HEAD].try_into().unwrap()).unwrap();
            let begin = at + chunk::HEAD;
            let stored = &bytes[begin..begin + head.stored as usize];
            at = begin + stored.len();
            let mut payload = head.payload(stored).unwrap();
            let mut head = head;
            for _ in 0..numbers.below(4) {
                let place = numbers.below(payload.len() as u64) as usize;
                // Digits and signs of JSON turn into other digits.
                let value = if payload[place].is_ascii_digit() {
                    b'0' + numbers.below(10) as u8
                } else {
                    numbers.below(256) as u8
                };
                payload[place] = value;
            }
            match numbers.below(12) {
                0 => head.location = numbers.below(8) as u32,
                1 => head.count = numbers.below(1 << 20) as u32,
                2 => head.first_number = u64::MAX - numbers.below(9),
                3 => (head.from_ns, head.until_ns) = (u64::MAX, 0),
                4 => head.raw = numbers.below(1 << 26) as u32,
                _ => head.raw = payload.len() as u32,
            }
            let stored = zstd::bulk::compress(&payload, 1).unwrap();
            (head.stored, head.checksum) = (stored.len() as u32, crc32fast::hash(&stored));
            forged.extend(head.bytes());
            forged.extend(stored);
        }
        let path = file(&forged);
        if let Ok(read) = TraceFiles::open(&[path.path()]) {
            as_far_as_it_goes(&read);
            read.span();
            copy(&read, Span::ALL, Vec::new()).ok();
        }
    }
}

#[test]
fn files_of_several_nodes_are_one_trace() {
    let of_node = |ranks: std::ops::Range<u32>, host: &str| {
        let mut made = HandMade::of_ranks(4);
        let site = made.site("main", "ring.c", 9);
        made.definitions.nodes[0].host = host.into();
        let from = ranks.start as usize;
        made.definitions.processes = made.definitions.processes[from..ranks.end as usize].to_vec();
        made.definitions.locations.truncate(ranks.len());
        let pair = made.communicator("pair", &[0, 2]);
        for (location, rank) in ranks.enumerate() {
            let at = u64::from(rank) * 100;
            made.add(location as u32, call("MPI_Barrier", at, at + 10).over(HandMade::WORLD).at(site));
            if rank % 2 == 0 {
                made.add(location as u32, call("MPI_Send", at + 20, at + 30).over(pair).to(1 - rank / 2, 1, 1));
            }
        }
        file(&written(&made))
    };
    let (one, other) = (of_node(0..2, "one"), of_node(2..4, "other"));
    let read = TraceFiles::open(&[one.path(), other.path()]).unwrap();
    let known: &Definitions = read.definitions();
    let hosts: Vec<_> = known.processes.iter().map(|process| known.nodes[process.node.index()].host.as_str()).collect();
    assert_eq!(hosts, ["one", "one", "other", "other"]);
    assert_eq!((known.locations.len(), known.communicators.len(), known.call_sites.len()), (4, 2, 1));
    let overs: Vec<_> =
        (0..4).map(|location| events(&read, location)[0].call().unwrap().operation.communicator).collect();
    assert_eq!(overs, [Some(HandMade::WORLD); 4]);
    let send = events(&read, 2)[1].call().unwrap().operation;
    assert_eq!(
        (send.communicator, send.send.map(|send| send.partner)),
        (Some(CommunicatorId(1)), Some(Partner::Rank(0)))
    );
    let at = known.process_at(&known.by_rank(), ProcessId(2), CommunicatorId(1), 0);
    assert_eq!(at, Some(ProcessId(0)));
}

#[test]
fn what_is_no_trace_or_a_later_one_is_said() {
    let message = |bytes: &[u8]| TraceFiles::open(&[file(bytes).path()]).unwrap_err().to_string();
    assert!(message(b"").ends_with(" is no trace of mpiprobe"));
    assert!(message(b"{\"schema\": \"mpiprobe\", \"version\": 1}").ends_with(" is no trace of mpiprobe"));
    let mut later = written(&HandMade::of_ranks(1));
    later[8] = 9;
    assert!(message(&later).ends_with(
        " is a trace of format 9, and this mpiprobe reads format 2: use the version that wrote it, or a later one"
    ));
    let nowhere = TraceFiles::open(&["/nonexistent/x.trace"]).unwrap_err().to_string();
    assert!(nowhere.starts_with("cannot open /nonexistent/x.trace: "), "{nowhere}");
    assert!(matches!(TraceFiles::open::<&str>(&[]), Err(OpenError::Nothing)));
}

#[test]
fn a_trace_in_which_nothing_happened_is_one() {
    let read = opened(&written(&HandMade::of_ranks(2)));
    assert_eq!((read.event_count(), events(&read, 1).len(), read.notes().len()), (0, 0, 0));
}

fn partner() -> impl Strategy<Value = Partner> {
    prop_oneof![
        (0..u32::MAX - 4).prop_map(Partner::Rank),
        Just(Partner::Group),
        Just(Partner::Null),
        Just(Partner::Any),
        Just(Partner::Unknown)
    ]
}

fn transfer() -> impl Strategy<Value = Option<Transfer>> {
    let bytes =
        prop_oneof![any::<u64>().prop_map(Bytes::Known), any::<u64>().prop_map(Bytes::AtMost), Just(Bytes::Unknown)];
    let one = (partner(), any::<Option<i32>>(), bytes, any::<bool>(), any::<bool>());
    prop::option::of(one.prop_map(|(partner, tag, bytes, any_source, any_tag)| Transfer {
        partner,
        tag,
        bytes,
        any_source,
        any_tag,
    }))
}

prop_compose! {
    fn operation()(
        function in 0..mpiprobe_functions::FUNCTIONS.len(),
        over in prop::option::of(Just(HandMade::WORLD)),
        send in transfer(),
        receive in transfer(),
        (root, target) in prop_oneof![
            Just((None, None)),
            any::<u32>().prop_map(|rank| (Some(Root::Rank(rank)), None)),
            Just((Some(Root::Own), None)),
            Just((Some(Root::Null), None)),
            (partner(), prop::option::of(prop_oneof![Just(Lock::Exclusive), Just(Lock::Shared)]))
                .prop_map(|(partner, lock)| (None, Some(Target { partner, lock }))),
        ],
    ) -> Operation {
        let function = mpiprobe_functions::by_name(mpiprobe_functions::FUNCTIONS[function].name).unwrap();
        Operation { communicator: over, send, receive, root, target, ..Operation::new(function) }
    }
}

fn change() -> impl Strategy<Value = RequestChange> {
    const KINDS: [Change; 5] =
        [Change::Started, Change::Completed, Change::Cancelled, Change::Failed, Change::Released];
    let one = (any::<u64>(), prop::sample::select(&KINDS[..]), operation());
    one.prop_map(|(request, change, operation)| RequestChange { request: RequestId(request), change, operation })
}

prop_compose! {
    fn any_call()(
        number: u64, entry_ns: u64, return_ns: u64, flags: [bool; 2], depth: u8, request: Option<u64>, result: i32,
        operation in operation(), requests in prop::collection::vec(change(), 0..4),
    ) -> Call {
        Call {
            number, entry_ns, return_ns, began_before: flags[0], has_returned: flags[1], depth, result, requests,
            request: request.map(RequestId), ..Call { operation, ..Call::new(operation.function, 0, 0) }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_calls_are_read_as_they_were_written(calls in prop::collection::vec(any_call(), 0..40)) {
        let mut made = HandMade::of_ranks(1);
        for call in &calls {
            made.push(0, Event::Call(call.clone()));
        }
        // Whatever the order of times.
        let calls: Vec<Event> = calls.into_iter().map(Event::Call).collect();
        prop_assert_eq!(events(&opened(&written(&made)), 0), calls);
    }

    #[test]
    fn nothing_that_anybody_may_have_written_makes_a_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
    ) {
        // Behind the checksums, which anybody can compute.
        let made = HandMade::halo(2, 3);
        let mut columns = columns::Columns::default();
        for event in &events(&made, 0) {
            columns.push(event);
        }
        let mut bytes = columns.bytes();
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let functions: Vec<_> = mpiprobe_functions::FUNCTIONS.iter().filter_map(|one| mpiprobe_functions::by_name(one.name)).collect();
        if let Ok((mut reading, _)) = columns::Reading::new(bytes, columns.count(), 0, &functions, |_| {}) {
            let (mut rows, mut changes) = (Vec::new(), Vec::new());
            while !reading.is_over() && reading.rows(5, &mut rows, &mut changes).is_ok() {}
            prop_assert_eq!(rows.iter().map(|row| u64::from(row.changes)).sum::<u64>(), changes.len() as u64);
        }
    }

    #[test]
    fn nothing_in_a_file_makes_a_panic(bytes: Vec<u8>, edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20)) {
        let mut whole = written(&HandMade::halo(2, 3));
        for (at, value) in edits {
            let at = 16 + at.index(whole.len() - 16);
            whole[at] = value;
        }
        whole.extend(bytes);
        let path = file(&whole);
        if let Ok(read) = TraceFiles::open(&[path.path()]) {
            for location in read.definitions().location_ids() {
                read.events(location, Span::ALL).for_each(drop);
            }
        }
        fs::remove_file(path.path()).unwrap();
    }
}

#[test]
fn events_of_processes_that_are_not_defined_are_of_no_other_files_processes() {
    let made = HandMade::halo(4, 10);
    let mut writer = TraceWriter::new(Vec::new()).unwrap();
    copy::define(&made.definitions, |definition| {
        let is_lost = matches!(definition, Definition::Process(id, _) if id.0 > 0);
        if !is_lost {
            writer.define(definition);
        }
    });
    for location in made.definitions.location_ids() {
        for event in made.events(location, Span::ALL) {
            writer.push(location, &event.unwrap()).unwrap();
        }
    }
    let (one, other) = (file(&writer.finish().unwrap()), file(&written(&made)));
    let read = TraceFiles::open(&[one.path(), other.path()]).unwrap();
    let locations = read.definitions().locations.iter();
    let ranks: Vec<_> = locations.map(|one| read.definitions().process(one.process).and_then(|one| one.rank)).collect();
    let whole = [Some(0), Some(1), Some(2), Some(3)];
    assert_eq!(ranks, [[Some(0), None, None, None], whole].concat());
    let lost: usize = (1..4).map(|location| events(&made, location).len()).sum();
    let note = format!(": {lost} events are of processes that nothing defines any more");
    assert!(read.notes().iter().any(|one| one.ends_with(&note)), "{:?}", read.notes());
}
