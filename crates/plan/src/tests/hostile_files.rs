//! Damaged and malicious files: every one ends in a plan within the file or in an error, none in a panic or a long wait.
//!
//! Invariant BOUNDED-READS.

use std::sync::OnceLock;

use proptest::prelude::*;

use super::{super::*, compiled::shared_library, examine, files::*};

fn seeds() -> &'static [Vec<u8>] {
    static SEEDS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    SEEDS.get_or_init(|| {
        let data = Symbol { kind: OBJECT, ..function("MPII_Version_string", RODATA, 8) };
        let functions = [
            function("MPI_Init", TEXT, 16),
            function("MPI_Send", TEXT + 16, 64),
            function("MPI_Get_version", TEXT + 96, 32),
        ];
        let mut image = Image::new(&[&functions[..], &[data]].concat());
        image.symbols = functions.to_vec();
        vec![image.build(), shared_library()]
    })
}

fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    let Some((plan, _)) = examine(bytes) else { return Ok(()) };
    for planned in &plan.functions {
        let function = &planned.function;
        let end = function.file_offset + function.size;
        prop_assert!(function.size > 0 && end <= bytes.len() as u64, "{function:?}");
        prop_assert!((function.file_offset..end).contains(&planned.site.offset), "{planned:?}");
        prop_assert!(planned.fingerprint.size() as u64 <= function.size);
    }
    prop_assert!(plan.functions.is_sorted_by(|a, b| a.function.file_offset < b.function.file_offset));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn any_bytes_can_be_changed(
        seed in 0..2_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..16),
    ) {
        let mut bytes = seeds()[seed].clone();
        for (index, value) in changes {
            *index.get_mut(&mut bytes) = value;
        }
        check(&bytes)?;
    }

    /// The fields that say where things are, set to the values that break additions.
    #[test]
    fn headers_can_hold_any_number(
        seed in 0..2_usize,
        changes in prop::collection::vec((0..64_usize, any::<bool>(), 0..8_usize), 1..6),
    ) {
        let mut bytes = seeds()[seed].clone();
        let length = bytes.len() as u64;
        let values = [0, 1, length - 1, length, u64::MAX, u64::MAX - 8, i64::MAX as u64, 1 << 32];
        for (word, at_end, value) in changes {
            let from = if at_end { bytes.len() - 8 * (word + 1) } else { 16 + 8 * word };
            bytes[from..from + 8].copy_from_slice(&values[value].to_le_bytes());
        }
        check(&bytes)?;
    }

    #[test]
    fn a_file_can_end_anywhere(seed in 0..2_usize, end in any::<prop::sample::Index>()) {
        let bytes = &seeds()[seed];
        check(&bytes[..end.index(bytes.len())])?;
    }

    #[test]
    fn any_bytes_can_follow_the_magic(tail in prop::collection::vec(any::<u8>(), 0..4096)) {
        check(&[b"\x7fELF\x02\x01\x01".as_slice(), &tail].concat())?;
    }
}

#[test]
fn every_truncation_of_a_small_file_is_survived() {
    let bytes = &seeds()[0];
    for end in 0..=bytes.len() {
        check(&bytes[..end]).unwrap();
    }
    assert!(examine(bytes).is_some());
}

#[test]
fn files_of_other_kinds_are_told_apart() {
    let good = Image::new(&[]).build();
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        Library::parse(&bytes).unwrap_err()
    };
    assert_eq!(Library::parse(b"#!/bin/sh\n").unwrap_err(), ElfError::NotElf);
    assert_eq!(Library::parse(b"").unwrap_err(), ElfError::NotElf);
    assert_eq!(with(4, 1), ElfError::Not64Bit);
    assert_eq!(with(5, 2), ElfError::BigEndian);
    assert_eq!(with(18, 183), ElfError::OtherMachine { machine: 183 }); // AArch64
    assert_eq!(with(16, 1), ElfError::NotLoadable { kind: 1 }); // an object file
    assert_eq!(with(16, 4), ElfError::NotLoadable { kind: 4 }); // a core file
    assert!(matches!(Library::parse(&good[..63]).unwrap_err(), ElfError::Malformed { what: "the ELF header", .. }));
    let cut = Library::parse(&good[..good.len() - 1]).unwrap_err();
    assert!(matches!(cut, ElfError::Malformed { what: "the section headers", .. }), "{cut}");
}

#[test]
fn more_symbols_than_any_library_has_are_refused() {
    let many = vec![function("MPI_Send", TEXT, 8); (1 << 14) + 1];
    let bytes = Image::new(&many).build();
    let library = Library::parse(&bytes).unwrap();
    let error = library.resolve(|name| (name == "MPI_Send").then_some(())).unwrap_err();
    assert_eq!(error, ElfError::TooMany { what: "symbols of the wanted names", limit: 1 << 14 });
    assert_eq!(library.resolve(|name| (name == "MPI_Recv").then_some(())).unwrap().functions, []);
}

/// Names that never end would make the search quadratic in the size of the file: no more of a name is looked at than any has.
#[test]
fn endless_names_cost_nothing() {
    let mut image = Image::new(&vec![function("x", TEXT, 8); 50_000]);
    image.symbols = vec![Symbol { name: "name", ..function("", TEXT, 8) }];
    let mut bytes = image.build();
    let text = 0x800 + 24 * 50_001;
    bytes[text..text + 100_000].fill(b'M');
    let mut longest = 0;
    let wanted = |name: &str| {
        longest = longest.max(name.len());
        (name.len() > 1).then_some(())
    };
    let found = Library::parse(&bytes).unwrap().resolve(wanted).unwrap();
    assert_eq!(found.functions.len(), 1);
    assert!(longest <= 256, "{longest}");
}
