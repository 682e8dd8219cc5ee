//! The last calls of a rank: their arguments by the roles that the function table gives them.

use std::collections::HashMap;

use mpiprobe_common::{
    Layout, RecentCall,
    layout::{Constants, capability},
};
use mpiprobe_functions::{Argument, Function, Role};
use mpiprobe_layout::predefined;
use mpiprobe_observe::{CommunicatorSnapshot, ProcessSnapshot, RecentSnapshot};

use super::{names, open_call::communicator_argument};
use crate::{ArgumentValue, NamedArgument, RecentCallInfo, RecentCalls};

/// Those of a process; `name_site` gives the place in the source of a return address.
pub(super) fn recent_calls(
    process: &ProcessSnapshot,
    recent: &RecentSnapshot,
    now_ns: u64,
    name_site: &mut dyn FnMut(u64) -> Option<String>,
) -> RecentCalls {
    let calls = recent.calls.iter().filter_map(|call| {
        let function = names::function(call.function);
        Some(RecentCallInfo {
            number: call.number()?,
            function: names::name(call.function),
            tid: call.tid,
            entered_ago_ns: now_ns.saturating_sub(call.started_ns),
            ns: call.ns,
            site: name_site(call.call_site),
            arguments: function.map(|function| arguments(function, call, recent, process)).unwrap_or_default(),
            error: function.and_then(|function| error(function, call.result)),
        })
    });
    RecentCalls { calls: calls.collect(), why_not: recent.why_not.clone() }
}

fn arguments(
    function: &'static Function,
    call: &RecentCall,
    recent: &RecentSnapshot,
    process: &ProcessSnapshot,
) -> Vec<NamedArgument> {
    let reader = Reader { call, layout: &recent.layout, names: &recent.names, communicators: &process.communicators };
    let words = call.arguments();
    let value = |index: usize, argument: &Argument| {
        words.get(index).map_or(ArgumentValue::Unknown, |&word| reader.value(argument, word))
    };
    let named = |(index, argument): (usize, &Argument)| NamedArgument {
        name: argument.name.into(),
        value: value(index, argument),
    };
    function.arguments.iter().enumerate().map(named).collect()
}

/// What gives the arguments of a call their meaning.
struct Reader<'a> {
    call: &'a RecentCall,
    layout: &'a Layout,
    /// Of predefined objects whose handles do not tell.
    names: &'a HashMap<u64, &'static str>,
    communicators: &'a [CommunicatorSnapshot],
}

impl Reader<'_> {
    fn value(&self, argument: &Argument, word: u64) -> ArgumentValue {
        if argument.is_pointer() {
            return self.address(argument, word);
        }
        match argument.role {
            Role::Communicator => self.communicator(word),
            Role::Datatype
            | Role::Request
            | Role::Window
            | Role::File
            | Role::Message
            | Role::Op
            | Role::Info
            | Role::Group
            | Role::Errhandler
            | Role::Session => self.handle(argument.role, word),
            _ => self.integer(argument, word),
        }
    }

    fn address(&self, argument: &Argument, word: u64) -> ArgumentValue {
        let name = self.constants().and_then(|constants| match argument.role {
            Role::Buffer if word == constants.in_place => Some("MPI_IN_PLACE"),
            Role::Status if word == constants.status_ignore || word == constants.statuses_ignore => {
                Some(if argument.is_array() { "MPI_STATUSES_IGNORE" } else { "MPI_STATUS_IGNORE" })
            }
            _ => None,
        });
        name.map_or(ArgumentValue::Address(word), constant)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the upper half of the register means nothing")]
    #[expect(clippy::cast_possible_wrap, reason = "words of registers have no sign of their own")]
    fn integer(&self, argument: &Argument, word: u64) -> ArgumentValue {
        if argument.wide {
            return ArgumentValue::Integer(word as i64);
        }
        let int = word as i32;
        let name = self.constants().and_then(|constants| match argument.role {
            Role::Source | Role::Destination | Role::Target | Role::Root | Role::Rank => rank(constants, argument, int),
            Role::Tag if int == constants.any_tag => Some("MPI_ANY_TAG"),
            Role::Lock if int == constants.lock_exclusive => Some("MPI_LOCK_EXCLUSIVE"),
            Role::Lock if int == constants.lock_shared => Some("MPI_LOCK_SHARED"),
            _ => None,
        });
        name.map_or(ArgumentValue::Integer(int.into()), constant)
    }

    fn handle(&self, role: Role, word: u64) -> ArgumentValue {
        let Some(constants) = self.constants() else { return ArgumentValue::Handle(word) };
        let handle = self.layout.handle(word);
        let null = match role {
            Role::Datatype => Some((constants.datatype_null, "MPI_DATATYPE_NULL")),
            Role::Request => Some((constants.request_null, "MPI_REQUEST_NULL")),
            Role::Window => Some((constants.win_null, "MPI_WIN_NULL")),
            Role::File => Some((constants.file_null, "MPI_FILE_NULL")),
            Role::Message => Some((constants.message_null, "MPI_MESSAGE_NULL")),
            _ => None,
        };
        let null = null.filter(|&(null, _)| null == handle && null != 0).map(|(_, name)| name);
        let name = null.or_else(|| self.names.get(&handle).copied()).or_else(|| predefined(self.layout, handle));
        name.map_or(ArgumentValue::Handle(handle), constant)
    }

    fn communicator(&self, word: u64) -> ArgumentValue {
        let Some(constants) = self.constants() else { return ArgumentValue::Handle(word) };
        let handle = self.layout.handle(word);
        if handle == constants.comm_null {
            return constant("MPI_COMM_NULL");
        }
        // Handles are given away again: the communicator is the one that had it then.
        let returned_ns = self.call.started_ns.saturating_add(self.call.ns);
        let was_it = |known: &&CommunicatorSnapshot| {
            let facts = &known.facts;
            facts.key.handle == handle
                && facts.first_ns <= returned_ns
                && (facts.freed_ns == 0 || facts.freed_ns >= self.call.started_ns)
        };
        let known = self.communicators.iter().rev().find(was_it);
        ArgumentValue::Communicator(communicator_argument(handle, constants, known))
    }

    /// The special values of the process's library, if they are known.
    fn constants(&self) -> Option<&Constants> {
        self.layout.knows(capability::CONSTANTS).then_some(&self.layout.constants)
    }
}

fn constant(name: &'static str) -> ArgumentValue {
    ArgumentValue::Constant(name.into())
}

fn rank(constants: &Constants, argument: &Argument, rank: i32) -> Option<&'static str> {
    // Libraries give several of these the same number: it depends on who asks.
    match argument.role {
        Role::Source if rank == constants.any_source => Some("MPI_ANY_SOURCE"),
        Role::Root if rank == constants.root => Some("MPI_ROOT"),
        _ if rank == constants.proc_null => Some("MPI_PROC_NULL"),
        _ => None,
    }
}

/// Of a function that returns an error code, if it is one.
#[expect(clippy::cast_possible_truncation, reason = "error codes are of 32 bits; the upper half means nothing")]
fn error(function: &Function, result: u64) -> Option<i32> {
    let name = function.name;
    let returns_something_else = matches!(name, "MPI_Wtime" | "MPI_Wtick" | "MPI_Aint_add" | "MPI_Aint_diff")
        || (!name.starts_with("MPI_Status_")
            && ["_c2f", "_f2c", "_toint", "_fromint"].iter().any(|end| name.ends_with(end)));
    let code = result as i32;
    (!returns_something_else && code != 0).then_some(code)
}

#[cfg(test)]
#[path = "recent_tests.rs"]
mod tests;
