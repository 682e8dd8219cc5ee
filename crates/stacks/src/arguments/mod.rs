//! What a call was given that began before anybody looked: by the caller's instructions before it and what the caller still has in
//! registers and memory, and by the registers that the function itself keeps its arguments in. What the caller was given itself is known
//! in the same way, by its own caller.
//!
//! Nothing of this is certain by itself: a value counts only if nothing that the code may have done since can have changed it,
//! and if those two ways do not contradict each other.

mod callee;
mod code;
mod execution;
mod polling;
#[cfg(test)]
mod tests;
mod value;

use std::cell::RefCell;

use crate::callsites::{Module, ModuleAddress};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind};
use mpiprobe_functions::{Argument, Direction, Function, FunctionId, Role};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::polling::{PollingLoop, polling_loop};
use self::{
    callee::from_inner,
    code::Code,
    execution::{Execution, STACK_POINTER, number, writes},
    value::{KnownValue, Source, Symbols, Value},
};
use crate::{memory::Memory, unwind::Frame};

/// How an argument is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KnownBy {
    /// A constant in the caller's code.
    Instruction,
    /// A register that the caller still has.
    CallersRegister,
    /// The caller's stack.
    CallersFrame,
    /// Other memory of the process, which the caller has read it from.
    Memory,
    /// The caller was given it itself, by constants in its own caller's code and registers that this one still has.
    CallersCaller,
    /// A register that the function itself keeps it in.
    Callee,
    /// A place of its stack that it keeps it in, or that it was passed it in.
    CalleesFrame,
    NotKnown,
}

/// A word that a call was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    pub value: u64,
    /// Of the word only the lower half is known, which is all of an `int`.
    pub low_half_only: bool,
    pub known_by: KnownBy,
}

/// Registers of the first arguments, by the numbers of instructions: rdi, rsi, rdx, rcx, r8, r9.
const IN_REGISTERS: [usize; 6] = [7, 6, 2, 1, 8, 9];
/// Registers that a function leaves as they were: by the numbers of instructions, and by DWARF's.
const KEPT: [(usize, u16); 6] = [(3, 3), (5, 6), (12, 12), (13, 13), (14, 14), (15, 15)];
/// What may belong to functions that have been called, below a frame.
const MAX_STACK: u64 = 16 << 20;
/// What a handle may take, bytes.
const MAX_HANDLE: u64 = 8;
/// The same of a status, and of anything else that is neither a buffer nor an array.
const MAX_OBJECT: u64 = 32;
/// What a buffer may take of which that is not known, bytes.
const MAX_BUFFER: u64 = 1 << 20;

/// Bytes of one element of a predefined datatype, by its handle.
pub(crate) type Element<'a> = &'a dyn Fn(u64) -> Option<u64>;

/// Frames whose calls are looked at for one of a function that has ended in another one.
const MAX_CALLS: usize = 64;

/// Callers that have been given an argument by their own one each.
const MAX_PASSED: usize = 3;

/// The function of MPI that one of these frames has called without being there itself: it has ended in another one. With the place
/// of that one's frame, and where the function begins in the process, unless it is Fortran's; the outermost.
pub(crate) fn called(
    frames: &[Frame],
    memory: &mut Memory<'_>,
    mut locate: impl FnMut(u64) -> ModuleAddress,
) -> Option<(usize, FunctionId, Option<u64>)> {
    let pairs = frames.windows(2).enumerate().rev().take(MAX_CALLS);
    for (place, pair) in pairs {
        let [inner, outer] = pair else { continue };
        // What the program's file does itself is under its own names.
        if inner.at.module.id() == outer.at.module.id() {
            continue;
        }
        let Some(outer) = Place::of(outer) else { continue };
        let Some(start) = outer.call().and_then(|call| target(&outer, &call, memory)) else { continue };
        let at = locate(start);
        if let Some((function, is_fortran)) = at.module.mpi_entry(at.offset)
            && at.module.function_range(at.offset).is_some_and(|range| range.start == at.offset)
            && at.module.id() == inner.at.module.id()
        {
            return Some((place, function, Some(start).filter(|_| !is_fortran)));
        }
    }
    None
}

