//! However a job's calls become known while it runs, the same is found as in the whole of them.
//!
//! Invariant LIVE-AGREES.
#![allow(clippy::cast_possible_truncation, reason = "nothing here is so long")]

use std::{collections::HashSet, io, ops::Range};

use mpiprobe_model::{CallSite, ImbalanceRow, WaitKind};
use mpiprobe_trace::{
    Call, Event, HandMade, Lock, Numbers, Object, PhaseChange, Span, Trace, Window, WindowId, call,
    store::{Definition, TraceWriter, copy},
};
use proptest::prelude::*;

use super::*;
use crate::{
    analyse,
    matching::{Done, End, Matcher},
    slices::Slices,
};

/// Each write is one chunk.
#[derive(Default)]
struct Chunks(Vec<Vec<u8>>);

impl io::Write for Chunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn definitions(made: &HandMade) -> Vec<Vec<u8>> {
    let mut empty = HandMade::default();
    empty.definitions.clone_from(&made.definitions);
    copy(&empty, Span::ALL, Chunks::default()).unwrap().0
}

fn events(location: LocationId, events: &[Event]) -> Vec<Vec<u8>> {
    let mut writer = TraceWriter::new(Chunks::default()).unwrap();
    for event in events {
        writer.push(location, event).unwrap();
    }
    let mut chunks = writer.finish().unwrap().0;
    // That nothing follows.
    chunks.pop();
    chunks
}

/// A job whose calls are given as they return.
struct Job {
    live: Live,
    /// By location: all of its events, and how many were given.
    events: Vec<(Vec<Event>, usize)>,
    processes: Vec<ProcessId>,
}

impl Job {
    fn new(made: &HandMade) -> Self {
        let mut live = Live::new(Limits::default());
        for chunk in definitions(made) {
            live.take(&chunk).unwrap();
        }
        let locations = made.definitions.location_ids();
        let of = |location| (made.events(location, Span::ALL).map(Result::unwrap).collect(), 0);
        let processes = made.definitions.locations.iter().map(|location| location.process).collect();
        Self { live, events: locations.map(of).collect(), processes }
    }

    /// Gives what a location has called until then, in its order: what is inside another call comes after that.
    fn give(&mut self, location: usize, until_ns: u64) {
        let (all, given) = &mut self.events[location];
        let count = all[*given..].iter().take_while(|event| event.end_ns() <= until_ns).count();
        if count > 0 {
            for chunk in events(LocationId(location as u32), &all[*given..*given + count]) {
                self.live.take(&chunk).unwrap();
            }
            *given += count;
        }
    }

    fn inside(&self, at_ns: u64) -> Vec<Inside> {
        let mut inside: Vec<Inside> = Vec::new();
        for ((all, _), &process) in self.events.iter().zip(&self.processes) {
            let mut open = all.iter().filter(|event| event.time_ns() < at_ns && event.end_ns() > at_ns);
            let Some(since_ns) = open.next().map(Event::time_ns) else { continue };
            match inside.iter_mut().find(|one| one.process == process) {
                Some(one) => (one.since_ns, one.calls) = (one.since_ns.min(since_ns), one.calls + 1),
                None => inside.push(Inside { process, since_ns, calls: 1 }),
            }
        }
        inside
    }

    /// It is a time, and as much has been read as was written until somewhat later.
    fn look(&mut self, at_ns: u64, numbers: &mut Numbers, later_ns: u64) {
        let inside = self.inside(at_ns);
        for location in 0..self.events.len() {
            self.give(location, at_ns + numbers.below(later_ns + 1));
        }
        self.live.advance(at_ns, &inside, at_ns);
    }

    fn finish(mut self) -> WaitStates {
        (0..self.events.len()).for_each(|location| self.give(location, u64::MAX));
        self.live.finish()
    }
}

