//! What can be asked of a row.

/// What the numbers of a field count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    Text,
    Count,
    Bytes,
    /// ns
    Time,
    /// Of hundred.
    Percent,
}

macro_rules! fields {
    ($($variant:ident $name:literal $dimension:ident $what:literal;)*) => {
        /// One of them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Field {
            $(#[doc = $what] $variant,)*
        }

        impl Field {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// As it is typed.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// For the documentation.
            pub const fn what(self) -> &'static str {
                match self {
                    $(Self::$variant => $what,)*
                }
            }

            pub const fn dimension(self) -> Dimension {
                match self {
                    $(Self::$variant => Dimension::$dimension,)*
                }
            }
        }
    };
}

fields! {
    Function "func" Text "name of the function";
    Group "group" Text "its group, such as `collective`";
    Rank "rank" Count "rank in `MPI_COMM_WORLD`";
    Peer "peer" Count "rank at the other end";
    Communicator "comm" Text "name of the communicator";
    Size "size" Count "processes in the communicator";
    Tag "tag" Count "tag of a request or a recent call";
    Site "site" Text "call site, such as `solve.c:112 in step`";
    State "state" Text "of a rank: `running`, `stopped`, `ended`, `execed`";
    Host "host" Text "node";
    Job "job" Text "job, as `mpiprobe ps` names it";
    Program "program" Text "path of the executable";
    Pid "pid" Count "process";
    Calls "calls" Count "completed calls";
    Open "open" Count "calls that have not returned";
    Bytes "bytes" Bytes "bytes sent and received";
    Sent "sent" Bytes "bytes sent";
    Received "received" Bytes "bytes received";
    Time "time" Time "time in the calls, open ones included; of a recent call, how long it took";
    P50 "p50" Time "median of the durations";
    P99 "p99" Time "99th percentile of the durations";
    Max "max" Time "longest duration";
    Age "age" Time "how long a request, or the present call of a rank (or the one it ended in), has been under way";
    Mpi "mpi" Percent "time in MPI, of a rank's time";
    Imbalance "imbalance" Percent "by how much the slowest rank exceeds the mean";
}

impl Field {
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|field| field.name() == name)
    }

    /// The one that was probably meant.
    pub fn like(name: &str) -> Option<Self> {
        let close = Self::ALL.iter().map(|field| (strsim::jaro_winkler(name, field.name()), *field));
        close.filter(|(likeness, _)| *likeness > 0.75).max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, field)| field)
    }
}
