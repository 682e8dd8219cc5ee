//! To be written.

pub mod plan;
