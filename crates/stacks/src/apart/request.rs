//! What is asked for, and what is answered.

use serde::{Deserialize, Serialize};

/// Those that look are known by numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Loads the program and makes its tables.
    Load,
    /// Notes registers and stacks of these threads.
    Look { looking: u64, threads: Vec<u32> },
    /// A perf event that takes a sample of a thread, switched off.
    Sample { tid: u32 },
    /// Forgets program and tables.
    Release { looking: u64 },
}

/// What comes of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Answer {
    /// With the descriptors of the tables of notes and of pages.
    Loaded(u64),
    /// With the event, or none.
    Done,
    Failed {
        message: String,
        errno: Option<i32>,
    },
}
