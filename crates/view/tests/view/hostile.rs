//! Figures that no job can have, as somebody may have written them into a recording.
//!
//! Invariant SUMS-END.
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

use mpiprobe_model::Profile;
use mpiprobe_report::present::{
    TextOptions, findings,
    recording::{Recording, Writer},
};
use mpiprobe_tests::{picture::picture, synthetic::Synthetic};
use mpiprobe_view::{Running, Screen, Size, State};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Years in nanoseconds. More than that is no other case: sums of it are wrong, but fail with checks of overflow only, which no
/// release has.
const MOST: u64 = u64::MAX >> 8;

/// All numbers of a value.
fn numbers(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Array(values) => values.iter_mut().flat_map(numbers).collect(),
        Value::Object(fields) => fields.values_mut().flat_map(numbers).collect(),
        Value::Number(_) => vec![value],
        _ => Vec::new(),
    }
}

fn read_back(profile: &Profile) -> Option<Profile> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.rec");
    Writer::create(&path, 0o600, u64::MAX).unwrap().add(profile).unwrap();
    Recording::open(&path).unwrap().profile(0).ok()
}

fn look_at(profile: Profile) {
    mpiprobe_report::present::profile(&TextOptions::default(), &profile, &findings(&profile), None);
    let mut state = State::new(Running::Replay);
    state.resize(Size { width: 120, height: 40 });
    state.add(std::sync::Arc::new(Synthetic::SMALL.profile(1, None)));
    state.add(std::sync::Arc::new(profile));
    for screen in Screen::ALL {
        state.show(screen);
        picture(&state);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn impossible_figures_are_shown(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), 0_usize..8), 1..4),
    ) {
        let mut value = serde_json::to_value(Synthetic::SMALL.profile(20, None)).unwrap();
        {
            let mut numbers = numbers(&mut value);
            for (at, what) in changes {
                let at = at.index(numbers.len());
                *numbers[at] =
                    [json!(0), json!(1), json!(-1), json!(u32::MAX), json!(i32::MAX), json!(MOST), json!(MOST / 3), json!(1e300)][what]
                        .clone();
            }
        }
        // What is of another kind is refused, and what is impossible is not read back.
        if let Some(profile) = serde_json::from_value::<Profile>(value).ok().and_then(|profile| read_back(&profile)) {
            look_at(profile);
        }
    }
}
