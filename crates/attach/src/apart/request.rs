//! What is asked for, and what is answered.

use serde::{Deserialize, Serialize};

use crate::{AttachError, AttachMethod, Calibration, ProbeSite, Refusal, Scope};

/// More than any library has functions, and no more than a packet has room for.
pub const MOST_SITES: usize = 1536;

/// Engines are known by numbers, as are their links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Makes tables and loads programs; the bytes are of a [`mpiprobe_common::Config`].
    Load {
        config: Vec<u8>,
        method: Option<AttachMethod>,
    },
    /// Starts the programs that watch processes.
    Watch {
        engine: u64,
    },
    /// Puts probes onto the file whose descriptor comes with it.
    Attach {
        engine: u64,
        shown: String,
        sites: Vec<ProbeSite>,
        scope: Scope,
        is_tool: bool,
        has_returns: bool,
    },
    /// Probes the place in that file, an offset in bytes, that calls return to which had begun before.
    AttachToReturn {
        engine: u64,
        shown: String,
        offset: u64,
        scope: Scope,
    },
    /// Stops counting at once where detaching is slow.
    Disable {
        engine: u64,
        link: u64,
    },
    Detach {
        engine: u64,
        link: u64,
    },
    /// Notes where open calls were made from.
    Locate {
        engine: u64,
    },
    /// How many hits the kernel did not pass to the programs.
    Missed {
        engine: u64,
    },
    /// Detaches everything, and forgets the tables.
    Release {
        engine: u64,
    },
}

/// What comes of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Answer {
    /// With the descriptors of these tables, in this order. `config`: what has become of it.
    Loaded {
        engine: u64,
        config: Vec<u8>,
        tables: Vec<String>,
        method: AttachMethod,
        calibration: Calibration,
        refusals: Vec<Refusal>,
        can_scope: bool,
        can_scope_returns: bool,
    },
    /// The numbers of the links in the order of attaching, and whether each one's program runs at returns only.
    Attached(Vec<(u64, bool)>),
    Missed(Option<u64>),
    Done,
    Failed {
        message: String,
        errno: Option<i32>,
    },
}

impl From<AttachError> for Answer {
    fn from(error: AttachError) -> Self {
        Self::Failed { errno: error.errno(), message: error.to_string() }
    }
}
