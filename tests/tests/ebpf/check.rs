//! What mpiprobe says, against what the truth library counted.

use std::collections::BTreeMap;

use libtest_mimic::Failed;
pub(crate) use mpiprobe_tests::check::{completed, expect_counts, expect_row, expect_rows, functions};
use mpiprobe_tests::{Ended, Profile};

/// A profile with nothing missing, and the exit status that says so.
pub(crate) fn complete(ended: &Ended) -> Result<Profile, Failed> {
    let profile = ended.profile()?;
    assert!(profile.complete && profile.incomplete_because.is_empty(), "{}", ended.printed());
    assert_eq!(profile.lost(), BTreeMap::new(), "{}", ended.printed());
    assert_eq!(ended.status.code(), Some(0), "{}", ended.printed());
    assert_eq!(profile.schema, "mpiprobe.profile/1");
    let not_probed: Vec<_> = profile.engine.libraries.iter().flat_map(|library| &library.not_probed).collect();
    assert!(not_probed.is_empty(), "{not_probed:?}");
    Ok(profile)
}
