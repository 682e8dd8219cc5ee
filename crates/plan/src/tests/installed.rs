//! The MPI libraries of this machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{super::*, plan_mpi};

const OPEN_MPI: &str = "libmpi.so.40";
const MPICH: &str = "libmpich.so.12";

/// The library, wherever distributions put it.
fn installed(name: &str) -> (PathBuf, Vec<u8>) {
    let folders =
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib64/openmpi/lib", "/usr/lib64/mpich/lib", "/usr/lib"];
    let Some(path) = folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists()) else {
        panic!(
            "{name} is not installed (looked in {folders:?}): run `cargo xtask setup` or install libopenmpi3 and libmpich12"
        );
    };
    let bytes = std::fs::read(&path).unwrap();
    (path, bytes)
}

fn planned<'plan>(plan: &'plan Plan<()>, name: &str) -> &'plan PlannedFunction<()> {
    let has_name = |planned: &&PlannedFunction<()>| planned.function.aliases.iter().any(|alias| alias.name == name);
    plan.functions.iter().find(has_name).unwrap_or_else(|| panic!("no {name}"))
}

fn is_version(text: Option<&str>) -> bool {
    text.is_some_and(|text| text.split('.').count() >= 2 && text.starts_with(|c: char| c.is_ascii_digit()))
}

#[test]
fn open_mpi_is_recognised() {
    let (_, bytes) = installed(OPEN_MPI);
    let library = Library::parse(&bytes).unwrap();
    assert!(library.is_mpi_c_library());
    assert_eq!(library.soname(), Some(OPEN_MPI));
    let implementation = Implementation::of(&library);
    assert_eq!((implementation.family, implementation.name), (Family::OpenMpi, "Open MPI"));
    assert!(is_version(implementation.version.as_deref()), "{implementation:?}");
    assert_eq!(implementation.standard, Some(StandardVersion { major: 3, minor: 1 }));
}

#[test]
fn mpich_is_recognised() {
    let (_, bytes) = installed(MPICH);
    let library = Library::parse(&bytes).unwrap();
    assert!(library.is_mpi_c_library());
    let implementation = Implementation::of(&library);
    assert_eq!((implementation.family, implementation.name), (Family::Mpich, "MPICH"));
    assert!(is_version(implementation.version.as_deref()), "{implementation:?}");
    assert!(implementation.standard.is_some_and(|standard| standard.major >= 3), "{implementation:?}");
}

#[test]
fn the_much_called_functions_of_open_mpi_are_not_slow() {
    let (_, bytes) = installed(OPEN_MPI);
    let library = Library::parse(&bytes).unwrap();
    let plan = plan_mpi(&library);
    for name in
        ["MPI_Send", "MPI_Recv", "MPI_Wait", "MPI_Test", "MPI_Waitall", "MPI_Allreduce", "MPI_Init", "MPI_Finalize"]
    {
        let kind = planned(&plan, name).site.kind;
        assert!(!matches!(kind, SiteKind::Slow { .. }), "{name}: {kind:?}");
    }
    // Of Debian 12's build it is known which.
    if library.build_id() == Some("2a2f4d8c4f8dc5dcc63f6789a50f3ab49f61e168") {
        assert_eq!(planned(&plan, "MPI_Test").site.kind, SiteKind::Moved { by: 7 });
        let census = plan.census();
        assert_eq!((census.fast, census.moved, census.slow.len(), census.unprobeable), (344, 61, 10, 0));
        let hot: Vec<_> = census.slow.iter().filter(|slow| !slow.name.starts_with("MPI_T_")).collect();
        let hot: Vec<_> = hot.iter().map(|slow| slow.name.as_str()).collect();
        assert_eq!(hot, ["MPI_Keyval_free", "MPI_Pcontrol", "MPI_Wtime", "MPI_Wtick"]);
        // It has one argument; the register overwritten would carry the second.
        let one = plan_for(&library, "MPI_Keyval_free", 1);
        assert!(matches!(one.functions[0].site.kind, SiteKind::Moved { .. }), "{one:?}");
    }
}

#[test]
fn the_much_called_functions_of_mpich_are_not_slow() {
    let (_, bytes) = installed(MPICH);
    let library = Library::parse(&bytes).unwrap();
    let plan = plan_mpi(&library);
    for name in
        ["MPI_Send", "MPI_Recv", "MPI_Wait", "MPI_Test", "MPI_Waitall", "MPI_Allreduce", "MPI_Init", "MPI_Finalize"]
    {
        let kind = planned(&plan, name).site.kind;
        assert!(!matches!(kind, SiteKind::Slow { .. }), "{name}: {kind:?}");
    }
    if library.build_id() == Some("15ff29242f0f6336eb8096d953e03de259b65bb4") {
        let census = plan.census();
        assert_eq!((census.fast, census.moved, census.slow.len(), census.unprobeable), (506, 70, 43, 0));
        // It has three arguments; the fourth register is free.
        let three = plan_for(&library, "MPI_Comm_set_attr", 3);
        assert!(matches!(three.functions[0].site.kind, SiteKind::Moved { .. }), "{three:?}");
    }
}

