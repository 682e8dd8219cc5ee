//! What calls of MPI mean, by the standard: rules that both engines follow, each over its own tables.

pub mod access;
pub mod completion;
pub mod counting;
