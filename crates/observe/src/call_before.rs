//! What looks at stacks have found of calls that had begun when a process's observation did.

/// What looks at the stacks of a process have found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BeganBefore {
    pub calls: Vec<CallBefore>,
    /// When it is not known of a thread whether it was in such a call, from and until, ns; in no order, and they may overlap.
    pub unknown: Vec<(u64, u64)>,
}

/// A call that had begun before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallBefore {
    pub tid: u32,
    /// Function id.
    pub function: u32,
    /// Return address into the program; `None`: not known.
    pub call_site: Option<u64>,
    /// What it was given, by argument, where known.
    pub words: Vec<Option<u64>>,
    /// From the beginning of the observation, ns.
    pub since_ns: u64,
    /// Where its thread is now.
    pub now: After,
}

/// What has become of a call that had begun before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// It has not returned.
    Open,
    /// It was last seen to be open at this moment, ns; its thread lives.
    Returned(u64),
    /// The same, and its thread has ended.
    ThreadEnded(u64),
}

impl CallBefore {
    /// Time in it from the beginning of the observation on, as far as that is certain, ns.
    pub fn time_ns(&self, now_ns: u64) -> u64 {
        let until_ns = match self.now {
            After::Open => now_ns,
            After::Returned(until_ns) | After::ThreadEnded(until_ns) => until_ns,
        };
        until_ns.saturating_sub(self.since_ns)
    }
}
