//! `docs/json.md` names every field of the JSON output of a profile, and no others.
#![expect(clippy::panic, reason = "a helper that cannot go on fails its test")]

use std::{collections::BTreeSet, sync::Arc};

use mpiprobe_common::{
    Communicator, EndedThread, Flow, FlowKey, FunctionStats, InnerStats, Layout, Phase, PhaseKey, ProcessCounters,
    Request, ThreadState, ToolCallKey, ToolCallStats, ToolKey, ToolStats, layout::capability, phase::NAME_LENGTH,
};
use mpiprobe_discover::Failure;
use mpiprobe_model::{
    Budget, Doing, EngineInfo, Estimate, Finding, Found, Level, LibraryInfo, OpenCallInfo, OtherEndSeen,
    PartnerAtPlace, RankAtPlace, RankState, Reduction, SCHEMA, SlowSite, Spending, TimeAtPlace, ToolInfo, UnmatchedRow,
    analyse::{self, Beginning, Change, EndedCall, Expected, Identity, Observed, ProfileOutput, SelfCost, Session},
};
use mpiprobe_observe::{
    After, ArgumentWords, BeganBefore, CallBefore, CommunicatorSnapshot, PendingRequest, PhaseSnapshot,
    ProcessSnapshot, Snapshot, ThreadSnapshot, ToolsSnapshot,
};
use serde_json::Value;

use crate::{
    markdown::{code_spans, lines},
    workspace::read,
};

/// The part of `docs/json.md` that is about profiles.
fn section() -> String {
    let text = read("docs/json.md");
    let heading = format!("## {SCHEMA}");
    let after = text.split_once(&heading).unwrap_or_else(|| panic!("docs/json.md has no heading {heading}")).1;
    after.split("\n## ").next().unwrap_or_default().to_owned()
}

#[test]
fn every_field_is_documented() {
    let section = section();
    let spans = lines(&section).into_iter().flat_map(|line| code_spans(line.text));
    let named: BTreeSet<&str> = spans.map(|span| span.trim_end_matches("[]")).collect();
    let profile = profile();
    let output = serde_json::to_value(ProfileOutput::new(&profile, &profile)).unwrap();
    let found = serde_json::to_value(findings()).unwrap();
    let missing: Vec<String> =
        keys(&output).union(&keys(&found)).filter(|key| !named.contains(key.as_str())).cloned().collect();
    assert!(missing.is_empty(), "docs/json.md does not explain {missing:?}");
}

/// The first cell of a row of a table is a field.
#[test]
fn every_field_documented_exists() {
    let section = section();
    let profile = profile();
    let known = keys(&serde_json::to_value(ProfileOutput::new(&profile, &profile)).unwrap());
    let cells = lines(&section).into_iter().filter_map(|line| line.text.strip_prefix("| `")?.split(" |").next());
    let fields: Vec<&str> = cells.flat_map(|cell| cell.split(", ")).map(|cell| cell.trim_matches('`')).collect();
    assert!(fields.len() > 50, "only {} fields were found: how they are looked for is broken", fields.len());
    let unknown: Vec<_> = fields.into_iter().filter(|field| !known.contains(field.trim_end_matches("[]"))).collect();
    assert!(unknown.is_empty(), "docs/json.md explains fields that do not exist: {unknown:?}");
}

/// The names of all fields, wherever they are.
fn keys(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Object(fields) => {
            fields.iter().flat_map(|(key, value)| keys(value).into_iter().chain([key.clone()])).collect()
        }
        Value::Array(values) => values.iter().flat_map(keys).collect(),
        _ => BTreeSet::new(),
    }
}

fn engine() -> EngineInfo {
    let library = LibraryInfo {
        path: String::new(),
        implementation: String::new(),
        build_id: None,
        functions: 1,
        slow: vec![SlowSite { function: "MPI_Wtime", reason: String::new() }],
        not_probed: Vec::new(),
    };
    let tool = ToolInfo { name: String::new(), path: String::new(), functions: 1, not_probed: Vec::new() };
    EngineInfo {
        engine: "ebpf",
        attached_by: String::new(),
        launched: false,
        attach_ns: 0,
        libraries: vec![library],
        tools: vec![tool],
    }
}

