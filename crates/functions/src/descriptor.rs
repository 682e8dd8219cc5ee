//! From roles to argument positions: what BPF programs and wrapper look at.

use mpiprobe_common::{
    Cookie, ToolCookie,
    descriptor::{Descriptor, NONE, completion, flags, frees, root_only, topology},
    layer::layer_flags,
    thread::REGISTER_ARGUMENTS,
};

use crate::{Argument, Direction, Function, FunctionId, Group, Length, Operation, Role, by_name};

impl FunctionId {
    /// What the programs are told with each hit of this function's probes.
    pub fn cookie(self) -> Cookie {
        let descriptor = self.function().descriptor();
        let returns_soon = descriptor.flags & (flags::POLLING | flags::NONBLOCKING | flags::PERSISTENT) != 0;
        let in_registers = usize::from(descriptor.arguments) <= REGISTER_ARGUMENTS;
        let cookie = Cookie::new(u32::from(self.number()), descriptor.arguments, returns_soon && in_registers);
        let cookie = if descriptor.own_of_layers == 0 { cookie } else { cookie.of_query() };
        if self.is_beginning() { cookie.of_beginning() } else { cookie }
    }

    /// The same with each hit of this function's probes in a tool, by its number.
    pub fn tool_cookie(self, tool: u16) -> ToolCookie {
        let cookie = ToolCookie::new(self.number().into(), tool);
        if self.is_beginning() { cookie.of_beginning() } else { cookie }
    }

    /// Whether a process begins to use MPI by it (MPI-4.0, sections 11.2 and 11.3).
    pub fn is_beginning(self) -> bool {
        matches!(self.function().name, "MPI_Init" | "MPI_Init_thread" | "MPI_Session_init")
    }
}

impl Function {
    /// Where count, datatype, peer and so on stand.
    pub fn descriptor(&self) -> Descriptor {
        let mut descriptor = Descriptor {
            arguments: position(self.arguments.len()),
            group: self.group.index(),
            flags: self.flags(),
            root: self.first(Role::Root),
            communicator: self.first_by_value(Role::Communicator),
            own_of_layers: self.own_of_layers(),
            question: self.question(),
            window: self.first_by_value(Role::Window),
            file: self.first_by_value(Role::File),
            partitions: if self.operation == Operation::Persistent { self.first(Role::Partition) } else { NONE },
            ..Descriptor::EMPTY
        };
        if self.group.moves_data() {
            self.describe_data(&mut descriptor);
            self.describe_peers(&mut descriptor);
        }
        self.describe_completion(&mut descriptor);
        (descriptor.send_amount, descriptor.receive_amount) = self.amounts();
        descriptor.frees = self.frees();
        if self.group == Group::OneSided {
            descriptor.op = self.first(Role::Op);
        }
        descriptor.new_communicator = self.new_communicator();
        descriptor.new_scope = self.new_scope();
        descriptor.new_scope_is_file = u8::from(self.group == Group::Io && descriptor.new_scope != NONE);
        self.describe_topology(&mut descriptor);
        descriptor.communicator_name = if self.name == "MPI_Comm_set_name" { self.first(Role::String) } else { NONE };
        descriptor
    }

    /// Which kind of object is gone, or bound to go, once the function has been entered.
    fn frees(&self) -> u8 {
        match self.name {
            "MPI_Comm_free" | "MPI_Comm_disconnect" => frees::COMMUNICATOR,
            "MPI_Type_free" => frees::DATATYPE,
            "MPI_Win_free" => frees::WINDOW,
            "MPI_File_close" => frees::FILE,
            _ => frees::NOTHING,
        }
    }

    /// Which of a Fortran layer's calls of the function are the layer's own.
    fn own_of_layers(&self) -> u8 {
        match (self.group, self.fortran.f90 || self.fortran.f08) {
            (Group::Query, true) => layer_flags::OWN_QUERIES,
            (Group::Query, false) => layer_flags::OWN_CONVERSIONS,
            _ => 0,
        }
    }

    /// Which local question it is, plus one; 0: none, or one that new programs are not to ask.
    fn question(&self) -> u16 {
        let of = self.large_count_of().or_else(|| by_name(self.name));
        of.filter(|_| self.group == Group::Query && self.fortran.f08).map_or(0, |id| id.number() + 1)
    }

