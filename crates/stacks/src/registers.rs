//! Registers of x86-64 as DWARF numbers them.

/// Places by DWARF's numbers (System V ABI, AMD64 supplement, figure 3.36); the last one stands for the instruction pointer.
pub(crate) const RBP: u16 = 6;
pub(crate) const RSP: u16 = 7;
pub(crate) const RIP: u16 = 16;
/// How many there are.
pub(crate) const COUNT: usize = 17;

/// Values of registers; `None` where a caller's value is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Registers([Option<u64>; COUNT]);

impl Registers {
    /// All of them, in DWARF's order.
    pub fn new(all: [u64; COUNT]) -> Self {
        Self(all.map(Some))
    }

    pub fn get(&self, register: u16) -> Option<u64> {
        self.0.get(usize::from(register)).copied().flatten()
    }

    /// Others than these are left alone.
    pub fn set(&mut self, register: u16, value: Option<u64>) {
        if let Some(place) = self.0.get_mut(usize::from(register)) {
            *place = value;
        }
    }

    /// The instruction pointer.
    pub fn ip(&self) -> Option<u64> {
        self.get(RIP)
    }

    /// The stack pointer.
    pub fn sp(&self) -> Option<u64> {
        self.get(RSP)
    }
}
