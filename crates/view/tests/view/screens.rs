//! Snapshots of all screens. To accept new ones: `INSTA_UPDATE=always cargo test -p mpiprobe --test view`, and look at the diff.

use mpiprobe_tests::{
    picture::{picture, view},
    synthetic::Synthetic,
};
use mpiprobe_view::Screen;

use crate::keys::press;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

fn snapshots(name: &str, job: Synthetic) {
    for size in SIZES {
        let mut state = view(job, size);
        for screen in Screen::ALL {
            state.show(screen);
            let title = screen.title().to_lowercase().replace(' ', "-");
            insta::assert_snapshot!(format!("{title}-{name}-{}x{}", size.0, size.1), picture(&state));
        }
    }
}

/// Screens that others lead to, by the keys that are pressed.
#[test]
fn what_rows_lead_to() {
    const BELOW: [(&str, Synthetic, &[&str]); 8] = [
        ("histogram-small", Synthetic::SMALL, &["3", "<Enter>", "<Enter>"]),
        ("histogram-of-rank-small", Synthetic::SMALL, &["3", "<Enter>", "j", "<Enter>"]),
        ("matrix-of-communicator-small", Synthetic::SMALL, &["5", "c"]),
        ("rank-hybrid", Synthetic::HYBRID, &["2", "<Enter>"]),
        ("threads-hybrid", Synthetic::HYBRID, &["2", "j", "<Enter>", "<Enter>"]),
        ("function-hybrid", Synthetic::HYBRID, &["3", "j", "j", "<Enter>"]),
        ("stacks-hybrid", Synthetic::HYBRID, &["0"]),
        ("layers-hybrid", Synthetic::HYBRID, &["3", "j", "j", "<Enter>", "j", "<Enter>"]),
    ];
    for size in [(60, 15), (120, 40)] {
        for (name, job, keys) in BELOW {
            let mut state = view(job, size);
            press(&mut state, keys);
            insta::assert_snapshot!(format!("{name}-{}x{}", size.0, size.1), picture(&state));
        }
    }
}

/// What a screen of usual size has room for beside the sums: also of a job of which nobody has asked what calls move.
#[test]
fn the_overview_uses_its_room() {
    for (name, job) in [
        ("small", Synthetic::SMALL),
        ("large", Synthetic::LARGE),
        ("calls-only", Synthetic { traffic: false, ..Synthetic::SMALL }),
    ] {
        for size in [(100, 34), (200, 50)] {
            insta::assert_snapshot!(format!("overview-{name}-{}x{}", size.0, size.1), picture(&view(job, size)));
        }
    }
}

#[test]
fn of_nobody() {
    snapshots("empty", Synthetic::EMPTY);
}

#[test]
fn of_a_small_job() {
    snapshots("small", Synthetic::SMALL);
}

#[test]
fn of_a_thousand_ranks() {
    snapshots("large", Synthetic::LARGE);
}