    /// Where a window or file comes out.
    fn new_scope(&self) -> u8 {
        let makes = matches!(self.group, Group::OneSided | Group::Io) && self.position(Role::Communicator).is_some();
        let is_new = |argument: &Argument| {
            matches!(argument.role, Role::Window | Role::File) && argument.direction == Direction::Out
        };
        self.find(is_new).filter(|_| makes).map_or(NONE, |(index, _)| position(index))
    }

    fn describe_topology(&self, descriptor: &mut Descriptor) {
        let first = |role| self.first(role);
        let (kind, from, to) = match self.short_name() {
            "Cart_create" => (topology::CARTESIAN, first(Role::Length), first(Role::Length) + 1),
            "Cart_sub" => (topology::PART, first(Role::Flag), NONE),
            "Graph_create" => (topology::GRAPH, first(Role::Index), NONE),
            "Dist_graph_create_adjacent" => {
                let sources = self.position(Role::Length);
                let destinations = sources.map_or(NONE, |index| self.next(index, Role::Length).0);
                (topology::ADJACENT, first(Role::Length), destinations)
            }
            name if name.starts_with("Comm_dup") || name.starts_with("Comm_idup") => (topology::SAME, NONE, NONE),
            _ => (topology::NONE, NONE, NONE),
        };
        (descriptor.topology, descriptor.topology_first, descriptor.topology_second) = (kind, from, to);
        descriptor.neighbours = u8::from(self.base_name().starts_with("Neighbor_"));
    }

    /// Where a communicator comes out that was not there before.
    fn new_communicator(&self) -> u8 {
        if self.group != Group::Communicator {
            return NONE;
        }
        let is_new = |argument: &Argument| argument.role == Role::Communicator && argument.direction == Direction::Out;
        self.find(is_new).map_or(NONE, |(index, _)| position(index))
    }

    fn flags(&self) -> u8 {
        let large_count = self.arguments.iter().any(|argument| argument.role == Role::Count && argument.wide);
        let operation = match self.operation {
            Operation::Blocking => 0,
            Operation::Nonblocking => flags::NONBLOCKING,
            Operation::Persistent => flags::PERSISTENT,
        };
        operation | if large_count { flags::LARGE_COUNT } else { 0 } | if self.polling { flags::POLLING } else { 0 }
    }

    fn describe_data(&self, descriptor: &mut Descriptor) {
        for (index, buffer) in self.arguments.iter().enumerate().filter(|(_, a)| a.role == Role::Buffer) {
            let (count, counts) = self.next(index, Role::Count);
            let (datatype, datatypes) = self.next(index, Role::Datatype);
            let is_array = |argument: Option<&Argument>| argument.is_some_and(Argument::is_array);
            if is_array(datatypes) {
                descriptor.flags |= flags::DATATYPES_ARE_ARRAY;
            }
            // Of several buffers that are read, the first one is sent: MPI_Compare_and_swap.
            if buffer.direction != Direction::Out && descriptor.send_buffer == NONE {
                descriptor.send_buffer = position(index);
                descriptor.send_count = count;
                descriptor.send_datatype = datatype;
                if is_array(counts) {
                    descriptor.flags |= flags::SEND_COUNTS_ARE_ARRAY;
                }
                if buffer.root_only {
                    descriptor.root_only |= root_only::SEND;
                }
            }
            if buffer.direction == Direction::Out || self.is_replacing(buffer) {
                descriptor.receive_buffer = position(index);
                descriptor.receive_count = count;
                descriptor.receive_datatype = datatype;
                if is_array(counts) {
                    descriptor.flags |= flags::RECEIVE_COUNTS_ARE_ARRAY;
                }
                if buffer.root_only {
                    descriptor.root_only |= root_only::RECEIVE;
                }
            }
        }
    }

    /// Whether what arrives from the source takes the place of what leaves from this buffer.
    fn is_replacing(&self, buffer: &Argument) -> bool {
        buffer.direction == Direction::InOut && self.position(Role::Source).is_some()
    }

