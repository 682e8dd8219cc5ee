//! What the calls of one process meant: who sent how much to whom, by which function, over which communicator.

use std::collections::BTreeMap;
use std::ops::AddAssign;

/// What can carry data, as MPI described it. Two objects with the same description are one here.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    pub kind: ScopeKind,
    /// As MPI knows it, the last one that was set; may be empty. Of a file, the name it was opened by.
    pub name: String,
    /// Ranks in `MPI_COMM_WORLD`, sorted; `None` for processes of another world.
    pub members: Vec<Option<u32>>,
    /// The other group of an inter-communicator; empty for any other.
    pub remote_members: Vec<Option<u32>>,
    /// Of a window or file, the communicator it was made with.
    pub parent: Option<Box<Scope>>,
}

impl Scope {
    /// Of the local group.
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// The communicator that is meant: itself, or the one that the window or file was made with.
    pub fn communicator(&self) -> &Self {
        self.parent.as_deref().unwrap_or(self)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScopeKind {
    Communicator,
    Window,
    File,
}

/// Who was at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// Nobody in particular: collectives, files.
    None,
    /// `MPI_PROC_NULL`.
    Null,
    /// `MPI_ANY_SOURCE`, of a receive that is not complete or of a probe.
    Any,
    /// A process that is not in this world.
    Foreign,
    /// Rank in `MPI_COMM_WORLD`.
    Rank(u32),
}

/// What a number of calls have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The function that posted the operation, by its C name.
    pub function: String,
    /// `MPI_Start` or `MPI_Startall`, for what a persistent request has moved; the call that made it moved nothing.
    pub started_by: Option<String>,
    pub scope: Option<Scope>,
    pub peer: Peer,
}

/// Messages that have arrived, and reads that are complete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Received {
    /// Not of collectives.
    pub messages: u64,
    /// Bytes that came.
    pub bytes: u64,
    /// Bytes that might have come: count × size of the datatype. Not of collectives and one-sided accesses.
    pub capacity: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Calls that returned with success, or operations started by [`Key::started_by`]. An exchange with two partners is a call with
    /// each of them.
    pub calls: u64,
    /// Messages, accesses and writes. Not of collectives.
    pub sends: u64,
    /// Bytes.
    pub sent: u64,
    pub received: Received,
    /// Of `received`, what the program ignored the status of: from outside, its bytes may be known as an upper bound only.
    pub ignored: Received,
    /// Of `ignored`, what came from `MPI_ANY_SOURCE`: from outside, its source may not be known either.
    pub hidden: Received,
    /// Requests posted or started and not complete.
    pub open: u64,
}

impl AddAssign for Received {
    fn add_assign(&mut self, other: Self) {
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.capacity += other.capacity;
    }
}

impl AddAssign for Amounts {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.sends += other.sends;
        self.sent += other.sent;
        self.received += other.received;
        self.ignored += other.ignored;
        self.hidden += other.hidden;
        self.open += other.open;
    }
}

impl Amounts {
    /// Received bytes as they look if a receive whose status is ignored counts with its capacity.
    pub fn received_at_most(&self) -> u64 {
        self.received.bytes - self.ignored.bytes + self.ignored.capacity
    }
}

/// All that one process has moved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traffic {
    pub entries: BTreeMap<Key, Amounts>,
    /// What found no room in the library's tables.
    pub untold: u64,
}

impl Traffic {
    /// Sums over whatever the new key leaves out.
    pub fn by<K: Ord>(&self, key: impl Fn(&Key) -> K) -> BTreeMap<K, Amounts> {
        let mut sums = BTreeMap::new();
        for (old, amounts) in &self.entries {
            *sums.entry(key(old)).or_insert_with(Amounts::default) += *amounts;
        }
        sums
    }

    /// By the function that posted the operation.
    pub fn functions(&self) -> BTreeMap<&str, Amounts> {
        let mut sums = BTreeMap::new();
        for (key, amounts) in &self.entries {
            *sums.entry(key.function.as_str()).or_insert_with(Amounts::default) += *amounts;
        }
        sums
    }

    /// Bytes sent and received by a function, all in all.
    pub fn bytes(&self, function: &str) -> (u64, u64) {
        self.functions().get(function).map_or((0, 0), |amounts| (amounts.sent, amounts.received.bytes))
    }
}
