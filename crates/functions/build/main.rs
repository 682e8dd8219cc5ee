//! Generates the static table from `mpi.tbl`.
#![expect(
    dead_code,
    unreachable_pub,
    reason = "the enums are the library's; the build needs a part of what they offer"
)]

#[path = "../src/argument.rs"]
mod argument;
mod arguments;
mod emit;
#[path = "../src/group.rs"]
mod group;
#[path = "../src/operation.rs"]
mod operation;
mod parse;
#[path = "../src/standard.rs"]
mod standard;

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    for input in ["mpi.tbl", "build", "src/argument.rs", "src/group.rs", "src/operation.rs", "src/standard.rs"] {
        println!("cargo::rerun-if-changed={input}");
    }
    let text = std::fs::read_to_string("mpi.tbl")?;
    let table = parse::parse(&text).map_err(|error| format!("mpi.tbl:{error}"))?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR for build scripts")?);
    std::fs::write(out.join("table.rs"), emit::emit(&table)?)?;
    Ok(())
}
