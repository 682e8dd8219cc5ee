//! Files that the user names, by an option or by the environment: opened with the rights that the user has, and made so that nothing
//! of others is followed, overwritten or believed.

mod directory;
mod error;
mod new_file;
mod ours_alone;

pub use crate::with_callers_rights;
pub use directory::{Access, Directory};
pub use error::FileError;
pub use new_file::create_new;
pub use new_file::{NewFile, PRIVATE};
pub use ours_alone::is_ours_alone;
