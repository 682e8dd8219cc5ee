//! Reads `mpi.tbl`; its head describes the format. Anything unexpected is an error with the number of its line.

use std::fmt;

use crate::argument::{Direction, Length, Role};
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowArgument {
    pub name: String,
    pub role: Role,
    pub direction: Direction,
    /// The name of the argument that says the length, `*`, or nothing for a scalar.
    pub length: Option<String>,
    pub width: Width,
    pub root_only: bool,
    pub large_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    Int,
    /// 64 bits in the large-count variant.
    Large,
    Wide,
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

/// Descriptors count arguments in a byte; no function of the standard comes near this.
const MOST_ARGUMENTS: usize = 16;

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

fn argument(text: &str) -> Result<RowArgument, String> {
    let (direction, rest) = match text.as_bytes().first() {
        Some(b'>') => (Direction::Out, text.get(1..)),
        Some(b'&') => (Direction::InOut, text.get(1..)),
        _ => (Direction::In, Some(text)),
    };
    let mut parts = rest.unwrap_or_default().split(':');
    let name = parts.next().unwrap_or_default();
    let (name, length) = match name.split_once('[') {
        None => (name, None),
        Some((name, length)) => {
            (name, Some(length.strip_suffix(']').ok_or_else(|| format!("`{text}`: `[` without `]`"))?.to_owned()))
        }
    };
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err(format!("`{text}`: an argument needs a name"));
    }
    let role = parts.next().ok_or_else(|| format!("`{text}`: an argument needs a role"))?;
    let role = Role::from_key(role).ok_or_else(|| format!("`{text}`: unknown role `{role}`"))?;
    let mut argument = RowArgument {
        name: name.to_owned(),
        role,
        direction,
        length,
        width: Width::Int,
        root_only: false,
        large_only: false,
    };
    for attribute in parts {
        let fresh = match attribute {
            "64" => std::mem::replace(&mut argument.width, Width::Wide) == Width::Int,
            "c64" => std::mem::replace(&mut argument.width, Width::Large) == Width::Int,
            "atroot" => !std::mem::replace(&mut argument.root_only, true),
            "conly" => !std::mem::replace(&mut argument.large_only, true),
            other => return Err(format!("`{text}`: unknown attribute `{other}`")),
        };
        if !fresh {
            return Err(format!("`{text}`: `{attribute}` is one too many"));
        }
    }
    Ok(argument)
}

/// What holds of a list of arguments as a whole.
fn check(arguments: &[RowArgument], large: Option<Standard>) -> Result<(), String> {
    if arguments.len() > MOST_ARGUMENTS {
        return Err(format!("more than {MOST_ARGUMENTS} arguments"));
    }
    for (i, argument) in arguments.iter().enumerate() {
        let name = &argument.name;
        if arguments.iter().take(i).any(|earlier| earlier.name == *name) {
            return Err(format!("two arguments are called {name}"));
        }
        if large.is_none() && (argument.width == Width::Large || argument.large_only) {
            return Err(format!("{name} is about a large-count variant, and there is none"));
        }
        if let Some(length) = argument.length.as_deref().filter(|length| *length != "*")
            && !arguments.iter().any(|other| other.name == length && other.large_only <= argument.large_only)
        {
            return Err(format!("the length of {name} is `{length}`, which is no argument"));
        }
    }
    Ok(())
}

/// The index of the argument that says the length of `argument`, in the list it is part of.
pub fn length(argument: &RowArgument, arguments: &[RowArgument]) -> Length {
    match argument.length.as_deref() {
        None => Length::Scalar,
        Some(name) => arguments
            .iter()
            .position(|other| other.name == name)
            .and_then(|index| u8::try_from(index).ok())
            .map_or(Length::Implied, Length::Argument),
    }
}
