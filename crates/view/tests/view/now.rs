//! The calls of a job that runs on the timeline: what is followed, what stands still, what is not known, and why there is none.
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

use std::sync::Arc;

use mpiprobe_model::EndReason;
use mpiprobe_replay::Clocks;
use mpiprobe_tests::{
    picture::{picture, read_calls},
    synthetic::Synthetic,
};
use mpiprobe_trace::{
    HandMade, Numbers, Span, Trace, call,
    store::{TraceFiles, TraceWriter, Window, copy_into},
};
use mpiprobe_view::{
    BINDINGS, CallsOfMoment, Effect, KeptMoment, KnownClocks, News, Running, Screen, Section, Size, State,
    TIMELINE_BINDINGS,
};

use crate::keys::press;

const SECOND: u64 = 1_000_000_000;

/// A job that is observed, with its calls in a window.
struct Observed {
    state: State,
    window: Arc<Window>,
    limit: u64,
}

impl Observed {
    fn new((width, height): (u16, u16), limit: u64) -> Self {
        let mut state = State::new(Running::Live);
        state.resize(Size { width, height });
        state.add(Arc::new(Synthetic::SMALL.profile(12, None)));
        press(&mut state, &["T"]);
        Self { state, window: Arc::new(Window::new(limit)), limit }
    }

    /// All that was called by a time has been recorded.
    fn record(&mut self, made: &HandMade, known_until_ns: u64) -> &mut Self {
        self.window = Arc::new(Window::new(self.limit));
        let writer = TraceWriter::with_window(Vec::new(), Arc::clone(&self.window)).unwrap();
        copy_into(made, Span::ALL, writer).unwrap();
        self.window.note(known_until_ns, Vec::new());
        self
    }

    /// What the thread does that reads: a moment, if one is wanted, and all that is to be seen of it.
    fn look(&mut self) -> &mut Self {
        if !self.state.follows_calls() {
            return self;
        }
        let kept = self.window.moment().unwrap();
        let again = [KeptMoment::from(self.window.moment().unwrap())];
        self.state.take_calls(News::Moment(CallsOfMoment::of(&again, &mut KnownClocks::default()).unwrap()));
        let (trace, clocks) = (TraceFiles::of_dump(&kept.dump, "now"), Clocks::same());
        read_calls(&mut self.state, &trace, &clocks);
        self
    }

    /// Presses keys, each followed by reading what is to be seen then.
    fn press(&mut self, keys: &[&str]) -> Option<Effect> {
        let kept = self.window.moment().unwrap();
        let (trace, clocks) = (TraceFiles::of_dump(&kept.dump, "now"), Clocks::same());
        let mut effect = None;
        for key in keys {
            effect = press(&mut self.state, &[key]);
            if self.state.wanted_calls().is_some() {
                read_calls(&mut self.state, &trace, &clocks);
            }
        }
        effect
    }

    fn picture(&self) -> String {
        picture(&self.state)
    }
}

/// Two ranks send each other a message ten times a second, from one second on for so many.
fn ring(seconds: u64) -> HandMade {
    let mut made = HandMade::of_ranks(2);
    let (ask, answer) = (made.site("ask", "ring.c", 17), made.site("answer", "ring.c", 29));
    for step in 0..seconds * 10 {
        let at_ns = SECOND + step * SECOND / 10;
        made.add(0, call("MPI_Send", at_ns, at_ns + 20_000_000).to(1, 7, 4096).at(ask));
        made.add(1, call("MPI_Recv", at_ns - 30_000_000, at_ns + 25_000_000).from(0, 7, 4096).at(answer));
    }
    made
}

const SIZES: [(u16, u16); 3] = [(60, 15), (80, 24), (120, 40)];

#[test]
fn of_two_ranks() {
    for size in SIZES {
        let mut observed = Observed::new(size, 1 << 20);
        observed.record(&ring(4), 5 * SECOND).look();
        for (name, keys) in [
            ("following", &[][..]),
            ("closer", &["+", "+", "+"]),
            ("longest-wait", &["w"]),
            ("zoomed", &["<Enter>"]),
            ("help", &["?"]),
        ] {
            observed.press(keys);
            insta::assert_snapshot!(format!("timeline-now-{name}-{}x{}", size.0, size.1), observed.picture());
        }
    }
}

#[test]
fn it_goes_on_with_the_job_until_one_looks_back() {
    let mut observed = Observed::new((120, 40), 1 << 20);
    let shown = |observed: &Observed, wanted: &str| {
        let picture = observed.picture();
        assert!(picture.contains(wanted), "{wanted} is not in\n{picture}");
    };
    observed.record(&ring(2), 3 * SECOND).look();
    shown(&observed, "2.00 s of 2.03 s FOLLOWING");
    shown(&observed, "40 calls of the last 2.03 s, all so far");
    shown(&observed, "MPI_");
    // What is seen now is later.
    observed.record(&ring(4), 5 * SECOND).look();
    shown(&observed, "2.00 s of 4.03 s FOLLOWING");
    // Closer, and it goes on.
    observed.press(&["+"]);
    shown(&observed, "1.00 s of 4.03 s FOLLOWING");
    let still = |observed: &mut Observed, keys: &[&str]| {
        observed.press(keys);
        let before = observed.picture();
        assert!(before.contains("End follows") && !observed.state.follows_calls(), "{keys:?}\n{before}");
        observed.record(&ring(9), 10 * SECOND).look();
        assert_eq!(observed.picture(), before, "{keys:?}");
        observed.press(&["G"]);
    };
    for keys in [&["{"][..], &["-"], &["w"], &["]"], &["a"], &["/"], &["d"]] {
        still(&mut observed, keys);
        observed.press(&["<Esc>"]);
        press_end(&mut observed);
        observed.look();
        assert!(observed.state.follows_calls(), "{keys:?}");
        shown(&observed, "FOLLOWING");
    }
    // The display freezes as elsewhere, and on the other screens too.
    still(&mut observed, &[" "]);
    assert!(observed.state.is_frozen());
    shown(&observed, "FROZEN");
    observed.press(&[" "]);
    assert!(!observed.state.is_frozen() && observed.state.follows_calls());
    // What is not looked at is not followed.
    observed.press(&["2"]);
    assert!(!observed.state.follows_calls() && observed.state.screen() == Screen::Ranks);
    observed.press(&["T"]);
    assert!(observed.state.follows_calls());
    // The last calls of all stay.
    observed.state.add(Arc::new(Synthetic::SMALL.profile(13, Some(EndReason::TargetsEnded))));
    observed.record(&ring(20), 21 * SECOND).look();
    shown(&observed, "of the last 20.0 s");
    still(&mut observed, &[" "]);
}

