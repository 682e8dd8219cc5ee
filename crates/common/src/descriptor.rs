//! Where a function's arguments stand, as BPF programs and wrapper need it.

use bytemuck::{Pod, Zeroable};

/// Argument positions of one MPI function, 0-based in the order of its C binding; [`NONE`] where it has no such argument.
///
/// "Send" is the side whose data leaves the caller, "receive" the side whose data arrives: the origin of `MPI_Put` is
/// on the send side, that of `MPI_Get` on the receive side. A buffer that is both (`MPI_Sendrecv_replace`) is named on both
/// sides, `MPI_Bcast`'s on the send side only. Reductions share one count and datatype between the sides.
///
/// Communicator, window and file are handles passed by value: a function that makes or frees one has a pointer there,
/// which is left out.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Descriptor {
    /// Which local question the function is: its own id plus one, or that of the function whose large-count variant it is; 0: it is none, or
    /// one that `mpi_f08` does not have any more, which may be answered by the function that has taken its place.
    pub question: u16,
    /// How many arguments the C binding has (0–13).
    pub arguments: u8,
    /// Index into `mpiprobe_functions::Group::ALL`.
    pub group: u8,
    /// [`flags`], ORed.
    pub flags: u8,
    /// [`root_only`], ORed.
    pub root_only: u8,
    pub send_buffer: u8,
    pub send_count: u8,
    pub send_datatype: u8,
    /// Destination rank, or the target rank of a one-sided call.
    pub destination: u8,
    /// Tag of what is sent; of a call that locks a window, how (`MPI_LOCK_SHARED`).
    pub send_tag: u8,
    pub receive_buffer: u8,
    pub receive_count: u8,
    pub receive_datatype: u8,
    pub source: u8,
    pub receive_tag: u8,
    pub root: u8,
    pub communicator: u8,
    pub window: u8,
    pub file: u8,
    /// Address of the request or the array of requests, or the request itself ([`flags::REQUEST_BY_VALUE`]).
    pub request: u8,
    /// Length of the array of requests; [`NONE`] where there is one request.
    pub request_count: u8,
    /// Address of the status or the array of statuses that the call sets.
    pub status: u8,
    /// How much leaves: see [`amount`].
    pub send_amount: u8,
    /// How much arrives: see [`amount`].
    pub receive_amount: u8,
    /// What the function frees, to whose handle its first argument points: one of [`frees`].
    pub frees: u8,
    /// What becomes of requests by the call: one of [`completion`].
    pub completion: u8,
    /// Address of the variable that says whether anything is complete; [`NONE`]: it is, when the call returns.
    pub is_complete: u8,
    /// Address of the index, or of the array of indices, of what is complete.
    pub index: u8,
    /// Address of the number of indices.
    pub index_count: u8,
    /// Address of the handle of a matched message.
    pub message: u8,
    /// Address of the handle of a window or file that the function makes with [`Self::communicator`].
    pub new_scope: u8,
    /// Not 0: it is a file.
    pub new_scope_is_file: u8,
    /// How the neighbours in a communicator that is made are told: one of [`topology`], and two arguments that it speaks of.
    pub topology: u8,
    pub topology_first: u8,
    pub topology_second: u8,
    /// Not 0: the members that data goes to and comes from are the process's neighbours.
    pub neighbours: u8,
    /// Operation of an access to a window.
    pub op: u8,
    /// Number of partitions, each of which has a buffer's amount of elements.
    pub partitions: u8,
    /// Address where the function puts the handle of a communicator that it has made; [`Self::communicator`] is the one that it is
    /// made from.
    pub new_communicator: u8,
    /// Address of the name that the function gives to [`Self::communicator`].
    pub communicator_name: u8,
    /// Which calls of the function that a language layer makes are the layer's own: those of places with this bit of
    /// [`crate::layer::layer_flags`]; 0: none.
    pub own_of_layers: u8,
    /// 1: the user has not chosen the function. Its calls are not counted: they are seen for what they do to handles and phases. Else 0.
    pub unchosen: u8,
    /// Padding, zero.
    pub reserved: u8,
}

/// "This function has no such argument."
pub const NONE: u8 = u8::MAX;

