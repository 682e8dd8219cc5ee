//! What one thread does, and in words.

use std::sync::Arc;

use mpiprobe_model::CallSite;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    arguments::KnownBy,
    copy::{Certainty, State, Way},
    ranks::Member,
    thread_stack::{MpiCall, SystemCallSeen, ThreadStack, site},
    within::WaitsWithin,
};

/// What one thread does; of each rank those that are in MPI, and the first one.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "each is something that was seen of the thread, or not")]
pub struct ThreadReport {
    pub member: Member,
    /// Its node, if several were looked at.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub node: Option<Arc<str>>,
    pub pid: u32,
    pub tid: u32,
    #[serde(flatten)]
    pub doing: Doing,
    /// Its MPI call with what it was given, in short: `MPI_Recv from 0 tag 99`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub called: Option<String>,
    /// Whether the program has gone on between the first look and the last, in this thread; `None` if that is not known.
    pub gone_on: Option<bool>,
    /// Whether it makes its MPI call again and again, in a loop that nothing but MPI's answer ends: it waits for that.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub polls: bool,
    /// Whether its MPI call is one on a file and waits for messages of others within it, whenever it was looked at, and not for the file.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub exchanges: bool,
    /// Whether it is in no MPI call, and was in one when it was looked at before.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub left_mpi: bool,
    /// Part of a core that it has used meanwhile, in percent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cpu_percent: Option<u32>,
    /// What the thread of its process does that it waits for, in words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub other: Option<String>,
    /// Whether its rank has several threads here.
    #[serde(skip)]
    pub is_one_of_several: bool,
    pub way: Way,
    pub certainty: Certainty,
}

/// What a thread does.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "doing")]
pub enum Doing {
    Mpi {
        #[serde(flatten)]
        call: MpiCall,
        /// What the call was given, each with how it is known.
        arguments: Vec<Argument>,
    },
    /// In a system call that the program has made.
    SystemCall {
        #[serde(flatten)]
        call: SystemCallSeen,
        /// Whether signals do not end the wait.
        uninterruptible: bool,
        /// Of other threads of its process, what it waits for.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        waits_within: Option<WaitsWithin>,
        #[serde(serialize_with = "site")]
        place: Option<Arc<CallSite>>,
    },
    /// It runs, or could.
    Computes {
        #[serde(serialize_with = "site")]
        place: Option<Arc<CallSite>>,
    },
    /// By a signal such as SIGSTOP; the call that it was in, if any.
    Stopped {
        call: Option<MpiCall>,
    },
    /// By a debugger.
    Traced {
        call: Option<MpiCall>,
    },
    Ended,
    /// It waits in the kernel, nobody knows for what.
    Waits {
        #[serde(serialize_with = "site")]
        place: Option<Arc<CallSite>>,
    },
}

/// One argument of a call that began before anybody looked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Argument {
    pub name: String,
    /// As people write it; `None` where it is not known.
    pub value: Option<String>,
    pub known_by: KnownBy,
}

impl Doing {
    pub(crate) fn of(thread: &ThreadStack) -> Self {
        let place = thread.place.clone();
        match (thread.state, &thread.call) {
            (State::Zombie, _) => Self::Ended,
            (State::Stopped, call) => Self::Stopped { call: call.clone() },
            (State::Traced, call) => Self::Traced { call: call.clone() },
            (_, Some(call)) => Self::Mpi { call: call.clone(), arguments: Argument::all(call) },
            (State::Running, None) => Self::Computes { place },
            (state, None) => match thread.system_call.clone() {
                Some(call) => Self::SystemCall {
                    call,
                    uninterruptible: state == State::Uninterruptible,
                    waits_within: thread.waits_within,
                    place,
                },
                None => Self::Waits { place },
            },
        }
    }
}

