//! The view of an observation under way, on a thread of its own: a terminal that takes its time must not keep the observation
//! from noticing new ranks.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
};

use mpiprobe_model::Profile;
use mpiprobe_report::present::{Diverted, say};
use tokio::sync::{mpsc, oneshot, watch};

use super::{
    ViewError, ViewOptions, ViewStart, app,
    source::{Calls, Running, Source, Stacks, Update, Wish},
};

/// Messages that are kept until the terminal is given back: the latest ones.
const MOST_MESSAGES: usize = 200;

/// The observation's end of the view.
#[derive(Debug)]
pub struct LiveView {
    profiles: watch::Sender<Option<Arc<Profile>>>,
    /// Comes to an end when the user has.
    ended: oneshot::Receiver<()>,
    thread: JoinHandle<Result<(), ViewError>>,
    diverted: Diverted,
    messages: Kept,
    /// Whether the last calls are to be shown.
    recent_calls: watch::Receiver<bool>,
    /// Whether stacks are.
    stacks_wanted: watch::Receiver<bool>,
    stacks: ShowStacks,
    /// Raised when the calls of all ranks are to be shown.
    calls_wanted: watch::Receiver<bool>,
    calls: watch::Sender<Option<Calls>>,
}

/// What shows stacks in the view, from any thread; if the view is busy, only the latest ones.
#[derive(Clone, Debug)]
pub struct ShowStacks(watch::Sender<Option<Arc<Stacks>>>);

impl ShowStacks {
    pub fn show(&self, stacks: Stacks) {
        self.0.send_replace(Some(Arc::new(stacks)));
    }
}

type Kept = Arc<Mutex<VecDeque<String>>>;

impl LiveView {
    /// Takes the terminal over.
    pub fn open(options: ViewOptions, start: ViewStart) -> Result<Self, ViewError> {
        let (profiles, profiles_seen) = watch::channel(None);
        let (message, messages_seen) = mpsc::unbounded_channel();
        let (end, ended) = oneshot::channel();
        let (recent, recent_calls) = watch::channel(false);
        let (want_stacks, stacks_wanted) = watch::channel(false);
        let (stacks, stacks_seen) = watch::channel(None);
        let (want_calls, calls_wanted) = watch::channel(false);
        let (calls, calls_seen) = watch::channel(None);
        let messages = Kept::default();
        let keep = Arc::clone(&messages);
        let diverted = mpiprobe_report::present::divert(Box::new(move |text| {
            let mut kept = keep.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() >= MOST_MESSAGES {
                kept.pop_front();
            }
            kept.push_back(text.to_owned());
            // Who has closed the view reads them afterwards.
            let _ = message.send(text.to_owned());
        }));
        let source = LiveSource {
            profiles: profiles_seen,
            messages: messages_seen,
            recent_calls: recent,
            want_stacks,
            stacks: stacks_seen,
            want_calls,
            calls: calls_seen,
        };
        let thread = std::thread::Builder::new().name("view".into()).spawn(move || {
            // Held until the thread has ended, also by a panic.
            let _end: oneshot::Sender<()> = end;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map_err(ViewError::Start)?.block_on(app::run(source, options, start))
        });
        let (thread, stacks) = (thread.map_err(ViewError::Start)?, ShowStacks(stacks));
        Ok(Self {
            profiles,
            ended,
            thread,
            diverted,
            messages,
            recent_calls,
            stacks_wanted,
            stacks,
            calls_wanted,
            calls,
        })
    }

    /// Shows a further profile; if the view is busy, only the latest one.
    pub fn show(&self, profile: Arc<Profile>) {
        self.profiles.send_replace(Some(profile));
    }

    pub fn stacks(&self) -> ShowStacks {
        self.stacks.clone()
    }

    /// Shows the calls of all ranks.
    pub fn show_calls(&self, calls: Calls) {
        self.calls.send_replace(Some(calls));
    }

    /// Waits until the user has seen enough.
    pub async fn ended(&mut self) {
        ended(&mut self.ended).await;
    }

    /// Waits until the user asks for something.
    pub async fn asked(&mut self) -> Asked {
        tokio::select! {
            Ok(()) = self.recent_calls.changed() => Asked::RecentCalls(*self.recent_calls.borrow_and_update()),
            Ok(()) = self.stacks_wanted.changed() => Asked::Stacks(*self.stacks_wanted.borrow_and_update()),
            Ok(()) = self.calls_wanted.changed() => Asked::Calls,
            () = ended(&mut self.ended) => Asked::End,
        }
    }

    /// Gives the terminal back, then says what was said meanwhile.
    pub fn close(self) -> Result<(), ViewError> {
        drop(self.profiles);
        let done = self.thread.join().map_err(|_| ViewError::Panicked).flatten();
        drop(self.diverted);
        for message in self.messages.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            say(message);
        }
        done
    }
}

/// What the user asks the observation for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    End,
    /// The last calls of each rank, from now on or not any more.
    RecentCalls(bool),
    /// The stacks of all threads, from now on or not any more.
    Stacks(bool),
    /// Where the calls of all ranks are.
    Calls,
    /// Calls that are kept in memory are to be written down, by whoever asks.
    Dump,
}

async fn ended(ended: &mut oneshot::Receiver<()>) {
    // Nothing is ever sent: the end of the thread is the message. Once that is known, it may be asked for again.
    if !ended.is_terminated() {
        let _ = ended.await;
    }
}

/// The view's end.
struct LiveSource {
    profiles: watch::Receiver<Option<Arc<Profile>>>,
    messages: mpsc::UnboundedReceiver<String>,
    recent_calls: watch::Sender<bool>,
    want_stacks: watch::Sender<bool>,
    stacks: watch::Receiver<Option<Arc<Stacks>>>,
    want_calls: watch::Sender<bool>,
    calls: watch::Receiver<Option<Calls>>,
}

impl Source for LiveSource {
    fn running(&self) -> Running {
        Running::Live
    }

    fn wish(&mut self, wish: Wish) {
        match wish {
            Wish::RecentCalls(wanted) => drop(self.recent_calls.send_replace(wanted)),
            Wish::Stacks(wanted) => drop(self.want_stacks.send_replace(wanted)),
            Wish::Calls => drop(self.want_calls.send_replace(true)),
            Wish::Step(_) | Wish::Play => {}
        }
    }

    async fn next(&mut self) -> Update {
        loop {
            tokio::select! {
                changed = self.profiles.changed() => {
                    if changed.is_err() {
                        return Update::Close;
                    }
                    if let Some(profile) = self.profiles.borrow_and_update().clone() {
                        return Update::Profile(profile);
                    }
                }
                Ok(()) = self.stacks.changed() => {
                    if let Some(stacks) = self.stacks.borrow_and_update().clone() {
                        return Update::Stacks(stacks);
                    }
                }
                Ok(()) = self.calls.changed() => {
                    if let Some(calls) = self.calls.borrow_and_update().clone() {
                        return Update::Calls(calls);
                    }
                }
                Some(message) = self.messages.recv() => return Update::Message(message),
            }
        }
    }
}
