//! The MPI libraries and headers of this machine.
#![allow(dead_code, reason = "each test uses its part")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use object::{Object as _, ObjectSymbol as _, SymbolKind};

/// Where distributions and vendors put MPI.
const LIBRARY_FOLDERS: &[&str] = &[
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib64/openmpi/lib",
    "/usr/lib64/mpich/lib",
    "/usr/local/lib",
    "/opt/intel/oneapi/mpi/latest/lib",
];

pub(crate) struct Library {
    pub(crate) path: PathBuf,
    /// Names of the functions it defines for others.
    pub(crate) functions: BTreeSet<String>,
}

impl Library {
    pub(crate) fn defines(&self, name: &str) -> bool {
        self.functions.contains(name)
    }
}

/// The libraries that implement the C binding, recognised by what they define.
pub(crate) fn c_libraries() -> Vec<Library> {
    let found = libraries(|library| library.defines("MPI_Init") && library.defines("MPI_Send"));
    report("C library", found.iter().map(|library| library.path.as_path()));
    found
}

/// The libraries that implement a Fortran binding and not the C one.
pub(crate) fn fortran_libraries() -> Vec<Library> {
    let is_fortran = |library: &Library| {
        let any = ["mpi_send_", "mpi_send_f08_", "mpi_send_f08ts_"].iter().any(|name| library.defines(name));
        any && !library.defines("MPI_Send")
    };
    let found = libraries(is_fortran);
    report("Fortran library", found.iter().map(|library| library.path.as_path()));
    found
}

/// Headers with prototypes of the C binding; those of one implementation are one item.
pub(crate) fn headers() -> Vec<Vec<PathBuf>> {
    let candidates: &[&[&str]] = &[
        &["/usr/lib/x86_64-linux-gnu/openmpi/include/mpi.h"],
        &["/usr/lib/aarch64-linux-gnu/openmpi/include/mpi.h"],
        &["/usr/include/x86_64-linux-gnu/mpich/mpi_proto.h", "/usr/include/x86_64-linux-gnu/mpich/mpio.h"],
        &["/usr/include/aarch64-linux-gnu/mpich/mpi_proto.h", "/usr/include/aarch64-linux-gnu/mpich/mpio.h"],
    ];
    let found: Vec<Vec<PathBuf>> = candidates
        .iter()
        .map(|paths| paths.iter().map(PathBuf::from).collect::<Vec<_>>())
        .filter(|paths| paths.iter().all(|path| path.exists()))
        .collect();
    report("header", found.iter().flatten().map(PathBuf::as_path));
    found
}

/// Says what a test looks at. Automatic tests must look at something, or they would prove nothing.
fn report<'a>(what: &str, paths: impl Iterator<Item = &'a Path>) {
    let paths: Vec<_> = paths.collect();
    println!("{what}: {paths:?}");
    let is_automatic = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(
        !paths.is_empty() || !is_automatic,
        "no MPI {what} is installed: install Open MPI and MPICH with their -dev packages"
    );
}

fn libraries(is_wanted: impl Fn(&Library) -> bool) -> Vec<Library> {
    let mut paths = BTreeSet::new();
    for folder in LIBRARY_FOLDERS {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for entry in entries {
            let Ok(entry) = entry else { continue };
            let name = entry.file_name().into_string().unwrap_or_default();
            // Links lead several names to one file.
            if name.starts_with("libmpi") && name.contains(".so") {
                paths.extend(entry.path().canonicalize());
            }
        }
    }
    paths.into_iter().filter_map(read).filter(is_wanted).collect()
}

/// Nothing if the file is no readable ELF file: `libmpi.so` may be a linker script.
fn read(path: PathBuf) -> Option<Library> {
    let data = std::fs::read(&path).ok()?;
    let file = object::File::parse(&*data).ok()?;
    let is_function = |symbol: &object::Symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text;
    let functions =
        file.dynamic_symbols().filter(is_function).filter_map(|symbol| Some(symbol.name().ok()?.to_owned())).collect();
    Some(Library { path, functions })
}
