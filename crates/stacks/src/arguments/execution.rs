//! What a piece of code without joins does to registers and memory.

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedRegister};

use super::value::{Operation, Origin, Symbols, Value};

/// General registers, by the numbers of instructions: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
pub(super) const REGISTERS: usize = 16;
const RAX: usize = 0;
const RDX: usize = 2;
pub(super) const STACK_POINTER: usize = 4;
const FRAME_POINTER: usize = 5;
/// What a called function need not leave as it was.
const OF_CALLED: [usize; 9] = [RAX, 1, RDX, 6, 7, 8, 9, 10, 11];

/// Something that was written to memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Store {
    /// `None`: anywhere.
    pub(super) address: Option<Value>,
    /// In bytes.
    pub(super) size: u64,
    value: Value,
}

impl Store {
    /// Whether it has put just that there.
    pub(super) fn holds(&self, value: Value) -> bool {
        let is_half = self.size == 4 && self.value == value.narrowed();
        self.size == 8 && self.value == value || is_half
    }
}

/// Registers and memory while a piece of code is followed.
pub(super) struct Execution {
    pub(super) symbols: Symbols,
    registers: [Value; REGISTERS],
    pub(super) stores: Vec<Store>,
    factory: InstructionInfoFactory,
    /// What has last been extended into edx, for a division.
    extended: Option<Value>,
}

impl Execution {
    /// Nothing is known of what registers hold at the beginning.
    pub(super) fn new() -> Self {
        let mut symbols = Symbols::default();
        let registers = std::array::from_fn(|_| symbols.unknown());
        let factory = InstructionInfoFactory::new();
        Self { symbols, registers, stores: Vec::new(), factory, extended: None }
    }

    pub(super) fn register(&self, number: usize) -> Option<Value> {
        self.registers.get(number).copied()
    }

    /// Puts a symbol where the caller has put a word.
    pub(super) fn given(&mut self, address: Value) -> Value {
        let value = self.symbols.unknown();
        self.stores.push(Store { address: Some(address), size: 8, value });
        value
    }

    /// What was last written to an address, of so many bytes; `None` if it is not certain.
    pub(super) fn stored(&self, address: Value, size: u64) -> Option<Value> {
        for store in self.stores.iter().rev() {
            let at = store.address?;
            if at == address && store.size >= size && store.size <= 8 {
                return Some(if size < store.size { store.value.narrowed() } else { store.value });
            }
            if !are_apart(at, store.size, address, size) {
                return None;
            }
        }
        None
    }

