//! How much is known with how much debug information.

use super::program::Build;

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
