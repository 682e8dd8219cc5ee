//! Which ranks wait for which others, as far as the calls that they are in tell, and which of them wait in a circle.

mod calls;
mod causes;
mod circles;
mod graph;
mod held;
mod matching;
mod needs;
#[cfg(test)]
mod tests;
mod world;

pub use calls::longest;
pub use causes::{Cause, causes};
pub use graph::{Waiting, waiting};
pub use matching::{Operation, OtherEnd, Posted, operations, unmatched, unmatched_rows};
pub use needs::{Certainty, Need, Wait, Why};
