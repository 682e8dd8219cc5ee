//! A small ELF file built byte by byte, so that every field can be given any value.

/// Where the file's code, constants and data are mapped; the file offsets are `OFFSET` lower.
pub(super) const TEXT: u64 = 0x40_0400;
pub(super) const RODATA: u64 = 0x40_0600;
pub(super) const DATA: u64 = 0x40_0700;
/// In the data segment's part that the file has no bytes for.
pub(super) const BSS: u64 = 0x40_0800;
pub(super) const OFFSET: u64 = 0x40_0000;

const TEXT_SIZE: usize = 0x200;
const BUILD_ID: [u8; 4] = [0xde, 0xad, 0xbe, 0xef];

pub(super) const FUNC: u8 = 2;
pub(super) const OBJECT: u8 = 1;
pub(super) const IFUNC: u8 = 10;
/// Section indices: any section of the file, none, and SHN_ABS.
pub(super) const HERE: u16 = 1;
pub(super) const UNDEFINED: u16 = 0;
pub(super) const ABSOLUTE: u16 = 0xfff1;

#[derive(Clone, Copy)]
pub(super) struct Symbol {
    pub(super) name: &'static str,
    pub(super) kind: u8,
    pub(super) section: u16,
    pub(super) address: u64,
    pub(super) size: u64,
}

/// A global function of this file.
pub(super) fn function(name: &'static str, address: u64, size: u64) -> Symbol {
    Symbol { name, kind: FUNC, section: HERE, address, size }
}

pub(super) struct Image {
    pub(super) code: Vec<u8>,
    pub(super) constants: Vec<u8>,
    pub(super) soname: &'static str,
    pub(super) dynamic_symbols: Vec<Symbol>,
    /// Empty: a stripped file.
    pub(super) symbols: Vec<Symbol>,
}

impl Image {
    pub(super) fn new(dynamic_symbols: &[Symbol]) -> Self {
        Self {
            code: vec![0x55; TEXT_SIZE],
            constants: Vec::new(),
            soname: "libfake.so.1",
            dynamic_symbols: dynamic_symbols.to_vec(),
            symbols: Vec::new(),
        }
    }

    pub(super) fn build(&self) -> Vec<u8> {
        let mut file = vec![0; 0x400];
        file.extend(padded(&self.code, TEXT_SIZE));
        file.extend(padded(&self.constants, 0x100));
        file.extend([0; 0x100]); // data
        let mut sections = vec![
            section(0, 0, 0, 0, 0, 0),
            section(1, 6, TEXT - OFFSET, TEXT_SIZE as u64, 0, 0),
            section(1, 2, RODATA - OFFSET, 0x100, 0, 0),
            section(1, 3, DATA - OFFSET, 0x100, 0, 0),
        ];
        for (kind, symbols) in [(11, &self.dynamic_symbols), (2, &self.symbols)] {
            if kind == 2 && symbols.is_empty() {
                continue;
            }
            let (table, mut strings) = symbol_table(symbols);
            let soname = strings.len() as u64;
            strings.extend(self.soname.bytes().chain([0]));
            let linked = sections.len() as u64 + 1;
            sections.push(section(kind, 2, file.len() as u64, table.len() as u64, linked, 24));
            file.extend(table);
            sections.push(section(3, 2, file.len() as u64, strings.len() as u64, 0, 0));
            file.extend(strings);
            if kind == 11 {
                let dynamic = words(&[14, soname, 0, 0]);
                sections.push(section(6, 3, file.len() as u64, dynamic.len() as u64, linked, 16));
                file.extend(dynamic);
            }
        }
        let note = [&[4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0][..], b"GNU\0", &BUILD_ID].concat();
        let programs = [
            program(1, 5, 0, OFFSET, 0x600, 0x600),
            program(1, 4, 0x600, RODATA, 0x100, 0x100),
            program(1, 6, 0x700, DATA, 0x100, 0x1000),
            program(4, 4, file.len() as u64, 0, note.len() as u64, note.len() as u64),
        ];
        file.extend(note);
        let header = header(programs.len(), file.len(), sections.len());
        file.splice(..64, header);
        file.splice(64..64 + 56 * programs.len(), programs.concat());
        file.extend(sections.concat());
        file
    }
}

fn padded(bytes: &[u8], size: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    assert!(bytes.len() <= size);
    bytes.resize(size, 0);
    bytes
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn header(programs: usize, sections_at: usize, sections: usize) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    bytes.extend([3, 0, 62, 0, 1, 0, 0, 0]); // ET_DYN, EM_X86_64, version
    bytes.extend(words(&[0, 64, sections_at as u64]));
    bytes.extend([0, 0, 0, 0]); // flags
    for half in [64, 56, programs, 64, sections, 0] {
        bytes.extend(u16::try_from(half).unwrap().to_le_bytes());
    }
    bytes
}

fn program(kind: u32, flags: u32, offset: u64, address: u64, file_size: u64, memory_size: u64) -> Vec<u8> {
    let head = u64::from(kind) | u64::from(flags) << 32;
    words(&[head, offset, address, address, file_size, memory_size, 4])
}

fn section(kind: u32, flags: u64, offset: u64, size: u64, link: u64, entry_size: u64) -> Vec<u8> {
    let address = if flags & 2 != 0 && kind == 1 { offset + OFFSET } else { 0 };
    words(&[u64::from(kind) << 32, flags, address, offset, size, link, 8, entry_size])
}

fn symbol_table(symbols: &[Symbol]) -> (Vec<u8>, Vec<u8>) {
    let (mut table, mut strings) = (vec![0; 24], vec![0]);
    for symbol in symbols {
        table.extend(u32::try_from(strings.len()).unwrap().to_le_bytes());
        table.extend([1 << 4 | symbol.kind, 0]);
        table.extend(symbol.section.to_le_bytes());
        table.extend(words(&[symbol.address, symbol.size]));
        strings.extend(symbol.name.bytes().chain([0]));
    }
    (table, strings)
}

/// As [`super::Library::build_id`] prints it.
pub(super) const BUILD_ID_TEXT: &str = "deadbeef";
