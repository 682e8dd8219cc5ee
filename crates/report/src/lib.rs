//! Profiles for people and programs.
//!
//! [`present`] is text, findings in words and recordings; [`page`] the HTML report and pictures; [`compare`] what got slower or
//! faster between runs. The rest is results that are kept: one run, whatever it is kept in, and reports of it in several formats.
//!
//! A [`Source`] is a recording, a profile as JSON, tables that were read already, or several of them that belong to one job; it means
//! the same to everybody who asks for one. [`write()`] makes a report of it in a [`Format`].
// Printing to a pipe that somebody has closed must not panic: crate::present::{say, Output}.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

pub mod compare;
mod csv;
mod cube;
mod folded;
mod format;
mod html;
mod markdown;
mod mpip;
mod order;
pub mod page;
pub mod present;
mod scaling;
mod sites;
mod source;
mod tables;

pub use format::{Format, ReportOptions, TABLES, tables_as_csv, text, write};
pub use html::series;
pub use order::By;
pub use scaling::{Scaling, ScalingRow, ScalingRun};
pub use source::{Moments, Part, Source, SourceError, Span};