/// What the function of the frame at `place` was given, by argument; `None` where it is not known. `start` is where the function
/// begins if the frame is that of another one.
pub(crate) fn words(
    frames: &[Frame],
    (place, start): (usize, Option<u64>),
    function: FunctionId,
    element: Element<'_>,
    memory: &mut Memory<'_>,
) -> Vec<Option<Word>> {
    let (id, function) = (function, function.function());
    let number = function.arguments.len();
    let place = if start.is_some() { Some(place) } else { c_frame(frames, place, id) };
    let Some(place) = place else { return vec![None; number] };
    let inner = frames.get(place).and_then(Place::of).filter(|inner| start.is_none() && inner.is_all_of(id));
    let cfa = frames.get(place + 1).and_then(|outer| outer.registers.sp());
    let from_inner = inner.as_ref().and_then(|inner| from_inner(inner, cfa, function, memory)).unwrap_or_default();
    let start = start.or_else(|| inner.as_ref()?.start());
    let from_outer = start.and_then(|start| from_outer(frames, place + 1, start, (function, element), memory));
    let from_outer = from_outer.unwrap_or_default();
    let word = |argument: usize| {
        let of = |all: &[Option<KnownValue>]| all.get(argument).copied().flatten();
        match (of(&from_outer), of(&from_inner)) {
            (Some(outer), Some(inner)) if !agree(outer, inner) => None,
            (Some(outer), Some(inner)) if outer.low_half_only && !inner.low_half_only => {
                Some(Word::of(inner, by_callee(inner)))
            }
            (Some(outer), _) => Some(Word::of(outer, outer.source.into())),
            (None, inner) => inner.map(|inner| Word::of(inner, by_callee(inner))),
        }
    };
    (0..number).map(word).collect()
}

/// How the function itself keeps an argument.
const fn by_callee(known: KnownValue) -> KnownBy {
    match known.source {
        Source::Stack => KnownBy::CalleesFrame,
        _ => KnownBy::Callee,
    }
}

/// The frame of the function itself, if the one at `place` is that of Fortran's, which has called it: what that was given are addresses.
fn c_frame(frames: &[Frame], place: usize, function: FunctionId) -> Option<usize> {
    /// From the one to the other, with what is between.
    const MOST: usize = 5;
    let inwards = (0..=place).rev().take(MOST);
    let entry = |place: usize| {
        let at = &frames.get(place)?.at;
        Some((place, at.module.mpi_entry(at.offset.checked_sub(1)?)?))
    };
    let mut entries = inwards.filter_map(entry).take_while(|(_, (found, _))| *found == function);
    entries.find(|(_, (_, is_fortran))| !is_fortran).map(|(place, _)| place)
}

/// What a function was given as words, by argument: `None` where not all of it is known. `handle_width`: bytes of the library's handles.
pub fn values(function: &Function, words: &[Option<Word>], handle_width: u32) -> Vec<Option<u64>> {
    let is_whole =
        |argument: &Argument| argument.wide || argument.is_pointer() || (is_handle(argument.role) && handle_width == 8);
    let value = |(argument, word): (&Argument, &Option<Word>)| {
        word.filter(|word| !word.low_half_only || !is_whole(argument)).map(|word| word.value)
    };
    function.arguments.iter().zip(words).map(value).collect()
}

impl Word {
    /// As a whole number, if that is what the argument is.
    #[expect(clippy::cast_possible_truncation, reason = "the upper half of an int's register means nothing")]
    pub fn integer(self, argument: &Argument) -> Option<i64> {
        let is_integer = !argument.is_pointer() && !is_handle(argument.role);
        match (is_integer, argument.wide) {
            (true, true) if !self.low_half_only => Some(self.value.cast_signed()),
            (true, false) => Some((self.value as i32).into()),
            _ => None,
        }
    }

