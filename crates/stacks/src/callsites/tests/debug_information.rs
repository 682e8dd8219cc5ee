//! How much is known with how much debug information.

use std::os::unix::fs::symlink;

use mpiprobe_discover::{Process, fake::FakeProc};

use super::{
    super::{AddressMap, Modules, Symboliser},
    program::Build,
};

const SOURCE: &str = "
void mark(void);
int state;
__attribute__((noinline)) void step(void) { mark(); state++; }
int main(void) { step(); return state == 0; }
";

fn build(options: &[&str]) -> Build {
    Build::new("gcc", ("prog.c", SOURCE), &[&["-O2"], options].concat())
}

#[test]
fn every_version_and_compression_of_debug_information_is_read() {
    for options in
        [&["-gdwarf-5"][..], &["-gdwarf-4"], &["-gdwarf-3"], &["-gdwarf-2"], &["-g1"], &["-g3"], &["-g", "-gdwarf64"]]
    {
        assert_eq!(build(options).text(), "prog.c:4 in step", "{options:?}");
    }
    for compression in ["zlib", "zlib-gnu", "zstd"] {
        let build = build(&["-g"]);
        build.run("objcopy", &[&format!("--compress-debug-sections={compression}"), "prog"]);
        assert_eq!(build.text(), "prog.c:4 in step", "{compression}");
    }
}

/// The functions of split debug information are elsewhere, the lines are not.
#[test]
fn split_debug_information_gives_lines_and_symbols() {
    assert_eq!(build(&["-g", "-gsplit-dwarf"]).text(), "prog.c:4 in step");
}

#[test]
fn without_debug_information_there_are_symbols_and_without_those_addresses() {
    let text = build(&[]).text();
    assert!(text.starts_with("step+0x") && text.ends_with(" in prog"), "{text}");
    // Exported symbols are there in any case.
    let exported = build(&["-s", "-rdynamic"]).call_site();
    assert!(exported.text.starts_with("step+0x") && exported.function_offset.unwrap() < 64, "{exported:?}");
    let nothing = build(&["-s"]).call_site();
    assert_eq!(nothing.text, format!("prog+{:#x}", nothing.offset));
    assert_eq!((nothing.at.function, nothing.at.line), (None, None));
}

#[test]
fn without_a_build_id_a_file_is_told_by_itself() {
    let site = build(&["-g", "-Wl,--build-id=none"]).call_site();
    assert!(site.module.starts_with("file:"), "{}", site.module);
    assert_eq!(site.text, "prog.c:4 in step");
}

/// What distributions do: the debug information goes to another file, the program keeps its name and a checksum.
#[test]
fn debug_information_beside_the_program_is_found_by_its_name_and_checksum() {
    for folder in [".", ".debug"] {
        let build = build(&["-g", "-Wl,--build-id=none"]);
        std::fs::create_dir_all(build.path(folder)).unwrap();
        let file = format!("{folder}/prog.debug");
        build.run("objcopy", &["--only-keep-debug", "prog", &file]);
        build.run("objcopy", &["--strip-all", &format!("--add-gnu-debuglink={file}"), "prog"]);
        assert_eq!(build.text(), "prog.c:4 in step", "{folder}");
        // Of another build: the names would be wrong.
        let mut other = std::fs::read(build.path(&file)).unwrap();
        other.push(0);
        std::fs::write(build.path(&file), other).unwrap();
        let site = build.call_site();
        assert_eq!(site.text, format!("prog+{:#x}", site.offset));
    }
}

#[test]
fn debug_information_with_symbols_only_still_names_functions() {
    let build = build(&["-Wl,--build-id=none"]);
    build.run("objcopy", &["--only-keep-debug", "prog", "prog.debug"]);
    build.run("objcopy", &["--strip-all", "--add-gnu-debuglink=prog.debug", "prog"]);
    let text = build.text();
    assert!(text.starts_with("step+0x"), "{text}");
}

/// In the root of a container there are other files under the same names.
#[test]
fn debug_information_is_found_by_build_id_in_the_root_of_the_process() {
    let build = build(&["-g", "-Wl,--build-id=0xabcdef0123"]);
    let folder = "root/usr/lib/debug/.build-id/ab";
    std::fs::create_dir_all(build.path(folder)).unwrap();
    build.run("objcopy", &["--only-keep-debug", "prog", &format!("{folder}/cdef0123.debug")]);
    build.run("strip", &["prog"]);
    let waiting = build.start();
    let maps = std::fs::read(format!("/proc/{}/maps", waiting.process().pid())).unwrap();
    let fake = FakeProc::new();
    fake.process(7, 0, "prog", &["prog"]);
    fake.map(7, &build.path("prog"));
    fake.file(7, "maps", &maps);
    let root = fake.path(7).join("root");
    std::fs::remove_file(&root).unwrap();
    symlink(build.path("root"), &root).unwrap();
    std::fs::remove_dir_all(fake.path(7).join("map_files")).unwrap();
    symlink(format!("/proc/{}/map_files", waiting.process().pid()), fake.path(7).join("map_files")).unwrap();
    std::fs::create_dir(fake.path(7).join("ns")).unwrap();
    symlink("mnt:[1]", fake.path(7).join("ns/mnt")).unwrap();
    let process = Process::open(&fake.root(), 7).unwrap();
    let mut modules = Modules::default();
    let mut map = AddressMap::of(&process, &mut modules).unwrap();
    let address = map.locate(waiting.return_address, None, &mut modules);
    // The process may be gone when names are wanted.
    drop(waiting);
    assert_eq!(Symboliser::default().resolve(&address).text, "prog.c:4 in step");
}

/// Debug information of a function whose name is in another file, as dwz makes it.
const SHARED: &str = r#"
    .section .debug_abbrev,"",@progbits
abbreviations:
    .uleb128 1, 0x11; .byte 1
    .uleb128 0x11, 0x01, 0x12, 0x06, 0, 0
    .uleb128 2, 0x2e; .byte 0
    .uleb128 0x03, 0x1f21, 0x11, 0x01, 0x12, 0x06, 0, 0, 0
    .section .debug_info,"",@progbits
    .long end - start
start:
    .short 4
    .long abbreviations
    .byte 8
    .uleb128 1
    .quad step
    .long 64
    .uleb128 2
    .long 4
    .quad step
    .long 64
    .byte 0
end:
    .section .gnu_debugaltlink,"",@progbits
    .asciz "shared.debug"
    .byte 0x0a, 0x0b, 0x0c
"#;

#[test]
fn names_shared_between_files_are_found() {
    let build = build(&["-Wl,--build-id=none"]);
    std::fs::write(build.path("info.s"), SHARED).unwrap();
    let strings = ".section .debug_str,\"MS\",@progbits,1\n.asciz \"xyz\"\n.asciz \"the_shared_name\"\n";
    std::fs::write(build.path("strings.s"), strings).unwrap();
    build.run("gcc", &["-O2", "-no-pie", "prog.c", "mark.o", "info.s", "-o", "prog"]);
    assert!(build.text().starts_with("step+0x"), "{}", build.text());
    for (id, name) in [("0x0a0b0c", "the_shared_name"), ("0x0a0b0d", "step")] {
        let id = format!("-Wl,--build-id={id}");
        build.run("gcc", &["-shared", "-nostdlib", &id, "strings.s", "-o", "shared.debug"]);
        assert!(build.text().starts_with(&format!("{name}+0x")), "{}", build.text());
    }
}
