//! Options and command lines in the documents are ones that mpiprobe takes.

use std::collections::BTreeSet;

use clap::{Command, CommandFactory as _, Parser as _, error::ErrorKind};
use mpiprobe::cli::Arguments;

use crate::{
    markdown::lines,
    workspace::{documents, read},
};

/// Options of other programs that the documents mention.
const FOREIGN: [(&str, &str); 9] = [
    ("--now", "systemctl"),
    ("--unix-socket", "curl"),
    ("--release", "cargo"),
    ("--no-install", "cargo xtask"),
    ("--path", "cargo install"),
    ("--no-default-features", "cargo"),
    ("--pid", "docker, too"),
    ("--strip-debug", "strip"),
    ("--privileged", "docker"),
];

#[test]
fn options_exist() {
    let mut known = BTreeSet::from(FOREIGN.map(|(option, _)| option.to_owned()));
    collect(&Arguments::command(), &mut known);
    let mut unknown = Vec::new();
    for document in documents() {
        for (number, line) in (1..).zip(read(&document).lines()) {
            let unknown_here = options(line).filter(|option| !known.contains(*option));
            unknown.extend(unknown_here.map(|option| format!("{document}:{number}: {option}")));
        }
    }
    assert!(unknown.is_empty(), "options that mpiprobe does not have:\n{}", unknown.join("\n"));
}

fn collect(command: &Command, known: &mut BTreeSet<String>) {
    known.extend(command.get_arguments().filter_map(|argument| Some(format!("--{}", argument.get_long()?))));
    known.extend(["--help", "--version"].map(str::to_owned));
    command.get_subcommands().for_each(|command| collect(command, known));
}

/// Words such as `--pid-of`, wherever they stand in a line.
fn options(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let is_option = |word: &&str| word.strip_prefix("--").is_some_and(|name| name.starts_with(char::is_alphabetic));
    words.filter(is_option)
}

#[test]
fn command_lines_are_accepted() {
    let mut refused = Vec::new();
    let mut tried = 0;
    for document in documents() {
        let text = read(&document);
        for line in lines(&text).into_iter().filter(|line| line.is_code) {
            let Some(words) = command_line(line.text) else { continue };
            tried += 1;
            match Arguments::try_parse_from(&words) {
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {}
                Err(error) => refused.push(format!("{document}:{}: {}: {error}", line.number, line.text)),
            }
        }
    }
    assert!(refused.is_empty(), "command lines that mpiprobe refuses:\n{}", refused.join("\n"));
    assert!(tried >= 20, "only {tried} command lines were found: how they are looked for is broken");
}

/// The words of a line that runs mpiprobe, by sudo or after a prompt, up to a comment, a pipe or a redirection.
fn command_line(line: &str) -> Option<Vec<&str>> {
    let prompted = line.strip_prefix("$ ");
    let by_root = prompted.unwrap_or(line).strip_prefix("sudo ");
    let line = by_root.or(prompted)?;
    line.strip_prefix("mpiprobe").filter(|rest| rest.is_empty() || rest.starts_with(' '))?;
    Some(line.split_whitespace().take_while(|word| !matches!(*word, "#" | "|" | ">" | "2>" | "&" | "&&")).collect())
}

#[test]
fn command_lines_are_recognised() {
    assert_eq!(command_line("$ sudo mpiprobe ps # list"), Some(vec!["mpiprobe", "ps"]));
    assert_eq!(command_line("sudo mpiprobe"), Some(vec!["mpiprobe"]));
    assert_eq!(command_line("$ mpiprobe --help | less"), Some(vec!["mpiprobe", "--help"]));
    assert_eq!(command_line("mpiprobe 0.1.0 on node1: job ompi:1"), None);
    assert_eq!(command_line("mpirun -n 4 ./ring"), None);
    assert_eq!(options("a --pid-of, `--json` -- -v ---").collect::<Vec<_>>(), ["--pid-of", "--json"]);
}
