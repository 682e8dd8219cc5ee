//! What a thread does, in names.

use std::sync::Arc;

use mpiprobe_functions::FunctionId;
use mpiprobe_model::CallSite;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use crate::{
    arguments::Word,
    copy::{Certainty, Progress, State, Way},
    fingerprint::Fingerprint,
    ranks::Member,
    system_calls::system_call_of_name,
    tree::Label,
    unwind::End,
    within::WaitsWithin,
};

/// One thread at one moment.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ThreadStack {
    pub member: Member,
    pub pid: u32,
    pub tid: u32,
    pub state: State,
    pub way: Way,
    pub certainty: Certainty,
    /// The MPI call that it is in; the outermost, if one has made others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<MpiCall>,
    /// The system call that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_call: Option<SystemCallSeen>,
    /// Of one outside of MPI that only its own process can let go on: what it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_within: Option<WaitsWithin>,
    /// From the outside in, without what is before `main`. Of what is inside an MPI call only that call.
    pub frames: Vec<Label>,
    /// The place in the program's own code that it is at, or has called libraries from, as far as that can be told.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "site")]
    pub place: Option<Arc<CallSite>>,
    /// Why there are no frames outside of the outermost one.
    pub end: End,
    /// Parts of the stack were read after the registers.
    pub read_later: bool,
    /// As of this moment.
    #[serde(skip)]
    pub progress: Progress,
    /// By the monotonic clock, ns.
    #[serde(skip)]
    pub at_ns: u64,
    /// What the program's own functions have on their stack and in registers that are theirs: the same at two looks if it has not
    /// gone on in between.
    #[serde(skip)]
    pub fingerprint: Option<Fingerprint>,
    /// Whether the MPI call has returned that it was in when it was first seen in one; `None`: nobody knows.
    #[serde(skip)]
    pub has_returned: Option<bool>,
    /// It is in a loop of the program that asks MPI again and again, which it was first seen in a call in, and has not left since; `None`: a
    /// return probe hides whether it is.
    #[serde(skip)]
    pub polls: Option<bool>,
    /// Its call is one on a file, and waits for messages of others.
    #[serde(skip)]
    pub exchanges: bool,
}

/// An MPI call that a thread is in.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MpiCall {
    #[serde(serialize_with = "name", deserialize_with = "function")]
    #[schemars(with = "String")]
    pub function: FunctionId,
    /// Where the program has made it; `None` where the stack could not be followed so far.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "site", default)]
    pub site: Option<Arc<CallSite>>,
    /// Whether it is a Python interpreter that has made it.
    pub from_python: bool,
    /// What it was given, by argument, where known; empty if that was not looked for.
    #[serde(skip)]
    pub words: Vec<Option<Word>>,
}

/// Whether a thread is in an MPI call, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallNow {
    pub pid: u32,
    pub tid: u32,
    /// By the monotonic clock, ns.
    pub at_ns: u64,
    pub found: WhereNow,
}

/// Where a call returns to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Returns {
    pub address: u64,
    /// Where on the stack that address is.
    pub slot: u64,
}

/// Where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhereNow {
    InCall {
        function: FunctionId,
        /// Return address into the program; `None`: not known.
        call_site: Option<u64>,
        /// What it was given, by argument, where known.
        words: Vec<Option<Word>>,
        /// Where MPI's function returns to, which may be a layer between the program and MPI; `None`: not known for certain.
        returns: Option<Returns>,
    },
    /// In no MPI call.
    Outside,
    /// It ran all the while, or its stack could not be followed to its beginning.
    NotKnown,
}

/// A system call that a thread is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SystemCallSeen {
    pub number: u64,
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "system_call")]
    pub name: Option<Name>,
    /// What it waits for, if that is said by its first argument.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub descriptor: Option<u64>,
    /// The path, or the kernel's name for something that is no file: `socket:[4711]`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<String>,
}

/// As an alias it is not taken for text borrowed from what is read.
type Name = &'static str;

#[expect(clippy::ref_option, reason = "as serde calls it")]
pub(crate) fn site<S: serde::Serializer>(site: &Option<Arc<CallSite>>, to: S) -> Result<S::Ok, S::Error> {
    site.as_deref().serialize(to)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn name<S: serde::Serializer>(function: &FunctionId, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(function.function().name)
}

/// One that this version knows.
fn function<'de, D: Deserializer<'de>>(from: D) -> Result<FunctionId, D::Error> {
    let name = String::deserialize(from)?;
    mpiprobe_functions::by_name(&name).ok_or_else(|| D::Error::custom(format_args!("MPI has no function {name:.40}")))
}

/// A name that is in no table is none.
fn system_call<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Name>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.as_deref().and_then(system_call_of_name))
}
