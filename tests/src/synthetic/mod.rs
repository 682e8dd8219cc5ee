//! Jobs that never ran: tables as the kernel might have filled them, made into profiles by mpiprobe's own analysis. Every
//! number follows from the job's size and the time, so that pictures made of them do not change by themselves.

mod hybrid;
mod recent;
mod stacks;
mod statistics;
mod threads;

use std::sync::Arc;

use mpiprobe_common::{
    Amount, Communicator, CommunicatorKey, Flow, FlowKey, FunctionStats, Layout, ProcessCounters, Request,
    flow::communicator_kind,
    layout::{Constants, MPICH, capability, handle_kind},
    request::{certainty, state},
};
use mpiprobe_functions::{Function, FunctionId};
use mpiprobe_model::{
    EndReason, EngineInfo, LibraryInfo, Profile, RankState,
    analyse::{self, Beginning, Expected, Identity, Observed, SelfCost, Session},
};
use mpiprobe_observe::{
    ByFunction, CommunicatorSnapshot, Members, PendingRequest, ProcessSnapshot, Snapshot, ToolsSnapshot,
};

/// ns of a second.
pub const SECOND: u64 = 1_000_000_000;

/// As in a program that was compiled for MPICH.
const CONSTANTS: Constants = MPICH.constants;

/// Handle of the communicator that is not the world.
const ROW: u64 = 0x8400_0001;

/// A job of so many ranks that calls so many functions.
#[derive(Clone, Copy, Debug)]
pub struct Synthetic {
    pub ranks: u32,
    pub functions: usize,
    /// In how many places each function is called, as far as it moves data.
    pub places: u32,
    /// Whether it is found out what calls move.
    pub traffic: bool,
    /// Whether some ranks do not get on.
    pub trouble: bool,
    /// Whether ranks have several threads, and tools before MPI.
    pub hybrid: bool,
}

impl Synthetic {
    /// Nobody, yet.
    pub const EMPTY: Self = Self { ranks: 0, functions: 0, places: 1, traffic: false, trouble: false, hybrid: false };
    pub const SMALL: Self = Self { ranks: 4, functions: 7, places: 1, traffic: true, trouble: true, hybrid: false };
    pub const HYBRID: Self = Self { hybrid: true, ..Self::SMALL };
    pub const LARGE: Self = Self { ranks: 1024, functions: 6, ..Self::SMALL };

    /// The profile after so many seconds.
    pub fn profile(&self, seconds: u64, end: Option<EndReason>) -> Profile {
        let now_ns = (seconds + 1) * SECOND;
        let processes = (0..self.ranks).map(|rank| self.process(rank, seconds, now_ns)).collect();
        let snapshot = Snapshot { taken_ns: now_ns, processes, missed_hits: Some(0), ..Snapshot::default() };
        let observed: Vec<Observed> = (0..self.ranks).map(|rank| self.observed(rank, end)).collect();
        let site = |_, address: u64| {
            let (function, place) = (address & 0xfff, (address >> 12) - 0x401);
            Some(if place == 0 {
                format!("solve.c:{function} in step")
            } else {
                format!("part{place}.c:{function} in step")
            })
        };
        analyse::profile(&self.session(end), &observed, &snapshot, &mut { site })
    }

    fn session(&self, end: Option<EndReason>) -> Session {
        let library = LibraryInfo {
            path: "/usr/lib/libmpich.so.12".into(),
            implementation: "MPICH 4.0.2".into(),
            build_id: None,
            functions: 166,
            slow: Vec::new(),
            not_probed: Vec::new(),
        };
        Session {
            host: "node1".into(),
            began: "2026-03-01T12:00:00Z".into(),
            began_ns: SECOND,
            end,
            engine: EngineInfo {
                engine: "ebpf",
                attached_by: "uprobe session link".into(),
                launched: false,
                attach_ns: 7_000_000,
                libraries: vec![library],
                tools: if self.hybrid { hybrid::tools() } else { Vec::new() },
            },
            per_call_ns: 1500.0,
            inside_ns: Some(700.0),
            nested: false,
            traffic: self.traffic,
            communicators: Vec::new(),
            expected: Expected::Some,
            incomplete_because: Vec::new(),
        }
    }

