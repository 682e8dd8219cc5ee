//! Limits of older kernels, which the kernel that runs the tests may not have.

use aya_obj::generated::bpf_insn;

use super::*;

/// Bytes that a program and all that it calls have (`MAX_BPF_STACK`, kernel/bpf/verifier.c, before Linux 6.13).
const STACK_BYTES: usize = 512;
/// What a function's part is rounded up to there.
const STACK_UNIT: usize = 32;
/// The register that points behind a function's part.
const FRAME: u8 = 10;
/// `src_reg` of a call of another function of the program.
const PSEUDO_CALL: u8 = 1;

const CALL: u8 = 0x85;
const MOVE: u8 = 0xbf;
const ADD_CONSTANT: u8 = 0x07;
const CLASS: u8 = 0x07;
const LOAD: u8 = 0x01;
const STORES: [u8; 2] = [0x02, 0x03];

/// The functions of a program, the program's own first: where each begins.
fn beginnings(code: &[bpf_insn]) -> Vec<usize> {
    let mut all = vec![0];
    all.extend((0..code.len()).filter_map(|at| callee(code, at)));
    all.sort_unstable();
    all.dedup();
    all
}

fn callee(code: &[bpf_insn], at: usize) -> Option<usize> {
    let call = code.get(at).filter(|call| call.code == CALL && call.src_reg() == PSEUDO_CALL)?;
    (at + 1).checked_add_signed(isize::try_from(call.imm).ok()?)
}

/// What one instruction, which comes after `before`, needs of the stack: bytes.
fn needs(before: Option<bpf_insn>, instruction: bpf_insn) -> usize {
    let class = instruction.code & CLASS;
    let offset = if (class == LOAD && instruction.src_reg() == FRAME)
        || (STORES.contains(&class) && instruction.dst_reg() == FRAME)
    {
        i32::from(instruction.off)
    } else if instruction.code == ADD_CONSTANT
        && before.is_some_and(|before| {
            before.code == MOVE && before.src_reg() == FRAME && before.dst_reg() == instruction.dst_reg()
        })
    {
        instruction.imm
    } else {
        0
    };
    usize::try_from(-offset).unwrap_or(0)
}

/// Of the function that begins at `start`, and of whatever it calls.
fn stack(code: &[bpf_insn], functions: &[usize], start: usize) -> usize {
    let end = functions.iter().copied().find(|&other| other > start).unwrap_or(code.len());
    let own =
        (start..end).map(|at| needs(at.checked_sub(1).and_then(|before| code.get(before).copied()), code[at])).max();
    let callees = (start..end).filter_map(|at| callee(code, at));
    let deepest = callees.map(|callee| stack(code, functions, callee)).max().unwrap_or(0);
    own.unwrap_or(0).max(1).next_multiple_of(STACK_UNIT) + deepest
}

fn code<'a>(object: &'a Object, name: &str) -> &'a [bpf_insn] {
    &object.functions[&object.programs[name].function_key()].instructions
}

/// Invariant OLD-STACK.
#[test]
fn programs_fit_into_the_stack_of_older_kernels() {
    let mut object = Object::parse(OBJECT).unwrap();
    let text_sections = object.functions.keys().map(|(section, _)| *section).collect();
    object.relocate_calls(&text_sections).unwrap();
    let names: Vec<String> = object.programs.keys().cloned().collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        let code = code(&object, &name);
        let needed = stack(code, &beginnings(code), 0);
        assert!(needed <= STACK_BYTES, "{name} needs {needed} bytes of stack");
        if name == "session" {
            assert!(needed > 100, "the stack of {name} is not understood: {needed} bytes");
        }
    }
}

#[test]
fn what_is_done_concurrently_comes_in_order() {
    let numbers: Vec<u32> = (0..100).collect();
    let doubled: Vec<u32> = numbers.iter().map(|number| 2 * number).collect();
    assert_eq!(concurrently(&numbers, |number| 2 * number), doubled);
    assert_eq!(concurrently(&[] as &[u32], |number| *number), [0; 0]);
}

/// What the verifier may go through for one program: a fifteenth of where it gives up. A way through a program that multiplies with
/// the others shows here first.
const MOST_VERIFIED: u32 = 66_000;

#[test]
fn no_program_takes_the_verifier_long() {
    // What is not asked for is not gone through, and registers hold other things then.
    for (rings, everything) in [(0, 1), (2, 1), (2, 0)] {
        verify_with(&Config {
            rings,
            ring_lines: 1024,
            traffic: 1,
            read_stack: everything,
            recent: everything,
            nested: everything,
            pcontrol_plus_1: everything,
            ..Config::DEFAULT
        });
    }
}

fn verify_with(config: &Config) {
    let rings = config.rings;
    for method in AttachMethod::ALL {
        // A table of programs takes those of one way of attaching only.
        let tables = match Tables::load(config) {
            Ok(tables) => tables,
            Err(error) => return eprintln!("not permitted here: {error}"),
        };
        let linked = tables.linked().unwrap();
        assert!(linked.types.is_some(), "the kernel does not take the object's types");
        let own = [method.programs(rings != 0).as_slice(), method.tool_programs()].concat();
        let own = own.iter().map(|usage| (usage.name, bpf::ProgramKind::Probe(usage.attach_type)));
        let called = Stage::all(rings != 0)
            .map(|stage| (stage.program(rings != 0), bpf::ProgramKind::Probe(method.return_attach_type())));
        for (name, kind) in own.chain(called) {
            let program = load(linked, name, kind).unwrap_or_else(|error| panic!("{method}, {name}: {error:?}"));
            let verified = bpf::verified_instructions(program.as_fd()).unwrap();
            assert!(verified <= MOST_VERIFIED, "{method}, {name}: {verified} instructions");
        }
    }
}