impl Argument {
    /// Of a call, as numbers: whole ones of integers, others as addresses are written.
    fn all(call: &MpiCall) -> Vec<Self> {
        let arguments = call.function.function().arguments.iter().enumerate();
        let one = |(place, argument): (usize, &mpiprobe_functions::Argument)| {
            let word = call.words.get(place).copied().flatten();
            let value = word.and_then(|word| word.text(argument));
            let known_by = word.filter(|_| value.is_some()).map_or(KnownBy::NotKnown, |word| word.known_by);
            Self { name: argument.name.to_owned(), value, known_by }
        };
        arguments.map(one).collect()
    }
}

impl ThreadReport {
    pub(crate) fn ended(member: Member) -> Self {
        Self {
            member,
            node: None,
            pid: 0,
            tid: 0,
            doing: Doing::Ended,
            called: None,
            gone_on: Some(false),
            polls: false,
            exchanges: false,
            left_mpi: false,
            cpu_percent: None,
            other: None,
            is_one_of_several: false,
            way: Way::Copied,
            certainty: Certainty::Exact,
        }
    }

    /// Its node, if that has a name, and its process there.
    pub fn process(&self) -> (Option<&str>, u32) {
        (self.node.as_deref(), self.pid)
    }

    /// "for a lock that its thread 4711 has, which is in MPI_Recv"
    fn within(&self, within: WaitsWithin) -> String {
        let other = self.other.as_deref().map(|does| format!(", which is {does}")).unwrap_or_default();
        match within {
            WaitsWithin::Lock { thread } => format!("for a lock that its thread {thread} has{other}"),
            WaitsWithin::End { thread } => format!("for the end of its thread {thread}{other}"),
            WaitsWithin::Threads => "for other threads of its process".to_owned(),
        }
    }

    /// What it does, behind its name; `called`: its call, if that is to be told with what it was given.
    pub fn words(&self, called: Option<&str>) -> String {
        let mut words = match &self.doing {
            Doing::Mpi { call, .. } => {
                format!("{} {}", if self.polls { "polls" } else { "in" }, call_words(call, called))
            }
            Doing::SystemCall { waits_within: Some(within), place, .. } => {
                format!("not in MPI: waits {}{}", self.within(*within), at(place.as_ref()))
            }
            Doing::SystemCall { call, uninterruptible, place, .. } => {
                let name = call.name.map_or_else(|| format!("system call {}", call.number), str::to_owned);
                let descriptor = call.descriptor.map(|descriptor| format!(", fd {descriptor}")).unwrap_or_default();
                let file = call.file.as_ref().map(|file| format!(", {file}")).unwrap_or_default();
                let how = if *uninterruptible { ", cannot be interrupted" } else { "" };
                format!("not in MPI: {name}{descriptor}{file}{how}{}", at(place.as_ref()))
            }
            Doing::Computes { place } => {
                let share = self.cpu_percent.map(|percent| format!(", {percent} % of a core")).unwrap_or_default();
                format!("not in MPI: computes{share}{}", at(place.as_ref()))
            }
            Doing::Stopped { call } => format!("stopped by a signal{}", inside(call.as_ref())),
            Doing::Traced { call } => format!("stopped by a debugger{}", inside(call.as_ref())),
            Doing::Ended => "ended".to_owned(),
            Doing::Waits { place } => format!("not in MPI: waits{}", at(place.as_ref())),
        };
        if self.is_one_of_several {
            words = format!("(thread {}) {words}", self.tid);
        }
        if self.certainty == Certainty::Doubtful {
            words.push_str(" (it ran while it was looked at: not certain)");
        }
        words
    }
}

fn call_words(call: &MpiCall, called: Option<&str>) -> String {
    let name = called.unwrap_or(call.function.function().name);
    match &call.site {
        Some(site) => format!("{name} at {}", site.text),
        None => format!("{name}, called from a place that is not known"),
    }
}

fn inside(call: Option<&MpiCall>) -> String {
    call.map(|call| format!(", in {}", call_words(call, None))).unwrap_or_default()
}

fn at(place: Option<&Arc<CallSite>>) -> String {
    place.map(|place| format!(", at {}", place.text)).unwrap_or_default()
}
