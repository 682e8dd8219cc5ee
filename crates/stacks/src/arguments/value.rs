//! What is in a register or in memory at one instruction, in terms of what is known at another.

use std::collections::HashMap;

/// How deep values may rest on others.
const MAX_DEPTH: u32 = 32;
/// Values that are followed within one function.
const MAX_SYMBOLS: usize = 1 << 16;

/// A value by what it is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Value {
    Constant(u64),
    /// What a symbol stands for, plus a number; `narrow`: of the sum the lower 32 bits.
    Symbol {
        id: usize,
        plus: u64,
        narrow: bool,
    },
}

/// What a symbol stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    /// Nothing that can be said.
    Unknown,
    /// What was in memory when `stores` stores had been seen.
    Load { address: Value, size: u8, signed: bool, stores: usize },
    /// Of two values.
    Made { operation: Operation, left: Value, right: Value },
}

/// What makes one value of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Operation {
    Add,
    Subtract,
    Multiply,
    ShiftLeft,
    /// With zeros, or with copies of the sign.
    ShiftRight,
    ShiftRightSigned,
    /// The latter of the lower 32 bits as a signed number, into 32 bits.
    ShiftRightInt,
    And,
    Or,
    Xor,
    /// Of the lower 32 bits as a signed number; the second value is not used.
    SignExtend,
    /// Of signed numbers of 32 bits.
    Quotient,
    Remainder,
}

/// How a value is known at last: each rests on more that could be otherwise than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    Code,
    Register,
    Stack,
    Memory,
    /// By the code of the caller's caller.
    Passed,
}

/// A number, and how it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownValue {
    pub(super) value: u64,
    /// Of the value only the lower 32 bits are known.
    pub(super) low_half_only: bool,
    pub(super) source: Source,
}

impl Value {
    pub(super) fn narrowed(self) -> Self {
        match self {
            Self::Constant(value) => Self::Constant(value & 0xffff_ffff),
            Self::Symbol { id, plus, .. } => Self::Symbol { id, plus, narrow: true },
        }
    }

    /// How much more it is than `other`, if both stand for one number.
    pub(super) fn distance_from(self, other: Self) -> Option<i64> {
        match (self, other) {
            (Self::Symbol { id, plus, narrow: false }, Self::Symbol { id: same, plus: from, narrow: false })
                if id == same =>
            {
                Some(plus.wrapping_sub(from).cast_signed())
            }
            _ => None,
        }
    }

    pub(super) fn plus(self, number: u64) -> Option<Self> {
        match self {
            Self::Constant(value) => Some(Self::Constant(value.wrapping_add(number))),
            Self::Symbol { id, plus, narrow: false } => {
                Some(Self::Symbol { id, plus: plus.wrapping_add(number), narrow: false })
            }
            Self::Symbol { .. } => None,
        }
    }
}

/// All symbols of one function, and what has been found out of them.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    origins: Vec<Origin>,
    solved: HashMap<usize, KnownValue>,
}

impl Symbols {
    pub(super) fn make(&mut self, origin: Origin) -> Value {
        // The last one stands for all that follow, of which nothing is said then.
        if self.origins.len() >= MAX_SYMBOLS {
            if let Some(last) = self.origins.last_mut() {
                *last = Origin::Unknown;
            }
        } else {
            self.origins.push(origin);
        }
        Value::Symbol { id: self.origins.len().saturating_sub(1), plus: 0, narrow: false }
    }

    pub(super) fn unknown(&mut self) -> Value {
        self.make(Origin::Unknown)
    }

    pub(super) fn made(&mut self, operation: Operation, left: Value, right: Value) -> Value {
        match (operation, left, right) {
            (_, Value::Constant(left), Value::Constant(right)) => {
                operate(operation, left, right).map_or_else(|| self.unknown(), Value::Constant)
            }
            (Operation::Add, value, Value::Constant(number)) | (Operation::Add, Value::Constant(number), value)
                if value.plus(number).is_some() =>
            {
                value.plus(number).unwrap_or(value)
            }
            (Operation::Subtract, value, Value::Constant(number)) if value.plus(number).is_some() => {
                value.plus(number.wrapping_neg()).unwrap_or(value)
            }
            _ => self.make(Origin::Made { operation, left, right }),
        }
    }

    /// Notes that `value` is `number` in the end. `false`: that contradicts what was known.
    pub(super) fn solve(&mut self, value: Value, number: u64) -> bool {
        match value {
            Value::Constant(constant) => constant == number,
            Value::Symbol { id, plus, narrow } => {
                if narrow && number >> 32 != 0 {
                    return false;
                }
                let known =
                    KnownValue { value: number.wrapping_sub(plus), low_half_only: narrow, source: Source::Register };
                match self.solved.get(&id) {
                    Some(before) if before.low_half_only || narrow => {
                        let is_same = low(before.value) == low(known.value);
                        if before.low_half_only {
                            self.solved.insert(id, known);
                        }
                        is_same
                    }
                    Some(before) => before.value == known.value,
                    None => {
                        self.solved.insert(id, known);
                        true
                    }
                }
            }
        }
    }

