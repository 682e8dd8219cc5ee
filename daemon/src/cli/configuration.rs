//! Defaults of options that people set in files: their own, and the system's.
//!
//! What is set there becomes the default of the option of that name, wherever there is one, so that the command line wins, and clap
//! judges the values. What is wrong in a file is said and left out: no command fails for it.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fmt::{self, Write as _},
    path::{Path, PathBuf},
};

use clap::{Arg, ArgAction, Command};
use mpiprobe_discover::files::{Access, Directory, FileError};
use rustix::process::geteuid;
use thiserror::Error;
use toml::{Spanned, Value};

/// Bytes of a file; what is longer is none that a person has written.
const LONGEST: usize = 256 << 10;
/// By their long names; none of them needs or excludes another option.
const OPTIONS: [&str; 22] = [
    "ascii",
    "attach",
    "colours",
    "engine",
    "file-mode",
    "functions",
    "ignore-pcontrol",
    "interval",
    "max-communicators",
    "max-flows",
    "max-overhead",
    "max-processes",
    "max-requests",
    "max-stats",
    "max-threads",
    "mouse",
    "nested",
    "plain",
    "record-limit",
    "returns",
    "top",
    "traffic",
];
/// The view keeps its own settings in the same file.
const OF_THE_VIEW: &str = "views";
/// The system's file.
const SYSTEM: (&str, &str) = ("/etc", "mpiprobe.toml");

/// Where a value stands.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    path: PathBuf,
    line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", mpiprobe_discover::printable(self.path.as_os_str().as_encoded_bytes()), self.line)
    }
}

/// Something in a file that means nothing.
#[derive(Debug, Error)]
enum Mistake {
    #[error("{0}: there is no setting {1:?}; `mpiprobe config` lists them")]
    Unknown(Place, String),
    #[error("{0}: {1}")]
    Value(Place, String),
    #[error("{0}: {1}")]
    Syntax(Place, String),
    #[error("{} belongs to user {owner}, not to you: what is set there is not used", .path.display())]
    OfSomebodyElse { path: PathBuf, owner: u32 },
    #[error("{0}; what is set there is not used")]
    File(#[from] FileError),
}

/// What the files say, the user's before the system's.
#[derive(Debug, Default)]
pub(super) struct Configuration {
    settings: BTreeMap<&'static str, (String, Place)>,
    mistakes: Vec<Mistake>,
}

impl Configuration {
    /// Reads both files; `definition` is what can be typed, `variable` reads the environment.
    pub(super) fn read(definition: &Command, variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut configuration = Self::default();
        let (folder, name) = SYSTEM;
        configuration.add_file(definition, Path::new(folder), &[], name, 0);
        let path = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let user = match path("XDG_CONFIG_HOME") {
            Some(base) => Some((base, &["mpiprobe"][..])),
            None => path("HOME").map(|home| (home, &[".config", "mpiprobe"][..])),
        };
        if let Some((base, below)) = user {
            configuration.add_file(definition, &base, below, "config.toml", geteuid().as_raw());
        }
        configuration
    }

    /// Of a directory that belongs to this user: with `sudo -E` the environment names one of somebody else.
    fn add_file(&mut self, definition: &Command, base: &Path, below: &[&str], name: &str, user: u32) {
        let read = || -> Result<Option<(PathBuf, String)>, Mistake> {
            let Some(directory) = Directory::open(base, below, Access::Read)? else { return Ok(None) };
            let Some(text) = directory.read(name, LONGEST)? else { return Ok(None) };
            let (path, owner) = (directory.path_of(name), directory.owner());
            if owner == user { Ok(Some((path, text))) } else { Err(Mistake::OfSomebodyElse { path, owner }) }
        };
        match read() {
            Ok(Some((path, text))) => self.add(definition, &path, &text),
            Ok(None) => {}
            Err(mistake) => self.mistakes.push(mistake),
        }
    }

