//! Clocks of several nodes: what is added to times of each, so that they can be compared, and how well that is known.
//!
//! The kernel's clock (`CLOCK_MONOTONIC`) begins with each boot and runs a little faster on one machine than on another. What a message needs
//! tells how two clocks differ: nothing has arrived before it was sent. All such pairs of times of two nodes leave room for some lines
//! ([`band`]); the middle of them is taken, and how far it is to the last of them is how well it is known.

mod band;
mod clocks;
mod estimate;
mod evidence;
#[cfg(test)]
mod tests;
mod together;

pub use clocks::{Clocks, Correction};
pub use estimate::estimate;
