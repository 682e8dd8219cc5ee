//! What a test needs of the machine.
