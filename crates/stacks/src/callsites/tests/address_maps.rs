//! Addresses of processes, while they live and afterwards.

use std::sync::Arc;

use mpiprobe_discover::{ProcRoot, Process};

use super::{
    super::{AddressMap, ModuleId, Modules, Symboliser},
    program::Build,
};

const SOURCE: &str = "
void mark(void);
int state;
int main(void) { mark(); return state; }
";

/// Invariant SITES-MERGE.
#[test]
fn the_same_place_is_the_same_in_processes_with_random_addresses() {
    let build = Build::new("gcc", ("prog.c", SOURCE), &["-g", "-O2"]);
    let (first, second) = (build.start(), build.start());
    assert_ne!(first.return_address, second.return_address, "address randomisation is off");
    let mut modules = Modules::default();
    let (first, second) = (first.locate(&mut modules), second.locate(&mut modules));
    assert_eq!(first, second);
    assert!(Arc::ptr_eq(&first.module, &second.module));
    // Of a copy of the file, too: on another node, say.
    std::fs::copy(build.path("prog"), build.path("copy")).unwrap();
    let copy = super::program::Waiting::start(&build.path("copy")).locate(&mut modules);
    assert_eq!(copy, first);
    assert!(!Arc::ptr_eq(&copy.module, &first.module));
}

#[test]
fn addresses_have_names_after_the_end_of_the_process_and_of_the_file() {
    let build = Build::new("gcc", ("prog.c", SOURCE), &["-g", "-O2"]);
    let waiting = build.start();
    let mut modules = Modules::default();
    let process = waiting.process();
    let mut map = AddressMap::of(&process, &mut modules).unwrap();
    let address = waiting.return_address;
    drop(waiting);
    // A new version, and the table is no longer to be had.
    std::fs::remove_file(build.path("prog")).unwrap();
    std::fs::write(build.path("prog"), "something else").unwrap();
    let address = map.locate(address, Some(&process), &mut modules);
    assert_eq!(Symboliser::default().resolve(&address).text, "prog.c:4 in main");
}

#[test]
fn a_deleted_program_has_its_names() {
    let build = Build::new("gcc", ("prog.c", SOURCE), &["-g", "-O2"]);
    let waiting = build.start();
    std::fs::remove_file(build.path("prog")).unwrap();
    let site = Symboliser::default().resolve(&waiting.locate(&mut Modules::default()));
    assert!(site.deleted);
    assert_eq!(site.text, "prog.c:4 in main");
}

#[test]
fn a_file_that_was_written_into_has_no_names() {
    let build = Build::new("gcc", ("prog.c", SOURCE), &["-g", "-O2"]);
    let address = build.start().locate(&mut Modules::default());
    let later = std::time::SystemTime::now() + std::time::Duration::from_mins(1);
    std::fs::File::options().append(true).open(build.path("prog")).unwrap().set_modified(later).unwrap();
    assert_eq!(Symboliser::default().resolve(&address).text, format!("prog+{:#x}", address.offset));
}

#[test]
fn code_of_no_file_is_called_what_it_is() {
    let build = Build::new("gcc", ("prog.c", SOURCE), &["-O2"]);
    let waiting = build.start();
    let (process, mut modules) = (waiting.process(), Modules::default());
    let mut map = AddressMap::of(&process, &mut modules).unwrap();
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", process.pid())).unwrap();
    let vdso = maps.lines().find(|line| line.ends_with("[vdso]")).unwrap();
    let start = u64::from_str_radix(vdso.split('-').next().unwrap(), 16).unwrap();
    let mut symboliser = Symboliser::default();
    let mut text = |address| symboliser.resolve(&map.locate(address, Some(&process), &mut modules)).text.clone();
    assert_eq!(text(start + 0x123), "[vdso]+0x123");
    assert_eq!(text(0x17), "[unmapped]+0x17");
    assert_eq!(text(0), "[unmapped]+0x0");
    assert_eq!(text(u64::MAX), "[unmapped]+0xffffffffffffffff");
}

/// A library that is opened later is found, one that is closed stays known, and looking again has an end.
#[test]
fn libraries_that_come_and_go_are_found() {
    let fake = mpiprobe_discover::fake::FakeProc::new();
    fake.process(7, 0, "ring", &["ring"]);
    let exe = std::env::current_exe().unwrap();
    fake.map(7, &exe);
    let process = Process::open(&fake.root(), 7).unwrap();
    let mut modules = Modules::default();
    fake.file(7, "maps", b"");
    let mut map = AddressMap::of(&process, &mut modules).unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let own = maps.lines().find(|line| line.ends_with(&*exe.to_string_lossy())).unwrap();
    let identity = own.split_whitespace().skip(3).collect::<Vec<_>>().join(" ");
    fake.file(7, "maps", format!("1000-2000 r-xp 00000000 {identity}\n5000-6000 r-xp 00000000 00:00 0 \n").as_bytes());
    let found = map.locate(0x1500, Some(&process), &mut modules);
    assert!(matches!(found.module.id(), ModuleId::BuildId(_) | ModuleId::File { .. }), "{found:?}");
    let generated = map.locate(0x5010, Some(&process), &mut modules);
    assert_eq!((generated.module.path(), generated.offset), ("[anonymous]", 0x10));
    fake.file(7, "maps", b"8000-9000 r-xp 00000000 00:00 0 \n");
    map.refresh(&process, &mut modules).unwrap();
    assert_eq!(map.locate(0x1500, Some(&process), &mut modules), found);
    for address in 0..AddressMap::MAX_REREADS as u64 {
        map.locate(0x10_0000 + address, Some(&process), &mut modules);
    }
    fake.file(7, "maps", format!("20000-30000 r-xp 00000000 {identity}\n").as_bytes());
    assert_eq!(map.locate(0x20010, Some(&process), &mut modules).module.path(), "[unmapped]");
    map.refresh(&process, &mut modules).unwrap();
    assert_eq!(map.locate(0x20010, Some(&process), &mut modules).module.path(), found.module.path());
    // What a process on its way out has mapped.
    fake.file(7, "maps", b"");
    map.refresh(&process, &mut modules).unwrap();
    assert_eq!(map.locate(0x20010, Some(&process), &mut modules).module.path(), found.module.path());
}

#[test]
fn what_is_no_longer_referred_to_is_closed() {
    let process = Process::open(&ProcRoot::system().unwrap(), std::process::id()).unwrap();
    let mut modules = Modules::default();
    let map = AddressMap::of(&process, &mut modules).unwrap();
    assert!(modules.open_files() > 2);
    drop(map);
    assert_eq!(modules.open_files(), 0);
}
