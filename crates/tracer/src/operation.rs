//! What a call, or a request, is about: from the words of lines to operations.

use std::sync::LazyLock;

use mpiprobe_common::{
    Amount, Descriptor,
    descriptor::{NONE, amount, flags},
    flow::peer,
    layout::Constants,
    request::certainty,
    trace::{CallRecord, ChangeRecord, NO_TAG, root},
};
use mpiprobe_functions::{FunctionId, Group, Role};
use mpiprobe_trace::{Bytes, CommunicatorId, Lock, Object, Operation, Partner, Root, Target, Transfer};

/// By function id.
static DESCRIPTORS: LazyLock<Vec<Descriptor>> =
    LazyLock::new(|| FunctionId::all().map(|id| id.function().descriptor()).collect());

static NOTHING: Descriptor = Descriptor::EMPTY;

pub(crate) fn descriptor(function: FunctionId) -> &'static Descriptor {
    DESCRIPTORS.get(function.index()).unwrap_or(&NOTHING)
}

/// Whether a request that the function gives back is started by others.
pub(crate) fn is_persistent(function: FunctionId) -> bool {
    descriptor(function).flags & flags::PERSISTENT != 0
}

/// What is known of both directions, and of whom they are with.
struct Ends {
    destination: i32,
    source: i32,
    send_tag: i32,
    receive_tag: i32,
    sent: Amount,
    received: Amount,
    any_source: bool,
    any_tag: bool,
}

/// That of a call.
pub(crate) fn of_call(
    function: FunctionId,
    record: &CallRecord,
    communicator: Option<CommunicatorId>,
    object: Option<Object>,
    lock: Option<Lock>,
) -> Operation {
    let descriptor = descriptor(function);
    let root = (descriptor.root != NONE).then(|| root_of(record.destination)).flatten();
    let ends = Ends {
        destination: if descriptor.root == NONE { record.destination } else { peer::NONE },
        source: record.source,
        send_tag: record.send_tag,
        receive_tag: record.receive_tag,
        sent: record.sent,
        received: record.received,
        any_source: record.any_source,
        any_tag: record.any_tag,
    };
    let (send, receive) = (send(descriptor, &ends), receive(function, &ends));
    let target = (send.is_none() && receive.is_none()).then(|| target(function, &ends, lock)).flatten();
    Operation { function, communicator, object, send, receive, root, target }
}

/// Whose part of a window a call is about that moves nothing.
fn target(function: FunctionId, ends: &Ends, lock: Option<Lock>) -> Option<Target> {
    function.function().position(Role::Target)?;
    Some(Target { partner: partner(ends.destination), lock })
}

/// Whether calls of a function say how they lock a window.
pub(crate) fn locks(function: FunctionId) -> bool {
    function.function().position(Role::Lock).is_some()
}

/// How a call locks a window.
pub(crate) fn lock_of(record: &CallRecord, constants: &Constants) -> Option<Lock> {
    match record.send_tag {
        given if given == constants.lock_exclusive => Some(Lock::Exclusive),
        given if given == constants.lock_shared => Some(Lock::Shared),
        _ => None,
    }
}

/// That of a request, as a call knows it that has done something to it; `posted`, as the one does that has posted it.
pub(crate) fn of_request(
    function: FunctionId,
    record: &ChangeRecord,
    communicator: Option<CommunicatorId>,
    posted: Option<&Operation>,
) -> Operation {
    let descriptor = descriptor(function);
    let ends = Ends {
        destination: record.destination,
        source: record.source,
        send_tag: record.tag,
        receive_tag: record.tag,
        sent: record.sent,
        received: record.received,
        any_source: record.any_source,
        any_tag: record.any_tag,
    };
    let (send, receive) = (send(descriptor, &ends), receive(function, &ends));
    match posted {
        // It knows better what leaves; what has arrived is known now.
        Some(posted) => Operation { receive: receive.or(posted.receive), ..*posted },
        None => Operation { communicator, send, receive, ..Operation::new(function) },
    }
}

fn root_of(given: i32) -> Option<Root> {
    match given {
        root::OWN => Some(Root::Own),
        peer::NULL => Some(Root::Null),
        rank => u32::try_from(rank).ok().map(Root::Rank),
    }
}

fn send(descriptor: &Descriptor, ends: &Ends) -> Option<Transfer> {
    let bytes = bytes(ends.sent);
    if ends.destination == peer::NONE {
        return (ends.sent.certainty != certainty::NOTHING).then(|| Transfer::of_group(bytes));
    }
    if descriptor.send_amount & amount::KIND == amount::NOTHING {
        return None;
    }
    Some(Transfer {
        partner: partner(ends.destination),
        tag: tag(ends.send_tag),
        bytes,
        any_source: false,
        any_tag: false,
    })
}

fn receive(function: FunctionId, ends: &Ends) -> Option<Transfer> {
    let descriptor = descriptor(function);
    let bytes = bytes(ends.received);
    if ends.source != peer::NONE {
        let (any_source, any_tag) = (ends.any_source, ends.any_tag);
        return Some(Transfer {
            partner: partner(ends.source),
            tag: tag(ends.receive_tag),
            bytes,
            any_source,
            any_tag,
        });
    }
    if descriptor.receive_amount & amount::KIND == amount::NOTHING {
        return None;
    }
    // A one-sided call gets its answer from where it sends to.
    if function.function().group == Group::OneSided && ends.destination != peer::NONE {
        return Some(Transfer { partner: partner(ends.destination), ..Transfer::of_group(bytes) });
    }
    (ends.received.certainty != certainty::NOTHING).then(|| Transfer::of_group(bytes))
}

