//! What a screen shows, as plain data: a table or a matrix, of which place, over which span.

mod grid;
mod matrix;
mod place;

pub(crate) use grid::{Align, Cell, Column, Content, Grid, Row, RowId, SortKey, Tone};
pub use matrix::Measure;
pub(crate) use matrix::{Matrix, MatrixCell};
pub use place::{Block, Place, Screen, Span};
pub(crate) use place::{Kind, RecentOf};
