//! How the objects of a process's MPI library are laid out in memory, as data, and the pure functions that read them.
//!
//! What a handle stands for is known to the library alone: 8 bytes at some offset of an object that the handle leads to. All
//! that differs between implementations and versions is in a [`Layout`], one for each process, so that a BPF program, the
//! wrapper and the observer read objects by the same code and know no implementation by name.
//!
//! The functions here ask for one word at a time ([`Memory`]) and make no loop, no copy of the layout, no division by
//! zero and no array access that could fail: they are compiled for BPF too. Whatever a process has in its memory, the worst that
//! can happen is a wrong answer about that process.
#![expect(
    clippy::cast_possible_truncation,
    reason = "fields are cut out of words on purpose; `try_from` is a branch in BPF"
)]
#![expect(clippy::cast_possible_wrap, reason = "words of memory have no sign of their own")]
#![expect(clippy::cast_sign_loss, reason = "checked to be non-negative just before")]
#![expect(clippy::cast_lossless, reason = "`from` is not const")]
#![expect(clippy::inline_always, reason = "BPF programs have 512 bytes of stack and pay for calls")]

mod communicator;
mod datatype;
mod interface;
mod members;
mod memory;
mod objects;
mod standard_abi;
mod status;
pub mod template;

pub use communicator::{CommFacts, CommunicatorLayout, comm, comm_object, context_kind, name_kind};
pub use datatype::{DatatypeLayout, Size, builtin_size, datatype_object, datatype_size, is_predefined};
pub use interface::{Constants, Interface, MPICH, OPEN_MPI, STANDARD_ABI};
pub use members::{MemberLayout, Side, group_member_world_rank, member_kind, member_world_rank, world_rank};
pub use memory::{Field, Memory};
pub use objects::{Objects, handle_kind, object};
pub use standard_abi::{ABI_HANDLES, abi_datatype_size};
pub use status::{
    RequestLayout, StatusLayout, byte_count, is_complete_request, request_status, status_bytes, status_cancelled,
    status_error, status_partner, status_source, status_tag,
};
pub use template::Template;

use bytemuck::{Pod, Zeroable};

use crate::peer;

/// Everything about one process's MPI library that gives meaning to arguments of calls. Zeroed: nothing is known.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Layout {
    /// [`capability`], ORed: the parts below that have been found true of this process. The others are not to be used.
    pub known: u32,
    /// What handles are: one of [`handle_kind`].
    pub handles: u32,
    /// The process's place in `MPI_COMM_WORLD` as its launcher told it, for the time until objects can be read; a size of 0: unknown.
    pub told_rank: u32,
    pub told_size: u32,
    pub constants: Constants,
    pub status: StatusLayout,
    pub datatypes: DatatypeLayout,
    pub communicators: CommunicatorLayout,
    pub members: MemberLayout,
    pub requests: RequestLayout,
    /// Where predefined datatypes are, if handles are addresses: the library's own, and those that the program has copies of. The
    /// memory between the first and the last of each is static, so that no other datatype can ever be there.
    pub predefined: [Extent; 2],
}

/// Addresses from the first up to the last, inclusive. Zeroed: only the null pointer, where nothing is.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Extent {
    pub first: u64,
    pub last: u64,
}

impl Extent {
    #[inline(always)]
    pub const fn contains(&self, address: u64) -> bool {
        address >= self.first && address <= self.last
    }
}

/// Bits of [`Layout::known`].
pub mod capability {
    /// [`Layout::constants`](super::Layout::constants) and [`Layout::status`](super::Layout::status): compiled into every
    /// program that uses the library, hence known as soon as the library is.
    pub const CONSTANTS: u32 = 1 << 0;
    /// Sizes of predefined datatypes whose handle tells them.
    pub const BUILTIN_SIZES: u32 = 1 << 1;
    /// Sizes of all datatypes.
    pub const DATATYPES: u32 = 1 << 2;
    /// Rank, size and context of communicators.
    pub const COMMUNICATORS: u32 = 1 << 3;
    /// Ranks of communicators as ranks in `MPI_COMM_WORLD`.
    pub const MEMBERS: u32 = 1 << 4;
    /// The status that a completed request keeps.
    pub const REQUESTS: u32 = 1 << 5;
    /// No capability: put there by a program, from a [`Template`](super::Template), and not yet looked at by the observer.
    pub const PROVISIONAL: u32 = 1 << 6;
    /// No capability: of objects only some are described, the predefined ones among them.
    pub const PARTIAL: u32 = 1 << 7;
    /// No capability: the observer has looked, and will not again.
    pub const SETTLED: u32 = 1 << 8;
}

impl Layout {
    /// The handle in a register or variable: of a 32-bit one, the upper half may be anything.
    #[inline(always)]
    pub const fn handle(&self, value: u64) -> u64 {
        if self.handles == handle_kind::INTEGER { value & 0xffff_ffff } else { value }
    }

    /// Bytes of a handle.
    #[inline(always)]
    pub const fn handle_width(&self) -> u32 {
        if self.handles == handle_kind::INTEGER { 4 } else { 8 }
    }

    /// What a rank that was given to a call stands for: the rank, or one of [`peer`].
    #[inline(always)]
    pub const fn partner(&self, rank: i32) -> i32 {
        let known = self.knows(capability::CONSTANTS);
        if known && rank == self.constants.proc_null {
            peer::NULL
        } else if known && rank == self.constants.any_source {
            peer::ANY
        } else if rank >= 0 {
            rank
        } else {
            peer::UNKNOWN
        }
    }

    /// Whether an error code is of a class.
    #[inline(always)]
    pub const fn is_error(&self, code: i32, class: i32) -> bool {
        // Open MPI's codes are the classes. MPICH's have the class in their lowest bits, and above them which error it was.
        let class_bits = if self.handles == handle_kind::POINTER { -1 } else { 0x7f };
        code & class_bits == class
    }

    /// Whether what calls mean cannot be found out for want of a part of this.
    #[inline(always)]
    pub const fn is_lacking(&self) -> bool {
        const NEEDED: u32 = capability::CONSTANTS | capability::DATATYPES | capability::COMMUNICATORS;
        self.known & (NEEDED | capability::PARTIAL) != NEEDED
    }

    /// Whether all parts of `capabilities` ([`capability`], ORed) are known.
    #[inline(always)]
    pub const fn knows(&self, capabilities: u32) -> bool {
        self.known & capabilities == capabilities
    }
}

#[cfg(test)]
mod tests;