    /// What is set here counts more than what was set before.
    fn add(&mut self, definition: &Command, path: &Path, text: &str) {
        let place = |at: usize| {
            let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
            Place { path: path.into(), line }
        };
        let settings: BTreeMap<Spanned<String>, Spanned<Value>> = match toml::from_str(text) {
            Ok(settings) => settings,
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                self.mistakes.push(Mistake::Syntax(place(at), error.message().trim().replace('\n', "; ")));
                return;
            }
        };
        for (key, value) in settings {
            let name = key.get_ref();
            if name == OF_THE_VIEW {
                continue;
            }
            let known = OPTIONS.into_iter().find(|known| known == name);
            let Some((known, option)) = known.and_then(|known| Some((known, find(definition, known)?))) else {
                self.mistakes.push(Mistake::Unknown(place(key.span().start), name.chars().take(60).collect()));
                continue;
            };
            let place = place(value.span().start);
            match checked(option, known, value.get_ref()) {
                Ok(value) => drop(self.settings.insert(known, (value, place))),
                Err(why) => self.mistakes.push(Mistake::Value(place, why)),
            }
        }
    }

    /// The same command line with these defaults.
    pub(super) fn applied(&self, mut definition: Command) -> Command {
        for (name, (value, _)) in &self.settings {
            definition = with_default(definition, name, value);
        }
        definition
    }

    /// What is wrong, a line each.
    pub(super) fn mistakes(&self) -> impl Iterator<Item = String> {
        self.mistakes.iter().map(ToString::to_string)
    }

    /// What holds, and from where.
    pub(super) fn text(&self, definition: &Command) -> String {
        let mut text = String::new();
        for name in OPTIONS {
            let Some(option) = find(definition, name) else { continue };
            let default = option.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
            let default = default
                .filter(|_| !is_flag(option))
                .unwrap_or_else(|| if is_flag(option) { "false" } else { "" }.into());
            let (value, from) = match self.settings.get(name) {
                Some((value, place)) => (value.clone(), place.to_string()),
                None => (default, "default".into()),
            };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name:<18} {:<20} {from}", mpiprobe_discover::printable(value.as_bytes()));
        }
        text
    }
}

/// The option of this name, of mpiprobe itself or of the first command that has one.
fn find<'a>(definition: &'a Command, name: &str) -> Option<&'a Arg> {
    let own = definition.get_arguments().find(|option| option.get_long() == Some(name));
    own.or_else(|| definition.get_subcommands().find_map(|command| find(command, name)))
}

fn is_flag(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::SetTrue)
}

/// The value as it would be typed, if the option takes it.
fn checked(option: &Arg, name: &str, value: &Value) -> Result<String, String> {
    let text = match value {
        Value::Boolean(value) if is_flag(option) => return Ok(value.to_string()),
        _ if is_flag(option) => return Err(format!("{name} is true or false")),
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        other => return Err(format!("{name} is a text or a number, not a {}", other.type_str())),
    };
    let alone = Command::new("mpiprobe").no_binary_name(true).arg(option.clone());
    match alone.try_get_matches_from([format!("--{name}={text}")]) {
        Ok(_) => Ok(text),
        Err(error) => {
            let said = error.to_string();
            let first = said.lines().next().unwrap_or_default();
            Err(mpiprobe_discover::printable(first.trim_start_matches("error: ").as_bytes()))
        }
    }
}

