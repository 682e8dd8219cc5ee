//! mpiprobe: an out-of-process profiler for MPI on Linux.
//!
//! Data flows one way through these modules; none knows those after it:
//! `discover` → `plan` → `layout` → `attach` → `observe` → `model` → `callsites` → `analyse` → `filter` → `present` → `recording` → `diagnose` → `view`. `session` puts
//! them together.
// Printing to a pipe that somebody has closed must not panic: present::{say, Output}.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

pub mod analyse;
pub mod attach;
pub mod callsites;
pub mod cli;
pub mod diagnose;
pub mod discover;
pub mod doctor;
pub mod files;
pub mod filter;
pub mod layout;
pub mod model;
pub mod observe;
pub mod plan;
pub mod preload;
pub mod present;
pub mod recording;
pub mod session;
pub mod view;
