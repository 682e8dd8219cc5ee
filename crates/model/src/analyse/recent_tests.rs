use mpiprobe_common::{
    Communicator, CommunicatorKey,
    layout::{Interface, MPICH, OPEN_MPI, handle_kind},
    recent::RECENT_ARGUMENTS,
    thread::REGISTER_ARGUMENTS,
};

use super::*;

fn layout(interface: Interface) -> Layout {
    Layout {
        known: capability::CONSTANTS,
        handles: interface.handles,
        constants: interface.constants,
        ..Layout::default()
    }
}

fn call(name: &str, arguments: &[u64]) -> RecentCall {
    let mut words = [0; RECENT_ARGUMENTS];
    words.iter_mut().zip(arguments).for_each(|(to, from)| *to = *from);
    RecentCall {
        state: 8,
        function: mpiprobe_functions::by_name(name).map_or(0, |id| id.number().into()),
        started_ns: 100,
        ns: 10,
        known: RECENT_ARGUMENTS as u64,
        arguments: words,
        ..RecentCall::default()
    }
}

fn process(communicators: Vec<CommunicatorSnapshot>) -> ProcessSnapshot {
    ProcessSnapshot { communicators, ..ProcessSnapshot::empty(1) }
}

fn read_with(call: RecentCall, recent: RecentSnapshot, process: &ProcessSnapshot) -> RecentCallInfo {
    let recent = RecentSnapshot { calls: vec![call], ..recent };
    recent_calls(process, &recent, 1000, &mut |_| None).calls.remove(0)
}

fn read(call: RecentCall, layout: &Layout) -> RecentCallInfo {
    read_with(call, RecentSnapshot { layout: *layout, ..RecentSnapshot::default() }, &process(Vec::new()))
}

fn values(call: &RecentCallInfo) -> Vec<(&str, ArgumentValue)> {
    call.arguments.iter().map(|argument| (argument.name.as_ref(), argument.value.clone())).collect()
}

use ArgumentValue::{Address, Handle, Integer, Unknown};

#[test]
fn arguments_have_their_names_and_special_values_theirs() {
    let world = u64::from(0x4400_0000_u32);
    let garbage = 0xffff_ffff_0000_0000;
    let receive = call("MPI_Recv", &[0x10, garbage | 3, 0x4c00_0405, garbage | 0xffff_fffe, 0xffff_ffff, world, 1]);
    let found = read(receive, &layout(MPICH));
    let (last, first) = found.arguments.split_last().unwrap();
    assert_eq!(
        first
            .iter()
            .filter(|argument| argument.name != "comm")
            .map(|one| (one.name.as_ref(), one.value.clone()))
            .collect::<Vec<_>>(),
        [
            ("buf", Address(0x10)),
            ("count", Integer(3)),
            ("datatype", constant("MPI_INT")),
            ("source", constant("MPI_ANY_SOURCE")),
            ("tag", constant("MPI_ANY_TAG")),
        ]
    );
    assert!(matches!(&first[5].value, ArgumentValue::Communicator(of) if of.name.as_deref() == Some("MPI_COMM_WORLD")));
    assert_eq!((last.name.as_ref(), &last.value), ("status", &constant("MPI_STATUS_IGNORE")));
    assert_eq!((found.number, found.entered_ago_ns, found.ns, found.error), (7, 900, 10, None));
}

#[test]
fn one_number_means_different_things_in_different_places() {
    // -1 is MPI_PROC_NULL and MPI_ANY_TAG of MPICH, a displacement of -1 is just that.
    let minus_one = u64::from(u32::MAX);
    let put = call("MPI_Put", &[0, 1, 0x4c00_0405, minus_one, u64::MAX, 1, 0x4c00_0405, 0x2000_0000]);
    let found = read(put, &layout(MPICH));
    let found = values(&found);
    assert_eq!(found[3], ("target_rank", constant("MPI_PROC_NULL")));
    assert_eq!(found[4], ("target_disp", Integer(-1)));
    assert_eq!(found[7], ("win", constant("MPI_WIN_NULL")));
}

#[test]
fn what_is_not_known_stays_a_number_or_is_unknown() {
    let any = u64::from(u32::MAX);
    let receive = call("MPI_Recv", &[0x10, 1, 0x7f00, any, any, 0x7f10, 0]);
    let nothing = Layout { handles: handle_kind::POINTER, ..Layout::default() };
    let found = read(receive, &nothing);
    let found = values(&found);
    assert_eq!(
        found[2..6],
        [("datatype", Handle(0x7f00)), ("source", Integer(-1)), ("tag", Integer(-1)), ("comm", Handle(0x7f10)),]
    );
    // Arguments on the stack were not read.
    let early = RecentCall { known: REGISTER_ARGUMENTS as u64, ..receive };
    assert_eq!(values(&read(early, &layout(OPEN_MPI)))[6], ("status", Unknown));
}

#[test]
fn handles_that_are_addresses_have_the_names_that_were_read() {
    let names = [(0x7f00, "MPI_DOUBLE")].into();
    let recent = RecentSnapshot { layout: layout(OPEN_MPI), names, ..RecentSnapshot::default() };
    let broadcast = call("MPI_Bcast", &[0, 1, 0x7f00, 0, 0x7f10]);
    let found = read_with(broadcast, recent, &process(Vec::new()));
    let found = values(&found);
    assert_eq!(found[2], ("datatype", constant("MPI_DOUBLE")));
}

#[test]
fn a_handle_is_the_communicator_that_had_it_then() {
    let known = |number, name: &str, first_ns, freed_ns| CommunicatorSnapshot {
        number,
        facts: Communicator {
            key: CommunicatorKey { handle: 0x8400_0000, ..CommunicatorKey::default() },
            first_ns,
            freed_ns,
            ..Communicator::default()
        },
        name: name.into(),
        ..CommunicatorSnapshot::default()
    };
    let process = process(vec![known(1, "before", 1, 50), known(2, "then", 60, 120), known(3, "after", 130, 0)]);
    let recent = RecentSnapshot { layout: layout(MPICH), ..RecentSnapshot::default() };
    let barrier = call("MPI_Barrier", &[0x8400_0000]);
    let found = read_with(barrier, recent, &process);
    assert!(matches!(&found.arguments[0].value, ArgumentValue::Communicator(of) if of.number == Some(2)), "{found:?}");
}

#[test]
fn errors_are_those_of_functions_that_return_them() {
    let failed = |name| read(RecentCall { result: 0xdead_0000_000e, ..call(name, &[]) }, &layout(MPICH)).error;
    assert_eq!(failed("MPI_Send"), Some(14));
    assert_eq!(["MPI_Wtime", "MPI_Aint_add", "MPI_Comm_c2f"].map(failed), [None; 3]);
    assert_eq!(failed("MPI_Status_c2f"), Some(14));
}