/// One of each kind.
fn findings() -> Vec<Finding> {
    let call = OpenCallInfo {
        function: "MPI_Recv",
        tid: 1,
        open_ns: 1,
        call_site: None,
        site: None,
        arguments: None,
        ended_inside: false,
        began_before: false,
        polls: false,
        exchanges: false,
    };
    let partner = Some(PartnerAtPlace { rank: 0, percent: 1.0, is_destination: true });
    let at = RankAtPlace { rank: None, calls: 1, time_ns: 1, percent: 1.0, partner };
    let kinds = [
        Found::Deadlock { circles: Vec::new(), knots: Vec::new() },
        Found::DifferentRoots { ranks: Vec::new(), function: "MPI_Bcast" },
        Found::WaitedFor { rank: None, ranks: 1, for_ns: 1, does: Doing::Call { call: Box::new(call.clone()) } },
        Found::AllAreThere { ranks: 2, function: "MPI_Barrier" },
        Found::Aborted { rank: None, code: None, site: None },
        Found::Failed { ranks: 1, rank: None, failure: Failure::Signal(9), call: Some(Box::new(call.clone())) },
        Found::Incomplete { because: Vec::new() },
        Found::RequestsNeverCompleted { ranks: 1, requests: 1, rank: None, function: "MPI_Isend", site: None },
        Found::UnusuallyLongCall { ranks: 1, of_ranks: 1, rank: None, call: Box::new(call) },
        Found::TimeAtPlace(TimeAtPlace { function: "MPI_Recv", site: None, ranks: vec![at], ranks_in_all: 1 }),
        Found::Imbalance { load_balance_percent: 1.0, rank: None, computing_percent: 1.0 },
        Found::MostlyInMpi { percent: 1.0, function: "MPI_Recv" },
        Found::Polling { function: "MPI_Test", calls_per_s: 1.0, percent: 1.0 },
        Found::TinyMessages { function: "MPI_Send", messages_per_s: 1.0, mean_bytes: 1 },
        Found::TinyIo { function: "MPI_File_read", calls: 1, mean_bytes: 1 },
        Found::HighOwnCost { percent: 1.0, per_call_ns: 1.0 },
    ];
    kinds.into_iter().map(|what| Finding { cost_ns: None, stacks: None, what }).collect()
}

#[test]
fn every_kind_of_finding_is_documented() {
    let section = section();
    let kinds = findings().into_iter().map(|finding| serde_json::to_value(finding).unwrap()["kind"].clone());
    for kind in kinds {
        let kind = kind.as_str().unwrap().to_owned();
        assert!(section.contains(&format!("\n| {kind} | ")), "docs/json.md has no {kind}");
    }
}

