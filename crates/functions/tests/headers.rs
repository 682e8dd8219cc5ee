//! The table against the prototypes in installed headers.
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

mod installed;

use std::collections::BTreeSet;

use mpiprobe_functions::{Argument, Role, by_name, is_fortran_only};

/// One `int MPI_X(…)`: the name and the declarations of its parameters.
struct Prototype {
    name: String,
    parameters: Vec<String>,
}

/// The prototypes of every implementation. There must be plenty: a parser that finds none would agree with any table.
///
/// The first one of a name counts: MPICH's mpio.h repeats some for builds without mpi_proto.h, not all of them rightly.
fn prototypes() -> Vec<Prototype> {
    let mut all = Vec::new();
    for paths in installed::headers() {
        let mut seen = BTreeSet::new();
        for path in &paths {
            let text = std::fs::read_to_string(path).unwrap();
            let prototypes = code_only(&text).split(';').filter_map(prototype).collect::<Vec<_>>();
            all.extend(prototypes.into_iter().filter(|prototype| seen.insert(prototype.name.clone())));
        }
        assert!(seen.len() > 390, "only {} prototypes in {paths:?}", seen.len());
    }
    all
}

/// The text without comments and preprocessor lines.
fn code_only(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*") {
        code.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    code.push_str(rest);
    let mut continued = false;
    let mut lines = Vec::new();
    for line in code.lines() {
        let directive = continued || line.trim_start().starts_with('#');
        continued = directive && line.ends_with('\\');
        if !directive {
            lines.push(line.split("//").next().unwrap_or_default());
        }
    }
    lines.join("\n")
}

fn prototype(statement: &str) -> Option<Prototype> {
    let (before, after) = statement.split_once('(')?;
    let name = before.trim_end().rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
    if !name.starts_with("MPI_") || before.contains("typedef") {
        return None;
    }
    let mut depth = 1;
    let end = after.find(|c| {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth == 0
    })?;
    let parameters = after[..end].split(',').map(|p| p.trim().to_owned());
    let parameters = parameters.filter(|p| !["", "void", "..."].contains(&p.as_str())).collect();
    Some(Prototype { name: name.to_owned(), parameters })
}

#[test]
fn every_prototype_has_as_many_parameters() {
    for Prototype { name, parameters } in prototypes() {
        match by_name(&name) {
            Some(id) => assert_eq!(id.function().arguments.len(), parameters.len(), "{name}: {parameters:?}"),
            None => assert!(is_fortran_only(&name), "{name} is unknown"),
        }
    }
}

#[test]
fn every_parameter_is_passed_as_the_table_says() {
    for Prototype { name, parameters } in prototypes() {
        let Some(id) = by_name(&name) else { continue };
        for (argument, parameter) in id.function().arguments.iter().zip(&parameters) {
            let is_pointer = parameter.contains(['*', '[']) || parameter.contains("_function ");
            assert_eq!(argument.is_pointer(), is_pointer, "{name}: {parameter} is {argument:?}");
        }
    }
}

/// What the C types say about an argument, as far as they say something.
/// Invariant FUNCTIONS-ARE-DATA.
#[test]
fn every_parameter_is_of_its_role() {
    for Prototype { name, parameters } in prototypes() {
        let Some(id) = by_name(&name) else { continue };
        for (argument, parameter) in id.function().arguments.iter().zip(&parameters) {
            let words: Vec<&str> = parameter.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
            let ctype = words.iter().find(|word| !["", "const", "struct", "unsigned"].contains(*word)).unwrap();
            assert!(is_of_type(argument, ctype), "{name}: {parameter} is {argument:?}");
        }
    }
}

fn is_of_type(argument: &Argument, ctype: &str) -> bool {
    let expected = match ctype {
        "MPI_Comm" => Role::Communicator,
        "MPI_Datatype" => Role::Datatype,
        "MPI_Errhandler" => Role::Errhandler,
        "MPI_File" => Role::File,
        "MPI_Group" => Role::Group,
        "MPI_Info" => Role::Info,
        "MPI_Message" => Role::Message,
        "MPI_Op" => Role::Op,
        "MPI_Request" => Role::Request,
        "MPI_Session" => Role::Session,
        "MPI_Win" => Role::Window,
        "MPI_Status" | "MPI_F08_status" => Role::Status,
        "char" => Role::String,
        "MPI_Aint" | "MPI_Count" | "MPI_Offset" => {
            let sized = [Role::Count, Role::Displacement, Role::Bytes, Role::Offset, Role::Length, Role::Other];
            return argument.wide && sized.contains(&argument.role);
        }
        "void" => return [Role::Buffer, Role::Address].contains(&argument.role),
        "int" => return !argument.wide,
        _ => return true,
    };
    argument.role == expected
}
