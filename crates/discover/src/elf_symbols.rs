//! Recognises MPI C libraries, and tools on MPI's profiling interface, by the functions they define and use.

use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader, ProgramHeader as _, SectionHeader as _, Sym as _};
use object::{Endianness, ReadCache};

use super::{
    architecture::Architecture,
    foreign::{ForeignFile, Reader},
    mappings::FileId,
    recognise::{Recognise, Recognised, Role},
    text::printable,
};

/// A symbol or string table beyond this size is not looked at, in bytes: the largest known ones take about 300 MB.
const LARGEST_TABLE: u64 = 512 << 20;

/// A file beyond this size is not looked at, in bytes: nor could it be probed (`plan::MAX_ELF_BYTES`).
const LARGEST_FILE: u64 = 512 << 20;

/// Reads symbol tables, and of most files only the names in them.
#[derive(Debug, Clone, Copy, Default)]
pub struct SymbolRecogniser;

impl Recognise for SymbolRecogniser {
    fn recognise(&mut self, file: &ForeignFile, _: FileId) -> Option<Recognised> {
        // A sparse file costs nothing and may claim as many sections as fit into it.
        if file.state().ok()?.size > LARGEST_FILE {
            return None;
        }
        let data = ReadCache::new(file.reader());
        let header = object::ReadRef::read_bytes_at(&data, 0, Architecture::HEADER as u64).ok()?;
        let architecture = Architecture::parse(header)?;
        let elf = match architecture.bits {
            32 => Symbols::read::<FileHeader32<Endianness>>(&data)?,
            _ => Symbols::read::<FileHeader64<Endianness>>(&data)?,
        };
        Some(Recognised {
            role: elf.role()?,
            soname: elf.soname.clone(),
            defines_pmpi: elf.pmpi_init,
            is_static: elf.is_static,
            architecture,
            implementation: None,
        })
    }
}

/// Which of the telling symbols a file defines.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each tells whether one symbol was seen")]
struct Symbols {
    init: bool,
    send: bool,
    /// Any function called as MPI's are.
    any: bool,
    pmpi_init: bool,
    any_pmpi: bool,
    uses_pmpi: bool,
    uses_dlsym: bool,
    is_static: bool,
    soname: Option<String>,
}

impl Symbols {
    /// `None` if the file defines nothing of MPI that others could call.
    fn role(&self) -> Option<Role> {
        // What others define is called by its profiling name, or looked for. Who has profiling names of its own is an implementation,
        // as far as can be told; so is mpiprobe's wrapper, which is not to be timed as a layer.
        let is_tool = self.any && (self.uses_pmpi || (self.uses_dlsym && !self.any_pmpi));
        match (self.init && (self.send || self.is_static), is_tool) {
            (true, true) => Some(Role::ToolOrLibrary),
            (true, false) => Some(Role::Library),
            (false, true) => Some(Role::Tool),
            (false, false) => None,
        }
    }

    /// `None` unless the file may be an MPI C library or a tool.
    fn read<Elf: FileHeader<Endian = Endianness>>(data: &ReadCache<Reader<'_>>) -> Option<Self> {
        let header = Elf::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.section_headers(endian, data).ok()?;
        let bytes = |section: &Elf::SectionHeader| {
            let size: u64 = section.sh_size(endian).into();
            if size > LARGEST_TABLE {
                return None;
            }
            section.data(endian, data).ok()
        };
        let table = |kind| {
            let section = sections.iter().find(|section| section.sh_type(endian) == kind)?;
            let names = bytes(sections.get(usize::try_from(section.sh_link(endian)).ok()?)?)?;
            Some((section, names))
        };
        let mut found = Self::default();
        let collect = |kind, telling: &[&[u8]], found: &mut Self| {
            let (section, names) = table(kind)?;
            telling.iter().find_map(|name| memchr::memmem::find(names, name))?;
            // For its bound on the size.
            bytes(section)?;
            let symbols = section.data_as_array::<Elf::Sym, _>(endian, data).ok()?;
            for symbol in symbols {
                let name = name_at(names, symbol.st_name(endian));
                if symbol.is_undefined(endian) {
                    found.note_use(name);
                } else {
                    found.note(name, symbol.st_type());
                }
            }
            Some(())
        };
        collect(elf::SHT_DYNSYM, &[b"MPI_"], &mut found);
        if found.role().is_some() {
            let (_, names) = table(elf::SHT_DYNSYM)?;
            found.soname = dynamic_value::<Elf>(sections, endian, data, elf::DT_SONAME)
                .and_then(|offset| Some(printable(name_at(names, u32::try_from(offset).ok()?))));
        }
        if found.init && found.send {
            return Some(found);
        }
        // A program linked with libmpi.a defines only what it calls, and exports none of it.
        if is_program::<Elf>(header, sections, endian, data) {
            let mut all = Self { is_static: true, ..Self::default() };
            // PMPI_Init ends in MPI_Init, and linkers let one name be the tail of another.
            collect(elf::SHT_SYMTAB, &[b"MPI_Init\0", b"MPI_Init_thread\0"], &mut all);
            if all.init {
                return Some(all);
            }
        }
        Some(found)
    }

