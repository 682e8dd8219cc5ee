//! Legal calls in an order that nobody has thought of, in the short form of `cargo xtask soak random`.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{
    Language, Mpi,
    campaign::{any::WAYS, random},
};

use crate::trial;

/// Three ranks of one thread, which call most of what the program knows.
const SEED: u32 = 1;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![trial(mpi, Language::C, "calls_in_random_order_are_counted_by_either_engine", in_random_order)]
}

fn in_random_order(mpi: Mpi) -> Result<(), Failed> {
    for way in WAYS {
        let report = random::seeded(mpi, SEED, way)?;
        assert!(report.is_right(), "{way}: {report}");
    }
    Ok(())
}