    pub(super) fn step(&mut self, instruction: &Instruction) {
        match instruction.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall => {
                for number in OF_CALLED {
                    self.lose(number);
                }
                let value = self.symbols.unknown();
                self.stores.push(Store { address: None, size: 0, value });
            }
            _ => {
                if self.known_step(instruction).is_none() {
                    self.any_step(instruction);
                }
            }
        }
    }

    /// An instruction whose effect is followed; `None` if it is another one.
    fn known_step(&mut self, instruction: &Instruction) -> Option<()> {
        match instruction.mnemonic() {
            Mnemonic::Mov => {
                let value = self.operand(instruction, 1)?;
                self.assign(instruction, value)
            }
            Mnemonic::Movsxd | Mnemonic::Movsx => {
                let value = match instruction.op1_kind() {
                    OpKind::Memory => self.load(instruction, true)?,
                    OpKind::Register if instruction.op1_register().size() == 4 => self.extend(instruction, 1)?,
                    _ => return None,
                };
                self.assign(instruction, value)
            }
            Mnemonic::Movzx if instruction.op1_kind() == OpKind::Memory => {
                let value = self.load(instruction, false)?;
                self.assign(instruction, value)
            }
            Mnemonic::Cdqe => {
                let half = self.register(RAX)?.narrowed();
                let value = self.symbols.made(Operation::SignExtend, half, Value::Constant(0));
                self.set(RAX, value)
            }
            Mnemonic::Cdq => {
                self.extended = Some(self.register(RAX)?.narrowed());
                self.lose(RDX);
                Some(())
            }
            Mnemonic::Idiv => self.divide(instruction),
            Mnemonic::Lea => {
                let value = self.address(instruction)?;
                self.assign(instruction, value)
            }
            Mnemonic::Xor | Mnemonic::Sub
                if instruction.op1_kind() == OpKind::Register
                    && instruction.op0_kind() == OpKind::Register
                    && instruction.op0_register() == instruction.op1_register() =>
            {
                self.assign(instruction, Value::Constant(0))
            }
            Mnemonic::Add => self.arithmetic(instruction, Operation::Add),
            Mnemonic::Sub => self.arithmetic(instruction, Operation::Subtract),
            Mnemonic::And => self.arithmetic(instruction, Operation::And),
            Mnemonic::Or => self.arithmetic(instruction, Operation::Or),
            Mnemonic::Xor => self.arithmetic(instruction, Operation::Xor),
            Mnemonic::Not => {
                let value = self.operand(instruction, 0)?;
                let value = self.symbols.made(Operation::Xor, value, Value::Constant(u64::MAX));
                self.assign(instruction, value)
            }
            Mnemonic::Neg => {
                let value = self.operand(instruction, 0)?;
                let value = self.symbols.made(Operation::Subtract, Value::Constant(0), value);
                self.assign(instruction, value)
            }
            Mnemonic::Shl => self.shift(instruction, Operation::ShiftLeft),
            Mnemonic::Shr => self.shift(instruction, Operation::ShiftRight),
            Mnemonic::Sar if size_of(instruction) == 4 => self.shift(instruction, Operation::ShiftRightInt),
            Mnemonic::Sar => self.shift(instruction, Operation::ShiftRightSigned),
            Mnemonic::Imul if instruction.op_count() == 2 => self.arithmetic(instruction, Operation::Multiply),
            Mnemonic::Imul if instruction.op_count() == 3 => {
                let (left, right) = (self.operand(instruction, 1)?, self.operand(instruction, 2)?);
                let value = self.symbols.made(Operation::Multiply, left, right);
                self.assign(instruction, value)
            }
            Mnemonic::Push => {
                let value = self.operand(instruction, 0)?;
                let top = self.register(STACK_POINTER)?.plus(8_u64.wrapping_neg())?;
                self.stores.push(Store { address: Some(top), size: 8, value });
                self.set(STACK_POINTER, top)
            }
            Mnemonic::Pop if instruction.op0_kind() == OpKind::Register => {
                let top = self.register(STACK_POINTER)?;
                let value = self.load_at(top, 8, false);
                self.set(STACK_POINTER, top.plus(8)?);
                self.assign(instruction, value)
            }
            Mnemonic::Leave => {
                let frame = self.register(FRAME_POINTER)?;
                let value = self.load_at(frame, 8, false);
                self.set(STACK_POINTER, frame.plus(8)?);
                self.set(FRAME_POINTER, value)
            }
            Mnemonic::Nop | Mnemonic::Endbr64 | Mnemonic::Cmp | Mnemonic::Test => Some(()),
            _ => None,
        }
    }

    /// Whatever an instruction may change is not known any more.
    fn any_step(&mut self, instruction: &Instruction) {
        let info = self.factory.info(instruction);
        let registers: Vec<Register> =
            info.used_registers().iter().filter(|used| writes(used.access())).map(UsedRegister::register).collect();
        let memory: Vec<u64> = info
            .used_memory()
            .iter()
            .filter(|used| writes(used.access()))
            .map(|used| used.memory_size().size() as u64)
            .collect();
        let is_explicit = (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
        let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
        for size in memory {
            let address = if is_explicit && !repeats && size > 0 { self.address(instruction) } else { None };
            let value = self.symbols.unknown();
            self.stores.push(Store { address, size, value });
        }
        for register in registers {
            if let Some(number) = number(register) {
                self.lose(number);
            }
        }
    }

    fn divide(&mut self, instruction: &Instruction) -> Option<()> {
        let is_of_ints = match instruction.op0_kind() {
            OpKind::Register => instruction.op0_register().size() == 4,
            OpKind::Memory => instruction.memory_size().size() == 4,
            _ => false,
        };
        let dividend = self.register(RAX)?.narrowed();
        if !is_of_ints || self.extended != Some(dividend) {
            return None;
        }
        let divisor = self.operand(instruction, 0)?;
        let quotient = self.symbols.made(Operation::Quotient, dividend, divisor).narrowed();
        let remainder = self.symbols.made(Operation::Remainder, dividend, divisor).narrowed();
        self.set(RAX, quotient)?;
        self.set(RDX, remainder)
    }

    fn extend(&mut self, instruction: &Instruction, operand: u32) -> Option<Value> {
        let half = self.operand(instruction, operand)?;
        Some(self.symbols.made(Operation::SignExtend, half, Value::Constant(0)))
    }

    fn arithmetic(&mut self, instruction: &Instruction, operation: Operation) -> Option<()> {
        let (left, right) = (self.operand(instruction, 0)?, self.operand(instruction, 1)?);
        let value = self.symbols.made(operation, left, right);
        self.assign(instruction, value)
    }

    /// By a number of bits that the instruction says, of which the processor takes what the size leaves room for.
    fn shift(&mut self, instruction: &Instruction, operation: Operation) -> Option<()> {
        if instruction.op1_kind() != OpKind::Immediate8 {
            return None;
        }
        let size = size_of(instruction);
        let value = self.operand(instruction, 0).filter(|_| matches!(size, 4 | 8))?;
        let bits = u64::from(instruction.immediate8()) % (size * 8);
        let value = self.symbols.made(operation, value, Value::Constant(bits));
        self.assign(instruction, value)
    }

    /// What is read of an operand of 32 or 64 bits.
    fn operand(&mut self, instruction: &Instruction, operand: u32) -> Option<Value> {
        match instruction.op_kind(operand) {
            OpKind::Register => {
                let register = instruction.op_register(operand);
                let value = self.register(number(register)?)?;
                match register.size() {
                    8 => Some(value),
                    4 => Some(value.narrowed()),
                    _ => None,
                }
            }
            OpKind::Memory => self.load(instruction, false),
            OpKind::Immediate8
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64 => Some(Value::Constant(instruction.immediate(operand))),
            _ => None,
        }
    }

    /// Writes the first operand, of 32 or 64 bits.
    fn assign(&mut self, instruction: &Instruction, value: Value) -> Option<()> {
        match instruction.op0_kind() {
            OpKind::Register => {
                let register = instruction.op0_register();
                let number = number(register)?;
                match register.size() {
                    8 => self.set(number, value),
                    4 => self.set(number, value.narrowed()),
                    _ => None,
                }
            }
            OpKind::Memory => {
                let size = instruction.memory_size().size() as u64;
                if size != 8 && size != 4 {
                    return None;
                }
                let address = self.address(instruction);
                let value = if size == 4 { value.narrowed() } else { value };
                self.stores.push(Store { address, size, value });
                Some(())
            }
            _ => None,
        }
    }

    fn load(&mut self, instruction: &Instruction, signed: bool) -> Option<Value> {
        let size = u8::try_from(instruction.memory_size().size()).ok().filter(|size| matches!(size, 1 | 2 | 4 | 8))?;
        let address = self.address(instruction)?;
        Some(self.load_at(address, size, signed))
    }

    fn load_at(&mut self, address: Value, size: u8, signed: bool) -> Value {
        if let Some(value) = self.stored(address, size.into()).filter(|_| size >= 4) {
            return if signed && size == 4 {
                self.symbols.made(Operation::SignExtend, value, Value::Constant(0))
            } else {
                value
            };
        }
        self.symbols.make(Origin::Load { address, size, signed, stores: self.stores.len() })
    }

    /// Where the memory operand is.
    fn address(&mut self, instruction: &Instruction) -> Option<Value> {
        if matches!(instruction.segment_prefix(), Register::FS | Register::GS) {
            return None;
        }
        if instruction.is_ip_rel_memory_operand() {
            return Some(Value::Constant(instruction.ip_rel_memory_address()));
        }
        let mut address = Value::Constant(instruction.memory_displacement64());
        if instruction.memory_base() != Register::None {
            let base = self.wide(instruction.memory_base())?;
            address = self.symbols.made(Operation::Add, base, address);
        }
        if instruction.memory_index() != Register::None {
            let index = self.wide(instruction.memory_index())?;
            let scale = Value::Constant(instruction.memory_index_scale().into());
            let distance = self.symbols.made(Operation::Multiply, index, scale);
            address = self.symbols.made(Operation::Add, address, distance);
        }
        Some(address)
    }

    fn wide(&self, register: Register) -> Option<Value> {
        self.register(number(register).filter(|_| register.size() == 8)?)
    }

    fn set(&mut self, number: usize, value: Value) -> Option<()> {
        *self.registers.get_mut(number)? = value;
        Some(())
    }

    fn lose(&mut self, number: usize) {
        let value = self.symbols.unknown();
        self.set(number, value);
    }
}

pub(super) fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

/// Of the first operand, bytes.
fn size_of(instruction: &Instruction) -> u64 {
    let size = match instruction.op0_kind() {
        OpKind::Register => instruction.op0_register().size(),
        _ => instruction.memory_size().size(),
    };
    size as u64
}

/// The number of a general register, whichever part of it.
pub(super) fn number(register: Register) -> Option<usize> {
    let full = register.full_register();
    full.is_gpr64().then(|| full.number())
}

/// Whether two pieces of memory have no byte in common, whatever the symbols stand for.
fn are_apart(one: Value, one_size: u64, other: Value, other_size: u64) -> bool {
    let distance = match (one, other) {
        (Value::Constant(one), Value::Constant(other)) => other.wrapping_sub(one),
        (Value::Symbol { id, plus, narrow: false }, Value::Symbol { id: other, plus: other_plus, narrow: false })
            if id == other =>
        {
            other_plus.wrapping_sub(plus)
        }
        _ => return false,
    };
    distance >= one_size && distance.wrapping_neg() >= other_size
}