    fn observed(&self, rank: u32, end: Option<EndReason>) -> Observed {
        let identity = Identity {
            host: "node1".into(),
            pid: 4000 + rank,
            rank: Some(rank),
            size: Some(self.ranks),
            job: Some("hydra:4711".into()),
            executable: "/home/alice/bin/solve".into(),
        };
        let is_over = end == Some(EndReason::TargetsEnded);
        Observed {
            process: rank + 1,
            identity,
            state: if is_over { RankState::Ended } else { RankState::Running },
            stopped: self.trouble && !is_over && rank + 1 == self.ranks,
            since_ns: SECOND,
            beginning: Beginning::FirstCall,
            until_ns: None,
            failure: None,
            ended_in: Vec::new(),
            // Times are those that a test asks for.
            self_cost: SelfCost(None),
        }
    }

    fn process(&self, rank: u32, seconds: u64, now_ns: u64) -> ProcessSnapshot {
        let lively = threads::lively_seconds(self, rank, seconds);
        let function = |(place, id): (usize, FunctionId)| {
            (u32::from(id.number()), Arc::new(statistics::of(id.function(), place, rank, lively, self.traffic)))
        };
        let functions: ByFunction = self.functions().enumerate().map(function).collect();
        let calls = functions.iter().map(|(_, stats)| stats.calls).sum();
        let time_ns = functions.iter().map(|(_, stats)| stats.time_ns).sum();
        let layout = Layout {
            known: capability::CONSTANTS | capability::BUILTIN_SIZES,
            handles: handle_kind::INTEGER,
            constants: CONSTANTS,
            ..Layout::default()
        };
        let process = ProcessSnapshot {
            process: rank + 1,
            counters: ProcessCounters { tgid: 4000 + rank, ..ProcessCounters::ZERO },
            layout,
            threads: vec![threads::of(self, rank, now_ns, calls, time_ns)],
            ended_threads: Vec::new(),
            flows: if self.traffic { self.flows(rank, &functions) } else { Vec::new() },
            communicators: if self.traffic { self.communicators(rank) } else { Vec::new() },
            requests: if self.traffic { self.requests(rank, now_ns, (lively + 1) * SECOND) } else { Vec::new() },
            phases: Vec::new(),
            functions,
            datatypes: Vec::new(),
            awaited: Vec::new(),
            windows: Vec::new(),
            groups: Vec::new(),
            inner: Vec::new(),
            recent: Some(recent::of(self, rank, now_ns, &layout)),
            tools: ToolsSnapshot::default(),
            began_before: None,
        };
        if self.hybrid { hybrid::of(process, now_ns) } else { process }
    }

    /// Those that every program has, then others in the order of the table.
    fn functions(&self) -> impl Iterator<Item = FunctionId> {
        const COMMON: [&str; 6] = ["MPI_Waitall", "MPI_Allreduce", "MPI_Isend", "MPI_Irecv", "MPI_Recv", "MPI_Barrier"];
        let common = COMMON.into_iter().filter_map(mpiprobe_functions::by_name);
        let is_other = |id: &FunctionId| id.function().default && !COMMON.contains(&id.function().name);
        common.chain(FunctionId::all().filter(is_other)).take(self.functions)
    }

    /// To and from both neighbours, over the row.
    fn flows(&self, rank: u32, functions: &ByFunction) -> Vec<Flow> {
        let neighbours = [(rank + 1) % self.ranks, (rank + self.ranks - 1) % self.ranks];
        let moves = |function: &Function| function.position(mpiprobe_functions::Role::Buffer).is_some();
        let of_function = |(id, stats): &(u32, Arc<FunctionStats>)| {
            let function = FunctionId::from_index(u16::try_from(*id).ok()?)?.function();
            let is_pairwise = function.position(mpiprobe_functions::Role::Destination).is_some()
                || function.position(mpiprobe_functions::Role::Source).is_some();
            let number = if is_pairwise { 2 } else { 1 };
            let number = number * u64::from(self.places.max(1));
            let flow = |(place, peer): (u64, i32)| Flow {
                key: FlowKey {
                    process: rank + 1,
                    function: u16::try_from(*id).unwrap_or(0),
                    started_by_plus_1: 0,
                    communicator: if is_pairwise { 2 } else { 1 },
                    peer,
                    call_site: 0x40_1000 + (place << 12) + u64::from(*id),
                },
                calls: stats.calls / number,
                time_ns: stats.time_ns / number,
                sent: stats.sent.bytes / number,
                received: stats.received.bytes / number,
                received_at_most: 0,
                unknown: stats.unknown / number,
                ..Flow::default()
            };
            let peers = neighbours.into_iter().filter_map(|peer| i32::try_from(peer).ok());
            let peers: Vec<i32> = if is_pairwise { peers.collect() } else { vec![-1] };
            let places = 0..u64::from(self.places.max(1));
            let all = places.flat_map(|place| peers.iter().map(move |peer| (place, *peer)));
            moves(function).then(|| all.map(flow).collect::<Vec<_>>())
        };
        functions.iter().filter_map(of_function).flatten().filter(|flow| flow.calls > 0).collect()
    }