    pub(crate) fn text(self, argument: &Argument) -> Option<String> {
        match self.integer(argument) {
            Some(number) => Some(number.to_string()),
            // Handles have 32 bits in some libraries.
            None if self.low_half_only && (argument.is_pointer() || argument.wide) => None,
            None => Some(format!("{:#x}", self.value)),
        }
    }

    fn of(known: KnownValue, known_by: KnownBy) -> Self {
        Self { value: known.value, low_half_only: known.low_half_only, known_by }
    }
}

/// Whether an argument is an `int`.
fn is_number(argument: &Argument) -> bool {
    !argument.wide && !argument.is_pointer() && !is_handle(argument.role)
}

/// Whether an argument is what a library calls an object by.
fn is_handle(role: Role) -> bool {
    use Role::{Communicator, Datatype, Errhandler, File, Group, Info, Message, Op, Request, Session, Window};
    matches!(
        role,
        Communicator | Datatype | Errhandler | File | Group | Info | Message | Op | Request | Session | Window
    )
}

impl From<Source> for KnownBy {
    fn from(source: Source) -> Self {
        match source {
            Source::Code => Self::Instruction,
            Source::Register => Self::CallersRegister,
            Source::Stack => Self::CallersFrame,
            Source::Memory => Self::Memory,
            Source::Passed => Self::CallersCaller,
        }
    }
}

/// Of an `int`, the upper half of a register may be anything.
fn agree(one: KnownValue, other: KnownValue) -> bool {
    let mask = if one.low_half_only || other.low_half_only { 0xffff_ffff } else { u64::MAX };
    // What is passed as an `int` is known with zeros there in one place, and with anything in the other.
    one.value & mask == other.value & mask || one.value & 0xffff_ffff == other.value & 0xffff_ffff && is_int(one, other)
}

/// Whether both may be one `int`, extended in different ways.
fn is_int(one: KnownValue, other: KnownValue) -> bool {
    let is_extended = |known: KnownValue| {
        let upper = known.value >> 32;
        upper == 0 || upper == 0xffff_ffff
    };
    is_extended(one) && is_extended(other)
}

/// A frame, and where its code is in its file and in its process.
struct Place<'a> {
    frame: &'a Frame,
    module: &'a Module,
    /// Of the instruction that runs, in the file.
    address: u64,
    /// How much further it is in the process.
    bias: u64,
}

impl<'a> Place<'a> {
    fn of(frame: &'a Frame) -> Option<Self> {
        const PAGE: u64 = 4096;
        let (ip, address) = (frame.registers.ip()?, frame.at.offset.checked_sub(1)?);
        // Of a frame that was interrupted, the place is the byte behind the instruction pointer.
        let bias = [ip.wrapping_sub(frame.at.offset), ip.wrapping_sub(address)];
        let bias = bias.into_iter().find(|bias| bias.is_multiple_of(PAGE))?;
        Some(Self { frame, module: &frame.at.module, address, bias })
    }

    fn code(&self) -> Option<Code> {
        Code::of(self.module, self.address, self.bias)
    }

