//! What the wrapper's profile says, against what the truth library counted.

use std::collections::BTreeMap;

use libtest_mimic::Failed;
use mpiprobe_tests::{Job, Profile};

pub(crate) use mpiprobe_tests::check::{expect_counts, expect_row, functions};

/// The job's profile, with nothing missing.
pub(crate) fn complete(job: &Job) -> Result<Profile, Failed> {
    let profile = job.profile()?;
    assert!(profile.complete, "{:?}", profile.incomplete_because);
    assert_eq!(profile.lost(), BTreeMap::new());
    Ok(profile)
}