impl Descriptor {
    /// Of a function without arguments, of the first group.
    pub const EMPTY: Self = Self {
        question: 0,
        arguments: 0,
        group: 0,
        flags: 0,
        root_only: 0,
        send_buffer: NONE,
        send_count: NONE,
        send_datatype: NONE,
        destination: NONE,
        send_tag: NONE,
        receive_buffer: NONE,
        receive_count: NONE,
        receive_datatype: NONE,
        source: NONE,
        receive_tag: NONE,
        root: NONE,
        communicator: NONE,
        window: NONE,
        file: NONE,
        request: NONE,
        request_count: NONE,
        status: NONE,
        send_amount: 0,
        receive_amount: 0,
        frees: frees::NOTHING,
        completion: completion::NOTHING,
        is_complete: NONE,
        index: NONE,
        index_count: NONE,
        message: NONE,
        new_scope: NONE,
        new_scope_is_file: 0,
        topology: topology::NONE,
        topology_first: NONE,
        topology_second: NONE,
        neighbours: 0,
        op: NONE,
        partitions: NONE,
        new_communicator: NONE,
        communicator_name: NONE,
        own_of_layers: 0,
        unchosen: 0,
        reserved: 0,
    };
}

/// Bits of [`Descriptor::flags`].
pub mod flags {
    /// Counts are `MPI_Count` (64 bits), not `int`: the `_c` variants and partitioned communication.
    pub const LARGE_COUNT: u8 = 1 << 0;
    /// Send-side counts are an array over the communicator (v/w variants).
    pub const SEND_COUNTS_ARE_ARRAY: u8 = 1 << 1;
    /// Receive-side counts are an array over the communicator (v/w variants).
    pub const RECEIVE_COUNTS_ARE_ARRAY: u8 = 1 << 2;
    /// Called in loops until something happens: Test*, Iprobe, Improbe, Request_get_status, Parrived, Win_test.
    pub const POLLING: u8 = 1 << 3;
    /// Datatypes are arrays over the communicator (w variants).
    pub const DATATYPES_ARE_ARRAY: u8 = 1 << 4;
    /// Returns before the operation is complete and gives back a request.
    pub const NONBLOCKING: u8 = 1 << 5;
    /// Creates a persistent or partitioned request that a later start sets off.
    pub const PERSISTENT: u8 = 1 << 6;
    /// The argument at [`Descriptor::request`](super::Descriptor::request) is a handle, not its address.
    pub const REQUEST_BY_VALUE: u8 = 1 << 7;
}

/// The arguments that describe what goes one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// How much: see [`amount`].
    pub amount: u8,
    pub buffer: u8,
    pub count: u8,
    pub datatype: u8,
}

impl Descriptor {
    /// What leaves.
    #[inline]
    pub const fn send_side(&self) -> Side {
        Side {
            amount: self.send_amount,
            buffer: self.send_buffer,
            count: self.send_count,
            datatype: self.send_datatype,
        }
    }

    /// What arrives.
    #[inline]
    pub const fn receive_side(&self) -> Side {
        if self.receive_datatype == NONE {
            // One buffer for both: MPI_Bcast.
            return Side { amount: self.receive_amount, ..self.send_side() };
        }
        Side {
            amount: self.receive_amount,
            buffer: self.receive_buffer,
            count: self.receive_count,
            datatype: self.receive_datatype,
        }
    }

    /// Whether a handle may mean another object once the function has been entered. That is so wherever it is called: inside
    /// another call of MPI (by an attribute's delete function, by an error handler), or while nothing is counted.
    #[inline]
    pub const fn releases_handle(&self) -> bool {
        self.frees != frees::NOTHING || self.completion == completion::FREES
    }

    /// Whether calls of the function have to be seen, wanted or not, so that it is known which communicator a handle means.
    #[inline]
    pub const fn concerns_communicators(&self) -> bool {
        self.frees == frees::COMMUNICATOR || self.new_communicator & self.communicator_name != NONE
    }

    /// Whether the call begins an operation that another call completes.
    #[inline]
    pub const fn begins_operation(&self) -> bool {
        self.completion == completion::POSTS || self.completion == completion::BEGINS
    }

    /// Whether the call completes, starts or gives up requests, whose handles it is given.
    #[inline]
    pub const fn settles_requests(&self) -> bool {
        self.completion >= completion::STARTS && self.completion <= completion::SOME
    }

    /// Whether the call is given a status, and one only: not an array of them.
    #[inline]
    pub const fn has_one_status(&self) -> bool {
        self.status != NONE && (self.request_count == NONE || self.completion == completion::ANY)
    }

    /// Whether the call tells by its status what has arrived by it, or by the operation that it completes, or which message it has found.
    #[inline]
    pub const fn tells_by_status(&self) -> bool {
        let completes =
            self.settles_requests() && self.completion != completion::STARTS && self.completion != completion::FREES;
        self.receive_amount & amount::KIND == amount::STATUS
            || completes
            || self.completion == completion::ENDS
            || self.completion == completion::MATCHES
    }
}

