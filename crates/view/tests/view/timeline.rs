//! The screen of a trace: how it looks, where keys lead to, and that nothing makes it fail. To accept new snapshots:
//! `INSTA_UPDATE=always cargo test -p mpiprobe-view --test view timeline`, and look at the diff.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a helper that cannot go on fails its test")]

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use mpiprobe_replay::Clocks;
use mpiprobe_tests::picture::{OPTIONS, drawn_timeline, text};
use mpiprobe_trace::{Call, Event, HandMade, Numbers, Partner, ProcessId, Span, Trace, call};
use mpiprobe_view::{Reader, Scheme, Size, TIMELINE_BINDINGS, Timeline, ViewOptions, Wanted, timeline_text};

/// A trace on a screen, on which everything has been read.
struct Shown {
    state: Timeline,
    reader: Reader<'static>,
    asked: Option<Wanted>,
}

impl Shown {
    fn new(made: &HandMade, (width, height): (u16, u16)) -> Self {
        let trace: Arc<HandMade> = Arc::new(made.clone());
        let read: &'static HandMade = Box::leak(Box::new(made.clone()));
        let clocks: &'static Clocks = Box::leak(Box::new(Clocks::same()));
        let mut state = Timeline::new(trace, clocks, "ring.trace", &[]);
        state.resize(Size { width, height });
        let mut shown = Self { state, reader: Reader::new(read, clocks), asked: None };
        shown.settle();
        shown
    }

    /// Until all has been read that is wanted.
    fn settle(&mut self) {
        loop {
            let wanted = self.state.wanted();
            if self.asked.as_ref() == Some(&wanted) {
                return;
            }
            let mut news = self.reader.ask(wanted.clone());
            self.asked = Some(wanted);
            while self.reader.is_busy() {
                news.extend(self.reader.work(&|| false));
            }
            for one in news {
                self.state.take(one);
            }
        }
    }

    fn press(&mut self, keys: &[&str]) -> &mut Self {
        for key in keys {
            let code = match *key {
                "<Enter>" => KeyCode::Enter,
                "<Esc>" => KeyCode::Esc,
                "<Home>" => KeyCode::Home,
                letter => KeyCode::Char(letter.chars().next().unwrap()),
            };
            self.state.key(&KeyEvent::new(code, KeyModifiers::NONE));
            self.settle();
        }
        self
    }

    fn picture(&self) -> String {
        text(&drawn_timeline(&self.state, OPTIONS))
    }
}

/// Two ranks talk, and wait for each other.
fn teaching() -> HandMade {
    let mut made = HandMade::of_ranks(2);
    let (ask, answer) = (made.site("ask", "ring.c", 17), made.site("answer", "ring.c", 29));
    for rank in 0..2 {
        made.add(rank, call("MPI_Init", 1_000_000, 1_400_000 + 1000 * u64::from(rank)));
    }
    made.add(0, call("MPI_Send", 1_600_000, 1_700_000).to(1, 7, 4096).at(ask));
    made.add(1, call("MPI_Recv", 1_450_000, 1_720_000).from(0, 7, 4096).at(answer));
    let posted = call("MPI_Irecv", 1_710_000, 1_715_000).from(1, 8, 64).posts(5).at(ask);
    made.add(0, posted.clone());
    made.add(0, call("MPI_Wait", 1_730_000, 2_050_000).completes(&posted).at(ask));
    made.add(1, call("MPI_Ssend", 2_000_000, 2_060_000).to(0, 8, 64).at(answer));
    made.add(0, call("MPI_Allreduce", 2_100_000, 2_200_000).moves(8, 8).at(ask));
    made.add(1, call("MPI_Allreduce", 2_150_000, 2_201_000).moves(8, 8).at(answer));
    for rank in 0..2 {
        made.add(rank, call("MPI_Finalize", 2_300_000, 2_600_000));
    }
    made
}

/// 1,024 ranks.
fn large() -> HandMade {
    HandMade::halo(1024, 3)
}

const SIZES: [(u16, u16); 3] = [(60, 15), (80, 24), (120, 40)];

