//! Damaged and malicious files: names are lost, nothing else is, and in a time that has a limit.
//!
//! Invariant NAMES-ARE-EXTRA.

use std::fs::File;
use std::io::Write as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mpiprobe_model::CallSite;
use proptest::prelude::*;

use super::{
    super::{
        Module, ModuleAddress, ModuleId, Registers, Symboliser, image::Image, layer_frame_at, symbols::Symbols,
        unwind_out_of_layers,
    },
    processor_time,
    program::Build,
};

const SOURCE: &str = "
void mark(void);
int state;
static inline __attribute__((always_inline)) void exchange(int by) { state += by; mark(); state -= by; }
__attribute__((noinline)) void mpi_send_(int by) { exchange(by); exchange(2 * by); }
int main(int argc, char **argv) { (void)argv; mpi_send_(argc); return state == 0; }
";

fn module(bytes: &[u8]) -> Arc<Module> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    module_of(file)
}

fn module_of(file: File) -> Arc<Module> {
    let id = ModuleId::Memory("test".to_owned());
    Arc::new(Module { image: Image::open(file), ..Module::new(id, "/prog".to_owned()) })
}

/// Asks for everything that can be asked of a file.
fn examine(module: &Arc<Module>, addresses: impl Iterator<Item = u64>) -> Vec<Arc<CallSite>> {
    let mut symboliser = Symboliser::default();
    let examine = |offset| {
        let at = ModuleAddress { module: Arc::clone(module), offset };
        let _ = (at.layer(), layer_frame_at(&at));
        let locate = |offset| ModuleAddress { module: Arc::clone(module), offset };
        let _ = unwind_out_of_layers(locate, offset, Registers { sp: 0x1000, saved: [Some(0x1000); 6] }, &[0xcc; 512]);
        symboliser.resolve(&at)
    };
    addresses.map(examine).collect()
}

/// A program with a bit of everything, and addresses of its functions.
fn seed() -> &'static (Vec<u8>, Vec<u64>) {
    static SEED: OnceLock<(Vec<u8>, Vec<u64>)> = OnceLock::new();
    SEED.get_or_init(|| {
        let build = Build::new("gcc", ("prog.c", SOURCE), &["-g", "-O2"]);
        let image = Image::open(File::open(build.path("prog")).unwrap()).unwrap();
        let symbols = Symbols::read(std::iter::once(&image));
        let addresses = symbols.functions().flat_map(|(_, range)| [range.start + 1, range.start + 10, range.end]);
        (std::fs::read(build.path("prog")).unwrap(), addresses.collect())
    })
}

fn survives(bytes: &[u8]) {
    let sites = examine(&module(bytes), seed().1.iter().copied().chain([0, 1, u64::MAX]));
    assert!(sites.iter().all(|site| !site.text.is_empty() && site.text.len() < 4096));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes_can_be_changed(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..64)) {
        let mut bytes = seed().0.clone();
        for (index, value) in changes {
            *index.get_mut(&mut bytes) = value;
        }
        survives(&bytes);
    }

    /// Not the code but what describes it: headers, unwinding rules, debug information.
    #[test]
    fn what_describes_the_code_can_be_changed(
        section in 0..9_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(vec![0, 1, 0x7f, 0x80, 0xff])), 1..8),
    ) {
        let mut bytes = seed().0.clone();
        let names =
            [".eh_frame", ".eh_frame_hdr", ".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".debug_rnglists", ".symtab"];
        let range = names.get(section).map_or(0..64, |name| place(&bytes, name));
        for (index, value) in changes {
            *index.get_mut(&mut bytes[range.clone()]) = value;
        }
        survives(&bytes);
    }

    #[test]
    fn files_can_end_anywhere(end in any::<prop::sample::Index>()) {
        let bytes = &seed().0;
        survives(&bytes[..end.index(bytes.len())]);
    }
}

fn place(bytes: &[u8], name: &str) -> std::ops::Range<usize> {
    use object::{Object as _, ObjectSection as _};
    let file = object::File::parse(bytes).unwrap();
    let (start, size) = file.section_by_name(name).unwrap().file_range().unwrap();
    usize::try_from(start).unwrap()..usize::try_from(start + size).unwrap()
}

/// A program with debug information written by hand.
fn by_hand(assembly: &str) -> Build {
    let build = Build::new(
        "gcc",
        ("prog.c", "void mark(void); int state; void step(void) { mark(); state++; } int main(void) { step(); }"),
        &["-O1"],
    );
    std::fs::write(build.path("info.s"), assembly).unwrap();
    build.run("gcc", &["-O1", "-no-pie", "prog.c", "mark.o", "info.s", "-o", "prog"]);
    build
}

fn is_named_in_time(build: &Build) {
    let waiting = build.start();
    let address = waiting.locate(&mut super::super::Modules::default());
    let start = processor_time();
    let text = Symboliser::default().resolve(&address).text.clone();
    assert!(text.starts_with("step+0x"), "{text}");
    let spent = processor_time().saturating_sub(start);
    assert!(spent < Duration::from_secs(20), "{spent:?}");
}

#[test]
fn deeply_nested_functions_do_not_use_up_the_stack() {
    is_named_in_time(&by_hand(
        r#"
    .section .debug_abbrev,"",@progbits
abbreviations:
    .uleb128 1, 0x11; .byte 1
    .uleb128 0x11, 0x01, 0x12, 0x06, 0, 0
    .uleb128 2, 0x2e; .byte 1
    .uleb128 0x11, 0x01, 0x12, 0x06, 0, 0
    .uleb128 3, 0x1d; .byte 1
    .uleb128 0, 0, 0
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
    .quad step
    .long 64
    .fill 1000000, 1, 3
    .fill 1000003, 1, 0
end:
"#,
    ));
}

#[test]
fn units_that_share_long_lists_take_a_limited_time() {
    is_named_in_time(&by_hand(
        r#"
    .section .debug_abbrev,"",@progbits
abbreviations:
    .uleb128 1, 0x11; .byte 0
    .uleb128 0x55, 0x17, 0, 0, 0
    .section .debug_ranges,"",@progbits
ranges:
    .rept 200000
    .quad 1, 2
    .endr
    .quad 0, 0
    .section .debug_info,"",@progbits
    .rept 50000
    .long 12
    .short 4
    .long abbreviations
    .byte 8
    .uleb128 1
    .long ranges
    .endr
"#,
    ));
}

#[test]
fn sections_that_claim_to_be_huge_are_not_believed() {
    let bytes = seed().0.clone();
    let build = Build::new("gcc", ("prog.c", SOURCE), &["-g", "-O2", "-gz"]);
    let compressed = std::fs::read(build.path("prog")).unwrap();
    let range = place(&compressed, ".debug_info");
    for size in [0, 1, 1 << 28, mpiprobe_elf::limits::MAX_SECTION + 1, u64::MAX] {
        let mut bytes = compressed.clone();
        bytes[range.start + 8..range.start + 16].copy_from_slice(&u64::to_le_bytes(size));
        survives(&bytes);
    }
    // A hole in a file costs its owner nothing.
    let file = tempfile::tempfile().unwrap();
    (&file).write_all(&bytes).unwrap();
    file.set_len(1 << 40).unwrap();
    let module = module_of(file);
    assert!(module.image.as_ref().unwrap().symbols(mpiprobe_elf::SymbolTableKind::Full).is_some());
    assert_eq!(module.image.as_ref().unwrap().bytes(0, u64::MAX), None);
}
