//! Calls through the language layers of the installed MPIs, and of programs that have them linked in.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use iced_x86::{Decoder, DecoderOptions, FlowControl};
use mpiprobe_tests::{Language, Mpi};
use object::elf;

use super::super::symbols::Symbols;
use super::super::{AddressMap, Layer, Module, ModuleAddress, Modules, frame_size_at, is_layer};
use super::program::Build;
use crate::discover::Process;
use crate::discover::fake::FakeProc;

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

/// Most of what the layers call can be told the caller of the layer by one word at a constant distance.
#[test]
fn fortran_layers_have_frames_of_constant_size() {
    for mpi in Mpi::ALL {
        for library in mpi.fortran_libraries() {
            let module = module(&installed(library));
            let image = module.image.as_ref().unwrap();
            let (mut calls, mut constant) = (0_u32, 0_u32);
            let symbols = Symbols::read_dynamic(image);
            for (name, range) in symbols.functions().filter(|(name, _)| name.ends_with(b"_")) {
                assert!(image.symbols(elf::SHT_DYNSYM).is_some() && !name.is_empty());
                let (offset, _) = image.segments().offset_of(range.start).unwrap();
                let code = image.bytes(offset, range.end - range.start).unwrap();
                for instruction in Decoder::with_ip(64, &code, range.start, DecoderOptions::NONE) {
                    if matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
                        calls += 1;
                        let at = ModuleAddress { module: Arc::clone(&module), offset: instruction.next_ip() };
                        constant += u32::from(frame_size_at(&at).is_some());
                    }
                }
            }
            println!("{library}: {constant} of {calls}");
            assert!(calls > 1000 && constant * 100 >= calls * 95, "{library}: {constant} of {calls}");
        }
    }
    assert_eq!(Mpi::OpenMpi.compiler(Language::Fortran).as_deref(), Some("mpifort.openmpi"));
}
