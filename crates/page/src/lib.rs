//! Profiles to be looked at outside a terminal: the [HTML report](html), and [pictures](plot) for papers.
// Printing to a pipe that somebody has closed must not panic: mpiprobe_present::{say, Output}.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

pub mod html;
mod matrix;
pub mod plot;
