//! Reads the arguments of a line of `mpi.tbl`.

use crate::argument::{Direction, Length, Role};
use crate::standard::Standard;

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

/// Descriptors count arguments in a byte; no function of the standard comes near this.
const MOST_ARGUMENTS: usize = 16;

/// One argument in the table's notation.
pub fn argument(text: &str) -> Result<RowArgument, String> {
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
pub fn check(arguments: &[RowArgument], large: Option<Standard>) -> Result<(), String> {
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
