use proptest::prelude::*;

use super::*;

const MAPS: &str = "\
55e1c9d59000-55e1c9d5a000 r--p 00000000 fe:00 10027143                   /tmp/ring
55e1c9d5a000-55e1c9d5b000 r-xp 00001000 fe:00 10027143                   /tmp/ring
55e1ca000000-55e1ca021000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000004000 rwxp 00000000 00:00 0 
7f1da631b000-7f1da631c000 r-xp 000fd000 103:1f 326279                    /usr/lib/libc.so.6
7f1da631c000-7f1da631f000 rwxp 000fe000 103:1f 326279                    /usr/lib/libc.so.6
7f1da8000000-7f1da8001000 r-xp 00000000 fe:00 15                         /opt/lib mpi.so (deleted)
7f1da8c31000-7f1da8c33000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";

fn only_file(path: &str) -> MappedFile {
    let line = format!("1000-2000 r-xp 00000000 fe:00 15   {path}\n");
    Mappings::parse(line.as_bytes(), false).files.remove(0)
}

#[test]
fn executable_ranges_are_grouped_by_file() {
    let mappings = Mappings::parse(MAPS.as_bytes(), false);
    assert!(!mappings.incomplete);
    assert_eq!(mappings.anonymous_text, 0x4000);
    let paths: Vec<_> = mappings.files.iter().map(MappedFile::display_path).collect();
    assert_eq!(paths, ["/tmp/ring", "/usr/lib/libc.so.6", "/opt/lib mpi.so"]);
    let deleted: Vec<_> = mappings.files.iter().map(MappedFile::is_deleted).collect();
    assert_eq!(deleted, [false, false, true]);
    let libc = &mappings.files[1];
    assert_eq!(libc.id, FileId { major: 0x103, minor: 0x1f, inode: 326_279 });
    assert_eq!(libc.id.to_string(), "103:1f inode 326279");
    assert_eq!(
        libc.ranges,
        [
            TextRange { start: 0x7f1d_a631_b000, end: 0x7f1d_a631_c000, offset: 0xf_d000, writable: false },
            TextRange { start: 0x7f1d_a631_c000, end: 0x7f1d_a631_f000, offset: 0xf_e000, writable: true },
        ]
    );
    assert_eq!(libc.ranges[0].link_name(), "7f1da631b000-7f1da631c000");
}

#[test]
fn ambiguous_names_give_every_reading() {
    let paths = |path: &str| only_file(path).candidate_paths();
    assert_eq!(paths("/a b"), [b"/a b".to_vec()]);
    assert_eq!(paths("/a\\012b"), [b"/a\\012b".to_vec(), b"/a\nb".to_vec()]);
    assert_eq!(paths("/a (deleted)"), [b"/a".to_vec(), b"/a (deleted)".to_vec()]);
}

#[test]
fn a_name_in_no_file_system_has_no_path() {
    assert_eq!(only_file("anon_inode:[x]").candidate_paths(), Vec::<Vec<u8>>::new());
}

#[test]
fn lines_of_another_form_are_skipped_and_told() {
    for bad in ["junk", "2000-1000 r-xp 0 fe:00 1 /a", "1000-2000 rx 0 fe:00 1 /a", "1000-2000 r-xp 0 fe00 1 /a"] {
        let content = format!("{bad}\n1000-2000 r-xp 00000000 fe:00 15 /ok\n");
        let mappings = Mappings::parse(content.as_bytes(), false);
        assert!(mappings.incomplete, "{bad}");
        assert_eq!(mappings.files.len(), 1, "{bad}");
    }
}

#[test]
fn the_end_of_the_address_space_does_not_overflow() {
    let line = "0-ffffffffffffffff rwxp 00000000 00:00 0\n";
    let twice = Mappings::parse(line.repeat(2).as_bytes(), false);
    assert_eq!(twice.anonymous_text, u64::MAX);
}

proptest! {
    #[test]
    fn never_panics(bytes: Vec<u8>, truncated: bool) {
        let mappings = Mappings::parse(&bytes, truncated);
        prop_assert!(mappings.files.len() <= bytes.len());
    }

    #[test]
    fn never_panics_on_almost_right_lines(
        line in "[0-9a-f]{1,17}-[0-9a-f]{1,17} [r-][w-][x-][ps] [0-9a-f]{1,17} [0-9a-f]{1,9}:[0-9a-f]{1,9} [0-9]{1,21} .{0,20}"
    ) {
        let _ = Mappings::parse(line.as_bytes(), false);
    }

    #[test]
    fn escaping_as_the_kernel_does_is_undone(path in "/[a-z\n ]{0,20}") {
        let printed = path.replace('\n', "\\012");
        let file = only_file(printed.trim_end());
        let wanted = printed.trim_end().replace("\\012", "\n").into_bytes();
        prop_assert!(file.candidate_paths().contains(&wanted));
    }
}

mod regions {
    use super::super::Regions;

    const MAPS: &[u8] = b"1000-2000 r--p 00000000 00:01 7   /lib/a\n2000-3000 rw-p 00001000 00:01 7   /lib/a\n\
        3000-4000 ---p 00000000 00:00 0 \n4000-5000 rw-p 00000000 00:00 0   [heap]\n";

    #[test]
    fn what_spans_adjacent_ranges_is_readable_and_gaps_are_not() {
        let regions = Regions::parse(MAPS);
        for (address, length, readable) in [
            (0x1000, 0x2000, true),
            (0x1ff8, 16, true),
            (0x2ff8, 8, true),
            (0x2ff9, 8, false),
            (0x3000, 1, false),
            (0x4000, 0x1000, true),
            (0x4000, 0x1001, false),
            (0xff8, 16, false),
            (u64::MAX, 8, false),
        ] {
            assert_eq!(regions.contain(address, length), readable, "{address:#x}+{length:#x}");
        }
        assert_eq!(regions.iter().filter(|region| region.file.is_some()).count(), 2);
    }
}
