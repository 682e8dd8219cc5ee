//! What is written down of each call while somebody wants the course of events: lines in rings.
//!
//! A ring is an array of [`Line`]s, whose number is a power of two, and its [`RingHead`]. Lines are numbered from 0 on; the one of
//! number n is in entry n modulo that length. Writers take numbers by atomic addition, write the line, and its state last: so many
//! threads, and programs that interrupt each other on a processor, may write to one ring. One reader reads lines in the order of their numbers,
//! as far as they are whole, and says how far it has come. What finds no room is not written and is missed by the calls' numbers.
//!
//! What a call has done to requests comes before the call itself, each as a line of its own, in the same ring: a call is complete when its own
//! line is there. Its second line, if it needs one, is the one before.

mod line;
mod record;
mod ring;

pub use line::{LINE_WORDS, Line, Origin, Words, kind};
pub use record::{CallRecord, ChangeRecord, CommonLine, NO_TAG, OwnLine, PhaseRecord, change, root};
pub use ring::{PRESSURE, RingHead, Room, Unwritten, room, written};
