//! Names of predefined objects, where their handles are the same in all processes.
//!
//! Open MPI's are addresses; its objects tell their names themselves.

use mpiprobe_common::{Layout, layout::handle_kind};

/// What the standard calls the predefined datatype, operation, group, info object or error handler of a handle; `None`: it is none,
/// or handles of this library do not tell.
pub fn predefined(layout: &Layout, handle: u64) -> Option<&'static str> {
    let table = match layout.handles {
        handle_kind::INTEGER => MPICH,
        handle_kind::STANDARD_ABI => STANDARD_ABI,
        _ => return None,
    };
    let handle = u32::try_from(layout.handle(handle)).ok()?;
    let is_builtin = layout.handles == handle_kind::INTEGER && handle >> 16 == BUILTIN;
    // The size of a builtin datatype is in its handle, and depends on the machine.
    let differ = if is_builtin { !0xff00 } else { !0 };
    table.iter().find(|(known, _)| known & differ == handle & differ).map(|(_, name)| *name)
}

/// Upper half of MPICH's builtin datatypes.
const BUILTIN: u32 = 0x4c00;

/// The same name for good, if it is that of a predefined object.
pub fn predefined_name(name: &str) -> Option<&'static str> {
    STANDARD_ABI.iter().chain(MPICH).map(|(_, known)| *known).find(|known| *known == name)
}

/// Of MPICH and its descendants: the kind of handle is in it, so that all kinds fit into one table.
#[rustfmt::skip]
const MPICH: &[(u32, &str)] = &[
    (0x0800_0000, "MPI_GROUP_NULL"), (0x1400_0000, "MPI_ERRHANDLER_NULL"), (0x1800_0000, "MPI_OP_NULL"),
    (0x1c00_0000, "MPI_INFO_NULL"), (0x4800_0000, "MPI_GROUP_EMPTY"), (0x4c00_0010, "MPI_LB"), (0x4c00_0011, "MPI_UB"),
    (0x4c00_0101, "MPI_CHAR"), (0x4c00_0102, "MPI_UNSIGNED_CHAR"), (0x4c00_010d, "MPI_BYTE"), (0x4c00_010f, "MPI_PACKED"),
    (0x4c00_0118, "MPI_SIGNED_CHAR"), (0x4c00_011a, "MPI_CHARACTER"), (0x4c00_012d, "MPI_INTEGER1"),
    (0x4c00_0133, "MPI_CXX_BOOL"), (0x4c00_0137, "MPI_INT8_T"), (0x4c00_013b, "MPI_UINT8_T"), (0x4c00_013f, "MPI_C_BOOL"),
    (0x4c00_0147, "MPI_LOGICAL1"), (0x4c00_0203, "MPI_SHORT"), (0x4c00_0204, "MPI_UNSIGNED_SHORT"), (0x4c00_0226, "MPI_REAL2"),
    (0x4c00_022f, "MPI_INTEGER2"), (0x4c00_0238, "MPI_INT16_T"), (0x4c00_023c, "MPI_UINT16_T"), (0x4c00_0248, "MPI_LOGICAL2"),
    (0x4c00_0405, "MPI_INT"), (0x4c00_0406, "MPI_UNSIGNED"), (0x4c00_040a, "MPI_FLOAT"), (0x4c00_040e, "MPI_WCHAR"),
    (0x4c00_041b, "MPI_INTEGER"), (0x4c00_041c, "MPI_REAL"), (0x4c00_041d, "MPI_LOGICAL"), (0x4c00_0427, "MPI_REAL4"),
    (0x4c00_042e, "MPI_COMPLEX4"), (0x4c00_0430, "MPI_INTEGER4"), (0x4c00_0439, "MPI_INT32_T"), (0x4c00_043d, "MPI_UINT32_T"),
    (0x4c00_0449, "MPI_LOGICAL4"), (0x4c00_0807, "MPI_LONG"), (0x4c00_0808, "MPI_UNSIGNED_LONG"),
    (0x4c00_0809, "MPI_LONG_LONG_INT"), (0x4c00_080b, "MPI_DOUBLE"), (0x4c00_0816, "MPI_2INT"),
    (0x4c00_0819, "MPI_UNSIGNED_LONG_LONG"), (0x4c00_081e, "MPI_COMPLEX"), (0x4c00_081f, "MPI_DOUBLE_PRECISION"),
    (0x4c00_0820, "MPI_2INTEGER"), (0x4c00_0821, "MPI_2REAL"), (0x4c00_0828, "MPI_COMPLEX8"), (0x4c00_0829, "MPI_REAL8"),
    (0x4c00_0831, "MPI_INTEGER8"), (0x4c00_0834, "MPI_CXX_FLOAT_COMPLEX"), (0x4c00_083a, "MPI_INT64_T"),
    (0x4c00_083e, "MPI_UINT64_T"), (0x4c00_0840, "MPI_C_FLOAT_COMPLEX"), (0x4c00_0843, "MPI_AINT"), (0x4c00_0844, "MPI_OFFSET"),
    (0x4c00_0845, "MPI_COUNT"), (0x4c00_084a, "MPI_LOGICAL8"), (0x4c00_100c, "MPI_LONG_DOUBLE"),
    (0x4c00_1022, "MPI_DOUBLE_COMPLEX"), (0x4c00_1023, "MPI_2DOUBLE_PRECISION"), (0x4c00_102a, "MPI_COMPLEX16"),
    (0x4c00_102b, "MPI_REAL16"), (0x4c00_1032, "MPI_INTEGER16"), (0x4c00_1035, "MPI_CXX_DOUBLE_COMPLEX"),
    (0x4c00_1041, "MPI_C_DOUBLE_COMPLEX"), (0x4c00_104b, "MPI_LOGICAL16"), (0x4c00_202c, "MPI_COMPLEX32"),
    (0x4c00_2036, "MPI_CXX_LONG_DOUBLE_COMPLEX"), (0x4c00_2042, "MPI_C_LONG_DOUBLE_COMPLEX"),
    (0x5400_0000, "MPI_ERRORS_ARE_FATAL"), (0x5400_0001, "MPI_ERRORS_RETURN"), (0x5400_0003, "MPI_ERRORS_ABORT"),
    (0x5800_0001, "MPI_MAX"), (0x5800_0002, "MPI_MIN"), (0x5800_0003, "MPI_SUM"), (0x5800_0004, "MPI_PROD"),
    (0x5800_0005, "MPI_LAND"), (0x5800_0006, "MPI_BAND"), (0x5800_0007, "MPI_LOR"), (0x5800_0008, "MPI_BOR"),
    (0x5800_0009, "MPI_LXOR"), (0x5800_000a, "MPI_BXOR"), (0x5800_000b, "MPI_MINLOC"), (0x5800_000c, "MPI_MAXLOC"),
    (0x5800_000d, "MPI_REPLACE"), (0x5800_000e, "MPI_NO_OP"), (0x5c00_0001, "MPI_INFO_ENV"), (0x8c00_0000, "MPI_FLOAT_INT"),
    (0x8c00_0001, "MPI_DOUBLE_INT"), (0x8c00_0002, "MPI_LONG_INT"), (0x8c00_0003, "MPI_SHORT_INT"),
    (0x8c00_0004, "MPI_LONG_DOUBLE_INT"),
];