/// In the command and all commands below. A flag that is set can be taken back: `--traffic=false`.
fn with_default(definition: Command, name: &str, value: &str) -> Command {
    let has_it =
        definition.get_arguments().find(|option| option.get_long() == Some(name)).map(|option| option.get_id().clone());
    let commands: Vec<String> = definition.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let definition = match has_it {
        None => definition,
        Some(id) => definition.mut_arg(id.as_str(), |option| {
            let flag = is_flag(&option);
            // There are as many as settings in two short files, once.
            let option = option.default_value(OsStr::new(&*value.to_owned().leak()));
            if !flag {
                return option;
            }
            let option =
                option.action(ArgAction::Set).num_args(0..=1).require_equals(true).default_missing_value("true");
            option.value_parser(clap::value_parser!(bool)).hide_possible_values(true)
        }),
    };
    commands.into_iter().fold(definition, |definition, command| {
        definition.mut_subcommand(command, |command| with_default(command, name, value))
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink, time::Duration};

    use clap::{CommandFactory as _, FromArgMatches as _};

    use super::*;
    use crate::cli::Arguments;

    fn of_text(text: &str) -> Configuration {
        let mut configuration = Configuration::default();
        configuration.add(&Arguments::command(), Path::new("/c.toml"), text);
        configuration
    }

    fn parsed(configuration: &Configuration, words: &[&str]) -> Arguments {
        let words = ["mpiprobe"].iter().chain(words);
        let matches = configuration.applied(Arguments::command()).try_get_matches_from(words).unwrap();
        Arguments::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn every_setting_is_an_option_that_stands_alone() {
        let definition = Arguments::command();
        for name in OPTIONS {
            let option = find(&definition, name).unwrap_or_else(|| panic!("{name}"));
            Command::new("alone").arg(option.clone()).debug_assert();
        }
    }

    #[test]
    fn the_command_line_wins() {
        let configuration = of_text("interval = \"3s\"\ntraffic = true\nmax-flows = 77\ntop = 5\n");
        assert_eq!(configuration.mistakes().count(), 0);
        let arguments = parsed(&configuration, &["--pid", "1"]);
        assert_eq!(arguments.observe.interval, Duration::from_secs(3));
        assert!(arguments.observe.traffic && arguments.observe.max_flows == 77);
        let arguments = parsed(&configuration, &["--pid", "1", "--interval", "1s", "--traffic=false"]);
        assert_eq!((arguments.observe.interval, arguments.observe.traffic), (Duration::from_secs(1), false));
        assert!(parsed(&configuration, &["--pid", "1", "--traffic"]).observe.traffic);
        let Some(crate::cli::arguments::Command::Run(run)) = parsed(&configuration, &["run", "true"]).command else {
            panic!("no run")
        };
        assert_eq!(run.interval, Duration::from_secs(3));
    }

    #[test]
    fn mistakes_are_told_with_file_and_line_and_the_rest_holds() {
        let configuration = of_text(
            "# mine\nintervall = \"3s\"\ninterval = \"soon\"\ntraffic = 1\nnested = true\nascii = \"yes\"\nmax-flows = [1]\n[views.a]\n",
        );
        let mistakes: Vec<String> = configuration.mistakes().collect();
        let starts = |wanted: &str| mistakes.iter().any(|mistake| mistake.starts_with(wanted));
        assert_eq!(mistakes.len(), 5, "{mistakes:?}");
        assert!(starts("/c.toml:2: there is no setting \"intervall\""), "{mistakes:?}");
        assert!(starts("/c.toml:3: invalid value 'soon' for '--interval <TIME>'"), "{mistakes:?}");
        assert!(starts("/c.toml:4: traffic is true or false") && starts("/c.toml:6: ascii is true or false"));
        assert!(starts("/c.toml:7: max-flows is a text or a number, not a array"), "{mistakes:?}");
        assert_eq!(configuration.settings.keys().copied().collect::<Vec<_>>(), ["nested"]);
        let configuration = of_text("nested = true\n[views\n");
        assert!(configuration.mistakes().next().unwrap().starts_with("/c.toml:2: "));
        assert!(configuration.text(&Arguments::command()).contains("nested             false                default"));
    }

    #[test]
    fn files_of_others_and_hostile_ones_are_not_used() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(".config/mpiprobe");
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("config.toml");
        let read = |user: u32| {
            let mut configuration = Configuration::default();
            let below = [".config", "mpiprobe"];
            configuration.add_file(&Arguments::command(), home.path(), &below, "config.toml", user);
            (configuration.settings.len(), configuration.mistakes().collect::<Vec<_>>())
        };
        let me = geteuid().as_raw();
        assert_eq!(read(me), (0, vec![]));
        fs::write(&file, "nested = true\n").unwrap();
        assert_eq!(read(me), (1, vec![]));
        assert!(read(me + 1).1[0].contains("not to you"));
        fs::write(&file, "#".repeat(LONGEST + 1)).unwrap();
        assert_eq!((read(me).0, read(me).1.len()), (0, 1));
        fs::write(&file, [0xff, 0xfe]).unwrap();
        assert_eq!((read(me).0, read(me).1.len()), (0, 1));
        fs::write(&file, "interval = \"\\u001b[2J\"\n").unwrap();
        assert!(!read(me).1[0].contains('\u{1b}'));
        fs::remove_file(&file).unwrap();
        symlink("/dev/zero", &file).unwrap();
        assert_eq!((read(me).0, read(me).1.len()), (0, 1));
    }
}
