//! Files of the user's: the configuration, with saved views, and the history of filters.

mod config;
mod error;
mod files;
mod history;
mod save;
mod saved;

pub use config::Config;
pub use error::FileError;
pub use files::Files;
pub use history::History;
pub use saved::SavedView;

#[cfg(test)]
mod tests;
