//! What an argument means.

/// One argument of the C binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// As the standard calls it: "sendcount".
    pub name: &'static str,
    pub role: Role,
    pub direction: Direction,
    pub length: Length,
    /// An integer of 64 bits (`MPI_Aint`, `MPI_Count`, `MPI_Offset`), or an array of such; otherwise integers are `int`.
    pub wide: bool,
    /// Significant at the root only; other processes may pass anything, even garbage.
    pub root_only: bool,
}

impl Argument {
    /// Whether C passes an address, not the value itself.
    pub const fn is_pointer(&self) -> bool {
        matches!(self.role, Role::Buffer | Role::Address | Role::String | Role::Status | Role::Function)
            || !matches!(self.direction, Direction::In)
            || self.is_array()
    }

    pub const fn is_array(&self) -> bool {
        !matches!(self.length, Length::Scalar)
    }
}

/// Who sets the value (the pointee, if the argument is an address).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    In,
    Out,
    InOut,
}

/// How many elements an argument has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Length {
    Scalar,
    /// An array of as many elements as the argument of that index says.
    Argument(u8),
    /// An array whose length follows from something else, mostly the size of the communicator.
    Implied,
}

macro_rules! roles {
    ($($(#[$doc:meta])* $variant:ident = $key:literal,)*) => {
        /// What an argument is to the function.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Role {
            $($(#[$doc])* $variant,)*
        }

        impl Role {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The role's name in the table.
            pub const fn key(self) -> &'static str {
                match self {
                    $(Self::$variant => $key,)*
                }
            }
        }
    };
}

roles! {
    /// Data that a datatype describes.
    Buffer = "buffer",
    /// Number of elements of a datatype.
    Count = "count",
    /// Distance in memory, in elements or bytes.
    Displacement = "displacement",
    /// Size in bytes.
    Bytes = "bytes",
    /// Position in a file.
    Offset = "offset",
    Datatype = "datatype",
    /// Rank that sends to the caller.
    Source = "source",
    /// Rank that the caller sends to.
    Destination = "dest",
    /// Rank whose window is accessed, locked or flushed.
    Target = "target",
    Root = "root",
    /// Any other rank or ranks.
    Rank = "rank",
    Tag = "tag",
    Communicator = "comm",
    Request = "request",
    Status = "status",
    Window = "win",
    File = "file",
    Message = "message",
    Op = "op",
    Info = "info",
    Group = "group",
    Errhandler = "errhandler",
    Session = "session",
    /// Characters, or an array of strings.
    String = "string",
    /// Number of elements of an array argument, or of processes.
    Length = "length",
    /// Which element of an array, or of the library's list of something.
    Index = "index",
    /// True or false.
    Flag = "flag",
    /// Partition of a partitioned operation, or how many there are.
    Partition = "partition",
    /// Whether others may have a lock of a window at the same time: `MPI_LOCK_EXCLUSIVE`, `MPI_LOCK_SHARED`.
    Lock = "lock",
    Keyval = "keyval",
    Function = "function",
    /// Memory, or a pointer to keep: attached buffers, window memory, extra state, attributes.
    Address = "address",
    /// Nothing a profiler looks at.
    Other = "other",
}

impl Role {
    /// The role of that key, exactly as [`Self::key`] gives it.
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|role| role.key() == key)
    }
}
