//! What a screen shows, as plain data: a table or a matrix, of which place, over which span.

mod grid;
mod location;
mod matrix;

pub(crate) use grid::{Align, Cell, Column, Content, Grid, Row, RowId, SortKey, Tone};
pub use location::{Block, Location, Screen, Span};
pub(crate) use location::{LocationKind, RecentOf};
pub use matrix::Measure;
pub(crate) use matrix::{Matrix, MatrixCell};
