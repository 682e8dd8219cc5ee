//! The arguments of an open call, by the roles that the function table gives them.

use mpiprobe_common::{
    Layout, ThreadState,
    descriptor::{NONE, flags},
    layout::{Constants, Size, builtin_size, capability},
};
use mpiprobe_functions::{Argument, Function, Group, Role};
use mpiprobe_layout::predefined;
use mpiprobe_observe::{
    ArgumentWords, CommunicatorSnapshot, DatatypeSnapshot, GroupSnapshot, ProcessSnapshot, WindowSnapshot,
};

use super::names;
use crate::{CallArguments, CommunicatorArgument, DatatypeArgument, Leaders, Partner, Peer, WindowArgument};

/// A call's arguments as words, and what gives them meaning.
pub(super) struct Reader<'a> {
    function: &'static Function,
    /// `None`: not known.
    words: Vec<Option<u64>>,
    layout: &'a Layout,
    communicators: &'a [CommunicatorSnapshot],
    datatypes: &'a [DatatypeSnapshot],
    windows: &'a [WindowSnapshot],
    groups: &'a [GroupSnapshot],
}

/// The handle of the datatype that a thread's open call was given, if it has one and the library's special values are known.
pub fn datatype_of_open_call(state: &ThreadState, process: &ProcessSnapshot) -> Option<u64> {
    Reader::new(state.open_function()?, &ArgumentWords::of(state), process)?.datatype_handle()
}

/// What a call was given of which not all words are known; `None` if the special values of the process's library are not known.
pub fn arguments_of_call(
    function: &'static Function,
    words: Vec<Option<u64>>,
    process: &ProcessSnapshot,
) -> Option<CallArguments> {
    Reader::of(function, words, process).map(|reader| reader.read())
}

/// The handle of the datatype that such a call was given.
pub fn datatype_of_call(
    function: &'static Function,
    words: Vec<Option<u64>>,
    process: &ProcessSnapshot,
) -> Option<u64> {
    Reader::of(function, words, process)?.datatype_handle()
}

impl<'a> Reader<'a> {
    /// `None` if the special values of the process's library are not known.
    pub(super) fn new(function: u32, words: &ArgumentWords, process: &'a ProcessSnapshot) -> Option<Self> {
        let words = words.known().iter().copied().map(Some).collect();
        Self::of(names::function(function)?, words, process)
    }

    fn of(function: &'static Function, words: Vec<Option<u64>>, process: &'a ProcessSnapshot) -> Option<Self> {
        let layout = &process.layout;
        layout.knows(capability::CONSTANTS).then_some(Self {
            function,
            words,
            layout,
            communicators: &process.communicators,
            datatypes: &process.datatypes,
            windows: &process.windows,
            groups: &process.groups,
        })
    }

    pub(super) fn read(&self) -> CallArguments {
        let at = self.function.descriptor();
        let communicator = self.communicator(at.communicator);
        let sends = at.send_count != NONE;
        let count =
            if at.flags & if sends { flags::SEND_COUNTS_ARE_ARRAY } else { flags::RECEIVE_COUNTS_ARE_ARRAY } == 0 {
                self.count(if sends { at.send_count } else { at.receive_count })
            } else {
                None
            };
        let datatype = self.datatype();
        let size = datatype.as_ref().and_then(|datatype| datatype.size);
        let receive_tag = self.int(at.receive_tag);
        let any_tag = receive_tag == Some(self.layout.constants.any_tag);
        let peer = |index| self.peer(index, communicator.as_ref());
        // Who locks a window says there how.
        let has_tag = self.function.position(Role::Lock).is_none();
        CallArguments {
            destination: peer(at.destination),
            source: peer(at.source),
            root: peer(at.root),
            send_tag: self.int(at.send_tag).filter(|_| has_tag),
            receive_tag: receive_tag.filter(|_| !any_tag),
            any_tag,
            count,
            datatype,
            bytes: count.zip(size).map(|(count, size)| count.saturating_mul(size)),
            requests: self.requests(at.request, at.request_count),
            other_requests: None,
            window: self.window(at.window),
            group: self.group(),
            leaders: self.leaders(),
            error_code: self.error_code(),
            communicator,
        }
    }

    fn word(&self, index: u8) -> Option<u64> {
        self.words.get(usize::from(index)).copied().flatten()
    }

    fn argument(&self, index: u8) -> Option<&Argument> {
        self.function.arguments.get(usize::from(index))
    }

    /// Of an `int`, only the low half of a register counts.
    #[expect(clippy::cast_possible_truncation, reason = "the upper half of the register means nothing")]
    fn int(&self, index: u8) -> Option<i32> {
        Some(self.word(index)? as i32)
    }

    fn count(&self, index: u8) -> Option<u64> {
        if self.argument(index)?.wide { self.word(index) } else { u64::try_from(self.int(index)?).ok() }
    }

    /// Of what it sends, otherwise of what it receives.
    fn datatype_handle(&self) -> Option<u64> {
        let at = self.function.descriptor();
        let word = self.word(if at.send_count == NONE { at.receive_datatype } else { at.send_datatype })?;
        let handle = self.layout.handle(word);
        let is_one = at.flags & flags::DATATYPES_ARE_ARRAY == 0 && handle != self.layout.constants.datatype_null;
        is_one.then_some(handle)
    }

