//! The HTML report, and what it has in common with the page of a comparison: one file that holds everything, opens from a disk, and asks no network.
//!
//! What is shown of a run is in [`data`], as JSON, deflated, in base64; what shows it is a script from `web/`, embedded by the build. No
//! string of a profile is markup anywhere: the data is base64, and the only other one, the title, is escaped.

mod assemble;
mod by_rank;
mod data;
mod moments;
mod ranks;
mod source;

pub(crate) use assemble::assembled;
pub use assemble::{HtmlError, has_page};
pub use data::{Finding, Page};
pub use moments::Series;
pub use source::Sources;
