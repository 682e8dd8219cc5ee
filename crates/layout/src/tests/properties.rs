//! Whatever layout and memory are: the functions come to an end and do not panic, and what they say is in its bounds.

use mpiprobe_common::{
    Layout,
    layout::{
        CommunicatorLayout, Constants, DatatypeLayout, Extent, Field, MemberLayout, Memory, Objects, RequestLayout,
        Side, StatusLayout, comm, datatype_size, is_complete_request, member_world_rank, request_status, status_bytes,
        status_cancelled, status_source, status_tag, world_rank,
    },
};
use proptest::prelude::*;

/// Every address has some content, the same each time; some cannot be read.
struct Anything {
    seed: u64,
    small: bool,
}

impl Memory for Anything {
    fn word(&self, address: u64) -> Option<u64> {
        let mut word = (address ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word ^= word >> 29;
        let small = word >> 40 & 0x0f_0000_000f;
        (!word.is_multiple_of(17)).then_some(if self.small { small } else { word })
    }
}

fn field() -> impl Strategy<Value = Field> {
    (any::<u32>(), prop_oneof![Just(0), any::<u16>()], prop_oneof![Just(1), Just(2), Just(4), Just(8), any::<u16>()])
        .prop_map(|(offset, via, width)| Field { offset, via, width })
}

prop_compose! {
    fn objects()(
        numbers in any::<(u32, u32, u64, u32, u32, u64, u64, u32, u32)>(), kind in 0u32..16,
    ) -> Objects {
        let (_, stride, builtin, builtin_count, direct_count, direct, indirect, block_mask, foreign_mask) = numbers;
        Objects { kind, stride, builtin, builtin_count, direct_count, direct, indirect, block_mask, foreign_mask }
    }
}

prop_compose! {
    fn members()(kind in 0u32..5, o in any::<[u32; 13]>()) -> MemberLayout {
        let [local, remote, local_of_inter, mode, list, first, step, block, world, rank, job, own_job, reserved] = o;
        MemberLayout {
            kind, local, remote, local_of_inter, mode, list, first, step, block, world, rank, job, own_job, reserved,
        }
    }
}

prop_compose! {
    fn layouts()(
        known in any::<u32>(),
        handles in 0u32..5,
        kinds in prop::array::uniform3(objects()),
        fields in prop::array::uniform7(field()),
        members in members(),
        numbers in any::<[u32; 12]>(),
        predefined in any::<[u64; 6]>(),
    ) -> Layout {
        let [datatypes, communicators, requests] = kinds;
        let [size, rank, comm_size, remote_size, inter, context, second_context] = fields;
        let [inter_mask, context_kind, status, bytes, source, tag, a, b, c, d, e, f] = numbers;
        let [world, own, comm_world, comm_self, request_complete_first, request_complete_last] = predefined;
        Layout {
            // Mostly everything.
            known: known | known << 3,
            handles,
            told_rank: a % 8,
            told_size: b % 8,
            constants: Constants {
                comm_world, comm_self, request_complete_first, request_complete_last, ..Constants::default()
            },
            status: StatusLayout { size: a, source, tag, error: b, bytes, byte_count: c % 3, cancelled: d, reserved: 0 },
            datatypes: DatatypeLayout { objects: datatypes, size, name: e, name_length: f },
            communicators: CommunicatorLayout {
                objects: communicators, world, own, rank, size: comm_size, remote_size, inter, context, second_context,
                inter_mask, context_kind: context_kind % 4, ..CommunicatorLayout::default()
            },
            members,
            requests: RequestLayout { objects: requests, status, reserved: 0 },
            predefined: [Extent { first: world, last: own }; 2],
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn every_layout_and_every_memory_has_an_answer(
        layout in layouts(),
        handle in prop_oneof![any::<u64>(), 0u64..4096, (0u64..16, any::<u16>()).prop_map(|(kind, index)| kind << 28 | u64::from(index))],
        rank in prop_oneof![any::<u32>(), 0u32..8],
        seed in any::<u64>(),
        small in any::<bool>(),
    ) {
        let memory = Anything { seed, small };
        let size = datatype_size(&layout, handle, &memory);
        prop_assert!(!matches!(size, mpiprobe_common::layout::Size::Known(size) if size >> 63 != 0));
        for handle in [handle, layout.constants.comm_world] {
            if let Some(facts) = comm(&layout, handle, &memory) {
                prop_assert!(facts.rank < facts.size);
                prop_assert!(facts.is_inter || facts.remote_size == 0);
            }
            for found in [
                world_rank(&layout, handle, rank, &memory),
                member_world_rank(&layout, handle, Side::Local, rank, &memory),
            ] {
                prop_assert!(found.is_none() || layout.members.kind == 1 || found <= Some(i32::MAX as u32));
            }
        }
        let status = request_status(&layout, handle, &memory);
        prop_assert!(status.is_none() || !is_complete_request(&layout, handle));
        for address in [handle, status.unwrap_or(seed)] {
            status_bytes(&layout, address, &memory);
            status_cancelled(&layout, address, &memory);
            status_source(&layout, address, &memory);
            status_tag(&layout, address, &memory);
        }
    }
}
