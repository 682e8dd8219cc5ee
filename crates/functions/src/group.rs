//! What a function is for.

/// Groups of functions as MPI profilers report them; a function is in exactly one.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// Sends, receives, probes, and the starting of persistent and partitioned ones.
    PointToPoint,
    /// Collectives that move data, blocking or not, persistent, and over neighbourhoods.
    Collective,
    /// Waiting and testing for requests, and giving them up.
    Completion,
    /// Barriers.
    Synchronisation,
    /// Access to windows, epochs, and windows themselves.
    OneSided,
    /// Files.
    Io,
    /// Starting and ending MPI.
    InitFinalize,
    /// Making and freeing communicators, groups and topologies; dynamic processes.
    Communicator,
    /// Making and freeing datatypes; packing.
    Datatype,
    /// Local questions.
    Query,
    /// The tool information interface and `MPI_Pcontrol`.
    Tool,
    /// What changes something locally: attributes, info, error handlers, memory.
    Other,
}

impl Group {
    /// In the order in which reports show them; a group's place is its index in descriptors.
    pub const ALL: [Self; 12] = [
        Self::PointToPoint,
        Self::Collective,
        Self::Completion,
        Self::Synchronisation,
        Self::OneSided,
        Self::Io,
        Self::InitFinalize,
        Self::Communicator,
        Self::Datatype,
        Self::Query,
        Self::Tool,
        Self::Other,
    ];

    /// For people: "point-to-point".
    pub const fn title(self) -> &'static str {
        match self {
            Self::PointToPoint => "point-to-point",
            Self::Collective => "collective",
            Self::Completion => "completion",
            Self::Synchronisation => "synchronisation",
            Self::OneSided => "one-sided",
            Self::Io => "I/O",
            Self::InitFinalize => "init/finalize",
            Self::Communicator => "communicator management",
            Self::Datatype => "datatype management",
            Self::Query => "local query",
            Self::Tool => "tool",
            Self::Other => "other",
        }
    }

    /// For the command line and the table: "p2p".
    pub const fn key(self) -> &'static str {
        match self {
            Self::PointToPoint => "p2p",
            Self::Collective => "coll",
            Self::Completion => "completion",
            Self::Synchronisation => "sync",
            Self::OneSided => "rma",
            Self::Io => "io",
            Self::InitFinalize => "init",
            Self::Communicator => "comm",
            Self::Datatype => "type",
            Self::Query => "query",
            Self::Tool => "tool",
            Self::Other => "other",
        }
    }

    /// The group of that key, exactly as [`Self::key`] gives it.
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.key() == key)
    }

    /// Place in [`Self::ALL`].
    pub const fn index(self) -> u8 {
        self as u8
    }

    /// Whether its functions are probed unless the user says otherwise: they communicate, wait, synchronise or begin and
    /// end a run; the others return at once or are rare.
    pub const fn is_default(self) -> bool {
        match self {
            Self::PointToPoint
            | Self::Collective
            | Self::Completion
            | Self::Synchronisation
            | Self::OneSided
            | Self::Io
            | Self::InitFinalize => true,
            Self::Communicator | Self::Datatype | Self::Query | Self::Tool | Self::Other => false,
        }
    }
}