    fn note_use(&mut self, name: &[u8]) {
        match name {
            b"dlsym" | b"dlvsym" => self.uses_dlsym = true,
            _ => self.uses_pmpi |= name.starts_with(b"PMPI_"),
        }
    }

    fn note(&mut self, name: &[u8], kind: elf::SymbolType) {
        let is_function = kind == elf::STT_FUNC || kind == elf::STT_GNU_IFUNC;
        self.any |= is_function && name.starts_with(b"MPI_");
        self.any_pmpi |= is_function && name.starts_with(b"PMPI_");
        match name {
            b"MPI_Init" | b"MPI_Init_thread" if is_function => self.init = true,
            b"MPI_Send" if is_function => self.send = true,
            b"PMPI_Init" | b"PMPI_Init_thread" if is_function => self.pmpi_init = true,
            _ => {}
        }
    }
}

/// The NUL-terminated name at `offset`, empty if there is none.
pub(super) fn name_at(names: &[u8], offset: u32) -> &[u8] {
    let tail = usize::try_from(offset).ok().and_then(|offset| names.get(offset..)).unwrap_or_default();
    memchr::memchr(0, tail).and_then(|end| tail.get(..end)).unwrap_or_default()
}

/// Whether the file is a program rather than a library: at a fixed address, with an interpreter of its own, or marked by
/// the linker as position-independent (static-pie programs have no interpreter).
fn is_program<Elf: FileHeader<Endian = Endianness>>(
    header: &Elf,
    sections: &[Elf::SectionHeader],
    endian: Endianness,
    data: &ReadCache<Reader<'_>>,
) -> bool {
    let has_interpreter = || {
        let segments = header.program_headers(endian, data).unwrap_or_default();
        segments.iter().any(|segment| segment.p_type(endian) == elf::PT_INTERP)
    };
    let is_marked = || {
        let flags = dynamic_value::<Elf>(sections, endian, data, elf::DT_FLAGS_1);
        flags.is_some_and(|flags| flags & elf::DF_1_PIE.0 != 0)
    };
    header.e_type(endian) == elf::ET_EXEC || has_interpreter() || is_marked()
}

/// The value of the first entry `tag` of the dynamic section.
fn dynamic_value<Elf: FileHeader<Endian = Endianness>>(
    sections: &[Elf::SectionHeader],
    endian: Endianness,
    data: &ReadCache<Reader<'_>>,
    tag: elf::DynamicTag,
) -> Option<u64> {
    let section = sections.iter().find(|section| section.sh_type(endian) == elf::SHT_DYNAMIC)?;
    let size: u64 = section.sh_size(endian).into();
    if size > LARGEST_TABLE {
        return None;
    }
    let (entries, _) = section.dynamic(endian, data).ok()??;
    entries.iter().find(|entry| entry.d_tag(endian) == tag).map(|entry| entry.d_val(endian).into())
}

#[cfg(test)]
#[path = "elf_symbols_tests.rs"]
mod tests;
