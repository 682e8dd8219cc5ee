//! Profiles to be looked at outside a terminal: the [HTML report](html), and [pictures](plot) for papers.

pub mod html;
mod matrix;
pub mod plot;
