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

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, error::ErrorKind, parser::ValueSource};
use configuration::Configuration;
use mpiprobe_report::present::say;

/// What was typed, with the defaults that files set. Ends the program where that is no command.
pub fn parse() -> Arguments {
    let configuration = configuration();
    let matches = configuration.applied(Arguments::command()).get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    configuration.mistakes().for_each(say);
    if let Some(option) = of_nothing(&arguments, &matches) {
        let why = format!(
            "--{option} says how something is observed, and not what: --pid-of NAME, --pid PID, --job ID or --all-jobs does. mpiprobe alone lists \
             the jobs on this node"
        );
        Arguments::command().error(ErrorKind::MissingRequiredArgument, why).exit();
    }
    arguments
}

/// An option that was typed and means nothing, since nothing is observed: whoever has typed it expects more than a list of jobs.
fn of_nothing(arguments: &Arguments, matches: &ArgMatches) -> Option<String> {
    /// A list of jobs may be printed in other ways.
    const OF_LISTS: [&str; 8] = ["ascii", "colours", "json", "mouse", "plain", "socket", "trace-bpf", "verbose"];
    if arguments.command.is_some() || arguments.observe.has_target() {
        return None;
    }
    let is_typed =
        |option: &&clap::Arg| matches.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine);
    let all = Arguments::command();
    let mut typed = all.get_arguments().filter(is_typed).filter_map(clap::Arg::get_long);
    typed.find(|option| !OF_LISTS.contains(option)).map(ToOwned::to_owned)
}

fn configuration() -> Configuration {
    Configuration::read(&Arguments::command(), &|name| std::env::var(name).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_observations_need_something_to_be_observed() {
        let of = |words: &[&str]| {
            let matches = Arguments::command().get_matches_from([&["mpiprobe"], words].concat());
            of_nothing(&Arguments::from_arg_matches(&matches).unwrap(), &matches)
        };
        assert_eq!(of(&["--record", "job.mpr"]).as_deref(), Some("record"));
        assert_eq!(of(&["--json", "--duration", "1s"]).as_deref(), Some("duration"));
        for fine in [&[][..], &["--json", "-v"], &["--duration", "1s", "--pid-of", "ring"], &["doctor"]] {
            assert_eq!(of(fine), None);
        }
    }
}