/// That both say the same. Sums of what is added up in another order differ by a nanosecond.
fn assert_same(found: WaitStates, expected: WaitStates) {
    let (mut found, mut expected) = (found, expected);
    assert_eq!(found.unmatched, expected.unmatched);
    let near = |one: f64, other: f64| (one - other).abs() < 2.0;
    for states in [&mut found, &mut expected] {
        states.delays.retain(|row| row.direct_ns + row.indirect_ns > 2.0);
        states.delays.sort_by_key(|row| (row.thread, row.activity));
    }
    for (one, other) in found.delays.iter_mut().zip(&expected.delays) {
        if near(one.direct_ns, other.direct_ns) && near(one.indirect_ns, other.indirect_ns) {
            one.clone_from(other);
        }
    }
    let different = found.delays.iter().zip(&expected.delays).find(|(one, other)| one != other);
    assert_eq!((different, found.delays.len()), (None, expected.delays.len()));
    for (one, other) in found.waits.iter_mut().zip(&mut expected.waits) {
        for row in [&mut *one, &mut *other] {
            // Only so many are named: which of several that are as long is left to chance.
            let least = row.caused_by.iter().filter(|cause| cause.thread.is_some()).map(|cause| cause.ns).min();
            row.caused_by.retain(|cause| cause.ns > least.unwrap_or(0) + 2);
            row.caused_by.sort_by_key(|cause| (cause.thread, cause.activity));
        }
        let sums = (one.unexplained_ns as f64, other.unexplained_ns as f64);
        if near(sums.0, sums.1) {
            one.unexplained_ns = other.unexplained_ns;
        }
        for (one, other) in one.caused_by.iter_mut().zip(&other.caused_by) {
            if near(one.ns as f64, other.ns as f64) {
                one.ns = other.ns;
            }
        }
        assert_eq!(one, other);
    }
    let (Some(path), Some(expected_path)) = (&mut found.critical_path, &mut expected.critical_path) else {
        panic!("no critical path");
    };
    for path in [&mut *path, &mut *expected_path] {
        path.imbalance.sort_by_key(|row| row.activity);
    }
    for (one, other) in path.imbalance.iter_mut().zip(&expected_path.imbalance) {
        let sums = |row: &ImbalanceRow| [row.mean_ns, row.imbalance_ns, row.impact_ns];
        if sums(one).into_iter().zip(sums(other)).all(|(one, other)| near(one, other)) {
            *one = ImbalanceRow { activity: one.activity, path_ns: one.path_ns, ..*other };
        }
    }
    assert_eq!(found, expected);
}

fn whole(made: &HandMade) -> WaitStates {
    analyse(made, &Clocks::same(), Span::ALL, 1, |_| {}).unwrap()
}

/// Ranks that send, receive, wait for requests and meet, for times of which some are very long. The last rank has a second thread.
fn program(seed: u64, ranks: u32, steps: u64) -> HandMade {
    let mut made = HandMade::of_ranks(ranks);
    let sites: Vec<_> = (0..6).map(|line| made.site("work", "work.c", line)).collect();
    let own = made.thread(ProcessId(ranks - 1), 5000).0;
    let mut numbers = Numbers(seed | 1);
    (0..8).for_each(|_| _ = numbers.below(2));
    let places = ranks as usize + 1;
    let mut now = vec![1000u64; places];
    let rank_of = |place: u32| place.min(ranks - 1);
    let mut request = 0;
    for step in 0..steps {
        let (from, to) = (numbers.below(places as u64) as u32, numbers.below(places as u64) as u32);
        let (f, t) = (from as usize, to as usize);
        let late = |numbers: &mut Numbers| if numbers.below(20) == 0 { 100_000 } else { numbers.below(3000) };
        match numbers.below(8) {
            // Threads of one process would take each other's messages: each has a tag.
            0..=3 if from != to => {
                let tag = (from * 16 + to).cast_signed();
                let (sent, posted) = (now[f] + late(&mut numbers), now[t] + late(&mut numbers));
                let is_synchronous = numbers.below(3) == 0;
                let left = if is_synchronous { sent.max(posted) } else { sent } + 1 + numbers.below(200);
                let name = if is_synchronous { "MPI_Ssend" } else { "MPI_Send" };
                let sending = call(name, sent, left).to(rank_of(to), tag, step).at(sites[0]);
                made.add(from, sending);
                now[f] = left + 1;
                if numbers.below(2) == 0 {
                    let back = posted.max(sent + 5) + 1 + numbers.below(200);
                    let any = call("MPI_Recv", posted, back).from(rank_of(from), tag, step).at(sites[1]);
                    made.add(to, any);
                    now[t] = back + 1;
                } else {
                    request += 1;
                    let posting = call("MPI_Irecv", posted, posted + 3).from(rank_of(from), tag, step).posts(request);
                    let entry = posted + 4 + late(&mut numbers);
                    let back = entry.max(sent + 5) + 1 + numbers.below(200);
                    made.add(to, posting.clone());
                    made.add(to, call("MPI_Wait", entry, back).completes(&posting).at(sites[2]));
                    now[t] = back + 1;
                }
            }
            4 => {
                let entries: Vec<u64> = (0..ranks).map(|rank| now[rank as usize] + late(&mut numbers)).collect();
                let last = entries.iter().copied().max().unwrap_or(0);
                for (rank, entry) in (0..ranks).zip(entries) {
                    let back = last + 1 + numbers.below(100);
                    made.add(rank, call("MPI_Allreduce", entry, back).moves(8, 8).at(sites[3]));
                    now[rank as usize] = back + 1;
                }
            }
            5 => {
                let entries: Vec<u64> = (0..ranks).map(|rank| now[rank as usize] + late(&mut numbers)).collect();
                let root = numbers.below(ranks.into()) as u32;
                let at = entries[root as usize];
                for (rank, entry) in (0..ranks).zip(entries) {
                    let back = entry.max(at) + 1 + numbers.below(100);
                    made.add(rank, call("MPI_Bcast", entry, back).moves(8, 8).rooted(root).at(sites[4]));
                    now[rank as usize] = back + 1;
                }
            }
            _ => {
                let place = if numbers.below(4) == 0 { own } else { from };
                let entry = now[place as usize] + late(&mut numbers);
                made.add(place, call("MPI_Comm_rank", entry, entry + 50).at(sites[5]));
                now[place as usize] = entry + 51;
            }
        }
    }
    made
}