/// Of the MPI 5.0 standard ABI (appendix A).
#[rustfmt::skip]
const STANDARD_ABI: &[(u32, &str)] = &[
    (0x20, "MPI_OP_NULL"), (0x21, "MPI_SUM"), (0x22, "MPI_MIN"), (0x23, "MPI_MAX"), (0x24, "MPI_PROD"), (0x28, "MPI_BAND"),
    (0x29, "MPI_BOR"), (0x2a, "MPI_BXOR"), (0x30, "MPI_LAND"), (0x31, "MPI_LOR"), (0x32, "MPI_LXOR"), (0x38, "MPI_MINLOC"),
    (0x39, "MPI_MAXLOC"), (0x3c, "MPI_REPLACE"), (0x3d, "MPI_NO_OP"), (0x108, "MPI_GROUP_NULL"), (0x109, "MPI_GROUP_EMPTY"),
    (0x130, "MPI_INFO_NULL"), (0x131, "MPI_INFO_ENV"), (0x140, "MPI_ERRHANDLER_NULL"), (0x141, "MPI_ERRORS_ARE_FATAL"),
    (0x142, "MPI_ERRORS_ABORT"), (0x143, "MPI_ERRORS_RETURN"), (0x201, "MPI_AINT"), (0x202, "MPI_COUNT"), (0x203, "MPI_OFFSET"),
    (0x207, "MPI_PACKED"), (0x208, "MPI_SHORT"), (0x209, "MPI_INT"), (0x20a, "MPI_LONG"), (0x20b, "MPI_LONG_LONG"),
    (0x20c, "MPI_UNSIGNED_SHORT"), (0x20d, "MPI_UNSIGNED"), (0x20e, "MPI_UNSIGNED_LONG"), (0x20f, "MPI_UNSIGNED_LONG_LONG"),
    (0x210, "MPI_FLOAT"), (0x212, "MPI_C_FLOAT_COMPLEX"), (0x213, "MPI_CXX_FLOAT_COMPLEX"), (0x214, "MPI_DOUBLE"),
    (0x216, "MPI_C_DOUBLE_COMPLEX"), (0x217, "MPI_CXX_DOUBLE_COMPLEX"), (0x218, "MPI_LOGICAL"), (0x219, "MPI_INTEGER"),
    (0x21a, "MPI_REAL"), (0x21b, "MPI_COMPLEX"), (0x21c, "MPI_DOUBLE_PRECISION"), (0x21d, "MPI_DOUBLE_COMPLEX"),
    (0x21e, "MPI_CHARACTER"), (0x220, "MPI_LONG_DOUBLE"), (0x224, "MPI_C_LONG_DOUBLE_COMPLEX"),
    (0x225, "MPI_CXX_LONG_DOUBLE_COMPLEX"), (0x228, "MPI_FLOAT_INT"), (0x229, "MPI_DOUBLE_INT"), (0x22a, "MPI_LONG_INT"),
    (0x22b, "MPI_2INT"), (0x22c, "MPI_SHORT_INT"), (0x22d, "MPI_LONG_DOUBLE_INT"), (0x230, "MPI_2REAL"),
    (0x231, "MPI_2DOUBLE_PRECISION"), (0x232, "MPI_2INTEGER"), (0x238, "MPI_C_BOOL"), (0x239, "MPI_CXX_BOOL"),
    (0x23c, "MPI_WCHAR"), (0x240, "MPI_INT8_T"), (0x241, "MPI_UINT8_T"), (0x243, "MPI_CHAR"), (0x244, "MPI_SIGNED_CHAR"),
    (0x245, "MPI_UNSIGNED_CHAR"), (0x247, "MPI_BYTE"), (0x248, "MPI_INT16_T"), (0x249, "MPI_UINT16_T"), (0x250, "MPI_INT32_T"),
    (0x251, "MPI_UINT32_T"), (0x258, "MPI_INT64_T"), (0x259, "MPI_UINT64_T"), (0x2c0, "MPI_LOGICAL1"), (0x2c1, "MPI_INTEGER1"),
    (0x2c8, "MPI_LOGICAL2"), (0x2c9, "MPI_INTEGER2"), (0x2ca, "MPI_REAL2"), (0x2d0, "MPI_LOGICAL4"), (0x2d1, "MPI_INTEGER4"),
    (0x2d2, "MPI_REAL4"), (0x2d3, "MPI_COMPLEX4"), (0x2d8, "MPI_LOGICAL8"), (0x2d9, "MPI_INTEGER8"), (0x2da, "MPI_REAL8"),
    (0x2db, "MPI_COMPLEX8"), (0x2e0, "MPI_LOGICAL16"), (0x2e1, "MPI_INTEGER16"), (0x2e2, "MPI_REAL16"), (0x2e3, "MPI_COMPLEX16"),
    (0x2eb, "MPI_COMPLEX32"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(handles: u32) -> Layout {
        Layout { handles, ..Layout::default() }
    }

    #[test]
    fn tables_are_sorted() {
        for table in [MPICH, STANDARD_ABI] {
            assert!(table.is_sorted_by(|a, b| a.0 < b.0));
        }
    }

    #[test]
    fn handles_have_the_names_of_the_headers() {
        let names =
            |handles, of: &[u64]| of.iter().map(|&handle| predefined(&layout(handles), handle)).collect::<Vec<_>>();
        assert_eq!(
            names(handle_kind::INTEGER, &[0x4c00_0405, 0x4c00_080c, 0x5800_0003, 0x1c00_0000, 0x8400_0001]),
            [Some("MPI_INT"), Some("MPI_LONG_DOUBLE"), Some("MPI_SUM"), Some("MPI_INFO_NULL"), None]
        );
        assert_eq!(
            names(handle_kind::STANDARD_ABI, &[0x209, 0x21, 0x7fff_0000_0209]),
            [Some("MPI_INT"), Some("MPI_SUM"), None]
        );
        assert_eq!(names(handle_kind::POINTER, &[0x209]), [None]);
        assert_eq!(["MPI_DOUBLE", "MPI_THING"].map(predefined_name), [Some("MPI_DOUBLE"), None]);
    }
}
