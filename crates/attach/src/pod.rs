//! Shared types as values of tables.
#![expect(unsafe_code, reason = "what aya may copy to and from the kernel is a promise")]

use bytemuck::Pod;

/// A value of a table.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Plain<T>(pub T);

// SAFETY: the type is plain by its own derivation, and this one has its representation.
unsafe impl<T: Pod> aya::Pod for Plain<T> {}
