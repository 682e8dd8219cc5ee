//! The JSON form of a profile, as far as tests look at it.

use std::collections::BTreeMap;

use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
pub struct Profile {
    pub schema: String,
    pub end: Option<String>,
    pub complete: bool,
    pub incomplete_because: Vec<String>,
    pub observed_ns: u64,
    pub engine: Engine,
    pub jobs: Vec<Job>,
    pub phases: Vec<PhaseProfile>,
    pub ranks: Vec<Rank>,
    pub losses: Losses,
    pub inner_calls: Option<Vec<InnerCalls>>,
    pub traffic: Option<AllTraffic>,
    pub own_cost: OwnCost,
    pub budget: Option<Budget>,
}

/// What observing may cost, and what was reduced for that.
#[derive(Debug, Clone, Deserialize)]
pub struct Budget {
    pub max_overhead: Option<f64>,
    pub levels: Vec<Reduction>,
    pub traffic_until_ns: Option<u64>,
    pub traffic_paused_ns: u64,
    pub traffic_is_back: bool,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Reduction {
    pub function: String,
    pub level: String,
    pub entries_ns: u64,
    pub sampled_ns: u64,
}

/// How often a function was called, with limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Estimate {
    pub calls: u64,
    pub calls_low: u64,
    pub calls_high: Option<u64>,
    pub windows: u64,
}

/// What observing costs.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct OwnCost {
    pub calls: u64,
    pub per_call_ns: f64,
    pub inside_ns: Option<f64>,
    pub subtracted_ns: u64,
}

