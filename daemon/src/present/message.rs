//! What is said besides the results, on standard error.

use std::{fmt, io, io::Write as _};

/// Says a line, unless nobody listens any more: `eprintln!` would panic then.
pub fn say(message: impl fmt::Display) {
    // There is no other place to complain.
    let _ = writeln!(io::stderr().lock(), "mpiprobe: {message}");
}

/// Says something that the next message on the line overwrites.
pub fn say_in_passing(message: impl fmt::Display) {
    let _ = write!(io::stderr().lock(), "\rmpiprobe: {message}");
}
