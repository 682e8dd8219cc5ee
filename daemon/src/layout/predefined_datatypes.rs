//! Names of predefined datatypes whose handle tells which they are. Libraries of other handles keep names in their objects.

use mpiprobe_common::{
    Layout,
    layout::{ABI_HANDLES, handle_kind},
};

/// Of MPICH and what descends from it: bits 7–0 of a builtin handle. Those above are its size, which depends on the machine.
const MPICH: [(u64, &str); 59] = [
    (0x01, "MPI_CHAR"),
    (0x02, "MPI_UNSIGNED_CHAR"),
    (0x03, "MPI_SHORT"),
    (0x04, "MPI_UNSIGNED_SHORT"),
    (0x05, "MPI_INT"),
    (0x06, "MPI_UNSIGNED"),
    (0x07, "MPI_LONG"),
    (0x08, "MPI_UNSIGNED_LONG"),
    (0x09, "MPI_LONG_LONG_INT"),
    (0x0a, "MPI_FLOAT"),
    (0x0b, "MPI_DOUBLE"),
    (0x0c, "MPI_LONG_DOUBLE"),
    (0x0d, "MPI_BYTE"),
    (0x0e, "MPI_WCHAR"),
    (0x0f, "MPI_PACKED"),
    (0x10, "MPI_LB"),
    (0x11, "MPI_UB"),
    (0x16, "MPI_2INT"),
    (0x18, "MPI_SIGNED_CHAR"),
    (0x19, "MPI_UNSIGNED_LONG_LONG"),
    (0x1a, "MPI_CHARACTER"),
    (0x1b, "MPI_INTEGER"),
    (0x1c, "MPI_REAL"),
    (0x1d, "MPI_LOGICAL"),
    (0x1e, "MPI_COMPLEX"),
    (0x1f, "MPI_DOUBLE_PRECISION"),
    (0x20, "MPI_2INTEGER"),
    (0x21, "MPI_2REAL"),
    (0x22, "MPI_DOUBLE_COMPLEX"),
    (0x23, "MPI_2DOUBLE_PRECISION"),
    (0x27, "MPI_REAL4"),
    (0x28, "MPI_COMPLEX8"),
    (0x29, "MPI_REAL8"),
    (0x2a, "MPI_COMPLEX16"),
    (0x2b, "MPI_REAL16"),
    (0x2c, "MPI_COMPLEX32"),
    (0x2d, "MPI_INTEGER1"),
    (0x2f, "MPI_INTEGER2"),
    (0x30, "MPI_INTEGER4"),
    (0x31, "MPI_INTEGER8"),
    (0x33, "MPI_CXX_BOOL"),
    (0x34, "MPI_CXX_FLOAT_COMPLEX"),
    (0x35, "MPI_CXX_DOUBLE_COMPLEX"),
    (0x36, "MPI_CXX_LONG_DOUBLE_COMPLEX"),
    (0x37, "MPI_INT8_T"),
    (0x38, "MPI_INT16_T"),
    (0x39, "MPI_INT32_T"),
    (0x3a, "MPI_INT64_T"),
    (0x3b, "MPI_UINT8_T"),
    (0x3c, "MPI_UINT16_T"),
    (0x3d, "MPI_UINT32_T"),
    (0x3e, "MPI_UINT64_T"),
    (0x3f, "MPI_C_BOOL"),
    (0x40, "MPI_C_FLOAT_COMPLEX"),
    (0x41, "MPI_C_DOUBLE_COMPLEX"),
    (0x42, "MPI_C_LONG_DOUBLE_COMPLEX"),
    (0x43, "MPI_AINT"),
    (0x44, "MPI_OFFSET"),
    (0x45, "MPI_COUNT"),
];
/// Of those, pairs of values of different types, which are objects of their own.
const MPICH_PAIRS: [(u64, &str); 5] = [
    (0x8c00_0000, "MPI_FLOAT_INT"),
    (0x8c00_0001, "MPI_DOUBLE_INT"),
    (0x8c00_0002, "MPI_LONG_INT"),
    (0x8c00_0003, "MPI_SHORT_INT"),
    (0x8c00_0004, "MPI_LONG_DOUBLE_INT"),
];
/// Of the MPI 5.0 standard ABI (appendix A).
const STANDARD: [(u64, &str); 70] = [
    (0x201, "MPI_AINT"),
    (0x202, "MPI_COUNT"),
    (0x203, "MPI_OFFSET"),
    (0x207, "MPI_PACKED"),
    (0x208, "MPI_SHORT"),
    (0x209, "MPI_INT"),
    (0x20a, "MPI_LONG"),
    (0x20b, "MPI_LONG_LONG"),
    (0x20c, "MPI_UNSIGNED_SHORT"),
    (0x20d, "MPI_UNSIGNED"),
    (0x20e, "MPI_UNSIGNED_LONG"),
    (0x20f, "MPI_UNSIGNED_LONG_LONG"),
    (0x210, "MPI_FLOAT"),
    (0x212, "MPI_C_FLOAT_COMPLEX"),
    (0x213, "MPI_CXX_FLOAT_COMPLEX"),
    (0x214, "MPI_DOUBLE"),
    (0x216, "MPI_C_DOUBLE_COMPLEX"),
    (0x217, "MPI_CXX_DOUBLE_COMPLEX"),
    (0x218, "MPI_LOGICAL"),
    (0x219, "MPI_INTEGER"),
    (0x21a, "MPI_REAL"),
    (0x21b, "MPI_COMPLEX"),
    (0x21c, "MPI_DOUBLE_PRECISION"),
    (0x21d, "MPI_DOUBLE_COMPLEX"),
    (0x21e, "MPI_CHARACTER"),
    (0x220, "MPI_LONG_DOUBLE"),
    (0x224, "MPI_C_LONG_DOUBLE_COMPLEX"),
    (0x225, "MPI_CXX_LONG_DOUBLE_COMPLEX"),
    (0x228, "MPI_FLOAT_INT"),
    (0x229, "MPI_DOUBLE_INT"),
    (0x22a, "MPI_LONG_INT"),
    (0x22b, "MPI_2INT"),
    (0x22c, "MPI_SHORT_INT"),
    (0x22d, "MPI_LONG_DOUBLE_INT"),
    (0x230, "MPI_2REAL"),
    (0x231, "MPI_2DOUBLE_PRECISION"),
    (0x232, "MPI_2INTEGER"),
    (0x238, "MPI_C_BOOL"),
    (0x239, "MPI_CXX_BOOL"),
    (0x23c, "MPI_WCHAR"),
    (0x240, "MPI_INT8_T"),
    (0x241, "MPI_UINT8_T"),
    (0x243, "MPI_CHAR"),
    (0x244, "MPI_SIGNED_CHAR"),
    (0x245, "MPI_UNSIGNED_CHAR"),
    (0x247, "MPI_BYTE"),
    (0x248, "MPI_INT16_T"),
    (0x249, "MPI_UINT16_T"),
    (0x250, "MPI_INT32_T"),
    (0x251, "MPI_UINT32_T"),
    (0x258, "MPI_INT64_T"),
    (0x259, "MPI_UINT64_T"),
    (0x2c0, "MPI_LOGICAL1"),
    (0x2c1, "MPI_INTEGER1"),
    (0x2c8, "MPI_LOGICAL2"),
    (0x2c9, "MPI_INTEGER2"),
    (0x2ca, "MPI_REAL2"),
    (0x2d0, "MPI_LOGICAL4"),
    (0x2d1, "MPI_INTEGER4"),
    (0x2d2, "MPI_REAL4"),
    (0x2d3, "MPI_COMPLEX4"),
    (0x2d8, "MPI_LOGICAL8"),
    (0x2d9, "MPI_INTEGER8"),
    (0x2da, "MPI_REAL8"),
    (0x2db, "MPI_COMPLEX8"),
    (0x2e0, "MPI_LOGICAL16"),
    (0x2e1, "MPI_INTEGER16"),
    (0x2e2, "MPI_REAL16"),
    (0x2e3, "MPI_COMPLEX16"),
    (0x2eb, "MPI_COMPLEX32"),
];
/// Upper half of MPICH's builtin handles.
const BUILTIN: u64 = 0x4c00;

