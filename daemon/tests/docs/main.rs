//! What the documentation shows is generated or tested.
//!
//! `cargo xtask docs` runs these tests with [`generated::UPDATE`] set, which writes the generated pages anew.
//!
//! Invariant DOCS-ARE-TRUE.

mod cli;
mod crates;
mod functions;
mod generated;
mod invariants;
mod json;
mod keys;
mod markdown;
mod messages;
mod modules;
mod monitoring;
mod options;
mod pictures;
mod references;
mod security;
mod workspace;
