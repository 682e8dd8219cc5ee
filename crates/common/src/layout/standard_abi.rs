//! Predefined datatypes of the MPI 5.0 standard ABI (MPI 5.0, appendix A): sizes on x86-64 Linux.

/// Handles below this are predefined, others are addresses.
pub const ABI_HANDLES: u64 = 1 << 12;

/// First predefined datatype, `MPI_DATATYPE_NULL`; 256 handles from there on are datatypes.
const FIRST: u64 = 0x200;
/// From here on the size is in the handle: its logarithm in bits 5–3.
const FIXED_SIZE: u64 = 0x240;

/// Sizes from [`FIRST`] to [`FIXED_SIZE`]; 255: no such datatype.
const SIZES: [u8; 64] = [
    NO, 8, 8, 8, NO, NO, NO, 1, // null, AINT, COUNT, OFFSET, -, -, -, PACKED
    2, 4, 8, 8, 2, 4, 8, 8, // SHORT, INT, LONG, LONG_LONG, the same unsigned
    4, NO, 8, 8, 8, NO, 16, 16, // FLOAT, -, C_ and CXX_FLOAT_COMPLEX, DOUBLE, -, C_ and CXX_DOUBLE_COMPLEX
    4, 4, 4, 8, 8, 16, 1, NO, // LOGICAL, INTEGER, REAL, COMPLEX, DOUBLE_PRECISION, DOUBLE_COMPLEX, CHARACTER, -
    16, NO, NO, NO, 32, 32, NO, NO, // LONG_DOUBLE, -, -, -, C_ and CXX_LONG_DOUBLE_COMPLEX
    8, 12, 12, 8, 6, 20, NO, NO, // FLOAT_INT, DOUBLE_INT, LONG_INT, 2INT, SHORT_INT, LONG_DOUBLE_INT
    8, 16, 8, NO, NO, NO, NO, NO, // 2REAL, 2DOUBLE_PRECISION, 2INTEGER
    1, 1, NO, NO, 4, NO, NO, NO, // C_BOOL, CXX_BOOL, -, -, WCHAR
];
const NO: u8 = u8::MAX;

/// Bytes of data in one element of a predefined datatype; `None`: there is no such datatype.
#[inline(always)]
pub fn abi_datatype_size(handle: u64) -> Option<u64> {
    if !(FIRST..FIRST + 256).contains(&handle) {
        return None;
    }
    if handle >= FIXED_SIZE {
        return Some(1 << (handle >> 3 & 7));
    }
    match SIZES.get((handle & 63) as usize) {
        None | Some(&NO) => None,
        Some(&size) => Some(size as u64),
    }
}
