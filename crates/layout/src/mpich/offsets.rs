//! Where MPICH's objects keep what (src/include/mpir_comm.h, mpir_group.h, mpir_datatype.h, mpir_request.h,
//! src/mpid/ch4/include/mpidpre.h), in bytes.

use mpiprobe_common::{
    Layout,
    layout::{CommunicatorLayout, DatatypeLayout, Field, MemberLayout, Objects, context_kind, member_kind, name_kind},
};

use super::super::Version;

/// What differs between releases.
pub(super) struct Offsets {
    /// The release that the numbers were verified for by `tests/tests/layouts/`.
    pub(super) verified: Version,
    /// The size of a communicator: a library with another one was made from other sources, or for another network.
    pub(super) stride: u32,
    context: Field,
    receive_context: Field,
    rank: u32,
    size: u32,
    remote_size: u32,
    comm_kind: u32,
    name: u32,
    members: MemberLayout,
    request_status: u32,
}

/// MPI_MAX_OBJECT_NAME
const NAME_LENGTH: u32 = 128;

/// `MPIDI_rank_map_t` of ch4: one map of the group that ranks in calls mean, one of the own group in an inter-communicator.
const fn map_at(map: u32) -> MemberLayout {
    MemberLayout {
        kind: member_kind::MAP,
        local: map,
        remote: map,
        local_of_inter: map + 40,
        mode: 0,
        world: 4,
        first: 12,
        step: 16,
        block: 20,
        list: 32,
        rank: 0,
        job: 0,
        own_job: 0,
        reserved: 0,
    }
}

/// `MPIR_Group` with `struct MPIR_Pmap`.
const fn groups_at(local: u32, remote: u32) -> MemberLayout {
    MemberLayout {
        kind: member_kind::GROUP,
        local,
        remote,
        local_of_inter: 0,
        mode: 16,
        list: 24,
        first: 24,
        step: 32,
        block: 0,
        world: 0,
        rank: 0,
        job: 0,
        own_job: 0,
        reserved: 0,
    }
}

pub(super) static MPICH: &[Offsets] = &[
    Offsets {
        verified: Version(4, 0, 2),
        stride: 872,
        context: Field::at(64, 2),
        receive_context: Field::at(66, 2),
        rank: 72,
        size: 88,
        remote_size: 68,
        comm_kind: 112,
        name: 116,
        members: map_at(784),
        request_status: 48,
    },
    Offsets {
        verified: Version(5, 0, 2),
        stride: 1832,
        context: Field::at(12, 4),
        receive_context: Field::at(16, 4),
        rank: 20,
        size: 24,
        remote_size: 180,
        comm_kind: 40,
        name: 200,
        members: groups_at(32, 184),
        request_status: 40,
    },
];

pub(super) static INTEL: &[Offsets] = &[Offsets {
    verified: Version(2021, 18, 0),
    stride: 808,
    context: Field::at(64, 4),
    receive_context: Field::at(68, 4),
    rank: 76,
    size: 88,
    remote_size: 72,
    comm_kind: 152,
    name: 156,
    members: map_at(640),
    request_status: 48,
}];

impl Offsets {
    /// Completes the parts that differ between releases. The predefined communicators are the first of their table.
    pub(super) fn fill(&self, layout: &mut Layout) {
        let objects = Objects { builtin_count: 2, ..layout.communicators.objects };
        layout.communicators = CommunicatorLayout {
            objects,
            world: objects.builtin,
            own: objects.builtin.wrapping_add(objects.stride.into()),
            rank: Field::at(self.rank, 4),
            size: Field::at(self.size, 4),
            remote_size: Field::at(self.remote_size, 4),
            // MPIR_COMM_KIND__INTERCOMM is 1
            inter: Field::at(self.comm_kind, 4),
            inter_mask: 1,
            context: self.receive_context,
            second_context: self.context,
            context_kind: context_kind::PAIR,
            name_kind: name_kind::INLINE,
            name: self.name,
            name_length: NAME_LENGTH,
            reserved: 0,
        };
        layout.members = self.members;
        layout.requests.status = self.request_status;
    }
}

/// The same in all releases.
pub(super) fn datatypes(objects: Objects) -> DatatypeLayout {
    DatatypeLayout { objects, size: Field::at(8, 8), name: 64, name_length: NAME_LENGTH }
}

/// Contexts of communicators that the library makes for itself, for the processes of a node for instance, have one of bits 1
/// to 3 set (src/include/mpir_contextid.h).
pub(super) fn is_of_program(context: u64) -> bool {
    context & 0xe == 0
}
