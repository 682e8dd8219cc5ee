//! How clocks of several nodes differ, as messages tell.
//!
//! The kernel's clock (`CLOCK_MONOTONIC`) begins with each boot and runs a little faster on one machine than on another. What a message needs
//! tells how two clocks differ: nothing has arrived before it was sent. All such pairs of times of two nodes leave room for some lines
//! ([`band`]); the middle of them is taken, and how far it is to the last of them is how well it is known.

mod band;
mod estimate;
mod evidence;
#[cfg(test)]
mod tests;
mod together;

pub use estimate::estimate;
