//! Writes the list of entry points, from the table of functions.
#![expect(clippy::print_stdout, reason = "this is how build scripts talk to cargo")]

use std::{error::Error, fmt::Write as _, fs, path::PathBuf};

use mpiprobe_functions::{FUNCTIONS, FunctionSet, fingerprint};

/// Arguments that are passed in registers.
const REGISTER_ARGUMENTS: usize = 6;
/// Function ids are below this.
const FUNCTION_SLOTS: usize = mpiprobe_common::FUNCTION_SLOTS as usize;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR for build scripts")?);
    fs::write(out.join("entries.rs"), entries()?)?;
    Ok(())
}

/// One call of the macro `entries!`: for each symbol its index, name, the words that its arguments take on the stack, and the
/// function's id. First all `MPI_X` by id, then all `PMPI_X`.
fn entries() -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    writeln!(text, "pub(crate) const FUNCTIONS: usize = {};", FUNCTIONS.len())?;
    writeln!(text, "pub(crate) const FUNCTIONS_FINGERPRINT: u64 = {:#x};", fingerprint())?;
    let mut default = [0u64; FUNCTION_SLOTS / 64];
    for id in FunctionSet::default_functions().iter() {
        if let Some(word) = default.get_mut(id.index() / 64) {
            *word |= 1 << (id.index() % 64);
        }
    }
    writeln!(text, "/// Functions that are counted unless the user says otherwise, a bit each.")?;
    writeln!(text, "pub(crate) static DEFAULT_FUNCTIONS: [u64; {}] = {default:?};", default.len())?;
    writeln!(text, "/// Where arguments stand, by function id.")?;
    writeln!(text, "pub(crate) static DESCRIPTORS: [Descriptor; {}] = [", FUNCTIONS.len())?;
    for function in FUNCTIONS {
        writeln!(text, "    {:?},", function.descriptor())?;
    }
    writeln!(text, "];")?;
    let id = |name: &str| {
        let id = FUNCTIONS.iter().position(|function| function.name == name);
        id.ok_or_else(|| format!("the table has no {name}"))
    };
    writeln!(text, "/// The function by which programs say what is to be counted.")?;
    writeln!(text, "pub(crate) const CONTROL_FUNCTION: u32 = {};", id("MPI_Pcontrol")?)?;
    writeln!(text, "/// Where sessions come from and go.")?;
    writeln!(text, "pub(crate) const SESSION_BEGINS: u32 = {};", id("MPI_Session_init")?)?;
    writeln!(text, "pub(crate) const SESSION_ENDS: u32 = {};", id("MPI_Session_finalize")?)?;
    writeln!(text, "entries! {{")?;
    for (kind, prefix) in ["", "P"].into_iter().enumerate() {
        for (id, function) in FUNCTIONS.iter().enumerate() {
            let index = kind * FUNCTIONS.len() + id;
            let name = function.name;
            let through = match function.arguments.len().saturating_sub(REGISTER_ARGUMENTS) {
                // The only one with a variable number of arguments.
                _ if name == "MPI_Pcontrol" => "variadic".to_owned(),
                words => words.to_string(),
            };
            writeln!(text, "    {index} {prefix}{name} mpiprobe_through_{through};")?;
        }
    }
    writeln!(text, "}}")?;
    Ok(text)
}