#[test]
fn of_two_ranks() {
    for size in SIZES {
        let mut shown = Shown::new(&teaching(), size);
        for (name, keys) in [
            ("whole", &[][..]),
            ("longest-wait", &["w"]),
            ("zoomed", &["<Enter>"]),
            ("details", &["<Esc>", "d"]),
            ("searching", &["<Esc>", "/", "a", "l", "l"]),
        ] {
            shown.press(keys);
            insta::assert_snapshot!(format!("timeline-{name}-{}x{}", size.0, size.1), shown.picture());
        }
    }
}

#[test]
fn of_a_thousand_ranks() {
    for size in [(80, 24), (200, 60)] {
        let mut shown = Shown::new(&large(), size);
        insta::assert_snapshot!(format!("timeline-large-{}x{}", size.0, size.1), shown.picture());
        shown.press(&["G", "F", "F"]);
        insta::assert_snapshot!(format!("timeline-large-unfolded-{}x{}", size.0, size.1), shown.picture());
    }
    // Down to one rank in a lane, and to the last of them.
    let mut shown = Shown::new(&large(), (80, 24));
    shown.press(&["F"; 12]).press(&["G"]);
    assert!(shown.state.notice.is_none());
    assert!(shown.picture().contains(" 1023 "), "{}", shown.picture());
    shown.press(&["<Home>"]).press(&["f"; 12]);
    assert!(shown.picture().contains(" 0-1023 "), "{}", shown.picture());
}

#[test]
fn keys_lead_to_calls() {
    let mut shown = Shown::new(&teaching(), (120, 40));
    let mut at = |keys: &[&str], wanted: &str| {
        shown.press(keys);
        let picture = shown.picture();
        assert!(picture.contains(wanted), "{keys:?}: {wanted} is not in\n{picture}");
    };
    at(&["w"], "rank 0: MPI_Wait at ring.c:17 in ask");
    at(&[], "waits 270 µs for rank 1, which sends later: MPI_Ssend at ring.c:29 in answer");
    at(&["w"], "rank 1: MPI_Recv at ring.c:29 in answer");
    at(&["c"], "rank 1: MPI_Init");
    at(&["<Home>", "/", "i", "r", "e", "c", "v", "<Enter>"], "rank 0: MPI_Irecv");
    at(&[], "from 1, tag 8, 64 B, over world of 2; gives request 5");
    at(&["]"], "rank 0: MPI_Wait at");
    at(&["["], "rank 0: MPI_Irecv at");
    at(&["["], "rank 0: MPI_Send at");
    at(&[], "→ MPI_Recv of rank 1 at ring.c:29 in answer, complete +0.000720000 s");
    at(&["n"], "rank 0: MPI_Irecv at");
    at(&["n"], "there is no further one");
    at(&["/"], "Function or call site:");
    at(&["<Esc>", "/", "x", "x", "<Enter>"], "has \"irecvxx\" in its name");
}

#[test]
fn zooming_goes_in_and_back() {
    let mut shown = Shown::new(&teaching(), (120, 40));
    let first = shown.picture();
    assert!(first.contains("1.60 ms of 1.60 ms"), "{first}");
    shown.press(&["+"]);
    assert!(shown.picture().contains("800 µs of 1.60 ms"), "{}", shown.picture());
    shown.press(&["-"]);
    assert_eq!(shown.picture(), first);
    shown.press(&["w", "<Enter>", "}", "{", "l", "j", "0"]);
    assert!(shown.picture().contains("1.60 ms of 1.60 ms"));
    // A column is a nanosecond at last.
    shown.press(&["+"; 40]);
    assert!(shown.state.notice.as_ref().unwrap().contains("nanosecond"), "{:?}", shown.state.notice);
    assert!(shown.picture().contains("115 ns of 1.60 ms"), "{}", shown.picture());
}

#[test]
fn help_lists_every_key_at_any_size() {
    for size in [(60, 15), (200, 60)] {
        let mut shown = Shown::new(&teaching(), size);
        shown.press(&["?"]);
        let mut seen = shown.picture();
        for _ in 0..50 {
            shown.press(&["j"]);
            seen += &shown.picture();
        }
        for binding in TIMELINE_BINDINGS {
            assert!(seen.contains(binding.shown), "{size:?}: {}", binding.shown);
        }
        shown.press(&["<Esc>"]);
        assert!(!shown.state.is_help_open);
    }
}

