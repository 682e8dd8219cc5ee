//! Derives `crates/functions/mpi.tbl` from the MPI Forum's machine-readable list of the standard's procedures.
//!
//! The Forum publishes that list for MPI 5.0 with, per parameter, a name, a kind, a direction and an array length. What
//! it does not say is knowledge of ours, kept in the modules below: the group of a function, the version that
//! brought or removed it, and corrections where the C binding differs from the list.

mod classify;
mod corrections;
mod history;
mod roles;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde::Deserialize;

/// One procedure of the Forum's list; fields we have no use for are left out.
#[derive(Deserialize)]
struct Procedure {
    name: String,
    attributes: Attributes,
    parameters: Vec<Parameter>,
}

#[derive(Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "as the list has them")]
struct Attributes {
    c_expressible: bool,
    f90_expressible: bool,
    f08_expressible: bool,
    callback: bool,
    predefined_function: Option<String>,
}

#[derive(Deserialize)]
struct Parameter {
    name: String,
    kind: String,
    param_direction: String,
    /// Absent for scalars; a name, `*`, an empty string, or a list of names for two dimensions.
    length: Option<serde_json::Value>,
    root_only: bool,
    large_only: bool,
    /// Bindings and renderings in which the parameter does not appear, separated by spaces.
    suppress: String,
}

/// Reads the Forum's list (`mpi-standard-5.0-apis.json`) at `forum_json` and writes the table to `out`.
pub(crate) fn derive(forum_json: &Path, out: &Path) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(forum_json).with_context(|| format!("cannot read {}", forum_json.display()))?;
    let procedures: BTreeMap<String, Procedure> =
        serde_json::from_str(&text).with_context(|| format!("{} is not the Forum's list", forum_json.display()))?;
    let table = render(procedures.into_values().collect())?;
    std::fs::write(out, table).with_context(|| format!("cannot write {}", out.display()))
}

fn render(mut procedures: Vec<Procedure>) -> anyhow::Result<String> {
    procedures.retain(|procedure| {
        let attributes = &procedure.attributes;
        attributes.c_expressible && !attributes.callback && attributes.predefined_function.is_none()
    });
    corrections::apply(&mut procedures)?;

    let mut rows = history::removed_functions();
    for procedure in &procedures {
        rows.push(row(procedure).with_context(|| procedure.name.clone())?);
    }
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    classify::check_rules(&rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>())?;

    let mut table = String::from(HEADER);
    for row in &rows {
        let Row { name, since, large, fortran, arguments } = row;
        let group = classify::group(name)?;
        let flags = classify::flags(name, group, arguments);
        let line =
            format!("{name:<36} {group:<10} {since:<8} {large:<4} {fortran:<4} {flags:<11} {}", arguments.join(" "));
        writeln!(table, "{}", line.trim_end())?;
    }
    table.push('\n');
    for name in history::FORTRAN_ONLY {
        writeln!(table, "! {name}")?;
    }
    Ok(table)
}

/// A line of the table but for what [`classify`] adds.
struct Row {
    name: String,
    since: &'static str,
    large: &'static str,
    fortran: &'static str,
    arguments: Vec<String>,
}

fn row(procedure: &Procedure) -> anyhow::Result<Row> {
    let name = &procedure.name;
    ensure!(name.starts_with("MPI_"), "not an MPI name");
    let in_c: Vec<&Parameter> =
        procedure.parameters.iter().filter(|p| !p.suppress.contains("c_parameter") && p.kind != "VARARGS").collect();
    let arguments = in_c.iter().map(|p| roles::argument(procedure, p)).collect::<anyhow::Result<_>>()?;
    let has_large_count = in_c.iter().any(|p| p.kind.starts_with("POLY"));
    let fortran = match (procedure.attributes.f90_expressible, procedure.attributes.f08_expressible) {
        (true, true) => "both",
        (true, false) => "f90",
        (false, true) => "f08",
        (false, false) => "-",
    };
    let large = if has_large_count { history::large_count_since(name) } else { "-" };
    Ok(Row { name: name.clone(), since: history::since(name), large, fortran, arguments })
}

const HEADER: &str = "\
# Every function of the C binding of MPI: MPI 5.0 and what earlier versions had and lost.
#
# Derived by `cargo xtask derive-table` from the MPI Forum's list of procedures; corrections belong there.
# Six columns and the arguments, separated by blanks; lines sorted by name; `-` stands for \"none\".
#
#   name       as in C
#   group      p2p coll completion sync rma io init comm type query tool other
#   since      version of the standard that brought it (2.2, 3.1: that version or an earlier one);
#              2.2-3.0 was in MPI 2.2 and is no longer in MPI 3.0
#   large      version that brought the large-count variant, which is named with `_c` at the end
#   fortran    bindings besides C: f90 (mpif.h and the mpi module), f08 (the mpi_f08 module), both
#   flags      polling (called in a loop until something happens), and how it operates if not blocking:
#              nonblocking, persistent; joined by commas
#   arguments  in C order, each [>|&]name[length]:role[:attribute]...
#              > set by the call, & read and set by the call, otherwise only read
#              [n] array of as many elements as argument n says, [*] array whose length follows from something else
#              attributes: 64 (an integer of 64 bits: MPI_Aint, MPI_Count, MPI_Offset), c64 (64 bits in the
#              large-count variant only), atroot (significant at the root only), conly (large-count variant only)
#
# Last come, marked with `!`, names in C spelling that C libraries export for Fortran callers: predefined callbacks
# and helpers which take their arguments by reference.

";
