//! What is counted, and what is probed: what it cannot be understood without, too.

use mpiprobe_common::descriptor::{Descriptor, NONE, completion, flags, frees};
use mpiprobe_functions::{FunctionId, FunctionSet, Group};

/// The functions whose calls are counted: those that the user has chosen, and what programs mark phases by.
pub(super) fn counted(chosen: FunctionSet, ignore_pcontrol: bool) -> FunctionSet {
    let mut functions = chosen;
    if !ignore_pcontrol && let Some(control) = mpiprobe_functions::by_name("MPI_Pcontrol") {
        functions.insert(control);
    }
    functions
}

/// Whether functions that call others inside MPI are not all among these: access to files, in implementations that are built on MPI.
pub(super) fn leaves_outer(chosen: FunctionSet) -> bool {
    FunctionId::all().any(|id| id.function().group == Group::Io && id.function().default && !chosen.contains(id))
}

/// Whether there are local questions among these functions, which language layers ask on their own account, too.
pub(super) fn has_queries(chosen: FunctionSet) -> bool {
    chosen.iter().any(|id| id.function().group == Group::Query)
}

/// These, and those of which nothing is counted: that traffic needs; and by which others begin, if they have to be looked at (`looks_at_others`).
pub(super) fn probed(chosen: FunctionSet, traffic: bool, ignore_pcontrol: bool, looks_at_others: bool) -> FunctionSet {
    let mut functions = counted(chosen, ignore_pcontrol);
    if looks_at_others {
        FunctionId::all().filter(|id| id.is_beginning()).for_each(|id| functions.insert(id));
    }
    if traffic { with_what_handles_mean(functions) } else { functions }
}

/// Together with what makes, names and frees communicators, so that it is known which one a handle means; and with what completes, starts and
/// gives up requests, where some are made: else they would be under way for ever, and what they have received would be nothing. What asks again
/// and again is left to whoever chooses it: its cost would be in nobody's account.
fn with_what_handles_mean(mut functions: FunctionSet) -> FunctionSet {
    let makes = makes_requests(functions);
    for id in FunctionId::all() {
        let descriptor = id.function().descriptor();
        if descriptor.concerns_communicators() || (makes && descriptor.settles_requests() && !is_polling(&descriptor)) {
            functions.insert(id);
        }
    }
    functions
}

/// Whether requests are made by functions that were chosen, and may be completed by others that are not looked at.
pub(super) fn leaves_requests(chosen: FunctionSet) -> bool {
    let settles = |id: FunctionId| {
        let descriptor = id.function().descriptor();
        descriptor.settles_requests() && is_polling(&descriptor)
    };
    makes_requests(chosen) && FunctionId::all().any(|id| settles(id) && !chosen.contains(id))
}

fn makes_requests(functions: FunctionSet) -> bool {
    functions.iter().any(|id| id.function().descriptor().begins_operation())
}

fn is_polling(descriptor: &Descriptor) -> bool {
    descriptor.flags & flags::POLLING != 0
}

/// The links of their own that functions have which may be sampled: they are probed together.
pub(super) fn unit_of(id: FunctionId) -> Option<u16> {
    let (function, descriptor) = (id.function(), id.function().descriptor());
    let may_be_reduced = matches!(
        function.group,
        Group::PointToPoint
            | Group::Collective
            | Group::Completion
            | Group::Synchronisation
            | Group::OneSided
            | Group::Query
    );
    let keeps_handles = descriptor.frees == frees::NOTHING
        && !descriptor.concerns_communicators()
        && descriptor.new_scope == NONE
        && descriptor.message == NONE
        && !matches!(descriptor.completion, completion::FREES | completion::BEGINS | completion::ENDS);
    let number =
        if is_polling(&descriptor) { u16::from(u8::MAX) + 1 + id.number() } else { u16::from(descriptor.group) };
    (may_be_reduced && keeps_handles).then_some(number)
}

#[cfg(test)]
mod tests {
    use mpiprobe_functions::by_name;

    use super::*;

    #[test]
    fn requests_that_are_made_are_seen_to_be_complete() {
        let probed = |names: &str, traffic| {
            let functions = probed(mpiprobe_functions::select(names).unwrap(), traffic, true, false);
            functions.iter().map(|id| id.function().name).collect::<Vec<_>>()
        };
        let of_messages = probed("Irecv", true);
        for name in ["MPI_Irecv", "MPI_Waitall", "MPI_Request_free", "MPI_Startall", "MPI_Comm_free"] {
            assert!(of_messages.contains(&name), "{name}");
        }
        assert!(!of_messages.contains(&"MPI_Test"), "nobody has asked for what that costs");
        assert!(!probed("Send,Recv", true).contains(&"MPI_Wait"));
        assert_eq!(probed("Irecv", false), ["MPI_Irecv", "MPI_Irecv_c"]);
        let leaves = |names: &str| leaves_requests(mpiprobe_functions::select(names).unwrap());
        assert_eq!(["Irecv", "default,-Test", "default", "Send,Recv"].map(leaves), [true, true, false, false]);
    }

    #[test]
    fn what_makes_handles_mean_something_is_never_reduced() {
        for name in [
            "MPI_Comm_dup",
            "MPI_Comm_free",
            "MPI_Type_free",
            "MPI_Win_create",
            "MPI_Win_free",
            "MPI_File_open",
            "MPI_Request_free",
            "MPI_Init",
            "MPI_Finalize",
            "MPI_Pcontrol",
            "MPI_Mprobe",
            "MPI_Improbe",
        ] {
            assert_eq!(unit_of(by_name(name).unwrap()), None, "{name}");
        }
        let unit = |name| unit_of(by_name(name).unwrap()).unwrap();
        assert_eq!(unit("MPI_Send"), unit("MPI_Recv"));
        assert_ne!(unit("MPI_Iprobe"), unit("MPI_Send"));
        assert_ne!(unit("MPI_Iprobe"), unit("MPI_Test"));
    }
}
