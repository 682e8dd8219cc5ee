use core::mem::{align_of, size_of};

use super::*;

struct Words(&'static [(u64, u64)]);

impl Memory for Words {
    fn word(&self, address: u64) -> Option<u64> {
        self.0.iter().find(|(at, _)| *at == address).map(|(_, word)| *word)
    }
}

const NOWHERE: Words = Words(&[]);

/// The sum of the sizes of the fields is the size of the whole: nothing between them is left unwritten.
#[test]
fn there_is_no_padding() {
    assert_eq!(size_of::<Field>(), 8);
    assert_eq!(size_of::<Constants>(), 12 * 4 + 18 * 8);
    assert_eq!(size_of::<StatusLayout>(), 8 * 4);
    assert_eq!(size_of::<Objects>(), 8 + 8 + 8 + 8 + 8 + 8);
    assert_eq!(size_of::<DatatypeLayout>(), size_of::<Objects>() + 8 + 8);
    assert_eq!(size_of::<CommunicatorLayout>(), size_of::<Objects>() + 16 + 6 * 8 + 6 * 4);
    assert_eq!(size_of::<MemberLayout>(), 14 * 4);
    assert_eq!(size_of::<RequestLayout>(), size_of::<Objects>() + 8);
    let parts = size_of::<Constants>()
        + size_of::<StatusLayout>()
        + size_of::<DatatypeLayout>()
        + size_of::<CommunicatorLayout>()
        + size_of::<MemberLayout>()
        + size_of::<RequestLayout>();
    assert_eq!(size_of::<Extent>(), 8 + 8);
    assert_eq!(size_of::<Layout>(), 8 + 8 + parts + 2 * size_of::<Extent>());
    assert_eq!(align_of::<Layout>(), 8);
}

#[test]
fn nothing_is_known_of_a_zeroed_layout() {
    let layout = Layout::default();
    for handle in [0, 1, 0x4c00_0405, 0x209, 0x7fff_0000_1000] {
        assert_eq!(datatype_size(&layout, handle, &NOWHERE), Size::Unknown);
        assert_eq!(comm(&layout, handle, &NOWHERE), None);
        assert_eq!(world_rank(&layout, handle, 0, &NOWHERE), None);
        assert_eq!(request_status(&layout, handle, &NOWHERE), None);
        assert_eq!(status_bytes(&layout, handle, &NOWHERE), None);
    }
}

/// Of the library's objects nothing can be read: the launcher has said how large the world is.
#[test]
fn ranks_of_the_world_are_world_ranks_wherever_the_library_keeps_its_members() {
    let constants = MPICH.constants;
    for objects in [0, capability::COMMUNICATORS, capability::COMMUNICATORS | capability::MEMBERS] {
        let layout = Layout {
            known: capability::CONSTANTS | objects,
            constants,
            told_rank: 1,
            told_size: 4,
            handles: handle_kind::INTEGER,
            ..Layout::default()
        };
        assert_eq!(world_rank(&layout, constants.comm_world, 3, &NOWHERE), Some(3));
        assert_eq!(world_rank(&layout, constants.comm_world, 4, &NOWHERE), None);
        // That is what a check of where the members are must not rely on.
        let member = member_world_rank(&layout, constants.comm_world, Side::Local, 3, &NOWHERE);
        assert_eq!(member, (objects == 0).then_some(3));
    }
}

#[test]
fn predefined_datatypes_are_told_by_their_place_or_their_number() {
    let predefined = [Extent { first: 0x5000, last: 0x6000 }, Extent { first: 0x9000, last: 0x9000 }];
    let pointers = Layout { handles: handle_kind::POINTER, predefined, ..Layout::default() };
    for (handle, expected) in [(0x4fff, false), (0x5000, true), (0x6000, true), (0x6001, false), (0x9000, true)] {
        assert_eq!(is_predefined(&pointers, handle), expected, "{handle:#x}");
    }
    let known = capability::BUILTIN_SIZES;
    let integers = Layout { handles: handle_kind::INTEGER, known, ..Layout::default() };
    assert!(is_predefined(&integers, 0x4c00_0405) && !is_predefined(&integers, 0x8c00_0405));
}

#[test]
fn narrow_numbers_are_cut_out_of_the_word_around_them() {
    let memory = Words(&[(0x1000, 0x8877_6655_4433_2211), (0x2000, 0x1000)]);
    for (offset, width, expected) in
        [(0, 1, 0x11), (2, 2, 0x4433), (4, 4, 0x8877_6655), (7, 1, 0x88), (0, 8, 0x8877_6655_4433_2211)]
    {
        assert_eq!(Field::at(offset, width).read(0x1000, &memory), Some(expected));
        assert_eq!(Field::through(8, offset, width).read(0x1ff8, &memory), Some(expected));
        assert_eq!(Field::through(16, offset, width).read(0x1ff8, &memory), None, "nothing leads there");
    }
    assert_eq!(Field::at(6, 4).read(0x1000, &memory), None, "over the end of a word");
    assert_eq!(Field::default().read(0x1000, &memory), None);
}

#[test]
fn sizes_of_mpich_are_in_the_handles_of_builtin_types() {
    let layout = Layout { known: capability::BUILTIN_SIZES, handles: handle_kind::INTEGER, ..Layout::default() };
    // MPI_INT, MPI_LONG_DOUBLE, MPI_2INT; the upper half of a register may be anything.
    for (handle, size) in [(0x4c00_0405, 4), (0x4c00_100c, 16), (0xdead_beef_4c00_0816, 8)] {
        assert_eq!(datatype_size(&layout, handle, &NOWHERE), Size::Known(size));
    }
    // MPI_DATATYPE_NULL, a derived type, a communicator.
    for handle in [0x0c00_0000, 0x8c00_0005, 0x4400_0000] {
        assert_eq!(datatype_size(&layout, handle, &NOWHERE), Size::Unknown);
    }
}

#[test]
fn sizes_of_the_standard_abi() {
    let layout = Layout { known: capability::BUILTIN_SIZES, handles: handle_kind::STANDARD_ABI, ..Layout::default() };
    // MPI_AINT, MPI_INT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_LONG_DOUBLE_INT, MPI_CHAR, MPI_INT64_T, MPI_COMPLEX32
    let sizes = [(0x201, 8), (0x209, 4), (0x214, 8), (0x220, 16), (0x22d, 20), (0x243, 1), (0x258, 8), (0x2eb, 32)];
    for (handle, size) in sizes {
        assert_eq!(datatype_size(&layout, handle, &NOWHERE), Size::Known(size), "{handle:#x}");
    }
    for handle in [0, 0x101, 0x200, 0x204, 0x23f, 0x300, 0x1000] {
        assert_eq!(datatype_size(&layout, handle, &NOWHERE), Size::Unknown, "{handle:#x}");
    }
}

#[test]
fn objects_of_further_tables_are_found_and_say_who_they_are() {
    let objects = Objects { kind: 3, stride: 0x100, indirect: 0x8000, block_mask: 0x3fff, ..Objects::default() };
    let layout = Layout {
        known: capability::DATATYPES,
        handles: handle_kind::INTEGER,
        datatypes: DatatypeLayout { objects, size: Field::at(8, 8), ..DatatypeLayout::default() },
        ..Layout::default()
    };
    let memory = Words(&[(0x8000, 0x9000), (0x9008, 0xa000), (0xa200, 0x0000_0001_cc00_1002), (0xa208, 77)]);
    assert_eq!(datatype_size(&layout, 0xcc00_1002, &memory), Size::Known(77));
    // The object before is not there, the table after is not there.
    assert_eq!(datatype_size(&layout, 0xcc00_1001, &memory), Size::Unknown);
    assert_eq!(datatype_size(&layout, 0xcc00_2002, &memory), Size::Unknown);
}

#[test]
fn split_counts_are_put_together() {
    let status = StatusLayout { byte_count: byte_count::SPLIT, source: 8, tag: 12, ..StatusLayout::default() };
    let layout = Layout { known: capability::CONSTANTS, status, ..Layout::default() };
    let memory = Words(&[(0x1000, 0x0000_0003_ffff_fff0), (0x1008, 0x0000_0007_ffff_ffff)]);
    assert_eq!(status_bytes(&layout, 0x1000, &memory), Some(0x1_ffff_fff0));
    assert_eq!(status_cancelled(&layout, 0x1000, &memory), Some(true));
    assert_eq!(status_source(&layout, 0x1000, &memory), Some(-1));
    assert_eq!(status_tag(&layout, 0x1000, &memory), Some(7));
}