    fn describe_peers(&self, descriptor: &mut Descriptor) {
        if let Some(destination) = self.position(Role::Destination) {
            descriptor.destination = position(destination);
            descriptor.send_tag = self.next(destination, Role::Tag).0;
        }
        if let Some(target) = self.position(Role::Target) {
            descriptor.destination = position(target);
            descriptor.send_tag = self.first(Role::Lock);
        }
        if let Some(source) = self.position(Role::Source) {
            descriptor.source = position(source);
            descriptor.receive_tag = self.next(source, Role::Tag).0;
        }
    }

    fn describe_completion(&self, descriptor: &mut Descriptor) {
        if let Some((index, request)) = self.find(|argument| argument.role == Role::Request) {
            descriptor.request = position(index);
            if let Length::Argument(length) = request.length {
                descriptor.request_count = length;
            }
            if !request.is_pointer() {
                descriptor.flags |= flags::REQUEST_BY_VALUE;
            }
        }
        let output =
            |role: Role| self.find(move |argument| argument.role == role && argument.direction == Direction::Out);
        let place = |role: Role| output(role).map_or(NONE, |(index, _)| position(index));
        descriptor.status = place(Role::Status);
        descriptor.completion = self.completion();
        if self.group == Group::Io && descriptor.request == NONE {
            descriptor.completion = match self.short_name().trim_end_matches("_c") {
                name if name.ends_with("_begin") => completion::BEGINS,
                name if name.ends_with("_end") => completion::ENDS,
                _ => descriptor.completion,
            };
        }
        if let Some((index, _)) = self.find(|argument| argument.role == Role::Message && argument.is_pointer()) {
            descriptor.message = position(index);
        }
        if (completion::MATCHES..completion::BEGINS).contains(&descriptor.completion) || self.polling {
            descriptor.is_complete = place(Role::Flag);
        }
        if (completion::ALL..completion::BEGINS).contains(&descriptor.completion) {
            descriptor.index = place(Role::Index);
            descriptor.index_count = place(Role::Length);
        }
    }

    /// What becomes of the requests, by how they are passed and what else is set.
    fn completion(&self) -> u8 {
        let sets =
            |role: Role| self.find(|argument| argument.role == role && argument.direction == Direction::Out).is_some();
        let Some((_, request)) = self.find(|argument| argument.role == Role::Request) else {
            return if sets(Role::Message) { completion::MATCHES } else { completion::NOTHING };
        };
        match request.direction {
            Direction::Out if self.operation != Operation::Blocking => completion::POSTS,
            Direction::InOut if self.group == Group::PointToPoint => completion::STARTS,
            Direction::InOut if !sets(Role::Status) && self.name == "MPI_Request_free" => completion::FREES,
            Direction::InOut if sets(Role::Status) && sets(Role::Length) => completion::SOME,
            Direction::InOut if sets(Role::Status) && sets(Role::Index) => completion::ANY,
            Direction::InOut if sets(Role::Status) => completion::ALL,
            Direction::In if self.group == Group::PointToPoint && !sets(Role::Flag) => completion::READIES,
            // MPI_Cancel leaves it to the call that completes the request; others only look.
            _ => completion::NOTHING,
        }
    }

    fn find(&self, wanted: impl Fn(&Argument) -> bool) -> Option<(usize, &Argument)> {
        self.arguments.iter().enumerate().find(|(_, argument)| wanted(argument))
    }

    fn first(&self, role: Role) -> u8 {
        self.position(role).map_or(NONE, position)
    }

    fn first_by_value(&self, role: Role) -> u8 {
        self.find(|argument| argument.role == role && !argument.is_pointer()).map_or(NONE, |(index, _)| position(index))
    }

    /// The first argument of that role after `index`.
    fn next(&self, index: usize, role: Role) -> (u8, Option<&Argument>) {
        let found = self.arguments.iter().enumerate().skip(index + 1).find(|(_, argument)| argument.role == role);
        (found.map_or(NONE, |(index, _)| position(index)), found.map(|(_, argument)| argument))
    }
}

impl Group {
    /// Whether buffers of its functions are sent or received (or written and read), not just filled locally.
    const fn moves_data(self) -> bool {
        matches!(self, Self::PointToPoint | Self::Collective | Self::OneSided | Self::Io)
    }
}

/// An index as descriptors have it. The table has no function with more than 16 arguments.
fn position(index: usize) -> u8 {
    u8::try_from(index).unwrap_or(NONE)
}
