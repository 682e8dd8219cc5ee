//! Writes a wrapper in C for every function that moves data or completes what moves it: it tells `tests/truth/semantics/` what
//! the arguments are, by their roles in the function table.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use mpiprobe_functions::{Argument, Direction, Function, FunctionId, Length, Operation, Role};

use super::rule::rule;

/// `functions` are those that the library defines, with their index in the file.
pub(super) fn wrappers(functions: &BTreeMap<&str, usize>) -> (String, Vec<&'static str>) {
    let mut text = String::from("#include \"semantics/call.h\"\n");
    let mut wrapped = Vec::new();
    for function in FunctionId::all().map(FunctionId::function) {
        if let (Some(rule), Some(index)) = (rule(function), functions.get(function.name)) {
            // Writing to a String cannot fail.
            let _ = wrapper(&mut text, function, rule, *index, wrapped.len());
            wrapped.push(function.name);
        }
    }
    let _ = writeln!(text, "\nconst char *const truth_typed_names[] = {{");
    for name in &wrapped {
        let _ = writeln!(text, "    \"P{name}\",");
    }
    let _ = writeln!(text, "}};");
    let _ = writeln!(text, "_Atomic(void *) truth_typed_next[{}];", wrapped.len());
    (text, wrapped)
}

fn wrapper(text: &mut String, function: &Function, rule: &str, index: usize, number: usize) -> fmt::Result {
    let Function { name, arguments, .. } = function;
    let types: Vec<String> = arguments.iter().map(c_type).collect();
    let parameters: Vec<String> = types.iter().zip(*arguments).map(|(c, a)| format!("{c} {}", a.name)).collect();
    let passed: Vec<&str> = arguments.iter().map(|argument| argument.name).collect();
    let (parameters, passed, types) = (parameters.join(", "), passed.join(", "), types.join(", "));
    let kind = match function.operation {
        Operation::Blocking => "BLOCKING",
        Operation::Nonblocking => "NONBLOCKING",
        Operation::Persistent => "PERSISTENT",
    };
    writeln!(text, "\nint typed_{name}({parameters});")?;
    // Layers above the C library, such as Fortran's, call it by this name. mpi.h declares it with other qualifiers.
    writeln!(text, "__asm__(\".globl P{name}\\n.type P{name}, @function\\n.set P{name}, typed_{name}\");")?;
    writeln!(text, "int typed_{name}({parameters}) {{")?;
    writeln!(text, "    int (*real)({types}) = (int (*)({types}))truth_real({number});")?;
    writeln!(text, "    if (!truth_tells({index}))\n        return real({passed});")?;
    writeln!(
        text,
        "    struct call call = {{.function = {index}, .rule = RULE_{rule}, .kind = {kind}, .partitions = 1}};"
    )?;
    sides(text, arguments)?;
    for argument in *arguments {
        member(text, argument, arguments)?;
    }
    writeln!(text, "    truth_before(&call);\n    int result = real({passed});")?;
    writeln!(text, "    truth_after(&call, result);\n    return result;\n}}")
}

/// As good as the header's for the purpose of calling.
fn c_type(argument: &Argument) -> String {
    let base = match argument.role {
        Role::Buffer | Role::Address | Role::Function => "void",
        Role::Displacement | Role::Offset | Role::Bytes | Role::Count if argument.wide => "MPI_Count",
        Role::Datatype => "MPI_Datatype",
        Role::Communicator => "MPI_Comm",
        Role::Request => "MPI_Request",
        Role::Status => "MPI_Status",
        Role::Window => "MPI_Win",
        Role::File => "MPI_File",
        Role::Message => "MPI_Message",
        Role::Op => "MPI_Op",
        Role::Info => "MPI_Info",
        Role::Group => "MPI_Group",
        Role::Errhandler => "MPI_Errhandler",
        Role::Session => "MPI_Session",
        Role::String => "char",
        _ => "int",
    };
    if argument.is_pointer() { format!("{base} *") } else { base.to_owned() }
}

