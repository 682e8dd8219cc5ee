//! The one reader of ELF files: headers, segments, sections, symbols, notes, of either word size and byte order.
//!
//! Files belong to other users and may say anything. What is read of them is bounded by [`limits`], by nothing else and nowhere else;
//! what is damaged is an error or as good as absent, and never a panic. Headers are read once into [`Elf`], which borrows nothing;
//! contents are read from whatever the caller has the file in: bytes, or a cache over an open file.
//!
//! Sources: System V gABI, chapters 4 and 5; Linux `include/uapi/linux/elf.h`.

mod architecture;
mod compression;
mod elf;
mod error;
pub mod limits;
mod segments;
mod symbols;

pub use architecture::Architecture;
pub use compression::{decompress, decompress_gnu};
pub use elf::{Elf, Linkage, Section, SymbolTableKind};
pub use error::ElfError;
/// Numbers of the standard, by their names.
pub use object::elf as constants;
pub use segments::{Segment, Segments};
pub use symbols::{Place, Symbol, SymbolKind, SymbolTable, name_at};