fn partner(rank: i32) -> Partner {
    match rank {
        peer::NULL => Partner::Null,
        peer::ANY => Partner::Any,
        peer::NONE => Partner::Group,
        rank => u32::try_from(rank).map_or(Partner::Unknown, Partner::Rank),
    }
}

fn tag(tag: i32) -> Option<i32> {
    Some(tag).filter(|&tag| tag != NO_TAG)
}

fn bytes(amount: Amount) -> Bytes {
    match amount.certainty {
        certainty::NOTHING => Bytes::Known(0),
        certainty::KNOWN => Bytes::Known(amount.bytes),
        certainty::AT_MOST => Bytes::AtMost(amount.bytes),
        _ => Bytes::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use mpiprobe_common::layout::MPICH;
    use mpiprobe_functions::by_name;

    use super::*;

    fn of(name: &str, record: &CallRecord) -> Operation {
        of_call(by_name(name).unwrap(), record, None, None, None)
    }

    const EIGHT: Amount = Amount::known(8);

    #[test]
    fn messages_go_to_and_come_from_somebody() {
        let send = of("MPI_Send", &CallRecord { destination: 3, send_tag: 7, sent: EIGHT, ..CallRecord::NONE });
        assert_eq!((send.send, send.receive, send.root), (Some(Transfer::with(3, 7, 8)), None, None));
        let nobody = of("MPI_Send", &CallRecord { destination: peer::NULL, send_tag: 7, ..CallRecord::NONE });
        let none = Transfer { partner: Partner::Null, ..Transfer::with(0, 7, 0) };
        assert_eq!(nobody.send, Some(none));
        let anybody = CallRecord {
            source: peer::ANY,
            any_source: true,
            any_tag: true,
            received: Amount { bytes: 99, certainty: certainty::AT_MOST },
            ..CallRecord::NONE
        };
        let receive = of("MPI_Irecv", &anybody);
        let expected =
            Transfer { partner: Partner::Any, tag: None, bytes: Bytes::AtMost(99), any_source: true, any_tag: true };
        assert_eq!((receive.send, receive.receive), (None, Some(expected)));
    }

    #[test]
    fn one_sided_calls_have_one_partner() {
        let access = CallRecord { destination: 2, sent: EIGHT, received: EIGHT, ..CallRecord::NONE };
        let with = Transfer { tag: None, ..Transfer::with(2, 0, 8) };
        let put = of("MPI_Put", &CallRecord { received: Amount::NOTHING, ..access });
        assert_eq!((put.send, put.receive), (Some(with), None));
        let get = of("MPI_Get", &CallRecord { sent: Amount::NOTHING, ..access });
        assert_eq!((get.send, get.receive), (None, Some(with)));
        let both = of("MPI_Get_accumulate", &access);
        assert_eq!((both.send, both.receive), (Some(with), Some(with)));
    }

    #[test]
    fn locks_are_of_one_part_of_a_window() {
        let given = |send_tag| CallRecord { destination: 2, send_tag, ..CallRecord::NONE };
        let how = [234, 235, 7].map(|tag| lock_of(&given(tag), &MPICH.constants));
        assert_eq!(how, [Some(Lock::Exclusive), Some(Lock::Shared), None]);
        let lock = of_call(by_name("MPI_Win_lock").unwrap(), &given(234), None, None, Some(Lock::Exclusive));
        let target = Some(Target { partner: Partner::Rank(2), lock: Some(Lock::Exclusive) });
        assert_eq!((lock.send, lock.receive, lock.target), (None, None, target));
        let unlock = of("MPI_Win_unlock", &CallRecord { destination: peer::NULL, ..CallRecord::NONE });
        assert_eq!(unlock.target, Some(Target { partner: Partner::Null, lock: None }));
        assert_eq!(of("MPI_Win_flush_all", &CallRecord::NONE).target, None);
    }

    #[test]
    fn collectives_are_with_all() {
        let all = Some(Transfer::of_group(Bytes::Known(8)));
        let reduce = of("MPI_Allreduce", &CallRecord { sent: EIGHT, received: EIGHT, ..CallRecord::NONE });
        assert_eq!((reduce.send, reduce.receive, reduce.root), (all, all, None));
        let leaf = of("MPI_Bcast", &CallRecord { destination: 5, received: EIGHT, ..CallRecord::NONE });
        assert_eq!((leaf.send, leaf.receive, leaf.root), (None, all, Some(Root::Rank(5))));
        for (given, expected) in [(root::OWN, Some(Root::Own)), (peer::NULL, Some(Root::Null)), (peer::UNKNOWN, None)] {
            assert_eq!(of("MPI_Bcast", &CallRecord { destination: given, ..CallRecord::NONE }).root, expected);
        }
        let barrier = of("MPI_Barrier", &CallRecord::NONE);
        assert_eq!((barrier.send, barrier.receive), (None, None));
    }
}
