//! With what the view begins.

use mpiprobe_model::filter::Filter;
use thiserror::Error;

use super::{
    state::State,
    user::{Config, FileError, Files, SavedView},
};

/// What the user has asked for, and what is in the user's files.
#[derive(Clone, Debug)]
pub struct ViewStart {
    filter: Option<Filter>,
    view: Option<SavedView>,
    config: Config,
    pub(super) files: Files,
    /// What is wrong with the configuration.
    notice: Option<String>,
}

/// Why the view that was asked for cannot be opened.
#[derive(Debug, Error)]
pub enum StartError {
    #[error("no view is called {name:?}; {known}")]
    NoView { name: String, known: String },
    #[error(transparent)]
    Config(#[from] FileError),
}

impl ViewStart {
    /// `view` is the name of a saved one; its filter gives way to `filter`.
    pub fn new(filter: Option<Filter>, view: Option<&str>, files: Files) -> Result<Self, StartError> {
        let (config, notice) = match files.config() {
            Ok(config) => (config, None),
            // Who wants something out of it cannot do without.
            Err(error) if view.is_some() => return Err(error.into()),
            Err(error) => (Config::default(), Some(format!("the configuration is left aside: {error}"))),
        };
        let view = view.map(|name| find(&config, name)).transpose()?;
        Ok(Self { filter, view, config, files, notice })
    }

    /// Into the state of a view that begins; gives what there is to say.
    pub fn begin(&self, state: &mut State) {
        state.set_saved(self.config.views.clone());
        if let Some(view) = &self.view {
            state.show_view(view);
        }
        if let Some(filter) = &self.filter {
            state.set_filter(Some(filter.clone()));
        }
        state.notice.clone_from(&self.notice);
    }
}

fn find(config: &Config, name: &str) -> Result<SavedView, StartError> {
    config.views.get(name).cloned().ok_or_else(|| {
        let names: Vec<&str> = config.views.keys().map(String::as_str).collect();
        let known =
            if names.is_empty() { "none has been saved".into() } else { format!("there are {}", names.join(", ")) };
        StartError::NoView { name: name.to_owned(), known }
    })
}
