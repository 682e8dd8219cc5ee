//! Writes the table as Rust: functions sorted by name, large-count variants among them.

use std::fmt::{Error, Write as _};

use crate::arguments::{RowArgument, Width, length};
use crate::parse::{Row, Table};
use crate::standard::Standard;

/// An ordinary function or a large-count variant.
struct Variant<'a> {
    name: String,
    row: &'a Row,
    since: Standard,
    large: bool,
}

/// The enums' `Debug` form is their Rust spelling.
pub fn emit(table: &Table) -> Result<String, Error> {
    let mut functions = Vec::new();
    for row in &table.functions {
        functions.push(Variant { name: row.name.clone(), row, since: row.since, large: false });
        if let Some(since) = row.large {
            functions.push(Variant { name: format!("{}_c", row.name), row, since, large: true });
        }
    }
    functions.sort_by(|a, b| a.name.cmp(&b.name));

    let mut code = String::new();
    writeln!(code, "/// Every function, sorted by name.")?;
    writeln!(code, "pub static FUNCTIONS: &[Function] = &[")?;
    for function in &functions {
        emit_function(&mut code, function, &functions)?;
    }
    writeln!(code, "];")?;
    writeln!(code, "pub(crate) const COUNT_U16: u16 = {};", functions.len())?;
    writeln!(code, "pub(crate) static FORTRAN_ONLY: &[&str] = &{:?};", table.fortran_only)?;
    Ok(code)
}

fn emit_function(code: &mut String, function: &Variant, all: &[Variant]) -> Result<(), Error> {
    let Row { group, removed, f90, f08, polling, operation, arguments, .. } = function.row;
    let Variant { name, since, large, row } = function;
    let index = |name: &str| all.binary_search_by(|other| other.name.as_str().cmp(name)).map_err(|_| Error);
    let large_count = match (large, row.large) {
        (true, _) => format!("LargeCount::Of(FunctionId::generated({}))", index(&row.name)?),
        (false, Some(_)) => format!("LargeCount::Variant(FunctionId::generated({}))", index(&format!("{name}_c"))?),
        (false, None) => "LargeCount::None".to_owned(),
    };
    let removed = match removed {
        None => "None".to_owned(),
        Some(removed) => format!("Some(Standard::{removed:?})"),
    };
    // The mpif.h binding has no large counts.
    let f90 = *f90 && !large;
    let default = group.is_default();
    write!(
        code,
        "Function {{ name: {name:?}, group: Group::{group:?}, since: Standard::{since:?}, removed: {removed}, \
         default: {default}, polling: {polling}, operation: Operation::{operation:?}, \
         fortran: Fortran {{ f90: {f90}, f08: {f08} }}, large_count: {large_count}, arguments: &["
    )?;
    let arguments: Vec<RowArgument> = arguments.iter().filter(|a| *large || !a.large_only).cloned().collect();
    for argument in &arguments {
        let RowArgument { name, role, direction, width, root_only, .. } = argument;
        let wide = *width == Width::Wide || (*large && *width == Width::Large);
        let length = length(argument, &arguments);
        write!(
            code,
            "Argument {{ name: {name:?}, role: Role::{role:?}, direction: Direction::{direction:?}, \
             length: Length::{length:?}, wide: {wide}, root_only: {root_only} }}, "
        )?;
    }
    writeln!(code, "] }},")
}