/// Communicators and partners over ranks.
#[derive(Debug, Clone, Deserialize)]
pub struct AllTraffic {
    pub communicators: Vec<WholeCommunicator>,
    pub other_communicators: Option<OtherCommunicators>,
    pub communicator_sizes: Vec<CommunicatorSize>,
    pub partners: Vec<Pair>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Amounts {
    pub calls: u64,
    pub time_ns: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub calls_of_unknown_bytes: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub struct WholeCommunicator {
    pub id: u32,
    pub name: String,
    pub is_named: bool,
    pub size: Option<u32>,
    pub remote_size: Option<u32>,
    pub members: Option<Vec<Option<u32>>>,
    pub remote_members: Option<Vec<Option<u32>>>,
    pub parent: Option<u32>,
    pub made_by: Option<String>,
    pub ranks: u32,
    pub freed: bool,
    #[serde(flatten)]
    pub amounts: Amounts,
    pub functions: Vec<FunctionAmounts>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct FunctionAmounts {
    pub function: String,
    #[serde(flatten)]
    pub amounts: Amounts,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub struct OtherCommunicators {
    pub communicators: u64,
    #[serde(flatten)]
    pub amounts: Amounts,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub struct CommunicatorSize {
    pub size: u32,
    pub communicators: u64,
    #[serde(flatten)]
    pub amounts: Amounts,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Pair {
    pub rank: u32,
    pub peer: u32,
    #[serde(flatten)]
    pub amounts: Amounts,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Engine {
    pub attached_by: String,
    pub libraries: Vec<Library>,
    pub tools: Vec<Tool>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Library {
    pub path: String,
    pub functions: u64,
    pub not_probed: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Tool {
    pub name: String,
    pub functions: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Job {
    pub id: String,
    pub ranks: u64,
    pub size: Option<u32>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct InnerCalls {
    pub outer: String,
    pub inner: String,
    pub calls: u64,
}

/// One process image.
#[derive(Debug, Clone, Deserialize)]
pub struct Rank {
    pub rank: Option<u32>,
    pub host: String,
    pub pid: u32,
    pub job: Option<String>,
    pub executable: String,
    pub state: String,
    pub failure: Option<BTreeMap<String, u32>>,
    pub wall_ns: u64,
    pub mpi_ns: u64,
    pub thread_wall_ns: u64,
    pub mpi_percent: Option<f64>,
    pub unseen_ns: u64,
    pub calls: u64,
    pub threads_in_mpi: u64,
    pub threads: Vec<Thread>,
    pub other_threads: Option<OtherThreads>,
    pub inner_calls: u64,
    pub functions: Vec<FunctionRow>,
    pub open_calls: Vec<OpenCall>,
    pub traffic: Option<Traffic>,
    pub phases: Vec<RankPhase>,
    pub layers: Vec<FunctionLayers>,
    pub calls_while_off: u64,
    pub off_ns: u64,
    pub losses: Losses,
}

/// One function that tools stand before.
#[derive(Debug, Clone, Deserialize)]
pub struct FunctionLayers {
    pub function: String,
    pub calls: u64,
    pub time_ns: u64,
    /// From the program's side to the library's.
    pub tools: Vec<ToolLayer>,
    pub library: LibraryLayer,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ToolLayer {
    pub tool: String,
    pub calls: u64,
    pub time_ns: u64,
    pub passed_on: u64,
    pub cost_ns: u64,
    pub own_calls: u64,
    pub own_calls_ns: u64,
    pub own: Vec<ToolCalls>,
    pub by_tools: u64,
    pub by_mpi: u64,
    pub left: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ToolCalls {
    pub function: String,
    pub calls: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub struct LibraryLayer {
    pub calls: u64,
    pub time_ns: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Thread {
    pub tid: u32,
    pub state: String,
    pub calls: u64,
    pub mpi_ns: u64,
    pub wall_ns: u64,
}

/// Sums over threads that have no rows of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct OtherThreads {
    pub threads: u64,
    pub calls: u64,
    pub mpi_ns: u64,
    pub wall_ns: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub struct RankPhase {
    pub name: String,
    pub opened: u64,
    pub is_open: bool,
    pub wall_ns: u64,
    pub calls: u64,
    pub mpi_ns: u64,
    pub functions: Vec<PhaseFunction>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct PhaseFunction {
    pub name: String,
    pub calls: u64,
    pub traffic: Option<PhaseTraffic>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct PhaseTraffic {
    pub sent: Bytes,
    pub received: Bytes,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Bytes {
    pub bytes: u64,
}

/// One over ranks.
#[derive(Debug, Clone, Deserialize)]
pub struct PhaseProfile {
    pub name: String,
    pub ranks: u64,
    pub opened: u64,
    pub calls: u64,
}

impl RankPhase {
    /// Calls, bytes sent and received, by function.
    pub fn counts(&self) -> impl Iterator<Item = (&str, [u64; 3])> {
        self.functions.iter().map(|row| {
            let moved = row.traffic.as_ref().map_or([0; 2], |traffic| [traffic.sent.bytes, traffic.received.bytes]);
            (row.name.as_str(), [row.calls, moved[0], moved[1]])
        })
    }
}

#[derive(Debug, Clone, Deserialize)]
pub struct FunctionRow {
    pub name: String,
    pub calls: u64,
    pub untimed_calls: u64,
    pub estimated: Option<Estimate>,
    pub time_ns: u64,
    pub self_cost_ns: u64,
    pub open_calls: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Traffic {
    pub communicators: Vec<Communicator>,
    pub flows: Vec<Flow>,
    pub pending: Vec<Pending>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Pending {
    pub function: String,
    pub started_by: Option<String>,
    pub peer: Option<u32>,
    pub tag: Option<i32>,
    pub received_bytes: Option<u64>,
    pub site: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Communicator {
    pub number: u32,
    pub id: Option<u32>,
    pub size: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Flow {
    pub function: String,
    pub started_by: Option<String>,
    pub communicator: Option<u32>,
    pub partner: String,
    pub peer: Option<u32>,
    pub site: Option<String>,
    pub calls: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub received_at_most_bytes: u64,
    pub calls_of_unknown_bytes: u64,
    pub completed: u64,
    pub pending_ns: u64,
    pub waited_ns: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct OpenCall {
    pub function: String,
    pub tid: u32,
    pub call_site: Option<u64>,
    pub site: Option<String>,
    pub arguments: Option<Arguments>,
    pub ended_inside: bool,
}

/// Of an open call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Arguments {
    pub source: Option<Peer>,
    pub count: Option<u64>,
    pub bytes: Option<u64>,
    pub datatype: Option<Datatype>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Peer {
    pub rank: Option<u32>,
    pub world_rank: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Datatype {
    pub name: Option<String>,
    pub size: Option<u64>,
}

/// Counter → value; `None` where the kernel does not tell. Kept open, so that a counter that is new is not overlooked.
pub type Losses = BTreeMap<String, Option<u64>>;

impl Profile {
    /// The counters that are not zero.
    pub fn lost(&self) -> BTreeMap<&str, u64> {
        let counters = self.losses.iter().map(|(name, count)| (name.as_str(), count.unwrap_or(0)));
        counters.filter(|(_, count)| *count > 0).collect()
    }

    /// The one process of a rank, or `None` if there are none or several.
    pub fn rank(&self, rank: u32) -> Option<&Rank> {
        let mut found = self.ranks.iter().filter(|row| row.rank == Some(rank));
        found.next().filter(|_| found.next().is_none())
    }

    pub fn of_pid(&self, pid: u32) -> Option<&Rank> {
        self.ranks.iter().find(|row| row.pid == pid)
    }
}

/// Whether the kernel keeps with what a process has ended whose parent has been told: since Linux 6.15.
pub fn is_failure_kept() -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(|one: char| !one.is_ascii_digit()).map(|one| one.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(15))
}

impl Rank {
    /// That it has ended so, which may not be known where nobody keeps it.
    ///
    /// # Panics
    ///
    /// If it has not.
    pub fn expect_failure(&self, how: &str, number: u32) {
        let expected = BTreeMap::from([(how.to_owned(), number)]);
        let is_unknown = self.failure.is_none() && !is_failure_kept();
        assert!(is_unknown || self.failure == Some(expected), "{self:?}");
    }

    /// Completed calls by function; functions without any are left out.
    pub fn completed(&self) -> BTreeMap<&str, u64> {
        let rows = self.functions.iter().filter(|row| row.calls > 0);
        rows.map(|row| (row.name.as_str(), row.calls)).collect()
    }
}