fn plan_for(library: &Library<'_>, wanted: &str, arguments: usize) -> Plan<()> {
    plan(library, |name| (name == wanted).then_some(()), |()| arguments).unwrap()
}

/// Invariant ONE-ADDRESS.
#[test]
fn mpi_and_pmpi_names_are_one_function() {
    for name in [OPEN_MPI, MPICH] {
        let (_, bytes) = installed(name);
        let plan = plan_mpi(&Library::parse(&bytes).unwrap());
        let send = &planned(&plan, "MPI_Send").function;
        let names: Vec<_> = send.aliases.iter().map(|alias| alias.name.as_str()).collect();
        assert_eq!(names, ["MPI_Send", "PMPI_Send"], "{name}");
    }
}

/// Invariant ONE-ADDRESS.
#[test]
fn fortran_libraries_are_not_taken_for_the_c_library() {
    for name in ["libmpi_mpifh.so.40", "libmpichfort.so.12"] {
        let (_, bytes) = installed(name);
        assert_eq!(Library::parse(&bytes).unwrap().mpi_role(), MpiRole::None, "{name}");
    }
}

/// A second opinion on every instruction boundary.
/// Invariant WHOLE-INSTRUCTIONS.
#[test]
fn objdump_sees_an_instruction_at_every_site() {
    for name in [OPEN_MPI, MPICH] {
        let (path, bytes) = installed(name);
        let plan = plan_mpi(&Library::parse(&bytes).unwrap());
        let instructions = disassemble(&path, &plan);
        for planned in &plan.functions {
            let function = &planned.function;
            let site = function.address + (planned.site.offset - function.file_offset);
            let found = instructions.get(&(site, true)).or_else(|| instructions.get(&(site, false)));
            let Some((_, emulated)) = found else {
                panic!("{name}: {} has its site at {site:#x}, inside an instruction", function.name())
            };
            assert_eq!(*emulated, !matches!(planned.site.kind, SiteKind::Slow { .. }), "{name}: {}", function.name());
        }
    }
}

/// Addresses of all instructions that objdump sees in the functions, and whether by their names they are ones that the kernel
/// emulates.
fn disassemble(library: &Path, plan: &Plan<()>) -> BTreeSet<(u64, bool)> {
    /// Functions this near to each other are disassembled at once.
    const NEAR: u64 = 64 << 10;
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for Function { address, size, .. } in plan.functions.iter().map(|planned| &planned.function) {
        match ranges.last_mut() {
            Some((_, end)) if *address < *end + NEAR => *end = address + size,
            _ => ranges.push((*address, address + size)),
        }
    }
    ranges.into_iter().flat_map(|(start, end)| disassemble_range(library, start, end)).collect()
}

fn disassemble_range(library: &Path, start: u64, end: u64) -> Vec<(u64, bool)> {
    let objdump = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn", "-M", "intel"])
        .args([format!("--start-address={start:#x}"), format!("--stop-address={end:#x}")])
        .arg(library)
        .output()
        .expect("objdump is needed for this test: install binutils");
    assert!(objdump.status.success(), "{}", String::from_utf8_lossy(&objdump.stderr));
    String::from_utf8_lossy(&objdump.stdout).lines().filter_map(instruction).collect()
}

/// A line of address, colon, tab and text, such as `7d3e7:`, `push r12`, is (0x7d3e7, true).
fn instruction(line: &str) -> Option<(u64, bool)> {
    let (address, text) = line.split_once(":\t")?;
    let address = u64::from_str_radix(address.trim(), 16).ok()?;
    let mut words = text.split_whitespace();
    let (name, operand) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let direct = operand.starts_with(|c: char| c.is_ascii_hexdigit()) && u64::from_str_radix(operand, 16).is_ok();
    let emulated = match name {
        "push" => operand.starts_with('r'),
        "nop" => operand.is_empty(),
        _ => (name == "call" || name.starts_with('j')) && direct,
    };
    Some((address, emulated))
}

/// Time that this thread has had on a processor: whatever else the machine does is not in it.
fn processor_time() -> Duration {
    rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).try_into().unwrap()
}

/// 700 functions of a 40 MB library in less time than anybody notices. Unoptimised builds get ten times as long.
#[test]
fn planning_is_fast() {
    let (_, bytes) = installed(MPICH);
    let start = processor_time();
    let library = Library::parse(&bytes).unwrap();
    assert!(library.is_mpi_c_library());
    let implementation = Implementation::of(&library);
    let plan = plan_mpi(&library);
    let spent = processor_time().saturating_sub(start);
    let limit = if cfg!(debug_assertions) { 1500 } else { 150 };
    assert!(spent.as_millis() < limit, "{} functions of {implementation} took {spent:?}", plan.functions.len());
}
