//! What BPF programs, wrapper and observer share: the layout of the tables and the pure logic on them.
#![no_std]

pub mod descriptor;

pub use descriptor::Descriptor;
