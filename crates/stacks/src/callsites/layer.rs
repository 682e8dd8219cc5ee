//! Code between the user's program and MPI's C functions, known by what it defines, never by its file's name.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use mpiprobe_common::{LayerFrame, layer::bound_function};
use mpiprobe_elf::SymbolTableKind;
use mpiprobe_functions::{FunctionId, by_name};

use super::{image::Image, symbols::Symbols};

/// For whom a layer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// `mpif.h`, `use mpi`, `use mpi_f08`: procedures that call the C functions.
    Fortran,
    /// The MPI-2 C++ bindings, where they are not inlined.
    Cxx,
    /// mpi4py's extension module. What calls it is the interpreter, whatever the user's program is.
    Python,
}

impl Layer {
    /// Whether a caller on the stack is the user's code. Of the interpreter, no caller is.
    pub fn is_called_by_user(self) -> bool {
        self != Self::Python
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fortran => "Fortran",
            Self::Cxx => "C++",
            Self::Python => "Python",
        })
    }
}

/// Which code of one file is a layer.
#[derive(Debug, Default)]
pub(super) struct Layers {
    /// A library that is nothing else.
    pub(super) whole: Option<Layer>,
    /// Single functions, in ascending order: of statically linked programs, and inline functions of the C++ bindings.
    pub(super) functions: Vec<(Range<u64>, Layer)>,
}

/// Where in one file a layer's code is.
#[derive(Debug, Clone, Copy)]
pub(super) enum LayerCode<'a> {
    /// Wherever there is code.
    Whole,
    Functions(&'a Layers),
}

impl LayerCode<'_> {
    pub(super) fn contains(self, address: u64) -> bool {
        match self {
            Self::Whole => true,
            Self::Functions(layers) => layers.function(address).is_some(),
        }
    }

    /// From the beginning of the first function to the end of the last.
    pub(super) fn extent(self) -> Range<u64> {
        match self {
            Self::Whole => 0..u64::MAX,
            Self::Functions(Layers { functions, .. }) => {
                let start = functions.first().map_or(0, |(range, _)| range.start);
                start..functions.iter().map(|(range, _)| range.end).max().unwrap_or(start)
            }
        }
    }
}

impl Layers {
    pub(super) fn of(image: &Image) -> Self {
        let exported = Symbols::read_dynamic(image);
        let whole = if image.is_program() { None } else { whole(image, &exported) };
        if whole.is_some() {
            return Self { whole, functions: Vec::new() };
        }
        // A program may have MPI linked in; a library with a layer in it calls MPI, and its symbols need not be read otherwise.
        if !image.is_program() && !imports(image, &[b"\0MPI_"]) {
            return Self::default();
        }
        let all = Symbols::read(std::iter::once(image));
        let symbols = all.functions().chain(exported.functions());
        let mut functions: Vec<_> = symbols.filter_map(|(name, range)| Some((range, layer_of(name)?))).collect();
        functions.sort_by_key(|(range, _)| range.start);
        functions.dedup();
        Self { whole, functions }
    }

    pub(super) fn function(&self, address: u64) -> Option<Layer> {
        let after = self.functions.partition_point(|(range, _)| range.start <= address);
        let (range, layer) = self.functions.get(after.checked_sub(1)?)?;
        range.contains(&address).then_some(*layer)
    }
}

/// Debian's Open MPI and MPICH, Intel MPI: the Fortran libraries define their procedures and none of the C functions. Tools
/// that intercept both define both, and are no layer.
fn whole(image: &Image, exported: &Symbols) -> Option<Layer> {
    const INIT: [&[u8]; 2] = [b"mpi_init_", b"mpi_init_f08_"];
    /// Open MPI's `MPI::Comm::Comm()` and MPICH's `MPI::Get_version()`: unlike most of those headers, no inline functions.
    const CXX: [&[u8]; 2] = [b"_ZN3MPI4CommC2Ev", b"_ZN3MPI11Get_versionERiS0_"];
    let (mut c, mut fortran, mut cxx, mut python) = (false, false, false, false);
    for (name, _) in exported.functions() {
        c |= name == b"MPI_Init" || name == b"PMPI_Init";
        fortran |= INIT.contains(&name);
        cxx |= CXX.contains(&name);
        python |= name == b"PyInit_MPI";
    }
    match () {
        () if c => None,
        () if fortran => Some(Layer::Fortran),
        () if cxx => Some(Layer::Cxx),
        () if python && imports(image, &[b"\0MPI_Init_thread\0", b"\0MPI_Init\0"]) => Some(Layer::Python),
        () => None,
    }
}

