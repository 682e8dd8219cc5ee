//! mpiprobe: an out-of-process profiler for MPI on Linux.
//!
//! Data flows one way through the crates below `crates/`, and cargo sees to it: `discover` → `plan` → `layout` → `observe` → `attach`,
//! and `observe` → `model` → `callsites` → `present` → `view`. `session` puts them together.
// Printing to a pipe that somebody has closed must not panic: present::{say, Output}.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

pub mod agent;
pub mod asking;
mod blueprints;
mod chunks;
pub mod cli;
pub mod doctor;
pub mod hang;
pub mod memory;
pub mod nodes;
mod operands;
pub mod preload;
pub mod push;
pub mod service;
pub mod session;
mod viewed;