/// What a function frees: values of [`Descriptor::frees`]. The library may give the same handle to another object of that kind from
/// the function's entry on.
pub mod frees {
    pub const NOTHING: u8 = 0;
    pub const COMMUNICATOR: u8 = 1;
    pub const DATATYPE: u8 = 2;
    pub const WINDOW: u8 = 3;
    pub const FILE: u8 = 4;
}

/// What a call does to requests: values of [`Descriptor::completion`].
pub mod completion {
    /// Nothing: it takes none, or only looks at them.
    pub const NOTHING: u8 = 0;
    /// Makes one, which may be under way at once ([`flags::NONBLOCKING`](super::flags)) or has to be started.
    pub const POSTS: u8 = 1;
    /// Makes none, but matches a message that a later call receives.
    pub const MATCHES: u8 = 2;
    /// Starts one, or all of an array.
    pub const STARTS: u8 = 3;
    /// Gives one up.
    pub const FREES: u8 = 4;
    /// Completes one, or all of an array.
    pub const ALL: u8 = 5;
    /// Completes one of an array.
    pub const ANY: u8 = 6;
    /// Completes some of an array.
    pub const SOME: u8 = 7;
    /// Begins an access to a file that another call ends: the file is the request.
    pub const BEGINS: u8 = 8;
    /// Ends it.
    pub const ENDS: u8 = 9;
    /// Lets partitions of one go that was started.
    pub const READIES: u8 = 10;
}

/// How many neighbours a process has in a communicator: values of [`Descriptor::topology`].
pub mod topology {
    /// None that is known.
    pub const NONE: u8 = 0;
    /// Two in each dimension; the number of dimensions is the first argument, the address of their lengths the second, and that of
    /// whether they are periodic comes next.
    pub const CARTESIAN: u8 = 1;
    /// The process's own, in and out, by the first and the second argument.
    pub const ADJACENT: u8 = 2;
    /// The address of the cumulated numbers of all processes is the first argument.
    pub const GRAPH: u8 = 3;
    /// As in the communicator that it is made from.
    pub const SAME: u8 = 4;
    /// Two in each dimension that is kept of the communicator that it is made from; the address of what is kept is the first argument.
    pub const PART: u8 = 5;
}

/// Bits of [`Descriptor::root_only`]: sides whose arguments mean something at the root only. Other processes may pass anything
/// there, even uninitialised variables.
pub mod root_only {
    pub const SEND: u8 = 1 << 0;
    pub const RECEIVE: u8 = 1 << 1;
}

/// Parts of [`Descriptor::send_amount`] and [`Descriptor::receive_amount`]: how much data a call moves in this direction.
///
/// One of the first eight, ORed with who moves it and with what a buffer `MPI_IN_PLACE` means.
pub mod amount {
    /// Nothing.
    pub const NOTHING: u8 = 0;
    /// The buffer: count × size of the datatype. Without a count: one element.
    pub const BUFFER: u8 = 1;
    /// As many buffers as the group has members.
    pub const EACH: u8 = 2;
    /// A count for each member of the group.
    pub const SUM: u8 = 3;
    /// A count and a datatype for each member of the group.
    pub const TYPED_SUM: u8 = 4;
    /// The count for the process itself, of those for each member.
    pub const OWN: u8 = 5;
    /// What the status says, at most the buffer.
    pub const STATUS: u8 = 6;
    /// Not known from the arguments.
    pub const UNKNOWN: u8 = 7;
    pub const KIND: u8 = 7;

    /// Every process.
    pub const ALL: u8 = 0;
    pub const ROOT: u8 = 1 << 3;
    pub const NOT_ROOT: u8 = 2 << 3;
    /// All but rank 0.
    pub const NOT_FIRST: u8 = 3 << 3;
    pub const WHO: u8 = 3 << 3;

    /// In place: nothing.
    pub const IN_PLACE_NOTHING: u8 = 0;
    /// In place: what the other direction moves.
    pub const IN_PLACE_OTHER: u8 = 1 << 5;
    /// In place: the same as without.
    pub const IN_PLACE_SAME: u8 = 2 << 5;
    pub const IN_PLACE: u8 = 3 << 5;

    /// The group is the process's own, in an inter-communicator too.
    pub const LOCAL: u8 = 1 << 7;
}
