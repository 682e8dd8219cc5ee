//! How much of a file is read. What is beyond these limits was made by no linker, and would cost memory or hours.

/// Of a whole file, in bytes. The largest MPI library seen has 41 MB; static executables with debug information have hundreds.
pub const MAX_FILE: u64 = 512 << 20;
/// Of a section, before and after decompression, in bytes: a symbol table, its names, debug information.
pub const MAX_SECTION: u64 = 512 << 20;
/// Program headers; linkers make about a dozen.
pub const MAX_SEGMENTS: usize = 1 << 10;
/// Section headers; programs have some dozens, with one section for each function of a module some thousand.
pub const MAX_SECTIONS: usize = 1 << 14;
/// Of the names of all sections together, in bytes, and of one of them: those that matter are short.
pub const MAX_SECTION_NAMES: u64 = 1 << 20;
pub const MAX_SECTION_NAME: usize = 64;
/// In one table. The largest programs have some hundred thousand functions.
pub const MAX_SYMBOLS: usize = 1 << 23;
/// Of a symbol's name, in bytes; those of C++ templates have some thousand. An unbounded search for the end of each name would take
/// the square of the file's size.
pub const MAX_NAME: usize = 4 << 10;
/// As much of a symbol's name as is looked at where C names are looked for: MPI's longest has 34 characters.
pub const MAX_C_NAME: usize = 256;
/// Of one segment or section of notes, in bytes; of such segments and sections, and of notes in each.
pub const MAX_NOTE_BYTES: u64 = 64 << 10;
pub const MAX_NOTES: usize = 64;
/// Of a build id, in bytes: SHA-1 has 20, and no digest has more.
pub const MAX_BUILD_ID: usize = 64;
/// Entries of a dynamic section; real ones have some tens.
pub const MAX_DYNAMIC: usize = 4096;
