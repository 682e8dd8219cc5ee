//! Everything about the wrapper that is done outside the job: the library as a file, the directory of its tables, and the
//! environment that makes a launcher preload it into every rank.

mod directory;
mod environment;
mod launcher;
mod library;

pub use directory::{DirectoryError, RunDirectory, is_abandoned, is_run, own_directories, tables_in};
pub use environment::{Preload, selection};
pub use launcher::exporting;
pub use library::{LibraryError, library};
