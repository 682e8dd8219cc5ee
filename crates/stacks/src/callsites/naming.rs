//! Names of call sites, found on a thread of its own: whoever asks goes on without them if they take long.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use mpiprobe_discover::foreign::{is_given_up, work_beside};
use mpiprobe_model::CallSite;

use super::{
    module::{ModuleAddress, ModuleId},
    symboliser::{Symboliser, unnamed},
};

/// How often it is looked whether the wait is to end.
const SLICE: Duration = Duration::from_millis(50);
/// Of the thread: what reads debug information keeps within a part of it.
const STACK: usize = 8 << 20;

type Key = (ModuleId, u64);

/// Asks for names, and remembers the answers.
#[derive(Debug, Default)]
pub struct Naming {
    /// `None` until somebody asks.
    thread: Option<Ends>,
    answers: HashMap<Key, Arc<CallSite>>,
    asked: HashSet<Key>,
}

#[derive(Debug)]
struct Ends {
    questions: Sender<ModuleAddress>,
    answers: Receiver<(Key, Arc<CallSite>)>,
}

impl Naming {
    /// The place in the source that a call returns to; by file and offset only, if its name is not known by then.
    pub fn resolve(&mut self, at: &ModuleAddress, until: Instant) -> Arc<CallSite> {
        let key = (at.module.id().clone(), at.offset);
        if self.answers.len() >= Symboliser::MAX_ANSWERS {
            self.answers.clear();
        }
        if !self.answers.contains_key(&key) && !self.asked.contains(&key) {
            self.ask(at, key.clone());
        }
        while self.asked.contains(&key) && self.take(until) {}
        self.answers.get(&key).map_or_else(|| Arc::new(unnamed(at)), Arc::clone)
    }

    /// Whether a name has been asked for and is not known yet.
    pub fn is_pending(&self, at: &ModuleAddress) -> bool {
        self.asked.contains(&(at.module.id().clone(), at.offset))
    }

    /// How many names have been asked for and are not known yet.
    pub fn pending(&self) -> usize {
        self.asked.len()
    }

    fn ask(&mut self, at: &ModuleAddress, key: Key) {
        if self.thread.is_none() {
            self.thread = start();
        }
        if self.thread.as_ref().is_some_and(|thread| thread.questions.send(at.clone()).is_ok()) {
            self.asked.insert(key);
        }
    }

    /// Waits for one answer, any. False: it is time to go on.
    fn take(&mut self, until: Instant) -> bool {
        let Some(thread) = &self.thread else { return false };
        let left = until.saturating_duration_since(Instant::now());
        match thread.answers.recv_timeout(left.min(SLICE)) {
            Ok((key, site)) => {
                self.asked.remove(&key);
                self.answers.insert(key, site);
                true
            }
            Err(RecvTimeoutError::Timeout) => !left.is_zero() && !is_given_up(),
            Err(RecvTimeoutError::Disconnected) => {
                self.thread = None;
                self.asked.clear();
                false
            }
        }
    }
}

fn start() -> Option<Ends> {
    let (questions, asked) = channel::<ModuleAddress>();
    let (answer, answers) = channel();
    let thread = thread::Builder::new().name("names".to_owned()).stack_size(STACK);
    let started = thread.spawn(move || {
        work_beside();
        let mut symboliser = Symboliser::default();
        for at in asked {
            let site = symboliser.resolve(&at);
            if answer.send(((at.module.id().clone(), at.offset), site)).is_err() {
                return;
            }
        }
    });
    started.ok().map(|_| Ends { questions, answers })
}