fn expect_same(made: &HandMade, seed: u64, looks: u64, later_ns: u64) {
    let expected = whole(made);
    let mut job = Job::new(made);
    let mut numbers = Numbers(seed | 1);
    let span = made.span();
    let mut times: Vec<u64> = (0..looks).map(|_| numbers.below(span.until_ns + 1000)).collect();
    times.sort_unstable();
    let mut before = 0;
    for at_ns in times {
        job.look(at_ns, &mut numbers, later_ns);
        let so_far = job.live.so_far();
        let waited: u64 = so_far.waits.iter().map(|row| row.ns).sum();
        assert!(waited >= before, "what was counted stays");
        before = waited;
    }
    assert!(before <= expected.waits.iter().map(|row| row.ns).sum(), "nothing is counted that is not there");
    assert_same(job.finish(), expected);
}

#[test]
fn a_job_that_is_looked_at_while_it_runs_has_the_wait_states_of_the_whole() {
    let made = HandMade::halo(6, 40);
    assert!(whole(&made).complete);
    for (seed, looks, later) in [(1, 0, 0), (2, 5, 10), (3, 100, 1_000_000), (4, 1000, 50_000)] {
        expect_same(&made, seed, looks, later);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn in_whatever_order_and_portions_calls_become_known_the_same_is_found(
        seed in 1..u64::MAX,
        ranks in 2..6u32,
        steps in 1..250u64,
        looks in 0..60u64,
        later_ns in 0..50_000u64,
    ) {
        expect_same(&program(seed, ranks, steps), seed, looks, later_ns);
    }
}

/// The same, of which calls of some ranks are missing for some of the time: they have counting switched off, or their calls are lost.
fn with_gaps(made: &HandMade, numbers: &mut Numbers) -> HandMade {
    let until_ns = made.span().until_ns;
    let processes: Vec<ProcessId> = made.definitions.locations.iter().map(|location| location.process).collect();
    let mut lost = vec![0; processes.len()];
    let mut gaps = made.with_events(|location, events| {
        let process = processes[location.index()];
        // With several threads, one would have to say it for the others; and what each has lost is known only when it calls again.
        let is_only = processes.iter().filter(|one| **one == process).count() == 1;
        if !is_only {
            return events.to_vec();
        }
        let is_lost = numbers.below(2) == 0;
        let spans: Vec<Range<u64>> = (0..numbers.below(4))
            .map(|_| {
                let (from_ns, length_ns) = (numbers.below(until_ns), numbers.below(until_ns / 6 + 1));
                from_ns..from_ns + length_ns
            })
            .collect();
        let (mut left, mut missing, mut was_off, mut at_ns) = (Vec::new(), 0, false, 0);
        for event in events {
            let is_off = spans.iter().any(|span| span.contains(&event.time_ns()));
            if is_off != was_off && !is_lost {
                left.push(Event::Phase(PhaseChange { at_ns, phase: None, is_on: !is_off }));
            }
            match event {
                _ if is_off => missing += u64::from(is_lost),
                Event::Call(call) => {
                    left.push(Event::Call(Call { number: std::mem::take(&mut missing), ..call.clone() }));
                }
                Event::Phase(_) => left.push(event.clone()),
            }
            lost[location.index()] += u64::from(is_lost && is_off);
            (was_off, at_ns) = (is_off, event.end_ns());
        }
        left
    });
    for (location, lost) in gaps.definitions.locations.iter_mut().zip(lost) {
        location.losses.lost = lost;
    }
    gaps
}

/// All ranks meet in each step, and the first two exchange messages in one call each.
fn exchanging(seed: u64, ranks: u32, steps: u64) -> HandMade {
    let mut made = HandMade::of_ranks(ranks);
    let sites: Vec<_> = (0..4).map(|line| made.site("step", "step.c", line)).collect();
    let mut numbers = Numbers(seed | 1);
    (0..8).for_each(|_| _ = numbers.below(2));
    let mut now = vec![1000u64; ranks as usize];
    let mut late = || if numbers.below(8) == 0 { 100_000 } else { numbers.below(3000) };
    (0..ranks).for_each(|rank| made.add(rank, call("MPI_Init", 10, 900 + u64::from(rank))));
    for step in 0..steps {
        let entries: Vec<u64> = now.iter().map(|now| now + late()).collect();
        let last = entries.iter().copied().max().unwrap_or(0);
        let kind = (step % 3) as usize;
        let name = ["MPI_Bcast", "MPI_Allreduce", "MPI_Barrier"][kind];
        for (rank, entry) in (0..ranks).zip(&entries) {
            let complete = if kind == 0 { entries[0].max(*entry) } else { last };
            let back = complete + 1 + late() / 10;
            let one = call(name, *entry, back).at(sites[kind]);
            made.add(rank, if kind == 0 { one.moves(4, 4).rooted(0) } else { one.moves(4, 4) });
            now[rank as usize] = back + 1;
        }
        let entries: Vec<u64> = now[..2].iter().map(|now| now + late()).collect();
        for (rank, entry) in (0..2u32).zip(&entries) {
            let back = entries.iter().copied().fold(0, u64::max) + 1 + late() / 10;
            let one = call("MPI_Sendrecv", *entry, back).to(1 - rank, 0, 4).from(1 - rank, 0, 4).at(sites[3]);
            made.add(rank, one);
            now[rank as usize] = back + 1;
        }
    }
    let last = now.iter().copied().max().unwrap_or(0);
    for (rank, now) in (0..).zip(now) {
        made.add(rank, call("MPI_Finalize", now, last + 100 + u64::from(rank)));
    }
    made
}

fn program_with_gaps(seed: u64, ranks: u32, steps: u64) -> (HandMade, HandMade) {
    let whole = if seed.is_multiple_of(2) { exchanging(seed, ranks, steps) } else { program(seed, ranks, steps) };
    let gaps = with_gaps(&whole, &mut Numbers(seed ^ 0x5555));
    (whole, gaps)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn where_calls_are_missing_the_same_is_found(
        seed in 1..u64::MAX,
        ranks in 2..6u32,
        steps in 1..100u64,
        looks in 0..60u64,
        later_ns in 0..50_000u64,
    ) {
        expect_same(&program_with_gaps(seed, ranks, steps).1, seed, looks, later_ns);
    }
}

/// Messages by when they were sent, and when their receive was posted, and where.
fn messages(made: &HandMade) -> HashSet<[(u64, u32); 2]> {
    let clocks = Clocks::same();
    let mut slices = Slices::new(made, &clocks, made.definitions.location_ids(), Span::ALL, 1);
    let mut matcher = Matcher::new(&made.definitions, &clocks, false, 1);
    let mut found = HashSet::new();
    let mut take = |done: &Done| {
        if let End::Received { send, posted } = done.end {
            found.insert([send, posted].map(|call| (call.entry_ns, call.location.0)));
        }
    };
    while let Some(slice) = slices.next_slice().unwrap() {
        matcher.take(&slice).done().for_each(&mut take);
    }
    matcher.finish().done().for_each(&mut take);
    found
}

#[test]
fn where_calls_are_missing_no_message_is_taken_for_another() {
    let (mut matched, mut possible) = (0, 0);
    for number in 1..300u64 {
        let (whole, gaps) = program_with_gaps(number.wrapping_mul(0x9E37_79B9_7F4A_7C15), 3, 200);
        let (all, found) = (messages(&whole), messages(&gaps));
        assert_eq!(found.difference(&all).collect::<Vec<_>>(), Vec::<&[(u64, u32); 2]>::new(), "program {number}");
        (matched, possible) = (matched + found.len(), possible + all.len());
    }
    // Some are missing, and some are known again soon behind a gap.
    assert!(matched * 2 > possible, "{matched} of {possible}");
}

fn late_sender(states: &WaitStates) -> u64 {
    states.waits.iter().filter(|row| row.kind == WaitKind::LateSender).map(|row| row.ns).sum()
}

/// Rank 2 receives what rank 0 will send in a minute; the others go on.
#[test]
fn a_rank_in_a_long_call_keeps_nobody_from_being_known_and_is_not_lost() {
    const MINUTE: u64 = 60_000_000_000;
    let mut made = HandMade::of_ranks(4);
    made.add(2, call("MPI_Recv", 1000, MINUTE + 3000).from(0, 9, 8));
    for step in 1..60u64 {
        let at = step * 1_000_000_000;
        made.add(0, call("MPI_Send", at + 500, at + 510).to(1, 0, 8));
        made.add(1, call("MPI_Recv", at, at + 600).from(0, 0, 8));
        // Rank 3 has sent to the one that waits, and is not waited for either.
        made.add(3, call("MPI_Send", at, at + 10).to(2, 1, 8));
        made.add(3, call("MPI_Recv", at + 20, at + 700).from(1, 0, 8));
        made.add(1, call("MPI_Send", at + 620, at + 630).to(3, 0, 8));
    }
    made.add(0, call("MPI_Send", MINUTE + 2000, MINUTE + 2100).to(2, 9, 8));
    let mut job = Job::new(&made);
    let mut numbers = Numbers(7);
    for second in 1..60u64 {
        job.look(second * 1_000_000_000 + 500_000_000, &mut numbers, 0);
        let so_far = job.live.so_far();
        assert_eq!(late_sender(&so_far), second * (500 + 600), "after {second} s");
        assert_eq!((so_far.pending.sends, so_far.pending.calls), (second, 0));
        assert_eq!(so_far.unmatched.matched_messages, second * 2);
    }
    let found = job.finish();
    assert_eq!(late_sender(&found), 59 * (500 + 600) + MINUTE + 1000);
    assert_same(found, whole(&made));
}

/// What a call site is becomes known after the calls that were made there; two ranks have it under different numbers.
#[test]
fn call_sites_are_waited_for_and_the_same_place_is_one() {
    let mut made = HandMade::of_ranks(2);
    let (one, other) = (made.site("f", "f.c", 1), made.site("f", "f.c", 2));
    let site = made.definitions.call_sites[0].clone();
    let unnamed = |number: u64| CallSite { module: format!("process:{number}"), offset: 77, ..site.clone() };
    made.definitions.call_sites = vec![unnamed(0), unnamed(1)];
    let barrier = |rank: u32, entry, site| -> (u32, Call) { (rank, call("MPI_Barrier", entry, 900).at(site)) };
    for (rank, mut call) in [barrier(0, 100, one), barrier(1, 500, other)] {
        call.operation.communicator = Some(HandMade::WORLD);
        made.add(rank, call);
    }
    let mut job = Job::new(&made);
    let mut numbers = Numbers(3);
    job.look(1000, &mut numbers, 0);
    assert_eq!((job.live.waiting(), job.live.so_far().calls), (2, 0));
    let mut writer = TraceWriter::new(Chunks::default()).unwrap();
    for id in [one, other] {
        writer.define(Definition::CallSite(id, site.clone()));
    }
    for chunk in writer.finish().unwrap().0 {
        job.live.take(&chunk).unwrap();
    }
    job.look(2000, &mut numbers, 0);
    let so_far = job.live.so_far();
    assert_eq!((job.live.waiting(), so_far.calls, so_far.call_sites.len()), (0, 2, 1));
    assert_eq!(so_far.waits.iter().map(|row| (row.thread, row.ns)).collect::<Vec<_>>(), [(0, 400)]);

    // Those that nobody finds are waited for some time only.
    let mut job = Job::new(&made);
    job.look(1000, &mut numbers, 0);
    job.look(1000 + 3_000_000_000, &mut numbers, 0);
    let so_far = job.live.so_far();
    assert_eq!((so_far.calls, so_far.call_sites.len()), (2, 2));
}

/// A rank of the world is not recorded: the others are told without it, after a time, and it is not known later either.
#[test]
fn who_is_not_there_is_waited_for_some_time_only() {
    let mut made = HandMade::of_ranks(3);
    let all = made.definitions.processes.clone();
    made.definitions.processes.pop();
    made.definitions.locations.pop();
    for rank in 0..2 {
        made.add(rank, call("MPI_Barrier", 100 + u64::from(rank), 900).over(HandMade::WORLD));
    }
    made.add(0, call("MPI_Send", 1000, 1001).to(2, 0, 8));
    made.add(0, call("MPI_Send", 1010, 1011).to(1, 0, 8));
    made.add(1, call("MPI_Recv", 1000, 1020).from(0, 0, 8));
    let mut job = Job::new(&made);
    let mut numbers = Numbers(3);
    job.look(2000, &mut numbers, 0);
    assert_eq!(job.live.waiting(), 5);
    job.look(3_000_000_000, &mut numbers, 0);
    assert_eq!(job.live.waiting(), 0);
    let unmatched = job.live.so_far().unmatched;
    assert_eq!((unmatched.of_partial_groups, unmatched.outside, unmatched.matched_messages), (2, 1, 1));
    let mut writer = TraceWriter::new(Chunks::default()).unwrap();
    writer.define(Definition::Process(ProcessId(2), all[2].clone()));
    for chunk in writer.finish().unwrap().0 {
        job.live.take(&chunk).unwrap();
    }
    for (rank, entry) in [(0, 4_000_000_000), (1, 4_000_000_100)] {
        let barrier = call("MPI_Barrier", entry, 4_000_001_000).over(HandMade::WORLD);
        let (all, _) = &mut job.events[rank];
        all.push(Event::Call(Call { number: 3, ..barrier }));
    }
    job.look(5_000_000_000, &mut numbers, 0);
    let unmatched = job.live.so_far().unmatched;
    assert_eq!((unmatched.of_partial_groups, unmatched.incomplete_collective_calls), (4, 0));
}

#[test]
fn what_was_left_out_is_counted_and_nothing_is_guessed_of_it() {
    let mut made = HandMade::of_ranks(2);
    for step in 0..3u64 {
        let at = step * 1000 + 100;
        made.add(0, call("MPI_Send", at + 50, at + 60).to(1, 0, 8));
        made.add(1, call("MPI_Recv", at, at + 100).from(0, 0, 8));
    }
    let mut job = Job::new(&made);
    let mut numbers = Numbers(3);
    job.look(500, &mut numbers, 0);
    job.live.lose(LocationId(0), 1);
    let (sends, _) = &mut job.events[0];
    sends.remove(1);
    let found = job.finish();
    assert_eq!(late_sender(&found), 50);
    assert_eq!((found.unmatched.lost_calls, found.unmatched.matched_messages), (1, 1));
    assert!(!found.complete && found.unmatched.unsure > 0);
}

#[test]
fn chunks_that_make_no_sense_are_refused() {
    let made = HandMade::halo(2, 5);
    let mut live = Live::new(Limits::default());
    for chunk in definitions(&made) {
        live.take(&chunk).unwrap();
    }
    let of_first: Vec<Event> = made.events(LocationId(0), Span::ALL).map(Result::unwrap).collect();
    let chunk = events(LocationId(0), &of_first).pop().unwrap();
    assert!(live.take(&chunk).is_ok());
    for length in [0, 1, 15, 17, 63, 64, chunk.len() - 1] {
        assert!(live.take(&chunk[..length]).is_err(), "{length}");
    }
    for place in 0..chunk.len() {
        let mut wrong = chunk.clone();
        wrong[place] ^= 0x55;
        assert!(live.take(&wrong).is_err(), "{place}");
    }
    assert!(live.finish().unmatched.lost_calls > 0);
}

/// The sender's next message is known before it is known that the receiver has given up waiting for it.
#[test]
fn who_is_behind_and_has_cancelled_has_got_nothing() {
    let mut made = HandMade::of_ranks(2);
    (0..2).for_each(|rank| made.add(rank, call("MPI_Init", 10, 20)));
    let posted = call("MPI_Irecv", 1000, 1010).from(0, 0, 8).posts(1);
    let other = call("MPI_Irecv", 1020, 1030).from(0, 0, 8).posts(2);
    made.add(1, posted.clone());
    made.add(1, other.clone());
    made.add(1, call("MPI_Cancel", 1100, 1110));
    made.add(1, call("MPI_Wait", 1200, 1210).changes(&posted, mpiprobe_trace::Change::Cancelled));
    made.add(1, call("MPI_Wait", 1300, 5100).completes(&other));
    made.add(1, call("MPI_Recv", 5200, 6100).from(0, 0, 8));
    for at in [5000, 6000] {
        made.add(0, call("MPI_Send", at, at + 50).to(1, 0, 8));
    }
    (0..2).for_each(|rank| made.add(rank, call("MPI_Finalize", 20_000, 20_100)));
    let mut job = Job::new(&made);
    job.give(0, 7000);
    for until_ns in [1010, 1030, 1115, 1215, 5100, 6100] {
        job.give(1, until_ns);
        job.live.advance(until_ns, &[], until_ns);
    }
    let states = job.finish();
    let found: Vec<_> = states.waits.iter().filter(|row| row.kind == WaitKind::LateSender).map(|row| row.ns).collect();
    let ends = states.unmatched;
    assert_eq!((found, ends.matched_messages, ends.contradictions, ends.unsure), (vec![3700, 800], 2, 0, 0));
}

/// Rank 0 is in epochs of a window while rank 1 has not returned from where it is made.
#[test]
fn who_is_still_where_a_window_is_made_keeps_no_epoch_from_being_known() {
    let mut made = HandMade::of_ranks(2);
    (0..2).for_each(|rank| made.add(rank, call("MPI_Init", 10, 20)));
    for (rank, window, return_ns) in [(0, 0, 300), (1, 1, 5000)] {
        let window = Object::Window(WindowId(window));
        let create = call("MPI_Win_create", 100, return_ns);
        made.add(rank, create.over(HandMade::WORLD).on(window));
    }
    made.definitions.windows = vec![Window { communicator: Some(HandMade::WORLD) }; 2];
    for epoch in [
        call("MPI_Win_lock", 400, 500).about(1, Some(Lock::Shared)),
        call("MPI_Get", 600, 700).to(1, 0, 8),
        call("MPI_Win_unlock", 800, 5100).about(1, None),
    ] {
        made.add(0, epoch.over(HandMade::WORLD).on(Object::Window(WindowId(0))));
    }
    (0..2).for_each(|rank| made.add(rank, call("MPI_Finalize", 20_000, 20_100)));
    let mut job = Job::new(&made);
    for until_ns in [50, 350, 550, 750, 5200, 6000] {
        let inside = job.inside(until_ns);
        (0..2).for_each(|location| job.give(location, until_ns));
        job.live.advance(until_ns, &inside, until_ns);
    }
    let clocks = Clocks::same();
    let whole = analyse(&made, &clocks, Span::ALL, 1, |_| {}).unwrap();
    assert!(whole.complete, "{:?}", whole.unmatched);
    assert_same(job.finish(), whole);
}
