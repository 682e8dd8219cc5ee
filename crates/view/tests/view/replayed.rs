//! The view of a recording, without a terminal.
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

use std::{
    path::PathBuf,
    pin::pin,
    task::{Context, Poll, Waker},
};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use mpiprobe_model::Profile;
use mpiprobe_report::{Moments, Part, Span, present::recording::Writer};
use mpiprobe_tests::synthetic::Synthetic;
use mpiprobe_view::{Action, Effect, Replay, Size, Source as _, State, Update, action};
use tempfile::TempDir;

/// A recording, and its view; the loop of the view but for the terminal.
pub(crate) struct Replayed {
    pub(crate) state: State,
    source: Replay,
    runtime: tokio::runtime::Runtime,
    _folder: TempDir,
}

pub(crate) fn record(profiles: impl IntoIterator<Item = Profile>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.rec");
    let mut writer = Writer::create(&path, 0o600, u64::MAX).unwrap();
    for profile in profiles {
        writer.add(&profile).unwrap();
    }
    writer.end(0).unwrap();
    (folder, path)
}

/// 30 seconds of a job.
pub(crate) fn seconds(job: Synthetic) -> impl Iterator<Item = Profile> {
    (1..=30).map(move |second| job.profile(second, None))
}

impl Replayed {
    /// From a moment on, the first is 0.
    pub(crate) fn new((folder, path): (TempDir, PathBuf), from: usize, (width, height): (u16, u16)) -> Self {
        let source =
            Replay::silent(Moments::of_parts(vec![Part::open(&path).unwrap()], Span::default()).unwrap(), from);
        let mut state = State::new(source.running());
        state.resize(Size { width, height });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut replayed = Self { state, source, runtime, _folder: folder };
        replayed.settle();
        replayed
    }

    /// Takes in what is told next.
    pub(crate) fn wait(&mut self) {
        let update = self.runtime.block_on(self.source.next());
        tell(&mut self.state, update);
    }

    /// Takes in all that is told without waiting.
    fn settle(&mut self) {
        loop {
            let _inside = self.runtime.enter();
            let mut context = Context::from_waker(Waker::noop());
            let Poll::Ready(update) = pin!(self.source.next()).poll(&mut context) else { return };
            tell(&mut self.state, update);
        }
    }

    pub(crate) fn press(&mut self, keys: &[&str]) {
        for key in keys {
            let code = match *key {
                "<Left>" => KeyCode::Left,
                "<Right>" => KeyCode::Right,
                "<Enter>" => KeyCode::Enter,
                letter => KeyCode::Char(letter.chars().next().unwrap()),
            };
            self.act(action(&KeyEvent::new(code, KeyModifiers::NONE)).unwrap());
        }
    }

    fn act(&mut self, action: Action) {
        if let Some(Effect::Wish(wish)) = self.state.act(action) {
            self.source.wish(wish);
        }
        self.settle();
    }

    pub(crate) fn at(&self) -> usize {
        self.state.position().unwrap().index
    }
}

fn tell(state: &mut State, update: Update) {
    match update {
        Update::Moment(moment) => state.go_to_moment(*moment),
        Update::Position(position) => state.set_position(position),
        Update::Message(message) => state.notice = Some(message),
        Update::Profile(profile) => state.add(profile),
        Update::Stacks(stacks) => state.add_stacks(stacks),
        Update::Calls(_) | Update::Close => unreachable!("nobody has asked for that"),
    }
}

/// What is below the header and above the notices.
pub(crate) fn body(picture: &str) -> String {
    let lines = picture.lines().skip(1);
    let number = picture.lines().count().saturating_sub(3);
    lines.take(number).collect::<Vec<_>>().join("\n")
}
