//! The shared types as aya wants them: plain old data.
#![expect(unsafe_code, reason = "aya::Pod is an unsafe marker trait")]

use mpiprobe_common::{Config, Descriptor, LayerFrame, Target};

/// A value of a table, as bytes to aya.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Plain<T>(pub(crate) T);

// SAFETY: repr(C), integers and arrays of integers only, no padding bytes.
unsafe impl aya::Pod for Plain<Config> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<Descriptor> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<LayerFrame> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<Target> {}
