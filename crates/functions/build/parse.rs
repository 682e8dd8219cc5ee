//! Reads `mpi.tbl`; its head describes the format. Anything unexpected is an error with the number of its line.

use std::fmt;

use crate::arguments::{RowArgument, argument, check};
use crate::group::Group;
use crate::operation::Operation;
use crate::standard::Standard;

#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Sorted by name, large-count variants not yet expanded.
    pub functions: Vec<Row>,
    /// Names exported for Fortran callers only.
    pub fortran_only: Vec<String>,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    pub name: String,
    pub group: Group,
    pub since: Standard,
    pub removed: Option<Standard>,
    /// Version that brought the large-count variant, if there is one.
    pub large: Option<Standard>,
    pub f90: bool,
    pub f08: bool,
    pub polling: bool,
    pub operation: Operation,
    pub arguments: Vec<RowArgument>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Error {
    /// 1-based.
    pub line: usize,
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.message)
    }
}

pub fn parse(text: &str) -> Result<Table, Error> {
    let mut table = Table { functions: Vec::new(), fortran_only: Vec::new() };
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_end();
        let at = |message| Error { line: number + 1, message };
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix("! ") {
            follow(table.fortran_only.last().map(String::as_str), name).map_err(at)?;
            table.fortran_only.push(name.to_owned());
        } else {
            let row = row(line).map_err(at)?;
            follow(table.functions.last().map(|row| row.name.as_str()), &row.name).map_err(at)?;
            table.functions.push(row);
        }
    }
    Ok(table)
}

/// Checks that `name` is a name and comes after the one before it.
fn follow(previous: Option<&str>, name: &str) -> Result<(), String> {
    if !name.starts_with("MPI_") || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err(format!("`{name}` is not the name of an MPI function"));
    }
    match previous {
        Some(previous) if previous >= name => Err(format!("{name} must stand before {previous}, and once")),
        _ => Ok(()),
    }
}

fn row(line: &str) -> Result<Row, String> {
    let mut fields = line.split_ascii_whitespace();
    let mut column = |what: &str| fields.next().ok_or_else(|| format!("the column `{what}` is missing"));
    let name = column("name")?.to_owned();
    let group = column("group")?;
    let group = Group::from_key(group).ok_or_else(|| format!("unknown group `{group}`"))?;
    let since = column("since")?;
    let (since, removed) = match since.split_once('-') {
        None => (standard(since)?, None),
        Some((since, removed)) => (standard(since)?, Some(standard(removed)?)),
    };
    if removed.is_some_and(|removed| removed <= since) {
        return Err("removed before it came".to_owned());
    }
    let large = match column("large")? {
        "-" => None,
        large => Some(standard(large)?),
    };
    let (f90, f08) = match column("fortran")? {
        "-" => (false, false),
        "f90" => (true, false),
        "f08" => (false, true),
        "both" => (true, true),
        other => return Err(format!("unknown Fortran binding `{other}`")),
    };
    let (polling, operation) = flags(column("flags")?)?;
    let arguments = fields.map(argument).collect::<Result<Vec<_>, _>>()?;
    check(&arguments, large)?;
    Ok(Row { name, group, since, removed, large, f90, f08, polling, operation, arguments })
}

fn standard(number: &str) -> Result<Standard, String> {
    Standard::from_number(number).ok_or_else(|| format!("unknown version of the standard `{number}`"))
}

fn flags(text: &str) -> Result<(bool, Operation), String> {
    let (mut polling, mut operation) = (false, Operation::Blocking);
    for flag in text.split(',').filter(|_| text != "-") {
        match (flag, Operation::from_key(flag)) {
            ("polling", _) if !polling => polling = true,
            (_, Some(found)) if operation == Operation::Blocking && found != operation => operation = found,
            _ => return Err(format!("unknown or repeated flag `{flag}`")),
        }
    }
    Ok((polling, operation))
}
