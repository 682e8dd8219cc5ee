//! The types in BTF, one by one. Nothing in the bytes is trusted.

/// Types in `/sys/kernel/btf/vmlinux` are some hundred thousand; more than this is no kernel.
const MAX_TYPES: u32 = 4_000_000;

const MAGIC: u16 = 0xeb9f;
const HEADER_BYTES: usize = 24;
const TYPE_BYTES: usize = 12;
const MEMBER_BYTES: usize = 12;

const KIND_ARRAY: u32 = 3;
pub(super) const KIND_STRUCT: u32 = 4;
pub(super) const KIND_FUNCTION: u32 = 12;

/// What the header says where it is.
pub(super) struct Sections<'a> {
    types: &'a [u8],
    strings: &'a [u8],
}

pub(super) struct Type<'a> {
    pub(super) id: u32,
    pub(super) kind: u32,
    /// Where its name is among the strings.
    name: u32,
    has_bit_fields: bool,
    details: &'a [u8],
    strings: &'a [u8],
}

pub(super) struct Member<'a> {
    pub(super) name: &'a [u8],
    pub(super) type_id: u32,
    /// Bytes.
    pub(super) offset: u32,
}

impl<'a> Sections<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Option<Self> {
        if bytes.first_chunk().map(|&magic| u16::from_le_bytes(magic)) != Some(MAGIC) || bytes.len() < HEADER_BYTES {
            return None;
        }
        let header = word_of(bytes, 1)? as usize;
        let section = |offset: u32, length: u32| {
            let start = header.checked_add(offset as usize)?;
            bytes.get(start..start.checked_add(length as usize)?)
        };
        let types = section(word_of(bytes, 2)?, word_of(bytes, 3)?)?;
        Some(Self { types, strings: section(word_of(bytes, 4)?, word_of(bytes, 5)?)? })
    }

    /// `None` if they are damaged.
    pub(super) fn each_type(&self, mut each: impl FnMut(&Type<'a>)) -> Option<()> {
        let mut rest = self.types;
        for id in 1..MAX_TYPES {
            let Some((head, after)) = rest.split_at_checked(TYPE_BYTES) else { break };
            let info = word_of(head, 1)?;
            let (kind, length) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
            let (details, next) = after.split_at_checked(details_bytes(kind, length)?)?;
            let name = word_of(head, 0)?;
            each(&Type { id, kind, name, has_bit_fields: info >> 31 == 1, details, strings: self.strings });
            rest = next;
        }
        Some(())
    }
}

impl<'a> Type<'a> {
    pub(super) fn name(&self) -> &'a [u8] {
        text(self.strings, self.name)
    }

    /// Of a member of a structure, bytes.
    pub(super) fn offset_of(&self, member: &str) -> Option<u32> {
        self.members().find(|known| known.name == member.as_bytes()).map(|known| known.offset)
    }

    /// Of a structure; bit fields that begin within a byte are left out.
    pub(super) fn members(&self) -> impl Iterator<Item = Member<'a>> {
        let members = if self.kind == KIND_STRUCT { self.details } else { &[] };
        let (strings, has_bit_fields) = (self.strings, self.has_bit_fields);
        members.chunks_exact(MEMBER_BYTES).filter_map(move |member| {
            // With bit fields in the structure, the upper eight bits are a field's size.
            let bits = word_of(member, 2)? & if has_bit_fields { 0x00ff_ffff } else { u32::MAX };
            let name = text(strings, word_of(member, 0)?);
            bits.is_multiple_of(8).then_some(Member { name, type_id: word_of(member, 1)?, offset: bits / 8 })
        })
    }
}

fn word_of(bytes: &[u8], index: usize) -> Option<u32> {
    bytes.get(index * 4..)?.first_chunk().map(|&bytes| u32::from_le_bytes(bytes))
}

/// Bytes behind a type's common part (include/uapi/linux/btf.h); `None` for a kind that is not known, whose length is not either.
fn details_bytes(kind: u32, length: usize) -> Option<usize> {
    Some(match kind {
        // Pointer, forward, typedef, volatile, const, restrict, function, float, type tag.
        2 | 7..=12 | 16 | 18 => 0,
        // Integer, variable, declaration tag.
        1 | 14 | 17 => 4,
        KIND_ARRAY => 12,
        // Enumeration, function prototype.
        6 | 13 => length * 8,
        // Structure, union, data section, 64-bit enumeration.
        4 | 5 | 15 | 19 => length * MEMBER_BYTES,
        _ => return None,
    })
}

fn text(strings: &[u8], offset: u32) -> &[u8] {
    let text = strings.get(offset as usize..).unwrap_or_default();
    text.split(|&byte| byte == 0).next().unwrap_or_default()
}