    /// The world, and the row of a square of ranks.
    fn communicators(&self, rank: u32) -> Vec<CommunicatorSnapshot> {
        let row = self.row();
        let signed = |rank: u32| i32::try_from(rank).unwrap_or(-1);
        let of = |kind, handle, context, first, size: u32| Communicator {
            key: CommunicatorKey { process: rank + 1, kind: 0, handle },
            kind,
            context,
            rank: rank - first,
            size,
            first: signed(first),
            middle: signed(first + size / 2),
            last: signed(first + size - 1),
            first_ns: SECOND,
            ..Communicator::default()
        };
        let first = rank - rank % row;
        let size = row.min(self.ranks - first);
        let world = of(communicator_kind::WORLD, CONSTANTS.comm_world, 0, 0, self.ranks);
        let members = Members { own: (first..first + size).map(Some).collect(), remote: Vec::new() };
        vec![
            CommunicatorSnapshot { number: 1, facts: world, ..CommunicatorSnapshot::default() },
            CommunicatorSnapshot {
                number: 2,
                facts: of(communicator_kind::MADE, ROW, 2, first, size),
                name: "row".into(),
                members: Some(Arc::new(members)),
                ..CommunicatorSnapshot::default()
            },
        ]
    }

    /// A receive and a send to neighbours; of ranks that are stuck, a receive that nobody has asked after since.
    fn requests(&self, rank: u32, now_ns: u64, lively_ns: u64) -> Vec<PendingRequest> {
        let number = |name| mpiprobe_functions::by_name(name).map_or(0, FunctionId::number);
        let age_ns = if lively_ns + SECOND < now_ns { now_ns - lively_ns - SECOND } else { 140_000 };
        let request = |name, peer: u32, sent, received| PendingRequest {
            request: Request {
                function: number(name),
                communicator_number: 1,
                state: state::TAGGED,
                tag: 7,
                posted_ns: now_ns - age_ns,
                call_site: 0x40_1000 + u64::from(number(name)),
                sent,
                received,
                ..Request::default()
            },
            handle: u64::from(number(name)),
            peer: i32::try_from(peer).unwrap_or(-1),
        };
        let known = |bytes| Amount { bytes, certainty: certainty::KNOWN };
        let (left, right) = ((rank + self.ranks - 1) % self.ranks, (rank + 1) % self.ranks);
        let receive = request("MPI_Irecv", left, Amount::default(), known(1024));
        match rank % 5 {
            3 => vec![receive, request("MPI_Isend", right, known(1024), Amount::default())],
            1 => vec![receive],
            _ => Vec::new(),
        }
    }

    /// Ranks in a row of a square.
    fn row(&self) -> u32 {
        self.ranks.isqrt().max(1)
    }
}

/// A profile at an earlier moment, `second` of `of`, without the rows of ranks: what is read of the moments of a long recording. Making it takes
/// next to no time.
pub fn earlier(last: &Profile, second: u64, of: u64) -> Profile {
    let part = |amount: u64| amount / of * second;
    let mut profile = last.clone();
    (profile.observed_ns, profile.end) = (part(last.observed_ns), None);
    for row in &mut profile.functions {
        (row.all.calls, row.all.time_ns) = (part(row.all.calls), part(row.all.time_ns));
        if let Some(traffic) = &mut row.all.traffic {
            (traffic.sent.bytes, traffic.received.bytes) = (part(traffic.sent.bytes), part(traffic.received.bytes));
        }
    }
    for group in &mut profile.groups {
        group.all.time_ns = part(group.all.time_ns);
    }
    for rank in &mut profile.ranks {
        (rank.wall_ns, rank.thread_wall_ns) = (part(rank.wall_ns), part(rank.thread_wall_ns));
        (rank.mpi_ns, rank.calls) = (part(rank.mpi_ns), part(rank.calls));
        rank.functions = Vec::new().into();
        for traffic in rank.groups.iter_mut().filter_map(|group| group.traffic.as_mut()) {
            (traffic.sent_bytes, traffic.received_bytes) = (part(traffic.sent_bytes), part(traffic.received_bytes));
        }
        if let Some(traffic) = &mut rank.traffic {
            traffic.flows = Vec::new().into();
        }
    }
    profile
}