    /// Notes what a value was from the beginning. `false`: that contradicts what is known.
    pub(super) fn assume(&mut self, value: Value, known: KnownValue) -> bool {
        let Value::Symbol { id, plus: 0, narrow: false } = value else { return false };
        match self.solved.get(&id) {
            Some(before) if before.low_half_only || known.low_half_only => low(before.value) == low(known.value),
            Some(before) => before.value == known.value,
            None => {
                self.solved.insert(id, known);
                true
            }
        }
    }

    /// What a value is in the end; `load` says what is at an address then, of so many bytes, if it is what was there when so many
    /// stores had been seen.
    pub(super) fn resolve(
        &self,
        value: Value,
        load: &mut dyn FnMut(&Self, KnownValue, u8, usize) -> Option<KnownValue>,
    ) -> Option<KnownValue> {
        self.resolve_within(value, load, MAX_DEPTH)
    }

    fn resolve_within(
        &self,
        value: Value,
        load: &mut dyn FnMut(&Self, KnownValue, u8, usize) -> Option<KnownValue>,
        depth: u32,
    ) -> Option<KnownValue> {
        let depth = depth.checked_sub(1)?;
        let (id, plus, narrow) = match value {
            Value::Constant(value) => return Some(KnownValue { value, low_half_only: false, source: Source::Code }),
            Value::Symbol { id, plus, narrow } => (id, plus, narrow),
        };
        let base = match (self.solved.get(&id), self.origins.get(id)?) {
            (Some(known), _) => *known,
            (None, Origin::Unknown) => return None,
            (None, Origin::Load { address, size, signed, stores }) => {
                let address = self.resolve_within(*address, load, depth)?;
                if address.low_half_only {
                    return None;
                }
                let mut loaded = load(self, address, *size, *stores)?;
                if *signed {
                    let unused = 64_u32.checked_sub(u32::from(*size) * 8)?;
                    loaded.value = ((loaded.value << unused).cast_signed() >> unused).cast_unsigned();
                }
                KnownValue { source: loaded.source.max(address.source), ..loaded }
            }
            (None, Origin::Made { operation, left, right }) => {
                let left = self.resolve_within(*left, load, depth)?;
                let right = self.resolve_within(*right, load, depth)?;
                let low_half_only = match operation {
                    Operation::SignExtend | Operation::Quotient | Operation::Remainder | Operation::ShiftRightInt => {
                        false
                    }
                    // What is not known would come down.
                    Operation::ShiftRight | Operation::ShiftRightSigned if left.low_half_only => return None,
                    _ => left.low_half_only || right.low_half_only,
                };
                let value = operate(*operation, left.value, right.value)?;
                KnownValue { value, low_half_only, source: left.source.max(right.source) }
            }
        };
        let sum = base.value.wrapping_add(plus);
        let (value, low_half_only) = if narrow { (low(sum), false) } else { (sum, base.low_half_only) };
        Some(KnownValue { value, low_half_only, source: base.source })
    }
}

fn low(value: u64) -> u64 {
    value & 0xffff_ffff
}

/// Of numbers of which only the lower halves are known, the lower half of the result is right.
fn operate(operation: Operation, left: u64, right: u64) -> Option<u64> {
    let signed = |value: u64| {
        let bytes = value.to_le_bytes();
        bytes.first_chunk().map(|half| i32::from_le_bytes(*half))
    };
    let both = || Some((signed(left)?, signed(right)?));
    Some(match operation {
        Operation::Add => left.wrapping_add(right),
        Operation::Subtract => left.wrapping_sub(right),
        Operation::Multiply => left.wrapping_mul(right),
        Operation::ShiftLeft => left.checked_shl(u32::try_from(right).ok()?)?,
        Operation::ShiftRight => left.checked_shr(u32::try_from(right).ok()?)?,
        Operation::ShiftRightSigned => left.cast_signed().checked_shr(u32::try_from(right).ok()?)?.cast_unsigned(),
        Operation::ShiftRightInt => signed(left)?.checked_shr(u32::try_from(right).ok()?)?.cast_unsigned().into(),
        Operation::And => left & right,
        Operation::Or => left | right,
        Operation::Xor => left ^ right,
        Operation::SignExtend => i64::from(signed(left)?).cast_unsigned(),
        Operation::Quotient => both().and_then(|(left, right)| left.checked_div(right))?.cast_unsigned().into(),
        Operation::Remainder => both().and_then(|(left, right)| left.checked_rem(right))?.cast_unsigned().into(),
    })
}