/// Whether one of these is among the names of its dynamic symbols.
fn imports(image: &Image, wanted: &[&[u8]]) -> bool {
    let names = image.symbols(SymbolTableKind::Dynamic).map(|(_, names)| names).unwrap_or_default();
    wanted.iter().any(|name| memchr::memmem::find(&names, name).is_some())
}

fn layer_of(symbol: &[u8]) -> Option<Layer> {
    if symbol.starts_with(b"_ZN3MPI") || symbol.starts_with(b"_ZNK3MPI") {
        return Some(Layer::Cxx);
    }
    procedure(symbol).map(|_| Layer::Fortran)
}

/// The function whose Fortran binding a symbol is, or a part of it.
fn procedure(symbol: &[u8]) -> Option<FunctionId> {
    if let Some(id) = std::str::from_utf8(symbol).ok().and_then(|symbol| FORTRAN.get(symbol)) {
        return Some(*id);
    }
    // What Open MPI and MPICH put between a Fortran procedure and the C function.
    bound_function(symbol).and_then(|name| BY_LOWER_NAME.get(&name.to_ascii_lowercase())).copied()
}

/// Which of the calls that a function of a layer makes are the layer's own, by [`LayerFrame::flags`] and [`LayerFrame::question`].
pub(super) fn own_calls(layer: Layer, symbol: Option<&[u8]>) -> LayerFrame {
    if layer != Layer::Fortran {
        return LayerFrame::default();
    }
    LayerFrame::asked_by(symbol.and_then(procedure).map(|id| id.function().descriptor()).as_ref())
}

/// The functions by their names without `MPI_`, in lower case.
static BY_LOWER_NAME: LazyLock<HashMap<Vec<u8>, FunctionId>> = LazyLock::new(|| {
    let name = |id: FunctionId| Some((id.function().name.strip_prefix("MPI_")?.to_ascii_lowercase().into_bytes(), id));
    FunctionId::all().filter_map(name).collect()
});

/// Every name under which a Fortran procedure of MPI may be exported, but those that are the C function's.
static FORTRAN: LazyLock<HashMap<String, FunctionId>> = LazyLock::new(|| {
    let symbols = FunctionId::all()
        .flat_map(|id| id.function().fortran_symbols().map(move |name| (name.as_str().to_owned(), id)));
    symbols.filter(|(name, _)| by_name(name).is_none()).collect()
});

#[cfg(test)]
mod tests {
    use mpiprobe_common::layer::layer_flags;

    use super::*;

    #[test]
    fn functions_of_layers_are_known_by_their_names() {
        for name in [
            "mpi_send_",
            "pmpi_send__",
            "mpi_send_f08_",
            "mpi_send_f08ts_",
            "MPI_SEND",
            "ompi_send_f",
            "MPIR_Send_cdesc",
        ] {
            assert_eq!(layer_of(name.as_bytes()), Some(Layer::Fortran), "{name}");
        }
        assert_eq!(layer_of(b"_ZNK3MPI4Comm4SendEPKviRKNS_8DatatypeEii"), Some(Layer::Cxx));
        let own = |name: &str| own_calls(Layer::Fortran, Some(name.as_bytes()));
        let flags = u32::from(layer_flags::OWN_CONVERSIONS);
        let conversions = LayerFrame { flags, ..LayerFrame::default() };
        for name in ["mpi_alltoallw_f08ts_", "ompi_gatherv_f", "MPIR_Gatherv_cdesc"] {
            let all = flags | u32::from(layer_flags::OWN_QUERIES);
            assert_eq!(own(name), LayerFrame { flags: all, ..conversions }, "{name}");
        }
        // The large-count procedure is the same question.
        let of = |name: &str| u32::from(by_name(name).map_or(0, FunctionId::number)) + 1;
        for (name, question) in [
            ("mpi_comm_size_", of("MPI_Comm_size")),
            ("mpi_get_count_f08_large_", of("MPI_Get_count")),
            ("MPI_Get_count_c_f08", of("MPI_Get_count")),
        ] {
            assert_eq!(own(name), LayerFrame { question, ..conversions }, "{name}");
        }
        for name in ["ompi_type_ub_f", "unknown"] {
            assert_eq!(own(name), conversions, "{name}");
        }
        assert_eq!(
            (own_calls(Layer::Fortran, None), own_calls(Layer::Cxx, None)),
            (conversions, LayerFrame::default())
        );
        for name in ["MPI_Send", "PMPI_Send", "mpi_exchange_", "solve_", "_ZN3MPX4SendEv", "MPIR_Send_impl", "\u{fe}"] {
            assert_eq!(layer_of(name.as_bytes()), None, "{name}");
        }
    }
}
