//! Which symbols are found, and which are turned down and why.

use super::{super::*, files::*};

fn resolve(symbols: &[Symbol]) -> Symbols<()> {
    let image = Image::new(symbols).build();
    Library::parse(&image).unwrap().resolve(|name| name.contains("MPI_").then_some(())).unwrap()
}

fn names(function: &Function<()>) -> Vec<&str> {
    function.aliases.iter().map(|alias| alias.name.as_str()).collect()
}

#[test]
fn a_file_tells_its_names_and_whether_it_is_stripped() {
    let mut image = Image::new(&[]);
    let bytes = image.build();
    let library = Library::parse(&bytes).unwrap();
    assert_eq!(library.soname(), Some("libfake.so.1"));
    assert_eq!(library.build_id(), Some(BUILD_ID_TEXT));
    assert!(library.is_stripped());
    image.symbols.push(function("main", TEXT, 1));
    assert!(!Library::parse(&image.build()).unwrap().is_stripped());
}

#[test]
fn names_of_one_address_are_one_function() {
    let found = resolve(&[
        function("PMPI_Send", TEXT + 16, 32),
        function("MPI_Recv", TEXT + 64, 8),
        function("MPI_Send", TEXT + 16, 32),
        function("unrelated", TEXT + 128, 8),
    ]);
    let [send, recv] = &found.functions[..] else { panic!("{found:?}") };
    assert_eq!(names(send), ["MPI_Send", "PMPI_Send"]);
    assert_eq!(
        (send.name(), send.address, send.file_offset, send.size),
        ("MPI_Send", TEXT + 16, TEXT + 16 - OFFSET, 32)
    );
    assert_eq!(names(recv), ["MPI_Recv"]);
    assert_eq!(found.rejected, []);
}

#[test]
fn both_symbol_tables_are_searched_and_versions_cut_off() {
    let mut image = Image::new(&[function("MPI_Send", TEXT, 8)]);
    image.symbols = vec![
        function("MPI_Send@@LIBMPI_2", TEXT, 8),
        function("MPI_Send@LIBMPI_1", TEXT + 32, 8),
        function("MPI_Hidden", TEXT + 64, 8),
    ];
    let bytes = image.build();
    let found = Library::parse(&bytes).unwrap().resolve(|name| name.starts_with("MPI_").then_some(())).unwrap();
    let found: Vec<_> = found.functions.iter().map(|function| (names(function), function.address - TEXT)).collect();
    assert_eq!(found, [(vec!["MPI_Send"], 0), (vec!["MPI_Send"], 32), (vec!["MPI_Hidden"], 64)]);
}

#[test]
fn a_function_ends_where_the_next_one_begins() {
    let found = resolve(&[
        function("MPI_Send", TEXT, 64),
        function("inner", TEXT + 10, 4),
        function("MPI_Recv", TEXT + 100, 64),
    ]);
    assert_eq!(found.functions.iter().map(|function| function.size).collect::<Vec<_>>(), [10, 64]);
}

#[test]
fn a_function_ends_where_the_files_code_ends() {
    let found = resolve(&[function("MPI_Send", RODATA - 3, u64::MAX)]);
    assert_eq!(found.functions[0].size, 3);
}

#[test]
fn what_cannot_be_probed_is_rejected_with_its_reason() {
    let at = |address| function("MPI_Send", address, 8);
    let cases = [
        (Symbol { section: UNDEFINED, ..at(0) }, Rejection::Imported),
        // A position-dependent executable gives an imported function the address of its PLT entry.
        (Symbol { section: UNDEFINED, ..at(TEXT) }, Rejection::Imported),
        (Symbol { section: ABSOLUTE, ..at(TEXT) }, Rejection::Absolute),
        (Symbol { kind: IFUNC, ..at(TEXT) }, Rejection::IndirectFunction),
        (Symbol { kind: OBJECT, ..at(TEXT) }, Rejection::NotAFunction),
        (Symbol { kind: 0, ..at(TEXT) }, Rejection::NotAFunction),
        (Symbol { size: 0, ..at(TEXT) }, Rejection::NoSize),
        (at(OFFSET - 1), Rejection::Unmapped),
        (at(u64::MAX), Rejection::Unmapped),
        (at(RODATA), Rejection::NotExecutable),
        (at(DATA), Rejection::NotExecutable),
        (at(BSS), Rejection::NotExecutable),
    ];
    for (symbol, reason) in cases {
        let found = resolve(&[symbol]);
        assert_eq!(found.functions, [], "{reason:?}");
        let expected = Rejected { name: "MPI_Send".to_owned(), key: (), reason };
        assert_eq!(found.rejected, [expected], "{reason}");
    }
}

