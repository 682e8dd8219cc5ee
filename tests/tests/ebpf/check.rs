//! What mpiprobe says, against what the truth library counted.

pub(crate) use mpiprobe_tests::check::{complete, completed, expect_counts, expect_row, expect_rows, functions};
