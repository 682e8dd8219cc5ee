//! Which lines of a program's source its calls were made from, compared with the source.
#![expect(clippy::missing_panics_doc, reason = "its assertions fail a test")]

use std::collections::{BTreeMap, BTreeSet};

use libtest_mimic::Failed;

use crate::{Profile, Program};

/// Lines by function.
type Places = BTreeMap<String, BTreeSet<usize>>;

/// Whether each function of a profile was called from the lines of the source where it stands, all of them and no others.
pub fn are_told(profile: &Profile, program: Program) -> Result<(), Failed> {
    let mut seen = Places::new();
    let flows = profile.ranks.iter().filter_map(|row| row.traffic.as_ref()).flat_map(|traffic| &traffic.flows);
    for flow in flows {
        let line = line(program, flow.site.as_deref()).ok_or_else(|| format!("{flow:?}"))?;
        seen.entry(flow.function.clone()).or_default().insert(line);
    }
    // What takes nothing but the error code gets the number of the program's first line from gfortran.
    seen.retain(|function, _| !["MPI_Init", "MPI_Finalize"].contains(&function.as_str()));
    let source = program.source()?;
    let expected: Places = seen.keys().map(|function| (function.clone(), calls(&source, function))).collect();
    assert_eq!(seen, expected);
    for function in ["MPI_Send", "MPI_Recv", "MPI_Sendrecv", "MPI_Waitall", "MPI_Allreduce", "MPI_Bcast"] {
        assert!(seen.contains_key(function), "{function}");
    }
    Ok(())
}

/// The line in `FILE:LINE in FUNCTION`, if that is the program's main file.
pub fn line(program: Program, site: Option<&str>) -> Option<usize> {
    let file = program.files().next()?.file_name()?.to_str()?.to_owned();
    site?.strip_prefix(&file)?.strip_prefix(':')?.split_once(" in ")?.0.parse().ok()
}

/// Where a source calls a function of MPI, in Fortran or by the C++ bindings.
pub fn calls(source: &str, function: &str) -> BTreeSet<usize> {
    let name = function.trim_start_matches("MPI_");
    let forms = [format!("call MPI_{name}("), format!(".{name}("), format!("::{name}(")];
    let is_call = |line: &str| forms.iter().any(|form| line.contains(form.as_str()));
    // gfortran gives a statement the number of its last line.
    let last = |(number, line): (usize, &str)| if line.ends_with('&') { number + 1 } else { number };
    (1..).zip(source.lines()).filter(|(_, line)| is_call(line)).map(last).collect()
}