    /// The call that the frame has made: the instruction before it goes on.
    fn call(&self) -> Option<Instruction> {
        const LENGTHS: [u64; 2] = [5, 6];
        let end = self.frame.at.offset;
        LENGTHS.into_iter().find_map(|length| {
            let start = end.checked_sub(length)?;
            let bytes = self.module.bytes_from(start, length)?;
            let mut decoder =
                Decoder::try_with_ip(64, &bytes, start.wrapping_add(self.bias), DecoderOptions::NONE).ok()?;
            let call = decoder.decode();
            let calls = matches!(call.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
            (calls && call.len() as u64 == length).then_some(call)
        })
    }

    /// Whether the frame's code is a function of that name from its beginning on.
    fn is_all_of(&self, function: FunctionId) -> bool {
        let start = self.module.function_range(self.address).map(|range| range.start);
        start.is_some_and(|start| self.module.mpi_function(start) == Some(function))
    }

    /// Where the function begins in the process.
    fn start(&self) -> Option<u64> {
        Some(self.module.function_range(self.address)?.start.wrapping_add(self.bias))
    }
}

/// By the instructions that lead to the call of the function at `start`, which the frame at `place` has made.
fn from_outer(
    frames: &[Frame],
    place: usize,
    start: u64,
    (function, element): (&Function, Element<'_>),
    memory: &mut Memory<'_>,
) -> Option<Vec<Option<KnownValue>>> {
    let outer = frames.get(place).and_then(Place::of)?;
    let all = by_its_code(&outer, &[], start, (function, element), memory)?;
    if all.iter().all(Option::is_some) {
        return Some(all);
    }
    let passed = passed(frames, place, MAX_PASSED, memory);
    if passed.iter().all(Option::is_none) {
        return Some(all);
    }
    by_its_code(&outer, &passed, start, (function, element), memory)
}

/// The same of a frame that was given these words in registers itself.
fn by_its_code(
    outer: &Place<'_>,
    passed: &[Option<KnownValue>],
    start: u64,
    (function, element): (&Function, Element<'_>),
    memory: &mut Memory<'_>,
) -> Option<Vec<Option<KnownValue>>> {
    let number = function.arguments.len();
    let on_stack = number.saturating_sub(IN_REGISTERS.len()) as u64;
    let sp = outer.frame.registers.sp()?;
    let (execution, call) = at_call(outer, passed)?;
    let mut end = End::of(&execution, memory, sp.checked_sub(MAX_STACK)?..sp.checked_add(on_stack * 8)?);
    if !end.calls(outer, &call, start) {
        return None;
    }
    let arguments: Vec<_> = (0..number).map(|argument| end.argument(argument)).collect();
    let known: Vec<Option<KnownValue>> = arguments.iter().map(|(known, _)| *known).collect();
    let outputs = outputs(function, &known, element);
    let is_kept = |read: &[(u64, u64)]| !read.iter().any(|range| outputs.iter().any(|output| overlap(*range, *output)));
    Some(arguments.iter().map(|(known, read)| known.filter(|_| is_kept(read))).collect())
}

/// What is in registers where a frame has made its call, and that call; `passed`: what it was given in registers itself.
fn at_call(outer: &Place<'_>, passed: &[Option<KnownValue>]) -> Option<(Execution, Instruction)> {
    let code = outer.code()?;
    let registers = &outer.frame.registers;
    let path = code.leading_to(registers.ip()?)?;
    let (call, before) = path.split_last()?;
    let mut execution = Execution::new();
    let given: Vec<(Value, KnownValue)> = if passed.iter().any(Option::is_some) {
        let beginning = path.first()?.ip();
        let flow = code.flow().filter(|_| !code.leaves);
        let is_left_alone = |register| flow.as_ref().is_some_and(|flow| flow.never(beginning, changes(register)));
        let given = IN_REGISTERS.into_iter().zip(passed);
        let given = given.filter_map(|(register, known)| Some((register, (*known)?)));
        let given = given.filter(|(register, _)| is_left_alone(*register));
        given.filter_map(|(register, known)| Some((execution.register(register)?, known))).collect()
    } else {
        Vec::new()
    };
    for instruction in before {
        execution.step(instruction);
    }
    let kept = KEPT.into_iter().chain([(STACK_POINTER, crate::registers::RSP)]);
    for (number, dwarf) in kept {
        if let (Some(value), Some(known)) = (execution.register(number), registers.get(dwarf))
            && !execution.symbols.solve(value, known)
        {
            return None;
        }
    }
    let agrees = given.into_iter().all(|(value, known)| execution.symbols.assume(value, known));
    agrees.then_some((execution, *call))
}

/// What the function of the frame at `place` was given in registers by its own caller, as far as that is in no memory, which
/// anybody may have changed meanwhile.
fn passed(frames: &[Frame], place: usize, depth: usize, memory: &mut Memory<'_>) -> Vec<Option<KnownValue>> {
    let mut known = || {
        let depth = depth.checked_sub(1)?;
        let start = frames.get(place).and_then(Place::of)?.start()?;
        let outer = frames.get(place + 1).and_then(Place::of)?;
        let passed = passed(frames, place + 1, depth, memory);
        let (execution, call) = at_call(&outer, &passed)?;
        if !End::of(&execution, memory, 0..u64::MAX).calls(&outer, &call, start) {
            return None;
        }
        let value = |register| execution.symbols.resolve(execution.register(register)?, &mut |_, _, _, _| None);
        let values = IN_REGISTERS.into_iter().map(value);
        Some(values.map(|known| Some(KnownValue { source: Source::Passed, ..known? })).collect())
    };
    known().unwrap_or_default()
}

/// Whether an instruction may change a register, or calls a function that may.
fn changes(register: usize) -> impl Fn(usize, &Instruction) -> bool {
    let factory = RefCell::new(InstructionInfoFactory::new());
    move |_, instruction| {
        let calls = matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
        let mut factory = factory.borrow_mut();
        let mut written = factory.info(instruction).used_registers().iter().filter(|used| writes(used.access()));
        calls || written.any(|used| number(used.register()) == Some(register))
    }
}

/// Memory that the call may have changed meanwhile, as far as that is known: start and length.
fn outputs(function: &Function, known: &[Option<KnownValue>], element: Element<'_>) -> Vec<(u64, u64)> {
    let arguments = || function.arguments.iter().zip(known);
    let largest = |role: Role, of: &dyn Fn(&Argument, KnownValue) -> Option<u64>| {
        let of_role = arguments().filter(|(argument, _)| argument.role == role);
        let values = of_role
            .map(|(argument, known)| known.filter(|_| !argument.is_array()).and_then(|known| of(argument, known)));
        // One that is not known may be larger than all others.
        values.reduce(|one, other| Some(one?.max(other?))).flatten()
    };
    let count = |argument: &Argument, known: KnownValue| {
        let is_whole = argument.wide && !known.low_half_only;
        Some(if is_whole { known.value } else { known.value & 0xffff_ffff })
    };
    let elements = largest(Role::Count, &count);
    let size = largest(Role::Datatype, &|_, known| element(known.value));
    let buffer = elements.zip(size).map_or(MAX_BUFFER, |(elements, size)| elements.saturating_mul(size));
    let objects = largest(Role::Length, &count).map_or(MAX_BUFFER, |number| number.saturating_mul(MAX_OBJECT));
    let outputs = arguments().filter(|(argument, _)| argument.direction != Direction::In);
    let output = |(argument, known): (&Argument, &Option<KnownValue>)| {
        let address = known.as_ref().filter(|known| !known.low_half_only)?.value;
        let length = match argument.role {
            Role::Buffer => buffer,
            _ if argument.is_array() => objects,
            role if is_handle(role) => MAX_HANDLE,
            _ => MAX_OBJECT,
        };
        Some((address, length))
    };
    outputs.filter_map(output).collect()
}

fn overlap((one, length): (u64, u64), (other, other_length): (u64, u64)) -> bool {
    one < other.saturating_add(other_length) && other < one.saturating_add(length)
}

/// The caller at its call.
struct End<'e, 'm, 's> {
    execution: &'e Execution,
    memory: &'m mut Memory<'s>,
    /// The stack of whatever has been called, with what it was given there: it may have changed that.
    of_called: std::ops::Range<u64>,
    /// Where each store went.
    stores: Vec<Option<u64>>,
}

impl<'e, 'm, 's> End<'e, 'm, 's> {
    fn of(execution: &'e Execution, memory: &'m mut Memory<'s>, of_called: std::ops::Range<u64>) -> Self {
        let without_memory = |value| {
            let known = execution.symbols.resolve(value, &mut |_, _, _, _| None)?;
            (!known.low_half_only).then_some(known.value)
        };
        let stores = execution.stores.iter().map(|store| without_memory(store.address?)).collect();
        Self { execution, memory, of_called, stores }
    }

    /// The argument of that number, and what memory was read for it.
    fn argument(&mut self, argument: usize) -> (Option<KnownValue>, Vec<(u64, u64)>) {
        let value = if let Some(register) = IN_REGISTERS.get(argument) {
            self.execution.register(*register)
        } else {
            let place = 8 * (argument.saturating_sub(IN_REGISTERS.len()) as u64);
            let top = self.execution.register(STACK_POINTER).and_then(|top| top.plus(place));
            // An `int` may have been written as such.
            top.and_then(|top| self.execution.stored(top, 8).or_else(|| self.execution.stored(top, 4)))
        };
        value.map(|value| self.resolve(value)).unwrap_or_default()
    }

    fn resolve(&mut self, value: Value) -> (Option<KnownValue>, Vec<(u64, u64)>) {
        let Self { execution, memory, of_called, stores } = self;
        let mut read = Vec::new();
        let mut load = |_: &Symbols, address: KnownValue, size: u8, seen: usize| {
            let (address, size) = (address.value, u64::from(size));
            let later = stores.iter().zip(&execution.stores).skip(seen);
            let is_kept =
                later.into_iter().all(|(at, store)| at.is_some_and(|at| !overlap((address, size), (at, store.size))));
            if !is_kept || of_called.contains(&address) {
                return None;
            }
            let (word, is_stack) = memory.word_and_place(address)?;
            read.push((address, size));
            let value = if size >= 8 { word } else { word & ((1 << (size * 8)) - 1) };
            let source = if is_stack { Source::Stack } else { Source::Memory };
            Some(KnownValue { value, low_half_only: false, source })
        };
        let known = execution.symbols.resolve(value, &mut load);
        (known, read)
    }

    /// Whether that instruction has called the function at `start`, itself or by way of the linker's tables.
    fn calls(&mut self, outer: &Place<'_>, call: &Instruction, start: u64) -> bool {
        let leads_to = if let (FlowControl::IndirectCall, OpKind::Register) = (call.flow_control(), call.op0_kind()) {
            let value = number(call.op0_register()).and_then(|number| self.execution.register(number));
            value.and_then(|value| self.resolve(value).0).map(|known| known.value)
        } else {
            target(outer, call, self.memory)
        };
        leads_to == Some(start)
    }
}

/// Where a call leads, if its instruction says so: itself or by way of the linker's tables.
fn target(outer: &Place<'_>, call: &Instruction, memory: &mut Memory<'_>) -> Option<u64> {
    match (call.flow_control(), call.op0_kind()) {
        (FlowControl::Call, OpKind::NearBranch64) => {
            let target = call.near_branch_target();
            Some(behind_stub(outer, target, memory).unwrap_or(target))
        }
        (FlowControl::IndirectCall, OpKind::Memory) if call.is_ip_rel_memory_operand() => {
            memory.word(call.ip_rel_memory_address())
        }
        _ => None,
    }
}

/// Where an entry of the procedure linkage table leads; `None` if it is none.
fn behind_stub(outer: &Place<'_>, stub: u64, memory: &mut Memory<'_>) -> Option<u64> {
    const ENTRY: u64 = 16;
    let bytes = outer.module.bytes_from(stub.wrapping_sub(outer.bias), ENTRY)?;
    let mut decoder = Decoder::try_with_ip(64, &bytes, stub, DecoderOptions::NONE).ok()?;
    let jump = decoder.iter().find(|instruction| instruction.mnemonic() != Mnemonic::Endbr64)?;
    let is_jump = jump.mnemonic() == Mnemonic::Jmp && jump.op0_kind() == OpKind::Memory;
    if is_jump && jump.is_ip_rel_memory_operand() { memory.word(jump.ip_rel_memory_address()) } else { None }
}
