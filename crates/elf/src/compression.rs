//! Contents of sections, decompressed, within limits.

use object::LittleEndian;
use object::elf::{self, CompressionHeader64};
use object::read::{CompressedData, CompressionFormat};

/// The content of a 64-bit little-endian file's section with SHF_COMPRESSED (gABI: "Section Compression"), of at most `limit` bytes.
pub fn decompress(bytes: &[u8], limit: u64) -> Option<Vec<u8>> {
    let (header, data) = object::pod::from_bytes::<CompressionHeader64<LittleEndian>>(bytes).ok()?;
    let format = match header.ch_type.get(LittleEndian) {
        elf::ELFCOMPRESS_ZLIB => CompressionFormat::Zlib,
        elf::ELFCOMPRESS_ZSTD => CompressionFormat::Zstandard,
        _ => return None,
    };
    inflate(format, data, header.ch_size.get(LittleEndian), limit)
}

/// The content of a section called `.zdebug_…`, as binutils made them before 2016: "ZLIB" and the size in big-endian.
pub fn decompress_gnu(bytes: &[u8], limit: u64) -> Option<Vec<u8>> {
    let (size, data) = bytes.strip_prefix(b"ZLIB")?.split_first_chunk()?;
    inflate(CompressionFormat::Zlib, data, u64::from_be_bytes(*size), limit)
}

fn inflate(format: CompressionFormat, data: &[u8], uncompressed_size: u64, limit: u64) -> Option<Vec<u8>> {
    if uncompressed_size > limit {
        return None;
    }
    CompressedData { format, data, uncompressed_size }.decompress().ok().map(std::borrow::Cow::into_owned)
}