fn press_end(observed: &mut Observed) {
    let end = crossterm::event::KeyEvent::new(crossterm::event::KeyCode::End, crossterm::event::KeyModifiers::NONE);
    observed.state.key(&end);
}

#[test]
fn what_was_dropped_is_not_known_and_not_idle() {
    let mut made = HandMade::of_ranks(2);
    // The second rank has called only once, long ago.
    made.add(1, call("MPI_Barrier", SECOND, SECOND + 1));
    made.add(0, call("MPI_Barrier", SECOND, SECOND + 1));
    // Times that cannot be compressed, so that there is no room for all.
    let mut numbers = Numbers(7);
    for step in 0..30_000 {
        let at_ns = 2 * SECOND + step * 100_000 + numbers.below(20_000);
        made.add(0, call("MPI_Send", at_ns, at_ns + 20_000 + numbers.below(50_000)).to(1, 7, 64));
    }
    let mut observed = Observed::new((100, 30), 60_000);
    observed.record(&made, 5 * SECOND).look();
    observed.press(&["-", "-"]);
    let picture = observed.picture();
    assert!(picture.contains("; what was before is gone"), "{picture}");
    let lane = |rank: &str| {
        let found = picture.lines().find(|line| line.starts_with(&format!("   {rank} ")));
        found.unwrap_or_default().to_owned()
    };
    assert!(lane("0").contains('░') && lane("0").contains('p') && !lane("0").contains('·'), "{picture}");
    // Since its last call, which was dropped, it is known to be outside MPI.
    assert!(lane("1").contains('░') || lane("1").contains('·'), "{picture}");
}

#[test]
fn its_keys_are_those_of_a_trace_and_those_that_lead_to_other_screens() {
    let mut observed = Observed::new((120, 40), 1 << 20);
    observed.record(&ring(3), 4 * SECOND).look();
    assert_eq!(observed.press(&["W"]), Some(Effect::WriteTrace));
    assert!(matches!(observed.press(&["y"]), Some(Effect::CopyText(_)) | None));
    observed.press(&["?"]);
    let mut help = observed.picture();
    for _ in 0..60 {
        observed.press(&["j"]);
        help += &observed.picture();
    }
    let others = BINDINGS.iter().filter(|binding| binding.section == Section::Screens).map(|binding| binding.shown);
    for shown in TIMELINE_BINDINGS.iter().map(|binding| binding.shown).chain(others) {
        assert!(help.contains(shown), "{shown}");
    }
    for screen in Screen::ALL {
        let key = screen.key().to_string();
        observed.press(&["T", &key]);
        assert_eq!(observed.state.screen(), screen);
    }
    observed.press(&["T", "<Tab>"]);
    assert_eq!(observed.state.screen(), Screen::Overview);
    // What is typed is typed.
    observed.press(&["T", "/", "2", "T"]);
    assert_eq!(observed.state.screen(), Screen::Timeline);
    assert!(observed.picture().contains("2T"), "{}", observed.picture());
    observed.press(&["<Esc>"]);
    assert_eq!(observed.press(&["q"]), Some(Effect::Quit));
}

#[test]
fn where_there_can_be_none_it_says_so() {
    let mut observed = Observed::new((80, 24), 1 << 20);
    assert!(observed.picture().contains("the first come in a moment"), "{}", observed.picture());
    let why = "Single calls are kept with --waits only: end this with q, and type the same with --traffic --waits.";
    observed.state.refuse_calls(why.into());
    let shown: Vec<String> = observed.picture().lines().map(|line| line.trim().to_owned()).collect();
    assert!(shown.join(" ").contains(why), "{shown:?}");
    assert_eq!(press(&mut observed.state, &["q"]), Some(Effect::Quit));
    let mut state = State::new(Running::Replay);
    state.resize(Size { width: 120, height: 24 });
    state.add(Arc::new(Synthetic::SMALL.profile(12, None)));
    press(&mut state, &["T"]);
    assert!(picture(&state).contains("Recordings have no single calls"), "{}", picture(&state));
}

/// As many ranks share lanes as of a file.
#[test]
fn of_a_thousand_ranks() {
    let mut observed = Observed::new((80, 24), 64 << 20);
    let made = HandMade::halo(1024, 3);
    observed.record(&made, made.span().until_ns).look();
    observed.press(&["a"]);
    insta::assert_snapshot!("timeline-now-large-80x24", observed.picture());
    observed.press(&["F"; 12]);
    observed.press(&["G"]);
    assert!(observed.picture().contains(" 1023 "), "{}", observed.picture());
}