#[test]
fn code_that_the_file_lacks_is_rejected() {
    let mut bytes = Image::new(&[function("MPI_Send", TEXT, 8)]).build();
    // The code segment's size in the file, cut to before the code.
    bytes[64 + 32..64 + 40].copy_from_slice(&0x400_u64.to_le_bytes());
    let found = Library::parse(&bytes).unwrap().resolve(|name| (name == "MPI_Send").then_some(())).unwrap();
    assert_eq!(found.rejected[0].reason, Rejection::NotInFile);
}

#[test]
fn a_library_is_known_by_what_it_defines() {
    let defined = |name| function(name, TEXT, 8);
    let imported = |name| Symbol { section: UNDEFINED, ..defined(name) };
    let role = |symbols: &[Symbol]| Library::parse(&Image::new(symbols).build()).unwrap().mpi_role();
    let c = [defined("MPI_Init"), defined("MPI_Send")];
    assert_eq!(role(&c), MpiRole::CLibrary);
    assert_eq!(role(&[&c[..], &[defined("PMPI_Init"), defined("PMPI_Send")]].concat()), MpiRole::CLibrary);
    assert_eq!(role(&[&c[..], &[imported("PMPI_Send")]].concat()), MpiRole::Interposer);
    // An application, and the Fortran library of Open MPI.
    assert_eq!(role(&[imported("MPI_Init"), imported("MPI_Send")]), MpiRole::None);
    assert_eq!(role(&[defined("MPI_Send_f"), imported("PMPI_Send"), imported("PMPI_Init")]), MpiRole::None);
    assert_eq!(role(&[defined("MPI_Init")]), MpiRole::None);
}

#[test]
fn implementations_are_known_by_what_they_export() {
    let data = |name, size| Symbol { kind: OBJECT, ..function(name, RODATA, size) };
    let implementation = |soname, constants: &[u8], symbols: &[Symbol]| {
        let image = Image { soname, constants: constants.to_vec(), ..Image::new(symbols) };
        let implementation = Implementation::of(&Library::parse(&image.build()).unwrap());
        (implementation.family, implementation.to_string())
    };
    let openmpi = [data("ompi_mpi_comm_world", 8), data("ompi_version_string", 6)];
    assert_eq!(implementation("libmpi.so.40", b"5.0.3\0", &openmpi), (Family::OpenMpi, "Open MPI 5.0.3".into()));
    assert_eq!(implementation("libmpi.so.40", b"\x1b[2J\0", &openmpi), (Family::OpenMpi, "Open MPI".into()));
    let mpich = [data("MPII_Version_string", 6)];
    assert_eq!(implementation("libmpich.so.12", b"4.2.1\0", &mpich), (Family::Mpich, "MPICH 4.2.1".into()));
    let intel = [data("MPIR_F08_MPI_STATUS_IGNORE_OBJ", 8)];
    let text = b"\0Intel(R) MPI Library %s\0Intel(R) MPI Library 2021.18 for Linux* OS\0";
    assert_eq!(implementation("libmpi.so.12", text, &intel), (Family::Mpich, "Intel MPI 2021.18".into()));
    assert_eq!(implementation("libmpi.so.12", b"", &intel), (Family::Mpich, "MPICH".into()));
    assert_eq!(implementation("libmpi_abi.so.1", b"", &intel), (Family::StandardAbi, "MPICH (standard ABI)".into()));
    let expected = (Family::StandardAbi, "Intel MPI (standard ABI) 2021.18".into());
    assert_eq!(implementation("libmpi_abi.so.1", text, &[]), expected);
    assert_eq!(implementation("libmpi.so.1", b"", &[]), (Family::Unknown, "unknown MPI".into()));
}