    fn datatype(&self) -> Option<DatatypeArgument> {
        let handle = self.datatype_handle()?;
        let read = self.datatypes.iter().find(|known| known.handle == handle);
        // What was read may be what the program has renamed it to.
        let name = read.and_then(|known| known.name.clone());
        let size = match builtin_size(self.layout, handle) {
            Size::Known(size) => Some(size),
            Size::Unknown => read.and_then(|known| known.size),
        };
        let name = name.or_else(|| predefined(self.layout, handle).map(str::to_owned));
        Some(DatatypeArgument { handle, name, size })
    }

    /// Only what completes requests waits for them.
    fn requests(&self, request: u8, number: u8) -> Option<u64> {
        if self.function.group != Group::Completion || request == NONE {
            return None;
        }
        if number == NONE { Some(1) } else { self.count(number) }
    }

    fn peer(&self, index: u8, communicator: Option<&CommunicatorArgument>) -> Option<Peer> {
        let rank = self.int(index)?;
        let constants = &self.layout.constants;
        let (partner, rank) = match u32::try_from(rank) {
            Ok(rank) => (Partner::Rank, Some(rank)),
            Err(_) if rank == constants.any_source => (Partner::AnySource, None),
            Err(_) if rank == constants.proc_null => (Partner::ProcNull, None),
            Err(_) if rank == constants.root => (Partner::Nobody, None),
            Err(_) => (Partner::Unknown, None),
        };
        let is_world = communicator.is_some_and(|communicator| communicator.handle == constants.comm_world);
        Some(Peer { partner, rank, world_rank: rank.filter(|_| is_world) })
    }

    fn error_code(&self) -> Option<i32> {
        const ABORT: (&str, u8) = ("MPI_Abort", 1);
        (self.function.name == ABORT.0).then(|| self.int(ABORT.1)).flatten()
    }

    fn window(&self, index: u8) -> Option<WindowArgument> {
        let handle = self.layout.handle(self.word(index)?);
        let Some(known) = self.windows.iter().find(|known| known.handle == handle) else {
            return Some(WindowArgument { handle, name: None, context: None, size: None, members: None });
        };
        let is_all = (0..).zip(known.members.iter()).all(|(rank, member)| *member == Some(rank));
        let is_world = is_all && self.world_size() == u32::try_from(known.members.len()).ok();
        Some(WindowArgument {
            handle,
            name: known.name.clone(),
            context: known.context,
            size: u32::try_from(known.members.len()).ok(),
            members: (!is_world).then(|| known.members.to_vec()),
        })
    }

    fn group(&self) -> Option<Vec<Option<u32>>> {
        let place = self.function.position(Role::Group)?;
        let handle = self.layout.handle(self.words.get(place).copied().flatten()?);
        let known = self.groups.iter().find(|known| known.handle == handle)?;
        Some(known.members.to_vec())
    }

    fn leaders(&self) -> Option<Leaders> {
        let place = |name: &str| {
            let place = self.function.arguments.iter().position(|argument| argument.name == name);
            place.and_then(|place| u8::try_from(place).ok())
        };
        let local_leader = place("local_leader")?;
        let handle = |name: &str| Some(self.layout.handle(self.word(place(name)?)?));
        let local = self.known(handle("local_comm")?)?;
        let is_leader = self.int(local_leader).is_some_and(|leader| u32::try_from(leader) == Ok(local.facts.rank));
        let remote = || world_rank(self.known(handle("peer_comm")?)?, self.int(place("remote_leader")?)?);
        Some(Leaders {
            local: self.int(local_leader).and_then(|leader| world_rank(local, leader)),
            remote: if is_leader { remote() } else { None },
        })
    }

    fn known(&self, handle: u64) -> Option<&'a CommunicatorSnapshot> {
        self.communicators.iter().find(|known| known.facts.key.handle == handle && known.facts.freed_ns == 0)
    }

    fn world_size(&self) -> Option<u32> {
        let world = self.layout.constants.comm_world;
        let known = self.communicators.iter().find(|known| known.facts.key.handle == world)?;
        Some(known.facts.size)
    }

    fn communicator(&self, index: u8) -> Option<CommunicatorArgument> {
        let handle = self.layout.handle(self.word(index)?);
        Some(communicator_argument(handle, &self.layout.constants, self.known(handle)))
    }
}

/// Rank in `MPI_COMM_WORLD` of who has a rank in a communicator; between two groups, in the other one.
fn world_rank(known: &CommunicatorSnapshot, rank: i32) -> Option<u32> {
    let members = known.members.as_ref()?;
    let group = if known.facts.is_inter == 0 { &members.own } else { &members.remote };
    group.get(usize::try_from(rank).ok()?).copied().flatten()
}

/// A communicator by its handle, and what else is known of it.
pub(super) fn communicator_argument(
    handle: u64,
    constants: &Constants,
    known: Option<&CommunicatorSnapshot>,
) -> CommunicatorArgument {
    let name = if handle == constants.comm_world {
        Some("MPI_COMM_WORLD")
    } else if handle == constants.comm_self {
        Some("MPI_COMM_SELF")
    } else {
        None
    };
    CommunicatorArgument {
        handle,
        number: known.map(|known| known.number),
        name: name.map(str::to_owned).or_else(|| known.map(|known| known.name.clone()).filter(|name| !name.is_empty())),
        size: known.map(|known| known.facts.size).filter(|&size| size > 0),
    }
}
