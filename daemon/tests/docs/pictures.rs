//! The images of the view, from jobs that never ran.

use std::sync::Arc;

use mpiprobe_replay::Clocks;
use mpiprobe_tests::{
    picture::{OPTIONS, calls_of_now, drawn, drawn_timeline, svg, view},
    synthetic::Synthetic,
};
use mpiprobe_trace::HandMade;
use mpiprobe_view::{Action, Reader, Screen, Size, Timeline, TimelineAction};

use crate::generated;

/// A file, what is said of it, the job, columns and rows, the screen, and what is done there.
type Picture = (&'static str, &'static str, Synthetic, (u16, u16), Screen, &'static [Action]);

const PICTURES: [Picture; 7] = [
    ("overview", "The overview of a job", Synthetic::SMALL, (110, 26), Screen::Overview, &[]),
    ("ranks", "What each rank does now", Synthetic::LARGE, (110, 22), Screen::Ranks, &[]),
    (
        "histogram",
        "How long the calls of a function last",
        Synthetic::SMALL,
        (110, 26),
        Screen::Functions,
        &[Action::Open, Action::Open],
    ),
    ("matrix", "Who sends how much to whom", Synthetic::LARGE, (110, 40), Screen::Matrix, &[]),
    ("recent", "The last calls of a rank", Synthetic::SMALL, (130, 20), Screen::Recent, &[Action::Right]),
    ("waits", "Ranks that wait for each other", Synthetic::SMALL, (110, 16), Screen::Waiting, &[]),
    ("stacks", "The functions that all threads are in", Synthetic::SMALL, (110, 16), Screen::Stacks, &[]),
];

#[test]
fn every_picture_of_the_view_is_current() {
    for (name, title, job, size, screen, actions) in PICTURES {
        let mut state = view(job, size);
        state.show(screen);
        for action in actions {
            state.act(*action);
        }
        generated::check(&format!("docs/images/{name}.svg"), &svg(&drawn(&state, OPTIONS), title));
    }
}

#[test]
fn the_picture_of_a_trace_is_current() {
    let (read, clocks) = (HandMade::halo(8, 4), Clocks::same());
    let mut reader = Reader::new(&read, &clocks);
    let mut state = Timeline::new(Arc::new(read.clone()), &clocks, "halo.trace", &[]);
    state.resize(Size { width: 110, height: 32 });
    let mut show = |state: &mut Timeline| {
        let mut news = reader.ask(state.wanted());
        while reader.is_busy() {
            news.extend(reader.work(&|| false));
        }
        for one in news {
            state.take(one);
        }
    };
    show(&mut state);
    state.act(TimelineAction::LongestWait);
    show(&mut state);
    let drawn = drawn_timeline(&state, OPTIONS);
    generated::check("docs/images/timeline.svg", &svg(&drawn, "The timeline of a trace"));
}

#[test]
fn the_picture_of_what_happens_now_is_current() {
    let state = calls_of_now(view(Synthetic::SMALL, (110, 28)), &HandMade::halo(8, 400), "T+++++++").unwrap();
    let title = "The timeline of what happens now";
    generated::check("docs/images/timeline-now.svg", &svg(&drawn(&state, OPTIONS), title));
}
