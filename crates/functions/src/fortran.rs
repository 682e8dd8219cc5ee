//! What linkers call the Fortran bindings.

use core::fmt;
use core::ops::Deref;

use crate::Function;

/// Longest name of a function, with the longest addition.
const CAPACITY: usize = 64;

/// A symbol's name, kept in place.
#[derive(Clone, Copy)]
pub struct SymbolName {
    bytes: [u8; CAPACITY],
    length: usize,
}

/// How compilers and libraries spell a binding.
#[derive(Clone, Copy)]
struct Spelling {
    upper: bool,
    suffix: &'static str,
}

/// `mpif.h` and the `mpi` module: no underscore, one (gfortran, ifort), two (g77) or upper case (Cray, Windows).
const F90: &[Spelling] = &[lower(""), lower("_"), lower("__"), Spelling { upper: true, suffix: "" }];
/// `mpi_f08`: with choice buffers passed by address, or by descriptor as TS 29113 has it.
const F08: &[Spelling] = &[lower("_f08_"), lower("_f08ts_")];
/// The same of large-count variants, after the name of the ordinary function (MPICH).
const F08_LARGE: &[Spelling] = &[lower("_f08_large_"), lower("_f08ts_large_")];

const fn lower(suffix: &'static str) -> Spelling {
    Spelling { upper: false, suffix }
}

impl Function {
    /// Symbols under which Fortran libraries may export this function: `mpi_send_`, `MPI_SEND`, `mpi_send_f08_` and so on,
    /// each followed by its form with `p`. Empty for functions without a Fortran binding.
    pub fn fortran_symbols(&self) -> impl Iterator<Item = SymbolName> + use<> {
        let base = self.large_count_of().map_or(self.name, |ordinary| ordinary.function().name);
        let f90 = if self.fortran.f90 { F90 } else { &[] };
        let f08 = match (self.fortran.f08, self.is_large_count()) {
            (false, _) => &[][..],
            (true, false) => F08,
            (true, true) => F08_LARGE,
        };
        f90.iter().chain(f08).flat_map(move |&spelling| ["", "p"].map(|prefix| spell(prefix, base, spelling)))
    }
}

fn spell(prefix: &str, name: &str, spelling: Spelling) -> SymbolName {
    let mut symbol = SymbolName { bytes: [0; CAPACITY], length: 0 };
    for (part, upper) in [(prefix, spelling.upper), (name, spelling.upper), (spelling.suffix, false)] {
        for byte in part.bytes() {
            if let Some(place) = symbol.bytes.get_mut(symbol.length) {
                *place = if upper { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() };
                symbol.length += 1;
            }
        }
    }
    symbol
}

impl SymbolName {
    pub fn as_str(&self) -> &str {
        self.bytes.get(..self.length).and_then(|bytes| str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

impl Deref for SymbolName {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for SymbolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for SymbolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
