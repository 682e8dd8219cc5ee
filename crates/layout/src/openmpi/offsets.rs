//! Where Open MPI's objects keep what (ompi/communicator/communicator.h, ompi/group/group.h, ompi/proc/proc.h,
//! ompi/datatype/ompi_datatype.h, ompi/request/request.h), in bytes.

use mpiprobe_common::{
    Layout,
    layout::{
        CommunicatorLayout, DatatypeLayout, Field, MemberLayout, Memory, Objects, RequestLayout, comm, context_kind,
        member_kind, name_kind,
    },
};

use super::super::{TargetMemory, Version};

/// What differs between releases. In all of them a group has its size at 16, the process's rank at 20, the array of processes
/// at 32 and flags at 40; a datatype has its size at 24; a request has its status at 64.
pub(super) struct Offsets {
    /// The release that the numbers were verified for by `tests/tests/layouts/`.
    pub(super) verified: Version,
    context: Field,
    second_context: Field,
    context_kind: u32,
    rank: u32,
    flags: u32,
    local_group: u16,
    remote_group: u16,
    name_kind: u32,
    name: u32,
    datatype_name: u32,
}

/// MPI_MAX_OBJECT_NAME
const NAME_LENGTH: u32 = 64;
/// OMPI_COMM_INTER
const INTER: u32 = 1;

pub(super) const REQUESTS: RequestLayout = RequestLayout { objects: Objects::NONE, status: 64, reserved: 0 };

pub(super) static TABLES: &[Offsets] = &[
    Offsets {
        verified: Version(4, 1, 4),
        context: Field::at(224, 4),
        second_context: Field::at(0, 0),
        context_kind: context_kind::ONE,
        rank: 228,
        flags: 232,
        local_group: 248,
        remote_group: 256,
        name_kind: name_kind::INLINE,
        name: 160,
        datatype_name: 240,
    },
    Offsets {
        verified: Version(5, 0, 11),
        // The number in the table of communicators is the process's own; what all members agree on is this.
        context: Field::at(176, 8),
        second_context: Field::at(168, 8),
        context_kind: context_kind::UPPER,
        rank: 220,
        flags: 224,
        local_group: 264,
        remote_group: 272,
        name_kind: name_kind::POINTER,
        name: 160,
        datatype_name: 240,
    },
];

impl Offsets {
    pub(super) fn communicators(&self, world: u64, own: u64) -> CommunicatorLayout {
        CommunicatorLayout {
            world,
            own,
            rank: Field::at(self.rank, 4),
            size: Field::through(self.local_group, 16, 4),
            remote_size: Field::through(self.remote_group, 16, 4),
            inter: Field::at(self.flags, 4),
            inter_mask: INTER,
            context: self.context,
            second_context: self.second_context,
            context_kind: self.context_kind,
            name_kind: self.name_kind,
            name: self.name,
            name_length: NAME_LENGTH,
            ..CommunicatorLayout::default()
        }
    }

    /// [`MemberLayout::own_job`] is the process's, not the release's.
    pub(super) fn members(&self) -> MemberLayout {
        MemberLayout {
            kind: member_kind::PROCESSES,
            local: self.local_group.into(),
            remote: self.remote_group.into(),
            mode: 40,
            list: 32,
            job: 40,
            rank: 44,
            ..MemberLayout::default()
        }
    }

    pub(super) fn datatypes(&self) -> DatatypeLayout {
        DatatypeLayout {
            size: Field::at(24, 8),
            name: self.datatype_name,
            name_length: NAME_LENGTH,
            ..DatatypeLayout::default()
        }
    }

    /// Where the address of the own group stands in a communicator.
    pub(super) fn local_group(&self) -> u64 {
        self.local_group.into()
    }
}

/// The communicator that an inter-communicator uses within its own group: its address follows that of the other group.
pub(super) fn local_comm(layout: &Layout, handle: u64, memory: &TargetMemory) -> Option<u64> {
    let is_inter = comm(layout, handle, memory)?.is_inter;
    is_inter.then(|| memory.word(handle.checked_add(u64::from(layout.members.remote) + 8)?)).flatten()
}
