//! Where the files are, and what is in them.

use std::path::PathBuf;

use mpiprobe_discover::files::{Access, Directory};

use super::History;
use super::{Config, FileError, SavedView, save::save};

const CONFIG: &str = "config.toml";
const HISTORY: &str = "history";
/// Bytes that are read of either.
const LIMIT: usize = 4 << 20;
/// Characters of the longest name of a view.
const LONGEST_NAME: usize = 60;

/// Reads a variable of the environment.
type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The user's files, by the rules of the XDG base directory specification.
#[derive(Clone, Debug)]
pub struct Files {
    config: UserDirectory,
    state: UserDirectory,
}

/// A directory that must be there already, and names of others in it.
#[derive(Clone, Debug)]
struct UserDirectory {
    variable: &'static str,
    base: Option<PathBuf>,
    below: Vec<&'static str>,
}

impl UserDirectory {
    fn new(variable: Variable<'_>, name: &'static str, in_home: &[&'static str]) -> Self {
        let path = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let (base, mut below) = match path(name) {
            Some(base) => (Some(base), Vec::new()),
            None => (path("HOME"), in_home.to_vec()),
        };
        below.push("mpiprobe");
        Self { variable: name, base, below }
    }

    fn open(&self, access: Access) -> Result<Option<Directory>, FileError> {
        let base = self.base.as_ref().ok_or(FileError::Nowhere(self.variable))?;
        Ok(Directory::open(base, &self.below, access)?)
    }

    fn read(&self, name: &str) -> Result<Option<String>, FileError> {
        Ok(self.open(Access::Read)?.map_or(Ok(None), |directory| directory.read(name, LIMIT))?)
    }
}

impl Files {
    pub fn new(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        Self {
            config: UserDirectory::new(variable, "XDG_CONFIG_HOME", &[".config"]),
            state: UserDirectory::new(variable, "XDG_STATE_HOME", &[".local", "state"]),
        }
    }

    /// The defaults if there is no file.
    pub fn config(&self) -> Result<Config, FileError> {
        let Some(directory) = self.config.base.is_some().then(|| self.config.open(Access::Read)).transpose()?.flatten()
        else {
            return Ok(Config::default());
        };
        let text = directory.read(CONFIG, LIMIT)?.unwrap_or_default();
        Config::of_text(&text).map_err(|message| FileError::Config { path: directory.path_of(CONFIG), message })
    }

    /// Filters that were typed before.
    pub fn history(&self) -> Result<History, FileError> {
        let text = if self.state.base.is_some() { self.state.read(HISTORY)? } else { None };
        Ok(text.map(|text| History::of_text(&text)).unwrap_or_default())
    }

    /// Adds a filter to those in the file, to which others may have added meanwhile.
    pub fn remember(&self, line: &str) -> Result<(), FileError> {
        let Some(directory) = self.state.open(Access::Write)? else { return Ok(()) };
        let mut history = directory.read(HISTORY, LIMIT)?.map(|text| History::of_text(&text)).unwrap_or_default();
        history.add(line);
        Ok(directory.replace(HISTORY, &history.to_text())?)
    }

    /// Saves a view under a name, instead of what had that name.
    pub fn save_view(&self, name: &str, view: &SavedView) -> Result<(), FileError> {
        let length = name.chars().count();
        if !(1..=LONGEST_NAME).contains(&length) || name.chars().any(char::is_control) {
            return Err(FileError::Name);
        }
        let Some(directory) = self.config.open(Access::Write)? else { return Ok(()) };
        let text = directory.read(CONFIG, LIMIT)?.unwrap_or_default();
        let wrong = |message| FileError::Config { path: directory.path_of(CONFIG), message };
        // What cannot be read is not made worse.
        Config::of_text(&text).map_err(wrong)?;
        Ok(directory.replace(CONFIG, &save(&text, name, view).map_err(wrong)?)?)
    }
}
