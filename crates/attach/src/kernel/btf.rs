//! The kernel's own type information (BTF, Documentation/bpf/btf.rst): where a field is in a structure, and the id of a function.
//!
//! One pass over the raw bytes, and one more where a field is in a structure without a name; aya's reader keeps all of it to itself.

use super::btf_types::{KIND_FUNCTION, KIND_STRUCT, Sections};

/// Something that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Offset of a field in a structure, bytes; also of one in a structure within it that has no name.
    Field { structure: &'static str, field: &'static str },
    /// Id of a function.
    Function { name: &'static str },
}

/// The answers in the order of what is `wanted`; `None` where there is no such field or function. The whole is `None` if these
/// bytes are no BTF, or damaged.
pub fn find<const N: usize>(bytes: &[u8], wanted: [Wanted; N]) -> Option<[Option<u32>; N]> {
    let mut found = [None; N];
    fill(bytes, &wanted, &mut found)?;
    Some(found)
}

/// There are some hundred thousand types: of most, nothing is looked at but what kind they are.
fn fill(bytes: &[u8], wanted: &[Wanted], found: &mut [Option<u32>]) -> Option<()> {
    let sections = Sections::of(bytes)?;
    // Structures without a name in those that are asked about: which answer, type, offset.
    let mut unnamed: Vec<(usize, u32, u32)> = Vec::new();
    sections.each_type(|found_type| {
        if !matches!(found_type.kind, KIND_STRUCT | KIND_FUNCTION) {
            return;
        }
        let own_name = found_type.name();
        for (index, (answer, wanted)) in found.iter_mut().zip(wanted).enumerate() {
            match wanted {
                Wanted::Field { structure, field }
                    if found_type.kind == KIND_STRUCT && own_name == structure.as_bytes() =>
                {
                    *answer = answer.or_else(|| found_type.offset_of(field));
                    let inner = found_type.members().filter(|member| member.name.is_empty());
                    unnamed.extend(inner.map(|member| (index, member.type_id, member.offset)));
                }
                Wanted::Function { name } if found_type.kind == KIND_FUNCTION && own_name == name.as_bytes() => {
                    *answer = answer.or(Some(found_type.id));
                }
                _ => {}
            }
        }
    })?;
    unnamed.retain(|&(index, ..)| found.get(index).is_some_and(Option::is_none));
    if !unnamed.is_empty() {
        sections.each_type(|found_type| {
            for &(index, _, base) in unnamed.iter().filter(|&&(_, id, _)| id == found_type.id) {
                let (Some(answer), Some(Wanted::Field { field, .. })) = (found.get_mut(index), wanted.get(index))
                else {
                    continue;
                };
                *answer = answer.or_else(|| base.checked_add(found_type.offset_of(field)?));
            }
        })?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STACK: Wanted = Wanted::Field { structure: "return_instance", field: "stack" };
    const NOBODY: Wanted = Wanted::Field { structure: "return_instance", field: "nobody" };
    const INNER: Wanted = Wanted::Field { structure: "return_instance", field: "inner" };
    const ITERATOR: Wanted = Wanted::Function { name: "bpf_iter_task" };

    /// `int`, a structure of three fields, a function of that name, and what the third is: a structure without a name.
    fn small() -> Vec<u8> {
        let strings = b"\0int\0return_instance\0func\0stack\0bpf_iter_task\0inner\0";
        let number = |length: usize| u32::try_from(length).unwrap();
        let offset =
            |name: &str| number(strings.windows(name.len()).position(|window| window == name.as_bytes()).unwrap());
        let mut types: Vec<u32> = vec![offset("int"), 1 << 24, 8, 64];
        types.extend([
            offset("return_instance"),
            4 << 24 | 3,
            40,
            offset("func"),
            1,
            0,
            offset("stack"),
            1,
            128,
            0,
            4,
            192,
        ]);
        types.extend([offset("bpf_iter_task"), 12 << 24, 1]);
        types.extend([0, 4 << 24 | 1, 16, offset("inner"), 1, 64]);
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        let sections = [24, 0, number(types.len() * 4), number(types.len() * 4), number(strings.len())];
        bytes.extend(sections.iter().chain(&types).flat_map(|word| word.to_le_bytes()));
        bytes.extend_from_slice(strings);
        bytes
    }

    #[test]
    fn fields_and_functions_are_found() {
        assert_eq!(find(&small(), [STACK, NOBODY, ITERATOR, INNER]), Some([Some(16), None, Some(3), Some(32)]));
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
        let field = |structure, field| Wanted::Field { structure, field };
        let found = find(&bytes, [field("task_struct", "pid"), field("mm_struct", "env_start")]);
        assert!(matches!(found, Some([Some(1..), Some(1..)])), "{found:?}");
    }

    proptest! {
        #[test]
        fn damage_is_no_danger(position in 0usize..230, value: u8) {
            let mut bytes = small();
            if let Some(byte) = bytes.get_mut(position) {
                *byte = value;
            }
            let _ = find(&bytes, [STACK, ITERATOR, INNER]);
        }
    }
}
