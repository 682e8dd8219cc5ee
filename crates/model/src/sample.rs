//! Profiles for tests, in which nothing has happened but what the test says.

use super::{
    CallArguments, CommunicatorArgument, EngineInfo, FunctionProfile, FunctionRow, Losses, OpenCallInfo, OwnCost,
    Partner, Peer, PendingRow, Profile, RankProfile, RankState, RankTraffic, Rows, SCHEMA, Spread, Totals,
    TrafficProfile,
};

/// ns of a second.
pub const SECOND: u64 = 1_000_000_000;

/// Of these ranks, observed for ten seconds.
pub fn profile(ranks: Vec<RankProfile>) -> Profile {
    let none = Spread::default();
    Profile {
        schema: SCHEMA,
        mpiprobe_version: "0",
        host: "node1".into(),
        began: "2026-03-01T12:00:00Z".into(),
        observed_ns: 10 * SECOND,
        end: None,
        complete: true,
        incomplete_because: Vec::new(),
        engine: EngineInfo {
            engine: "ebpf",
            attached_by: String::new(),
            launched: false,
            attach_ns: 0,
            libraries: Vec::new(),
            tools: Vec::new(),
        },
        jobs: Vec::new(),
        totals: Totals {
            calls: 0,
            wall_ns: none,
            mpi_ns: none,
            mpi_percent: none,
            mpi_percent_of_all: Some(0.0),
            efficiency: None,
        },
        interval: None,
        groups: Vec::new(),
        functions: Vec::new(),
        inner_calls: None,
        traffic: Some(TrafficProfile::default()),
        phases: Vec::new(),
        layers: Vec::new(),
        ranks: ranks.into(),
        unmatched: Vec::new(),
        standstill: Vec::new(),
        wait_states: None,
        losses: Losses::default(),
        budget: None,
        own_cost: OwnCost::new(1000.0, Some(500.0), 0, 1),
    }
}

/// So many ranks of one job that compute.
pub fn ranks(number: u32) -> Vec<RankProfile> {
    (0..number).map(|rank| self::rank(rank, number)).collect()
}

fn rank(rank: u32, size: u32) -> RankProfile {
    RankProfile {
        rank: Some(rank),
        size: Some(size),
        job: Some("job".into()),
        host: "node1".into(),
        pid: 4000 + rank,
        executable: "/bin/solve".into(),
        state: RankState::Running,
        stopped: false,
        ended_ago_ns: None,
        failure: None,
        wall_ns: 10 * SECOND,
        mpi_ns: 0,
        self_cost_ns: 0,
        thread_wall_ns: 10 * SECOND,
        mpi_percent: Some(0.0),
        unseen_ns: 0,
        calls: 0,
        untimed_calls: 0,
        threads_in_mpi: 1,
        inner_calls: 0,
        inner_calls_of_unseen: 0,
        before_first_call_ns: None,
        functions: Rows::default(),
        groups: Vec::new(),
        traffic: Some(RankTraffic::default()),
        open_calls: Vec::new(),
        asks: None,
        began_before: Vec::new(),
        threads: Vec::new(),
        other_threads: None,
        phases: Vec::new(),
        layers: Vec::new(),
        calls_while_off: 0,
        off_ns: 0,
        losses: Losses::default(),
        recent: None,
    }
}

/// A function over ranks: its calls, and the time in each, ns.
pub fn function(name: &'static str, calls: u64, each_ns: u64) -> FunctionProfile {
    let group = mpiprobe_functions::by_name(name).map_or("other", |id| id.function().group.title());
    let all = FunctionRow {
        calls,
        time_ns: calls * each_ns,
        mean_ns: each_ns as f64,
        min_ns: each_ns,
        max_ns: each_ns,
        p50_ns: each_ns,
        p90_ns: each_ns,
        p99_ns: each_ns,
        ..FunctionRow::of_no_calls(name, group)
    };
    FunctionProfile { all, calls_over_ranks: Spread::default(), time_over_ranks_ns: Spread::default() }
}

/// A call that has been open for two seconds.
pub fn open(function: &'static str, arguments: CallArguments) -> OpenCallInfo {
    OpenCallInfo {
        function,
        tid: 1,
        open_ns: 2 * SECOND,
        call_site: None,
        site: None,
        arguments: Some(arguments),
        ended_inside: false,
        began_before: false,
        polls: false,
        exchanges: false,
    }
}

/// A rank as an argument of a call over the world.
pub fn peer(rank: u32) -> Peer {
    Peer { partner: Partner::Rank, rank: Some(rank), world_rank: Some(rank) }
}

/// `MPI_ANY_SOURCE`.
pub fn anybody() -> Peer {
    Peer { partner: Partner::AnySource, rank: None, world_rank: None }
}

/// Arguments of a call over the world.
pub fn over_world() -> CallArguments {
    let world = CommunicatorArgument { handle: 1, number: None, name: Some("MPI_COMM_WORLD".into()), size: None };
    CallArguments { communicator: Some(world), ..CallArguments::default() }
}

pub fn receive(from: u32, tag: i32) -> OpenCallInfo {
    open("MPI_Recv", CallArguments { source: Some(peer(from)), receive_tag: Some(tag), ..over_world() })
}

pub fn send(to: u32, tag: i32) -> OpenCallInfo {
    open("MPI_Ssend", CallArguments { destination: Some(peer(to)), send_tag: Some(tag), ..over_world() })
}

/// A request that has been under way for two seconds.
pub fn pending(function: &'static str, peer: Option<u32>, tag: i32) -> PendingRow {
    PendingRow {
        function,
        is_of_library: false,
        started_by: None,
        communicator: None,
        partner: if peer.is_some() { Partner::Rank } else { Partner::AnySource },
        peer,
        tag: Some(tag),
        sent_bytes: None,
        received_bytes: Some(1024),
        age_ns: 2 * SECOND,
        awaited_by: None,
        is_under_way: None,
        call_site: 0,
        site: None,
    }
}
