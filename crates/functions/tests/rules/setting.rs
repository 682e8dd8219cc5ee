//! Processes of each implementation of MPI, as far as the rules see them.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use mpiprobe_common::{
    Layout,
    layout::{Interface, MPICH, Memory, OPEN_MPI, STANDARD_ABI, byte_count, capability},
    rules::call::Arguments,
};

/// What the upper half of a register may be where an argument is in the lower one.
const GARBAGE: u64 = 0xdead_beef << 32;

/// The layouts of all kinds of libraries.
pub(crate) fn layouts() -> [Layout; 3] {
    [MPICH, OPEN_MPI, STANDARD_ABI].map(|interface| {
        let Interface { handles, mut constants, status } = interface;
        // Handles of Open MPI are addresses that its interface does not fix.
        for (index, handle) in [
            &mut constants.no_op,
            &mut constants.request_null,
            &mut constants.message_null,
            &mut constants.message_no_proc,
            &mut constants.comm_null,
        ]
        .into_iter()
        .enumerate()
        {
            if handles == OPEN_MPI.handles {
                *handle = 0x7000_0000_0000 + 0x100 * index as u64;
            }
        }
        Layout { known: capability::CONSTANTS, handles, constants, status, ..Layout::default() }
    })
}

/// Arguments and memory. An argument that was not given may be anything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    arguments: HashMap<u8, u64>,
    bytes: HashMap<u64, u8>,
    next: u64,
}

/// That of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared<'a>(pub(crate) &'a Rc<RefCell<Process>>);

impl Process {
    /// An argument, the upper half of whose register means nothing unless it is `wide`.
    pub(crate) fn give(&mut self, position: u8, value: u64, wide: bool) {
        self.arguments.insert(position, if wide { value } else { value & 0xffff_ffff | GARBAGE });
    }

    /// Puts integers of a width somewhere; gives the address.
    pub(crate) fn put(&mut self, values: &[u64], width: u32) -> u64 {
        let address = 0x10_0000 + self.next;
        self.next += 0x1000;
        for (index, value) in values.iter().enumerate() {
            self.write(address + index as u64 * u64::from(width), *value, width);
        }
        address
    }

    pub(crate) fn write(&mut self, address: u64, value: u64, width: u32) {
        for byte in 0..width {
            self.bytes.insert(address + u64::from(byte), (value >> (8 * byte)) as u8);
        }
    }

    /// A status that tells of so many bytes.
    pub(crate) fn put_status(&mut self, layout: &Layout, bytes: u64) -> u64 {
        let address = self.put(&[], 4);
        self.set_status(layout, address, bytes, 0, false);
        address
    }

    /// The same, from that rank, and of an operation that may have been cancelled.
    pub(crate) fn set_status(&mut self, layout: &Layout, address: u64, bytes: u64, source: i32, is_cancelled: bool) {
        let status = &layout.status;
        self.write(address + u64::from(status.source), u64::from(source.cast_unsigned()), 4);
        self.write(address + u64::from(status.error), 0, 4);
        if status.byte_count == byte_count::WORD {
            self.write(address + u64::from(status.bytes), bytes, 8);
            self.write(address + u64::from(status.cancelled), u64::from(is_cancelled), 4);
        } else {
            self.write(address + u64::from(status.bytes), bytes & 0xffff_ffff, 4);
            self.write(address + u64::from(status.bytes) + 4, bytes >> 32 << 1 | u64::from(is_cancelled), 4);
        }
    }
}

impl Memory for Shared<'_> {
    fn word(&self, address: u64) -> Option<u64> {
        self.integer(address, 8)
    }

    fn integer(&self, address: u64, width: u32) -> Option<u64> {
        let process = self.0.borrow();
        (0..width).try_fold(0, |all, byte| {
            Some(all | u64::from(*process.bytes.get(&(address + u64::from(byte)))?) << (8 * byte))
        })
    }
}

impl Arguments for Shared<'_> {
    fn argument(&self, position: u8) -> u64 {
        let given = self.0.borrow().arguments.get(&position).copied();
        given.unwrap_or(GARBAGE | GARBAGE >> 32)
    }
}
