//! The kernel's own type information (BTF, Documentation/bpf/btf.rst): where a field is in a structure, and the id of a function.
//!
//! One pass over the raw bytes; aya's reader keeps both to itself.

/// Types in `/sys/kernel/btf/vmlinux` are some hundred thousand; more than this is no kernel.
const MAX_TYPES: u32 = 4_000_000;

const MAGIC: u16 = 0xeb9f;
const HEADER_BYTES: usize = 24;
const TYPE_BYTES: usize = 12;
const MEMBER_BYTES: usize = 12;

const KIND_ARRAY: u32 = 3;
const KIND_STRUCT: u32 = 4;
const KIND_FUNCTION: u32 = 12;

/// Something that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Offset of a field in a structure, bytes.
    Field { structure: &'static str, field: &'static str },
    /// Id of a function.
    Function { name: &'static str },
}

/// The answers in the order of what is `wanted`; `None` where there is no such field or function. The whole is `None` if these
/// bytes are no BTF, or damaged.
pub(crate) fn find<const N: usize>(bytes: &[u8], wanted: [Wanted; N]) -> Option<[Option<u32>; N]> {
    let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    if bytes.first_chunk().map(|&magic| u16::from_le_bytes(magic)) != Some(MAGIC) || bytes.len() < HEADER_BYTES {
        return None;
    }
    let header = word(4)? as usize;
    let section = |offset: u32, length: u32| {
        let start = header.checked_add(offset as usize)?;
        bytes.get(start..start.checked_add(length as usize)?)
    };
    let types = section(word(8)?, word(12)?)?;
    let strings = section(word(16)?, word(20)?)?;

    let mut found = [None; N];
    let mut rest = types;
    for id in 1..MAX_TYPES {
        let Some((head, after)) = rest.split_at_checked(TYPE_BYTES) else { break };
        let field = |index: usize| head.get(index * 4..)?.first_chunk().map(|&bytes| u32::from_le_bytes(bytes));
        let (name, info) = (text(strings, field(0)?), field(1)?);
        let (kind, length) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
        let (details, next) = after.split_at_checked(details_bytes(kind, length)?)?;
        for (answer, wanted) in found.iter_mut().zip(wanted) {
            match wanted {
                Wanted::Field { structure, field } if kind == KIND_STRUCT && name == structure.as_bytes() => {
                    *answer = answer.or_else(|| offset_of(details, strings, info >> 31 == 1, field));
                }
                Wanted::Function { name: function } if kind == KIND_FUNCTION && name == function.as_bytes() => {
                    *answer = answer.or(Some(id));
                }
                _ => {}
            }
        }
        rest = next;
    }
    Some(found)
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

fn offset_of(members: &[u8], strings: &[u8], has_bit_fields: bool, field: &str) -> Option<u32> {
    members.chunks_exact(MEMBER_BYTES).find_map(|member| {
        let word = |index: usize| member.get(index * 4..)?.first_chunk().map(|&bytes| u32::from_le_bytes(bytes));
        // With bit fields in the structure, the upper eight bits are a field's size.
        let bits = if has_bit_fields { word(2)? & 0x00ff_ffff } else { word(2)? };
        (text(strings, word(0)?) == field.as_bytes() && bits % 8 == 0).then_some(bits / 8)
    })
}

fn text(strings: &[u8], offset: u32) -> &[u8] {
    let text = strings.get(offset as usize..).unwrap_or_default();
    text.split(|&byte| byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STACK: Wanted = Wanted::Field { structure: "return_instance", field: "stack" };
    const NOBODY: Wanted = Wanted::Field { structure: "return_instance", field: "nobody" };
    const ITERATOR: Wanted = Wanted::Function { name: "bpf_iter_task" };

    /// `int`, a structure of two fields, a function of that name.
    fn small() -> Vec<u8> {
        let strings = b"\0int\0return_instance\0func\0stack\0bpf_iter_task\0";
        let number = |length: usize| u32::try_from(length).unwrap();
        let offset =
            |name: &str| number(strings.windows(name.len()).position(|window| window == name.as_bytes()).unwrap());
        let mut types: Vec<u32> = vec![offset("int"), 1 << 24, 8, 64];
        types.extend([offset("return_instance"), 4 << 24 | 2, 24, offset("func"), 1, 0, offset("stack"), 1, 128]);
        types.extend([offset("bpf_iter_task"), 12 << 24, 1]);
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        let sections = [24, 0, number(types.len() * 4), number(types.len() * 4), number(strings.len())];
        bytes.extend(sections.iter().chain(&types).flat_map(|word| word.to_le_bytes()));
        bytes.extend_from_slice(strings);
        bytes
    }

    #[test]
    fn fields_and_functions_are_found() {
        assert_eq!(find(&small(), [STACK, NOBODY, ITERATOR]), Some([Some(16), None, Some(3)]));
    }

    #[test]
    fn what_is_no_btf_has_no_answer() {
        assert_eq!(find(b"", [STACK]), None);
        assert_eq!(find(&small()[..40], [STACK]), None);
        assert_eq!(find(&[0; 64], [STACK]), None);
    }

    #[test]
    fn this_kernel_has_a_task_structure() {
        let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else { return };
        let found = find(&bytes, [Wanted::Field { structure: "task_struct", field: "pid" }]);
        assert!(matches!(found, Some([Some(1..)])), "{found:?}");
    }

    proptest! {
        #[test]
        fn damage_is_no_danger(position in 0usize..180, value: u8) {
            let mut bytes = small();
            if let Some(byte) = bytes.get_mut(position) {
                *byte = value;
            }
            let _ = find(&bytes, [STACK, ITERATOR]);
        }
    }
}
