//! The command line.

mod arguments;
mod asked;
mod command;
mod compare;
mod configuration;
mod export;
mod manual;
mod output;
mod plot;
mod report;
mod schema;
mod sources;
mod terminal;
mod traces;
mod waits;
mod words;

pub use arguments::Arguments;
pub use command::{Exit, execute, serve};
pub use words::{parse_hang, parse_observation, parse_trace};

use clap::{CommandFactory as _, FromArgMatches as _};
use configuration::Configuration;
use mpiprobe_report::present::say;

/// What was typed, with the defaults that files set. Ends the program where that is no command.
pub fn parse() -> Arguments {
    let configuration = configuration();
    let matches = configuration.applied(Arguments::command()).get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    configuration.mistakes().for_each(say);
    arguments
}

fn configuration() -> Configuration {
    Configuration::read(&Arguments::command(), &|name| std::env::var(name).ok())
}