/// Each buffer with the first counts and datatypes after it. What is sent is the first buffer that is read.
fn sides(text: &mut String, arguments: &[Argument]) -> fmt::Result {
    let (mut has_send, mut has_receive) = (false, false);
    for (index, buffer) in arguments.iter().enumerate().filter(|(_, argument)| argument.role == Role::Buffer) {
        if buffer.direction != Direction::Out && !has_send {
            has_send = true;
            side(text, "send", buffer, arguments.get(index..).unwrap_or_default())?;
        }
        if buffer.direction != Direction::In {
            has_receive = true;
            side(text, "receive", buffer, arguments.get(index..).unwrap_or_default())?;
        }
    }
    for (side, present) in [("send", has_send), ("receive", has_receive)] {
        if present {
            writeln!(text, "    call.has_{side} = 1;")?;
        }
    }
    Ok(())
}

fn side(text: &mut String, side: &str, buffer: &Argument, following: &[Argument]) -> fmt::Result {
    let find = |role| following.iter().find(|argument| argument.role == role);
    writeln!(text, "    call.{side}.buffer = {};", buffer.name)?;
    match find(Role::Count) {
        // One element, as in MPI_Fetch_and_op.
        None => writeln!(text, "    call.{side}.count = 1;")?,
        Some(count) if !count.is_array() => writeln!(text, "    call.{side}.count = {};", count.name)?,
        Some(counts) if counts.wide => writeln!(text, "    call.{side}.large_counts = {};", counts.name)?,
        Some(counts) => writeln!(text, "    call.{side}.counts = {};", counts.name)?,
    }
    match find(Role::Datatype) {
        None => Ok(()),
        Some(types) if types.is_array() => writeln!(text, "    call.{side}.types = {};", types.name),
        Some(datatype) => writeln!(text, "    call.{side}.type = {};", datatype.name),
    }
}

/// Sets the member of `struct call` that the argument is.
fn member(text: &mut String, argument: &Argument, arguments: &[Argument]) -> fmt::Result {
    let name = argument.name;
    let by_value = !argument.is_pointer();
    let length = match argument.length {
        Length::Argument(index) => arguments.get(usize::from(index)).map(|length| length.name),
        Length::Scalar | Length::Implied => None,
    };
    let requests = arguments.iter().find(|argument| argument.role == Role::Request && argument.is_array());
    let members: &[&str] = match argument.role {
        Role::Destination => &["dest"],
        Role::Source => &["source"],
        Role::Root => &["root"],
        // Behind the rank that it is for.
        Role::Tag => {
            let before = arguments.iter().take_while(|other| other.name != name);
            let rank = before.filter(|other| matches!(other.role, Role::Destination | Role::Source)).last();
            if rank.is_some_and(|rank| rank.role == Role::Source) { &["receive_tag"] } else { &["send_tag"] }
        }
        Role::Target => &["target"],
        Role::Lock => &["lock"],
        Role::Op => &["op"],
        Role::Partition => &["partitions"],
        Role::String if argument.direction == Direction::In => &["name"],
        Role::Message => &["message"],
        Role::Session => &["session"],
        Role::Flag => &["flag"],
        Role::Communicator if by_value => &["comm", "has_comm"],
        Role::Window if by_value => &["win", "has_win"],
        Role::Window => &["new_win"],
        Role::File if by_value => &["file", "has_file"],
        Role::File => &["file_pointer"],
        Role::Index if argument.is_array() => &["indices"],
        Role::Index => &["index"],
        Role::Length if argument.direction == Direction::Out => &["outcount"],
        Role::Request => {
            writeln!(text, "    call.request_count = {};", length.unwrap_or("1"))?;
            &["requests"]
        }
        Role::Status => {
            let count = requests.and_then(|requests| match requests.length {
                Length::Argument(index) => arguments.get(usize::from(index)),
                Length::Scalar | Length::Implied => None,
            });
            return match count.filter(|_| argument.is_array()) {
                Some(count) => writeln!(text, "    {name} = truth_statuses(&call, {name}, {});", count.name),
                None => writeln!(text, "    {name} = truth_status(&call, {name});"),
            };
        }
        _ => &[],
    };
    for member in members {
        let value = if member.starts_with("has_") { "1" } else { name };
        writeln!(text, "    call.{member} = {value};")?;
    }
    Ok(())
}