/// The name that the standard gives to a predefined datatype; `None` if it is none, or the handle does not tell.
pub fn predefined_datatype(layout: &Layout, handle: u64) -> Option<&'static str> {
    let handle = layout.handle(handle);
    let find =
        |table: &[(u64, &'static str)], key| table.iter().find(|(known, _)| *known == key).map(|(_, name)| *name);
    match layout.handles {
        handle_kind::INTEGER if handle >> 16 == BUILTIN => find(&MPICH, handle & 0xff),
        handle_kind::INTEGER => find(&MPICH_PAIRS, handle),
        handle_kind::STANDARD_ABI if handle < ABI_HANDLES => find(&STANDARD, handle),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(handles: u32, handle: u64) -> Option<&'static str> {
        predefined_datatype(&Layout { handles, ..Layout::default() }, handle)
    }

    #[test]
    fn handles_tell_what_is_predefined() {
        assert_eq!(name(handle_kind::INTEGER, 0x4c00_0405), Some("MPI_INT"));
        // Of another size elsewhere.
        assert_eq!(name(handle_kind::INTEGER, 0x4c00_080c), Some("MPI_LONG_DOUBLE"));
        assert_eq!(name(handle_kind::INTEGER, 0x8c00_0000), Some("MPI_FLOAT_INT"));
        assert_eq!(name(handle_kind::INTEGER, 0xcc00_0000), None);
        assert_eq!(name(handle_kind::STANDARD_ABI, 0x209), Some("MPI_INT"));
        assert_eq!(name(handle_kind::STANDARD_ABI, 0x7fff_0000_0209), None);
        assert_eq!(name(handle_kind::POINTER, 0x209), None);
    }

    #[test]
    fn no_handle_is_named_twice() {
        for table in [MPICH.as_slice(), &MPICH_PAIRS, &STANDARD] {
            assert!(table.is_sorted_by(|(a, _), (b, _)| a < b));
        }
    }
}
