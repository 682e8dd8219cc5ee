//! The node service: every user the jobs that are theirs, without rights of their own.
//!
//! Two processes run this binary. The [`supervisor`] holds capabilities; it opens, loads and attaches ([`grants`]), hands out descriptors,
//! and reads nothing that others have written. The [`worker`] has no rights at all and is confined ([`confinement`]); it looks for jobs,
//! reads ELF and DWARF, serves clients ([`http`]) as far as the kernel says who they are ([`client`]), and asks the other one for what it
//! needs ([`link`]). Its end is a restart, and no harm to any job. What it observes unasked is in [`jobs`], and told to monitoring by
//! [`scrape`].

mod client;
mod configuration;
mod confinement;
mod error;
mod grants;
mod http;
mod jobs;
mod link;
mod rights;
mod scrape;
mod summaries;
mod supervisor;
mod watched;
mod worker;

pub use configuration::Configuration;
pub use error::ServiceError;
pub use http::Parse;
pub(crate) use http::words_of_query;
pub use jobs::{Family, GroupSummary, JobSummary, OpenCall, families};
pub use supervisor::run;
pub use worker::work_if_asked;

/// Where clients find it.
pub const SOCKET: &str = "/run/mpiprobe/mpiprobe.sock";
/// Where it finds its settings.
pub const CONFIGURATION: &str = "/etc/mpiprobe/service.toml";