#[test]
fn ascii_is_nothing_but_ascii() {
    let mut shown = Shown::new(&teaching(), (100, 30));
    for keys in [&[][..], &["w"], &["d"], &["<Esc>", "?"]] {
        shown.press(keys);
        let picture = text(&drawn_timeline(&shown.state, ViewOptions { ascii: true, scheme: Scheme::None, ..OPTIONS }));
        assert!(picture.is_ascii(), "{picture}");
    }
}

#[test]
fn without_a_terminal_it_is_printed() {
    let options = ViewOptions { ascii: true, ..OPTIONS };
    let trace: Arc<dyn Trace + Send + Sync> = Arc::new(teaching());
    let (text, is_whole) = timeline_text(&trace, &Clocks::same(), "ring.trace", Some(80), options).unwrap();
    assert!(is_whole);
    insta::assert_snapshot!("timeline-as-text", text);
}

/// Calls that no job can have made, as somebody may have written them into a file.
fn hostile(numbers: &mut Numbers) -> HandMade {
    let ranks = u32::try_from(1 + numbers.below(5)).unwrap();
    let mut made = HandMade::of_ranks(ranks);
    let edges = [0, 1, 1000, 1 << 40, u64::MAX - 1, u64::MAX];
    let names = ["MPI_Send", "MPI_Recv", "MPI_Waitall", "MPI_Barrier", "MPI_Bcast", "MPI_Mprobe", "MPI_File_open"];
    for _ in 0..numbers.below(60) {
        let mut time = || edges[usize::try_from(numbers.below(6)).unwrap()].saturating_sub(numbers.below(3));
        let (entry, back) = (time(), time());
        let name = names[usize::try_from(numbers.below(7)).unwrap()];
        let mut one: Call = call(name, entry, back).to(u32::MAX, -1, u64::MAX);
        if numbers.below(2) == 0 {
            one = one.from_any(9).posts(numbers.below(3));
        }
        if let Some(send) = &mut one.operation.send
            && numbers.below(2) == 0
        {
            send.partner = Partner::Unknown;
        }
        one.number = numbers.below(1 << 20);
        one.depth = u8::try_from(numbers.below(2)).unwrap();
        made.push(u32::try_from(numbers.below(u64::from(ranks))).unwrap(), Event::Call(one));
    }
    if numbers.below(3) == 0 {
        let process = &mut made.definitions.processes[0];
        (process.rank, process.executable) = (None, "/bin/\u{1b}[2Jx".into());
        made.thread(ProcessId(u32::MAX), 3);
    }
    made
}

#[test]
fn whatever_is_in_a_trace_and_whatever_is_typed_it_is_drawn() {
    for seed in 1..60 {
        let mut numbers = Numbers(seed * 77);
        let made = hostile(&mut numbers);
        let mut shown = Shown::new(&made, (80, 24));
        let keys = [
            "+", "-", "<Enter>", "0", "<Esc>", "}", "{", "l", "h", "j", "k", "g", "G", "f", "F", "w", "c", "]", "[",
            "d", "m", "?", "n", "N", "/", "e",
        ];
        for _ in 0..60 {
            let key = keys[usize::try_from(numbers.below(keys.len() as u64)).unwrap()];
            shown.press(&[key]);
            if numbers.below(8) == 0 {
                let mut below = |end| u16::try_from(numbers.below(end)).unwrap();
                let (width, height) = (below(200), below(70));
                shown.state.resize(Size { width, height });
                shown.settle();
                shown.state.click(below(200), below(70));
            }
            let picture = shown.picture();
            assert!(!picture.contains('\u{1b}'), "seed {seed}");
        }
        let trace: Arc<dyn Trace + Send + Sync> = Arc::new(made);
        timeline_text(&trace, &Clocks::same(), "x", None, OPTIONS).unwrap();
    }
}

#[test]
fn of_a_trace_without_anything() {
    for made in [HandMade::default(), HandMade::of_ranks(3)] {
        assert_eq!(made.span(), Span { from_ns: 0, until_ns: 0 });
        let mut shown = Shown::new(&made, (80, 24));
        shown.press(&["w", "c", "+", "-", "<Enter>", "d", "y", "/", "a", "<Enter>", "]", "l", "j"]);
        assert!(shown.picture().contains("mpiprobe"), "{}", shown.picture());
    }
}
