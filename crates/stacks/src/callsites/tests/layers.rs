//! Calls through the language layers of the installed MPIs, and of programs that have them linked in.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use mpiprobe_discover::{Process, fake::FakeProc};
use mpiprobe_tests::Mpi;

use super::{
    super::{AddressMap, Layer, LayerCall, Module, ModuleAddress, Modules, calls_of_layer, is_layer, layer_frame_at},
    program::Build,
};

/// The module of a file that nobody has mapped.
fn module(file: &Path) -> Arc<Module> {
    let fake = FakeProc::new();
    fake.process(7, 0, "ring", &["ring"]);
    fake.map(7, file);
    let mut modules = Modules::default();
    let process = Process::open(&fake.root(), 7).unwrap();
    let mut map = AddressMap::of(&process, &mut modules).unwrap();
    map.locate(0x1001, None, &mut modules).module
}

fn installed(name: &str) -> PathBuf {
    let output = Command::new("gcc").arg(format!("-print-file-name={name}")).output().unwrap();
    let path = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    path.canonicalize().unwrap_or_else(|error| panic!("{name} is needed for this test: {error}"))
}

#[test]
fn installed_layers_are_told_from_what_they_call() {
    for mpi in Mpi::ALL {
        for library in mpi.fortran_libraries() {
            assert_eq!(module(&installed(library)).layer(), Some(Layer::Fortran), "{library}");
        }
        assert_eq!(module(&installed(mpi.c_library())).layer(), None, "{mpi}");
    }
    for library in ["libmpi_cxx.so.40", "libmpichcxx.so.12"] {
        assert_eq!(module(&installed(library)).layer(), Some(Layer::Cxx), "{library}");
    }
    assert_eq!(module(&installed("libc.so.6")).layer(), None);
}

#[test]
fn a_layer_is_known_by_what_it_defines() {
    let layer = |source: &str| {
        let build = Build::new("gcc", ("prog.c", source), &["-shared", "-fPIC"]);
        let module = module(&build.path("prog"));
        assert_eq!(is_layer(&module), module.layer().is_some());
        module.layer()
    };
    let mpi4py = "int MPI_Init_thread(); int PyInit_MPI(void) { return MPI_Init_thread(); }";
    assert_eq!(layer(mpi4py), Some(Layer::Python));
    assert_eq!(layer("int PyInit_MPI(void) { return 0; }"), None);
    let fortran = "int PMPI_Init(); void mpi_init_(void) { PMPI_Init(); }";
    assert_eq!(layer(fortran), Some(Layer::Fortran));
    // A tool that intercepts C and Fortran calls.
    assert_eq!(
        layer("int PMPI_Init(); int MPI_Init() { return PMPI_Init(); } void mpi_init_(void) { MPI_Init(); }"),
        None
    );
    assert_eq!(layer("int MPI_Init(); void solve_(void) { MPI_Init(); }"), None);
}

/// One read at a known distance leads from every call of the Fortran libraries to the caller's return address.
#[test]
fn fortran_layers_have_frames_of_constant_size() {
    for mpi in Mpi::ALL {
        for library in mpi.fortran_libraries() {
            let module = module(&installed(library));
            let calls = calls_of_layer(&module);
            let constant = calls.iter().filter(|call| call.frame.to_cfa != 0).count();
            assert!(constant > 1000 && constant == calls.len(), "{library}: {constant} of {}", calls.len());
            assert!(calls.is_sorted_by(|a, b| a.offset < b.offset));
            let at = |call: &LayerCall| ModuleAddress { module: Arc::clone(&module), offset: call.offset };
            for call in &calls {
                let found = layer_frame_at(&at(call)).unwrap();
                assert_eq!((found.to_cfa, found.to_frame_pointer), (call.frame.to_cfa, call.frame.to_frame_pointer));
            }
        }
        assert_eq!(calls_of_layer(&module(&installed(mpi.c_library()))), []);
    }
}