/// A profile in which nothing is empty.
fn profile() -> mpiprobe_model::Profile {
    let mut state = ThreadState::ZERO;
    state.process = 1;
    state.has_stack = 1;
    // A function with a partner and a communicator.
    state.open.function_plus_1 = mpiprobe_functions::by_name("MPI_Sendrecv").map_or(1, |id| u32::from(id.number()) + 1);
    let before =
        CallBefore { tid: 3, function: 0, call_site: None, words: Vec::new(), since_ns: 0, now: After::Returned(1) };
    let process = ProcessSnapshot {
        awaited: Vec::new(),
        windows: Vec::new(),
        groups: Vec::new(),
        process: 1,
        counters: ProcessCounters::ZERO,
        layout: Layout { known: capability::CONSTANTS, ..Layout::default() },
        functions: vec![(0, Arc::new(FunctionStats::ZERO))],
        phases: vec![PhaseSnapshot {
            phase: Phase {
                key: PhaseKey { process: 1, level: 3, name: [0; NAME_LENGTH] },
                opened: 1,
                open: 0,
                since_ns: 0,
                time_ns: 0,
            },
            functions: vec![(0, Arc::new(FunctionStats::ZERO))],
        }],
        threads: vec![ThreadSnapshot { tid: 1, slot: 0, state }],
        ended_threads: vec![EndedThread::default()],
        datatypes: Vec::new(),
        inner: vec![((0, 1), InnerStats::default())],
        tools: ToolsSnapshot {
            calls: vec![(ToolKey::default(), ToolStats::default())],
            own: vec![(ToolCallKey::default(), ToolCallStats::default())],
        },
        flows: vec![Flow { key: FlowKey { process: 1, communicator: 1, ..FlowKey::default() }, ..Flow::default() }],
        communicators: vec![CommunicatorSnapshot {
            number: 1,
            facts: Communicator { size: 1, ..Communicator::default() },
            ..CommunicatorSnapshot::default()
        }],
        requests: vec![PendingRequest { request: Request::default(), handle: 0, peer: -1 }],
        recent: None,
        began_before: Some(BeganBefore { calls: vec![before], unknown: Vec::new() }),
    };
    let mut counters = ProcessCounters::ZERO;
    counters.communicators_shared = 1;
    counters.ended_threads = 2;
    let process = ProcessSnapshot { counters, ..process };
    let observed = Observed {
        process: 1,
        identity: Identity { pid: 1, rank: Some(0), job: Some("job".into()), ..Identity::default() },
        state: RankState::Running,
        stopped: false,
        since_ns: 0,
        beginning: Beginning::MidRun,
        until_ns: None,
        failure: Some(Failure::ExitStatus(1)),
        ended_in: vec![EndedCall {
            tid: 2,
            function: 0,
            ended_ns: 1,
            open_ns: 1,
            call_site: None,
            arguments: ArgumentWords::of(&ThreadState::ZERO),
        }],
        self_cost: SelfCost(None),
    };
    let session = Session {
        host: String::new(),
        began: String::new(),
        began_ns: 0,
        end: None,
        engine: engine(),
        per_call_ns: 0.0,
        inside_ns: None,
        nested: true,
        traffic: true,
        communicators: Vec::new(),
        expected: Expected::Some,
        incomplete_because: Vec::new(),
    };
    let snapshot = Snapshot { processes: vec![process], ..Snapshot::default() };
    let mut profile = analyse::profile(&session, &[observed], &snapshot, &mut |_, _| None);
    profile.unmatched = vec![UnmatchedRow {
        job: None,
        rank: None,
        pid: 1,
        function: "MPI_Recv",
        is_request: false,
        is_send: false,
        peer: None,
        tag: None,
        communicator: None,
        age_ns: 0,
        other_end: OtherEndSeen::Missing,
        other_tag: None,
        other_communicator: None,
    }];
    limited(&mut profile);
    profile.interval = Some(Change::since(None, &profile).window());
    profile
}

/// As if not all calls had been counted, to cost no more.
fn limited(profile: &mut mpiprobe_model::Profile) {
    let rows = profile.ranks.iter().flat_map(|rank| rank.functions.iter().map(|row| (rank.pid, row.name)));
    let estimates: Vec<_> = rows.map(|(pid, name)| (pid, name, Estimate::exact(7))).collect();
    let spent = Spending {
        rank: None,
        pid: 1,
        percent: 1.0,
        minute_percent: 1.0,
        function: Some("MPI_Test"),
        function_percent: 1.0,
    };
    let reduced = Reduction { function: "MPI_Test", level: Level::Entries, since_ns: 1, entries_ns: 1, sampled_ns: 0 };
    let budget = Budget {
        max_overhead: Some(2.0),
        period_ns: Some(1),
        spent: Some(spent),
        levels: vec![reduced],
        traffic_until_ns: Some(1),
        ..Budget::default()
    };
    profile.limit(budget, &estimates);
}
